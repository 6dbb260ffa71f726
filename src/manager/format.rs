//! Sizes of packets, and errors in bytes that another host sent.

/// Size of a header in bytes.
pub const HEADER: usize = 48;

/// Largest size of a packet in bytes: it fits into an entry of the smallest lane.
pub const PACKET_MAX: usize = 960;

/// Largest number of bytes that can follow a header.
pub const PAYLOAD_MAX: usize = PACKET_MAX - HEADER;

/// Error: an invalid packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// The length does not fit the type of data.
    #[error("{len} bytes are not {what}")]
    Length {
        /// Expected type of data.
        what: &'static str,
        /// Actual number of bytes.
        len: usize,
    },
    /// The magic number is wrong: the packet does not belong to the manager, or has another version.
    #[error("it begins with {0:#010x}")]
    Magic(u32),
    /// The method does not exist.
    #[error("there is no method {method} in direction {direction}")]
    Method {
        /// Method in the header.
        method: u8,
        /// Direction in the header.
        direction: u8,
    },
    /// The lists of ports are inconsistent.
    #[error("its lists of ports are impossible: {count} of {hops} hops")]
    Lists {
        /// Number of hops of the path.
        hops: u8,
        /// Number of hops made so far.
        count: u8,
    },
    /// A field has an impossible value.
    #[error("its field {0} has an impossible value")]
    Value(&'static str),
}
