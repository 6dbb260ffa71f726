//! A lane between two processes of one host that belong to different jobs, or between a process and a gateway.
//!
//! The maker writes an [`Announcement`] into the lane's memory, and the address of that memory into the reader's
//! mailbox. The layout of the memory, bytes:
//!
//! ```text
//!   0  head 8, state of the reader 8, state of the maker 8, delivered 8
//!  64  announcement: sender 88, receiver 88, maker's host 32, maker's doorbell 4, maker's mailbox 24
//! 320  lane
//! ```

use super::ExternalAddress;
use crate::layout::LANE_MIN;
use bytes::{Buf, BufMut};
use ntbring_host::{FileAddress, HostError, HostMemory, Mailbox, NoteReader};
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::fabric::FabricAddress;
use ntbring_queue::{Consumer, Producer, LINE, LINES_MAX};
use std::path::Path;

/// Description of a lane by its maker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The process whose messages the lane carries.
    pub from: ExternalAddress,
    /// The process that is to receive them.
    pub to: ExternalAddress,
    /// Host and number of the doorbell that the reader rings when it has returned the head.
    pub bell: (FabricAddress, u32),
    /// Address of the mailbox of the process that made the lane: the sender, or a gateway. While it exists, the maker
    /// is alive.
    pub maker: FileAddress,
}

impl Announcement {
    const LEN: usize = 2 * ExternalAddress::LEN + FabricAddress::LEN + 4 + FileAddress::LEN;

    fn bytes(&self) -> [u8; Announcement::LEN] {
        let mut bytes = [0; Announcement::LEN];
        let mut to = &mut bytes[..];
        to.put_slice(&self.from.bytes());
        to.put_slice(&self.to.bytes());
        to.put_slice(&self.bell.0 .0);
        to.put_u32_le(self.bell.1);
        self.maker.put(&mut to);
        bytes
    }

    fn parse(bytes: &[u8; Announcement::LEN]) -> Option<Announcement> {
        let (from, rest) = bytes.split_at(ExternalAddress::LEN);
        let (to, mut rest) = rest.split_at(ExternalAddress::LEN);
        let (from, to) = (ExternalAddress::parse(from)?, ExternalAddress::parse(to)?);
        let mut host = FabricAddress([0; FabricAddress::LEN]);
        rest.copy_to_slice(&mut host.0);
        let doorbell = rest.get_u32_le();
        let valid = (doorbell as usize) < ntbring_ntb::DOORBELLS;
        valid.then(|| Announcement { from, to, bell: (host, doorbell), maker: FileAddress::get(&mut rest) })
    }
}

/// Offsets in the memory of a lane, bytes.
const HEAD: usize = 0;
const READER: usize = 8;
const MAKER: usize = 16;
const DELIVERED: usize = 24;
const ANNOUNCEMENT: usize = LINE;
const LANE: usize = 5 * LINE;
const _: () = assert!(ANNOUNCEMENT + Announcement::LEN <= LANE);

/// Largest lane, bytes.
const LANE_MAX: usize = LINES_MAX * LINE;

/// Returns the size of the memory of a lane of `lane_bytes` bytes, which are limited to the possible sizes.
fn bytes_for(lane_bytes: u64) -> u64 {
    (LANE + (lane_bytes as usize / LINE * LINE).clamp(LANE_MIN, LANE_MAX)) as u64
}

/// Returns the part of a lane's memory that holds its entries.
fn lane_in(local: &Region) -> Region {
    local.part(LANE, ((local.len() - LANE) / LINE * LINE).min(LANE_MAX))
}

const OPENED: u64 = 1;
const LEFT: u64 = 2;
const DIED: u64 = 3;

/// Ending of the process at one end of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The process has left in the regular way.
    Left,
    /// The process has died, or cannot be reached.
    Died,
}

impl Ending {
    /// Returns the ending of a process, given whether it has left.
    pub fn of(left: bool) -> Ending {
        match left {
            true => Ending::Left,
            false => Ending::Died,
        }
    }
}

