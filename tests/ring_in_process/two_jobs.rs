//! Two jobs, each with a ring of its own, whose processes are on separate hosts: messages between them go through
//! gateways.

use super::*;
use ntbring_endpoint::Event;
use ntbring_ntb::{LinkState, Shortcuts};
use ntbring_queue::Reliability;
use ntbring_ring::external_peer::ExternalAddress;
use ntbring_ring::PeerLoss;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;

const TAG: u32 = 9;

/// Number of requests from each rank of the second job to each rank of the first.
const REQUESTS: usize = 60;

/// State that both jobs share.
#[derive(Default)]
struct Meeting {
    addresses: Mutex<BTreeMap<(usize, u32), ExternalAddress>>,
    /// Number of ranks that have passed each stage.
    stages: [AtomicUsize; 3],
}

impl Meeting {
    /// Polls until all ranks of both jobs have come to a stage.
    fn pass(&self, stage: usize, total: usize, rank: &mut Rank) -> Result<(), String> {
        let is_over = || self.stages[stage].load(Ordering::SeqCst) >= total;
        self.stages[stage].fetch_add(1, Ordering::SeqCst);
        while !is_over() {
            let event = rank.step(Duration::from_millis(1))?;
            // Another rank may be in the next stage, and cause events there.
            if let Some(event) = event.filter(|_| !is_over()) {
                return Err(unexpected(&event));
            }
        }
        Ok(())
    }

    fn addresses_of(&self, job: usize) -> Vec<ExternalAddress> {
        self.addresses.lock().unwrap().iter().filter(|((of, _), _)| *of == job).map(|(_, a)| *a).collect()
    }
}

fn hear(rank: &mut Rank) -> Result<Vec<u8>, String> {
    loop {
        if let Some(bytes) = rank.endpoint.dpm_receive(TAG).map_err(|e| e.to_string())? {
            return Ok(bytes);
        }
        if let Some(event) = rank.step(Duration::from_millis(100))? {
            return Err(unexpected(&event));
        }
    }
}

/// Adds a process of the other job as a peer.
fn add(rank: &mut Rank, address: &ExternalAddress) -> Result<u32, String> {
    loop {
        match rank.endpoint.add_peer(address).map_err(|e| e.to_string())? {
            Some(peer) => return Ok(peer),
            None => _ = rank.step(Duration::from_millis(10))?,
        }
    }
}

/// Every rank of the second job asks every rank of the first one and checks the replies. Request and reply are as long
/// as connection messages may be, and differ for each pair and number.
fn ask_and_reply(job: usize, rank: &mut Rank, meeting: &Meeting, total: usize) -> Result<(), String> {
    let text = |e: EndpointError| e.to_string();
    let me = rank.endpoint.external_peer_address();
    meeting.addresses.lock().unwrap().insert((job, rank.rank), me);
    meeting.pass(0, total, rank)?;
    let others = meeting.addresses_of(1 - job);
    let peers = others.iter().map(|other| add(rank, other)).collect::<Result<Vec<_>, _>>()?;
    let numbered = |a: u32, b: u32, n: usize| vec![(a as usize * 31 + b as usize * 7 + n) as u8; 500];
    if job == 1 {
        for (n, (i, peer)) in (0..REQUESTS).flat_map(|n| peers.iter().enumerate().map(move |peer| (n, peer))) {
            let mut request = numbered(rank.rank, i as u32, n);
            request[..4].copy_from_slice(&[rank.rank as u8, n as u8, 0, 0]);
            rank.endpoint.dpm_send(*peer, TAG, &request).map_err(text)?;
            let reply = hear(rank)?;
            if reply != numbered(i as u32, rank.rank, n + 1) {
                return Err(format!("reply {n} of rank {i}: {:?}", &reply[..8]));
            }
        }
    } else {
        for _ in 0..REQUESTS * others.len() {
            let request = hear(rank)?;
            let (from, n) = (u32::from(request[0]), usize::from(request[1]));
            if request[4..] != numbered(from, rank.rank, n)[4..] {
                return Err(format!("request {n} of rank {from}"));
            }
            rank.endpoint.dpm_send(peers[from as usize], TAG, &numbered(rank.rank, from, n + 1)).map_err(text)?;
        }
    }
    meeting.pass(1, total, rank)?;
    while !rank.endpoint.flush().map_err(text)? {
        rank.step(Duration::from_millis(10))?;
    }
    meeting.pass(2, total, rank)
}

/// Runs two jobs. Hosts with the same name are one host.
fn meet(layouts: [(&[usize], &[u32]); 2], settings: &Settings) {
    let layouts = layouts.map(|(ranks, names)| Layout::blocks(ranks).named(names));
    let (meeting, total) = (Meeting::default(), layouts.iter().map(Layout::size).sum());
    std::thread::scope(|scope| {
        for (job, layout) in layouts.iter().enumerate() {
            let meeting = &meeting;
            scope.spawn(move || run(layout, settings, |rank| ask_and_reply(job, rank, meeting, total)));
        }
    });
}

fn separate() -> Settings {
    settings().with(|s| s.links.shortcuts = Shortcuts::NONE)
}

