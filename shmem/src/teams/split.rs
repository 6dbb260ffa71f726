//! Creation of teams out of others.

use super::{Area, Group};
use crate::collectives;
use crate::handles::{Team, TeamConfig};
use crate::world::{world, World};
use ntbring_shmem_api::constants::SHMEM_TEAM_NUM_CONTEXTS;
use std::ffi::{c_int, c_long};

/// No part in a team: the PE is not in it, or has no memory.
const NONE: u64 = u64::MAX;

/// A regular part of a team: PEs with these numbers in it.
#[derive(Clone, Copy, Debug)]
struct Part {
    start: usize,
    stride: isize,
    size: usize,
}

impl Part {
    /// Returns the part with these arguments of the program; None if they are impossible in a team of `n`.
    fn of(start: c_int, stride: c_int, size: c_int, n: usize) -> Option<Part> {
        let last = i64::from(start) + i64::from(stride) * (i64::from(size) - 1);
        let inside = |pe: i64| (0..n as i64).contains(&pe);
        let possible = size >= 1 && (stride != 0 || size == 1) && inside(start.into()) && inside(last);
        possible.then_some(Part { start: start as usize, stride: stride as isize, size: size as usize })
    }

    fn numbers(self) -> impl Iterator<Item = usize> {
        (0..self.size as isize).map(move |i| (self.start as isize + i * self.stride) as usize)
    }
}

/// Returns the number of contexts in a configuration.
unsafe fn num_contexts(config: *const TeamConfig, mask: c_long) -> c_int {
    match mask & SHMEM_TEAM_NUM_CONTEXTS != 0 && !config.is_null() {
        // SAFETY: not null, and the program guarantees a valid object.
        true => unsafe { (*config).num_contexts },
        false => 0,
    }
}

/// Makes a team of the part in which this PE is, if it is in one. All PEs of the parent call it, each with the part that
/// it is in. Returns the team, or `Team::INVALID`, and true if all PEs have succeeded.
fn make(world: &World, parent: &Group, part: Option<Part>, num_contexts: c_int) -> (Team, bool) {
    let numbers: Vec<usize> = part.into_iter().flat_map(Part::numbers).collect();
    let mine = numbers.iter().position(|&number| number == parent.me());
    let own = mine.and_then(|_| Area::allocate(world, numbers.len()));
    let wants = u64::from(mine.is_some());
    let card = [wants, own.map_or(NONE, |at| at as u64)];
    let cards = collectives::exchange_words(world, parent, card);
    let all = cards.iter().all(|&[wants, at]| wants == 0 || at != NONE);
    let (Some(me), Some(own), true) = (mine, own, all) else {
        if let Some(own) = own {
            Area::new(vec![own], 0).free(world);
        }
        return (Team::INVALID, all);
    };
    let parts = numbers.iter().map(|&number| cards[number][1] as usize).collect();
    let members = numbers.iter().map(|&number| parent.members()[number]).collect();
    debug_assert_eq!(own as u64, cards[numbers[me]][1]);
    (world.teams.add(Group::new(members, me, num_contexts, Area::new(parts, me))), true)
}

pub unsafe fn split_strided(
    name: &'static str,
    parent: Team,
    start: c_int,
    stride: c_int,
    size: c_int,
    config: *const TeamConfig,
    mask: c_long,
    new: *mut Team,
) -> c_int {
    let world = world(name);
    let mut made = (Team::INVALID, false);
    if let Some(parent) = world.teams.get(parent) {
        if let Some(part) = Part::of(start, stride, size, parent.n()) {
            // SAFETY: the program's guarantee.
            made = make(world, &parent, Some(part), unsafe { num_contexts(config, mask) });
        }
    }
    // SAFETY: the program guarantees writable memory.
    unsafe { new.write(made.0) };
    if made.1 {
        0
    } else {
        -1
    }
}

pub unsafe fn split_2d(
    name: &'static str,
    parent: Team,
    xrange: c_int,
    x_config: *const TeamConfig,
    x_mask: c_long,
    x_team: *mut Team,
    y_config: *const TeamConfig,
    y_mask: c_long,
    y_team: *mut Team,
) -> c_int {
    let world = world(name);
    let mut made = [(Team::INVALID, false); 2];
    if let Some(parent) = world.teams.get(parent).filter(|_| xrange >= 1) {
        let (n, width) = (parent.n(), (xrange as usize).min(parent.n()));
        let (column, row) = (parent.me() % width, parent.me() / width);
        let x = Part { start: row * width, stride: 1, size: width.min(n - row * width) };
        let y = Part { start: column, stride: width as isize, size: (n - column).div_ceil(width) };
        // SAFETY: the program's guarantee.
        let contexts = unsafe { [num_contexts(x_config, x_mask), num_contexts(y_config, y_mask)] };
        made = [make(world, &parent, Some(x), contexts[0]), make(world, &parent, Some(y), contexts[1])];
        if !made.iter().all(|made| made.1) {
            // All PEs of the parent know that; no team is left of it.
            for (team, _) in &mut made {
                if let Some(group) = world.teams.get(*team) {
                    world.teams.remove(*team);
                    group.area().free(world);
                }
                *team = Team::INVALID;
            }
        }
    }
    // SAFETY: the program guarantees writable memory.
    unsafe {
        x_team.write(made[0].0);
        y_team.write(made[1].0);
    }
    if made.iter().all(|made| made.1) {
        0
    } else {
        -1
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
