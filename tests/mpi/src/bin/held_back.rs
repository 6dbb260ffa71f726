//! Flow control of unexpected messages: `held_back MODE [MESSAGES]`, with `NTBRING_UNEXPECTED` set to a few MiB.
//!
//! | MODE | description |
//! |---|---|
//! | `asleep` | the last rank floods rank 0, which is not in MPI, and then waits for another rank: rank 0's memory
//! stays bounded, and forwarding by its host continues |
//! | `behind` | rank 0 receives the latest message first: by its tag, then after a probe, then in a barrier |
//! | `circle` | every rank sends all its messages to the next before it receives any |
//! | `empty` | messages without payload, which cost memory, too |
//! | `sync` | synchronous messages among the others |
//! | `beside` | while its messages are held back, the sender accesses a window of the receiver and gets the replies |
//! | `offered` | a large message that was matched before its sender began to flood arrives while messages are held back
//! |
//! | `both` | two ranks hold back messages for each other, and each sends a synchronous one that the other waits for |

use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::traits::*;
use ntbring_mpi_tests::counters::Session;
use ntbring_mpi_tests::window::{op, row, Window};
use ntbring_mpi_tests::{arg, filled, resident, verify, Job};

const SIZE: usize = 1024;
const DATA: i32 = 3;
const LAST: i32 = 4;
const GO: i32 = 5;

/// Returns the configured limit in bytes.
fn limit() -> usize {
    let text = std::env::var("NTBRING_UNEXPECTED").expect("NTBRING_UNEXPECTED is set");
    text.strip_suffix('M').and_then(|mib| mib.parse::<usize>().ok()).expect("so many MiB") << 20
}

/// Returns true if every message is sent by rendezvous: then a blocking sender has at most one message in transit.
fn all_are_offered() -> bool {
    std::env::var("NTBRING_EAGER_MAX").is_ok_and(|max| max == "0")
}

