//! What a simulation has found out.

use super::agenda::{seconds, us, Time};
use serde::Serialize;

/// Figures of a run. The same plan gives the same figures, byte for byte.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Messages that were sent and, since the run has ended, delivered.
    pub messages: u64,
    /// Bytes given to the network,
    pub bytes_in: u64,
    /// and bytes that came out of it at their destination.
    pub bytes_out: u64,
    /// Messages that came before an earlier one of their flow.
    pub overtaken: u64,
    /// Of the messages that were measured, from when they were sent to when they had come, or to when their sender knew that, us.
    pub latency_us: Latency,
    /// Bytes delivered a second in the time that was measured, all hosts together.
    pub throughput: f64,
    /// The same for each host that sends.
    pub per_sender: f64,
    /// The same of each host, by its number.
    #[serde(skip)]
    pub by_sender: Vec<f64>,
    /// Seconds of virtual time.
    pub seconds: f64,
    /// Events that were worked off.
    pub events: u64,
    /// Packets over links, each counted at every hop.
    pub packets: u64,
    /// The busiest direction of a link was busy for this share of the time.
    pub busiest: f64,
    /// How often a packet waited for room in a lane.
    pub waits: u64,
    /// How often a head was returned.
    pub heads: u64,
    /// Packets that a faulty link has swallowed, or that found their next link down.
    pub lost: u64,
    /// Packets that senders have sent again.
    pub resent: u64,
    /// How often hosts were reached another way than before.
    pub reroutes: u64,
}

/// A distribution of times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// The arithmetic mean.
    pub mean: f64,
    /// Half of them took at most this,
    pub median: f64,
    /// 99 of 100 this,
    pub p99: f64,
    /// all of them this.
    pub max: f64,
}

impl Latency {
    /// Of these times, which are sorted for that.
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

/// What is counted while a simulation runs.
#[derive(Default)]
pub(super) struct Tally {
    pub messages: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub delivered: u64,
    pub overtaken: u64,
    /// Of messages that are measured.
    pub latencies: Vec<Time>,
    /// Bytes delivered in the time that is measured, by their sender.
    pub measured: Vec<u64>,
    /// The first and the last moment of that time, if it ends before the run does.
    pub from: Time,
    pub until: Option<Time>,
    /// The latest delivery.
    pub last: Time,
    pub packets: u64,
    pub waits: u64,
    pub heads: u64,
    pub lost: u64,
    pub resent: u64,
    pub reroutes: u64,
}

impl Tally {
    /// Whether a moment belongs to what is measured.
    pub fn counts(&self, at: Time) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }

    /// The figures, at the end.
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
