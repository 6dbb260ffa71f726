//! What the master tells a host: who is in the network, by which local id, and by which way.

use super::packet::{PacketError, PAYLOAD_MAX};
use super::record::{Stamp, EPOCH_MAX};
use super::routes::class_step;
use super::{Hwid, Lid, Path, CLASSES_MAX, HOSTS_MAX};
use bytes::{Buf, BufMut};
use serde::Serialize;

/// A host in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Entry {
    /// Its local id.
    pub lid: Lid,
    /// Its hardware id.
    pub hwid: Hwid,
    /// The way to it; empty for the host itself.
    pub path: Path,
}

/// The table of one host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Table {
    stamp: Stamp,
    lid: Lid,
    classes: u8,
    /// By local id.
    hosts: Vec<Entry>,
}

impl Table {
    const HEAD: usize = 24;
    const ENTRY: usize = 28;
    /// Bytes of the largest table.
    pub const BYTES_MAX: usize = Self::HEAD + HOSTS_MAX * Self::ENTRY;

    /// The table of the host `lid`. `hosts` must be in the order of their local ids.
    pub(super) fn new(stamp: Stamp, lid: Lid, classes: u8, hosts: Vec<Entry>) -> Table {
        Table { stamp, lid, classes, hosts }
    }

    /// The table of a host that knows nobody.
    pub(super) fn alone(hwid: Hwid, classes: u8) -> Table {
        let own = Entry { lid: Lid(1), hwid, path: Path::EMPTY };
        Table { stamp: Stamp { epoch: 1, master: hwid, digest: 0 }, lid: Lid(1), classes, hosts: vec![own] }
    }

    /// Who has made it and which of two is newer.
    pub fn stamp(&self) -> Stamp {
        self.stamp
    }

    /// The local id of the host whose table this is.
    pub fn lid(&self) -> Lid {
        self.lid
    }

    /// Classes of lanes that its routes may use.
    pub fn classes(&self) -> u8 {
        self.classes
    }

    /// All hosts, in the order of their local ids.
    pub fn hosts(&self) -> &[Entry] {
        &self.hosts
    }

    /// What it says of a host.
    pub fn host(&self, hwid: Hwid) -> Option<&Entry> {
        self.hosts.iter().find(|entry| entry.hwid == hwid)
    }

    /// The way to a host; empty to itself, none if it is not in the network.
    pub fn path(&self, to: Lid) -> Option<Path> {
        self.hosts.iter().find(|entry| entry.lid == to).map(|entry| entry.path)
    }

    /// For a forwarder: the class of the lane to `next` for a packet that came from the neighbour
    /// `before` in a lane of `class`. None if no route does that.
    pub fn class_on(&self, before: Lid, next: Lid, class: u8) -> Option<u8> {
        let class = class + class_step(before, self.lid, next);
        (class < self.classes).then_some(class)
    }

    /// Whether a host that is in both tables has another local id in the other one. Then packets
    /// of both must not be under way together; otherwise they may (docs/protocol.md).
    pub fn renumbers(&self, other: &Table) -> bool {
        self.hosts.iter().any(|entry| other.host(entry.hwid).is_some_and(|there| there.lid != entry.lid))
    }

    /// As bytes, at most [`Table::BYTES_MAX`].
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

    /// The table that these bytes are.
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
        // One host has no way to go: the one whose table it is.
        if hosts.iter().filter(|entry| entry.path.is_empty()).map(|entry| entry.lid).ne([lid]) {
            return Err(PacketError::Value("own local id"));
        }
        Ok(Table { stamp, lid, classes, hosts })
    }
}

/// A piece of a table's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece<'a> {
    /// Of the table.
    pub stamp: Stamp,
    /// Bytes of the table.
    pub total: u16,
    /// Where in it the piece begins.
    pub offset: u16,
    /// The piece.
    pub bytes: &'a [u8],
}

impl<'a> Piece<'a> {
    const HEAD: usize = 24;
    const BYTES_MAX: usize = PAYLOAD_MAX - Self::HEAD;

    /// The pieces of a table.
    pub fn all(stamp: Stamp, table: &'a [u8]) -> impl Iterator<Item = Piece<'a>> {
        let total = table.len() as u16;
        table.chunks(Self::BYTES_MAX).scan(0, move |offset, bytes| {
            let piece = Piece { stamp, total, offset: *offset, bytes };
            *offset += bytes.len() as u16;
            Some(piece)
        })
    }

    /// Appends it.
    pub fn put(&self, to: &mut impl BufMut) {
        to.put_u64_le(self.stamp.epoch);
        to.put_u64_le(self.stamp.master.0);
        to.put_u16_le(self.total);
        to.put_u16_le(self.offset);
        to.put_u32_le(self.stamp.digest);
        to.put_slice(self.bytes);
    }

    /// The piece that these bytes are.
    pub fn parse(mut bytes: &'a [u8]) -> Result<Piece<'a>, PacketError> {
        let len = bytes.len();
        if len <= Self::HEAD || len > PAYLOAD_MAX {
            return Err(PacketError::Length { what: "a piece of a table", len });
        }
        let (epoch, master) = (bytes.get_u64_le(), Hwid(bytes.get_u64_le()));
        let (total, offset) = (bytes.get_u16_le(), bytes.get_u16_le());
        let stamp = Stamp { epoch, master, digest: bytes.get_u32_le() };
        let fits = usize::from(offset) + bytes.len() <= usize::from(total);
        if !fits || usize::from(total) > Table::BYTES_MAX || stamp.epoch > EPOCH_MAX {
            return Err(PacketError::Value("piece of a table"));
        }
        Ok(Piece { stamp, total, offset, bytes })
    }
}

/// A table of which not all pieces are here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Assembly {
    stamp: Stamp,
    total: u16,
    bytes: Vec<u8>,
}

impl Assembly {
    /// Adds a piece to what is there, and gives the table's bytes when all are here. Pieces come in
    /// order; one that does not follow is from a table that was sent twice, or another one is lost.
    pub fn add(place: &mut Option<Assembly>, piece: &Piece<'_>) -> Option<Vec<u8>> {
        if piece.offset == 0 {
            *place = Some(Assembly { stamp: piece.stamp, total: piece.total, bytes: Vec::new() });
        }
        let whole = place.as_mut().filter(|whole| (whole.stamp, whole.total) == (piece.stamp, piece.total))?;
        if whole.bytes.len() == usize::from(piece.offset) {
            whole.bytes.extend_from_slice(piece.bytes);
        }
        let complete = whole.bytes.len() == usize::from(whole.total);
        complete.then(|| place.take().map(|whole| whole.bytes))?
    }
}
