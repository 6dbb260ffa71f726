//! Tests of the lanes, one file per kind of opponent or property:
//!
//! | file | contents |
//! |---|---|
//! | `faults` | links and ends that break one rule each; the other tests must notice every one |
//! | `boards` | boards: all interleavings of a few rounds, and arbitrary writes by a peer |
//! | `copies` | entries that an engine copies, among others: copies complete late and in any order |
//! | `model` | all interleavings of a small lane, by loom (`--cfg loom`) |
//! | `link` | a simulated link that delays, splits and reorders writes, step by step |
//! | `room` | all states of the smallest lane |
//! | `whole` | entries produced in one call (`put`), among others |
//! | `simulation` | random traffic against a `VecDeque`, over a link that delays, splits and reorders |
//! | `damage` | checked lanes over links that lose, corrupt, duplicate and delay |
//! | `threads` | two real threads, over `ntbring_ntb::weak` |
//! | `hostile` | peers that write arbitrary data |
//! | `injected` | links that flip bits, lose, duplicate and delay (`ntbring_ntb::fault`) |

use super::{Consumer, Corrupt, Entry, Taken};

mod boards;
mod faults;

#[cfg(loom)]
mod model;

#[cfg(not(loom))]
mod copies;
#[cfg(not(loom))]
mod damage;
#[cfg(not(loom))]
mod hostile;
#[cfg(not(loom))]
mod injected;
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

/// Takes the next entry with the fast paths, or with `take` if it is not of this kind.
fn take_by_kind(consumer: &mut Consumer, kind: u8) -> Result<Option<Entry>, Corrupt> {
    if kind % 2 == 1 {
        let know = |found, len, meta, _: crate::Beginning<'_>| (found == kind).then_some((found, len, meta));
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
