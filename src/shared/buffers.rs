//! The buffers of a group, as one member sees them.

use crate::addresses::Addresses;
use crate::layout::{tag, Layout, ASLEEP, CORE, GIVEN_UP, PROGRESS};
use ntbring_host::{barrier, KernelCopy};
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_zerocopy::SingleCopy;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;

/// Number of looks for a post before other work goes on, if every member has a core of its own, and if not.
const LOOKS_ALONE: u32 = 400;
const LOOKS_SHARED: u32 = 8;
/// Looks per collective that replace yields, while the members that have to post have other cores.
const LOOKS_WITHOUT_YIELD: u32 = 256;

/// The activity of a member during a wait for others.
pub trait Waiting {
    /// Lets other work go on, and other processes run: called again and again, without a bound, until what the member
    /// waits for has happened. It may sleep until [`Waiting::wake`] if `may_sleep`. Returns false if the wait is to be given
    /// up, for instance because a member is lost.
    fn pass_time(&mut self, may_sleep: bool) -> bool;

    /// Passes on what other members may wait for. Called between two looks at most; returns true if there was anything.
    fn relay(&mut self) -> bool;

    /// To be called after a wait in which [`Waiting::pass_time`] was called.
    fn found(&mut self);

    /// Ends the sleep of a member in [`Waiting::pass_time`].
    fn wake(&mut self, member: usize);
}

/// The buffers of a group.
pub struct Buffers {
    pub(crate) me: usize,
    /// The buffers of all members, and their contents.
    pub(crate) all: Vec<Region>,
    pub(crate) views: Vec<InWindow>,
    /// This member's own buffer.
    pub(crate) mine: OutWindow,
    pub(crate) layout: Layout,
    /// Largest number of bytes of a post.
    pub(crate) grain: usize,
    /// Number of looks before other work goes on.
    pub(crate) looks: u32,
    /// True if members share cores: a member that waits yields.
    pub(crate) yields: bool,
    /// The core on which this member began the latest collective, plus 1; 0 if members have cores of their own.
    pub(crate) core: u64,
    /// Looks in this collective that still may replace yields.
    pub(crate) looks_without_yield: u32,
    /// Number of the latest collective.
    pub(crate) collective: u64,
    /// The progress of each member, as it was last seen.
    pub(crate) seen: Vec<u64>,
    /// As for [`barrier::light`].
    pub(crate) paired: bool,
    /// See [`Buffers::waits_for`].
    pub(crate) waits_for: Arc<AtomicU32>,
    /// None: members post bytes only.
    pub(crate) addresses: Option<Addresses>,
}

impl Buffers {
    /// Returns the buffers of a group in which this member has number `me`. All members must have the same `layout`
    /// and `grain`, the largest number of bytes that are posted at a time. `yields`: members share cores, so a member that
    /// waits yields. `paired`: as for [`barrier::light`].
    ///
    /// The regions must have been zero at first. Panics if one is smaller than the layout.
    pub fn new(me: usize, all: Vec<Region>, layout: Layout, grain: usize, yields: bool, paired: bool) -> Buffers {
        assert!(me < all.len() && all.iter().all(|region| region.len() >= layout.bytes()));
        let grain = grain.clamp(layout.cell().min(4096), layout.cell());
        let looks = if yields { LOOKS_SHARED } else { LOOKS_ALONE };
        let seen = vec![0; all.len()];
        let views = all.iter().cloned().map(InWindow::new).collect();
        let mine = OutWindow::new(all[me].clone());
        let (collective, core, looks_without_yield, waits_for) = (0, 0, 0, Arc::default());
        Buffers {
            me,
            all,
            views,
            mine,
            layout,
            grain,
            looks,
            yields,
            core,
            looks_without_yield,
            collective,
            seen,
            paired,
            waits_for,
            addresses: None,
        }
    }

    /// Lets the group post addresses of the blocks for which `limits` asks; all members must call this with the same
    /// limits, or none of them. `from`: kernel copies from the memory of each member, this one included.
    ///
    /// Panics if their number is not that of the members, or greater than [`MEMBERS_MAX`](crate::addresses::MEMBERS_MAX).
    pub fn post_addresses(&mut self, from: Vec<KernelCopy>, limits: SingleCopy) {
        assert!(from.len() == self.members(), "an entry for each member");
        self.addresses = Addresses::new(from, limits);
    }

    /// Returns a word that holds the number of the member for which this one waits, plus 1, or 0: for the diagnosis of
    /// hangs.
    pub fn waits_for(&self) -> Arc<AtomicU32> {
        self.waits_for.clone()
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of this member.
    pub fn me(&self) -> usize {
        self.me
    }

    /// Returns the other members, beginning with the one behind this member.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> + Clone {
        let (me, n) = (self.me, self.members());
        (1..n).map(move |i| (me + i) % n)
    }

    /// Begins the next collective.
    pub(crate) fn begin(&mut self) {
        self.collective += 1;
        if self.yields {
            self.core = nix::sched::sched_getcpu().map_or(0, |core| core as u64 + 1);
            self.looks_without_yield = LOOKS_WITHOUT_YIELD;
            self.all[self.me].word(CORE).store(self.core, Ordering::Relaxed);
        }
    }

    /// True if this member may look again without a yield: only members on other cores have still to do what it waits
    /// for. A yield that switches to none of them, or to one that waits as well, delays it.
    pub(crate) fn may_look_without_yield(&mut self, is_due: impl Fn(&Buffers, usize) -> bool) -> bool {
        let here = |member: &usize| self.all[*member].word(CORE).load(Ordering::Relaxed) == self.core;
        let may = self.core > 0
            && self.looks_without_yield > 0
            && !self.others().filter(here).any(|member| is_due(self, member));
        self.looks_without_yield -= u32::from(may);
        may
    }

    /// Leaves the next collective at once: it fails at all members that need something of this one. `lost`: because a
    /// process was lost.
    pub fn fail(&mut self, lost: bool, waiting: &mut dyn Waiting) {
        self.collective += 1;
        if lost {
            self.give_up();
        }
        self.end(waiting);
    }

    /// Tells the other members that this one leaves the current collective because of a failure.
    pub(crate) fn give_up(&self) {
        self.all[self.me].word(GIVEN_UP).store(self.collective, Ordering::Relaxed);
    }

    /// Shows that this member has read all that it needs of the current collective.
    pub(crate) fn end(&self, waiting: &mut dyn Waiting) {
        self.progress_to(tag(self.collective + 1, 0), waiting);
    }

    pub(crate) fn progress_to(&self, tag: u64, waiting: &mut dyn Waiting) {
        self.all[self.me].word(PROGRESS).store(tag, Ordering::Release);
        self.wake_sleepers(waiting);
    }

    /// Wakes the members that sleep. To be called after a change of this member's buffer.
    pub(crate) fn wake_sleepers(&self, waiting: &mut dyn Waiting) {
        barrier::light(self.paired);
        for member in self.others() {
            if self.all[member].word(ASLEEP).load(Ordering::Relaxed) != 0 {
                waiting.wake(member);
            }
        }
    }

    /// Shows if this member may sleep. After true, it must look once more before it does.
    pub(crate) fn be_asleep(&self, asleep: bool) {
        self.all[self.me].word(ASLEEP).store(asleep.into(), Ordering::Relaxed);
        if asleep {
            barrier::heavy();
        }
    }
}
