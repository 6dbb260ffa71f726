//! Measuring the link of an adapter.

use super::state::Adapter;
use crate::chip::LinkStatus;
use crate::measure::{
    limit, slow_link, Area, LinkMeasurement, MeasureError, ANSWER, REQUEST_SPIN, REQUEST_STREAM, STREAM,
};
use ntbring_memory::Mapping;
use std::sync::TryLockError;
use std::time::Duration;

/// Number of round trips whose median counts.
const ROUNDS: usize = 101;
/// Number of round trips in which the neighbour's thread sleeps until its adapter interrupts.
const DOORBELL_ROUNDS: usize = 21;
/// Time for which a side writes to find out the rate of its writes when the link has come up.
const PROBE: Duration = Duration::from_millis(2);

/// Rate below which a window that should be write-combining probably is not, bytes per second: uncached stores of 8
/// bytes reach 30 to 160 MB/s.
const SUSPICIOUS: u64 = 400_000_000;

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

/// Returns the median of several times.
fn median(rounds: usize, mut time: impl FnMut() -> Result<Duration, MeasureError>) -> Result<Duration, MeasureError> {
    let mut times = (0..rounds).map(|_| time()).collect::<Result<Vec<_>, _>>()?;
    times.sort();
    Ok(times[rounds / 2])
}
