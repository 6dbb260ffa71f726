//! Two hosts in one process, joined by two cables, with any decorators around their ports.

use super::models::{Model, ModelHosts};
use ntbring_emu::EmuHost;
use ntbring_memory::{OutWindow, Region};
use ntbring_ntb::fabric::{Fabric, PortAddress, Windows};
use ntbring_ntb::fault::{Faults, Faulty, Injector, Place};
use ntbring_ntb::loopback::LoopbackHost;
use ntbring_ntb::software::SoftPort;
use ntbring_ntb::timing::{Model as LinkModel, Timing};
use ntbring_ntb::trace::{Record, Trace};
use ntbring_ntb::weak::Weak;
use ntbring_ntb::{LinkState, Port, PortIndex, PortList, Side};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Backend and decorators of the ports under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dress {
    Emu,
    Loopback,
    /// The emulated hosts of [`Dress::Emu`], with other ports.
    EmuPorts2And3,
    /// The loopback hosts of [`Dress::Loopback`], with other ports.
    LoopbackPorts2And3,
    Weak,
    Trace,
    TraceWeak,
    Timing,
    TraceWeakTiming,
    /// Half of all writes arrive twice.
    Doubled,
    TraceWeakDoubled,
    /// Modelled adapters.
    Modelled(Model),
    /// Modelled adapters whose windows are weakly ordered.
    WeakModelled(Model),
}

/// Link model of the timed variants: slow enough to notice.
pub const MODEL: LinkModel =
    LinkModel { bandwidth: 1_000_000_000, latency: 5_000, doorbell: 3_000, register: 500, transfer: None };

impl Dress {
    /// Returns true if writes take time to arrive.
    pub fn is_timed(self) -> bool {
        matches!(self, Dress::Timing | Dress::TraceWeakTiming)
    }

    /// Returns the kind of modelled adapters; None if there are none.
    pub fn model(self) -> Option<Model> {
        match self {
            Dress::Modelled(model) | Dress::WeakModelled(model) => Some(model),
            _ => None,
        }
    }

    /// Returns the numbers of the left and the right port of host 0 or 1.
    fn ports(self, host: usize) -> [PortIndex; 2] {
        let [zero, one, two, three] = PortIndex::ALL;
        match (self, host) {
            (Dress::EmuPorts2And3 | Dress::LoopbackPorts2And3, 0) => [two, three],
            (Dress::EmuPorts2And3 | Dress::LoopbackPorts2And3, _) => [three, two],
            _ => [zero, one],
        }
    }
}

/// Size of each window, bytes.
pub const WINDOW: usize = 64 << 10;

/// In-memory sink of access records.
#[derive(Clone, Default)]
pub struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A host of one of the backends without adapters.
pub enum Host {
    Emu(EmuHost),
    Loopback(LoopbackHost),
}

impl Host {
    fn new(dress: Dress, windows: Windows) -> Host {
        match dress {
            Dress::Loopback | Dress::LoopbackPorts2And3 => {
                Host::Loopback(LoopbackHost::with_ports(windows.bytes as usize, windows.ports))
            }
            _ => Host::Emu(EmuHost::create(Path::new("/dev/shm"), windows).unwrap()),
        }
    }

    fn port(&self, port: PortIndex, (neighbour, opposite): (&Host, PortIndex)) -> SoftPort {
        match (self, neighbour) {
            (Host::Emu(host), Host::Emu(neighbour)) => {
                host.soft_port(port, &PortAddress { host: neighbour.address(), port: opposite }).unwrap()
            }
            (Host::Loopback(host), Host::Loopback(neighbour)) => host.port(port, (neighbour, opposite)).unwrap(),
            _ => panic!("hosts of two backends have no cable"),
        }
    }

    /// Returns the host through the interface that all backends have.
    pub fn fabric(&self) -> &dyn Fabric {
        match self {
            Host::Emu(host) => host,
            Host::Loopback(host) => host,
        }
    }
}

/// Two hosts: the right port of each is cabled to the left one of the other.
pub struct Bench {
    pub dress: Dress,
    /// The hosts without adapters; none if adapters are modelled.
    pub hosts: Vec<Host>,
    models: Option<ModelHosts>,
    ports: [[Arc<dyn Port>; 2]; 2],
    paper: Paper,
}

impl Bench {
    pub fn new(dress: Dress) -> Bench {
        Bench::with_model(dress, MODEL)
    }

