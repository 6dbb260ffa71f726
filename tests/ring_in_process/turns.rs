//! Fairness among lanes that all have entries.

use super::*;
use ntbring_endpoint::Event;

/// Number of messages of the busy sender.
const MANY: usize = 200;
/// Number of empty polls after which a lane is polled less often.
const IN_VAIN: usize = 70_000;
/// Maximum number of entries of a busy lane before the others have had their turn, times two.
const SOON: usize = 64;

/// Rank 0 has received no message for a long time when rank 1 sends many and rank 2 a single one.
fn a_single_message_beside_many(header: usize) {
    let layout = Layout::blocks(&[1, 1, 1]);
    let phases = 8;
    let plan = move |src: u32, dst: u32| match (src, dst) {
        (1, 0) => vec![Shape::contiguous(header, 8); phases * MANY],
        (2, 0) => vec![Shape::contiguous(HEADER, 8); phases],
        _ => vec![],
    };
    run(&layout, &settings(), |rank| {
        let mut traffic = Traffic::new(layout.size());
        for phase in 0..phases {
            if rank.rank == 0 {
                for _ in 0..IN_VAIN + phase {
                    if rank.poll()?.is_some() {
                        return Err("something is there already".into());
                    }
                }
            }
            rank.barrier()?;
            match rank.rank {
                1 => {
                    for n in 0..MANY {
                        traffic.send(rank, 0, phase * MANY + n, plan(1, 0)[0])?;
                    }
                }
                2 => drop(traffic.send(rank, 0, phase, plan(2, 0)[0])?),
                _ => {}
            }
            rank.barrier()?;
            let expected = (phase + 1) * (MANY + 1);
            let mut before = None;
            for n in 0.. {
                if rank.rank != 0 || traffic.complete == expected {
                    break;
                }
                let event = rank.event()?;
                if matches!(&event, Event::Arrival(a) if a.src == 2) {
                    before = Some(n);
                }
                traffic.take(rank, event, &plan)?;
            }
            if rank.rank == 0 && before.is_none_or(|n| n > SOON) {
                return Err(format!("phase {phase}: {before:?} messages came before the only one of rank 2"));
            }
            rank.barrier()?;
        }
        Ok(())
    });
}

#[test]
fn many_plain_messages_leave_others_their_turn() {
    a_single_message_beside_many(HEADER);
}

/// The headers are not a whole number of words.
#[test]
fn many_other_messages_leave_others_their_turn() {
    a_single_message_beside_many(HEADER + 5);
}
