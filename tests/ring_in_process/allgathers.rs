//! Small collectives (allgathers) whose blocks travel round the ring through mailboxes.

use super::*;
use ntbring_endpoint::Endpoint;
use ntbring_ntb::Shortcuts;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Returns the size of a member's block, bytes: the same for all members, different in each turn.
fn size_of(group: u32, turn: usize, most: usize) -> usize {
    [8, 0, 1, 40, 55, 56, 57, most, 200.min(most)][(turn + group as usize) % 9]
}

fn block_of(group: u32, turn: usize, rank: u32, most: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(u64::from(group) << 40 | u64::from(rank) << 20 | turn as u64);
    std::iter::repeat_with(|| rng.u8(..)).take(size_of(group, turn, most)).collect()
}

/// Opens a group on the first free mailbox, which is the same for all members here.
fn open(rank: &mut Rank, group: u32, members: &[u32]) -> Result<(), String> {
    let mine = rank.endpoint.offer_boards();
    let all = mine & mine.wrapping_neg();
    match rank.endpoint.open_group(group, members, mine, all).map_err(|e| e.to_string())? {
        true => Ok(()),
        false => Err("no board is left".into()),
    }
}

/// Waits for a collective as a blocked MPI call does; no other event may arrive. In every other turn, it polls nothing
/// else in between.
fn await_blocks(rank: &mut Rank, group: u32, turn: usize) -> Result<(), String> {
    /// Longest sleep. Only a doorbell ends it sooner.
    const SLEEP: Duration = Duration::from_secs(10);
    let mut slept = false;
    while !rank.endpoint.await_allgather(group, 3 * (turn as u32 % 2)).map_err(|e| e.to_string())? {
        if let Some(event) = rank.poll()? {
            return Err(unexpected(&event));
        }
        let start = Instant::now();
        rank.idle.wait(SLEEP, false);
        slept = start.elapsed() >= SLEEP;
    }
    match slept {
        true => Err(format!("a block was there without a doorbell; {}", rank.endpoint.describe())),
        false => Ok(()),
    }
}

fn allgather_once(rank: &mut Rank, group: u32, turn: usize, members: &[u32]) -> Result<(), String> {
    let text = |e: EndpointError| e.to_string();
    let most = rank.endpoint.block_max();
    if rank.endpoint.begin_allgather(group, Some(&vec![0; most + 1])).is_ok() {
        return Err(format!("shares more than {most} bytes"));
    }
    rank.endpoint.begin_allgather(group, Some(&block_of(group, turn, rank.rank, most))).map_err(text)?;
    await_blocks(rank, group, turn)?;
    let mut found = vec![0; size_of(group, turn, most) * members.len()];
    rank.endpoint.end_allgather(group, &mut found).map_err(text)?;
    let expected: Vec<u8> = members.iter().flat_map(|&r| block_of(group, turn, r, most)).collect();
    match found == expected {
        true => Ok(()),
        false => Err(format!("group {group}, turn {turn}: wrong blocks")),
    }
}

/// The n-th ranks of all hosts form a group, two groups each if `twice`. Groups are opened late, and ranks now and then
/// keep the others waiting.
pub(super) fn everybody_shares(layout: &Layout, settings: &Settings, turns: usize) {
    run(layout, settings, |rank| {
        let t = layout.topology();
        let local = t.local_of(rank.rank);
        if (0..t.hosts()).any(|h| t.ranks_of(h).len() <= local) {
            return (0..2).try_for_each(|_| rank.barrier());
        }
        let members: Vec<u32> = (0..t.hosts()).map(|h| t.ranks_of(h)[local]).collect();
        let mut rng = fastrand::Rng::with_seed(rank.rank.into());
        let groups = [7 + local as u32, 70_000];
        let groups = if local == 0 { &groups[..] } else { &groups[..1] };
        for &group in groups {
            std::thread::sleep(Duration::from_millis(rng.u64(..20)));
            open(rank, group, &members)?;
        }
        for turn in 0..turns {
            for &group in groups {
                if rng.u8(..20) == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                allgather_once(rank, group, turn, &members)?;
            }
        }
        // The id of a communicator is reused when all of its members have freed it.
        rank.endpoint.close_group(groups[0]);
        rank.barrier()?;
        open(rank, groups[0], &members)?;
        allgather_once(rank, groups[0], 0, &members)?;
        rank.barrier()
    });
}

