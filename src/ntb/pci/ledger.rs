//! The books of two neighbours on the slices of their windows.
//!
//! Each host publishes in the first page of the neighbour's window which slices of its *own* window it has given to
//! jobs. The neighbour gives a process access to a slice only if it finds it there, with the key and the user of the
//! process. When a job has ended, its slices are closed: they are given to another job only when the neighbour has
//! confirmed that no process of its own can write them any more.
//!
//! | offset in the page | holds |
//! |---|---|
//! | 64 + 32 n | slice n of the writer's window: key; page number and number of pages; user and state; checksum |
//! | 2048 + 8 n | confirmation that slice n of the reader's window, with this key, is not used any more |

use crate::allotment::{Range, Ranges, PAGE};
use crate::memory::SharedMemory;
use ntbring_memory::Region;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::Arc;

/// Number of slices of a window, and so of jobs that use it at the same time.
pub const SLOTS: usize = 60;

const ENTRIES: usize = 64;
const ENTRY: usize = 32;
const CONFIRMATIONS: usize = 2048;

/// States of a slice in its entry.
const OPEN: u64 = 1;
const CLOSING: u64 = 2;

/// A slice of this host's window.
struct Held {
    key: u64,
    user: u32,
    range: Range,
    memory: Arc<SharedMemory>,
    is_closing: bool,
    /// True if the neighbour may have given a process access to it.
    is_exposed: bool,
}

/// A slice of the neighbour's window, as its entry shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The key of the job.
    pub key: u64,
    /// The user whose processes may use it.
    pub user: u32,
    /// Its place in the window.
    pub range: Range,
    is_closing: bool,
}

/// Words to be written into the first page of the neighbour's window, by their offsets.
pub type Writes = Vec<(usize, u64)>;

/// The books of one host on one link.
pub struct Ledger {
    /// Size of the window, bytes.
    size: u64,
    ranges: Ranges,
    held: [Option<Held>; SLOTS],
    /// Slices of the neighbour's window that processes of this host can write, by their keys: number of uses.
    uses: HashMap<u64, usize>,
    /// The neighbour that was last there.
    neighbour: u64,
}

impl Ledger {
    /// Opens the books for a window of `size` bytes, of which the first `reserved` belong to no slice.
    pub fn new(size: u64, reserved: u64) -> Ledger {
        Ledger {
            size,
            ranges: Ranges::new(size, reserved),
            held: [const { None }; SLOTS],
            uses: HashMap::new(),
            neighbour: 0,
        }
    }

    /// Returns the number of bytes that belong to no slice.
    pub fn free(&self) -> u64 {
        self.ranges.free()
    }

    /// Returns the number of bytes that memory of processes may take: half of the window, and half of the slices, are kept
    /// for jobs.
    pub fn spare(&self) -> u64 {
        match self.held.iter().flatten().count() < SLOTS / 2 {
            true => self.free().saturating_sub(self.size / 2),
            false => 0,
        }
    }

    /// Returns what holds the window, as text: slices in use, and slices that are closed and not yet free.
    pub fn holders(&self) -> String {
        let count = |is_closing: bool| {
            let held = self.held.iter().flatten().filter(|held| held.is_closing == is_closing);
            held.fold((0, 0), |(slices, bytes), held| (slices + 1, bytes + held.range.len))
        };
        let ((used, used_bytes), (closed, closed_bytes)) = (count(false), count(true));
        format!(
            "jobs and circuits have {used_bytes} bytes in {used} slices, ended ones still {closed_bytes} in {closed}"
        )
    }

    /// Returns true if there is a slice with this key.
    pub fn has(&self, key: u64) -> bool {
        self.held.iter().flatten().any(|held| held.key == key)
    }

