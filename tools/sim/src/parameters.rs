//! The parameters of a simulation. They are in one file with their sources, `tools/sim/parameters.toml`.

use super::agenda::{ns, Time};
use ntbring_ntb::timing::Model;
use serde::Deserialize;
use std::collections::BTreeMap;

/// All parameters, each set under the name by which an experiment selects it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Kinds of links.
    pub links: BTreeMap<String, LinkFigures>,
    /// Kinds of hosts.
    pub hosts: BTreeMap<String, HostFigures>,
    /// Kinds of software.
    pub protocols: BTreeMap<String, ProtocolFigures>,
}

/// Error: the file has no such name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parameters have no {kind} \"{name}\"; there are: {known}")]
pub struct Unknown {
    kind: &'static str,
    name: String,
    known: String,
}

impl Parameters {
    /// Returns the parameters of a link.
    pub fn link(&self, name: &str) -> Result<LinkFigures, Unknown> {
        find("link", &self.links, name)
    }

    /// Returns the parameters of a host.
    pub fn host(&self, name: &str) -> Result<HostFigures, Unknown> {
        find("host", &self.hosts, name)
    }

    /// Returns the parameters of a protocol.
    pub fn protocol(&self, name: &str) -> Result<ProtocolFigures, Unknown> {
        find("protocol", &self.protocols, name)
    }
}

fn find<T: Clone>(kind: &'static str, all: &BTreeMap<String, T>, name: &str) -> Result<T, Unknown> {
    let known = || all.keys().cloned().collect::<Vec<_>>().join(", ");
    all.get(name).cloned().ok_or_else(|| Unknown { kind, name: name.into(), known: known() })
}

/// The costs of a link: a link model, and the costs of a device.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkFigures {
    /// Bytes per second of long transfers in one direction.
    pub bandwidth: u64,
    /// Time from the end of a write on the link to the neighbour's memory, in ns.
    pub latency_ns: u64,
    /// Time from the arrival of a doorbell to the handler of its interrupt, in ns.
    pub doorbell_ns: u64,
    /// Time of an access to a scratchpad or doorbell register, in ns.
    pub register_ns: u64,
    /// Largest size of one transfer in bytes.
    pub transfer_max: u64,
    /// True if the bandwidth is limited by the device's DMA engine and not by the wire. Such a device waits for the
    /// host's memory, so it is slower while others use that memory.
    pub engine_limited: bool,
}

impl LinkFigures {
    /// Returns the model in the form that the device layer uses.
    pub fn model(&self) -> Model {
        let LinkFigures { bandwidth, latency_ns: latency, doorbell_ns: doorbell, register_ns: register, .. } = *self;
        Model { bandwidth, latency, doorbell, register, transfer: Some(self.transfer_max) }
    }
}

/// The parameters of a host's processor and memory.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFigures {
    /// Number of cores.
    pub cores: usize,
    /// Memory bandwidth in bytes per second.
    pub memory: u64,
    /// Bytes per second that one thread copies.
    pub copy: u64,
    /// Bytes per second of a vector that one thread adds to another.
    pub reduce: u64,
    /// Time from the wake-up call of the interrupt handler until a sleeping thread runs, in ns.
    pub wake_ns: u64,
    /// Time of a switch to another thread where there are more threads than cores, in ns.
    pub switch_ns: u64,
}

/// The action that follows the arrival of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledge {
    /// No action.
    Never,
    /// The receiver sends a word to the sender, like any other message.
    Sender,
}

/// The costs and rules of the software that handles packets.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtocolFigures {
    /// Largest chunk into which a message is divided, in bytes.
    pub chunk: u64,
    /// Size in bytes of a lane, the bounded buffer at the receiving end of a link.
    pub lane: u64,
    /// Bytes of a packet in addition to its chunk of the message.
    pub header: u64,
    /// Time of a thread to begin or to end a packet, without the copying of its bytes, in ns.
    pub packet_ns: u64,
    /// Number of registers that are written across the link for a packet.
    pub registers_written: u64,
    /// Number of registers that are read after the arrival of a packet.
    pub registers_read: u64,
    /// True if a DMA engine moves the bytes over the link and a thread waits for it. Otherwise the thread writes them
    /// itself and need not wait for the link (posted writes).
    pub dma: bool,
    /// True if a delivered packet is copied to its destination buffer; otherwise it is there already.
    pub copies: bool,
    /// True if the threads of senders and receivers put messages into the ring and copy them from it. Otherwise
    /// forwarder threads do that as well.
    pub ranks_transfer: bool,
    /// True if acknowledgements and packets of managers overtake bulk data.
    pub urgent: bool,
    /// True if all packets on a ring go to the right.
    pub one_way: bool,
    /// The action that follows the arrival of a message.
    pub acknowledge: Acknowledge,
    /// Size of an acknowledgement in bytes.
    pub acknowledgement: u64,
    /// Time that an idle thread polls for work before it sleeps, in ns.
    pub spin_ns: u64,
}

/// Times of threads' actions, precomputed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub packet: Time,
    pub send: Time,
    pub receive: Time,
    pub spin: Time,
    /// Time until a sleeping thread runs if a doorbell wakes it.
    pub bell: Time,
    /// Time until a sleeping thread runs if another thread wakes it.
    pub wake: Time,
    pub switch: Time,
}

impl Costs {
    pub fn new(link: &LinkFigures, host: &HostFigures, protocol: &ProtocolFigures) -> Costs {
        Costs {
            packet: ns(protocol.packet_ns),
            send: ns(protocol.registers_written * link.register_ns),
            receive: ns(protocol.registers_read * link.register_ns),
            spin: ns(protocol.spin_ns),
            bell: ns(link.doorbell_ns + host.wake_ns),
            wake: ns(host.wake_ns),
            switch: ns(host.switch_ns),
        }
    }
}
