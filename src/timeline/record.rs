//! The functions that record events. Each of them does nothing while no timeline is on.

use super::event::{Direction, Event, Message, NO_NAME};
use super::layout::EVENT_WORDS;
use super::names::Name;
use super::recorder::{current, Calls, Filling, Recorder, CURRENT};
use std::cell::Cell;
use std::ffi::c_char;
use std::ptr::{from_ref, null, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Two calls of a function that polls are one event if no more time stamps are between them: about a microsecond.
const SOON: u64 = 4096;

/// Number of functions that a thread finds without the table of names.
const FOUND: usize = 64;

/// The block that a thread is filling.
#[derive(Clone, Copy)]
struct Cursor {
    /// The part that the block belongs to.
    of: *const Recorder,
    block: Option<Filling>,
}

/// The state of a thread that records. It has no destructor, so that every access is a plain one.
struct Thread {
    cursor: Cell<Cursor>,
    /// Names found before, by address.
    found: [Cell<(usize, Name)>; FOUND],
    /// The part to which these names belong.
    found_in: Cell<*const Recorder>,
    number: Cell<u64>,
    process: Cell<u32>,
    /// True once the thread is ending, and records nothing any more.
    ended: Cell<bool>,
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            cursor: Cell::new(Cursor { of: null(), block: None }),
            found: [const { Cell::new((0, Name { number: 0, polls: false, coarse: false })) }; FOUND],
            found_in: Cell::new(null()),
            number: Cell::new(0),
            process: Cell::new(0),
            ended: Cell::new(false),
        }
    };
    static AT_END: AtEnd = const { AtEnd };
}

/// Gives the block of an ending thread up.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        THREAD.with(|thread| {
            thread.ended.set(true);
            let Cursor { block, .. } = thread.cursor.replace(Cursor { of: null(), block: None });
            // In a process that was forked the block is still the parent's.
            if let Some(block) = block.filter(|_| thread.process.get() == std::process::id()) {
                block.close();
            }
        });
    }
}

impl Thread {
    /// Adds an event to this thread's block.
    #[inline(always)]
    fn put(&self, recorder: &'static Recorder, words: [u64; EVENT_WORDS]) {
        let mut cursor = self.cursor.get();
        let is_done = match &mut cursor.block {
            Some(block) if cursor.of == from_ref(recorder) => block.put(words),
            _ => false,
        };
        if is_done {
            self.cursor.set(cursor);
        } else {
            self.turn_over(recorder, words);
        }
    }

    /// Gives the block up, claims another one, and adds an event to it.
    #[cold]
    #[inline(never)]
    fn turn_over(&self, recorder: &'static Recorder, event: [u64; EVENT_WORDS]) {
        static THREADS: AtomicU64 = AtomicU64::new(0);
        self.cursor.get().block.into_iter().for_each(Filling::close);
        if self.number.get() == 0 && AT_END.try_with(|_| ()).is_ok() {
            self.number.set(THREADS.fetch_add(1, Ordering::Relaxed) + 1);
            self.process.set(std::process::id());
        }
        let may = self.number.get() != 0 && !self.ended.get();
        let mut block = if may { recorder.claim(self.number.get()) } else { None };
        if !block.as_mut().is_some_and(|block| block.put(event)) {
            recorder.lose(1);
        }
        self.cursor.set(Cursor { of: recorder, block });
    }

    /// Returns the name of a function.
    ///
    /// # Safety
    /// As [`called`].
    #[inline(always)]
    unsafe fn name(&self, recorder: &'static Recorder, function: *const c_char) -> Name {
        let address = function as usize;
        let place = &self.found[(address >> 4 ^ address >> 10) % FOUND];
        let (of, name) = place.get();
        if of == address && self.found_in.get() == from_ref(recorder) {
            return name;
        }
        if self.found_in.replace(recorder) != from_ref(recorder) {
            self.found.iter().for_each(|place| place.set((0, Name::default())));
        }
        // SAFETY: the caller upholds the contract.
        let name = unsafe { recorder.names.find(function, recorder.header()) };
        place.set((address, name));
        name
    }

    /// Adds a call to the latest event if that is of the same function and has just ended. Returns false if not.
    fn extend(&self, recorder: &'static Recorder, name: Name, begin: u64, end: u64) -> bool {
        let Cursor { of, block } = self.cursor.get();
        let Some(words) = block.filter(|_| of == from_ref(recorder)).and_then(|block| block.latest()) else {
            return false;
        };
        let [began, _, lasted, calls] = [0, 1, 2, 3].map(|i| words[i].load(Ordering::Relaxed));
        let call = Event::Call { name: name.number, lasted, calls };
        if call.words(began)[1] != words[1].load(Ordering::Relaxed) || begin.saturating_sub(began + lasted) > SOON {
            return false;
        }
        words[2].store(end.saturating_sub(began), Ordering::Relaxed);
        words[3].store(calls + 1, Ordering::Relaxed);
        true
    }
}

/// Returns true while a timeline is on.
#[inline(always)]
pub fn is_on() -> bool {
    !CURRENT.load(Ordering::Relaxed).is_null()
}

