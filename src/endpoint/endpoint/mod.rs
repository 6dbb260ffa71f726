//! The coordinator: it knows all parts, and passes the results of one part to the other.
//!
//! | file | holds |
//! |---|---|
//! | `send` | sending, and offering and accepting large payloads |
//! | `poll` | the poll |
//! | `settle` | arrivals that are not for the application |
//! | `progress` | asynchronous progress, retransmission, and transit traffic |
//! | `peers` | peers that come, go and are lost |
//! | `onesided`, `collective` | one-sided operations and collectives |
//! | `leave` | the end of a rank |
//! | `observe` | counters, statistics and the description of the state |

mod collective;
mod leave;
mod observe;
mod onesided;
mod peers;
mod poll;
mod progress;
mod send;
mod settle;
#[cfg(test)]
mod tests;

use crate::arrival::Event;
use crate::background::{self, AsyncProgress, Background};
use crate::collective::{Groups, SharedGroups};
use crate::dynamic::{DpmMessages, Dynamic, ExternalPeers};
use crate::error::EndpointError;
use crate::flow_control::{CreditPolicy, Credits};
use crate::observation::{Observation, Publisher, ReadQueues, Trigger};
use crate::onesided::{OneSided, Remotes, Segments};
use crate::peer_losses::PeerLosses;
use crate::receiving::Inbound;
use crate::reliable::{Ends, ReliableConnections, RetransmitThread};
use crate::rendezvous::Offers;
use crate::sending::Outbound;
use crate::settings::Settings;
use crate::waiting::{FlushState, Idle, Polls, ReceiveTimeout, Waiting};
use ntbring_ring::forwarder_threads::ForwarderThreads;
use ntbring_ring::relay::RelayCounters;
use ntbring_ring::Membership;
use ntbring_zerocopy::copy_tuner::CopyTuners;
use ntbring_zerocopy::Thresholds;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// The endpoint of a rank: its end of all flows.
pub struct Endpoint {
    members: Arc<Membership>,
    settings: Settings,
    thresholds: Thresholds,
    out: Outbound,
    inbound: Inbound,
    credits: Credits,
    offers: Offers,
    onesided: OneSided,
    groups: Groups,
    shared_groups: SharedGroups,
    dynamic: Dynamic,
    peer_losses: PeerLosses,
    waiting: Waiting,
    background: Background,
    observation: Observation,
    /// Events for the caller.
    events: VecDeque<Event>,
}

impl Endpoint {
    /// Creates the endpoint of a rank that has joined; starts forwarding if this is its host's first rank.
    pub fn new(mut members: Membership, settings: Settings) -> Result<Endpoint, EndpointError> {
        let mailbox = members.take_mailbox();
        let stats_page = mailbox.stats_page()?;
        let members = Arc::new(members);
        let relay = Arc::new(RelayCounters::new(&stats_page.live()));
        let forwarder_threads = background::start_forwarding(&members, &relay).map_err(EndpointError::Thread)?;
        let (me, ranks) = (members.rank(), members.topology().size());
        let credit_policy = CreditPolicy::new(settings.endpoint.unexpected, ranks);
        let (reliable, ends) = ReliableConnections::new(&members).unzip();
        let packet_max = members.packet_max();
        let packet_max =
            reliable.as_ref().map_or(packet_max, |reliable: &ReliableConnections| reliable.entry_max(packet_max));
        let (outward, inward) = ends.map(|Ends { out, inbound }| (out, inbound)).unzip();
        let mut out = Outbound::new(&members, settings.ring.chunk, credit_policy, packet_max, outward);
        let thresholds = Thresholds::new(settings.limits, members.is_oversubscribed(), out.lanes().packed_limit());
        let lease = forwarder_threads.as_ref().map(ForwarderThreads::lease);
        let copy_tuners = thresholds.single_copy.is_tuned().then(|| CopyTuners::new(members.is_oversubscribed()));
        let idle = Arc::new(Idle::new(members.clone(), &settings, lease, stats_page.clone()));
        let inbound = Inbound::new(&members, inward);
        out.retransmit_thread = reliable
            .map(|reliable| RetransmitThread::start(reliable, &members))
            .transpose()
            .map_err(EndpointError::Thread)?;
        let groups = Groups::new(&members);
        let dir = &settings.host.shm_dir;
        let onesided = OneSided {
            segments: Segments::new(members.clone(), dir.clone()),
            remotes: Remotes::new(ranks, out.lanes().chunk()),
        };
        let receive_timeout = members.injector().and_then(|injector| injector.faults().receive_timeout);
        let waiting = Waiting {
            idle,
            polls: Polls::new(out.lanes().is_checked()),
            receive_timeout: receive_timeout.map(|limit| ReceiveTimeout::new(limit, Instant::now())),
            flush_state: FlushState::default(),
        };
        let dump = Trigger::new(settings.endpoint.dump_signal);
        log::debug!(
            "rank {} on host {} of {}: lanes of {} bytes, {} mailboxes for blocks of up to {}, packed up to {}, eager up to {}, chunks of up to {}",
            me,
            members.host(),
            members.topology().hosts(),
            out.lanes().smallest(),
            groups.boards(),
            members.block_max(),
            thresholds.packed_max,
            thresholds.eager_max,
            out.lanes().chunk_max(),
        );
        let mut endpoint = Endpoint {
            members,
            thresholds,
            out,
            inbound,
            credits: Credits::new(credit_policy.share, me, ranks),
            offers: Offers::new(me, copy_tuners),
            onesided,
            groups,
            shared_groups: SharedGroups::default(),
            dynamic: Dynamic {
                external_peers: ExternalPeers::new(mailbox, me, ranks),
                dpm_messages: DpmMessages::default(),
            },
            peer_losses: PeerLosses::default(),
            waiting,
            background: Background { forwarder_threads, relay, async_progress: AsyncProgress::default() },
            observation: Observation { publisher: Publisher::new(stats_page), dump, read_queues: None, vci: 0 },
            settings,
            events: VecDeque::new(),
        };
        endpoint.publish_figures(false);
        Ok(endpoint)
    }

    /// Returns the rank's membership in the ring.
    pub fn members(&self) -> &Membership {
        &self.members
    }

    /// Returns the number of hosts of the ring.
    pub fn hosts(&self) -> usize {
        self.members.topology().hosts()
    }

    /// Returns the number of this rank.
    pub fn rank(&self) -> u32 {
        self.members.rank()
    }

    /// Returns the size in bytes of the largest header of a message.
    pub fn header_max(&self) -> usize {
        self.out.lanes().header_max()
    }

    /// Returns the thresholds by which the protocol of a message is selected.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Sets the index of the endpoint among those of its process, for descriptions.
    pub fn set_vci(&mut self, vci: u32) {
        self.observation.vci = vci;
        (self.out.vci, self.inbound.recorded.vci) = (vci as u8, vci as u8);
        self.waiting.idle.set_vci(vci);
        self.publish_figures(false);
    }

    /// Sets the function that reads the caller's queues. It is called in polls, when a tool asks for the rank's state.
    pub fn set_queues(&mut self, read: ReadQueues) {
        self.observation.read_queues = Some(read);
    }

    /// Returns the handle for waiting, which any thread may use.
    pub fn idle(&self) -> Arc<Idle> {
        self.waiting.idle.clone()
    }
}
