//! Creation of teams out of others.

use super::Teams;
use crate::collectives;
use crate::groups::{Area, Group};
use crate::handles::Team;
use crate::reach::Pes;
use std::ffi::c_int;

/// No part in a team: the PE is not in it, or has no memory.
const NONE: u64 = u64::MAX;

/// A regular part of a team: PEs with these numbers in it.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Number of its first PE.
    pub start: usize,
    /// Distance between the numbers of consecutive PEs.
    pub stride: isize,
    /// Number of its PEs.
    pub size: usize,
}

impl Part {
    /// Returns the part with these arguments of the program; None if they are impossible in a team of `n`.
    pub fn of(start: c_int, stride: c_int, size: c_int, n: usize) -> Option<Part> {
        let last = i64::from(start) + i64::from(stride) * (i64::from(size) - 1);
        let inside = |pe: i64| (0..n as i64).contains(&pe);
        let possible = size >= 1 && (stride != 0 || size == 1) && inside(start.into()) && inside(last);
        possible.then_some(Part { start: start as usize, stride: stride as isize, size: size as usize })
    }

    fn numbers(self) -> impl Iterator<Item = usize> {
        (0..self.size as isize).map(move |i| (self.start as isize + i * self.stride) as usize)
    }
}

impl Teams {
    /// Makes a team of the part in which this PE is, if it is in one. All PEs of the parent call it, each with the part that
    /// it is in. Returns the team, or `Team::INVALID`, and true if all PEs have succeeded.
    pub fn split(&self, pes: &Pes, parent: &Group, part: Part, num_contexts: c_int) -> (Team, bool) {
        let numbers: Vec<usize> = part.numbers().collect();
        let mine = numbers.iter().position(|&number| number == parent.me());
        let own = mine.and_then(|_| Area::allocate(pes, &self.control, numbers.len()));
        let wants = u64::from(mine.is_some());
        let card = [wants, own.map_or(NONE, |at| at as u64)];
        let cards = collectives::exchange_words(pes, parent, card);
        let all = cards.iter().all(|&[wants, at]| wants == 0 || at != NONE);
        let (Some(me), Some(own), true) = (mine, own, all) else {
            own.into_iter().for_each(|own| self.control.free(own));
            return (Team::INVALID, all);
        };
        let parts = numbers.iter().map(|&number| cards[number][1] as usize).collect();
        let members = numbers.iter().map(|&number| parent.members()[number]).collect();
        debug_assert_eq!(own as u64, cards[numbers[me]][1]);
        (self.add(Group::new(members, me, num_contexts, Area::new(parts, me))), true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_within_their_team() {
        let numbers = |start, stride, size, n| Part::of(start, stride, size, n).map(|part| part.numbers().collect());
        assert_eq!(numbers(1, 2, 3, 6), Some(vec![1, 3, 5]));
        assert_eq!(numbers(5, -2, 3, 6), Some(vec![5, 3, 1]));
        assert_eq!(numbers(2, 0, 1, 6), Some(vec![2]));
        for (start, stride, size) in
            [(1, 2, 4), (0, 0, 2), (-1, 1, 1), (0, 1, 0), (6, 1, 1), (1, -1, 3), (0, i32::MAX, 3)]
        {
            assert_eq!(numbers(start, stride, size, 6), None::<Vec<usize>>, "{start} {stride} {size}");
        }
    }
}
