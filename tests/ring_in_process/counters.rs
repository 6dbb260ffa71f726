//! Statistics and the access record: the routes that messages took.

use super::*;
use ntbring_endpoint::wire::Packet;
use ntbring_endpoint::{Event, Figures, COUNTERS};
use ntbring_host::RunningProcess;
use ntbring_memory::ForeignBytes;
use ntbring_zerocopy::ChunkSize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;
use std::time::Instant;

/// Returns the lines of NTBRING_STATS, by rank.
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
    // The second message is sent by rendezvous.
    let plan = |_: u32, _: u32| [100, 50_000, 50_000].map(|n| Shape::contiguous(HEADER, n)).to_vec();
    let settings = settings().with(|s| s.endpoint.stats = Some(stats.clone()));
    run(&layout, &settings, |rank| exchange(rank, 0, &plan).map(drop));
    let t = layout.topology();
    let lines = statistics(&stats, layout.size());
    let (mut forwarded, mut bulk) = (0, 0);
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
        assert_eq!(count("msgs_chunked"), layout.size() as u64);
        assert_eq!(count("msgs_rendezvous"), layout.size() as u64);
        assert_eq!(count("fetches_streamed"), 0);
        assert_eq!(count("bytes_single_copy"), layout.size() as u64 * 50_000);
        assert!(count("doorbells") > 0);
        forwarded += count("forwarded_chunks");
        bulk += count("forwarded_bulk");
        assert_eq!(line["peers"].as_array().unwrap().len(), layout.size());
    }
    // On a ring of five every relayed packet is forwarded once: the whole message; the header and chunks; or RTS and TAKEN,
    // since the payload of a rendezvous is copied by the kernel.
    let relayed: u64 = lines.iter().map(|l| l["msgs_relayed"].as_u64().unwrap()).sum();
    let pieces = 50_000u64.div_ceil(ChunkSize::new(settings.ring.chunk, false).most() as u64);
    assert_eq!(forwarded, relayed / 3 * (1 + 1 + pieces + 2));
    assert_eq!(bulk, 0);
}

/// Sends payloads that the kernel could copy: they are eager to receivers that prefer the lane, and to no others.
fn packed_if_it_is_liked(rank: &mut Rank, likes: bool) -> Result<(), String> {
    let (me, bytes) = (rank.rank, [7; 10_000]);
    let message = |dest| Message {
        dest,
        head: Head { handler: 1 },
        header: &[0; HEADER],
        // SAFETY: the bytes stay allocated until the call returns, which keeps no reference to them.
        payload: Payload::Contiguous(unsafe { ForeignBytes::new(bytes.as_ptr(), bytes.len()) }),
        cookie: 0,
    };
    for dest in [me, 1 - me] {
        let liked = rank.endpoint.eager_max(dest) >= HEADER + bytes.len();
        if rank.endpoint.send_now(&message(dest)).map_err(|e| e.to_string())? != liked {
            return Err(format!("rank {dest} is sent 10 KB as one entry, or not, unlike what it likes ({liked})"));
        }
        rank.barrier()?;
        if likes {
            let Event::Arrival(arrival) = rank.event()? else { return Err("something else came".into()) };
            let whole = matches!(arrival.packet, Packet::Message { payload, .. } if payload == bytes.len());
            if arrival.src != dest || !whole {
                return Err(format!("not 10 KB of rank {dest} came, but something of rank {}", arrival.src));
            }
            rank.endpoint.release(arrival.token, 0).map_err(|e| e.to_string())?;
        }
        rank.barrier()?;
    }
    Ok(())
}

/// The faster copy path depends on the machine; the test checks that both are tried, and that senders follow the
/// receivers' preference.
#[test]
fn payloads_are_fetched_both_ways_until_one_has_won() {
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let layout = Layout::blocks(&[1, 1]);
    let settings = settings().with(|s| s.endpoint.stats = Some(stats.clone()));
    let large = |_: u32, _: u32| vec![Shape::contiguous(HEADER, 1 << 20); 16];
    // By rank: true if it prefers lanes in the end; and by destination, true if the rank sends eagerly beyond the limit
    // for kernel copies.
    let (takes, asks_less) = (Mutex::new([false; 2]), Mutex::new([[false; 2]; 2]));
    run(&layout, &settings, |rank| {
        let streamed = COUNTERS.iter().find(|counter| counter.name == "fetches_streamed").unwrap();
        // Of 16 messages 7 are sent by rendezvous and accepted, 2 of them in chunks, which only lanes can transfer. A
        // turn of the choice between lanes and kernel copies ends in each round or in the next but one; six turns are a
        // trial.
        for round in 0..20 {
            exchange(rank, round, &large)?;
            rank.barrier()?;
        }
        let before = rank.endpoint.count(streamed);
        exchange(rank, 0, &large)?;
        let me = rank.rank as usize;
        takes.lock().unwrap()[me] = match rank.endpoint.count(streamed) - before {
            4 => false,
            14 => true,
            n => return Err(format!("{n} payloads of 14 were streamed: it has not made up its mind")),
        };
        let eager_max = rank.endpoint.thresholds().eager_max;
        asks_less.lock().unwrap()[me] = [0, 1].map(|to| rank.endpoint.eager_max(to) == eager_max);
        let mine = takes.lock().unwrap()[me];
        packed_if_it_is_liked(rank, mine)
    });
    let takes = takes.into_inner().unwrap();
    assert_eq!(asks_less.into_inner().unwrap(), [takes; 2]);
    for line in statistics(&stats, 2) {
        let (streamed, copied) =
            (line["fetches_streamed"].as_u64().unwrap(), line["bytes_single_copy"].as_u64().unwrap());
        let in_pieces = 21 * 4;
        assert!(streamed >= in_pieces + 10 && copied >= 10 << 20, "{line}");
    }
}

