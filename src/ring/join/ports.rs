//! The ports of a host, opened and decorated.

use super::cards::Cards;
use super::dress::{self, open_record, Dress, Pair};
use super::error::JoinError;
use crate::settings::JoinSettings;
use crate::topology::Topology;
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
        let port = |side| -> Result<OpenPort, JoinError> {
            Ok(fabric.port(side, &cards.host(topology.neighbour(host, side))?.fabric)?)
        };
        let pair = Pair::new([port(Side::Left)?, port(Side::Right)?], settings)?;
        let injector = dress::injector(settings, topology, rank, &pair);
        let ports = Dress { settings, rank, record: record.as_ref(), injector: injector.clone() }.pair(pair)?;
        Ok(Ports { ports, injector, record })
    }
}
