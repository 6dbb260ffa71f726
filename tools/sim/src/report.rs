//! The results of a simulation.

use super::agenda::{seconds, us, Time};
use serde::Serialize;

/// Results of a run. The same plan gives the same results, byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Number of messages that were sent and, since the run has ended, delivered.
    pub messages: u64,
    /// Bytes passed to the network.
    pub bytes_in: u64,
    /// Bytes that arrived at their destinations.
    pub bytes_out: u64,
    /// Number of messages that arrived before an earlier one of their flow.
    pub overtaken: u64,
    /// Latency of the measured messages: from sending to arrival, or to the time when the sender knows of it, in us.
    pub latency_us: Latency,
    /// Times at which ranks had finished a collective, in us.
    pub collective_us: Latency,
    /// Bytes per second delivered in the measured time, over all hosts.
    pub throughput: f64,
    /// The same for each sending host, on average.
    pub per_sender: f64,
    /// The same for each host, by its number.
    #[serde(skip)]
    pub by_sender: Vec<f64>,
    /// Duration in seconds of virtual time.
    pub seconds: f64,
    /// Number of events processed.
    pub events: u64,
    /// Number of packets over links, each counted at every hop.
    pub packets: u64,
    /// Share of the time for which the busiest direction of a link was busy.
    pub busiest: f64,
    /// Number of times that a packet waited for room in a lane.
    pub waits: u64,
    /// Number of times that a head was returned.
    pub heads: u64,
    /// Number of packets that a faulty link has lost, or whose next link was down.
    pub lost: u64,
    /// Number of packets that senders have retransmitted.
    pub resent: u64,
    /// Number of times that the route between two hosts changed.
    pub reroutes: u64,
}

/// A distribution of times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half of the times are at most this.
    pub median: f64,
    /// 99 per cent of the times are at most this.
    pub p99: f64,
    /// The largest time.
    pub max: f64,
}

impl Latency {
    /// Computes the distribution of these times, which it sorts.
    pub(super) fn of(times: &mut [Time]) -> Latency {
        times.sort_unstable();
        let Some(last) = times.last() else { return Latency::default() };
        let at = |share: f64| micros(times[((times.len() - 1) as f64 * share) as usize]);
        let sum: f64 = times.iter().map(|time| micros(*time)).sum();
        Latency { mean: sum / times.len() as f64, median: at(0.5), p99: at(0.99), max: micros(*last) }
    }
}

fn micros(time: Time) -> f64 {
    time as f64 / us(1) as f64
}

/// Counters of a simulation.
#[derive(Default)]
pub(super) struct Tally {
    pub messages: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub delivered: u64,
    pub overtaken: u64,
    /// Latencies of the measured messages.
    pub latencies: Vec<Time>,
    /// Times at which ranks had finished a collective.
    pub ends: Vec<Time>,
    /// Bytes delivered in the measured time, by sender.
    pub measured: Vec<u64>,
    /// Beginning and end of the measured time; the end is only set if it precedes the end of the run.
    pub from: Time,
    pub until: Option<Time>,
    /// Time of the latest delivery.
    pub last: Time,
    pub packets: u64,
    pub waits: u64,
    pub heads: u64,
    pub lost: u64,
    pub resent: u64,
    pub reroutes: u64,
}

impl Tally {
    /// Returns true if a time belongs to the measured time.
    pub fn counts(&self, at: Time) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }

    /// Returns the results at the end.
    pub fn report(mut self, now: Time, events: u64, senders: usize, busiest: Time) -> Report {
        let span = seconds(self.until.unwrap_or(self.last).max(self.from + 1) - self.from);
        let by_sender: Vec<f64> = self.measured.iter().map(|bytes| *bytes as f64 / span).collect();
        let throughput = self.measured.iter().sum::<u64>() as f64 / span;
        Report {
            messages: self.messages,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            overtaken: self.overtaken,
            latency_us: Latency::of(&mut self.latencies),
            collective_us: Latency::of(&mut self.ends),
            throughput,
            per_sender: throughput / senders.max(1) as f64,
            by_sender,
            seconds: seconds(now),
            events,
            packets: self.packets,
            busiest: busiest as f64 / self.last.max(1) as f64,
            waits: self.waits,
            heads: self.heads,
            lost: self.lost,
            resent: self.resent,
            reroutes: self.reroutes,
        }
    }
}