#[test]
fn nobody_forwards_on_small_rings() {
    let dir = tempfile::tempdir().unwrap();
    for hosts in 2..=3 {
        let layout = Layout::blocks(&vec![1; hosts]);
        let stats = dir.path().join(hosts.to_string());
        let settings = settings().with(|s| s.endpoint.stats = Some(stats.clone()));
        run(&layout, &settings, |rank| exchange(rank, 0, &|_, _| vec![Shape::contiguous(HEADER, 9); 3]).map(drop));
        for line in statistics(&stats, hosts) {
            assert_eq!((line["msgs_relayed"].as_u64(), line["forwarded_chunks"].as_u64()), (Some(0), Some(0)));
            assert_eq!(line["msgs_direct"].as_u64(), Some(3 * (hosts as u64 - 1)));
        }
    }
}

/// Accesses of one rank to its ports, from the record of NTBRING_TRACE.
struct Recorded {
    /// Words written into the credits of the neighbour.
    heads: u64,
    /// Tags of entries, without padding entries.
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
    let settings = tiny(&layout).with(|s| {
        s.endpoint.stats = Some(stats.clone());
        s.links.trace = Some(trace.clone());
    });
    let plan = |src: u32, _: u32| vec![Shape::contiguous(HEADER, 8); if src == 0 { MESSAGES } else { 0 }];
    // A rank sends to itself through its own host's lanes, which do not use the ports.
    let plan = move |src: u32, dst: u32| if dst == 1 { plan(src, dst) } else { vec![] };
    run(&layout, &settings, |rank| exchange(rank, 0, &plan).map(drop));
    let lines = statistics(&stats, 2);
    let count = |rank: usize, name: &str| lines[rank][name].as_u64().unwrap();
    let window = WindowLayout::new(&layout.topology(), 1, Side::Left, settings.ring.window.unwrap(), false).unwrap();
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
    let settings = tiny(&layout).with(|s| s.endpoint.stats = Some(stats.clone()));
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
fn large_payloads_are_copied_in_halves_by_both_sides() {
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let both = settings().with(|s| {
        s.limits.split_copy = SplitCopy::From(100_000);
        s.endpoint.stats = Some(stats.clone());
    });
    let layout = Layout::blocks(&[1, 1]);
    // These messages are sent by rendezvous and accepted completely; the rest is small.
    let large = [(1, 99_999u64), (9, 100_000), (13, 3_000_001)];
    let size_of = move |n| large.iter().find(|l| l.0 == n).map_or(8, |l| l.1 as usize);
    let plan = move |src: u32, dst: u32| match (src, dst) {
        (0, 1) => (0..14).map(|n| Shape::contiguous(HEADER, size_of(n))).collect(),
        _ => vec![],
    };
    run(&layout, &both, |rank| exchange(rank, 3, &plan).map(drop));
    let lines = statistics(&stats, 2);
    let copied = |rank: usize| lines[rank]["bytes_single_copy"].as_u64().unwrap();
    // The halves are divided at a page boundary.
    let first_half = |n: u64| (n / 2).next_multiple_of(4096);
    assert_eq!(copied(1), 99_999 + first_half(100_000) + first_half(3_000_001));
    assert_eq!(copied(0) + copied(1), 99_999 + 100_000 + 3_000_001);
}

/// Returns the published counters of the job of seven hosts and eight ranks in this process, by rank.
fn seen() -> Vec<Figures> {
    let mine = |process: &RunningProcess| process.job == std::process::id();
    let mut found = Vec::new();
    for process in RunningProcess::all().unwrap().iter().filter(|process| mine(process)) {
        process.stats_page.ask();
        found.extend(Figures::look(&process.stats_page).unwrap().map(|(figures, _)| figures));
    }
    found.retain(|figures| (figures.hosts, figures.size) == (7, 8));
    found.sort_by_key(|figures| figures.rank);
    found
}

fn sent(figures: &Figures) -> u64 {
    ["msgs_local", "msgs_direct", "msgs_relayed"].iter().map(|name| figures.count(name).unwrap()).sum()
}

/// Rank 0 reads the published counters without polling, so that it appears to compute to the others, while messages
/// pass through its host.
#[test]
fn whoever_looks_sees_what_ranks_have_counted_so_far() {
    const MORE: usize = 10;
    let layout = Layout::blocks(&[2, 1, 1, 1, 1, 1, 1]);
    let seen_enough = AtomicBool::new(false);
    // All are relayed.
    let relayed = settings().with(|s| s.links.shortcuts.lanes = false);
    run(&layout, &relayed, |rank| {
        let one = |_: u32, _: u32| vec![Shape::contiguous(HEADER, 9)];
        exchange(rank, 0, &one)?;
        rank.barrier()?;
        let more = |src: u32, dst: u32| match (src, dst) {
            (7, 2) => vec![Shape::contiguous(HEADER, 9); MORE],
            _ => vec![],
        };
        if rank.rank != 0 {
            exchange(rank, 0, &more)?;
            while !seen_enough.load(Ordering::Relaxed) {
                rank.step(Duration::from_millis(1))?;
            }
            return Ok(());
        }
        let end = Instant::now() + Duration::from_secs(30);
        loop {
            let all = seen();
            let count = |rank: usize, name: &str| all[rank].count(name).unwrap();
            let ranks: Vec<u64> = all.iter().map(|figures| figures.rank).collect();
            if ranks == Vec::from_iter(0..8)
                && (1..7).all(|rank| sent(&all[rank]) == 8)
                && sent(&all[7]) == 8 + MORE as u64
                && count(2, "msgs_received") == 8 + MORE as u64
            {
                // Its own host has forwarded them, which the forwarder thread counts.
                assert!(count(0, "forwarded_chunks") >= MORE as u64 && sent(&all[0]) <= 8);
                let right = serde_json::to_value(&all[0]).unwrap()["links"][1].clone();
                assert_eq!((right["side"].as_str(), right["to"].as_u64()), (Some("right"), Some(1)));
                assert!(right["forwarded_chunks"].as_u64() >= Some(MORE as u64), "{right}");
                let left = serde_json::to_value(&all[7]).unwrap()["links"][1].clone();
                assert!(left["sent_bytes"].as_u64() >= Some(LINE as u64 * MORE as u64), "{left}");
                break;
            }
            if Instant::now() > end {
                return Err(format!("{all:?}"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        seen_enough.store(true, Ordering::Relaxed);
        Ok(())
    });
}

/// The final statistics contain the counters that were published during the job, under the same names.
#[test]
fn links_are_in_the_line_of_each_rank() {
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let layout = Layout::blocks(&[1; 4]);
    let settings = settings().with(|s| s.endpoint.stats = Some(stats.clone()));
    run(&layout, &settings, |rank| exchange(rank, 0, &|_, _| vec![Shape::contiguous(HEADER, 9); 3]).map(drop));
    let lines = statistics(&stats, 4);
    let link = |rank: usize, side: usize, name: &str| lines[rank]["links"][side][name].as_u64().unwrap();
    for (rank, line) in lines.iter().enumerate() {
        assert_eq!((link(rank, 0, "to"), link(rank, 1, "to")), ((rank as u64 + 3) % 4, (rank as u64 + 1) % 4));
        assert!((0..2).all(|side| link(rank, side, "sent_bytes") >= 3 * LINE as u64));
        let both: u64 = (0..2).map(|side| link(rank, side, "forwarded_chunks")).sum();
        assert_eq!(Some(both), line["forwarded_chunks"].as_u64());
    }
    // Packets from the left to the opposite host are forwarded to the right, and vice versa.
    assert_eq!((link(1, 1, "forwarded_chunks"), link(0, 0, "forwarded_chunks")), (3, 3));
}

/// In an idle job, the periodic checks of the links must not keep a host's threads awake.
#[test]
fn forwarder_threads_that_have_nothing_to_do_sleep() {
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let layout = Layout::blocks(&[1; 4]);
    run(&layout, &settings().with(|s| s.endpoint.stats = Some(stats.clone())), |rank| {
        rank.barrier()?;
        std::thread::sleep(Duration::from_secs(3));
        rank.barrier()
    });
    for line in statistics(&stats, 4) {
        // Two per second, and some for joining, the barrier and leaving.
        assert!(line["forwarder_sleeps"].as_u64().unwrap() < 60, "{line}");
    }
}
