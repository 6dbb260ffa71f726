//! Guests: processes of the same machine that are not of this job, such as those of a job that was
//! spawned, to which messages go without the ring.
//!
//! Who wants to send makes a lane of its own (a memory file like a host's) and announces it in the
//! receiver's mailbox; the receiver opens it when it next polls. Each direction has its own lane.
//! This needs coherent memory, so it exists on the emulated NTB only.

use crate::plan::LANE_MIN;
use bytes::{Buf, BufMut};
use ntbring_host::HostError;
use ntbring_host::{FileAddress, HostMemory, Mailbox};
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::fabric::FabricAddress;
use ntbring_queue::{Consumer, Producer, LINE};
use std::path::Path;

/// What a process must know of another to send to it: 80 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuestAddress {
    /// Its mailbox, whose token also tells processes apart.
    pub mailbox: FileAddress,
    /// The windows of its host, which has its interrupt vectors.
    pub host: FabricAddress,
    /// Its doorbell there.
    pub doorbell: u32,
}

impl GuestAddress {
    /// Bytes that an address takes.
    pub const LEN: usize = 80;
    const MAGIC: u64 = u64::from_le_bytes(*b"ntbgues\x03");

    /// As bytes.
    pub fn bytes(&self) -> [u8; GuestAddress::LEN] {
        let mut bytes = [0; GuestAddress::LEN];
        let mut to = &mut bytes[..];
        to.put_u64_le(Self::MAGIC);
        self.mailbox.put(&mut to);
        to.put_slice(&self.host.0);
        to.put_u32_le(self.doorbell);
        bytes
    }

    /// From bytes; None if they are no such address.
    pub fn parse(mut bytes: &[u8]) -> Option<GuestAddress> {
        if bytes.len() < GuestAddress::LEN || bytes.get_u64_le() != Self::MAGIC {
            return None;
        }
        let mailbox = FileAddress::get(&mut bytes);
        let mut host = FabricAddress([0; FabricAddress::LEN]);
        bytes.copy_to_slice(&mut host.0);
        let doorbell = bytes.get_u32_le();
        ((doorbell as usize) < ntbring_ntb::DOORBELLS).then_some(GuestAddress { mailbox, host, doorbell })
    }
}

/// An announcement in a mailbox: the lane, and who will write to it.
const ANNOUNCEMENT: usize = 24 + GuestAddress::LEN;

fn announcement(lane: FileAddress, sender: &GuestAddress) -> [u8; ANNOUNCEMENT] {
    let mut bytes = [0; ANNOUNCEMENT];
    let mut to = &mut bytes[..];
    lane.put(&mut to);
    to.put_slice(&sender.bytes());
    bytes
}

fn announced(mut bytes: &[u8]) -> Option<(FileAddress, GuestAddress)> {
    if bytes.len() < ANNOUNCEMENT {
        return None;
    }
    let lane = FileAddress::get(&mut bytes);
    Some((lane, GuestAddress::parse(bytes)?))
}

/// Bytes of the memory of a lane of `lane_bytes` bytes.
fn bytes_for(lane_bytes: u64) -> u64 {
    (LINE + (lane_bytes as usize / LINE * LINE).max(LANE_MIN)) as u64
}

/// Where in the local part of a lane's memory its head is returned, and where its reader and its maker say how far they are;
/// the lane comes after them.
const HEAD: usize = 0;
const READER: usize = 8;
const MAKER: usize = 16;

const OPENED: u64 = 1;
const LEFT: u64 = 2;

/// What the two ends of a lane tell each other of themselves: a word each.
pub struct Signs {
    theirs: InWindow,
    mine: OutWindow,
}

impl Signs {
    fn new(local: &Region, theirs: usize, mine: usize) -> Signs {
        Signs { theirs: InWindow::new(local.part(theirs, 8)), mine: OutWindow::new(local.part(mine, 8)) }
    }

    /// Says that nothing can go wrong any more: the maker may leave.
    pub fn open(&self) {
        self.mine.store(0, OPENED);
    }

    /// Says that nothing will be written or read any more.
    pub fn leave(&self) {
        self.mine.store(0, LEFT);
    }

    /// Whether the reader has opened the lane: from then on it outlives its maker.
    pub fn is_open(&self) -> bool {
        self.theirs.load(0) != 0
    }

    /// Whether the other end has left, as it should.
    pub fn has_left(&self) -> bool {
        self.theirs.load(0) == LEFT
    }
}

/// A lane to a guest, as its maker holds it.
pub struct Call {
    /// Keeps it open until the guest has opened it; what is mapped stays so without.
    pub memory: HostMemory,
    /// The sending end.
    pub producer: Producer,
    /// How far the guest is.
    pub signs: Signs,
}

/// Makes a lane to a guest and announces it there; None if the guest has to read its mail first.
pub fn call(dir: &Path, lane_bytes: u64, me: &GuestAddress, guest: &GuestAddress) -> Result<Option<Call>, HostError> {
    let memory = HostMemory::create(dir, bytes_for(lane_bytes))?;
    let local = memory.bytes();
    let lane = OutWindow::new(local.part(LINE, (local.len() - LINE) / LINE * LINE));
    let producer = Producer::new(lane, InWindow::new(local.part(HEAD, 8)));
    let signs = Signs::new(&local, READER, MAKER);
    let posted = Mailbox::open(&guest.mailbox)?.post(&announcement(memory.address(), me));
    Ok(posted.then_some(Call { memory, producer, signs }))
}

/// A lane from a guest, as its reader holds it: mapped, without a descriptor.
pub struct Answer {
    /// Whose it is.
    pub from: GuestAddress,
    /// The receiving end.
    pub consumer: Consumer,
    /// How far the guest is.
    pub signs: Signs,
}

/// Opens the lane that an announcement tells of.
pub fn answer(bytes: &[u8]) -> Result<Answer, HostError> {
    let nonsense = HostError::Foreign { pid: 0, what: "its announcement makes no sense" };
    let (address, guest) = announced(bytes).ok_or(nonsense)?;
    let memory = HostMemory::open(address, 0)?;
    let local = memory.bytes();
    if local.len() < LINE + LANE_MIN {
        return Err(HostError::Foreign { pid: address.pid, what: "the lane that it announced is too small" });
    }
    let lane = InWindow::new(local.part(LINE, (local.len() - LINE) / LINE * LINE));
    let consumer = Consumer::new(lane, OutWindow::new(local.part(HEAD, 8)));
    let signs = Signs::new(&local, MAKER, READER);
    Ok(Answer { from: guest, consumer, signs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_their_bytes() {
        let memory = |n: u64| FileAddress { pid: n as u32, fd: 3, inode: n * 7, token: n * 11 };
        let address = GuestAddress { mailbox: memory(1), host: FabricAddress([7; FabricAddress::LEN]), doorbell: 5 };
        assert_eq!(GuestAddress::parse(&address.bytes()), Some(address));
        assert_eq!(announced(&announcement(memory(3), &address)), Some((memory(3), address)));
        assert_eq!(GuestAddress::parse(&[0; GuestAddress::LEN]), None);
        assert_eq!(GuestAddress::parse(b"short"), None);
    }
}
