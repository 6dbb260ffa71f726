//! One collective at one member.

use crate::addresses::{ANY_SIZE, FLAGS};
use crate::buffers::{Buffers, Waiting};
use crate::error::SharedError;
use crate::layout::{tag, Place, ASLEEP, GIVEN_UP, INLINE, LINE, POSTS_MAX, PROGRESS};
use ntbring_memory::{ForeignBytes, ForeignRoom, OutWindow};
use std::sync::atomic::{fence, Ordering};

/// Number of looks between two calls of [`Waiting::pass_time`].
const LOOKS: u32 = 8;
/// Number of calls of [`Waiting::pass_time`] in a wait before it may sleep. To announce a sleep takes a system call, and
/// to end it a message, so a wait is long before it sleeps.
const AWAKE: u32 = 500;

/// A collective in progress. It ends when the value is dropped, whether it has succeeded or not.
pub(crate) struct Operation<'a> {
    pub buffers: &'a mut Buffers,
    waiting: &'a mut dyn Waiting,
    /// Number of posts read, of each member that posts.
    read: u64,
    /// True if every member posts.
    all_post: bool,
    /// Distance of posts, bytes.
    stride: usize,
    /// True while other members may read this member's memory.
    pub lends: bool,
}

impl Drop for Operation<'_> {
    fn drop(&mut self) {
        self.buffers.end(self.waiting);
        if self.lends {
            // After a failure: what is lent is reused only after others can see that it is not to be read any more.
            fence(Ordering::SeqCst);
        }
    }
}

/// A post that was found.
#[derive(Clone, Copy)]
pub(crate) struct Post {
    member: usize,
    /// Offset of its bytes, and their number.
    offset: usize,
    len: usize,
}

impl Post {
    /// Returns the number of the member that has posted it.
    pub fn member(&self) -> usize {
        self.member
    }

    /// Returns the number of its bytes.
    pub fn len(&self) -> usize {
        self.len
    }
}