#[test]
fn everybody_gets_every_block() {
    for hosts in [1, 2, 3, 4, 5, 8, 16] {
        everybody_shares(&Layout::blocks(&vec![1; hosts]), &settings(), 200 / hosts);
    }
    everybody_shares(&Layout::blocks(&[2, 3, 2, 2]), &settings(), 30);
    everybody_shares(&Layout::blocks(&[4, 4, 1, 1]), &settings(), 30);
}

#[test]
fn blocks_cross_weakly_ordered_tiny_windows() {
    for hosts in [2, 4, 5] {
        let layout = Layout::blocks(&vec![1; hosts]);
        everybody_shares(&layout, &tiny(&layout).with(|s| s.links.weak = Some(hosts as u64)), 40);
    }
}

#[test]
fn members_that_sleep_are_woken() {
    let sleeping = settings().with(|s| {
        s.endpoint.spin = Some(0);
        s.endpoint.yields = 0;
    });
    everybody_shares(&Layout::blocks(&[1; 5]), &sleeping, 20);
    // With this model, blocks are in transit for longer than a rank needs to prepare its sleep.
    let modelled = sleeping.with(|s| s.links.model = Model::parse("gen3x8").unwrap());
    everybody_shares(&Layout::blocks(&[1; 4]), &modelled, 20);
}

/// No rank looks at its mailboxes or passes blocks on unless the test lets it. In each round another rank looks first:
/// where it can read its neighbours' windows, it completes the allgather and goes on before anything was passed on to
/// it.
#[test]
fn a_block_is_seen_before_the_neighbour_has_passed_it_on() {
    const GROUP: u32 = 1;
    for (hosts, granted) in [(4, true), (5, true), (6, true), (4, false)] {
        let layout = Layout::blocks(&vec![1; hosts]);
        let withheld = tiny(&layout).with(|s| s.links.shortcuts = Shortcuts { windows: false, ..Shortcuts::ALL });
        let mut ring = peer_losses::Doomed::new(&layout, &if granted { settings() } else { withheld }, &[]);
        let mut endpoints: Vec<_> = ring.endpoints.iter_mut().flatten().collect();
        let members: Vec<u32> = (0..hosts as u32).collect();
        let most = endpoints[0].block_max();
        let block = |turn, rank: usize| block_of(GROUP, turn, rank as u32, most);
        let share =
            |endpoint: &mut Endpoint, turn, rank| endpoint.begin_allgather(GROUP, Some(&block(turn, rank))).unwrap();
        let check = |endpoint: &mut Endpoint, turn| {
            let expected: Vec<u8> = (0..hosts).flat_map(|rank| block(turn, rank)).collect();
            let mut found = vec![0; expected.len()];
            endpoint.end_allgather(GROUP, &mut found).unwrap();
            assert_eq!(found, expected, "{hosts} hosts, turn {turn}");
        };
        for (rank, endpoint) in endpoints.iter_mut().enumerate() {
            let mine = endpoint.offer_boards();
            assert!(endpoint.open_group(GROUP, &members, mine, 1).unwrap());
            share(endpoint, 0, rank);
        }
        for turn in 0..2 * hosts {
            let first = turn * (hosts - 1) % hosts;
            let mut sees = endpoints[first].is_allgathered(GROUP).unwrap();
            assert_eq!(sees, granted && hosts <= 5, "{hosts} hosts, turn {turn}");
            if hosts == 6 {
                // A block from three hosts away is visible once it has been passed on to the neighbour.
                endpoints[(first + hosts - 2) % hosts].is_allgathered(GROUP).unwrap();
                sees = endpoints[first].is_allgathered(GROUP).unwrap();
                assert!(sees, "turn {turn}");
            }
            if sees {
                check(endpoints[first], turn);
                share(endpoints[first], turn + 1, first);
            }
            for _ in 0..hosts {
                let others = endpoints.iter_mut().enumerate().filter(|(rank, _)| !sees || *rank != first);
                others.for_each(|(_, endpoint)| _ = endpoint.is_allgathered(GROUP).unwrap());
            }
            for (rank, endpoint) in endpoints.iter_mut().enumerate().filter(|(rank, _)| !sees || *rank != first) {
                check(endpoint, turn);
                share(endpoint, turn + 1, rank);
            }
        }
    }
}

