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
use crate::background::{self, Background, Interim};
use crate::carrier::{Caretaker, Carrier, Ends};
use crate::collective::{Collective, Exchanges, Groups};
use crate::dynamic::{Dynamic, Greetings, Guests};
use crate::error::EndpointError;
use crate::flow_control::{Credits, Tariff};
use crate::losses::Losses;
use crate::observation::{Observation, Publisher, Trigger};
use crate::onesided::{OneSided, Remotes, Segments};
use crate::receiving::Inbound;
use crate::rendezvous::Offers;
use crate::sending::Outbound;
use crate::settings::Settings;
use crate::waiting::{Farewell, Idle, Patience, Polls, Waiting};
use ntbring_ring::relay::RelayCounters;
use ntbring_ring::transfer::Transfer;
use ntbring_ring::Membership;
use ntbring_zerocopy::contest::Contests;
use ntbring_zerocopy::Thresholds;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// A rank's end of all its flows.
pub struct Endpoint {
    members: Arc<Membership>,
    settings: Settings,
    thresholds: Thresholds,
    out: Outbound,
    inbound: Inbound,
    credits: Credits,
    offers: Offers,
    onesided: OneSided,
    collective: Collective,
    dynamic: Dynamic,
    losses: Losses,
    waiting: Waiting,
    background: Background,
    observation: Observation,
    /// Events for the caller.
    events: VecDeque<Event>,
}

impl Endpoint {
    /// The endpoint of a rank that has joined; starts forwarding if this is its host's first rank.
    pub fn new(mut members: Membership, settings: Settings) -> Result<Endpoint, EndpointError> {
        let mailbox = members.take_mailbox();
        let bulletin = mailbox.bulletin()?;
        let members = Arc::new(members);
        let relay = Arc::new(RelayCounters::new(&bulletin.live()));
        let transfer = background::start_forwarding(&members, &relay).map_err(EndpointError::Thread)?;
        let (me, ranks) = (members.rank(), members.topology().size());
        let tariff = Tariff::new(settings.endpoint.unexpected, ranks);
        let (carrier, ends) = Carrier::new(&members).unzip();
        let packet_max = members.packet_max();
        let packet_max = carrier.as_ref().map_or(packet_max, |carrier: &Carrier| carrier.entry_max(packet_max));
        let (outward, inward) = ends.map(|Ends { out, inbound }| (out, inbound)).unzip();
        let mut out = Outbound::new(&members, settings.ring.chunk, tariff, packet_max, outward);
        let thresholds = Thresholds::new(settings.limits, members.is_crowded(), out.lanes().packed_limit());
        let lease = transfer.as_ref().map(Transfer::lease);
        let contests = thresholds.contested.then(|| Contests::new(members.is_crowded()));
        let idle = Arc::new(Idle::new(members.clone(), &settings, lease, bulletin.clone()));
        let inbound = Inbound::new(&members, inward);
        out.caretaker =
            carrier.map(|carrier| Caretaker::start(carrier, &members)).transpose().map_err(EndpointError::Thread)?;
        let groups = Groups::new(&members);
        let dir = &settings.host.shm_dir;
        let trusted = !members.policy().is_checked();
        let exchanges = Exchanges::new(members.clone(), dir.clone(), settings.limits.single_copy, trusted);
        let onesided = OneSided {
            segments: Segments::new(members.clone(), dir.clone()),
            remotes: Remotes::new(ranks, out.lanes().chunk()),
        };
        let patience = members.injector().and_then(|injector| injector.faults().patience);
        let waiting = Waiting {
            idle,
            polls: Polls::new(out.lanes().is_checked()),
            patience: patience.map(|limit| Patience::new(limit, Instant::now())),
            farewell: Farewell::default(),
        };
        let dump = Trigger::new(settings.endpoint.dump_signal);
        log::debug!(
            "rank {} on host {} of {}: lanes of {} bytes, {} boards for blocks of up to {}, packed up to {}, eager up to {}, pieces of up to {}",
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
            credits: Credits::new(tariff.share, me, ranks),
            offers: Offers::new(me, contests),
            onesided,
            collective: Collective { groups, exchanges },
            dynamic: Dynamic { guests: Guests::new(mailbox, me, ranks), greetings: Greetings::default() },
            losses: Losses::default(),
            waiting,
            background: Background { transfer, relay, interim: Interim::default() },
            observation: Observation { publisher: Publisher::new(bulletin), dump, vci: 0 },
            settings,
            events: VecDeque::new(),
        };
        endpoint.publish_figures();
        Ok(endpoint)
    }

    /// Its process in the ring.
    pub fn members(&self) -> &Membership {
        &self.members
    }

    /// Hosts of the ring.
    pub fn hosts(&self) -> usize {
        self.members.topology().hosts()
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.members.rank()
    }

    /// The largest header of a message, bytes.
    pub fn header_max(&self) -> usize {
        self.out.lanes().header_max()
    }

    /// The sizes that decide how messages travel.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Sets the index of the endpoint among those of its process, for descriptions.
    pub fn set_vci(&mut self, vci: u32) {
        self.observation.vci = vci;
        self.publish_figures();
    }

    /// The handle that any thread may use.
    pub fn idle(&self) -> Arc<Idle> {
        self.waiting.idle.clone()
    }
}
