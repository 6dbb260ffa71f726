//! Ranks that compute, and the asynchronous-progress thread that continues large transfers for them.

use super::*;
use ntbring_endpoint::wire::Packet;
use ntbring_endpoint::{Accepted, Event};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_queue::Reliability;
use std::sync::atomic::{AtomicU64, Ordering};

const SIZE: usize = 3 << 20;

/// Returns settings for each transfer method of payloads.
fn routes() -> [Settings; 4] {
    let streamed = settings().with(|s| {
        s.limits.single_copy = SingleCopy::Never;
        s.limits.split_copy = SplitCopy::Never;
    });
    [
        streamed.clone().with(|s| s.ring.reliability = Reliability::Retry),
        settings().with(|s| {
            s.limits.single_copy = SingleCopy::Above(0);
            s.limits.split_copy = SplitCopy::Never;
        }),
        settings().with(|s| {
            s.limits.single_copy = SingleCopy::Above(0);
            s.limits.split_copy = SplitCopy::From(2);
        }),
        streamed,
    ]
}

/// Ranks call at arbitrary times, and the progress thread may run between any two calls: in the middle of an arrival,
/// before the rank knows of an offer, after it has seen the end of a transfer.
#[test]
fn messages_of_all_kinds_come_once_and_in_order_beside_progress_threads() {
    for (n, settings) in routes().into_iter().enumerate() {
        for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[2, 1, 1]), Layout::blocks(&[1; 4])] {
            let plan = all_kinds(n as u64, 50, 300 << 10);
            let overlaps = AtomicU64::new(0);
            run(&layout, &settings, |rank| {
                rank.progress_thread = Some(fastrand::Rng::with_seed(u64::from(rank.rank)));
                exchange(rank, n as u64, &plan)?;
                overlaps.fetch_add(rank.overlaps, Ordering::Relaxed);
                Ok(())
            });
            assert!(overlaps.into_inner() > 0, "no progress thread had anything to do, {layout:?}");
        }
    }
}

fn message<'a>(dest: u32, header: &'a [u8], payload: &[u8], cookie: usize) -> Message<'a> {
    // SAFETY: the caller keeps the payload allocated until the library gives it back.
    let payload = Payload::Contiguous(unsafe { ForeignBytes::new(payload.as_ptr(), payload.len()) });
    Message { dest, head: Head { handler: 1 }, header, payload, cookie }
}

fn small(rank: &mut Rank, dest: u32, name: u8) -> Result<(), String> {
    rank.endpoint.send(message(dest, &[name; 8], &[], 0)).map(drop).map_err(|e| e.to_string())
}

/// Returns the contents of events as text: the name of a small message, or the outcome of a payload.
fn names(rank: &mut Rank, count: usize) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    while names.len() < count {
        names.push(match rank.event()? {
            Event::Arrival(a) => {
                // SAFETY: all headers in this test have eight bytes and stay readable until their token is released.
                let name = unsafe { *a.header.0 };
                rank.endpoint.release(a.token, 0).map_err(|e| e.to_string())?;
                format!("{name}")
            }
            Event::Fetched { cookie } => format!("fetched {cookie}"),
            Event::Taken { cookie } => format!("taken {cookie}"),
            event => return Err(unexpected(&event)),
        });
    }
    names.sort();
    Ok(names)
}

/// Receiver and sender of a payload only compute once they have agreed on its destination.
#[test]
fn a_payload_that_was_accepted_comes_though_nobody_polls() {
    for settings in routes() {
        // Neighbours, and hosts at a distance of two.
        for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[1; 4])] {
            let (giver, taker) = (0, layout.size() as u32 / 2);
            run(&layout, &settings, |rank| match rank.rank {
                r if r == giver => give(rank, taker),
                r if r == taker => take(rank, giver),
                _ => (0..3).try_for_each(|_| rank.barrier()),
            });
        }
    }
}

fn give(rank: &mut Rank, taker: u32) -> Result<(), String> {
    let payload = vec![7; SIZE];
    rank.endpoint.offer(message(taker, &[0; 8], &payload, 5)).map_err(|e| e.to_string())?;
    rank.barrier()?;
    rank.carry_all()?;
    rank.barrier()?;
    // From a rank that has not seen the end of its payload, to one that has not polled since.
    small(rank, taker, 1)?;
    small(rank, taker, 2)?;
    rank.barrier()?;
    assert_eq!(names(rank, 1)?, ["taken 5"]);
    Ok(())
}

