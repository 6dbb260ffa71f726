//! Reduce, allreduce, reduce-scatter. Every member combines a slice of each vector, in the order of the members, so the
//! result does not depend on who computes it.

use crate::arithmetic::Reduction;
use crate::buffers::{Buffers, Waiting};
use crate::error::SharedError;
use crate::layout::LINE;
use crate::operation::{Operation, Post};
use ntbring_memory::{ForeignBytes, ForeignRoom, OutWindow};
use smallvec::SmallVec;

/// Largest vector, bytes, that each member combines itself from the vectors of the others: one step instead of several.
pub(crate) const WHOLE_MAX: usize = 4 << 10;

/// Posts of all other members, and the places of this member's bytes in them.
type Posts = SmallVec<[(Post, usize); 8]>;

/// Combines one block of each member at `to`; `own` is this member's.
fn fold(
    operation: &Operation,
    posts: &[(Post, usize)],
    own: *const u8,
    to: *mut u8,
    count: usize,
    reduction: &mut Reduction,
) {
    if count == 0 {
        return;
    }
    let (n, me) = (operation.buffers.members(), operation.buffers.me());
    let len = count * reduction.element;
    let kept: Vec<u8>;
    let own = match own == to.cast_const() && me + 2 < n {
        true => {
            // SAFETY: the caller passes a vector of `count` elements.
            kept = unsafe { std::slice::from_raw_parts(own, len) }.to_vec();
            kept.as_ptr()
        }
        false => own,
    };
    let block = |member: usize| match member == me {
        true => own,
        false => {
            let (post, from) = posts[operation.buffers.place(me, member)];
            operation.bytes(post, from, len)
        }
    };
    // SAFETY: the blocks are inside posts (checked), or this member's; `to` has room for `count` elements.
    unsafe {
        reduction.combine(to, block(n - 2), block(n - 1), count);
        for member in (0..n - 2).rev() {
            reduction.combine(to, block(member), to, count);
        }
    }
}

/// A vector, divided into rounds and, in each, into a slice for every member.
#[derive(Clone, Copy)]
struct Slices {
    members: usize,
    /// All elements, and the size of one in bytes.
    count: usize,
    element: usize,
    /// Largest number of elements of a slice.
    most: usize,
}

impl Slices {
    fn rounds(&self) -> usize {
        self.count.div_ceil(self.most * self.members)
    }

    /// Returns the first element of a member's slice, and their number.
    fn slice(&self, round: usize, member: usize) -> (usize, usize) {
        let begin = round * self.most * self.members;
        let left = (self.count - begin).min(self.most * self.members);
        let whole = left.div_ceil(self.members).next_multiple_of(unit(self.element)).min(self.most);
        let at = |member: usize| left.min(member * whole);
        // The last slice takes what rounding leaves.
        let end = if member + 1 == self.members { left } else { at(member + 1) };
        (begin + at(member), end - at(member))
    }

    /// Returns offset and length of a slice, bytes.
    fn bytes(&self, round: usize, member: usize) -> (usize, usize) {
        let (first, count) = self.slice(round, member);
        (first * self.element, count * self.element)
    }
}

/// Returns the number of elements after which a slice may end: whole cache lines, if elements divide them.
fn unit(element: usize) -> usize {
    if LINE.is_multiple_of(element) {
        LINE / element
    } else {
        1
    }
}

/// Returns the number of elements for each reader in a post for all others.
fn elements_each(buffers: &Buffers, element: usize) -> usize {
    let most = buffers.grain / (buffers.members() - 1) / element;
    (most - most % unit(element)).max(1)
}

impl Buffers {
    /// Combines the vectors of all members: `output` becomes the result, at all members, or only at `root`. At the
    /// others there is no `output` then. `input` may be the output.
    pub fn reduce(
        &mut self,
        root: Option<usize>,
        input: ForeignBytes,
        output: Option<ForeignRoom>,
        reduction: &mut Reduction,
        waiting: &mut dyn Waiting,
    ) -> Result<(), SharedError> {
        let whole = match (self.members(), root) {
            // The other member would send back half of the result.
            (2, Some(_)) => usize::MAX,
            _ => WHOLE_MAX.min(self.layout.cell()),
        };
        match input.len() <= whole {
            true => self.reduce_whole(root, input, output, reduction, waiting),
            false => self.reduce_slices(root, input, output, reduction, waiting),
        }
    }

    /// Each member that gets the result combines all elements.
    fn reduce_whole(
        &mut self,
        root: Option<usize>,
        input: ForeignBytes,
        output: Option<ForeignRoom>,
        reduction: &mut Reduction,
        waiting: &mut dyn Waiting,
    ) -> Result<(), SharedError> {
        let (len, me, element) = (input.len(), self.me, reduction.element);
        let piece = (self.piece(len) / element).max(1) * element;
        let mut operation = Operation::begin(self, piece.min(len), waiting);
        let mut posts = Posts::new();
        for position in 0..len.div_ceil(piece).max(1) {
            let at = position * piece;
            let (from, position) = (input.part(at, piece.min(len - at)), position as u64);
            if root != Some(me) {
                operation.post(position, from.len(), len as u64, |mine, to| mine.write(to, from))?;
            }
            let Some(output) = output else { continue };
            posts.clear();
            for member in operation.buffers.others() {
                posts.push((operation.expect(member, position, from.len(), len as u64)?, 0));
            }
            let to = output.part(at, from.len());
            fold(&operation, &posts, from.address(), to.address(), from.len() / element, reduction);
            operation.read_before(position + 1);
        }
        Ok(())
    }

