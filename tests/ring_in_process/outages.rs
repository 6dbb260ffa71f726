//! Links that go down in rings that do not reroute: the ranks that learn of it, the transfers that fail, and all other
//! traffic, which continues.

use super::peer_losses::{Doomed, MANY, PAYLOAD};
use super::*;
use ntbring_ntb::fault::Faults;
use ntbring_ntb::LinkState::{self, Down, Up};
use ntbring_queue::Reliability::{Detect, Off};
use std::time::Instant;

/// Returns settings with links whose ports lose packets while they are down, and with links that only report that they
/// are.
fn kinds(layout: &Layout) -> Vec<Settings> {
    let base = tiny(layout).with(|s| s.endpoint.unexpected = Some(1 << 20));
    let fault = Faults::parse("command").unwrap();
    assert!(fault.is_some());
    vec![
        base.clone(),
        base.clone().with(|s| s.ring.reliability = Detect),
        base.clone().with(|s| {
            s.links.faults = fault.clone();
            s.ring.forwarder_threads = Some(4);
        }),
        base.clone().with(|s| {
            s.links.faults = fault;
            s.ring.reliability = Detect;
        }),
        base.with(|s| s.links.model = Model::parse("gen3x8").unwrap()),
    ]
}

fn ring(layout: &Layout, settings: &Settings) -> Doomed {
    Doomed::new(layout, settings, &[])
}

/// Sets the reported state of a host's port on a side.
fn set_end(ring: &Doomed, layout: &Layout, host: usize, side: Side, state: LinkState) {
    let rank = layout.topology().ranks_of(host)[0] as usize;
    ring.endpoints[rank].as_ref().unwrap().members().set_link(side, state);
}

/// Takes the link to the right of a host down, or up, at both ends.
fn set(ring: &Doomed, layout: &Layout, link: usize, state: LinkState) {
    set_end(ring, layout, link, Side::Right, state);
    set_end(ring, layout, (link + 1) % layout.hosts, Side::Left, state);
}

/// Waits until each rank has lost these peers, because of the link with that number.
fn lose(ring: &mut Doomed, layout: &Layout, link: usize, lost: &[&[u32]]) {
    let why = format!("the link between host {link} and host {} has gone down", (link + 1) % layout.hosts);
    ring.until("the news", |ring| ring.lost.iter().zip(lost).all(|(heard, lost)| heard.len() >= lost.len()));
    for (rank, lost) in lost.iter().enumerate() {
        let words: Vec<String> = lost.iter().map(|lost| format!("rank {lost} on host")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert!(ring.has_heard(rank, &words), "rank {rank}: {:?}, not {words:?}", ring.lost[rank]);
        assert!(ring.lost[rank].iter().all(|text| text.contains(&why)), "rank {rank}: {:?}", ring.lost[rank]);
    }
}

/// Sends messages both ways between each of these pairs, and waits for them.
fn exchange_between(ring: &mut Doomed, pairs: &[(usize, usize)], mark: u8) {
    for (a, b) in pairs.iter().copied().flat_map(|(a, b)| [(a, b), (b, a)]) {
        ring.send(a, b as u32, mark, 3000);
    }
    ring.until("messages between those that are not concerned", |ring| {
        pairs.iter().all(|&(a, b)| ring.came[b].contains(&(a as u32, mark)) && ring.came[a].contains(&(b as u32, mark)))
    });
}

fn idle_for(ring: &mut Doomed, time: Duration) {
    let start = Instant::now();
    ring.until("some time", |_| start.elapsed() > time);
}

#[test]
fn what_is_under_way_on_a_link_ends_and_the_rest_goes_on() {
    let layout = Layout::blocks(&[1; 4]);
    for settings in kinds(&layout) {
        let mut ring = ring(&layout, &settings);
        ring.endpoints.iter_mut().flatten().for_each(|endpoint| endpoint.charge(1 << 1));
        // Messages in lanes, queued behind them, in chunks, and by rendezvous; to the neighbour and beyond it.
        for to in [1, 2] {
            (0..MANY).for_each(|_| _ = ring.send(0, to, 1, 1000));
            assert_eq!(ring.send(0, to, 1, PAYLOAD.len()), Sent::Pending);
            ring.offer(0, to);
        }
        ring.send(1, 0, 2, PAYLOAD.len());
        ring.until("the beginning of a message", |ring| ring.came[0].contains(&(1, 2)));
        set(&ring, &layout, 0, Down);
        lose(&mut ring, &layout, 0, &[&[1, 2], &[0, 3], &[0], &[1]]);
        ring.until_nothing_waits(0);
        exchange_between(&mut ring, &[(1, 2), (2, 3), (3, 0)], 3);
        // A link that comes up again is not used.
        let before: Vec<usize> = ring.came.iter().map(|came| came.len()).collect();
        set(&ring, &layout, 0, Up);
        for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0), (1, 3), (3, 1)] {
            assert_eq!(ring.send(from, to, 4, 8), Sent::Pending);
        }
        idle_for(&mut ring, Duration::from_millis(300));
        let after: Vec<usize> = ring.came.iter().map(|came| came.len()).collect();
        assert_eq!(before, after);
        exchange_between(&mut ring, &[(1, 2), (2, 3), (3, 0)], 5);
        assert!(ring.refused.iter().all(Option::is_none), "{:?}", ring.refused);
        ring.until("all is sent", |ring| ring.endpoints.iter().flatten().all(|endpoint| endpoint.is_flushed()));
    }
}

