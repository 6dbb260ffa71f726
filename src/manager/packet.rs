//! The manager's packets: a header of 48 bytes, followed by a payload that depends on the method.
//!
//! They need no addresses: packets are source-routed. The header lists the ports by which a packet leaves each host
//! in turn. Every host that it reaches adds the port by which it arrived to a second list, which is the path back.

use super::format::{PacketError, HEADER, PACKET_MAX, PAYLOAD_MAX};
use super::path::Path;
use super::record::Record;
use super::table::Fragment;
use bytes::{Buf, BufMut};

/// Magic number: "ntm" and the version of this format.
const MAGIC: u32 = u32::from_le_bytes(*b"ntm\x01");

const ASK: u8 = 1;
const TABLE: u8 = 2;
/// Directions: a request to its destination, the answer on its way back, and a request that is returned because it
/// could not be delivered.
const OUT: u8 = 0;
const BACK: u8 = 1;
const RETURNED: u8 = 2;

/// Type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// Request for the record of the host at the end of the path; carries the record of the sender.
    Ask,
    /// Reply to a request; carries the record of the host.
    Answer,
    /// A request that met a port that is down on this path.
    Returned,
    /// A chunk of a routing table.
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
    /// Type of the packet.
    pub method: Method,
    /// Number of the search to which a request belongs; repeated in the reply.
    pub round: u32,
    /// Path of the packet.
    pub forward: Path,
    /// Ports by which the packet has arrived so far, and so the path back. Its length is the path counter.
    pub backward: Path,
}

/// Payload of a packet, after the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body<'a> {
    /// Record of the requesting host.
    Ask(Record),
    /// Record of the replying host.
    Answer(Record),
    /// Path that the request was to take.
    Returned(Path),
    /// A chunk of a routing table.
    Table(Fragment<'a>),
}

impl Header {
    /// Returns the header of a packet that is about to leave its first host.
    pub fn new(method: Method, round: u32, forward: Path) -> Header {
        Header { method, round, forward, backward: Path::EMPTY }
    }

    /// Returns true if the packet is at its destination.
    pub fn has_arrived(&self) -> bool {
        self.backward.len() == self.forward.len()
    }

    /// Port by which the packet leaves the present host; None if it has arrived.
    pub fn next(&self) -> Option<u8> {
        self.forward.get(self.backward.len())
    }

    /// Decodes the header of a packet of any length, and returns it with the payload.
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

    /// Encodes a packet with this header. `payload` must not be longer than [`PAYLOAD_MAX`].
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
    /// Decodes the payload of a packet of this type.
    pub fn parse(method: Method, payload: &'a [u8]) -> Result<Body<'a>, PacketError> {
        match method {
            Method::Ask => Record::parse(payload).map(Body::Ask),
            Method::Answer => Record::parse(payload).map(Body::Answer),
            Method::Table => Fragment::parse(payload).map(Body::Table),
            Method::Returned => match payload.split_first_chunk() {
                Some((list, &[hops])) => Path::parse(hops, *list).map(Body::Returned).ok_or(PacketError::Value("path")),
                _ => Err(PacketError::Length { what: "a path", len: payload.len() }),
            },
        }
    }

    /// Encodes the payload.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match self {
            Body::Ask(record) | Body::Answer(record) => record.put(&mut bytes),
            Body::Table(fragment) => fragment.put(&mut bytes),
            Body::Returned(path) => {
                bytes.put_slice(&path.bytes());
                bytes.put_u8(path.len() as u8);
            }
        }
        bytes
    }

    /// Type of the packet that carries this payload.
    pub fn method(&self) -> Method {
        match self {
            Body::Ask(_) => Method::Ask,
            Body::Answer(_) => Method::Answer,
            Body::Returned(_) => Method::Returned,
            Body::Table(_) => Method::Table,
        }
    }

    /// Encodes a packet that carries this payload along a path.
    pub fn packet(&self, round: u32, way: Path) -> Vec<u8> {
        Header::new(self.method(), round, way).with(&self.bytes())
    }
}