/// Returns the mailboxes that this rank has offered, and those that all of a group's members have offered, as MPI would
/// combine them.
fn agree(rank: &mut Rank, offers: &[AtomicU32], members: Option<&[u32]>) -> Result<(u32, u32), String> {
    let mine = if members.is_some() { rank.endpoint.offer_boards() } else { 0 };
    offers[rank.rank as usize].store(mine, Ordering::SeqCst);
    rank.barrier()?;
    let offer = |&member: &u32| offers[member as usize].load(Ordering::SeqCst);
    let all = members.map_or(0, |m| m.iter().map(offer).fold(u32::MAX, |all, offer| all & offer));
    rank.barrier()?;
    Ok((mine, all))
}

/// Two ranks on each host. Each is in groups with different members, one after the other and at once: both ends of a
/// mailbox still agree on its turn.
#[test]
fn groups_cross() {
    let offers: Vec<AtomicU32> = (0..6).map(|_| AtomicU32::new(0)).collect();
    // The groups that are opened in a step, the number of allgathers of each, and true if the group is closed then.
    type Step<'a> = (&'a [[u32; 3]], usize, bool);
    let steps: [Step; 5] = [
        (&[[0, 2, 4], [1, 3, 5]], 3, true),
        (&[[0, 3, 4], [1, 2, 5]], 2, true),
        (&[[0, 2, 5]], 1, false),
        (&[[0, 3, 5], [1, 2, 4]], 3, false),
        (&[[0, 2, 4], [1, 3, 5]], 2, true),
    ];
    for window in [None, Some(64 << 10)] {
        run(&Layout::blocks(&[2; 3]), &settings().with(|s| s.ring.window = window), |rank| {
            for (step, (groups, turns, close)) in steps.iter().enumerate() {
                let mine = groups.iter().find(|g| g.contains(&rank.rank));
                let (mask, all) = agree(rank, &offers, mine.map(|g| &g[..]))?;
                let Some(members) = mine else { continue };
                if !rank.endpoint.open_group(step as u32, members, mask, all).map_err(|e| e.to_string())? {
                    return Err(format!("step {step}: no board in common"));
                }
                (0..*turns).try_for_each(|turn| allgather_once(rank, step as u32, turn, members))?;
                if *close {
                    rank.endpoint.close_group(step as u32);
                }
            }
            rank.barrier()
        });
    }
}

/// Blocks of the abandoned collective may still be posted in the mailbox.
#[test]
fn a_board_of_an_allgather_that_was_given_up_is_not_used_again() {
    run(&Layout::blocks(&[1; 3]), &settings(), |rank| {
        let text = |e: EndpointError| e.to_string();
        open(rank, 1, &[0, 1, 2])?;
        if rank.rank != 2 {
            rank.endpoint.begin_allgather(1, Some(&[1])).map_err(text)?;
        }
        rank.barrier()?;
        if rank.endpoint.describe().contains("nothing from") == (rank.rank == 2) {
            return Err(rank.endpoint.describe());
        }
        rank.endpoint.close_group(1);
        let free = rank.endpoint.offer_boards();
        match (free & 1 == 0, rank.rank == 2) {
            (given_up, whole) if given_up != whole => {}
            _ => return Err(format!("boards {free:#x} are free")),
        }
        rank.endpoint.open_group(2, &[0, 1, 2], free, 2).map_err(text)?;
        (0..3).try_for_each(|turn| allgather_once(rank, 2, turn, &[0, 1, 2]))
    });
}