/// Returns a message that contains its number.
fn message(number: u64, from: i32, to: i32) -> Vec<u8> {
    let mut bytes = filled(from, to, DATA, SIZE);
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn receive_in_order(job: &Job, from: i32, messages: u64) {
    let mut into = vec![0_u8; SIZE];
    for number in 0..messages {
        job.world.process_at_rank(from).receive_into_with_tag(&mut into[..], DATA);
        assert_eq!(into[..8], number.to_le_bytes(), "message {number} from {from}");
    }
    into[..8].copy_from_slice(&filled(from, job.rank, DATA, SIZE)[..8]);
    verify(&into, from, job.rank, DATA);
}

fn asleep(job: &Job, messages: u64) {
    let (flooder, helper) = (job.size - 1, 1);
    if job.rank == flooder {
        let to = job.world.process_at_rank(0);
        for number in 0..messages {
            to.send_with_tag(&message(number, flooder, 0)[..], DATA);
        }
    } else if job.rank == 0 {
        let before = resident();
        std::thread::sleep(Duration::from_millis(500));
        // From now on it is in MPI and waits for other ranks than the flooder.
        if helper != flooder {
            let big = filled(helper, 0, LAST, 3 << 20);
            let mut into = vec![0_u8; big.len()];
            job.world.process_at_rank(helper).receive_into_with_tag(&mut into[..], LAST);
            assert!(into == big, "a large message beside a flood");
            job.world.process_at_rank(helper).synchronous_send_with_tag(&into[..1], GO);
        }
        let until = Instant::now() + Duration::from_millis(500);
        while Instant::now() < until {
            // No rank sends this.
            assert!(job.world.process_at_rank(0).immediate_probe_with_tag(GO).is_none());
        }
        let (grown, allowed) = (resident().saturating_sub(before), limit() + (8 << 20));
        assert!(grown <= allowed, "{grown} bytes were taken, at most {allowed} are allowed");
        receive_in_order(job, flooder, messages);
    } else if job.rank == helper {
        let big = filled(helper, 0, LAST, 3 << 20);
        job.world.process_at_rank(0).send_with_tag(&big[..], LAST);
        job.world.process_at_rank(0).receive_into_with_tag(&mut [0_u8][..], GO);
    }
}

fn behind(job: &Job, messages: u64) {
    let sender = job.size - 1;
    for round in 0..3 {
        if job.rank == sender {
            let to = job.world.process_at_rank(0);
            let all: Vec<Vec<u8>> = (0..messages).map(|number| message(number, sender, 0)).collect();
            mpi::request::multiple_scope(messages as usize + 1, |scope, requests| {
                for bytes in &all {
                    requests.add(to.immediate_send_with_tag(scope, &bytes[..], DATA));
                }
                requests.add(to.immediate_send_with_tag(scope, &[9_u8; 5][..], LAST));
                if round == 2 {
                    job.world.barrier();
                }
                requests.wait_all(&mut Vec::new());
            });
        } else if job.rank == 0 {
            let from = job.world.process_at_rank(sender);
            let mut last = [0_u8; 5];
            match round {
                0 => drop(from.receive_into_with_tag(&mut last[..], LAST)),
                1 => {
                    while job.world.any_process().immediate_probe_with_tag(LAST).is_none() {}
                    from.receive_into_with_tag(&mut last[..], LAST);
                }
                _ => {
                    job.world.barrier();
                    from.receive_into_with_tag(&mut last[..], LAST);
                }
            }
            assert_eq!(last, [9; 5], "what was sent last, in round {round}");
            receive_in_order(job, sender, messages);
        } else if round == 2 {
            job.world.barrier();
        }
        job.world.barrier();
    }
}

fn circle(job: &Job, messages: u64) {
    let (to, from) = (job.ahead(1), job.ahead(-1));
    for number in 0..messages {
        job.world.process_at_rank(to).send_with_tag(&message(number, job.rank, to)[..], DATA);
    }
    receive_in_order(job, from, messages);
}

fn empty(job: &Job, messages: u64) {
    let sender = job.size - 1;
    if job.rank == sender {
        for _ in 0..messages {
            job.world.process_at_rank(0).send_with_tag::<[u8]>(&[], DATA);
        }
    } else if job.rank == 0 {
        let before = resident();
        std::thread::sleep(Duration::from_millis(500));
        // One poll receives few messages; 500 ms in MPI receive all that have arrived.
        let until = Instant::now() + Duration::from_millis(500);
        while Instant::now() < until {
            assert!(job.world.process_at_rank(0).immediate_probe_with_tag(GO).is_none());
        }
        let (grown, allowed) = (resident().saturating_sub(before), limit() + (8 << 20));
        assert!(grown <= allowed, "{grown} bytes were taken, at most {allowed} are allowed");
        for _ in 0..messages {
            job.world.process_at_rank(sender).receive_into_with_tag::<[u8]>(&mut [], DATA);
        }
    }
}

fn sync(job: &Job, messages: u64) {
    let sender = job.size - 1;
    if job.rank == sender {
        let to = job.world.process_at_rank(0);
        for number in 0..messages {
            match number % 1000 {
                // There is no room for that many.
                999 => to.synchronous_send_with_tag(&message(number, sender, 0)[..], DATA),
                _ => to.send_with_tag(&message(number, sender, 0)[..], DATA),
            }
        }
    } else if job.rank == 0 {
        std::thread::sleep(Duration::from_millis(500));
        receive_in_order(job, sender, messages);
    }
}

fn beside(job: &Job, messages: u64) {
    let mut window = Window::new(job, 2);
    // Not a neighbour, if there are other ranks.
    let sender = job.size / 2;
    if job.rank == sender {
        let to = job.world.process_at_rank(0);
        let all: Vec<Vec<u8>> = (0..messages).map(|number| message(number, sender, 0)).collect();
        mpi::request::multiple_scope(messages as usize, |scope, requests| {
            for bytes in &all {
                requests.add(to.immediate_send_with_tag(scope, &bytes[..], DATA));
            }
            for turn in 0..100 {
                let value = [turn];
                window.put(&value, row(1), 0, 0, row(1));
                assert_eq!(window.fetch(op("sum"), 1, 0, 1), turn);
                window.flush(0);
            }
            // The receiver continues only when it has received the last of them.
            requests.wait_all(&mut Vec::new());
        });
    } else if job.rank == 0 {
        while window.own(0) < 99 || window.own(1) < 100 {
            // No rank sends this.
            assert!(job.world.process_at_rank(0).immediate_probe_with_tag(GO).is_none());
        }
        receive_in_order(job, sender, messages);
    }
    job.world.barrier();
    window.unlock_all();
}

fn offered(job: &Job, messages: u64) {
    let mut window = Window::new(job, 1);
    // Not a neighbour, if there are other ranks.
    let sender = job.size / 2;
    let big = filled(sender, 0, LAST, 8 << 20);
    if job.rank == sender {
        let to = job.world.process_at_rank(0);
        let all: Vec<Vec<u8>> = (0..messages).map(|number| message(number, sender, 0)).collect();
        mpi::request::scope(|large| {
            let sending = to.immediate_send_with_tag(large, &big[..], LAST);
            // A receiver of this message has matched all earlier ones.
            to.send_with_tag(&0_u8, GO);
            to.receive_with_tag::<u8>(GO);
            mpi::request::multiple_scope(messages as usize, |scope, requests| {
                for bytes in &all {
                    requests.add(to.immediate_send_with_tag(scope, &bytes[..], DATA));
                }
                sending.wait();
                assert!(!requests.test_all(&mut Vec::new()), "a message without a receive was sent");
                window.put(&[1], row(1), 0, 0, row(1));
                window.flush(0);
                requests.wait_all(&mut Vec::new());
            });
        });
    } else if job.rank == 0 {
        let from = job.world.process_at_rank(sender);
        let mut into = vec![0_u8; big.len()];
        mpi::request::scope(|scope| {
            let receiving = from.immediate_receive_into_with_tag(scope, &mut into[..], LAST);
            from.receive_with_tag::<u8>(GO);
            from.send_with_tag(&0_u8, GO);
            // The flood begins while most of the large message may still be in transit.
            std::thread::sleep(Duration::from_millis(500));
            receiving.wait();
        });
        assert!(into == big, "a large message ahead of a flood");
        // Its sender knows that, too, before any message of the flood is received.
        while window.own(0) < 1 {
            assert!(job.world.process_at_rank(0).immediate_probe_with_tag(GO).is_none());
        }
        receive_in_order(job, sender, messages);
    }
    job.world.barrier();
    window.unlock_all();
}

fn both(job: &Job, messages: u64) {
    let half = job.size / 2;
    let other = if job.rank < half { job.rank + half } else { job.rank - half };
    // If the number of ranks is odd, one rank has no partner.
    if job.rank < 2 * half {
        let partner = job.world.process_at_rank(other);
        let all: Vec<Vec<u8>> = (0..messages).map(|number| message(number, job.rank, other)).collect();
        let mut last = [0_u8; 5];
        mpi::request::multiple_scope(messages as usize, |scope, requests| {
            mpi::request::scope(|ready| {
                let receiving = partner.immediate_receive_into_with_tag(ready, &mut last[..], LAST);
                for bytes in &all {
                    requests.add(partner.immediate_send_with_tag(scope, &bytes[..], DATA));
                }
                partner.synchronous_send_with_tag(&[9_u8; 5][..], LAST);
                receiving.wait();
            });
            receive_in_order(job, other, messages);
            requests.wait_all(&mut Vec::new());
        });
        assert_eq!(last, [9; 5], "what was sent last");
    }
}

fn main() {
    let job = Job::start("held_back");
    job.needs_ranks(2);
    let (what, messages) = (arg(1, "asleep".to_string()), arg(2, 20_000_u64));
    let session = Session::new();
    let held = session.counter("msgs_held");
    job.world.barrier();
    match what.as_str() {
        "asleep" => asleep(&job, messages),
        "behind" => behind(&job, messages),
        // Such sends would deadlock.
        "circle" if all_are_offered() => {}
        "circle" => circle(&job, messages),
        "empty" => empty(&job, messages),
        "sync" => sync(&job, messages),
        "beside" => beside(&job, messages),
        "offered" => offered(&job, messages),
        "both" => both(&job, messages),
        _ => panic!("there is no \"{what}\""),
    }
    job.world.barrier();
    let (mine, mut all) = (session.read(&[held]), 0_u64);
    job.world.all_reduce_into(&mine, &mut all, SystemOperation::sum());
    assert!(all > 0 || all_are_offered(), "no message was held back");
    drop(session);
    job.finish();
}
