//! Hosts with modelled adapters, in one process.

pub use ntbring_models::Model;
use ntbring_models::{Cable, End, Plugged};
use ntbring_ntb::fabric::{Backend, Fabric, OpenPort, PortAddress, Windows};
use ntbring_ntb::{LinkState, Port, PortIndex, PortList, Side};
use ntbring_pci::{identify, Adapter, HostAdapters, LocalAdapters, PciAddress};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longest time that a link may take to come up or to go down.
const LINK_TIMEOUT: Duration = Duration::from_secs(20);

/// Two hosts in which one job has windows: the right adapter of each is cabled to the left one of the other.
pub struct ModelHosts {
    ring: ModelRing,
    fabrics: [Box<dyn Fabric>; 2],
}

impl ModelHosts {
    /// Creates the hosts, whose ports have windows of `window` bytes, and waits until the links are up.
    pub fn new(model: Model, window: usize) -> ModelHosts {
        let ring = ModelRing::new(model, 2, 4 * window as u64);
        let windows = Windows { bytes: window as u64, accounts: false, ports: PortList::default() };
        let fabrics = [0, 1].map(|host| ring.backend(host).create(windows).unwrap());
        let hosts = ModelHosts { ring, fabrics };
        hosts.wait_for(LinkState::Up, 0);
        hosts.wait_for(LinkState::Up, 1);
        hosts
    }

    /// Returns the port of a host on a side.
    pub fn port(&self, host: usize, side: Side) -> Arc<dyn Port> {
        let [port, opposite] = [side, side.opposite()].map(|side| PortIndex::ALL[side as usize]);
        let opposite = PortAddress { host: self.fabrics[1 - host].address(), port: opposite };
        match self.fabrics[host].port(port, &opposite).unwrap() {
            OpenPort::Adapter(port) => port,
            OpenPort::Software(_) => panic!("adapters are modelled"),
        }
    }

    /// Raises a vector of a host without a link.
    pub fn interrupt(&self, host: usize, doorbell: usize) {
        self.fabrics[host].ring(doorbell);
    }

    /// Handles all events that have happened at the adapters until now.
    pub fn serve(&self) {
        for (host, side) in [0, 1].into_iter().flat_map(|host| Side::BOTH.map(|side| (host, side))) {
            self.adapter(host, side).serve(Duration::from_nanos(ntbring_host::clock::now()), fastrand::u64(..));
        }
    }

    fn adapter(&self, host: usize, side: Side) -> &Adapter {
        self.ring.hosts[host].adapter(PortIndex::ALL[side as usize]).unwrap()
    }

    /// Pulls or plugs the cable in the right adapter of a host, and waits until both ends know it.
    pub fn set_cable(&self, host: usize, state: LinkState) {
        self.ring.cables[host].lock().set_cable(state == LinkState::Up);
        self.wait_for(state, host);
    }

    /// Waits until the cable in the right adapter of a host has this state at both ends.
    fn wait_for(&self, state: LinkState, host: usize) {
        let ends = [self.adapter(host, Side::Right), self.adapter(1 - host, Side::Left)];
        let start = Instant::now();
        while ends.iter().any(|adapter| adapter.peer().is_some() != (state == LinkState::Up)) {
            assert!(start.elapsed() < LINK_TIMEOUT, "the link is not {state:?}");
            self.serve();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// As [`ModelRing::check`].
    pub fn check(&self) {
        self.ring.check();
    }
}

/// A ring of hosts: the right adapter of each is cabled to the left one of the next.
pub struct ModelRing {
    hosts: Vec<Arc<HostAdapters>>,
    /// The cable in the right adapter of each host.
    pub cables: Vec<Cable>,
}

impl ModelRing {
    /// Creates the hosts, whose adapters have windows of `window` bytes.
    pub fn new(model: Model, hosts: usize, window: u64) -> ModelRing {
        let cables: Vec<_> = (0..hosts).map(|host| [(host, 1), ((host + 1) % hosts, 0)]).collect();
        ModelRing::cabled(model, hosts, window, &cables)
    }

    /// Creates hosts with these cables, each between two ports of a host.
    pub fn cabled(model: Model, hosts: usize, window: u64, cables: &[[(usize, usize); 2]]) -> ModelRing {
        let mut adapters: Vec<Vec<Arc<Adapter>>> = vec![Vec::new(); hosts];
        let plugged = cables.iter().map(|ends| {
            let cable = model.cable(window);
            // Both are there before the first driver starts: it looks at the other end.
            let plugged = End::BOTH.map(|end| {
                let address = PciAddress { domain: 0, bus: 5 + ends[end as usize].1 as u8, device: 0, function: 0 };
                Plugged::new(&cable, end, address)
            });
            for (function, &(host, port)) in plugged.into_iter().zip(ends) {
                let chip = identify(function).unwrap();
                let adapter = Adapter::open(chip, PortIndex::ALL[port], identity(host), window);
                adapters[host].push(adapter.unwrap());
            }
            cable
        });
        let cables = plugged.collect();
        let host = |(host, adapters)| HostAdapters::new(identity(host), adapters).unwrap();
        ModelRing { hosts: adapters.into_iter().enumerate().map(host).collect(), cables }
    }

    /// Returns the backend of a host.
    pub fn backend(&self, host: usize) -> Arc<dyn Backend> {
        Arc::new(LocalAdapters(self.hosts[host].clone()))
    }

    /// Returns the adapters of a host.
    pub fn adapters(&self, host: usize) -> Arc<HostAdapters> {
        self.hosts[host].clone()
    }

    /// Returns the number of free bytes in all windows.
    pub fn free(&self) -> u64 {
        self.hosts.iter().map(|host| host.free()).sum()
    }

    /// Checks that the drivers have made no access that a chip misunderstands, and have read nothing across a link.
    pub fn check(&self) {
        for cable in &self.cables {
            for end in End::BOTH {
                let counts = cable.lock().counts(end);
                assert_eq!((counts.misunderstood, counts.window_reads), (0, 0), "{end:?}: {counts:?}");
            }
        }
    }
}

/// Returns the identity of a host.
fn identity(host: usize) -> u64 {
    100 + host as u64
}