impl<'a> Operation<'a> {
    /// Begins the next collective, of which no post has more than `largest` bytes: the same number at all members.
    pub fn begin(buffers: &'a mut Buffers, largest: usize, waiting: &'a mut dyn Waiting) -> Operation<'a> {
        buffers.begin();
        let stride = largest.next_multiple_of(LINE).min(buffers.layout.cell());
        Operation { buffers, waiting, read: 0, all_post: true, stride, lends: false }
    }

    /// As [`Operation::begin`], for a collective in which not all members post.
    pub fn begin_of_some(buffers: &'a mut Buffers, largest: usize, waiting: &'a mut dyn Waiting) -> Operation<'a> {
        let mut operation = Operation::begin(buffers, largest, waiting);
        operation.all_post = false;
        operation
    }

    /// Looks again and again, until `look` returns a value, for which `member` has to do something. `is_due`: true if
    /// another member has, too.
    fn until<T>(
        &mut self,
        member: usize,
        mut look: impl FnMut(&mut Buffers) -> Option<T>,
        is_due: impl Fn(&Buffers, usize) -> bool,
    ) -> Result<T, SharedError> {
        for _ in 0..self.buffers.looks {
            if let Some(found) = look(self.buffers) {
                return Ok(found);
            }
            std::hint::spin_loop();
        }
        self.buffers.waits_for.store(member as u32 + 1, Ordering::Relaxed);
        let found = self.wait(look, is_due);
        self.buffers.waits_for.store(0, Ordering::Relaxed);
        found
    }

    #[cold]
    fn wait<T>(
        &mut self,
        mut look: impl FnMut(&mut Buffers) -> Option<T>,
        is_due: impl Fn(&Buffers, usize) -> bool,
    ) -> Result<T, SharedError> {
        let mut passed = 0;
        let found = loop {
            let some = (0..LOOKS).find_map(|_| {
                let found = look(self.buffers);
                if found.is_none() && self.buffers.yields {
                    let relayed = self.waiting.relay();
                    if !relayed && !self.buffers.may_look_without_yield(&is_due) {
                        std::thread::yield_now();
                    }
                }
                found
            });
            if let Some(found) = some {
                break Ok(found);
            }
            if passed == AWAKE {
                self.buffers.be_asleep(true);
                if let Some(found) = look(self.buffers) {
                    break Ok(found);
                }
            }
            passed += 1;
            if !self.waiting.pass_time(passed > AWAKE) {
                self.buffers.give_up();
                break Err(SharedError::GivenUp);
            }
        };
        if passed > AWAKE || self.buffers.all[self.buffers.me].word(ASLEEP).load(Ordering::Relaxed) != 0 {
            self.buffers.be_asleep(false);
        }
        self.waiting.found();
        found
    }

    /// Posts `len` bytes, which `fill` writes; it is given the member's buffer and the offset in it. `total`: the size
    /// of the whole collective, for the readers to compare. A collective's posts have positions 0, 1, 2, ...
    pub fn post(
        &mut self,
        position: u64,
        len: usize,
        total: u64,
        fill: impl FnOnce(&OutWindow, usize),
    ) -> Result<(), SharedError> {
        self.post_with(0, position, len, total, fill)
    }

    /// As [`Operation::post`], with flags beside the length.
    pub fn post_with(
        &mut self,
        flags: u64,
        position: u64,
        len: usize,
        total: u64,
        fill: impl FnOnce(&OutWindow, usize),
    ) -> Result<(), SharedError> {
        let collective = self.buffers.collective;
        let Place { cell, contents, read } = self.buffers.layout.place(collective, position, len, self.stride);
        self.until_read(read)?;
        let buffers = &mut *self.buffers;
        let mine = &buffers.all[buffers.me];
        assert!(len <= self.stride && position < POSTS_MAX, "a post fits a cell and a tag");
        fill(&buffers.mine, contents);
        mine.word(cell + 8).store(len as u64 | flags, Ordering::Relaxed);
        mine.word(cell + 16).store(total, Ordering::Relaxed);
        mine.word(cell).store(tag(collective, position + 1), Ordering::Release);
        buffers.wake_sleepers(self.waiting);
        Ok(())
    }

    /// Waits until all other members have read what they need of this member's posts before `position`.
    pub fn until_all_have_read(&mut self, position: u64) -> Result<(), SharedError> {
        self.until_read(tag(self.buffers.collective, position))
    }

    fn until_read(&mut self, read: u64) -> Result<(), SharedError> {
        for member in self.buffers.others() {
            if self.buffers.seen[member] < read {
                let look = |buffers: &mut Buffers| {
                    buffers.seen[member] = buffers.all[member].word(PROGRESS).load(Ordering::Acquire);
                    (buffers.seen[member] >= read).then_some(())
                };
                let is_due =
                    |buffers: &Buffers, of: usize| buffers.all[of].word(PROGRESS).load(Ordering::Relaxed) < read;
                self.until(member, look, is_due)?;
            }
        }
        Ok(())
    }

    /// Waits for a member's post, which must have `len` bytes, and be of a collective of size `total`.
    pub fn expect(&mut self, member: usize, position: u64, len: usize, total: u64) -> Result<Post, SharedError> {
        match self.expect_any(member, position, len, total)? {
            (post, 0) => Ok(post),
            _ => Err(SharedError::OtherSize { member }),
        }
    }

    /// Waits for a member's post of a collective of size `total`. It must have `len` bytes, unless a flag says what else it
    /// has. Returns the flags beside its length, too.
    pub fn expect_any(
        &mut self,
        member: usize,
        position: u64,
        len: usize,
        total: u64,
    ) -> Result<(Post, u64), SharedError> {
        let collective = self.buffers.collective;
        let place = self.buffers.layout.place(collective, position, len, self.stride);
        let (wanted, left) = (tag(collective, position + 1), tag(collective + 1, 0));
        // Where a post of another size would be.
        let other_len = if len <= INLINE { INLINE + 1 } else { INLINE };
        let other = self.buffers.layout.place(collective, position, other_len, self.stride);
        let all_post = self.all_post;
        let is_due = |buffers: &Buffers, of: usize| {
            let posts = of == member || all_post;
            let word = |offset| buffers.all[of].word(offset).load(Ordering::Relaxed);
            word(PROGRESS) < tag(collective, 0) || posts && word(place.cell) < wanted && word(other.cell) < wanted
        };
        let look = |buffers: &mut Buffers| {
            let is_there = |place: &Place| buffers.all[member].word(place.cell).load(Ordering::Acquire) == wanted;
            if is_there(&place) {
                return Some(Some(place));
            }
            if other.cell != place.cell && is_there(&other) {
                return Some(Some(other));
            }
            // A member posts before it ends.
            let has_left = buffers.all[member].word(PROGRESS).load(Ordering::Acquire) >= left;
            has_left.then(|| [place, other].into_iter().find(is_there))
        };
        let there = self.until(member, look, is_due)?;
        let word = |offset| self.buffers.all[member].word(offset).load(Ordering::Relaxed);
        match there {
            None => Err(self.has_ended(member)),
            Some(Place { cell, contents, .. }) => {
                let (found, flags) = (word(cell + 8) & !FLAGS, word(cell + 8) & FLAGS);
                let fits = flags & ANY_SIZE != 0 && found <= self.buffers.layout.cell() as u64 || found == len as u64;
                match fits && word(cell + 16) == total {
                    true => Ok((Post { member, offset: contents, len: found as usize }, flags)),
                    false => Err(SharedError::OtherSize { member }),
                }
            }
        }
    }

    /// Returns an error if a member has left the collective. A member whose posts are still to be read has not, unless it
    /// has failed.
    pub fn is_here(&self, member: usize) -> Result<(), SharedError> {
        let left = tag(self.buffers.collective + 1, 0);
        match self.buffers.all[member].word(PROGRESS).load(Ordering::Acquire) >= left {
            true => Err(self.has_ended(member)),
            false => Ok(()),
        }
    }

    /// Returns why a member has ended before its time.
    fn has_ended(&self, member: usize) -> SharedError {
        let given_up = self.buffers.all[member].word(GIVEN_UP).load(Ordering::Relaxed);
        match given_up == self.buffers.collective {
            true => self.failed(member),
            false => SharedError::Left { member },
        }
    }

    /// Returns the error after the failure of a member. Those that wait for this one learn that it is not the cause.
    pub fn failed(&self, member: usize) -> SharedError {
        self.buffers.give_up();
        SharedError::Failed { member }
    }

    /// Lets other work go on between two pieces of a long copy.
    pub fn relay(&mut self) {
        self.waiting.relay();
    }

    /// Shows that all posts before `position` were read.
    pub fn read_before(&mut self, position: u64) {
        if position > self.read {
            self.read = position;
            self.buffers.progress_to(tag(self.buffers.collective, position), self.waiting);
        }
    }

    /// Returns `len` bytes at `from` of a post. Panics if it is shorter.
    pub fn bytes(&self, post: Post, from: usize, len: usize) -> *const u8 {
        assert!(from <= post.len && len <= post.len - from, "bytes beyond the post");
        self.buffers.views[post.member].address(post.offset + from, len)
    }

    /// Returns word `i` of a post. Panics if it is shorter.
    pub fn word(&self, post: Post, i: usize) -> u64 {
        let mut word = [0; 8];
        // SAFETY: the variable is writable, and not used during the copy.
        self.copy(post, i * 8, unsafe { ForeignRoom::new(word.as_mut_ptr(), 8) });
        u64::from_ne_bytes(word)
    }

    /// Copies bytes at `from` of a post. Panics if it is shorter.
    pub fn copy(&self, post: Post, from: usize, to: ForeignRoom) {
        let at = self.bytes(post, from, to.len());
        // SAFETY: inside the member's buffer (checked), which this value keeps mapped.
        copy(unsafe { ForeignBytes::new(at, to.len()) }, to);
    }
}

/// Copies between buffers of the same length that may be the same.
pub(crate) fn copy(from: ForeignBytes, to: ForeignRoom) {
    assert_eq!(from.len(), to.len(), "lengths of a copy");
    // SAFETY: readable and writable by the contracts of both types.
    unsafe { std::ptr::copy(from.address(), to.address(), from.len()) }
}

const _: () = assert!(ASLEEP != PROGRESS && LINE >= 24);
