//! Posts by address: a member posts where its bytes are, and the kernel copies them for each reader.
//!
//! The bytes are copied once instead of twice, but the copies need system calls, and the member that posts waits until
//! all others have read. Which way is faster depends on the caches that the cores share, so it is found at run time, as
//! for messages ([`ntbring_zerocopy::copy_tuner`]): member 0 measures, and announces in its posts the way of the next
//! collectives; every member reads its posts. A post tells if it has an address, so members may post in different ways.

use ntbring_host::KernelCopy;
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_zerocopy::copy_tuner::{CopyPath, CopyTuner};
use ntbring_zerocopy::SingleCopy;
use std::io;
use std::time::Instant;

/// Flag in the length of a post whose contents are addresses.
pub(crate) const BY_ADDRESS: u64 = 1 << 63;
/// Flag in the lengths of member 0's posts: blocks of class 0 are posted by address in the next collectives. The flags of
/// the other classes are below.
const FIRST_CLASS: u64 = 1 << 62;
/// Flag in the length of a post that has small blocks of different sizes.
pub(crate) const SMALL_BLOCKS: u64 = FIRST_CLASS >> CLASSES;
/// Flags of posts that have not the expected number of bytes.
pub(crate) const ANY_SIZE: u64 = BY_ADDRESS | SMALL_BLOCKS;
/// The flags of all classes.
const ALL_CLASSES: u64 = BY_ADDRESS - (FIRST_CLASS >> (CLASSES - 1));
/// All flags.
pub(crate) const FLAGS: u64 = ANY_SIZE | ALL_CLASSES;

/// Most members of a group that posts addresses.
pub const MEMBERS_MAX: usize = 64;

/// Least size of a block that is posted by address while the faster way is found at run time, bytes. For smaller ones
/// the system call takes longer than the second copy.
const TUNED_MIN: usize = 16 << 10;

/// Sizes of blocks from which the ways are compared separately from smaller ones, bytes.
const LARGER: [usize; 2] = [48 << 10, 768 << 10];
/// Factors by which measurements are longer than those of messages, for each range of sizes: a short collective is
/// disturbed by whatever delays one of its ranks.
const LONGER_TURNS: [u64; LARGER.len() + 1] = [4, 4, 1];
/// Number of classes that are compared separately: of each kind of collective, one for each range of sizes.
const CLASSES: usize = 2 * (LARGER.len() + 1);

/// Flag of the class in which the kernel copies until its first measurement, and always if member 0 has no such blocks: large
/// blocks, each for one reader. Together they do not fit the nearer caches, so that a second copy takes as long as the first.
const KERNEL_AT_FIRST: u64 = FIRST_CLASS >> (CLASSES - 1);

/// Kinds of collectives that are compared separately: what a member has posted in one is read by all others, or a part of
/// it by each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    ForAll,
    ForEach,
}

/// Returns what a member tells the others about kernel copies: 0 if it has none, else twice the size of the largest block
/// that the kernel does not copy, plus 2, and 1 more if other ways are tried as well.
pub fn to_card(limits: SingleCopy) -> u64 {
    match limits {
        SingleCopy::Never => 0,
        SingleCopy::Above(bytes) => 2 * bytes as u64 + 2,
        SingleCopy::Auto(bytes) => 2 * bytes as u64 + 3,
    }
}

/// Returns the limits of a group whose members have told this: none that a member does not keep.
pub fn of_cards(cards: impl Iterator<Item = u64> + Clone) -> SingleCopy {
    let bytes = cards.clone().max().map_or(0, |most| most.saturating_sub(2) as usize / 2);
    match (cards.clone().any(|card| card < 2), cards.clone().any(|card| card % 2 == 1)) {
        (true, _) => SingleCopy::Never,
        (false, true) => SingleCopy::Auto(bytes),
        (false, false) => SingleCopy::Above(bytes),
    }
}

/// State of a member for posts by address.
pub(crate) struct Addresses {
    /// Kernel copies from the memory of each member, this one included.
    from: Vec<KernelCopy>,
    /// Least size of a block that may be posted by address, bytes.
    least: usize,
    /// The flags that member 0 has announced.
    announced: u64,
    /// True if the faster way is found at run time.
    is_tuned: bool,
    /// Member 0's measurements of each class; None until there is something to measure.
    tuners: [Option<CopyTuner>; CLASSES],
    /// First byte and size of the latest buffer of which the kernel was found to copy.
    copied: (usize, usize),
}

/// How a member posts the blocks of a collective.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Way {
    pub by_address: bool,
    /// Flags for the lengths of all posts.
    pub flags: u64,
    /// None if nothing is measured.
    measured: Option<Measured>,
}

/// Data with which member 0 measures a collective.
#[derive(Clone, Copy, Debug)]
struct Measured {
    class: usize,
    /// Size of a block, bytes.
    largest: usize,
    /// The way that all members have followed.
    path: CopyPath,
    /// True if this member could not follow it.
    is_refused: bool,
    /// Start of the collective, if both ways are being tried.
    since: Option<Instant>,
}

