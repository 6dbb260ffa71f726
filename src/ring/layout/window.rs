//! Layout of a window: credits first, then boards, the tables of liveness and of notices, a line for links that
//! are down, then lanes.
//!
//! The window of a host on one side receives what the neighbour on that side sends. The neighbour has a producer for
//! each of its ranks and one for its forwarder; the host has a consumer for each of its ranks and one for its
//! forwarder; every pair has a lane (a ring buffer). The two forwarders have a second one, for packets beyond the
//! dateline. In rings of four hosts and more, where messages pass through hosts, every lane to or from a forwarder, and
//! both between them, exist twice: the second time for bulk ([`super::Class`]). The last lane is that of the network
//! managers, if there are any. Every pair of ranks has the same number of boards (mailboxes of small collectives); a
//! board has a place for each block that travels round the ring in the direction of this window.
//!
//! ```text
//! | credit 0 | credit 1 | ... | board 0 of pair 0 | board 1 | ... | liveness | notices | outages | lane 0 | lane 1 | ...
//!   64 bytes each                equal sizes                                             equal sizes, multiples of 64 bytes
//! ```
//!
//! Credit `i` of a window belongs to lane `i` of the *opposite* window: through it the consumer there returns its head
//! to the producer here. Both windows of a link have equally many lanes.

use super::ends::{End, LANE_MIN};
use crate::liveness::view::LivenessView;
use crate::topology::{Topology, HOSTS_MAX};
use ntbring_ntb::{notice, Side};
use ntbring_queue::{post_max, BoardLayout, LINE, LINES_MAX, PLACE};

/// Smallest and largest default window, bytes. Lanes of a default window are not smaller than [`LANE_GOOD`]; with lanes
/// for bulk, the window is enlarged so that the other lanes keep the size that they have without them.
const WINDOW: (u64, u64) = (1 << 20, 4 << 20);

/// Limit of all default windows of a ring together, without their lanes for bulk, bytes; the smallest windows may
/// exceed it. All hosts may be on one machine.
const WINDOWS: u64 = 24 << 20;

/// All default windows together use at most 1/`PART` of the memory file system, which may be a container's of 64 MiB:
/// other users need some, too.
const PART: u64 = 16;

/// Default window if heads take a link's latency to come back, bytes. A forwarder that does not run for a while, since
/// another process has its core, then stalls neither the link before it nor the one behind it.
const WINDOW_FAR: u64 = 8 << 20;

/// Size of the smallest lane in a default window, bytes.
const LANE_GOOD: usize = 16 << 10;

/// Largest number of boards of a pair of ranks, which is also the number of small collectives of different groups that
/// can run at once.
pub const BOARDS: usize = 4;
/// Boards may take at most 1/`BOARDS_SHARE` of a window.
const BOARDS_SHARE: usize = 4;
/// The places of boards are halved, down to the smallest size, as long as the boards of any link would take more than
/// 1/`PLACES_SHARE` of the window.
const PLACES_SHARE: usize = 16;

/// Limit of the blocks of all members of a group together, bytes: each receiver has room for that.
pub const BLOCKS_MAX: usize = 8 << 10;

/// Layout of the window through which `senders` ranks and a forwarder reach `receivers` ranks and a forwarder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowLayout {
    senders: usize,
    receivers: usize,
    /// Set if there are lanes for bulk.
    bulk: bool,
    /// Set if there is a lane for the network manager.
    managed: bool,
    lane_bytes: usize,
    boards: usize,
    board: BoardLayout,
    /// Size of the table of liveness, bytes.
    liveness: usize,
}

/// A window that is too small for its lanes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "NTBRING_WINDOW={window} is too small: between hosts {host} and {neighbour} of {receivers} and {senders} ranks \
     a window holds {lanes} lanes of at least {LANE_MIN} bytes; NTBRING_WINDOW={needed} would do"
)]
pub struct TooSmall {
    window: u64,
    needed: u64,
    host: usize,
    neighbour: usize,
    receivers: usize,
    senders: usize,
    lanes: usize,
}