    fn reduce_slices(
        &mut self,
        root: Option<usize>,
        input: ForeignBytes,
        output: Option<ForeignRoom>,
        reduction: &mut Reduction,
        waiting: &mut dyn Waiting,
    ) -> Result<(), SharedError> {
        let (members, me, total) = (self.members(), self.me, input.len() as u64);
        let element = reduction.element;
        let slices = Slices { members, count: input.len() / element, element, most: elements_each(self, element) };
        let rounds = slices.rounds();
        let mut operation = Operation::begin(self, (members - 1) * slices.bytes(0, 0).1, waiting);
        // Inputs of a round are posted before the results of the one before it, so that members wait less.
        let inputs_at = |round: usize| (2 * round).saturating_sub(1) as u64;
        let results_at = |round: usize| 2 * round as u64 + 2;
        let mut posts = Posts::new();
        post_inputs(&mut operation, &slices, 0, inputs_at(0), input)?;
        for round in 0..=rounds {
            if round + 1 < rounds {
                post_inputs(&mut operation, &slices, round + 1, inputs_at(round + 1), input)?;
            }
            if round < rounds {
                let (at, len) = slices.bytes(round, me);
                // The place of this member's elements in a post: the poster's own slice is not there.
                let from = |member: usize| {
                    at - slices.bytes(round, 0).0 - if member < me { slices.bytes(round, member).1 } else { 0 }
                };
                let length =
                    |member: usize| (0..members).filter(|&m| m != member).map(|m| slices.bytes(round, m).1).sum();
                posts.clear();
                for member in operation.buffers.others() {
                    let post = operation.expect(member, inputs_at(round), length(member), total)?;
                    posts.push((post, from(member)));
                }
                let own = input.part(at, len).address();
                match output {
                    Some(output) => {
                        let output = output.part(at, len);
                        fold(&operation, &posts, own, output.address(), len / element, reduction);
                        operation.read_before(inputs_at(round) + 1);
                        if root.is_none() {
                            // SAFETY: a room of the application is readable, too.
                            let result = unsafe { ForeignBytes::new(output.address(), len) };
                            operation.post(results_at(round), len, total, |mine, to| mine.write(to, result))?;
                        }
                    }
                    None => {
                        let mut sums = vec![0; len];
                        fold(&operation, &posts, own, sums.as_mut_ptr(), len / element, reduction);
                        operation.read_before(inputs_at(round) + 1);
                        operation.post(results_at(round), len, total, |mine, to| mine.write(to, (&sums[..]).into()))?;
                    }
                }
            }
            if let Some(before) = round.checked_sub(1) {
                if let Some(output) = output {
                    for member in operation.buffers.others() {
                        let (at, len) = slices.bytes(before, member);
                        let post = operation.expect(member, results_at(before), len, total)?;
                        operation.copy(post, 0, output.part(at, len));
                    }
                }
                operation.read_before(results_at(before) + 1);
            }
        }
        Ok(())
    }

    /// Combines the vectors of all members, and stores slice i of the result in the `output` of member i. `counts`:
    /// elements of each slice.
    pub fn reduce_scatter(
        &mut self,
        input: ForeignBytes,
        counts: &[usize],
        output: ForeignRoom,
        reduction: &mut Reduction,
        waiting: &mut dyn Waiting,
    ) -> Result<(), SharedError> {
        let (me, element, total) = (self.me, reduction.element, input.len() as u64);
        let most = elements_each(self, element);
        let begin = |member: usize| counts[..member].iter().sum::<usize>();
        // Returns offset and length of a piece of a slice, bytes.
        let piece = |member: usize, position: usize| {
            let at = counts[member].min(position * most);
            ((begin(member) + at) * element, (counts[member] - at).min(most) * element)
        };
        let others_of = |member: usize| (0..counts.len()).filter(move |&m| m != member);
        let largest = (counts.len() - 1) * counts.iter().max().map_or(0, |&count| count.min(most)) * element;
        let mut operation = Operation::begin(self, largest, waiting);
        let mut posts = Posts::new();
        for position in 0..counts.iter().max().map_or(0, |&count| count.div_ceil(most)) {
            let length = |member: usize| others_of(member).map(|m| piece(m, position).1).sum::<usize>();
            operation.post(position as u64, length(me), total, |mine, to| {
                let mut to = to;
                for (from, len) in others_of(me).map(|m| piece(m, position)) {
                    mine.write(to, input.part(from, len));
                    to += len;
                }
            })?;
            let (at, len) = piece(me, position);
            posts.clear();
            for member in operation.buffers.others() {
                let post = operation.expect(member, position as u64, length(member), total)?;
                posts.push((post, others_of(member).take_while(|&m| m != me).map(|m| piece(m, position).1).sum()));
            }
            let to = output.part(at - begin(me) * element, len);
            fold(&operation, &posts, input.part(at, len).address(), to.address(), len / element, reduction);
            operation.read_before(position as u64 + 1);
        }
        Ok(())
    }
}

/// Posts the elements of a round that other members combine, without this member's own slice.
fn post_inputs(
    operation: &mut Operation,
    slices: &Slices,
    round: usize,
    position: u64,
    input: ForeignBytes,
) -> Result<(), SharedError> {
    let me = operation.buffers.me();
    let (begin, own) = (slices.bytes(round, 0).0, slices.bytes(round, me));
    let last = slices.bytes(round, slices.members - 1);
    let (before, after) = (own.0 - begin, last.0 + last.1 - own.0 - own.1);
    let total = input.len() as u64;
    operation.post(position, before + after, total, |mine: &OutWindow, to| {
        mine.write(to, input.part(begin, before));
        mine.write(to + before, input.part(own.0 + own.1, after));
    })
}