    /// Returns the offsets of all slices, bytes.
    pub fn places(&self) -> impl Iterator<Item = u64> + '_ {
        self.held.iter().flatten().map(|held| held.range.offset)
    }

    /// Returns true if there is room for a slice of at least `len` bytes.
    pub fn has_room(&mut self, len: u64) -> bool {
        let range = self.take(len);
        range.into_iter().for_each(|range| self.give_back(range));
        range.is_some()
    }

    /// Returns the place for a slice of at least `len` bytes; None if there is no room, or if there are too many slices.
    pub fn take(&mut self, len: u64) -> Option<Range> {
        self.held.iter().any(Option::is_none).then(|| self.ranges.take(len))?
    }

    /// Returns a place that was taken and not given to a job.
    pub fn give_back(&mut self, range: Range) {
        self.ranges.give_back(range);
    }

    /// Gives a slice to a job.
    pub fn add(&mut self, key: u64, user: u32, range: Range, memory: Arc<SharedMemory>) {
        let held = Held { key, user, range, memory, is_closing: false, is_exposed: false };
        if let Some(place) = self.held.iter_mut().find(|place| place.is_none()) {
            *place = Some(held);
        }
    }

    /// Closes the slice of a job that has ended.
    pub fn close(&mut self, key: u64) {
        self.held.iter_mut().flatten().filter(|held| held.key == key).for_each(|held| held.is_closing = true);
    }

    /// Returns true if slices are closed and not yet free.
    pub fn is_closing(&self) -> bool {
        self.held.iter().flatten().any(|held| held.is_closing)
    }

    /// Returns all entries, for the neighbour with this identity. A slice counts as known to the neighbour from now on.
    pub fn publish(&mut self, neighbour: u64) -> Writes {
        let is_other = std::mem::replace(&mut self.neighbour, neighbour) != neighbour;
        let mut writes = Writes::new();
        for (slot, held) in self.held.iter_mut().enumerate() {
            let words = match held {
                None => [0; 4],
                Some(held) => {
                    // Processes of an earlier neighbour have ended with its agent.
                    held.is_exposed = !(is_other && held.is_closing);
                    let place = ((held.range.offset / PAGE) << 32) + held.range.len / PAGE;
                    let state = if held.is_closing { CLOSING } else { OPEN };
                    let words = [held.key, place, state << 32 | u64::from(held.user)];
                    [words[0], words[1], words[2], checksum(&words)]
                }
            };
            writes.extend((0..4).map(|word| (ENTRIES + ENTRY * slot + 8 * word, words[word])));
        }
        writes
    }

    /// Removes the slices that are closed and that no process of the neighbour can write, given the first page of this
    /// host's window. Returns their places, with the memory behind them.
    pub fn sweep(&mut self, page: &Region) -> Vec<(Range, Arc<SharedMemory>)> {
        let mut freed = Vec::new();
        for (slot, place) in self.held.iter_mut().enumerate() {
            let confirmed = page.word(CONFIRMATIONS + 8 * slot).load(Ordering::Acquire);
            let is_over = |held: &mut Held| held.is_closing && (!held.is_exposed || confirmed == held.key);
            if let Some(held) = place.take_if(is_over) {
                self.ranges.give_back(held.range);
                freed.push((held.range, held.memory));
            }
        }
        freed
    }

    /// Returns the slice of the neighbour's window with this key, given the first page of this host's window; None if
    /// there is none (yet), or if it is closed.
    pub fn granted(&self, page: &Region, key: u64) -> Option<Granted> {
        (0..SLOTS).filter_map(|slot| entry(page, slot)).find(|granted| granted.key == key && !granted.is_closing)
    }

    /// Records that a process of this host can write the slice of the neighbour's window with this key.
    pub fn begin(&mut self, key: u64) {
        *self.uses.entry(key).or_default() += 1;
    }

    /// Records that a process that could write the slice has ended.
    pub fn end(&mut self, key: u64) {
        if let Some(count) = self.uses.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.uses.remove(&key);
            }
        }
    }

    /// Returns the confirmations for slices of the neighbour's window that are closed and not used by processes of this
    /// host, given the first page of this host's window.
    pub fn confirmations(&self, page: &Region) -> Writes {
        let closed =
            |slot: usize| entry(page, slot).filter(|granted| granted.is_closing).map(|granted| (slot, granted));
        let unused = (0..SLOTS).filter_map(closed).filter(|(_, granted)| !self.uses.contains_key(&granted.key));
        unused.map(|(slot, granted)| (CONFIRMATIONS + 8 * slot, granted.key)).collect()
    }
}

/// Reads an entry of the neighbour; None if the slot is free, or if the entry has not arrived as a whole.
fn entry(page: &Region, slot: usize) -> Option<Granted> {
    let word = |word: usize| page.word(ENTRIES + ENTRY * slot + 8 * word).load(Ordering::Acquire);
    let words = [word(0), word(1), word(2)];
    let [key, place, about] = words;
    let state = about >> 32;
    if key == 0 || word(3) != checksum(&words) || !matches!(state, OPEN | CLOSING) {
        return None;
    }
    let range = Range { offset: (place >> 32) * PAGE, len: (place & 0xffff_ffff) * PAGE };
    Some(Granted { key, user: about as u32, range, is_closing: state == CLOSING })
}

