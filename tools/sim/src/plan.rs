//! The complete description of a run.

use super::agenda::{seconds, Time};
use super::lane::LayoutError;
use super::net::{Form, NetError};
use super::parameters::{HostFigures, LinkFigures, ProtocolFigures};
use super::traffic::{Multicast, Traffic, MULTICAST_HOSTS, MULTICAST_LIST};
use ntbring_ring::topology::HOSTS_MAX as JOB_MAX;

/// Largest number of forwarder threads of a host.
pub const THREADS_MAX: usize = 8;

/// Largest number of hosts if messages are retransmitted, since every pair of hosts has a connection.
pub const CONNECTED_MAX: usize = 64;

/// A run before it begins.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The network.
    pub form: Form,
    /// The links' parameters: one for all cables, or several that are assigned to cables in turn.
    pub links: Vec<LinkFigures>,
    /// The hosts.
    pub host: HostFigures,
    /// The software.
    pub protocol: ProtocolFigures,
    /// Number of forwarder threads of each host.
    pub threads: usize,
    /// The messages that are sent.
    pub traffic: Traffic,
    /// The faults that occur.
    pub faults: Faults,
    /// Seed of all random choices.
    pub seed: u64,
}

/// The faults that occur.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// True if lost packets are retransmitted, by both halves of real connections, and manager drivers re-route around
    /// links that are down.
    pub retry: bool,
    /// Probability that a packet is lost at a hop.
    pub loss: f64,
    /// Periods in which links are down.
    pub outages: Vec<Outage>,
}

/// A period in which a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The host to the left of the link.
    pub cable: usize,
    /// Time at which it goes down.
    pub down: Time,
    /// Time at which it comes up again.
    pub up: Time,
}

/// Error: a run is impossible, or did not end correctly.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SimError {
    /// The network is invalid.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The lanes are invalid.
    #[error("{0}; the parameters of the protocol set the sizes of lanes and chunks")]
    Layout(#[from] LayoutError),
    /// Another part of the plan is invalid.
    #[error("{0}")]
    Plan(String),
    /// Deadlock: no event is left although messages are missing.
    #[error(
        "deadlock: at {at:.6} s no event is left, and {missing} of {messages} messages are missing; {waiting} inputs \
         wait for room"
    )]
    Deadlock {
        /// Time of the deadlock, in seconds of virtual time.
        at: f64,
        /// Number of messages that have not arrived.
        missing: u64,
        /// Number of messages that were sent.
        messages: u64,
        /// Number of inputs that wait for room.
        waiting: usize,
    },
    /// Nothing has arrived for a long time.
    #[error("at {at:.6} s nothing has arrived for {idle:.0} s, and {missing} messages are missing")]
    Stuck {
        /// Time of detection, in seconds of virtual time.
        at: f64,
        /// Time without an arrival, in seconds.
        idle: f64,
        /// Number of messages that have not arrived.
        missing: u64,
    },
    /// The protocol's own code has reported an error.
    #[error("host {host}: {what}")]
    Protocol {
        /// Number of the host.
        host: usize,
        /// Description of the error.
        what: String,
    },
}

impl SimError {
    pub(super) fn stuck(at: Time, idle: Time, missing: u64) -> SimError {
        SimError::Stuck { at: seconds(at), idle: seconds(idle), missing }
    }
}

impl Plan {
    /// Fails if the plan is impossible.
    pub(super) fn check(&self) -> Result<(), SimError> {
        let wrong = |what: String| Err(SimError::Plan(what));
        let (hosts, faults) = (self.form.hosts(), &self.faults);
        if self.links.is_empty() || self.links.iter().any(|link| link.bandwidth == 0 || link.transfer_max == 0) {
            return wrong("a link needs a bandwidth and a largest transfer".into());
        }
        if !(1..=THREADS_MAX).contains(&self.threads) {
            return wrong(format!("a host has 1 to {THREADS_MAX} forwarder threads, not {}", self.threads));
        }
        if self.protocol.chunk == 0 || self.host.cores == 0 {
            return wrong("a protocol needs a chunk of at least one byte, a host at least one core".into());
        }
        if !(0.0..1.0).contains(&faults.loss) {
            return wrong(format!("a probability of loss must be at least 0 and below 1, not {}", faults.loss));
        }
        if !faults.retry && (faults.loss > 0.0 || !faults.outages.is_empty()) {
            return wrong("links that lose packets or go down need retry, or lost packets would never arrive".into());
        }
        if faults.retry && hosts > CONNECTED_MAX {
            return wrong(format!("retry has a connection for every pair of hosts: at most {CONNECTED_MAX} hosts"));
        }
        let of_a_job = matches!(self.form, Form::Ring(_)) && (3..=JOB_MAX).contains(&hosts);
        if !faults.outages.is_empty() && !of_a_job {
            return wrong(format!("re-routing around links works as in jobs: only on rings of 3 to {JOB_MAX} hosts"));
        }
        if !faults.outages.is_empty() && self.protocol.one_way {
            return wrong("a protocol that uses one direction only cannot re-route around a link that is down".into());
        }
        if let Traffic::Multicast(calls) = &self.traffic {
            if !matches!(self.form, Form::Ring(..=MULTICAST_HOSTS)) || faults.retry {
                return wrong(format!(
                    "messages to several hosts go round rings of up to {MULTICAST_HOSTS} hosts without packet loss"
                ));
            }
            let known = |host: &usize| *host < hosts;
            let sound = |call: &Multicast| {
                let listed = |n: usize| !call.to[..n].contains(&call.to[n]) && call.to[n] != call.src;
                call.bytes > 0
                    && call.bytes + MULTICAST_LIST <= self.protocol.chunk
                    && known(&call.src)
                    && call.to.iter().all(known)
                    && (0..call.to.len()).all(listed)
            };
            if let Some(call) = calls.iter().find(|call| call.to.is_empty() || !sound(call)) {
                return wrong(format!("invalid hosts of a message to several, or more than one packet: {call:?}"));
            }
        }
        match faults.outages.iter().find(|outage| outage.cable >= hosts || outage.up <= outage.down) {
            Some(outage) => wrong(format!("invalid outage: {outage:?}")),
            None => Ok(()),
        }
    }
}