impl WindowLayout {
    /// Computes the layout of a host's window on `side`, of `window` bytes, with or without a lane for the network
    /// manager. Fails if the lanes would be smaller than [`LANE_MIN`].
    pub fn new(
        topology: &Topology,
        host: usize,
        side: Side,
        window: u64,
        managed: bool,
    ) -> Result<WindowLayout, TooSmall> {
        let neighbour = topology.neighbour(host, side);
        let (senders, receivers) = (topology.ranks_of(neighbour).len(), topology.ranks_of(host).len());
        let board =
            BoardLayout { places: topology.span(side == Side::Left), place_bytes: place_bytes(topology, window) };
        let bulk = has_bulk(topology);
        let liveness = LivenessView::bytes(topology);
        let tables = liveness + notice::TABLE + LINE;
        let mut layout =
            WindowLayout { senders, receivers, bulk, managed, lane_bytes: 0, boards: BOARDS, board, liveness };
        while layout.boards_bytes() > window as usize / BOARDS_SHARE {
            layout.boards /= 2;
        }
        layout.lane_bytes = layout.lane_bytes_in(window as usize);
        if layout.lane_bytes < LANE_MIN {
            layout.boards = 0;
            layout.lane_bytes = layout.lane_bytes_in(window as usize);
        }
        let lanes = layout.lanes();
        if layout.lane_bytes < LANE_MIN {
            let needed = (lanes * (LANE_MIN + LINE) + tables).next_multiple_of(4096) as u64;
            return Err(TooSmall { window, needed, host, neighbour, receivers, senders, lanes });
        }
        Ok(layout)
    }

    fn lane_bytes_in(&self, window: usize) -> usize {
        let each = window.saturating_sub(self.lane_offset(0)) / self.lanes();
        (each / LINE * LINE).min(LINES_MAX * LINE)
    }

    /// Returns the default window size of a ring, bytes; it is the same on all hosts. `far`: the links have latency.
    /// `room`: bytes that are available for the windows of all hosts of one machine and for everything else.
    pub fn good_window(topology: &Topology, managed: bool, far: bool, room: u64) -> u64 {
        let (least, most) = WINDOW;
        let share = WINDOWS.min(room / PART) / (2 * topology.hosts() as u64);
        let window = if far { WINDOW_FAR } else { share.clamp(least, most) };
        let (ranks, bulk) = (|host| topology.ranks_of(host).len(), has_bulk(topology));
        let good = |host| {
            let (receivers, senders) = (ranks(host), ranks(topology.neighbour(host, Side::Right)));
            let board = BoardLayout { places: 0, place_bytes: 0 };
            let layout = |bulk| WindowLayout {
                senders,
                receivers,
                bulk,
                managed,
                lane_bytes: 0,
                boards: 0,
                board,
                liveness: LivenessView::bytes(topology),
            };
            let (lanes, without) = (layout(bulk).lanes(), layout(false).lanes());
            let needed = lanes * (LANE_GOOD + LINE) * BOARDS_SHARE / (BOARDS_SHARE - 1);
            (window * lanes as u64 / without as u64)
                .max((needed + LivenessView::bytes(topology) + notice::TABLE + LINE) as u64)
        };
        (0..topology.hosts()).map(good).max().unwrap_or(least).next_multiple_of(4096)
    }

    /// Returns the size of the smallest lane between any two hosts, bytes: every packet that may have to be forwarded
    /// must fit into it.
    pub fn smallest_lane(topology: &Topology, window: u64, managed: bool) -> Result<usize, TooSmall> {
        let windows = (0..topology.hosts()).flat_map(|host| Side::BOTH.map(|side| (host, side)));
        windows
            .map(|(host, side)| Ok(Self::new(topology, host, side, window, managed)?.lane_bytes))
            .try_fold(usize::MAX, |least, bytes| bytes.map(|b: usize| least.min(b)))
    }

