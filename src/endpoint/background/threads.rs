//! The background threads of a rank.

use ntbring_host::cores;
use ntbring_host::thread;
use ntbring_ring::forwarder_threads::ForwarderThreads;
use ntbring_ring::relay::{Forwarder, RelayCounters};
use ntbring_ring::{Membership, FORWARDER_DOORBELL};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Starts the host's forwarder threads if this is the first rank of a host that forwards for others.
pub fn start_forwarding(
    members: &Arc<Membership>,
    counters: &Arc<RelayCounters>,
) -> std::io::Result<Option<ForwarderThreads>> {
    let topology = members.topology();
    let Some(links) = members.links() else { return Ok(None) };
    // On rings of two and three hosts all hosts are neighbours and may be directly mappable, so there may be nothing
    // to serve.
    if !members.is_served() || topology.local_of(members.rank()) != 0 {
        return Ok(None);
    }
    let threads = members.forwarder_threads();
    log::debug!("host {}: {threads} forwarder threads", members.host());
    let forwarders = Forwarder::per_thread(members, links, counters.clone(), threads);
    let for_wake = members.clone();
    let wake = move |thread| for_wake.ring(FORWARDER_DOORBELL + thread);
    let vectors = (0..threads).map(|thread| members.vector(FORWARDER_DOORBELL + thread)).collect();
    ForwarderThreads::start(forwarders, counters.clone(), vectors, wake, members.cores_beside_ranks()).map(Some)
}

/// Starts a thread that makes asynchronous progress while the rank computes; `asked` is the setting for it. Returns
/// None without it: large payloads make no progress during that time.
pub fn start_progress_thread(
    asked: Option<bool>,
    members: &Membership,
    run: impl FnOnce() + Send + 'static,
) -> Option<JoinHandle<()>> {
    // On an oversubscribed host no core is free while ranks compute.
    if !asked.unwrap_or(!members.is_oversubscribed()) {
        return None;
    }
    let beside = members.cores_beside_ranks();
    let started = thread::spawn("ntbring-async", move || {
        beside.iter().for_each(cores::bind);
        run()
    });
    started.inspect_err(|error| log::info!("large payloads make no progress while this rank computes: {error}")).ok()
}
