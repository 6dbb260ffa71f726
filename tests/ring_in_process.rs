//! A whole ring of hosts in one process, ranks as threads: messages between all of them.

mod common;

use common::ring::{run, try_to_join, Layout, Rank};
use common::traffic::{exchange, Plan, Shape, Traffic};
use ntbring::endpoint::wire::Head;
use ntbring::endpoint::{EndpointError, Message, Sent, Token};
use ntbring::ntb::timing::Model;
use ntbring::ntb::Side;
use ntbring::queue::{lines_for, Tag, LINE};
use ntbring::ring::handshake::HandshakeError;
use ntbring::ring::join::{Candidate, Card, JoinError};
use ntbring::ring::plan::WindowPlan;
use ntbring::settings::{BothCopy, Settings};
use ntbring::zerocopy::Payload;
use std::path::Path;
use std::time::Duration;

/// MPICH's header of an ordinary message.
const HEADER: usize = 48;

fn settings() -> Settings {
    Settings { connect_timeout: Duration::from_secs(30), ..Settings::default() }
}

/// The smallest windows that such hosts can do with.
fn tiny(layout: &Layout) -> Settings {
    let mut window = 64 << 10;
    let fits = |window| {
        let t = layout.topology();
        (0..layout.hosts).all(|h| Side::BOTH.iter().all(|&side| WindowPlan::new(&t, h, side, window).is_ok()))
    };
    while !fits(window) {
        window += 4096;
    }
    Settings { window: Some(window), ..settings() }
}

/// Messages of all kinds between all pairs, different for each. Headers are of at most
/// `header_max` bytes.
fn all_kinds(seed: u64, messages: usize, largest: usize) -> impl Fn(u32, u32) -> Vec<Shape> {
    move |src, dst| {
        let mut rng = fastrand::Rng::with_seed(seed ^ u64::from(src) << 20 ^ u64::from(dst) << 40);
        let mut shapes = Vec::new();
        for _ in 0..messages {
            let header = match rng.u8(..8) {
                0 => 0,
                1 => rng.usize(..=984),
                2 => rng.usize(..=120),
                _ => HEADER,
            };
            let payload = match rng.u8(..12) {
                0 => 0,
                1 => rng.usize(..=largest),
                // About the limits of a line, of what is packed, and of a piece.
                2 => [7, 8, 9, 63, 64, 65][rng.usize(..6)],
                3 => (8192 - HEADER).saturating_add_signed(rng.i8(..).into()),
                4 => (16usize << 10).saturating_add_signed(rng.i8(..).into()),
                _ => rng.usize(..2000),
            };
            let payload = payload.min(largest);
            shapes.push(match rng.u8(..3) {
                0 => {
                    let size = rng.usize(1..=24);
                    Shape::packed(header, payload / size, size)
                }
                _ => Shape::contiguous(header, payload),
            });
        }
        shapes
    }
}

fn everybody_to_everybody(layout: &Layout, settings: &Settings, messages: usize, largest: usize) {
    let seed = layout.size() as u64 * 1000 + layout.hosts as u64;
    let plan = all_kinds(seed, messages, largest);
    run(layout, settings, |rank| exchange(rank, seed, &plan).map(drop));
}

#[test]
fn one_host() {
    for ranks in 1..=3 {
        everybody_to_everybody(&Layout::blocks(&[ranks]), &settings(), 100, 200 << 10);
    }
}

#[test]
fn two_hosts() {
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[1, 3]), Layout::cyclic(2, 4)] {
        everybody_to_everybody(&layout, &settings(), 100, 200 << 10);
    }
}

#[test]
fn three_hosts() {
    for layout in [Layout::blocks(&[1, 1, 1]), Layout::blocks(&[2, 1, 3])] {
        everybody_to_everybody(&layout, &settings(), 80, 200 << 10);
    }
}

#[test]
fn four_hosts() {
    for layout in [Layout::blocks(&[1; 4]), Layout::cyclic(4, 8), Layout::blocks(&[3, 1, 2, 1])] {
        everybody_to_everybody(&layout, &settings(), 50, 200 << 10);
    }
}

#[test]
fn five_hosts() {
    for layout in [Layout::blocks(&[1; 5]), Layout::blocks(&[1, 2, 3, 1, 2])] {
        everybody_to_everybody(&layout, &settings(), 40, 200 << 10);
    }
}

