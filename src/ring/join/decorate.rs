//! Decorators around a host's ports: link model, faults, weak ordering, access record. They are stacked from the wire
//! outwards, so that faults affect the writes of a weakly ordered link, and the record shows the accesses of the
//! protocol.

use super::error::JoinError;
use crate::settings::JoinSettings;
use crate::topology::Topology;
use ntbring_ntb::fabric::OpenPort;
use ntbring_ntb::fault::{Faults, Faulty, Injector, Place};
use ntbring_ntb::software::SoftPort;
use ntbring_ntb::timing::Timing;
use ntbring_ntb::trace::{Record, Trace};
use ntbring_ntb::weak::Weak;
use ntbring_ntb::{Port, Side};
use std::sync::Arc;

/// Configuration of the decorators around a process's ports.
pub(super) struct Decorators<'a> {
    pub settings: &'a JoinSettings,
    pub rank: u32,
    pub record: Option<&'a Record>,
    pub injector: Option<Arc<Injector>>,
}

impl Decorators<'_> {
    /// Returns both decorated ports of a host, left first.
    pub fn pair(&self, pair: Pair) -> Result<Vec<Arc<dyn Port>>, JoinError> {
        let pair = match pair {
            Pair::Software(pair) => *pair,
            // Checked when they were opened: no model and no faults are configured.
            Pair::Adapters(pair) => return Ok(pair.map(|port| self.weak(port)).into()),
        };
        match self.settings.links.model {
            None => self.faulty_pair(pair),
            Some(model) => self.faulty_pair(Timing::pair(pair, model)?),
        }
    }

    fn faulty_pair(&self, pair: [impl Port + 'static; 2]) -> Result<Vec<Arc<dyn Port>>, JoinError> {
        Side::BOTH.into_iter().zip(pair).map(|(side, port)| self.faulty(side, port)).collect()
    }

    fn faulty(&self, side: Side, port: impl Port + 'static) -> Result<Arc<dyn Port>, JoinError> {
        match &self.injector {
            None => Ok(self.weak(port)),
            Some(injector) => Ok(self.weak(Faulty::new(port, side, injector.clone()).map_err(JoinError::Late)?)),
        }
    }

    fn weak(&self, port: impl Port + 'static) -> Arc<dyn Port> {
        match self.settings.links.weak {
            None => self.traced(port),
            Some(seed) => self.traced(Weak::new(port, seed ^ u64::from(self.rank) << 8)),
        }
    }

    fn traced(&self, port: impl Port + 'static) -> Arc<dyn Port> {
        match self.record {
            None => Arc::new(port),
            Some(record) => Arc::new(Trace::new(port, record.clone())),
        }
    }
}

/// Both ports of a host without decorators, left first.
pub(super) enum Pair {
    /// Software ports, beside whose windows decorators can keep their state.
    Software(Box<[SoftPort; 2]>),
    /// Real adapters.
    Adapters([Arc<dyn Port>; 2]),
}

impl Pair {
    /// Creates the pair from two ports of one backend. Fails if they are of different kinds, or if a setting asks for
    /// decorators that adapters do not support.
    pub fn new(pair: [OpenPort; 2], settings: &JoinSettings) -> Result<Pair, JoinError> {
        match pair {
            [OpenPort::Software(left), OpenPort::Software(right)] => Ok(Pair::Software(Box::new([left, right]))),
            [OpenPort::Adapter(left), OpenPort::Adapter(right)] => {
                let set = |name, set: bool| set.then_some(name);
                let unfit = set("NTBRING_LINK_MODEL", settings.links.model.is_some())
                    .or(set("NTBRING_FAULT", settings.links.faults.is_some()));
                unfit.map_or(Ok(Pair::Adapters([left, right])), |name| Err(JoinError::RealLinks { name }))
            }
            _ => Err(JoinError::MixedPorts),
        }
    }
}

/// Creates the record of a rank's accesses, if `NTBRING_TRACE` asks for one.
pub(super) fn open_record(settings: &JoinSettings, rank: u32) -> Result<Option<Record>, JoinError> {
    let Some(file) = &settings.links.trace else { return Ok(None) };
    let mut path = file.clone().into_os_string();
    path.push(format!(".{rank}"));
    let record = Record::create(path.as_ref());
    record.map(Some).map_err(|cause| JoinError::Trace { path: path.to_string_lossy().into_owned(), cause })
}

/// Checks that all links which the faults name exist. A ring of one host has no links, and ignores them.
pub(super) fn check(faults: &Faults, topology: &Topology) -> Result<(), JoinError> {
    let hosts = topology.hosts();
    let is_link = |(a, b): (u16, u16)| {
        let (a, b) = (usize::from(a), usize::from(b));
        let leads = |a, b| topology.neighbour(a, Side::Right) == b;
        a < hosts && b < hosts && (leads(a, b) || leads(b, a))
    };
    match faults.pairs().find(|&pair| hosts > 1 && !is_link(pair)) {
        Some((a, b)) => Err(JoinError::NoLink { a, b, hosts }),
        None => Ok(()),
    }
}

/// Creates the injector of a rank's ports; None without faults or with real adapters.
pub(super) fn injector(settings: &JoinSettings, topology: &Topology, rank: u32, pair: &Pair) -> Option<Arc<Injector>> {
    let Pair::Software(pair) = pair else { return None };
    let faults = settings.links.faults.clone()?;
    if rank == 0 {
        log::warn!("faults are injected into the hosts' outgoing traffic (NTBRING_FAULT): {faults}");
    }
    let host = topology.host_of(rank);
    let neighbours = Side::BOTH.map(|side| topology.neighbour(host, side));
    let place = Place { host, process: topology.local_of(rank), neighbours };
    // Every link is the right link of exactly one host, which has the word.
    let [left, right] = &**pair;
    Some(Injector::new(faults, place, [left.faults_since(false), right.faults_since(true)]))
}
