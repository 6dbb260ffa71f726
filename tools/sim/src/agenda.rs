//! The event queue of a simulation.

use ntbring_ntb::timing::TICKS_PER_NS;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Virtual time in the unit of link models: sixteenths of a nanosecond.
pub type Time = u64;

/// Converts nanoseconds to virtual time.
pub const fn ns(count: u64) -> Time {
    count * TICKS_PER_NS
}

/// Converts microseconds to virtual time.
pub const fn us(count: u64) -> Time {
    ns(1000 * count)
}

/// Converts milliseconds to virtual time.
pub const fn ms(count: u64) -> Time {
    us(1000 * count)
}

/// Converts a time to seconds.
pub fn seconds(time: Time) -> f64 {
    time as f64 / TICKS_PER_NS as f64 * 1e-9
}

/// Returns the time that `bytes` take at `rate` bytes per second, rounded up.
pub fn time_for(bytes: u64, rate: u64) -> Time {
    (u128::from(bytes) * u128::from(ns(1_000_000_000))).div_ceil(u128::from(rate.max(1))) as Time
}

/// An event with its time. Events at the same time happen in the order in which they were entered, so that a run is
/// reproducible.
struct Item<E> {
    at: Time,
    number: u64,
    event: E,
}

impl<E> PartialEq for Item<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.number) == (other.at, other.number)
    }
}

impl<E> Eq for Item<E> {}

impl<E> PartialOrd for Item<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Item<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// The queue of future events, and the present time.
pub struct Agenda<E> {
    heap: BinaryHeap<Reverse<Item<E>>>,
    now: Time,
    entered: u64,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Agenda { heap: BinaryHeap::new(), now: 0, entered: 0 }
    }
}

impl<E> Agenda<E> {
    /// Returns the time of the latest event that was taken.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of events that were ever entered.
    pub fn entered(&self) -> u64 {
        self.entered
    }

    /// Enters an event at a time that is not in the past.
    pub fn at(&mut self, at: Time, event: E) {
        self.entered += 1;
        self.heap.push(Reverse(Item { at: at.max(self.now), number: self.entered, event }));
    }

    /// Enters an event that happens after a delay.
    pub fn after(&mut self, time: Time, event: E) {
        self.at(self.now + time, event);
    }

    /// Takes the next event and advances the present to its time.
    pub fn take(&mut self) -> Option<E> {
        let Reverse(item) = self.heap.pop()?;
        self.now = item.at;
        Some(item.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_and_then_as_entered() {
        let mut agenda = Agenda::default();
        agenda.at(5, 'c');
        agenda.at(3, 'a');
        agenda.at(5, 'd');
        agenda.at(3, 'b');
        let mut order = String::new();
        while let Some(event) = agenda.take() {
            order.push(event);
        }
        assert_eq!((order.as_str(), agenda.now()), ("abcd", 5));
        agenda.at(1, 'e');
        assert_eq!((agenda.take(), agenda.now()), (Some('e'), 5));
    }

    #[test]
    fn rates_are_times() {
        assert_eq!(time_for(6000, 6_000_000_000), ns(1000));
        assert_eq!(seconds(ms(2)), 0.002);
    }
}
