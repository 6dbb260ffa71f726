//! A ring of four hosts within one process: every rank is a thread, and sends to its neighbour and to the opposite
//! host.
//!
//!     cargo run --example ring

use ntbring_endpoint::wire::{Head, Packet};
use ntbring_endpoint::{Endpoint, Event, Message, Settings};
use ntbring_ntb::settings::Device;
use ntbring_ring::join::{Candidate, Card};
use ntbring_ring::Topology;
use ntbring_zerocopy::Payload;
use std::error::Error;
use std::sync::{Barrier, Mutex};

const HOSTS: u32 = 4;

/// The means of the four threads to exchange addresses and to wait for each other; MPI programs use the process
/// manager.
struct Job {
    cards: Mutex<Vec<Option<Card>>>,
    barrier: Barrier,
}

fn run(job: &Job, rank: u32) -> Result<(), Box<dyn Error + Send + Sync>> {
    let settings = Settings::default().with(|s| {
        s.links.device = Device::Loopback;
        s.host.shm_dir = "memfd".into();
    });
    let host_of: Vec<i32> = (0..HOSTS as i32).collect();
    let candidate = Candidate::new(Topology::new(HOSTS as usize, &host_of)?, rank, settings.clone())?;
    job.cards.lock().unwrap()[rank as usize] = Some(candidate.card());
    job.barrier.wait();
    let cards: Vec<Card> = job.cards.lock().unwrap().iter().flatten().copied().collect();
    let mut endpoint = Endpoint::new(candidate.join(&cards)?, settings)?;
    for hops in [1, 2] {
        let header = [rank as u8, hops as u8];
        let dest = (rank + hops) % HOSTS;
        let payload = Payload::NONE;
        endpoint.send(Message { dest, head: Head { handler: 1 }, header: &header, payload, cookie: 0 })?;
    }
    let mut arrived = 0;
    while arrived < 2 {
        if let Some(Event::Arrival(arrival)) = endpoint.poll()? {
            if matches!(arrival.packet, Packet::Message { .. }) {
                println!("rank {rank} has a message of rank {}", arrival.src);
                arrived += 1;
            }
            endpoint.release(arrival.token, 0)?;
        }
        std::thread::yield_now();
    }
    // A rank leaves only after all have their messages: it may forward for others.
    while !endpoint.is_flushed() {
        endpoint.poll()?;
    }
    job.barrier.wait();
    Ok(())
}

/// Runs the example.
pub fn main() {
    let job = Job { cards: Mutex::new(vec![None; HOSTS as usize]), barrier: Barrier::new(HOSTS as usize) };
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..HOSTS)
            .map(|rank| {
                scope.spawn({
                    let job = &job;
                    move || run(job, rank)
                })
            })
            .collect();
        for rank in ranks {
            rank.join().expect("no rank panics").expect("the ring works");
        }
    });
}
