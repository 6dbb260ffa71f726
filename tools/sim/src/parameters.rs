//! The figures that a simulation reckons with. They are in one file with their sources, `sim/parameters.toml`.

use super::agenda::{ns, Time};
use ntbring_ntb::timing::Model;
use serde::Deserialize;
use std::collections::BTreeMap;

/// All figures there are, each under the name by which an experiment asks for it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameters {
    /// Kinds of links.
    pub links: BTreeMap<String, LinkFigures>,
    /// Kinds of hosts.
    pub hosts: BTreeMap<String, HostFigures>,
    /// What software does on them.
    pub protocols: BTreeMap<String, ProtocolFigures>,
}

/// A name that the file does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the parameters have no {kind} \"{name}\"; there are: {known}")]
pub struct Unknown {
    kind: &'static str,
    name: String,
    known: String,
}

impl Parameters {
    /// The link of that name.
    pub fn link(&self, name: &str) -> Result<LinkFigures, Unknown> {
        find("link", &self.links, name)
    }

    /// The host of that name.
    pub fn host(&self, name: &str) -> Result<HostFigures, Unknown> {
        find("host", &self.hosts, name)
    }

    /// The protocol of that name.
    pub fn protocol(&self, name: &str) -> Result<ProtocolFigures, Unknown> {
        find("protocol", &self.protocols, name)
    }
}

fn find<T: Clone>(kind: &'static str, all: &BTreeMap<String, T>, name: &str) -> Result<T, Unknown> {
    let known = || all.keys().cloned().collect::<Vec<_>>().join(", ");
    all.get(name).cloned().ok_or_else(|| Unknown { kind, name: name.into(), known: known() })
}

/// What a link costs: a link model, and what a device adds to it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkFigures {
    /// Bytes a second of long transfers in one direction.
    pub bandwidth: u64,
    /// From the end of a write on the link to the neighbour's memory, ns.
    pub latency_ns: u64,
    /// From the arrival of a ring to the handler of its interrupt, ns.
    pub doorbell_ns: u64,
    /// What an access to a scratchpad or doorbell register costs its caller, ns.
    pub register_ns: u64,
    /// The most bytes of one transfer.
    pub transfer_max: u64,
    /// Whether it is the device's DMA engine that limits the bandwidth, and not the wire. Such a device waits for the host's
    /// memory, and so it is slower while others use that memory.
    pub engine_limited: bool,
}

impl LinkFigures {
    /// As the layer of devices knows it.
    pub fn model(&self) -> Model {
        let LinkFigures { bandwidth, latency_ns: latency, doorbell_ns: doorbell, register_ns: register, .. } = *self;
        Model { bandwidth, latency, doorbell, register, transfer: Some(self.transfer_max) }
    }
}

/// What a host's processor and memory can do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostFigures {
    /// Cores.
    pub cores: usize,
    /// Bytes a second of its memory.
    pub memory: u64,
    /// Bytes a second that one thread copies.
    pub copy: u64,
    /// Until a thread that sleeps runs, after the handler of the interrupt has asked for it, ns.
    pub wake_ns: u64,
    /// What it costs to give a core to another thread where there are more threads than cores, ns.
    pub switch_ns: u64,
}

/// What follows a message that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledge {
    /// Nothing.
    Never,
    /// A word that its receiver sends to its sender, as any message goes.
    Sender,
}

/// What software does for a packet.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProtocolFigures {
    /// Bytes that a message is cut into at most.
    pub chunk: u64,
    /// Bytes of a lane, the bounded buffer at the receiving end of a link.
    pub lane: u64,
    /// Bytes of a packet beside its share of the message.
    pub header: u64,
    /// What it takes a thread to begin or end a packet, without its bytes, ns.
    pub packet_ns: u64,
    /// Registers that are written across the link for a packet.
    pub registers_written: u64,
    /// Registers that are read when one has come.
    pub registers_read: u64,
    /// Whether a DMA engine moves the bytes over the link and a thread waits for it. Otherwise the thread writes them itself
    /// and need not wait for the link (posted writes).
    pub dma: bool,
    /// Whether what has come is copied to where it belongs; otherwise it is there already.
    pub copies: bool,
    /// Whether messages are put into the ring, and copied from it, by threads of those who send and receive them.
    /// Otherwise transfer threads do that as well.
    pub ranks_transfer: bool,
    /// Whether acknowledgements and what managers say go past bulk data.
    pub urgent: bool,
    /// Whether everything on a ring goes to the right.
    pub one_way: bool,
    /// What follows a message that has come.
    pub acknowledge: Acknowledge,
    /// Bytes of an acknowledgement.
    pub acknowledgement: u64,
    /// How long a thread that has nothing to do looks for work before it sleeps, ns.
    pub spin_ns: u64,
}

/// What threads need to know of times, made ready.
#[derive(Clone, Copy, Debug)]
pub(super) struct Costs {
    pub packet: Time,
    pub send: Time,
    pub receive: Time,
    pub spin: Time,
    /// Until a thread that sleeps runs, if a doorbell wakes it,
    pub bell: Time,
    /// and if another thread does.
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
