//! Ranks that die: the other peers that become unreachable, the state that is dropped, and all other traffic, which
//! continues.

use super::*;
use ntbring_endpoint::wire::Packet;
use ntbring_endpoint::{Endpoint, Event};
use ntbring_memory::ForeignBytes;
use ntbring_queue::Reliability;
use std::collections::VecDeque;
use std::process::{Child, Command};
use std::time::Instant;

pub(super) static PAYLOAD: [u8; 256 << 10] = [3; 256 << 10];

/// Number of messages that exceeds the capacity of any lane.
pub(super) const MANY: usize = 3000;

/// A ring in which some ranks count as dead once the test says so: a child process stands for each of their processes.
pub(super) struct Doomed {
    pub(super) endpoints: Vec<Option<Endpoint>>,
    processes: Vec<(usize, Child)>,
    /// Losses reported to each rank; and, in `came`, its arrivals: sender, first byte of the header.
    pub(super) lost: Vec<Vec<String>>,
    /// Latest error of a poll of each rank.
    pub(super) refused: Vec<Option<String>>,
    pub(super) came: Vec<VecDeque<(u32, u8)>>,
}

impl Doomed {
    pub(super) fn new(layout: &Layout, settings: &Settings, doomed: &[usize]) -> Doomed {
        let settings = settings.clone().with(|s| s.limits.single_copy = SingleCopy::Never);
        let candidate = |rank: u32| Candidate::new(layout.topology(), rank, settings.clone()).unwrap();
        let candidates: Vec<Candidate> = (0..layout.size() as u32).map(candidate).collect();
        let mut cards: Vec<Card> = candidates.iter().map(Candidate::card).collect();
        let process = |&rank: &usize| (rank, Command::new("sleep").arg("600").spawn().unwrap());
        let processes: Vec<_> = doomed.iter().map(process).collect();
        processes.iter().for_each(|(rank, process)| cards[*rank].pid = process.id());
        let cards = &cards;
        let endpoints = std::thread::scope(|scope| {
            let join = |one: Candidate| scope.spawn(move || one.join(cards).unwrap());
            let all: Vec<_> = candidates.into_iter().map(join).collect();
            let end = |one: std::thread::ScopedJoinHandle<'_, _>| Endpoint::new(one.join().unwrap(), settings.clone());
            all.into_iter().map(|one| Some(end(one).unwrap())).collect()
        });
        let size = layout.size();
        Doomed {
            endpoints,
            processes,
            lost: vec![vec![]; size],
            refused: vec![None; size],
            came: vec![VecDeque::new(); size],
        }
    }

    pub(super) fn send(&mut self, from: usize, to: u32, mark: u8, payload: usize) -> Sent {
        // SAFETY: the payload is a static.
        let payload = Payload::Contiguous(unsafe { ForeignBytes::new(PAYLOAD.as_ptr(), payload) });
        let message = Message { dest: to, head: Head { handler: 1 }, header: &[mark; 8], payload, cookie: 1 };
        self.endpoints[from].as_mut().unwrap().send(message).unwrap()
    }

    pub(super) fn offer(&mut self, from: usize, to: u32) {
        // SAFETY: the payload is a static.
        let payload = Payload::Contiguous(unsafe { ForeignBytes::new(PAYLOAD.as_ptr(), PAYLOAD.len()) });
        let message = Message { dest: to, head: Head { handler: 1 }, header: &[0; 8], payload, cookie: 1 };
        self.endpoints[from].as_mut().unwrap().offer(message).unwrap();
    }

