//! Outlets: each takes records out of the lanes that lead to it and carries them out, or passes them on.

use super::local_slice::LocalSlice;
use super::record::{execute, Kind, LocalLane};
use super::writer::RecordLane;
use crate::adapter::SliceUse;
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::NtbError;
use ntbring_queue::{Consumer, Entry, Producer};
use std::sync::atomic::{fence, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most records of one lane that are handled before the next lane's turn.
const BATCH: usize = 64;

/// Longest time for which the records of a writer that has ended are still handled.
pub const DRAIN: Duration = Duration::from_secs(10);

/// The place to which records go.
pub enum Target {
    /// There is no way (any more): records are lost.
    Down,
    /// The slice in a neighbour's window in which the records are carried out.
    Slice {
        /// The slice.
        slice: SliceUse,
        /// All of it.
        window: OutWindow,
    },
    /// The slice of this host in which the records are carried out.
    Local(Arc<LocalSlice>),
    /// A lane in a neighbour's window, whose agent passes the records on.
    Lane {
        /// The slice that holds the lane.
        slice: SliceUse,
        /// The producer of the lane.
        producer: Box<Producer>,
    },
}

impl Target {
    /// Returns a slice as the target.
    pub fn slice(slice: SliceUse) -> Result<Target, NtbError> {
        let window = slice.map(0, slice.range.len)?;
        Ok(Target::Slice { slice, window })
    }

    /// Returns the lane in a slice as the target; its head returns into `credit`. Fails if the slice is too small.
    pub fn lane(slice: SliceUse, credit: InWindow) -> Result<Target, NtbError> {
        let lane = slice.map(0, super::LANE)?;
        Ok(Target::Lane { slice, producer: Box::new(Producer::new(lane, credit)) })
    }
}

/// A lane from which records are taken.
pub struct Inlet {
    consumer: Consumer,
    /// The entry that is taken and not yet passed on.
    taken: Option<Entry>,
    /// The lane, if a process of this host writes it.
    local: Option<LocalLane>,
    /// The slice into which the head is returned, if a neighbour writes the lane.
    credit: Option<SliceUse>,
}

impl Inlet {
    /// Returns the reading end of the lane of a process of this host; None if the memory is too small.
    pub fn local(lane: &RecordLane) -> Option<Inlet> {
        let local = LocalLane::new(lane.memory.region().clone())?;
        let consumer = Consumer::new(InWindow::new(local.lane()), OutWindow::new(local.credit()));
        Some(Inlet { consumer, taken: None, local: Some(local), credit: None })
    }

    /// Returns the reading end of a lane in a window of this host. Its head is returned into `credit`, a slice of the
    /// writer's window.
    pub fn remote(lane: InWindow, credit: SliceUse) -> Result<Inlet, NtbError> {
        let head = credit.map(0, 64)?;
        Ok(Inlet { consumer: Consumer::new(lane, head), taken: None, local: None, credit: Some(credit) })
    }

    /// Releases the latest entry. A neighbour that may be waiting for room is woken.
    fn release(&mut self) {
        if let (true, Some(credit)) = (self.consumer.release(), &self.credit) {
            credit.ring();
        }
    }

    /// Announces that the reader sleeps, or that it does not any more.
    fn set_asleep(&self, is_asleep: bool) {
        if let Some(local) = &self.local {
            local.asleep().store(is_asleep.into(), Ordering::Relaxed);
        }
    }
}

/// Takes records out of lanes and brings them to its target, those of each lane in order.
pub struct Outlet(Mutex<State>);

struct State {
    target: Target,
    inlets: Vec<(u64, Inlet)>,
}

impl Outlet {
    /// Returns an outlet without lanes.
    pub fn new(target: Target) -> Outlet {
        Outlet(Mutex::new(State { target, inlets: Vec::new() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if records arrive.
    pub fn is_up(&self) -> bool {
        !matches!(self.state().target, Target::Down)
    }

    /// Replaces the target. Nothing is written to the old one any more when this returns.
    pub fn set_target(&self, target: Target) {
        self.state().target = target;
    }

    /// Adds a lane, with a name under which it can be removed.
    pub fn add(&self, name: u64, inlet: Inlet) {
        self.state().inlets.push((name, inlet));
    }

    /// Returns true if no record waits.
    pub fn is_drained(&self) -> bool {
        self.is_drained_of(|_| true)
    }

    /// Returns true if no record waits in the lanes whose names are `among` these.
    fn is_drained_of(&self, among: impl Fn(u64) -> bool) -> bool {
        let state = self.state();
        let mut inlets = state.inlets.iter().filter(|(name, _)| among(*name));
        matches!(state.target, Target::Down)
            || inlets.all(|(_, inlet)| inlet.taken.is_none() && !inlet.consumer.has_next())
    }

    /// Removes a lane whose writer has ended. Waits until its records have been handled, at most for [`DRAIN`].
    pub fn remove(&self, name: u64) {
        let start = Instant::now();
        while !self.is_drained_of(|other| other == name) && start.elapsed() < DRAIN {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.state().inlets.retain(|(other, _)| *other != name);
    }

    /// Handles records. Returns true if there were some.
    pub fn pump(&self) -> bool {
        let mut state = self.state();
        let State { target, inlets } = &mut *state;
        let mut has_worked = false;
        inlets.retain_mut(|(name, inlet)| match pump(inlet, target) {
            Ok(count) => {
                has_worked |= count > 0;
                true
            }
            Err(problem) => {
                log::warn!("the writes of a process are not carried out any more (lane {name:x}): {problem}");
                false
            }
        });
        if let (true, Target::Lane { slice, .. }) = (has_worked, &*target) {
            slice.ring();
        }
        has_worked
    }

    /// Announces to the writers of the lanes that the thread is about to sleep. Returns false if there is a record.
    pub fn prepare_sleep(&self) -> bool {
        let state = self.state();
        state.inlets.iter().for_each(|(_, inlet)| inlet.set_asleep(true));
        fence(Ordering::SeqCst);
        state.inlets.iter().all(|(_, inlet)| inlet.taken.is_some() || !inlet.consumer.has_next())
    }

    /// Announces that the thread does not sleep any more.
    pub fn end_sleep(&self) {
        self.state().inlets.iter().for_each(|(_, inlet)| inlet.set_asleep(false));
    }
}

/// Handles records of a lane. Returns their number. Fails if the lane holds something else.
fn pump(inlet: &mut Inlet, target: &mut Target) -> Result<usize, String> {
    for count in 0..BATCH {
        let entry = match inlet.taken.take() {
            Some(entry) => Some(entry),
            None => inlet.consumer.take().map_err(|error| error.to_string())?,
        };
        let Some(entry) = entry else { return Ok(count) };
        let kind = Kind::new(entry.kind).ok_or_else(|| format!("there is no record of kind {}", entry.kind))?;
        let records = inlet.consumer.window();
        match target {
            Target::Down => {}
            Target::Slice { slice, window } => {
                if !execute(kind, records, entry.offset, entry.len, window) {
                    return Err(format!("a record {kind:?} of {} bytes that reaches beyond the window", entry.len));
                }
                if kind == Kind::Ring {
                    slice.ring();
                }
            }
            Target::Local(slice) => {
                if !slice.execute(kind, records, entry.offset, entry.len) {
                    return Err(format!("a record {kind:?} of {} bytes that reaches beyond the slice", entry.len));
                }
            }
            // All lanes of records have the same size, so the record fits.
            Target::Lane { producer, .. } => match producer.reserve(entry.len) {
                None => {
                    inlet.taken = Some(entry);
                    return Ok(count);
                }
                Some(mut slot) => {
                    slot.write(0, records.foreign(entry.offset, entry.len));
                    slot.commit(entry.kind, entry.len, 0);
                }
            },
        }
        inlet.release();
    }
    Ok(BATCH)
}