#[test]
fn hosts_further_away_hear_of_it_while_those_at_the_link_compute() {
    let layout = Layout::blocks(&[1; 6]);
    for settings in kinds(&layout) {
        let mut ring = ring(&layout, &settings);
        set(&ring, &layout, 0, Down);
        // These ranks own the ports of the link, but they do not poll.
        let away: Vec<_> = [0, 1].map(|rank| ring.endpoints[rank].take()).into();
        let lost: [&[&str]; 6] = [&[], &[], &["rank 0 on"], &["rank 0 on"], &["rank 1 on"], &["rank 1 on"]];
        ring.until("the news", |ring| (2..6).all(|rank| ring.lost[rank].len() >= lost[rank].len()));
        (2..6).for_each(|rank| assert!(ring.has_heard(rank, lost[rank]), "rank {rank}: {:?}", ring.lost[rank]));
        drop(away);
    }
}

#[test]
fn a_link_of_which_one_end_is_down_is_down_for_all() {
    let layout = Layout::blocks(&[1; 4]);
    for settings in kinds(&layout) {
        for (host, side) in [(1, Side::Right), (2, Side::Left)] {
            let mut ring = ring(&layout, &settings);
            (0..MANY).for_each(|_| _ = (ring.send(1, 2, 1, 1000), ring.send(2, 1, 1, 1000)));
            set_end(&ring, &layout, host, side, Down);
            lose(&mut ring, &layout, 1, &[&[2], &[2, 3], &[0, 1], &[1]]);
            exchange_between(&mut ring, &[(0, 1), (2, 3), (3, 0)], 3);
            assert!(ring.refused.iter().all(Option::is_none), "{:?}", ring.refused);
        }
    }
}

#[test]
fn a_link_that_is_up_again_before_anybody_looks_was_down() {
    let layout = Layout::blocks(&[1; 4]);
    for settings in kinds(&layout) {
        let mut ring = ring(&layout, &settings);
        set(&ring, &layout, 2, Down);
        // No rank polls: some of the packets are lost.
        (0..10).for_each(|_| _ = (ring.send(2, 3, 1, 1000), ring.send(3, 2, 1, 1000)));
        set(&ring, &layout, 2, Up);
        (0..MANY).for_each(|_| _ = (ring.send(2, 3, 1, 1000), ring.send(3, 2, 1, 1000), ring.send(1, 3, 1, 1000)));
        lose(&mut ring, &layout, 2, &[&[2], &[3], &[0, 3], &[1, 2]]);
        exchange_between(&mut ring, &[(0, 1), (1, 2), (3, 0)], 3);
        assert!(ring.refused.iter().all(Option::is_none), "{:?}", ring.refused);
    }
}

#[test]
fn links_that_come_and_go_all_the_time_end_only_what_crosses_them() {
    let layout = Layout::blocks(&[1; 4]);
    for reliability in [Off, Detect] {
        let fault = Faults::parse("down=1-2:every:20ms:for:3ms").unwrap();
        let mut ring = ring(
            &layout,
            &tiny(&layout).with(|s| {
                s.ring.reliability = reliability;
                s.links.faults = fault;
            }),
        );
        for _ in 0..20 {
            for (a, b) in [(1, 2), (2, 1), (1, 3), (3, 1), (0, 2), (2, 0)] {
                ring.send(a, b, 1, 20_000);
            }
            exchange_between(&mut ring, &[(0, 1), (2, 3), (3, 0)], 3);
            ring.came.iter_mut().for_each(|came| came.clear());
        }
        lose(&mut ring, &layout, 1, &[&[2], &[2, 3], &[0, 1], &[1]]);
        assert!(ring.refused.iter().all(Option::is_none), "{reliability:?}: {:?}", ring.refused);
    }
}

#[test]
fn two_hosts_need_both_their_links() {
    let layout = Layout::blocks(&[1, 1]);
    for (settings, link) in kinds(&layout).into_iter().flat_map(|settings| [(settings.clone(), 0), (settings, 1)]) {
        let mut ring = ring(&layout, &settings);
        set(&ring, &layout, link, Down);
        lose(&mut ring, &layout, link, &[&[1], &[0]]);
    }
}