fn take(rank: &mut Rank, giver: u32) -> Result<(), String> {
    let mut room = vec![0; SIZE];
    let Event::Arrival(a) = rank.event()? else { return Err("no offer".into()) };
    let Packet::Rts { offer, .. } = a.packet else { return Err("another packet".into()) };
    // SAFETY: the room stays allocated until the payload has arrived.
    let place = unsafe { ForeignRoom::new(room.as_mut_ptr(), SIZE) };
    let accepted = rank.endpoint.accept(giver, offer, Some(place), SIZE as u64, 6).map_err(|e| e.to_string())?;
    assert_eq!(accepted, Accepted::Pending);
    // An arrival that the rank has not released must not block the progress thread.
    for _ in 0..1000 {
        rank.carry_on();
    }
    rank.endpoint.release(a.token, 0).map_err(|e| e.to_string())?;
    rank.barrier()?;
    rank.carry_all()?;
    assert!(room.iter().all(|&byte| byte == 7));
    rank.barrier()?;
    rank.barrier()?;
    assert_eq!(names(rank, 3)?, ["1", "2", "fetched 6"]);
    Ok(())
}

/// A message sent after a payload is not seen before it, even if the progress thread has received both. (Cancelling a
/// send relies on it.)
#[test]
fn a_payload_that_went_to_its_place_is_told_of_before_what_was_sent_later() {
    run(&Layout::blocks(&[1, 1]), &routes()[3], |rank| {
        if rank.rank == 0 {
            let payload = vec![9; SIZE];
            let sent = rank.endpoint.send(message(1, &[0; 8], &payload, 5)).map_err(|e| e.to_string())?;
            rank.barrier()?;
            assert_eq!(sent, Sent::Pending);
            assert!(matches!(rank.event()?, Event::Sent { cookie: 5, .. }));
            small(rank, 1, 3)?;
            return rank.barrier();
        }
        let mut room = vec![0; SIZE];
        let Event::Arrival(a) = rank.event()? else { return Err("nothing begins".into()) };
        // SAFETY: the room stays allocated until the payload has arrived.
        let place = unsafe { ForeignRoom::new(room.as_mut_ptr(), SIZE) };
        rank.endpoint.place_at(a.token, place);
        rank.endpoint.release(a.token, 6).map_err(|e| e.to_string())?;
        rank.barrier()?;
        rank.carry_all()?;
        assert!(room.iter().all(|&byte| byte == 9));
        rank.barrier()?;
        // The message may have been received already.
        for _ in 0..1000 {
            rank.endpoint.carry_on();
        }
        assert!(matches!(rank.event()?, Event::Fetched { cookie: 6 }));
        assert_eq!(names(rank, 1)?, ["3"]);
        Ok(())
    });
}

/// An entry that the rank must process itself waits for the rank, and so does everything behind it in its lane.
#[test]
fn what_is_for_the_rank_is_kept_for_it() {
    let streamed = routes()[3].clone();
    run(&Layout::blocks(&[1, 1]), &streamed, |rank| {
        let (me, other) = (rank.rank, 1 - rank.rank);
        if me == 0 {
            let payload = vec![9; SIZE];
            rank.endpoint.offer(message(1, &[0; 8], &payload, 5)).map_err(|e| e.to_string())?;
            small(rank, other, 3)?;
            small(rank, other, 4)?;
            rank.barrier()?;
            // The CTS has arrived: as many chunks follow as there is room for.
            for _ in 0..1000 {
                assert!(rank.poll()?.is_none());
            }
            rank.barrier()?;
            rank.barrier()?;
            assert_eq!(names(rank, 1)?, ["taken 5"]);
            return Ok(());
        }
        let mut room = vec![0; SIZE];
        let Event::Arrival(a) = rank.event()? else { return Err("no offer".into()) };
        let Packet::Rts { offer, .. } = a.packet else { return Err("another packet".into()) };
        rank.endpoint.release(a.token, 0).map_err(|e| e.to_string())?;
        // SAFETY: the room stays allocated until the payload has arrived.
        let place = unsafe { ForeignRoom::new(room.as_mut_ptr(), SIZE) };
        rank.endpoint.accept(0, offer, Some(place), SIZE as u64, 6).map_err(|e| e.to_string())?;
        rank.barrier()?;
        rank.barrier()?;
        // The first of the two messages is kept, and no part of the payload, which is behind it, is received.
        rank.carry_some()?;
        for _ in 0..1000 {
            assert!(!rank.carry_on());
        }
        assert!(rank.endpoint.has_bulk() && room.iter().all(|&byte| byte == 0));
        rank.barrier()?;
        assert_eq!(names(rank, 3)?, ["3", "4", "fetched 6"]);
        Ok(())
    });
}
