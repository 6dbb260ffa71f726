//! Tests of the lanes, in files by what they pit them against:
//!
//! | file | holds |
//! |---|---|
//! | `faults` | links and ends that break one rule each: the other tests must notice |
//! | `boards` | boards: all interleavings of a few turns, and whatever a peer may write |
//! | `model` | all interleavings of a small lane, by loom (`--cfg loom`) |
//! | `laps` | pieces that turn back early |
//! | `link` | what delays, splits and reorders writes, step by step |
//! | `room` | all states of the smallest lane |
//! | `whole` | entries put in at once, among others |
//! | `simulation` | random traffic against a `VecDeque`, over a link that delays, splits and reorders |
//! | `damage` | checked lanes over links that lose, change, double and delay |
//! | `threads` | two real threads, over `ntb::weak` |
//! | `hostile` | peers that write whatever they like |
//! | `injected` | links that flip, lose, double and delay (`ntb::fault`) |

use super::{Consumer, Corrupt, Entry, Taken};

mod boards;
mod faults;

#[cfg(loom)]
mod model;

#[cfg(not(loom))]
mod damage;
#[cfg(not(loom))]
mod hostile;
#[cfg(not(loom))]
mod injected;
#[cfg(not(loom))]
mod laps;
#[cfg(not(loom))]
mod link;
#[cfg(not(loom))]
mod room;
#[cfg(not(loom))]
mod simulation;
#[cfg(not(loom))]
mod threads;
#[cfg(not(loom))]
mod whole;

/// The next entry as the short ways take it, and as the long way does if it is not of this kind.
fn take_by_kind(consumer: &mut Consumer, kind: u8) -> Result<Option<Entry>, Corrupt> {
    if kind % 2 == 1 {
        let know = |found, len, meta| (found == kind).then_some((found, len, meta));
        if let Some((entry, known)) = consumer.take_known(know) {
            assert_eq!((entry.kind, entry.len, entry.meta), known);
            return Ok(Some(entry));
        }
    }
    assert!(!matches!(consumer.take_kind(kind, |_, _| false), Taken::Entry(_)));
    match consumer.take_kind(kind, |_, _| true) {
        Taken::Nothing => Ok(None),
        Taken::Entry(entry) => {
            assert_eq!(entry.kind, kind);
            Ok(Some(entry))
        }
        Taken::Other => consumer.take(),
    }
}