#[test]
fn eight_hosts() {
    for layout in [Layout::blocks(&[1; 8]), Layout::blocks(&[2, 1, 1, 2, 1, 1, 2, 1])] {
        everybody_to_everybody(&layout, &settings(), 25, 100 << 10);
    }
}

#[test]
fn sixteen_hosts() {
    everybody_to_everybody(&Layout::blocks(&[1; 16]), &settings(), 10, 100 << 10);
}

#[test]
fn over_weakly_ordered_windows() {
    for (layout, messages) in [
        (Layout::blocks(&[1, 1]), 30),
        (Layout::blocks(&[2, 1, 1]), 15),
        (Layout::blocks(&[2, 1, 2, 1]), 10),
        (Layout::blocks(&[1; 5]), 10),
        (Layout::blocks(&[1; 8]), 5),
    ] {
        let settings = Settings { weak: Some(layout.size() as u64), ..tiny(&layout) };
        everybody_to_everybody(&layout, &settings, messages, 40 << 10);
    }
}

/// Everybody's lanes are full all the time, those between forwarders too.
#[test]
fn large_messages_to_everybody_through_tiny_windows() {
    for (layout, weak) in [
        (Layout::blocks(&[1; 4]), None),
        (Layout::blocks(&[2, 3, 1, 3]), None),
        (Layout::blocks(&[1; 6]), None),
        (Layout::blocks(&[1; 8]), None),
        (Layout::blocks(&[1; 8]), Some(8)),
    ] {
        let size = if weak.is_some() { 40_000 } else { 200_000 };
        let settings = Settings { weak, ..tiny(&layout) };
        let plan = move |src: u32, dst: u32| match (src + dst) % 2 {
            0 => vec![Shape::contiguous(HEADER, size); 2],
            _ => vec![Shape::packed(HEADER, size / 24, 24), Shape::contiguous(HEADER, 8)],
        };
        run(&layout, &settings, |rank| exchange(rank, 1, &plan).map(drop));
    }
}

#[test]
fn settings_at_their_limits() {
    let layout = Layout::blocks(&[1, 2, 1, 1]);
    for settings in [
        Settings { packed_max: 0, ..settings() },
        Settings { packed_max: 4 << 20, chunk: 4 << 20, ..settings() },
        Settings { chunk: 64, packed_max: 100, local_lane: 4096, ..tiny(&layout) },
        Settings { eager_max: 0, spin: Some(0), yields: 0, ..settings() },
        Settings { spin: Some(1_000_000), ..settings() },
        Settings { single_copy: None, ..settings() },
        Settings { single_copy: Some(0), both_copy: Some(BothCopy::Never), ..settings() },
        Settings { single_copy: Some(64 << 10), both_copy: Some(BothCopy::From(2)), ..settings() },
    ] {
        everybody_to_everybody(&layout, &settings, 12, 30_000);
    }
}

#[test]
fn large_payloads_are_copied_in_halves_by_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let both = Settings { both_copy: Some(BothCopy::From(100_000)), stats: Some(stats.clone()), ..settings() };
    let layout = Layout::blocks(&[1, 1]);
    // These are offered, and accepted as a whole; the rest is small.
    let large = [(1, 99_999u64), (9, 100_000), (13, 3_000_001)];
    let size_of = move |n| large.iter().find(|l| l.0 == n).map_or(8, |l| l.1 as usize);
    let plan = move |src: u32, dst: u32| match (src, dst) {
        (0, 1) => (0..14).map(|n| Shape::contiguous(HEADER, size_of(n))).collect(),
        _ => vec![],
    };
    run(&layout, &both, |rank| exchange(rank, 3, &plan).map(drop));
    let lines = statistics(&stats, 2);
    let copied = |rank: usize| lines[rank]["bytes_single_copy"].as_u64().unwrap();
    // Halves end where a page does.
    let first_half = |n: u64| (n / 2).next_multiple_of(4096);
    assert_eq!(copied(1), 99_999 + first_half(100_000) + first_half(3_000_001));
    assert_eq!(copied(0) + copied(1), 99_999 + 100_000 + 3_000_001);
}

#[test]
fn ranks_that_sleep_at_once_are_woken() {
    let layout = Layout::blocks(&[1, 2, 1, 1, 1]);
    let settings = Settings { spin: Some(0), yields: 0, ..tiny(&layout) };
    everybody_to_everybody(&layout, &settings, 20, 50_000);
}

