//! The routing table that the master sends to a host: the hosts of the network, their local ids and the paths to
//! them.

use super::format::{PacketError, PAYLOAD_MAX};
use super::ids::class_step;
use super::record::{Stamp, EPOCH_MAX};
use super::{Hwid, Lid, Path, CLASSES_MAX, HOSTS_MAX};
use bytes::{Buf, BufMut};
use serde::Serialize;

/// A host in a routing table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Entry {
    /// Local id of the host.
    pub lid: Lid,
    /// Hardware id of the host.
    pub hwid: Hwid,
    /// Path to the host; empty for the table's own host.
    pub path: Path,
}

/// The routing table of one host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Table {
    stamp: Stamp,
    lid: Lid,
    classes: u8,
    /// Entries of all hosts, by local id.
    hosts: Vec<Entry>,
}

impl Table {
    const HEAD: usize = 24;
    const ENTRY: usize = 28;
    /// Size of the largest table in bytes.
    pub const BYTES_MAX: usize = Self::HEAD + HOSTS_MAX * Self::ENTRY;

    /// Returns the table of the host `lid`. `hosts` must be in the order of their local ids.
    pub(super) fn new(stamp: Stamp, lid: Lid, classes: u8, hosts: Vec<Entry>) -> Table {
        Table { stamp, lid, classes, hosts }
    }

    /// Returns the table of a host that knows no other host.
    pub(super) fn alone(hwid: Hwid, classes: u8) -> Table {
        let own = Entry { lid: Lid(1), hwid, path: Path::EMPTY };
        Table { stamp: Stamp { epoch: 1, master: hwid, digest: 0 }, lid: Lid(1), classes, hosts: vec![own] }
    }

    /// Version of the table: its master and its order among tables.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// Local id of the host that owns the table.
    pub fn lid(&self) -> Lid {
        self.lid
    }

    /// Number of lane classes that the routes may use.
    pub fn classes(&self) -> u8 {
        self.classes
    }

    /// All hosts, in the order of their local ids.
    pub fn hosts(&self) -> &[Entry] {
        &self.hosts
    }

    /// Returns the entry of a host.
    pub fn host(&self, hwid: Hwid) -> Option<&Entry> {
        self.hosts.iter().find(|entry| entry.hwid == hwid)
    }

    /// Returns the path to a host: empty for the own host, None if the host is not in the network.
    pub fn path(&self, to: Lid) -> Option<Path> {
        self.hosts.iter().find(|entry| entry.lid == to).map(|entry| entry.path)
    }

    /// Returns the class of the lane to `next` for a packet that a forwarder received from the neighbour `before` in
    /// a lane of `class`. Returns None if no route makes this hop.
    pub fn class_on(&self, before: Lid, next: Lid, class: u8) -> Option<u8> {
        let class = class + class_step(before, self.lid, next);
        (class < self.classes).then_some(class)
    }

    /// Returns true if a host that is in both tables has different local ids in them. Packets of both tables must
    /// then not be in flight together; otherwise they may (docs/protocol.md).
    pub fn renumbers(&self, other: &Table) -> bool {
        self.hosts.iter().any(|entry| other.host(entry.hwid).is_some_and(|there| there.lid != entry.lid))
    }

    /// Encodes the table as at most [`Table::BYTES_MAX`] bytes.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::HEAD + self.hosts.len() * Self::ENTRY);
        bytes.put_u64_le(self.stamp.epoch);
        bytes.put_u64_le(self.stamp.master.0);
        bytes.put_u8(self.lid.0);
        bytes.put_u8(self.hosts.len() as u8);
        bytes.put_u8(self.classes);
        bytes.put_u8(0);
        bytes.put_u32_le(self.stamp.digest);
        for entry in &self.hosts {
            bytes.put_u64_le(entry.hwid.0);
            bytes.put_u8(entry.lid.0);
            bytes.put_u8(entry.path.len() as u8);
            bytes.put_u16_le(0);
            bytes.put_slice(&entry.path.bytes());
        }
        bytes
    }

    /// Decodes a table.
    pub fn parse(mut bytes: &[u8]) -> Result<Table, PacketError> {
        let len = bytes.len();
        if len < Self::HEAD {
            return Err(PacketError::Length { what: "a table", len });
        }
        let (epoch, master) = (bytes.get_u64_le(), Hwid(bytes.get_u64_le()));
        let (lid, count, classes) = (Lid(bytes.get_u8()), usize::from(bytes.get_u8()), bytes.get_u8());
        let (zero, digest) = (bytes.get_u8(), bytes.get_u32_le());
        let stamp = Stamp { epoch, master, digest };
        if len != Self::HEAD + count * Self::ENTRY || count > HOSTS_MAX {
            return Err(PacketError::Length { what: "a table", len });
        }
        if stamp.epoch > EPOCH_MAX || !(1..=CLASSES_MAX).contains(&classes) || zero != 0 {
            return Err(PacketError::Value("head of the table"));
        }
        let mut hosts: Vec<Entry> = Vec::with_capacity(count);
        for _ in 0..count {
            let (hwid, lid) = (Hwid(bytes.get_u64_le()), Lid(bytes.get_u8()));
            let (hops, zero) = (bytes.get_u8(), bytes.get_u16_le());
            let mut list = [0; Path::BYTES];
            bytes.copy_to_slice(&mut list);
            let known = hosts.iter().any(|entry| entry.hwid == hwid);
            let follows = lid > hosts.last().map_or(Lid(0), |last| last.lid) && usize::from(lid.0) <= HOSTS_MAX;
            match Path::parse(hops, list) {
                Some(path) if follows && !known && zero == 0 => hosts.push(Entry { lid, hwid, path }),
                _ => return Err(PacketError::Value("host of the table")),
            }
        }
        // Exactly one host has an empty path: the one that owns the table.
        if hosts.iter().filter(|entry| entry.path.is_empty()).map(|entry| entry.lid).ne([lid]) {
            return Err(PacketError::Value("own local id"));
        }
        Ok(Table { stamp, lid, classes, hosts })
    }
}

