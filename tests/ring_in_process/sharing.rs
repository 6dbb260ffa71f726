//! Small collectives that go round the ring.

use super::*;
use ntbring::endpoint::BLOCK_MAX;

/// Bytes of a member's block: the same for all, different each time.
fn size_of(group: u32, turn: usize) -> usize {
    [8, 0, 1, 40, 55, 56, 57, BLOCK_MAX, 200][(turn + group as usize) % 9]
}

fn block_of(group: u32, turn: usize, rank: u32) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(u64::from(group) << 40 | u64::from(rank) << 20 | turn as u64);
    std::iter::repeat_with(|| rng.u8(..)).take(size_of(group, turn)).collect()
}

/// Opens a group on the first board that is free: the same for all of them here.
fn open(rank: &mut Rank, group: u32, members: &[u32]) -> Result<(), String> {
    let mine = rank.endpoint.offer_boards();
    let all = mine & mine.wrapping_neg();
    match rank.endpoint.open_group(group, members, mine, all).map_err(|e| e.to_string())? {
        true => Ok(()),
        false => Err("no board is left".into()),
    }
}

/// Polls until a sharing has ended; what arrives besides is nobody's.
fn await_blocks(rank: &mut Rank, group: u32) -> Result<(), String> {
    while !rank.endpoint.is_shared(group).map_err(|e| e.to_string())? {
        if rank.step(Duration::from_millis(100))?.is_some() {
            return Err("an event that nobody asked for".into());
        }
    }
    Ok(())
}

fn share_once(rank: &mut Rank, group: u32, turn: usize, members: &[u32]) -> Result<(), String> {
    let text = |e: EndpointError| e.to_string();
    rank.endpoint.share(group, Some(&block_of(group, turn, rank.rank))).map_err(text)?;
    await_blocks(rank, group)?;
    let mut found = vec![0; size_of(group, turn) * members.len()];
    rank.endpoint.shared(group, &mut found).map_err(text)?;
    let expected: Vec<u8> = members.iter().flat_map(|&r| block_of(group, turn, r)).collect();
    match found == expected {
        true => Ok(()),
        false => Err(format!("group {group}, turn {turn}: wrong blocks")),
    }
}

/// The n-th rank of every host is a group, two groups each if `twice`. Groups are opened late, and
/// ranks now and then keep the others waiting.
fn everybody_shares(layout: &Layout, settings: &Settings, turns: usize) {
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
                share_once(rank, group, turn, &members)?;
            }
        }
        // The number of a communicator is used again when all of its members have freed it.
        rank.endpoint.close_group(groups[0]);
        rank.barrier()?;
        open(rank, groups[0], &members)?;
        share_once(rank, groups[0], 0, &members)?;
        rank.barrier()
    });
}

#[test]
fn everybody_gets_every_block() {
    for hosts in [1, 2, 3, 4, 5, 8, 16] {
        everybody_shares(&Layout::blocks(&vec![1; hosts]), &settings(), 200 / hosts);
    }
    everybody_shares(&Layout::blocks(&[2, 3, 2, 2]), &settings(), 30);
}

#[test]
fn blocks_cross_weakly_ordered_tiny_windows() {
    for hosts in [2, 4, 5] {
        let layout = Layout::blocks(&vec![1; hosts]);
        everybody_shares(&layout, &Settings { weak: Some(hosts as u64), ..tiny(&layout) }, 40);
    }
}

#[test]
fn members_that_sleep_are_woken() {
    let layout = Layout::blocks(&[1; 5]);
    everybody_shares(&layout, &Settings { spin: Some(0), yields: 0, ..settings() }, 20);
}

#[test]
fn blocks_of_different_sizes_are_an_error() {
    run(&Layout::blocks(&[1; 4]), &settings(), |rank| {
        let text = |e: EndpointError| e.to_string();
        open(rank, 1, &[0, 1, 2, 3])?;
        rank.endpoint.share(1, Some(&vec![0; if rank.rank == 2 { 16 } else { 8 }])).map_err(text)?;
        await_blocks(rank, 1)?;
        let size = if rank.rank == 2 { 64 } else { 32 };
        match rank.endpoint.shared(1, &mut vec![0; size]) {
            Err(EndpointError::Sharing { src, group: 1, .. }) if rank.rank == 2 || src == 2 => rank.barrier(),
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
        rank.endpoint.share(1, (rank.rank != 3).then_some(&[1; 8])).map_err(text)?;
        await_blocks(rank, 1)?;
        match rank.endpoint.shared(1, &mut [0; 40]) {
            Err(EndpointError::Sharing { src: 3, group: 1, .. }) => {}
            other => return Err(format!("{other:?}")),
        }
        // That was that: the next one is another matter.
        (1..5).try_for_each(|turn| share_once(rank, 1, turn, &members))
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
        if rank.endpoint.share(5, Some(&[])).is_ok() || rank.endpoint.is_shared(5).is_ok() {
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
        // Who has offered nothing gets nothing, and that settles only its own offer.
        if rank.endpoint.open_group(8, &members, 0, 0).map_err(text)? || rank.endpoint.offer_boards() != 0 {
            return Err("an offer of nothing".into());
        }
        if rank.endpoint.open_group(9, &members, mine, mine << 1).is_ok() {
            return Err("a board that was not offered".into());
        }
        for group in 0..mine.count_ones() {
            open(rank, group, &members)?;
            (0..3).try_for_each(|turn| share_once(rank, group, turn, &members))?;
        }
        if rank.endpoint.offer_boards() != 0 || open(rank, 99, &members).is_ok() {
            return Err("a board too many".into());
        }
        rank.endpoint.close_group(1);
        rank.barrier()?;
        open(rank, 99, &members)?;
        (0..3).try_for_each(|turn| share_once(rank, 99, turn, &members))?;
        rank.barrier()
    });
}