/// State words by which the two ends of a lane inform each other: one word each, and the number of bytes that a gateway
/// has delivered.
pub struct LaneState {
    theirs: InWindow,
    mine: OutWindow,
    delivered: Region,
}

impl LaneState {
    fn new(local: &Region, theirs: usize, mine: usize) -> LaneState {
        let (theirs, mine) = (InWindow::new(local.part(theirs, 8)), OutWindow::new(local.part(mine, 8)));
        LaneState { theirs, mine, delivered: local.part(DELIVERED, 8) }
    }

    /// Marks the lane as opened: from here on the maker may leave.
    pub fn open(&self) {
        self.mine.store(0, OPENED);
    }

    /// Marks this end as closed: nothing will be written or read here any more. A gateway does so on behalf of the
    /// process at the far end. Lets the process that owns the mailbox at `other_end` look at the lane; the caller rings
    /// its doorbell.
    pub fn close(&self, ending: Ending, other_end: &FileAddress) {
        let word = match ending {
            Ending::Left => LEFT,
            Ending::Died => DIED,
        };
        self.mine.store(0, word);
        // A process that has ended, or whose mailbox cannot be opened, finds out by itself.
        Mailbox::open(other_end).iter().for_each(Mailbox::nudge);
    }

    /// Returns true if the reader has opened the lane: from then on it outlives its maker.
    pub fn is_open(&self) -> bool {
        self.theirs.load(0) != 0
    }

    /// Returns true if the other end is closed.
    pub fn is_closed(&self) -> bool {
        matches!(self.theirs.load(0), LEFT | DIED)
    }

    /// Returns true if the other end has left in the regular way.
    pub fn has_left(&self) -> bool {
        self.theirs.load(0) == LEFT
    }

    /// Publishes the number of bytes of the lane whose entries a gateway has delivered to a lane that is open.
    pub fn set_delivered(&self, bytes: u64) {
        OutWindow::new(self.delivered.clone()).store(0, bytes);
    }

    /// Returns the number of bytes of the lane whose entries a gateway has delivered.
    pub fn delivered(&self) -> u64 {
        InWindow::new(self.delivered.clone()).load(0)
    }
}

/// The sending side of a lane, held by its maker.
pub struct ExternalSender {
    /// Keeps the memory file open until the reader has opened it; mappings persist without it.
    pub memory: HostMemory,
    /// The sending end of the lane.
    pub producer: Producer,
    /// State of the lane's two ends.
    pub lane_state: LaneState,
}

/// Creates a lane and announces it in the mailbox at `reader`. Returns None if that mailbox is full until its process
/// reads it.
pub fn create_lane(
    dir: &Path,
    lane_bytes: u64,
    announcement: &Announcement,
    reader: (NoteReader, &FileAddress),
) -> Result<Option<ExternalSender>, HostError> {
    let mailbox = Mailbox::open(reader.1)?;
    if !mailbox.has_room(reader.0) {
        return Ok(None);
    }
    let memory = HostMemory::create(dir, bytes_for(lane_bytes))?;
    let local = memory.bytes();
    OutWindow::new(local.clone()).write_bytes(ANNOUNCEMENT, &announcement.bytes());
    let lane = OutWindow::new(lane_in(&local));
    let producer = Producer::new(lane, InWindow::new(local.part(HEAD, 8)));
    let lane_state = LaneState::new(&local, READER, MAKER);
    let mut note = [0; FileAddress::LEN];
    memory.address().put(&mut &mut note[..]);
    let posted = mailbox.post(reader.0, &note);
    Ok(posted.then_some(ExternalSender { memory, producer, lane_state }))
}

/// The receiving side of a lane, held by its reader: mapped, without a file descriptor.
pub struct ExternalReceiver {
    /// The maker's description of the lane.
    pub announcement: Announcement,
    /// The receiving end of the lane.
    pub consumer: Consumer,
    /// State of the lane's two ends.
    pub lane_state: LaneState,
    /// Size of the lane, bytes.
    pub lane_bytes: u64,
}