    /// Returns the largest block that small collectives can send over boards, bytes; boards may be absent.
    pub fn block_max(topology: &Topology, window: u64) -> usize {
        post_max(place_bytes(topology, window))
    }

    /// Returns the number of lanes, which is also that of credits.
    pub fn lanes(&self) -> usize {
        self.urgent_lanes() + if self.bulk { self.senders + self.receivers + 2 } else { 0 } + usize::from(self.managed)
    }

    fn urgent_lanes(&self) -> usize {
        (self.senders + 1) * (self.receivers + 1) + 1
    }

    /// Returns the size of each lane, bytes.
    pub fn lane_bytes(&self) -> usize {
        self.lane_bytes
    }

    /// Returns the number of the lane from one end to another. `beyond` distinguishes the two lanes between the
    /// forwarders and has no meaning for other lanes.
    pub fn lane(&self, from: End, to: End, beyond: bool) -> usize {
        if (from, to, beyond) == (End::Forwarder, End::Forwarder, true) {
            return (self.senders + 1) * (self.receivers + 1);
        }
        let row = Self::index(from, self.senders);
        row * (self.receivers + 1) + Self::index(to, self.receivers)
    }

    /// Returns the number of the lane for bulk from one end to another, if there is one. There is none from rank to
    /// rank, since such packets pass through no host. `beyond` is as for [`WindowLayout::lane`].
    pub fn bulk_lane(&self, from: End, to: End, beyond: bool) -> Option<usize> {
        let offset = match (from, to) {
            (End::Rank(_), End::Rank(_)) => return None,
            (End::Rank(_), End::Forwarder) => Self::index(from, self.senders),
            (End::Forwarder, End::Rank(_)) => self.senders + Self::index(to, self.receivers),
            (End::Forwarder, End::Forwarder) => self.senders + self.receivers + usize::from(beyond),
        };
        self.bulk.then(|| self.urgent_lanes() + offset)
    }

    /// Returns the number of the control lane between the network managers, if there is one. It carries nothing else,
    /// so managers hear of each other however full the other lanes are.
    pub fn control(&self) -> Option<usize> {
        self.managed.then(|| self.lanes() - 1)
    }

    fn index(end: End, ranks: usize) -> usize {
        match end {
            End::Rank(r) => {
                assert!(r < ranks, "rank {r} on a host of {ranks}");
                r
            }
            End::Forwarder => ranks,
        }
    }

    /// Returns the offset of a lane in this window, bytes.
    pub fn lane_offset(&self, lane: usize) -> usize {
        self.outages_offset() + LINE + lane * self.lane_bytes
    }

    /// Returns the offset in this window, bytes, of the table of liveness that the neighbour's monitor writes.
    pub fn liveness_offset(&self) -> usize {
        self.lanes() * LINE + self.boards_bytes()
    }

    /// Returns the offset in this window, bytes, of the table of requests for notifications ([`notice`]).
    pub fn notices_offset(&self) -> usize {
        self.liveness_offset() + self.liveness
    }

    /// Returns the offset in this window, bytes, of the line into which the neighbour writes the set of links that are
    /// down.
    pub fn outages_offset(&self) -> usize {
        self.notices_offset() + notice::TABLE
    }

    /// Returns the number of boards of each pair of ranks.
    pub fn boards(&self) -> usize {
        self.boards
    }

    /// Returns the layout of each board.
    pub fn board(&self) -> BoardLayout {
        self.board
    }

    fn boards_bytes(&self) -> usize {
        self.senders * self.receivers * self.boards * self.board.bytes()
    }

    /// Returns the offset in this window, bytes, of a board on which rank `from` of the neighbour writes to rank `to`
    /// of this host. Panics if there is no such board.
    pub fn board_offset(&self, from: usize, to: usize, board: usize) -> usize {
        assert!(
            from < self.senders && to < self.receivers && board < self.boards,
            "no board {board} of {from} to {to}"
        );
        self.lanes() * LINE + ((from * self.receivers + to) * self.boards + board) * self.board.bytes()
    }