/// Returns the class of a collective with blocks of at most `largest` bytes.
fn class_of(blocks: Blocks, largest: usize) -> usize {
    let range = LARGER.iter().filter(|&&size| largest >= size).count();
    blocks as usize * (LARGER.len() + 1) + range
}

impl Addresses {
    /// Returns what a member needs to post addresses of the blocks for which `limits` asks; None if it asks for none. `from`:
    /// kernel copies from the memory of each member, this one included.
    pub fn new(from: Vec<KernelCopy>, limits: SingleCopy) -> Option<Addresses> {
        assert!(from.len() <= MEMBERS_MAX, "too many members");
        // The limit is the largest size that the kernel does not copy.
        let (is_tuned, least) = (limits.is_tuned(), limits.least()? + 1);
        let (least, announced) = if is_tuned { (least.max(TUNED_MIN), KERNEL_AT_FIRST) } else { (least, ALL_CLASSES) };
        Some(Addresses { from, least, announced, is_tuned, tuners: [const { None }; CLASSES], copied: (0, 0) })
    }

    /// Returns how member `me` posts blocks of at most `posted` bytes, which are all in `input`, in a collective in which it
    /// posts or receives blocks of at most `largest` bytes. `oversubscribed`: there are more ranks than cores.
    pub fn way(
        &mut self,
        (me, oversubscribed): (usize, bool),
        blocks: Blocks,
        input: ForeignBytes,
        (posted, largest): (usize, usize),
    ) -> Way {
        let class = class_of(blocks, largest);
        let is_wanted = self.announced & FIRST_CLASS >> class != 0;
        let asks = is_wanted && posted >= self.least;
        let mut way = Way { by_address: asks && self.can_copy(me, input), ..Way::default() };
        if me == 0 {
            if self.is_tuned && largest >= self.least {
                let factor = LONGER_TURNS[class % LONGER_TURNS.len()];
                let new = || match CopyTuner::new(oversubscribed).with_longer_turns(factor) {
                    tuner if FIRST_CLASS >> class == KERNEL_AT_FIRST => tuner.with_kernel_at_first(),
                    tuner => tuner,
                };
                let tuner = self.tuners[class].get_or_insert_with(new);
                let path = if is_wanted { CopyPath::Kernel } else { CopyPath::Lane };
                let (is_refused, since) = (asks && !way.by_address, tuner.is_trying().then(Instant::now));
                way.measured = Some(Measured { class, largest, path, is_refused, since });
            }
            if self.is_tuned {
                self.announced = self.wanted();
            }
            way.flags = self.announced;
        }
        way
    }

    /// Learns the way of the next collectives from the flags of a member's post.
    pub fn learn(&mut self, member: usize, flags: u64) {
        if member == 0 {
            self.announced = flags & ALL_CLASSES;
        }
    }

    /// Records that a collective has ended in which this member has sent and received `bytes` bytes.
    pub fn measure(&mut self, way: Way, bytes: usize) {
        let Some(Measured { class, largest, path, is_refused, since }) = way.measured else { return };
        let Some(tuner) = self.tuners[class].as_mut() else { return };
        let begun = tuner.begin(largest as u64, || since.unwrap_or_else(Instant::now));
        if is_refused && begun == CopyPath::Kernel {
            return tuner.refused(Instant::now);
        }
        if let Some(outcome) = tuner.moved(path, bytes as u64, Instant::now) {
            log::debug!(
                "blocks of {largest} bytes through shared buffers, class {class}: {outcome:?} (bytes per second)"
            );
        }
        tuner.end(begun, Instant::now);
    }

    /// Fills `to` from an address of a member.
    pub fn fetch(&self, member: usize, address: u64, to: ForeignRoom) -> io::Result<()> {
        self.from[member].read(address, to)
    }

    /// Returns the flags of the classes whose next blocks the kernel should copy.
    fn wanted(&self) -> u64 {
        let by_kernel = |(class, tuner): (usize, &Option<CopyTuner>)| match tuner {
            Some(tuner) => tuner.copy_path() == CopyPath::Kernel,
            None => FIRST_CLASS >> class == KERNEL_AT_FIRST,
        };
        let classes = self.tuners.iter().enumerate().filter(|&one| by_kernel(one));
        classes.map(|(class, _)| FIRST_CLASS >> class).sum()
    }

    /// Returns true if the kernel can copy the bytes, which are this member's own, for the others. It cannot copy those of
    /// some mapped devices.
    fn can_copy(&mut self, me: usize, bytes: ForeignBytes) -> bool {
        let (at, len) = (bytes.address() as usize, bytes.len());
        let known = at >= self.copied.0 && at + len <= self.copied.0 + self.copied.1;
        let can_copy = known
            || [at, at + len - 1].into_iter().all(|at| {
                let mut byte = 0;
                // SAFETY: a variable of one byte, which is not used meanwhile.
                self.from[me].read(at as u64, unsafe { ForeignRoom::new(&raw mut byte, 1) }).is_ok()
            });
        if can_copy && !known {
            self.copied = (at, len);
        }
        can_copy && KernelCopy::is_still_permitted()
    }
}