/// A chunk of an encoded table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment<'a> {
    /// Version of the table.
    pub stamp: Stamp,
    /// Size of the table in bytes.
    pub total: u16,
    /// Offset of the chunk in the table, in bytes.
    pub offset: u16,
    /// Bytes of the chunk.
    pub bytes: &'a [u8],
}

impl<'a> Fragment<'a> {
    const HEAD: usize = 24;
    const BYTES_MAX: usize = PAYLOAD_MAX - Self::HEAD;

    /// Returns the chunks of a table.
    pub fn all(stamp: Stamp, table: &'a [u8]) -> impl Iterator<Item = Fragment<'a>> {
        let total = table.len() as u16;
        table.chunks(Self::BYTES_MAX).scan(0, move |offset, bytes| {
            let fragment = Fragment { stamp, total, offset: *offset, bytes };
            *offset += bytes.len() as u16;
            Some(fragment)
        })
    }

    /// Appends the encoded chunk to `to`.
    pub fn put(&self, to: &mut impl BufMut) {
        to.put_u64_le(self.stamp.epoch);
        to.put_u64_le(self.stamp.master.0);
        to.put_u16_le(self.total);
        to.put_u16_le(self.offset);
        to.put_u32_le(self.stamp.digest);
        to.put_slice(self.bytes);
    }

    /// Decodes a chunk.
    pub fn parse(mut bytes: &'a [u8]) -> Result<Fragment<'a>, PacketError> {
        let len = bytes.len();
        if len <= Self::HEAD || len > PAYLOAD_MAX {
            return Err(PacketError::Length { what: "a chunk of a table", len });
        }
        let (epoch, master) = (bytes.get_u64_le(), Hwid(bytes.get_u64_le()));
        let (total, offset) = (bytes.get_u16_le(), bytes.get_u16_le());
        let stamp = Stamp { epoch, master, digest: bytes.get_u32_le() };
        let fits = usize::from(offset) + bytes.len() <= usize::from(total);
        if !fits || usize::from(total) > Table::BYTES_MAX || stamp.epoch > EPOCH_MAX {
            return Err(PacketError::Value("chunk of a table"));
        }
        Ok(Fragment { stamp, total, offset, bytes })
    }
}

/// A table of which some chunks have not arrived yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Assembly {
    stamp: Stamp,
    total: u16,
    bytes: Vec<u8>,
}

impl Assembly {
    /// Adds a chunk, and returns the table's bytes when all have arrived. Chunks arrive in order. A chunk that does
    /// not follow the previous one belongs to a table that was sent twice, or another chunk is lost.
    pub fn add(place: &mut Option<Assembly>, fragment: &Fragment<'_>) -> Option<Vec<u8>> {
        if fragment.offset == 0 {
            *place = Some(Assembly { stamp: fragment.stamp, total: fragment.total, bytes: Vec::new() });
        }
        let whole = place.as_mut().filter(|whole| (whole.stamp, whole.total) == (fragment.stamp, fragment.total))?;
        if whole.bytes.len() == usize::from(fragment.offset) {
            whole.bytes.extend_from_slice(fragment.bytes);
        }
        let complete = whole.bytes.len() == usize::from(whole.total);
        complete.then(|| place.take().map(|whole| whole.bytes))?
    }
}