#[test]
fn a_small_message_passes_between_the_pieces_of_a_large_one() {
    // A neighbour, and a host further away.
    for (layout, dst) in [(Layout::blocks(&[1, 1]), 1), (Layout::blocks(&[1; 4]), 2)] {
        let plan: Box<Plan> = Box::new(move |src, to| match (src, to) {
            (0, to) if to == dst => vec![Shape::contiguous(HEADER, 1 << 20), Shape::contiguous(HEADER, 8)],
            _ => vec![],
        });
        let settings = tiny(&layout);
        run(&layout, &settings, |rank| {
            if rank.rank != dst {
                return exchange(rank, 0, plan.as_ref()).map(drop);
            }
            let mut traffic = Traffic::new(layout.size());
            while traffic.complete == 0 {
                let event = rank.event()?;
                traffic.take(rank, event, plan.as_ref())?;
            }
            if traffic.open() != 1 {
                return Err("the large message was complete before the small one".into());
            }
            while traffic.complete < 2 {
                let event = rank.event()?;
                traffic.take(rank, event, plan.as_ref())?;
            }
            Ok(())
        });
    }
}

/// More messages in pieces than may be under way at once, of which small ones wait behind none.
#[test]
fn many_messages_in_pieces_at_once() {
    let layout = Layout::blocks(&[1, 1, 1, 1]);
    let plan = |src: u32, dst: u32| match (src, dst) {
        (0, 1 | 2) => (0..60).map(|n| Shape::contiguous(HEADER, if n % 3 == 0 { 10 } else { 9_000 + n })).collect(),
        _ => vec![],
    };
    run(&layout, &tiny(&layout), |rank| exchange(rank, 3, &plan).map(drop));
}

#[test]
fn hosts_forward_while_their_ranks_do_not_poll() {
    let layout = Layout::blocks(&[1; 4]);
    let plan = |src: u32, dst: u32| match (src, dst) {
        (0, 2) | (2, 0) => vec![Shape::contiguous(HEADER, 100_000), Shape::contiguous(HEADER, 8)],
        _ => vec![],
    };
    run(&layout, &settings(), |rank| {
        if rank.rank % 2 == 0 {
            exchange(rank, 0, &plan)?;
        }
        // Ranks 1 and 3, through which everything goes, wait here from the start.
        rank.barrier()
    });
}

/// The lines of NTBRING_STATS, by rank.
fn statistics(path: &Path, size: usize) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    lines.sort_by_key(|l| l["rank"].as_u64());
    assert_eq!(lines.iter().map(|l| l["rank"].as_u64().unwrap() as usize).collect::<Vec<_>>(), Vec::from_iter(0..size));
    lines
}

#[test]
fn statistics_tell_the_path_of_every_message() {
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let layout = Layout::blocks(&[1, 1, 2, 1, 1]);
    // The second one is offered.
    let plan = |_: u32, _: u32| [100, 50_000, 50_000].map(|n| Shape::contiguous(HEADER, n)).to_vec();
    let settings = Settings { stats: Some(stats.clone()), ..settings() };
    run(&layout, &settings, |rank| exchange(rank, 0, &plan).map(drop));
    let t = layout.topology();
    let lines = statistics(&stats, layout.size());
    let mut forwarded = 0;
    for (me, line) in lines.iter().enumerate() {
        let count = |name: &str| line[name].as_u64().unwrap_or_else(|| panic!("{name} in {line}"));
        let host = t.host_of(me as u32);
        let at = |wanted: fn(usize) -> bool| {
            3 * (0..layout.size() as u32).filter(|&r| wanted(t.distance(host, t.host_of(r)))).count() as u64
        };
        assert_eq!(count("host"), host as u64);
        assert_eq!(count("hosts"), 5);
        assert_eq!(count("msgs_local"), at(|d| d == 0));
        assert_eq!(count("msgs_direct"), at(|d| d == 1));
        assert_eq!(count("msgs_relayed"), at(|d| d == 2));
        assert_eq!(count("bytes_direct"), at(|d| d == 1) / 3 * (100_100 + 3 * HEADER as u64));
        assert_eq!(count("bytes_relayed"), at(|d| d == 2) / 3 * (100_100 + 3 * HEADER as u64));
        assert_eq!(count("msgs_received"), 3 * layout.size() as u64);
        assert_eq!(count("bytes_received"), layout.size() as u64 * (100_100 + 3 * HEADER as u64));
        assert_eq!(count("msgs_packed"), layout.size() as u64);
        assert_eq!(count("msgs_separate"), layout.size() as u64);
        assert_eq!(count("msgs_offered"), layout.size() as u64);
        assert_eq!(count("fetches_streamed"), at(|d| d == 2) / 3);
        assert_eq!(count("bytes_single_copy"), (layout.size() as u64 - at(|d| d == 2) / 3) * 50_000);
        assert!(count("doorbells") > 0);
        forwarded += count("forwarded_chunks");
        assert_eq!(line["peers"].as_array().unwrap().len(), layout.size());
    }
    // On a ring of five everything relayed is forwarded once: whole, beginning and pieces, or
    // offer, acceptance, beginning and pieces.
    let relayed: u64 = lines.iter().map(|l| l["msgs_relayed"].as_u64().unwrap()).sum();
    let pieces = 50_000u64.div_ceil(settings.chunk as u64);
    assert_eq!(forwarded, relayed / 3 * (1 + 1 + pieces + 3 + pieces));
}

