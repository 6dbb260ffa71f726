//! The manager's packets: 48 bytes of header, then what the method says.
//!
//! They need no addresses: the header lists the ports by which a packet leaves one host after the
//! other, and every host that it reaches adds the port by which it came to a second list, which is
//! the way back.

use super::path::Path;
use super::record::Record;
use super::table::Piece;
use bytes::{Buf, BufMut};

/// Bytes of a header.
pub const HEADER: usize = 48;

/// The most bytes of a packet: it fits an entry of the smallest lane.
pub const PACKET_MAX: usize = 960;

/// The most bytes that can follow a header.
pub const PAYLOAD_MAX: usize = PACKET_MAX - HEADER;

/// "ntm" and the version of this format.
const MAGIC: u32 = u32::from_le_bytes(*b"ntm\x01");

const ASK: u8 = 1;
const TABLE: u8 = 2;
/// Directions: to whom a request is for, back with its answer, back because it could not be delivered.
const OUT: u8 = 0;
const BACK: u8 = 1;
const RETURNED: u8 = 2;

/// What is wrong with a packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PacketError {
    /// Too short or too long for what it is.
    #[error("{len} bytes are not {what}")]
    Length {
        /// What it should be.
        what: &'static str,
        /// Bytes that there are.
        len: usize,
    },
    /// No packet of the manager, or of another version.
    #[error("it begins with {0:#010x}")]
    Magic(u32),
    /// There is no such method.
    #[error("there is no method {method} in direction {direction}")]
    Method {
        /// What it says.
        method: u8,
        /// What it says.
        direction: u8,
    },
    /// Its lists of ports cannot be.
    #[error("its lists of ports cannot be: {count} of {hops} hops")]
    Lists {
        /// Hops of its way.
        hops: u8,
        /// Those it has made.
        count: u8,
    },
    /// A field has a value that it cannot have.
    #[error("its field {0} cannot be")]
    Value(&'static str),
}

/// What a packet is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Who are you? I am this.
    Ask,
    /// I am this.
    Answer,
    /// The question that took this way met a port that is down.
    Returned,
    /// A piece of a table.
    Table,
}

impl Method {
    fn codes(self) -> (u8, u8) {
        match self {
            Method::Ask => (ASK, OUT),
            Method::Answer => (ASK, BACK),
            Method::Returned => (ASK, RETURNED),
            Method::Table => (TABLE, OUT),
        }
    }
}

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// What it is about.
    pub method: Method,
    /// The number of the search that a question belongs to; repeated in the answer.
    pub round: u32,
    /// Its way.
    pub forward: Path,
    /// The ports by which it has come so far, and so the way back; as long as the path counter.
    pub backward: Path,
}

/// What follows the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Of who asks.
    Ask(Record),
    /// Of who answers.
    Answer(Record),
    /// The way that the question was to take.
    Returned(Path),
    /// A piece of a table.
    Table(Piece<'a>),
}

impl Header {
    /// Of a packet that is about to leave its first host.
    pub fn new(method: Method, round: u32, forward: Path) -> Header {
        Header { method, round, forward, backward: Path::EMPTY }
    }

    /// Whether the packet is where it is to go.
    pub fn has_arrived(&self) -> bool {
        self.backward.len() == self.forward.len()
    }

    /// The port by which it goes on, if it has not arrived.
    pub fn next(&self) -> Option<u8> {
        self.forward.get(self.backward.len())
    }

    /// The header of a packet, which may be of any length, and what follows it.
    pub fn parse(mut bytes: &[u8]) -> Result<(Header, &[u8]), PacketError> {
        if bytes.len() < HEADER || bytes.len() > PACKET_MAX {
            return Err(PacketError::Length { what: "a packet", len: bytes.len() });
        }
        let magic = bytes.get_u32_le();
        if magic != MAGIC {
            return Err(PacketError::Magic(magic));
        }
        let (method, direction, hops, count) = (bytes.get_u8(), bytes.get_u8(), bytes.get_u8(), bytes.get_u8());
        let (round, payload, zero) = (bytes.get_u32_le(), bytes.get_u16_le(), bytes.get_u16_le());
        let mut lists = [[0; Path::BYTES]; 2];
        lists.iter_mut().for_each(|list| bytes.copy_to_slice(list));
        let method = match (method, direction) {
            (ASK, OUT) => Method::Ask,
            (ASK, BACK) => Method::Answer,
            (ASK, RETURNED) => Method::Returned,
            (TABLE, OUT) => Method::Table,
            _ => return Err(PacketError::Method { method, direction }),
        };
        let (Some(forward), Some(backward)) = (Path::parse(hops, lists[0]), Path::parse(count, lists[1])) else {
            return Err(PacketError::Lists { hops, count });
        };
        if hops == 0 || count > hops {
            return Err(PacketError::Lists { hops, count });
        }
        if usize::from(payload) != bytes.len() || zero != 0 {
            return Err(PacketError::Length { what: "a header and its payload", len: HEADER + bytes.len() });
        }
        Ok((Header { method, round, forward, backward }, bytes))
    }

    /// The packet of this header and what follows it, which must not be longer than [`PAYLOAD_MAX`].
    pub fn with(&self, payload: &[u8]) -> Vec<u8> {
        debug_assert!(payload.len() <= PAYLOAD_MAX);
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        let (method, direction) = self.method.codes();
        bytes.put_u32_le(MAGIC);
        bytes.put_u8(method);
        bytes.put_u8(direction);
        bytes.put_u8(self.forward.len() as u8);
        bytes.put_u8(self.backward.len() as u8);
        bytes.put_u32_le(self.round);
        bytes.put_u16_le(payload.len() as u16);
        bytes.put_u16_le(0);
        bytes.put_slice(&self.forward.bytes());
        bytes.put_slice(&self.backward.bytes());
        bytes.put_slice(payload);
        bytes
    }
}

impl<'a> Body<'a> {
    /// What follows a header of this method.
    pub fn parse(method: Method, payload: &'a [u8]) -> Result<Body<'a>, PacketError> {
        match method {
            Method::Ask => Record::parse(payload).map(Body::Ask),
            Method::Answer => Record::parse(payload).map(Body::Answer),
            Method::Table => Piece::parse(payload).map(Body::Table),
            Method::Returned => match payload.split_first_chunk() {
                Some((list, &[hops])) => Path::parse(hops, *list).map(Body::Returned).ok_or(PacketError::Value("way")),
                _ => Err(PacketError::Length { what: "a way", len: payload.len() }),
            },
        }
    }

    /// As bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Body::Ask(record) | Body::Answer(record) => record.put(&mut bytes),
            Body::Table(piece) => piece.put(&mut bytes),
            Body::Returned(path) => {
                bytes.put_slice(&path.bytes());
                bytes.put_u8(path.len() as u8);
            }
        }
        bytes
    }

    /// Its method.
    pub fn method(&self) -> Method {
        match self {
            Body::Ask(_) => Method::Ask,
            Body::Answer(_) => Method::Answer,
            Body::Returned(_) => Method::Returned,
            Body::Table(_) => Method::Table,
        }
    }

    /// The packet that carries this out on a way.
    pub fn packet(&self, round: u32, way: Path) -> Vec<u8> {
        Header::new(self.method(), round, way).with(&self.bytes())
    }
}