    /// Returns the offset in this window, bytes, of the credit of a lane of the opposite window.
    pub fn credit_offset(&self, lane: usize) -> usize {
        lane * LINE
    }

    /// Returns the offset, bytes, at which the producer of one of this window's lanes publishes its tail, if the lane
    /// is checked: it is beside the credit of the same number.
    pub fn tail_offset(&self, lane: usize) -> usize {
        lane * LINE + LINE / 2
    }
}

/// Returns the size of a place on all boards of a ring, bytes.
fn place_bytes(topology: &Topology, window: u64) -> usize {
    const { assert!(BLOCKS_MAX / HOSTS_MAX >= PLACE.0) };
    let pairs = |host| topology.ranks_of(host).len() * topology.ranks_of(topology.neighbour(host, Side::Right)).len();
    let most_pairs = (0..topology.hosts()).map(pairs).max().unwrap_or(1);
    let place_bytes = (1 << (BLOCKS_MAX / topology.hosts()).ilog2()).min(PLACE.1);
    let mut board = BoardLayout { places: topology.span(true), place_bytes };
    // Smaller places than that are only for rings of more than 32 hosts.
    let least = place_bytes.min(4 * LINE);
    while board.place_bytes > least && most_pairs * BOARDS * board.bytes() > window as usize / PLACES_SHARE {
        board.place_bytes /= 2;
    }
    board.place_bytes
}