#[test]
fn nobody_forwards_on_small_rings() {
    let dir = tempfile::tempdir().unwrap();
    for hosts in 2..=3 {
        let layout = Layout::blocks(&vec![1; hosts]);
        let stats = dir.path().join(hosts.to_string());
        let settings = Settings { stats: Some(stats.clone()), ..settings() };
        run(&layout, &settings, |rank| exchange(rank, 0, &|_, _| vec![Shape::contiguous(HEADER, 9); 3]).map(drop));
        for line in statistics(&stats, hosts) {
            assert_eq!((line["msgs_relayed"].as_u64(), line["forwarded_chunks"].as_u64()), (Some(0), Some(0)));
            assert_eq!(line["msgs_direct"].as_u64(), Some(3 * (hosts as u64 - 1)));
        }
    }
}

/// What one rank did to its ports, from the record of NTBRING_TRACE.
struct Recorded {
    /// Words written into the credits of the neighbour.
    heads: u64,
    /// Tags, without fillings.
    entries: u64,
    rings: u64,
}

fn recorded(trace: &Path, rank: usize, credits: u64) -> Recorded {
    let mut found = Recorded { heads: 0, entries: 0, rings: 0 };
    for line in std::fs::read_to_string(format!("{}.{rank}", trace.display())).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        match line["op"].as_str().unwrap() {
            "store" if line["offset"].as_u64().unwrap() < credits => found.heads += 1,
            "store" => {
                let tag = Tag::parse(line["value"].as_u64().unwrap());
                found.entries += u64::from(tag.is_some_and(|t| t.kind != 0xff));
            }
            "ring" => found.rings += 1,
            _ => {}
        }
    }
    found
}

#[test]
fn heads_are_returned_once_in_half_a_lane_and_the_record_agrees() {
    const MESSAGES: usize = 10_000;
    let dir = tempfile::tempdir().unwrap();
    let (stats, trace) = (dir.path().join("stats"), dir.path().join("trace"));
    let layout = Layout::blocks(&[1, 1]);
    let settings = Settings { stats: Some(stats.clone()), trace: Some(trace.clone()), ..tiny(&layout) };
    let plan = |src: u32, _: u32| vec![Shape::contiguous(HEADER, 8); if src == 0 { MESSAGES } else { 0 }];
    // To itself a rank sends through its host's own lanes, which are no business of the ports.
    let plan = move |src: u32, dst: u32| if dst == 1 { plan(src, dst) } else { vec![] };
    run(&layout, &settings, |rank| exchange(rank, 0, &plan).map(drop));
    let lines = statistics(&stats, 2);
    let count = |rank: usize, name: &str| lines[rank][name].as_u64().unwrap();
    let window = WindowPlan::new(&layout.topology(), 1, Side::Left, settings.window.unwrap()).unwrap();
    let lane_lines = (window.lane_bytes() / LINE) as u64;
    let used = (MESSAGES * lines_for(HEADER + 8)) as u64;
    assert_eq!(used, MESSAGES as u64, "one line each");
    assert!(count(1, "head_updates") <= used / (lane_lines / 2) + 1);
    assert!(count(1, "head_updates") >= used / lane_lines - 1, "without heads it cannot have worked");
    assert_eq!(count(0, "head_updates"), 0);
    let credits = (window.lanes() * LINE) as u64;
    let (sender, receiver) = (recorded(&trace, 0, credits), recorded(&trace, 1, credits));
    assert_eq!((receiver.heads, receiver.entries), (count(1, "head_updates"), 0));
    assert_eq!((sender.heads, sender.entries), (0, MESSAGES as u64));
    assert_eq!(sender.rings, count(0, "doorbells"));
    assert_eq!(receiver.rings, count(1, "doorbells"));
    assert_eq!(receiver.rings, receiver.heads);
}