#[test]
fn jobs_on_the_same_hosts() {
    meet([(&[1, 1], &[1, 2]), (&[1, 1], &[1, 2])], &separate());
    meet([(&[1, 2, 1, 1], &[1, 2, 3, 4]), (&[1, 1, 2, 1], &[4, 2, 3, 1])], &separate());
}

#[test]
fn the_ring_of_the_first_job_carries_messages_of_a_job_on_one_of_its_hosts() {
    meet([(&[1, 1, 1, 1], &[1, 2, 3, 4]), (&[2], &[3])], &separate());
    meet([(&[2], &[2]), (&[1, 1], &[1, 2])], &separate());
}

#[test]
fn rings_that_retransmit_and_reroute() {
    let settings = separate().with(|s| s.ring.reliability = Reliability::Retry);
    meet([(&[1, 1, 1], &[1, 2, 3]), (&[1, 1], &[3, 1])], &settings);
}

/// A gateway of the other job is found, but that job has no rank on the process's host.
#[test]
fn a_process_that_no_gateway_reaches_is_lost() {
    let (meeting, layouts) = (Meeting::default(), [[1, 2], [2, 3]].map(|names| Layout::blocks(&[1, 1]).named(&names)));
    std::thread::scope(|scope| {
        for (job, layout) in layouts.iter().enumerate() {
            let meeting = &meeting;
            scope.spawn(move || {
                run(layout, &separate(), |rank| {
                    let me = rank.endpoint.external_peer_address();
                    meeting.addresses.lock().unwrap().insert((job, rank.rank), me);
                    meeting.pass(0, 4, rank)?;
                    let other = meeting.addresses_of(1 - job)[0];
                    let mut elsewhere = other;
                    elsewhere.place.machine += 1;
                    // Only host 2 has a gateway of the other job.
                    if layout.names[rank.rank as usize] == 2 {
                        let peer = add(rank, &elsewhere)?;
                        loss_of(rank, peer)?;
                        // Otherwise the loss is reported again.
                        rank.endpoint.drop_peer(peer);
                    }
                    let mut nowhere = elsewhere;
                    (nowhere.place.job, nowhere.mailbox.token) = (1, 1);
                    let peer = add(rank, &nowhere)?;
                    let loss = loss_of(rank, peer)?;
                    if !loss.to_string().contains("cannot reach") {
                        return Err(loss.to_string());
                    }
                    rank.endpoint.drop_peer(peer);
                    meeting.pass(1, 4, rank)
                })
            });
        }
    });
}

/// Polls until the loss of a peer is reported; other events are of no interest.
fn loss_of(rank: &mut Rank, peer: u32) -> Result<PeerLoss, String> {
    loop {
        if let Some(Event::Lost(loss)) = rank.step(Duration::from_millis(50))? {
            if loss.rank() == peer {
                return Ok(loss);
            }
        }
    }
}

/// The links of host 1 go down, over which the first job's ring carries messages to the second job on host 3.
#[test]
fn both_jobs_learn_that_the_ring_between_them_is_cut() {
    let (meeting, layouts) = (Meeting::default(), [&[1, 2, 3][..], &[3]]);
    let layouts = layouts.map(|names| Layout::blocks(&vec![1; names.len()]).named(names));
    std::thread::scope(|scope| {
        for (job, layout) in layouts.iter().enumerate() {
            let meeting = &meeting;
            scope.spawn(move || {
                run(layout, &separate(), |rank| {
                    let text = |e: EndpointError| e.to_string();
                    let me = rank.endpoint.external_peer_address();
                    meeting.addresses.lock().unwrap().insert((job, rank.rank), me);
                    meeting.pass(0, 4, rank)?;
                    let first = rank.rank == 0;
                    let peer = match first {
                        true => Some(add(rank, &meeting.addresses_of(1 - job)[0])?),
                        false => None,
                    };
                    match (job, peer) {
                        (0, Some(peer)) => {
                            rank.endpoint.dpm_send(peer, TAG, b"request").map_err(text)?;
                            assert_eq!(hear(rank)?, b"reply");
                        }
                        (1, Some(peer)) => {
                            assert_eq!(hear(rank)?, b"request");
                            rank.endpoint.dpm_send(peer, TAG, b"reply").map_err(text)?;
                        }
                        _ => {}
                    }
                    meeting.pass(1, 4, rank)?;
                    let down: &[Side] = match (job, rank.rank) {
                        (0, 0) => &Side::BOTH,
                        (0, 1) => &[Side::Left],
                        (0, 2) => &[Side::Right],
                        _ => &[],
                    };
                    down.iter().for_each(|side| rank.endpoint.members().set_link(*side, LinkState::Down));
                    if let Some(peer) = peer {
                        loss_of(rank, peer)?;
                        rank.endpoint.drop_peer(peer);
                    }
                    meeting.stages[2].fetch_add(1, Ordering::SeqCst);
                    while meeting.stages[2].load(Ordering::SeqCst) < 4 {
                        rank.step(Duration::from_millis(10))?;
                    }
                    // Other losses may be reported, too.
                    for _ in 0..100 {
                        rank.step(Duration::from_millis(1))?;
                    }
                    Ok(())
                })
            });
        }
    });
}
