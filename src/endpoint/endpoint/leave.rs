//! The end of a rank: it posts no more receives, waits until its peers have the messages sent to them, and leaves.

use super::Endpoint;
use crate::error::EndpointError;
use crate::reliable::RetransmitThread;
use ntbring_ring::forwarder_threads::ForwarderThreads;
use std::time::Instant;

impl Endpoint {
    /// Returns true if everything sent has been deposited.
    pub fn is_flushed(&self) -> bool {
        let lanes = self.out.lanes();
        let settled = !lanes.is_checked() || lanes.has_reminded();
        !self.out.has_work() && self.offers.is_settled() && self.onesided.remotes.is_settled() && settled
    }

    /// Returns true if everything sent to external peers outlives this process, or will never be read. The peers have
    /// to poll for that.
    pub fn has_reached_external_peers(&self) -> bool {
        self.dynamic.external_peers.has_reached_all(|peer| self.out.produced_for(peer))
    }

    /// Lifts all limits, because this rank posts no more receives: peers may send it everything they hold, so that
    /// they can leave, too.
    pub fn leave(&mut self) -> Result<(), EndpointError> {
        self.credits.leave().into_iter().try_for_each(|(src, allowed)| self.grant(src, allowed))
    }

    /// Returns true once everything that was sent has been deposited and outlives this process. To be called
    /// repeatedly, with polls in between, when no more receives will be posted.
    pub fn flush(&mut self) -> Result<bool, EndpointError> {
        self.leave()?;
        let done = self.is_flushed() && !self.is_holding() && self.has_reached_external_peers();
        if !done {
            self.wait_to_leave(Instant::now());
        }
        Ok(done)
    }

    /// Watches external peers while the rank waits to leave, and warns once if it takes long.
    fn wait_to_leave(&mut self, now: Instant) {
        let (look, warn) = self.waiting.flush_state.wait(now);
        if look {
            self.look_for_external_peers(true);
        }
        if warn {
            let (rank, state) = (self.members.rank(), self.describe());
            log::warn!("rank {rank} waits in MPI_Finalize until peers take the messages sent to them:\n{state}");
        }
    }

    /// To be called when the endpoint will not be used any more. Until it is dropped a thread retransmits entries that
    /// peers have not taken, because this process may wait for those peers outside the library, without polling.
    pub fn linger(&mut self) -> Result<(), EndpointError> {
        self.background.forwarder_threads.iter().for_each(ForwarderThreads::leave);
        self.dynamic.external_peers.take_leave();
        self.waiting.idle.end();
        self.out.lanes_mut().linger().map_err(EndpointError::Thread)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // The threads end first, because they change counters.
        self.background.forwarder_threads = None;
        self.out.retransmit_thread.iter_mut().for_each(RetransmitThread::stop);
        self.out.lanes_mut().end();
        self.write_stats();
        self.members.flush_record();
    }
}