#[test]
fn a_ping_pong_needs_no_heads_but_at_lap_changes() {
    const ROUNDS: usize = 500;
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let layout = Layout::blocks(&[1, 1]);
    let settings = Settings { stats: Some(stats.clone()), ..tiny(&layout) };
    let shape = Shape::contiguous(HEADER, 8);
    let plan = move |src: u32, dst: u32| vec![shape; if src == dst { 0 } else { ROUNDS }];
    run(&layout, &settings, |rank| {
        let mut traffic = Traffic::new(2);
        let (me, other) = (rank.rank, 1 - rank.rank);
        for round in 0..ROUNDS {
            if me == 0 {
                traffic.send(rank, other, round, shape)?;
            }
            while traffic.complete <= round {
                let event = rank.event()?;
                traffic.take(rank, event, &plan)?;
            }
            if me == 1 && traffic.send(rank, other, round, shape)? != Sent::Done {
                return Err("no room in a ping-pong".into());
            }
        }
        Ok(())
    });
    for line in statistics(&stats, 2) {
        let lane_lines = line["lane_bytes"].as_u64().unwrap() / LINE as u64;
        assert!(line["head_updates"].as_u64().unwrap() <= ROUNDS as u64 / (lane_lines / 2));
    }
}

#[test]
fn what_cannot_be_sent_is_refused_and_does_no_harm() {
    fn fails(_: [usize; 2], _: u64, room: ntbring::ntb::Room) -> Option<usize> {
        // SAFETY: the room is writable, and as long as it says.
        unsafe { room.address().write_bytes(0x77, room.len()) };
        None
    }
    const ROUNDS: usize = 300;
    let layout = Layout::blocks(&[1, 1]);
    let shape = Shape::contiguous(HEADER, 8);
    let plan = move |src: u32, dst: u32| vec![shape; if src == dst { 0 } else { ROUNDS }];
    run(&layout, &tiny(&layout), |rank| {
        let mut traffic = Traffic::new(2);
        let answer = |rank: &mut Rank, traffic: &mut Traffic, number: usize| -> Result<(), String> {
            while traffic.complete <= number {
                let event = rank.event()?;
                traffic.take(rank, event, &plan)?;
            }
            Ok(())
        };
        if rank.rank == 1 {
            for number in 0..ROUNDS {
                answer(rank, &mut traffic, number)?;
                traffic.send(rank, 0, number, shape)?;
            }
            return Ok(());
        }
        // Each message is answered before the next, so there is room, and failure is immediate.
        for number in 0..ROUNDS {
            let header = vec![0; rank.endpoint.header_max() + 1];
            let ordinary = Message { dest: 1, head: Head::default(), header: &[], payload: Payload::NONE, cookie: 0 };
            let handler = Head { handler: 64, ..Head::default() };
            let failing = Payload::Packed { len: 700, pack: fails, context: [0; 2] };
            let bad = [
                Message { dest: 2, ..ordinary },
                Message { head: handler, ..ordinary },
                Message { header: &header, ..ordinary },
                Message { payload: failing, ..ordinary },
            ];
            for (i, message) in bad.into_iter().enumerate() {
                match (i, rank.endpoint.send(message)) {
                    (0..3, Err(EndpointError::Argument(_))) | (3, Err(EndpointError::Pack(_))) => {}
                    (_, other) => return Err(format!("{i}: {other:?}")),
                }
            }
            let bogus = Token { lane: number, begun: None };
            if !matches!(rank.endpoint.release(bogus, 0), Err(EndpointError::Argument(_))) {
                return Err("a token was taken back that was never given out".into());
            }
            traffic.send(rank, 1, number, shape)?;
            answer(rank, &mut traffic, number)?;
        }
        Ok(())
    });
}

