//! External peers: processes of the same machine that are not of this job, such as those of a spawned job. Messages to
//! them do not use the ring.
//!
//! The sender creates a lane of its own (a memory file like a host's) and announces it in the receiver's mailbox; the
//! receiver opens it when it next polls. Each direction has its own lane. This needs coherent memory, so it exists on
//! the emulated NTB only.

use crate::layout::LANE_MIN;
use bytes::{Buf, BufMut};
use ntbring_host::HostError;
use ntbring_host::{FileAddress, HostMemory, Mailbox};
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::fabric::FabricAddress;
use ntbring_queue::{Consumer, Producer, LINE};
use std::path::Path;

/// Address of a process for senders of other jobs: 88 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalAddress {
    /// Address of the process's mailbox, whose token also distinguishes processes.
    pub mailbox: FileAddress,
    /// Machine and process namespace of the process ([`ntbring_host::machine`]): processes elsewhere cannot reach it.
    pub machine: u64,
    /// Address of the windows of its host, which also identifies the host's interrupt vectors.
    pub host: FabricAddress,
    /// Number of the process's doorbell at its host.
    pub doorbell: u32,
}

impl ExternalAddress {
    /// Size of an encoded address, bytes.
    pub const LEN: usize = 88;
    const MAGIC: u64 = u64::from_le_bytes(*b"ntbgues\x04");

    /// Encodes the address.
    pub fn bytes(&self) -> [u8; ExternalAddress::LEN] {
        let mut bytes = [0; ExternalAddress::LEN];
        let mut to = &mut bytes[..];
        to.put_u64_le(Self::MAGIC);
        self.mailbox.put(&mut to);
        to.put_u64_le(self.machine);
        to.put_slice(&self.host.0);
        to.put_u32_le(self.doorbell);
        bytes
    }

    /// Decodes an address; None if the bytes are not a valid one.
    pub fn parse(mut bytes: &[u8]) -> Option<ExternalAddress> {
        if bytes.len() < ExternalAddress::LEN || bytes.get_u64_le() != Self::MAGIC {
            return None;
        }
        let mailbox = FileAddress::get(&mut bytes);
        let machine = bytes.get_u64_le();
        let mut host = FabricAddress([0; FabricAddress::LEN]);
        bytes.copy_to_slice(&mut host.0);
        let doorbell = bytes.get_u32_le();
        ((doorbell as usize) < ntbring_ntb::DOORBELLS).then_some(ExternalAddress { mailbox, machine, host, doorbell })
    }
}

/// Size of an announcement in a mailbox, bytes: the address of the lane, and that of its sender.
const ANNOUNCEMENT: usize = 24 + ExternalAddress::LEN;

fn announcement(lane: FileAddress, sender: &ExternalAddress) -> [u8; ANNOUNCEMENT] {
    let mut bytes = [0; ANNOUNCEMENT];
    let mut to = &mut bytes[..];
    lane.put(&mut to);
    to.put_slice(&sender.bytes());
    bytes
}

fn announced(mut bytes: &[u8]) -> Option<(FileAddress, ExternalAddress)> {
    if bytes.len() < ANNOUNCEMENT {
        return None;
    }
    let lane = FileAddress::get(&mut bytes);
    Some((lane, ExternalAddress::parse(bytes)?))
}

/// Returns the size of the memory file of a lane of `lane_bytes` bytes.
fn bytes_for(lane_bytes: u64) -> u64 {
    (LINE + (lane_bytes as usize / LINE * LINE).max(LANE_MIN)) as u64
}

/// Offsets in the local part of a lane's memory, bytes: of the returned head, of the reader's state and of the maker's
/// state. The lane follows behind them.
const HEAD: usize = 0;
const READER: usize = 8;
const MAKER: usize = 16;

const OPENED: u64 = 1;
const LEFT: u64 = 2;

/// State words by which the two ends of a lane inform each other: one word each.
pub struct LaneState {
    theirs: InWindow,
    mine: OutWindow,
}