/// Blocks travel all the way round: hosts that passed them on before no longer do, so all members must see the failure.
#[test]
fn small_collectives_end_also_for_those_who_have_lost_nobody() {
    let layout = Layout::blocks(&[1; 5]);
    let members = [0, 1, 2, 3, 4];
    for settings in kinds(&layout) {
        let mut ring = ring(&layout, &settings);
        let mut endpoints: Vec<_> = ring.endpoints.iter_mut().flatten().collect();
        let boards: Vec<u32> = endpoints.iter_mut().map(|endpoint| endpoint.offer_boards()).collect();
        let all = boards[0] & boards[0].wrapping_neg();
        if all == 0 {
            continue;
        }
        for (rank, (endpoint, mine)) in endpoints.iter_mut().zip(boards).enumerate() {
            assert!(endpoint.open_group(1, &members, mine, all).unwrap());
            // One rank contributes no block.
            if rank != 1 {
                endpoint.begin_allgather(1, Some(&[7])).unwrap();
            }
        }
        set(&ring, &layout, 0, Down);
        ring.until("the end of a collective", |ring| {
            let shared = ring.endpoints.iter_mut().flatten().map(|endpoint| endpoint.is_allgathered(1));
            let why = "the link between host 0 and host 1 has gone down";
            shared.filter(|shared| shared.as_ref().is_err_and(|error| error.to_string().contains(why))).count() == 5
        });
        assert!(ring.lost[3].is_empty(), "{:?}", ring.lost[3]);
    }
}

#[test]
fn three_hosts_lose_only_the_two_at_the_link() {
    let layout = Layout::blocks(&[2, 1, 1]);
    for settings in kinds(&layout) {
        for end in [None, Some((2, Side::Right))] {
            let mut ring = ring(&layout, &settings);
            match end {
                None => set(&ring, &layout, 2, Down),
                Some((host, side)) => set_end(&ring, &layout, host, side, Down),
            }
            lose(&mut ring, &layout, 2, &[&[3], &[3], &[], &[0, 1]]);
            exchange_between(&mut ring, &[(0, 2), (1, 2), (2, 3), (0, 1)], 3);
        }
    }
}

#[test]
fn two_links_down_make_two_lines() {
    let layout = Layout::blocks(&[1; 4]);
    for settings in kinds(&layout) {
        let mut ring = ring(&layout, &settings);
        set(&ring, &layout, 0, Down);
        set(&ring, &layout, 2, Down);
        let lost = [
            ["rank 1 on", "rank 2 on"],
            ["rank 0 on", "rank 3 on"],
            ["rank 0 on", "rank 3 on"],
            ["rank 1 on", "rank 2 on"],
        ];
        ring.until("the news", |ring| (0..4).all(|rank| ring.has_heard(rank, &lost[rank])));
        exchange_between(&mut ring, &[(1, 2), (3, 0)], 3);
    }
}

#[test]
fn a_forwarder_drops_what_is_to_cross_and_passes_on_what_is_behind_it() {
    let layout = Layout::blocks(&[1; 6]);
    for settings in kinds(&layout) {
        let mut ring = ring(&layout, &settings);
        set(&ring, &layout, 2, Down);
        // Packets in the same lane to host 1: those that cross the link, and those that do not.
        (0..MANY).for_each(|_| _ = ring.send(0, 3, 1, 1000));
        ring.send(0, 2, 2, 100);
        ring.until("what was behind", |ring| ring.came[2].contains(&(0, 2)));
        ring.until("the news", |ring| {
            ring.has_heard(0, &["rank 3 on host 3 cannot be reached any more: the link between host 2"])
        });
    }
}

#[test]
fn what_comes_from_a_neighbour_that_has_not_noticed_is_ignored() {
    let layout = Layout::blocks(&[1, 1]);
    for settings in kinds(&layout) {
        let mut ring = ring(&layout, &settings);
        set(&ring, &layout, 0, Down);
        let mut away = ring.endpoints[1].take();
        ring.until("the news", |ring| ring.has_heard(0, &["rank 1 on host 1 cannot be reached any more"]));
        set_end(&ring, &layout, 0, Side::Right, Up);
        away.as_ref().unwrap().members().set_link(Side::Left, Up);
        ring.endpoints[1] = away.take();
        assert_eq!(ring.send(1, 0, 7, 8), Sent::Done, "it knows of nothing");
        away = ring.endpoints[1].take();
        idle_for(&mut ring, Duration::from_millis(100));
        assert!(ring.came[0].is_empty() && ring.refused[0].is_none(), "{:?}", ring.refused[0]);
        drop(away);
    }
}