#[test]
fn settings_that_differ_are_named_on_both_sides() {
    type Change = fn(&mut Settings);
    let changes: [(&str, Change); 3] = [
        ("NTBRING_WINDOW", |s| s.window = Some(2 << 20)),
        ("NTBRING_CHUNK", |s| s.chunk = 1024),
        ("NTBRING_LINK_MODEL", |s| s.link_model = Model::parse("gen3x8").unwrap()),
    ];
    for (name, change) in changes {
        for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[2, 2]), Layout::blocks(&[1, 1, 1])] {
            let t = layout.topology();
            // Host 1 has other ideas.
            let results = try_to_join(&layout, |rank| {
                let mut s = settings();
                if t.host_of(rank) == 1 {
                    change(&mut s);
                }
                s
            });
            for (rank, result) in results.into_iter().enumerate() {
                let error = result.expect_err("it has joined");
                if t.local_of(rank as u32) == 0 {
                    assert!(
                        matches!(&error, JoinError::Handshake(HandshakeError::Disagree { what, .. }) if *what == name),
                        "rank {rank}: {error}"
                    );
                }
                assert!(error.to_string().contains(name), "rank {rank}: {error}");
            }
        }
    }
}

#[test]
fn windows_that_are_too_small_are_refused_with_a_size_that_is_not() {
    let layout = Layout::blocks(&[8; 4]);
    let small = Settings { window: Some(64 << 10), ..settings() };
    let error = Candidate::new(layout.topology(), 0, small).err().expect("81 lanes in 64 KiB");
    assert!(matches!(error, JoinError::TooSmall(_)), "{error}");
    let text = error.to_string();
    let (_, needed) = text.rsplit_once("NTBRING_WINDOW=").unwrap();
    let needed: u64 = needed.split_whitespace().next().unwrap().parse().unwrap();
    assert!(Candidate::new(layout.topology(), 0, Settings { window: Some(needed), ..settings() }).is_ok(), "{text}");
}

fn cards(ranks: usize) -> (Vec<Candidate>, Vec<Card>) {
    let layout = Layout::blocks(&vec![1; ranks]);
    let brief = Settings { connect_timeout: Duration::from_secs(1), ..settings() };
    let candidates: Vec<_> =
        (0..ranks as u32).map(|r| Candidate::new(layout.topology(), r, brief.clone()).unwrap()).collect();
    let cards = candidates.iter().map(Candidate::card).collect();
    (candidates, cards)
}

#[test]
fn neighbours_that_do_not_come_are_named() {
    let (mut candidates, cards) = cards(4);
    let error = candidates.swap_remove(0).join(&cards).err().expect("nobody else has joined");
    match &error {
        JoinError::Timeout { host: 0, whom, seconds: 1 } => assert!(whom.contains("host 3"), "{whom}"),
        other => panic!("{other}"),
    }
    assert!(error.to_string().contains("NTBRING_CONNECT_TIMEOUT"));
}

#[test]
fn neighbours_that_have_died_are_named() {
    let (mut candidates, mut cards) = cards(3);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    cards[2].pid = child.id();
    match candidates.swap_remove(0).join(&cards).err() {
        Some(JoinError::Died { rank: 2, host: 2, pid }) => assert_eq!(pid, child.id()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cards_that_cannot_be_used_are_refused() {
    let (mut candidates, mut others) = cards(3);
    others[1].version += 1;
    match candidates.swap_remove(0).join(&others).err() {
        Some(JoinError::Address { rank: 1, what }) => assert!(what.contains("version"), "{what}"),
        other => panic!("{other:?}"),
    }
    let (mut candidates, mut others) = cards(3);
    others[2].memory = None;
    assert!(matches!(candidates.swap_remove(0).join(&others).err(), Some(JoinError::Address { rank: 2, .. })));
    let (mut candidates, mut others) = cards(3);
    if let Some(memory) = &mut others[1].memory {
        memory.token ^= 1;
    }
    assert!(matches!(candidates.swap_remove(0).join(&others).err(), Some(JoinError::Ntb(_))));
    let bytes = others[0].bytes();
    for len in 0..bytes.len() {
        assert!(Card::parse(&bytes[..len]).is_err());
    }
    assert_eq!(Card::parse(&bytes), Ok(others[0]));
    let mut other = bytes;
    other[0] ^= 1;
    assert!(Card::parse(&other).is_err());
}
