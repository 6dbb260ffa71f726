//! Hosts with modelled adapters, in one process.

use ntbring_memory::Region;
use ntbring_models::{Cable, End, Plugged, Skx};
use ntbring_ntb::fabric::Backend;
use ntbring_ntb::software::{Registers, PAGE};
use ntbring_ntb::{LinkState, PortIndex, PortList, Side};
use ntbring_pci::{
    identify, Adapter, AdapterGrant, HostAdapters, Listener, LocalAdapters, PciAddress, Service, SliceBells, SlicePort,
    CONTROL_PAGE, HEADER,
};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A kind of modelled adapters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Skx,
}

impl Model {
    /// Returns a new cable, with windows of `window` bytes.
    fn cable(self, window: u64) -> Cable {
        match self {
            Model::Skx => Cable::new(Skx::new(window)),
        }
    }
}

/// Doorbell of the chips that announces words of the one slice.
const DOORBELL: usize = 3;

/// Longest time that a link may take to come up or to go down.
const LINK_TIMEOUT: Duration = Duration::from_secs(20);

/// A host with two adapters.
pub struct ModelHost {
    /// The left and the right one.
    adapters: [Arc<Adapter>; 2],
    registers: Registers,
    _service: Service,
}

/// Two hosts: the right adapter of each is cabled to the left one of the other.
pub struct ModelHosts {
    pub hosts: [ModelHost; 2],
    /// The cable in the right adapter of each host.
    cables: [Cable; 2],
    window: usize,
}

impl ModelHosts {
    /// Creates the hosts, whose ports have windows of `window` bytes, and waits until the links are up.
    pub fn new(model: Model, window: usize) -> ModelHosts {
        let total = (CONTROL_PAGE + HEADER as u64 + window as u64).next_power_of_two();
        let cables = [(); 2].map(|()| model.cable(total));
        let hosts = [0, 1].map(|host| ModelHost::new(host, &cables, total));
        let hosts = ModelHosts { hosts, cables, window };
        hosts.wait_for(LinkState::Up, 0);
        hosts.wait_for(LinkState::Up, 1);
        hosts
    }

    /// Returns the port of a host on a side.
    pub fn port(&self, host: usize, side: Side) -> SlicePort {
        self.hosts[host].port(side, self.window)
    }

    /// Handles all events that have happened at the adapters until now.
    pub fn serve(&self) {
        for adapter in self.hosts.iter().flat_map(|host| &host.adapters) {
            adapter.serve(Duration::from_nanos(ntbring_host::clock::now()), fastrand::u64(..));
        }
    }

    /// Pulls or plugs the cable in the right adapter of a host, and waits until both ends know it.
    pub fn set_cable(&self, host: usize, state: LinkState) {
        self.cables[host].lock().set_cable(state == LinkState::Up);
        self.wait_for(state, host);
    }

    /// Waits until the cable in the right adapter of a host has this state at both ends.
    fn wait_for(&self, state: LinkState, host: usize) {
        let ends =
            [&self.hosts[host].adapters[Side::Right as usize], &self.hosts[1 - host].adapters[Side::Left as usize]];
        let start = Instant::now();
        while ends.iter().any(|adapter| adapter.peer().is_some() != (state == LinkState::Up)) {
            assert!(start.elapsed() < LINK_TIMEOUT, "the link is not {state:?}");
            self.serve();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Checks what [`check`] checks.
    pub fn check(&self) {
        check(&self.cables);
    }
}

impl ModelHost {
    fn new(host: usize, cables: &[Cable; 2], window: u64) -> ModelHost {
        let registers = Registers::create(Region::anonymous(PAGE), PortList::default());
        registers.attend();
        let adapters = Side::BOTH.map(|side| match side {
            Side::Right => adapter(host, side, &cables[host], End::A, window),
            Side::Left => adapter(host, side, &cables[1 - host], End::B, window),
        });
        for adapter in &adapters {
            adapter.listen(bells(adapter, &registers));
        }
        let service = Service::start(adapters.to_vec()).unwrap();
        ModelHost { adapters, registers, _service: service }
    }

    /// Raises a vector of the host.
    pub fn interrupt(&self, doorbell: usize) {
        self.registers.interrupt(doorbell);
    }

    fn port(&self, side: Side, window: usize) -> SlicePort {
        let adapter = self.adapters[side as usize].clone();
        let (index, caps) = (adapter.port(), adapter.caps());
        let bank = self.registers.bank(index).unwrap();
        let (offset, len) = (CONTROL_PAGE, HEADER as u64 + window as u64);
        let incoming = adapter.memory().part(offset as usize, len as usize);
        let grant = AdapterGrant { adapter, offset, len, doorbell: DOORBELL };
        SlicePort::new(index, caps, (self.registers.clone(), bank), incoming, Arc::new(grant)).unwrap()
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
        let cables: Vec<Cable> = (0..hosts).map(|_| model.cable(window)).collect();
        let host = |host: usize| {
            let adapters = Side::BOTH.map(|side| match side {
                Side::Right => adapter(host, side, &cables[host], End::A, window),
                Side::Left => adapter(host, side, &cables[(host + hosts - 1) % hosts], End::B, window),
            });
            HostAdapters::new(identity(host), adapters.into()).unwrap()
        };
        ModelRing { hosts: (0..hosts).map(host).collect(), cables }
    }

    /// Returns the backend of a host.
    pub fn backend(&self, host: usize) -> Arc<dyn Backend> {
        Arc::new(LocalAdapters(self.hosts[host].clone()))
    }

    /// Returns the number of free bytes in all windows.
    pub fn free(&self) -> u64 {
        self.hosts.iter().map(|host| host.free()).sum()
    }

    /// As [`ModelHosts::check`].
    pub fn check(&self) {
        check(&self.cables);
    }
}

/// Returns the identity of a host.
fn identity(host: usize) -> u64 {
    100 + host as u64
}

/// Opens the adapter of a host at one end of a cable.
fn adapter(host: usize, side: Side, cable: &Cable, end: End, window: u64) -> Arc<Adapter> {
    let address = PciAddress { domain: 0, bus: 5 + side as u8, device: 0, function: 0 };
    let chip = identify(Plugged::new(cable, end, address)).unwrap();
    let (memory, align) = (Region::anonymous(window as usize), chip.limits().iova_align);
    Adapter::open(chip, PortIndex::ALL[side as usize], identity(host), memory, 3 * align).unwrap()
}

/// Checks that the drivers have made no access that a chip misunderstands, and have read nothing across a link.
fn check(cables: &[Cable]) {
    for cable in cables {
        for end in End::BOTH {
            let counts = cable.lock().counts(end);
            assert_eq!((counts.misunderstood, counts.window_reads), (0, 0), "{end:?}: {counts:?}");
        }
    }
}

fn bells(adapter: &Arc<Adapter>, registers: &Registers) -> Arc<dyn Listener> {
    let bank = registers.bank(adapter.port()).unwrap();
    let slice = adapter.memory().part(CONTROL_PAGE as usize, HEADER);
    Arc::new(SliceBells::new(&slice, registers.clone(), bank, DOORBELL))
}