fn checksum(words: &[u64; 3]) -> u64 {
    let sum = words.iter().fold(0, |sum, word| crc32c::crc32c_append(sum, &word.to_le_bytes()));
    u64::from(sum) | 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A host: its books, and the first page of its window.
    struct Host(Ledger, Region);

    impl Host {
        fn new() -> Host {
            Host(Ledger::new(64 * PAGE, PAGE), Region::anonymous(4096))
        }

        fn give(&mut self, key: u64, pages: u64) -> Option<Range> {
            let range = self.0.take(pages * PAGE)?;
            self.0.add(key, 1000, range, Arc::new(SharedMemory::allocate(PAGE).unwrap()));
            Some(range)
        }
    }

    fn write(to: &Host, writes: Writes) {
        writes.into_iter().for_each(|(offset, word)| to.1.word(offset).store(word, Ordering::Release));
    }

    #[test]
    fn half_of_the_window_and_of_the_slices_are_kept_for_jobs() {
        let mut host = Host::new();
        assert_eq!((host.0.spare(), host.0.has(1)), (31 * PAGE, false));
        assert!(host.give(1, 20).is_some() && host.0.has(1));
        assert_eq!(host.0.spare(), 11 * PAGE);
        assert!(host.give(2, 20).is_some());
        assert_eq!(host.0.spare(), 0);
        let mut host = Host::new();
        (0..SLOTS as u64 / 2).for_each(|key| assert!(host.give(key, 1).is_some()));
        assert_eq!(host.0.spare(), 0);
    }

    #[test]
    fn a_slice_is_used_again_only_when_the_neighbour_has_let_go() {
        let (mut a, mut b) = (Host::new(), Host::new());
        let range = a.give(7, 40).unwrap();
        assert_eq!(b.0.granted(&b.1, 7), None);
        write(&b, a.0.publish(2));
        let granted = b.0.granted(&b.1, 7).unwrap();
        assert_eq!((granted.range, granted.user), (range, 1000));
        b.0.begin(7);
        b.0.begin(7);
        assert_eq!(a.0.holders(), "jobs and circuits have 163840 bytes in 1 slices, ended ones still 0 in 0");
        a.0.close(7);
        assert_eq!(a.0.holders(), "jobs and circuits have 0 bytes in 0 slices, ended ones still 163840 in 1");
        write(&b, a.0.publish(2));
        assert_eq!(b.0.granted(&b.1, 7), None, "nothing new is granted");
        write(&a, b.0.confirmations(&b.1));
        assert!(a.0.sweep(&a.1).is_empty() && a.give(8, 40).is_none(), "a process can still write it");
        b.0.end(7);
        write(&a, b.0.confirmations(&b.1));
        assert!(a.0.sweep(&a.1).is_empty());
        b.0.end(7);
        write(&a, b.0.confirmations(&b.1));
        assert_eq!(a.0.sweep(&a.1).into_iter().map(|(range, _)| range).collect::<Vec<_>>(), [range]);
        // The confirmation of the earlier slice is none for the next one.
        assert!(a.give(8, 40).is_some());
        write(&b, a.0.publish(2));
        a.0.close(8);
        assert!(a.0.sweep(&a.1).is_empty());
    }

    #[test]
    fn a_slice_that_no_neighbour_has_seen_is_free_at_once() {
        let mut a = Host::new();
        a.give(7, 40).unwrap();
        a.0.close(7);
        assert_eq!(a.0.sweep(&a.1).len(), 1);
        // And so is one whose neighbour was replaced: its processes have ended.
        a.give(8, 40).unwrap();
        a.0.publish(2);
        a.0.close(8);
        a.0.publish(2);
        assert!(a.0.sweep(&a.1).is_empty());
        a.0.publish(3);
        assert_eq!(a.0.sweep(&a.1).len(), 1);
        assert_eq!(a.0.free(), 63 * PAGE);
    }

    #[test]
    fn half_an_entry_grants_nothing() {
        let (mut a, b) = (Host::new(), Host::new());
        a.give(7, 4).unwrap();
        let writes = a.0.publish(2);
        for missing in 0..4 {
            let kept = writes.iter().enumerate().filter(|(i, _)| *i != missing).map(|(_, write)| *write).collect();
            (0..4096).step_by(8).for_each(|at| b.1.word(at).store(0, Ordering::Relaxed));
            write(&b, kept);
            assert_eq!(b.0.granted(&b.1, 7), None, "{missing}");
        }
        write(&b, writes);
        assert!(b.0.granted(&b.1, 7).is_some() && b.0.granted(&b.1, 8).is_none());
    }

    #[test]
    fn the_number_of_slices_is_limited() {
        let mut a = Host(Ledger::new(1000 * PAGE, PAGE), Region::anonymous(4096));
        assert!((0..SLOTS as u64).all(|i| a.give(1 + i, 1).is_some()));
        assert!(a.give(100, 1).is_none() && !a.0.has_room(1));
    }

    #[test]
    fn asking_for_room_takes_none() {
        let mut a = Ledger::new(64 * PAGE, PAGE);
        assert!(a.has_room(63 * PAGE) && !a.has_room(64 * PAGE) && !a.has_room(u64::MAX));
        assert_eq!(a.free(), 63 * PAGE);
    }
}