impl LaneState {
    fn new(local: &Region, theirs: usize, mine: usize) -> LaneState {
        LaneState { theirs: InWindow::new(local.part(theirs, 8)), mine: OutWindow::new(local.part(mine, 8)) }
    }

    /// Marks the lane as opened: from here on the maker may leave.
    pub fn open(&self) {
        self.mine.store(0, OPENED);
    }

    /// Marks this end as closed: it will neither write nor read any more.
    pub fn leave(&self) {
        self.mine.store(0, LEFT);
    }

    /// Returns true if the reader has opened the lane: from then on it outlives its maker.
    pub fn is_open(&self) -> bool {
        self.theirs.load(0) != 0
    }

    /// Returns true if the other end has left in the regular way.
    pub fn has_left(&self) -> bool {
        self.theirs.load(0) == LEFT
    }
}

/// The sending side of a lane to an external peer, held by its maker.
pub struct ExternalSender {
    /// Keeps the memory file open until the external peer has opened it; mappings persist without it.
    pub memory: HostMemory,
    /// The sending end of the lane.
    pub producer: Producer,
    /// State of the lane's two ends.
    pub lane_state: LaneState,
}

/// Creates a lane to an external peer and announces it in the external peer's mailbox. Returns None if the mailbox is
/// full until the external peer reads it.
pub fn create_lane(
    dir: &Path,
    lane_bytes: u64,
    me: &ExternalAddress,
    external_peer: &ExternalAddress,
) -> Result<Option<ExternalSender>, HostError> {
    let memory = HostMemory::create(dir, bytes_for(lane_bytes))?;
    let local = memory.bytes();
    let lane = OutWindow::new(local.part(LINE, (local.len() - LINE) / LINE * LINE));
    let producer = Producer::new(lane, InWindow::new(local.part(HEAD, 8)));
    let lane_state = LaneState::new(&local, READER, MAKER);
    let posted = Mailbox::open(&external_peer.mailbox)?.post(&announcement(memory.address(), me));
    Ok(posted.then_some(ExternalSender { memory, producer, lane_state }))
}

/// The receiving side of a lane from an external peer, held by its reader: mapped, without a file descriptor.
pub struct ExternalReceiver {
    /// Address of the sender.
    pub from: ExternalAddress,
    /// The receiving end of the lane.
    pub consumer: Consumer,
    /// State of the lane's two ends.
    pub lane_state: LaneState,
}

/// Opens the lane of an announcement. Fails if the announcement is invalid or the lane too small.
pub fn open_lane(bytes: &[u8]) -> Result<ExternalReceiver, HostError> {
    let nonsense = HostError::Foreign { pid: 0, what: "its announcement is invalid" };
    let (address, external_peer) = announced(bytes).ok_or(nonsense)?;
    let memory = HostMemory::open(address, 0)?;
    let local = memory.bytes();
    if local.len() < LINE + LANE_MIN {
        return Err(HostError::Foreign { pid: address.pid, what: "the lane that it announced is too small" });
    }
    let lane = InWindow::new(local.part(LINE, (local.len() - LINE) / LINE * LINE));
    let consumer = Consumer::new(lane, OutWindow::new(local.part(HEAD, 8)));
    let lane_state = LaneState::new(&local, MAKER, READER);
    Ok(ExternalReceiver { from: external_peer, consumer, lane_state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_their_bytes() {
        let memory = |n: u64| FileAddress { pid: n as u32, fd: 3, inode: n * 7, token: n * 11 };
        let address = ExternalAddress {
            mailbox: memory(1),
            machine: 9,
            host: FabricAddress([7; FabricAddress::LEN]),
            doorbell: 5,
        };
        assert_eq!(ExternalAddress::parse(&address.bytes()), Some(address));
        assert_eq!(announced(&announcement(memory(3), &address)), Some((memory(3), address)));
        assert_eq!(ExternalAddress::parse(&[0; ExternalAddress::LEN]), None);
        assert_eq!(ExternalAddress::parse(b"short"), None);
    }
}