impl ExternalReceiver {
    /// Informs the maker that nothing will be read from the lane, and that its reader cannot be reached. A maker that
    /// sleeps looks within a second.
    pub fn refuse(self) {
        self.lane_state.close(Ending::Died, &self.announcement.maker);
    }
}

/// Opens the lane whose address is in a note. Fails if the announcement is invalid or the lane too small.
pub fn open_lane(mut note: &[u8]) -> Result<ExternalReceiver, HostError> {
    if note.len() < FileAddress::LEN {
        return Err(HostError::Foreign { pid: 0, what: "its note is too short" });
    }
    let address = FileAddress::get(&mut note);
    let memory = HostMemory::open(address, 0)?;
    let local = memory.bytes();
    if local.len() < LANE + LANE_MIN {
        return Err(HostError::Foreign { pid: address.pid, what: "the lane that it announced is too small" });
    }
    let mut bytes = [0; Announcement::LEN];
    InWindow::new(local.clone()).read(ANNOUNCEMENT, &mut bytes);
    let nonsense = HostError::Foreign { pid: address.pid, what: "its announcement is invalid" };
    let announcement = Announcement::parse(&bytes).ok_or(nonsense)?;
    let lane = InWindow::new(lane_in(&local));
    let lane_bytes = lane.len() as u64;
    let consumer = Consumer::new(lane, OutWindow::new(local.part(HEAD, 8)));
    let lane_state = LaneState::new(&local, MAKER, READER);
    Ok(ExternalReceiver { announcement, consumer, lane_state, lane_bytes })
}

#[cfg(test)]
mod tests {
    use super::super::address::tests::address;
    use super::*;

    fn announcement() -> Announcement {
        let (from, to) = (address(1, 9, 6), address(2, 9, 7));
        Announcement { from, to, bell: (FabricAddress([3; FabricAddress::LEN]), 2), maker: address(4, 0, 0).mailbox }
    }

    #[test]
    fn announcements_survive_their_bytes() {
        assert_eq!(Announcement::parse(&announcement().bytes()), Some(announcement()));
        assert_eq!(Announcement::parse(&[0; Announcement::LEN]), None);
    }

    #[test]
    fn the_ends_of_a_lane_inform_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let (mut mailbox, at) = Mailbox::create(dir.path(), 0).unwrap();
        let made = create_lane(dir.path(), 65536, &announcement(), (NoteReader::Gateway, &at)).unwrap().unwrap();
        assert!(mailbox.read(NoteReader::Process).is_none());
        let mut read = open_lane(&mailbox.read(NoteReader::Gateway).unwrap()).unwrap();
        assert_eq!(read.announcement, announcement());
        // The rest of the last page belongs to the lane, too.
        assert!((65536..65536 + 4096).contains(&read.lane_bytes), "{}", read.lane_bytes);
        let (mut sender, maker, reader) = (made.producer, made.lane_state, read.lane_state);
        assert!(!maker.is_open() && !maker.is_closed());
        reader.open();
        assert!(maker.is_open() && !maker.is_closed());
        let mut slot = sender.reserve(10).unwrap();
        slot.write_bytes(0, b"0123456789");
        slot.commit(3, 10, 7);
        let entry = read.consumer.take().unwrap().unwrap();
        assert_eq!((entry.kind, entry.meta, entry.len), (3, 7, 10));
        assert_eq!((sender.produced(), read.consumer.consumed(), maker.delivered()), (64, 64, 0));
        reader.set_delivered(read.consumer.consumed());
        assert_eq!(maker.delivered(), 64);
        reader.close(Ending::Died, &at);
        assert!(maker.is_closed() && !maker.has_left());
        maker.close(Ending::Left, &at);
        assert!(reader.is_closed() && reader.has_left() && mailbox.has_news());
    }
}