    /// As [`Bench::new`], with links of the given model if they are timed.
    pub fn with_model(dress: Dress, model: LinkModel) -> Bench {
        let paper = Paper::default();
        let record = Record::to(paper.clone());
        if let Some(kind) = dress.model() {
            let models = ModelHosts::new(kind, WINDOW);
            let ports = [0, 1].map(|host| Side::BOTH.map(|side| dressed(models.port(host, side), dress, &record)));
            return Bench { dress, hosts: Vec::new(), models: Some(models), ports, paper };
        }
        let accounts = dress.is_timed();
        let hosts = [0, 1].map(|host| {
            let ports = PortList::new(&dress.ports(host)).unwrap();
            Host::new(dress, Windows { bytes: WINDOW as u64, accounts, ports })
        });
        let ports = [0, 1].map(|host| {
            let on = |host: usize, side| dress.ports(host)[side as usize];
            let pair = Side::BOTH
                .map(|side| hosts[host].port(on(host, side), (&hosts[1 - host], on(1 - host, side.opposite()))));
            if !dress.is_timed() {
                return pair.map(|port| dressed(port, dress, &record));
            }
            Timing::pair(pair, model).unwrap().map(|port| dressed(port, dress, &record))
        });
        Bench { dress, hosts: hosts.into(), models: None, ports, paper }
    }

    /// Raises a vector of a host without a link.
    pub fn interrupt(&self, host: usize, doorbell: usize) {
        match &self.models {
            None => self.hosts[host].fabric().ring(doorbell),
            Some(models) => models.interrupt(host, doorbell),
        }
    }

    /// Takes the link at a port down or up.
    pub fn set_link(&self, host: usize, side: Side, state: LinkState) {
        match (&self.models, side) {
            (None, side) => self.hosts[host].fabric().set_link(self.index(host, side), state),
            (Some(models), Side::Right) => models.set_cable(host, state),
            (Some(models), Side::Left) => models.set_cable(1 - host, state),
        }
    }

    /// Returns the port of host 0 or 1 on a side.
    pub fn port(&self, host: usize, side: Side) -> Arc<dyn Port> {
        self.ports[host][side as usize].clone()
    }

    /// Returns the number of the port of host 0 or 1 on a side.
    pub fn index(&self, host: usize, side: Side) -> PortIndex {
        self.dress.ports(host)[side as usize]
    }

    /// Returns every cable in both directions, as (sending port, receiving port).
    pub fn cables(&self) -> Vec<(Arc<dyn Port>, Arc<dyn Port>)> {
        let mut cables = Vec::new();
        for host in [0, 1] {
            for side in Side::BOTH {
                cables.push((self.port(host, side), self.port(1 - host, side.opposite())));
            }
        }
        cables
    }

    /// Waits until everything that was sent so far (at most a window) has arrived.
    pub fn settle(&self) {
        if self.dress.is_timed() {
            std::thread::sleep(std::time::Duration::from_micros(100));
        }
        if let Some(models) = &self.models {
            models.serve();
        }
    }

    /// Returns the recorded accesses so far, one JSON value for each line.
    pub fn record(&self) -> Vec<serde_json::Value> {
        let text = String::from_utf8(self.paper.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

fn dressed(port: impl Port + 'static, dress: Dress, record: &Record) -> Arc<dyn Port> {
    let seed = 0x5eed;
    match dress {
        Dress::Emu
        | Dress::Loopback
        | Dress::EmuPorts2And3
        | Dress::LoopbackPorts2And3
        | Dress::Timing
        | Dress::Modelled(_) => Arc::new(port),
        Dress::Weak | Dress::WeakModelled(_) => Arc::new(Weak::new(port, seed)),
        Dress::Trace => Arc::new(Trace::new(port, record.clone())),
        Dress::TraceWeak | Dress::TraceWeakTiming => Arc::new(Trace::new(Weak::new(port, seed), record.clone())),
        Dress::Doubled => Arc::new(doubled(port)),
        Dress::TraceWeakDoubled => Arc::new(Trace::new(Weak::new(doubled(port), seed), record.clone())),
    }
}

/// Returns the outgoing window of `from` that maps the incoming window of `to`.
pub fn aim(from: &dyn Port, to: &dyn Port) -> OutWindow {
    from.outgoing(to.incoming_offset(), to.incoming().len() as u64).unwrap()
}

fn doubled(port: impl Port + 'static) -> Faulty {
    let faults = Faults::parse("double=0.5").unwrap().unwrap();
    let place = Place { host: 0, process: 0, neighbours: [1, 1] };
    let injector = Injector::new(faults, place, [(); 2].map(|()| Region::anonymous(8)));
    injector.begin();
    Faulty::new(port, Side::Left, injector).unwrap()
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(models) = self.models.as_ref().filter(|_| !std::thread::panicking()) {
            models.check();
        }
    }
}