/// Records an event that happens now.
#[inline(always)]
fn put(event: impl FnOnce() -> Event) {
    if let Some(recorder) = current() {
        THREAD.with(|thread| thread.put(recorder, event().words(recorder.clock.stamp())));
    }
}

/// Records that a message was given to the ring, or queued for it, at the time stamp `at` ([`begin`]): taken before,
/// because the receiver may have the message at once, and this process may be interrupted.
///
/// The message must stay in registers, hence no function call and no [`Event`]: fields of several sizes that are stored
/// to memory and read back as words would wait until all stores before them are done, that into the ring too.
#[inline(always)]
pub fn sent(at: u64, message: Message) {
    if let Some(recorder) = current().filter(|_| at != 0) {
        THREAD.with(|thread| thread.put(recorder, message.words(Direction::Out, at)));
    }
}

/// Records that the header of a message has arrived.
#[inline(always)]
pub fn received(message: Message) {
    if let Some(recorder) = current() {
        THREAD.with(|thread| thread.put(recorder, message.words(Direction::In, recorder.clock.stamp())));
    }
}

/// Records that this process has forwarded an entry of rank `src` for rank `dst`, to the `right` or left.
#[cold]
#[inline(never)]
pub fn forwarded(src: u32, dst: u32, bytes: u64, right: bool) {
    put(|| Event::Hop { src, dst, bytes, right });
}

/// Records that the payload of a rendezvous, which was offered (out) or accepted (in) at `since`, has left or arrived.
pub fn has_moved(direction: Direction, peer: u32, bytes: u64, since: Instant) {
    put(|| Event::Payload { direction, peer, bytes, lasted: nanoseconds(since.elapsed()) });
}

/// The name of the function that this process has called last, for [`waited`]; NULL if it is not known.
static LATEST: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// Longest such name.
const LATEST_BYTES: usize = 63;

/// Sets the place where the process stores the name of the function that it has called last.
///
/// # Safety
/// From now on `latest` must be readable until the first zero byte, or for 63 bytes.
pub unsafe fn name_waits_by(latest: *const c_char) {
    LATEST.store(latest.cast_mut(), Ordering::Release);
}

/// Returns the name of the function that this process has called last; empty if it is not known.
fn latest() -> String {
    let at = LATEST.load(Ordering::Acquire).cast::<u8>().cast_const();
    if at.is_null() {
        return String::new();
    }
    // SAFETY: the caller of `name_waits_by` guarantees these bytes; another thread may change them meanwhile.
    let bytes = (0..LATEST_BYTES).map(|i| unsafe { at.add(i).read_volatile() }).take_while(|byte| *byte != 0);
    String::from_utf8_lossy(&bytes.collect::<Vec<_>>()).into_owned()
}

/// Records a wait of endpoint `vci` that has lasted so long and ended then, in the function that this process has called
/// last.
pub fn waited(vci: u8, lasted: Duration, ended: Instant) {
    let Some(recorder) = current() else { return };
    let name = match latest() {
        unknown if unknown.is_empty() => NO_NAME,
        function => recorder.names.find_text(&function, recorder.header()).number,
    };
    let (lasted, ago) = (nanoseconds(lasted), nanoseconds(ended.elapsed()));
    put(|| Event::Wait { lasted, ago, vci, name });
}

/// Records a sleep of endpoint `vci` that has just ended.
pub fn slept(vci: u8, lasted: Duration) {
    put(|| Event::Sleep { lasted: nanoseconds(lasted), vci });
}

/// Returns a time stamp for [`sent`]; 0 if no timeline is on.
#[inline(always)]
pub fn begin() -> u64 {
    current().map_or(0, |recorder| recorder.clock.stamp())
}

/// Returns a time stamp for [`ended`], now that a function is called; 0 if its calls are not recorded, or if no timeline
/// is on.
///
/// # Safety
/// `function` must be the name of the function, a string that ends with a zero byte and never changes.
pub unsafe fn called(function: *const c_char) -> u64 {
    let Some(recorder) = current() else { return 0 };
    THREAD.with(|thread| {
        // SAFETY: the caller upholds the contract.
        let is_shown = recorder.calls == Calls::All || unsafe { thread.name(recorder, function) }.coarse;
        if is_shown {
            recorder.clock.stamp()
        } else {
            0
        }
    })
}

/// Records a call of a function that began at `begin` ([`called`]) and ends now. Calls in a row of a function that
/// programs call in loops, such as MPI_Test, are one event.
///
/// # Safety
/// As [`called`].
pub unsafe fn ended(function: *const c_char, begin: u64) {
    let Some(recorder) = current().filter(|_| begin != 0) else { return };
    let end = recorder.clock.stamp();
    THREAD.with(|thread| {
        // SAFETY: the caller upholds the contract.
        let name = unsafe { thread.name(recorder, function) };
        if !(name.polls && thread.extend(recorder, name, begin, end)) {
            let lasted = end.saturating_sub(begin);
            thread.put(recorder, Event::Call { name: name.number, lasted, calls: 1 }.words(begin));
        }
    });
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}