/// Returns true if there are lanes for bulk. If all hosts are neighbours, no packet passes through a host, and there
/// are none.
pub(crate) fn has_bulk(topology: &Topology) -> bool {
    topology.hosts() > 3
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(ranks: &[usize]) -> Topology {
        let of: Vec<i32> = (0..ranks.len()).flat_map(|h| vec![h as i32; ranks[h]]).collect();
        Topology::new(ranks.len(), &of).unwrap()
    }

    #[test]
    fn four_hosts_of_two_ranks_fit_a_mebibyte() {
        let layout = WindowLayout::new(&hosts(&[2; 4]), 0, Side::Left, 1 << 20, false).unwrap();
        assert_eq!(layout.lanes(), 16);
        assert!(layout.lane_bytes() >= 59 << 10);
        // If no packet passes through a host, there are no lanes for bulk.
        let layout = WindowLayout::new(&hosts(&[2; 3]), 0, Side::Left, 1 << 20, false).unwrap();
        assert_eq!(layout.lanes(), 10);
        assert_eq!(layout.bulk_lane(End::Forwarder, End::Rank(1), false), None);
    }

    #[test]
    fn the_chosen_window_is_a_share_of_all_or_has_good_lanes() {
        let good = |ranks: &[usize], far| WindowLayout::good_window(&hosts(ranks), false, far, u64::MAX);
        assert_eq!(good(&[2; 2], false), 4 << 20);
        assert_eq!(good(&[2; 3], false), 4 << 20);
        assert_eq!(good(&[2; 3], true), 8 << 20);
        let small = 64 << 20;
        assert_eq!(WindowLayout::good_window(&hosts(&[2; 2]), false, false, small), 1 << 20);
        // 16 lanes instead of 10, of the same size.
        let window = good(&[2; 4], false);
        assert_eq!(window, (3 * (16u64 << 20)).div_ceil(10).next_multiple_of(4096));
        let window = good(&[2; 16], false);
        assert_eq!(window, (16u64 << 20).div_ceil(10).next_multiple_of(4096));
        let many = hosts(&[18, 1, 18, 18]);
        let window = WindowLayout::good_window(&many, true, false, u64::MAX);
        assert!(window > 1 << 20);
        assert!(WindowLayout::smallest_lane(&many, window, true).unwrap() >= LANE_GOOD);
    }

    #[test]
    fn lanes_and_credits_do_not_overlap_and_stay_inside() {
        for ranks in [
            vec![1, 1],
            vec![2, 3, 1],
            vec![8; 16],
            vec![1; 17],
            vec![1; 33],
            vec![1; 64],
            vec![1, 5],
            vec![3, 1, 2, 1],
        ] {
            let t = hosts(&ranks);
            for (side, managed) in Side::BOTH.into_iter().flat_map(|side| [(side, false), (side, true)]) {
                let layout = WindowLayout::new(&t, 1, side, 1 << 20, managed).unwrap();
                let mut seen = vec![false; layout.lanes()];
                let senders = ranks[t.neighbour(1, side)];
                let ends = |n: usize| (0..n).map(End::Rank).chain([End::Forwarder]);
                for from in ends(senders) {
                    for to in ends(ranks[1]) {
                        seen[layout.lane(from, to, false)] = true;
                    }
                }
                assert_eq!(layout.control().is_some(), managed);
                let bulk = ends(senders).flat_map(|from| ends(ranks[1]).map(move |to| (from, to, false)));
                let bulk = bulk.chain([(End::Forwarder, End::Forwarder, true)]);
                let bulk: Vec<usize> =
                    bulk.filter_map(|(from, to, beyond)| layout.bulk_lane(from, to, beyond)).collect();
                assert_eq!(bulk.len(), if ranks.len() > 3 { senders + ranks[1] + 2 } else { 0 });
                let beyond = layout.lane(End::Forwarder, End::Forwarder, true);
                for lane in layout.control().into_iter().chain(bulk).chain([beyond]) {
                    assert!(!std::mem::replace(&mut seen[lane], true));
                }
                assert!(seen.iter().all(|&s| s));
                let places = if side == Side::Left { ranks.len() / 2 } else { (ranks.len() - 1) / 2 };
                assert!(layout.boards() > 0 && layout.board().places == places);
                assert!(layout.credit_offset(layout.lanes() - 1) + LINE <= layout.board_offset(0, 0, 0));
                let last = layout.board_offset(senders - 1, ranks[1] - 1, layout.boards() - 1);
                assert_eq!(last + layout.board().bytes(), layout.liveness_offset());
                assert_eq!(layout.liveness_offset() + LivenessView::bytes(&t), layout.notices_offset());
                assert_eq!(layout.notices_offset() + notice::TABLE + LINE, layout.lane_offset(0));
                assert!(layout.lane_offset(layout.lanes() - 1) + layout.lane_bytes() <= 1 << 20);
            }
        }
    }

    #[test]
    fn blocks_are_as_large_as_all_boards_have_places_for() {
        let most = |ranks: &[usize], window| WindowLayout::block_max(&hosts(ranks), window) + 8;
        for (count, place) in [
            (1, 2048),
            (2, 2048),
            (4, 2048),
            (5, 1024),
            (8, 1024),
            (9, 512),
            (16, 512),
            (17, 256),
            (32, 256),
            (33, 128),
            (64, 128),
        ] {
            assert_eq!(most(&vec![1; count], 4 << 20), place, "{count} hosts");
            assert!(count * (place - 8) <= BLOCKS_MAX);
        }
        // One link with more ranks at its ends than others, and small windows.
        assert_eq!(most(&[4, 4, 1, 1], 4 << 20), 1024);
        assert_eq!(most(&[1; 4], 128 << 10), 512);
        assert_eq!(most(&[2; 4], 128 << 10), 256);
    }

    #[test]
    fn a_window_that_cannot_hold_its_lanes_says_what_could() {
        let t = hosts(&[8; 4]);
        let error = WindowLayout::new(&t, 0, Side::Right, 64 << 10, false).unwrap_err();
        assert!(WindowLayout::new(&t, 0, Side::Right, error.needed, false).is_ok());
        assert!(WindowLayout::new(&t, 0, Side::Right, error.needed - 4096, false).is_err());
        assert!(error.to_string().contains(&format!("NTBRING_WINDOW={} would do", error.needed)));
    }
}
