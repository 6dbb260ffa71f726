//! Measuring a link: two agents measure it through a few words at the start of their windows, beside the traffic of
//! jobs, and each agent measures the rate of its own writes whenever the link has come up.
//!
//! | file | holds |
//! |---|---|
//! | `area` | the words and the data through which two agents measure |
//! | `answer` | what this host does when its neighbour measures |
//!
//! Nothing is read across the link: a time ends when an answer of the neighbour has arrived.

mod answer;
mod area;

pub(crate) use answer::Answering;
pub(crate) use area::{Area, AREA};

use crate::adapter::Adapter;
use crate::chip::LinkStatus;
use area::{REQUEST_SPIN, REQUEST_STREAM};
use ntbring_memory::Mapping;
use serde::{Deserialize, Serialize};
use std::sync::TryLockError;
use std::time::Duration;

/// Number of round trips whose median counts.
const ROUNDS: usize = 101;
/// Number of round trips in which the neighbour's thread sleeps until its adapter interrupts.
const DOORBELL_ROUNDS: usize = 21;
/// Time for which a side writes to measure the bandwidth.
const STREAM: Duration = Duration::from_millis(100);
/// Longest time until the neighbour answers.
const ANSWER: Duration = Duration::from_secs(5);
/// Time for which a side writes to find out the rate of its writes when the link has come up.
const PROBE: Duration = Duration::from_millis(2);

/// Rate below which a window that should be write-combining probably is not, bytes per second: uncached stores of 8
/// bytes reach 30 to 160 MB/s.
const SUSPICIOUS: u64 = 400_000_000;

/// What was measured of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkMeasurement {
    /// Number of this host's port.
    pub port: u8,
    /// Address of this host's adapter on its bus.
    pub address: String,
    /// Identity of the neighbour.
    pub peer: u64,
    /// Number of the neighbour's port.
    pub peer_port: u8,
    /// Generation of PCI Express and number of lanes; 0 if the chip does not tell.
    pub generation: u8,
    /// Number of lanes; 0 if the chip does not tell.
    pub width: u8,
    /// True if this host's mapping of the neighbour's window is write-combining.
    pub is_combining: bool,
    /// Time of a word from this host until the neighbour's processor reads it, ns: half a round trip in which both
    /// sides poll, the median.
    pub latency_ns: u64,
    /// Time from a doorbell until the neighbour's agent runs, ns: what a round trip takes longer if its thread sleeps,
    /// the median.
    pub doorbell_ns: u64,
    /// Bandwidth of writes of this host, bytes per second.
    pub outgoing: u64,
    /// Bandwidth of writes of the neighbour, bytes per second.
    pub incoming: u64,
}

/// Reasons for which a link cannot be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeasureError {
    /// The link is down.
    #[error("the link is down: {0}")]
    Down(String),
    /// Another measurement of the link is running.
    #[error("the link is being measured already")]
    Busy,
    /// The neighbour's agent does not answer.
    #[error("the neighbour's ntbringd does not answer within {} s", ANSWER.as_secs())]
    Silent,
}

