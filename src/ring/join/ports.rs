//! The ports of a host, opened and decorated.

use super::cards::Cards;
use super::decorate::{self, open_record, Decorators, Pair};
use super::error::JoinError;
use super::handshake::REGISTERS;
use crate::settings::JoinSettings;
use crate::topology::Topology;
use ntbring_ntb::demux::Demux;
use ntbring_ntb::fabric::{Fabric, OpenPort};
use ntbring_ntb::fault::Injector;
use ntbring_ntb::trace::Record;
use ntbring_ntb::{Port, Side};
use std::sync::Arc;

/// The decorated ports of a process's host.
pub(super) struct Ports {
    /// Left and right; none in a ring of one host.
    pub ports: Vec<Arc<dyn Port>>,
    pub injector: Option<Arc<Injector>>,
    pub record: Option<Record>,
}

impl Ports {
    /// Opens both ports of the host of `rank`, and puts the decorators around them that settings ask for.
    pub fn open(
        fabric: &dyn Fabric,
        topology: &Topology,
        rank: u32,
        settings: &JoinSettings,
        cards: Cards,
    ) -> Result<Ports, JoinError> {
        let (host, record) = (topology.host_of(rank), open_record(settings, rank)?);
        if topology.hosts() == 1 {
            return Ok(Ports { ports: Vec::new(), injector: None, record });
        }
        let bare = |side| open(fabric, topology, host, side, cards);
        let pair = Pair::new([bare(Side::Left)?, bare(Side::Right)?], settings)?;
        let injector = decorate::injector(settings, topology, rank, &pair);
        let ports = Decorators { settings, rank, record: record.as_ref(), injector: injector.clone() }.pair(pair)?;
        let ports = ports.into_iter().map(|port| fit(port, host)).collect::<Result<_, _>>()?;
        Ok(Ports { ports, injector, record })
    }
}

/// Opens the port of a host that leads to its neighbour on `side`, without decorators.
pub(super) fn open(
    fabric: &dyn Fabric,
    topology: &Topology,
    host: usize,
    side: Side,
    cards: Cards,
) -> Result<OpenPort, JoinError> {
    let (own, neighbour) = (cards.host(host)?, cards.host(topology.neighbour(host, side))?);
    Ok(fabric.port(own.ports.on(side), &neighbour.port(side.opposite()))?)
}

/// Returns the port with all doorbells of the protocol, which may share doorbells of the device. Fails if the port has
/// too few scratchpads or no doorbell.
fn fit(port: Arc<dyn Port>, host: usize) -> Result<Arc<dyn Port>, JoinError> {
    let caps = port.caps();
    let what = match (caps.scratchpads, caps.usable_doorbells()) {
        (0..REGISTERS, _) => format!("they have {} scratchpads, {REGISTERS} are needed", caps.scratchpads),
        (_, 0) => "they have no doorbell with an interrupt vector".into(),
        (_, doorbells) => return Ok(Demux::port(port, doorbells)),
    };
    Err(JoinError::Unfit { host, what })
}