#[test]
fn windows_may_be_too_small_for_boards() {
    let layout = Layout::blocks(&[4, 4]);
    let settings = settings().with(|s| s.ring.window = Some(27 << 12));
    run(&layout, &settings, |rank| match rank.endpoint.offer_boards() {
        0 => Ok(()),
        boards => Err(format!("boards {boards:#x}")),
    });
}

#[test]
fn blocks_of_different_sizes_are_an_error() {
    run(&Layout::blocks(&[1; 4]), &settings(), |rank| {
        let text = |e: EndpointError| e.to_string();
        open(rank, 1, &[0, 1, 2, 3])?;
        rank.endpoint.begin_allgather(1, Some(&vec![0; if rank.rank == 2 { 16 } else { 8 }])).map_err(text)?;
        await_blocks(rank, 1, 0)?;
        let size = if rank.rank == 2 { 64 } else { 32 };
        match rank.endpoint.end_allgather(1, &mut vec![0; size]) {
            Err(EndpointError::Allgather { src, group: 1, .. }) if rank.rank == 2 || src == 2 => rank.barrier(),
            other => Err(format!("{other:?}")),
        }
    });
}

#[test]
fn who_has_failed_is_known_to_everybody() {
    run(&Layout::blocks(&[1; 5]), &settings(), |rank| {
        let text = |e: EndpointError| e.to_string();
        let members = [0, 1, 2, 3, 4];
        open(rank, 1, &members)?;
        rank.endpoint.begin_allgather(1, (rank.rank != 3).then_some(&[1; 8])).map_err(text)?;
        await_blocks(rank, 1, 0)?;
        match rank.endpoint.end_allgather(1, &mut [0; 40]) {
            Err(EndpointError::Allgather { src: 3, group: 1, .. }) => {}
            other => return Err(format!("{other:?}")),
        }
        // The failure is over: the next allgather succeeds.
        (1..5).try_for_each(|turn| allgather_once(rank, 1, turn, &members))
    });
}

#[test]
fn groups_must_be_one_rank_of_each_host() {
    run(&Layout::blocks(&[1, 2]), &settings(), |rank| {
        for ranks in [&[0, 1, 2][..], &[0], &[1, 0], &[0, 9], &[0, if rank.rank == 1 { 2 } else { 1 }]] {
            let mine = ranks.contains(&rank.rank) && ranks.len() == 2 && ranks[1] < 3 && ranks[0] == 0;
            if open(rank, 5, ranks).is_ok() != mine {
                return Err(format!("{ranks:?}"));
            }
            rank.endpoint.close_group(5);
        }
        if rank.endpoint.begin_allgather(5, Some(&[])).is_ok() || rank.endpoint.is_allgathered(5).is_ok() {
            return Err("a group that is not open".into());
        }
        rank.barrier()
    });
}

#[test]
fn boards_are_given_to_one_group_at_a_time() {
    run(&Layout::blocks(&[1; 3]), &settings(), |rank| {
        let text = |e: EndpointError| e.to_string();
        let members = [0, 1, 2];
        let mine = rank.endpoint.offer_boards();
        if mine == 0 || rank.endpoint.offer_boards() != 0 {
            return Err("an offer beside another".into());
        }
        // A rank that has offered nothing gets nothing, and only its own offer is settled.
        if rank.endpoint.open_group(8, &members, 0, 0).map_err(text)? || rank.endpoint.offer_boards() != 0 {
            return Err("an offer of nothing".into());
        }
        if rank.endpoint.open_group(9, &members, mine, mine << 1).is_ok() {
            return Err("a board that was not offered".into());
        }
        for group in 0..mine.count_ones() {
            open(rank, group, &members)?;
            (0..3).try_for_each(|turn| allgather_once(rank, group, turn, &members))?;
        }
        if rank.endpoint.offer_boards() != 0 || open(rank, 99, &members).is_ok() {
            return Err("a board too many".into());
        }
        rank.endpoint.close_group(1);
        rank.barrier()?;
        open(rank, 99, &members)?;
        (0..3).try_for_each(|turn| allgather_once(rank, 99, turn, &members))?;
        rank.barrier()
    });
}