impl Adapter {
    /// Measures the link with the help of the neighbour's agent. It takes about half a second.
    pub fn measure(&self) -> Result<LinkMeasurement, MeasureError> {
        let _one = match self.measuring.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(MeasureError::Busy),
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        };
        let found = self.area().zip(self.peer());
        let (area, peer) = found.ok_or_else(|| MeasureError::Down(self.why_down()))?;
        let woken = median(DOORBELL_ROUNDS, || area.round_trip(true, ANSWER))?;
        area.request(REQUEST_SPIN);
        // The neighbour's thread may start late.
        area.round_trip(false, ANSWER)?;
        let polled = median(ROUNDS, || area.round_trip(false, ANSWER))?;
        let outgoing = area.stream(STREAM, ANSWER)?;
        let incoming = area.requested_rate(area.request(REQUEST_STREAM), ANSWER)?;
        let (generation, width) = match self.chip().link() {
            Ok(LinkStatus::Up { generation, width }) => (generation, width),
            _ => return Err(MeasureError::Down(self.why_down())),
        };
        let nanoseconds = |time: Duration| time.as_nanos() as u64;
        Ok(LinkMeasurement {
            port: self.port().get(),
            address: self.chip().function().identity().address.to_string(),
            peer: peer.host,
            peer_port: peer.port.get(),
            generation,
            width,
            is_combining: self.caps().mapping == Mapping::WriteCombining,
            latency_ns: nanoseconds(polled / 2),
            doorbell_ns: nanoseconds(woken.saturating_sub(polled)),
            outgoing,
            incoming,
        })
    }

    /// Measures the rate of writes through the window that has just been set up, and warns if it is that of single
    /// stores: kernels may map a window uncached without saying so. Returns bytes per second.
    pub(crate) fn probe_writes(&self, area: &Area) -> u64 {
        let rate = area.write_rate(PROBE);
        if let Some(remark) = self.chip().link().ok().and_then(slow_link) {
            log::warn!("port {}: {remark}", self.port());
        }
        let (port, megabytes) = (self.port(), rate / 1_000_000);
        match self.caps().mapping {
            Mapping::Uncached => log::warn!(
                "port {port}: the neighbour's window is mapped uncached and takes {megabytes} MB/s: see \
                 \"Write-combining\" in docs/hardware.md"
            ),
            Mapping::WriteCombining if rate < SUSPICIOUS.min(self.chip().link().map_or(u64::MAX, limit) / 2) => {
                log::warn!(
                    "port {port}: the neighbour's window takes only {megabytes} MB/s, although its mapping should be \
                     write-combining: see \"Write-combining\" in docs/hardware.md"
                )
            }
            _ => log::info!("port {port}: the neighbour's window takes {megabytes} MB/s"),
        }
        rate
    }
}

/// Returns the most bytes per second that a link can carry if each packet has 64 bytes, a full write-combining buffer;
/// `u64::MAX` if the chip does not tell the link's speed.
pub fn limit(status: LinkStatus) -> u64 {
    // Bytes per second of a lane, after its line code.
    let lane = |generation| match generation {
        1 => 250_000_000,
        2 => 500_000_000,
        3 => 984_615_384,
        4 => 1_969_230_769,
        5 => 3_938_461_538,
        6 => 7_563_000_000,
        _ => 0u64,
    };
    match status {
        LinkStatus::Up { generation, width } if lane(generation) > 0 && width > 0 => {
            let (payload, overhead) = (64, ntbring_ntb::timing::PACKET_OVERHEAD);
            lane(generation) * u64::from(width) * payload / (payload + overhead)
        }
        _ => u64::MAX,
    }
}

/// Returns a remark on a link that is slower than PCI Express 3 with 8 lanes; None if it is not, or if the chip does not
/// tell its speed.
fn slow_link(status: LinkStatus) -> Option<String> {
    let LinkStatus::Up { generation, width } = status else { return None };
    let is_slow = limit(status) < limit(LinkStatus::Up { generation: 3, width: 8 });
    is_slow.then(|| {
        format!(
            "the link has come up with {width} lanes of PCI Express {generation}: is that all that the slots and the cable \
             allow? `ntbring bench link` shows it at the other end"
        )
    })
}

/// Returns the median of several times.
fn median(rounds: usize, mut time: impl FnMut() -> Result<Duration, MeasureError>) -> Result<Duration, MeasureError> {
    let mut times = (0..rounds).map(|_| time()).collect::<Result<Vec<_>, _>>()?;
    times.sort();
    Ok(times[rounds / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_that_of_packets_of_64_bytes() {
        let up = |generation, width| LinkStatus::Up { generation, width };
        assert_eq!(limit(up(3, 8)) / 1_000_000, 5728);
        assert_eq!(limit(up(3, 16)) / 1_000_000, 11457);
        assert_eq!([limit(up(0, 8)), limit(up(3, 0)), limit(LinkStatus::Down)], [u64::MAX; 3]);
    }

    #[test]
    fn a_link_that_came_up_with_fewer_lanes_is_remarked_on() {
        let up = |generation, width| slow_link(LinkStatus::Up { generation, width });
        assert!(up(3, 4).is_some_and(|remark| remark.contains("4 lanes of PCI Express 3")) && up(1, 8).is_some());
        assert_eq!([up(3, 8), up(4, 4), up(5, 16), up(0, 0)], [None, None, None, None]);
    }
}