    /// Ends the rank's process, and with it all work of its threads.
    fn kill(&mut self, rank: usize) {
        self.endpoints[rank] = None;
        let (_, process) = self.processes.iter_mut().find(|(doomed, _)| *doomed == rank).unwrap();
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Lets all living ranks poll until `done` returns true.
    pub(super) fn until(&mut self, what: &str, done: impl Fn(&mut Doomed) -> bool) {
        let start = Instant::now();
        while !done(self) {
            if start.elapsed() >= Duration::from_secs(30) {
                self.endpoints.iter().flatten().for_each(|endpoint| eprintln!("{}", endpoint.describe()));
                panic!("{what}: not within 30 s");
            }
            for (rank, endpoint) in self.endpoints.iter_mut().enumerate() {
                let Some(endpoint) = endpoint else { continue };
                match endpoint.poll() {
                    Err(error) => self.refused[rank] = Some(error.to_string()),
                    Ok(None) => _ = endpoint.idle().wait(Duration::ZERO, false),
                    Ok(Some(Event::Lost(loss))) => self.lost[rank].push(loss.to_string()),
                    Ok(Some(Event::Arrival(arrival))) => {
                        if let Packet::Message { .. } | Packet::Begin { .. } = arrival.packet {
                            // SAFETY: an arrival's bytes stay readable until its token is released.
                            self.came[rank].push_back((arrival.src, unsafe { *arrival.header.0 }));
                        }
                        endpoint.release(arrival.token, 1).unwrap();
                    }
                    Ok(Some(_)) => {}
                }
            }
        }
    }

    /// Waits until a rank holds no pending packets: the rank that has learned of a loss last has not polled since, and
    /// drops pending packets only while it polls.
    pub(super) fn until_nothing_waits(&mut self, rank: usize) {
        self.until("the end of all waits", |ring| {
            ring.endpoints[rank].as_ref().is_some_and(|one| one.is_flushed() && !one.is_holding())
        });
    }

    pub(super) fn has_heard(&self, rank: usize, words: &[&str]) -> bool {
        self.lost[rank].len() == words.len()
            && self.lost[rank].iter().zip(words).all(|(text, word)| text.contains(word))
    }
}

impl Drop for Doomed {
    fn drop(&mut self) {
        for (_, process) in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

#[test]
fn what_waits_for_the_dead_is_forgotten_and_the_rest_goes_on() {
    let layout = Layout::blocks(&[1; 3]);
    let mut ring = Doomed::new(&layout, &tiny(&layout).with(|s| s.endpoint.unexpected = Some(1 << 20)), &[1]);
    ring.endpoints.iter_mut().flatten().for_each(|endpoint| endpoint.charge(1 << 1));
    // Messages in the lane, queued behind it, and held back for credit; then one in chunks; then one by rendezvous.
    (0..MANY).for_each(|_| _ = ring.send(0, 1, 1, 1000));
    assert_eq!(ring.send(0, 1, 1, PAYLOAD.len()), Sent::Pending);
    ring.offer(0, 1);
    assert!(!ring.endpoints[0].as_ref().unwrap().is_flushed());
    // The rank that is to die has sent a part of a message.
    ring.send(1, 0, 2, PAYLOAD.len());
    ring.until("the beginning of a message", |ring| !ring.came[0].is_empty());
    ring.kill(1);
    ring.until("the news", |ring| [0, 2].iter().all(|&rank| ring.has_heard(rank, &["rank 1 on host 1 (process"])));
    ring.until_nothing_waits(0);
    // Later messages are dropped, too.
    assert_eq!((ring.send(0, 1, 1, 0), ring.send(0, 1, 1, 8)), (Sent::Pending, Sent::Pending));
    ring.offer(0, 1);
    assert!(ring.endpoints[0].as_ref().unwrap().is_flushed());
    for (from, to) in [(0, 2), (2, 0)] {
        ring.send(from, to as u32, 4, 100);
        ring.until("a message between the living", |ring| ring.came[to].contains(&(from as u32, 4)));
    }
    // No rank gets the same report twice.
    assert!(ring.lost.iter().all(|lost| lost.len() <= 1) && ring.refused.iter().all(Option::is_none));
}

#[test]
fn what_the_dead_have_sent_comes() {
    let layout = Layout::blocks(&[1; 3]);
    let mut ring = Doomed::new(&layout, &tiny(&layout), &[1]);
    assert_eq!(ring.send(1, 0, 5, 100), Sent::Done);
    ring.kill(1);
    ring.until("the news", |ring| ring.has_heard(0, &["rank 1"]));
    assert_eq!(ring.came[0], [(1, 5)]);
}

#[test]
fn who_is_behind_the_dead_is_lost_where_links_are_trusted_and_reached_where_they_repeat() {
    let layout = Layout::blocks(&[1; 4]);
    let mut ring = Doomed::new(&layout, &tiny(&layout), &[1]);
    ring.kill(1);
    let (zero, two) = (
        ["rank 1 on", "rank 2 on host 2 cannot be reached any more: rank 1 on host 1 (process"],
        ["rank 0 on", "rank 1 on"],
    );
    ring.until("the news", |ring| {
        ring.has_heard(0, &zero) && ring.has_heard(2, &two) && ring.has_heard(3, &["rank 1"])
    });
    ring.send(0, 3, 6, 10);
    ring.until("a message", |ring| ring.came[3].contains(&(0, 6)));

    let mut ring = Doomed::new(&layout, &tiny(&layout).with(|s| s.ring.reliability = Reliability::Retry), &[1]);
    // Most of these packets are in transit through host 1, or to it.
    (0..MANY).for_each(|_| _ = ring.send(0, 1, 1, 1000));
    (0..200).for_each(|n| _ = ring.send(0, 2, n, 1000));
    ring.kill(1);
    ring.until("all of it", |ring| ring.came[2].len() == 200);
    assert!(ring.came[2].iter().enumerate().all(|(n, came)| *came == (0, n as u8)));
    ring.until("the news", |ring| [0, 2, 3].iter().all(|&rank| ring.has_heard(rank, &["rank 1 on host 1 (process"])));
    // No packet waits for a route to the dead rank once it is known that there is none.
    let start = Instant::now();
    ring.until("some time", |_| start.elapsed() > Duration::from_secs(1));
    let zero = ring.endpoints[0].as_ref().unwrap();
    assert!(zero.is_flushed(), "{}", zero.describe());
}

#[test]
fn a_hosts_other_ranks_go_with_its_forwarder_where_neighbours_need_it() {
    let layout = Layout::blocks(&[2; 4]);
    let mut ring = Doomed::new(&layout, &tiny(&layout).with(|s| s.ring.reliability = Reliability::Detect), &[2]);
    ring.kill(2);
    let zero = [
        "rank 2 on host 1 (process",
        "rank 3 on host 1 cannot be",
        "rank 4 on host 2 cannot",
        "rank 5 on host 2 cannot",
    ];
    ring.until("the news", |ring| ring.has_heard(0, &zero));
}

#[test]
fn a_forwarder_drops_what_is_for_the_dead_and_passes_on_what_is_behind_it() {
    // Rank 5 dies; its host, with rank 4, stays alive.
    let layout = Layout::blocks(&[2; 4]);
    let mut ring = Doomed::new(&layout, &tiny(&layout), &[5]);
    ring.endpoints[5] = None;
    (0..MANY).for_each(|_| _ = ring.send(0, 5, 7, 1000));
    ring.send(0, 4, 8, 100);
    ring.kill(5);
    ring.until("what was behind", |ring| ring.came[4].contains(&(0, 8)));
    ring.until("the news", |ring| ring.has_heard(0, &["rank 5 on host 2 (process"]));
}

#[test]
fn whose_own_host_has_lost_a_rank_is_told_so_again_and_again() {
    let layout = Layout::blocks(&[2, 1]);
    let mut ring = Doomed::new(&layout, &tiny(&layout), &[1]);
    ring.kill(1);
    ring.until("the news", |ring| ring.has_heard(2, &["rank 1 on host 0"]) && ring.refused[0].is_some());
    ring.refused[0] = None;
    ring.until("the news again", |ring| ring.refused[0].as_ref().is_some_and(|text| text.contains("rank 1 on host 0")));
    assert_eq!(ring.refused[2], None);
}
