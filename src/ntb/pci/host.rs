//! All adapters of a host, and the division of their windows among jobs.

use crate::adapter::{Adapter, Listener, CONTROL_PAGE};
use crate::adapter_slices::{doorbell_of, SliceUse};
use crate::address::SliceAddress;
use crate::allotment::Range;
use crate::memory::SharedMemory;
use crate::service::{BellEvent, Service};
use crate::slice::{SliceBells, HEADER};
use ntbring_host::clock;
use ntbring_ntb::fabric::Windows;
use ntbring_ntb::software::{Registers, PAGE};
use ntbring_ntb::{NtbError, PortCaps, PortIndex};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Longest time that a job waits for a link to come up.
const LINK_TIMEOUT: Duration = Duration::from_secs(20);

/// The adapters of this host, which this process owns.
pub struct HostAdapters {
    /// Identity of this host, a random number.
    host: u64,
    adapters: Vec<Arc<Adapter>>,
    jobs: Mutex<HashMap<u64, Weak<Allotment>>>,
    service: Service,
}

impl HostAdapters {
    /// Takes the adapters into service. `host` is the identity with which they were opened. Fails if no thread can be
    /// started.
    pub fn new(host: u64, adapters: Vec<Arc<Adapter>>) -> std::io::Result<Arc<HostAdapters>> {
        let service = Service::start(adapters.clone())?;
        Ok(Arc::new(HostAdapters { host, adapters, jobs: Mutex::default(), service }))
    }

    /// Returns the adapter in a port; None if there is none.
    pub fn adapter(&self, port: PortIndex) -> Option<&Arc<Adapter>> {
        self.adapters.iter().find(|adapter| adapter.port() == port)
    }

    /// Returns an event descriptor that rings the doorbell of a slice of a neighbour's window whenever it is signalled.
    pub fn bell(&self, slice: &SliceUse) -> std::io::Result<BellEvent> {
        self.service.bell(&slice.adapter, slice.doorbell())
    }

    /// Returns the capabilities that all adapters have.
    pub fn caps(&self) -> PortCaps {
        let mut caps = PortCaps::SOFTWARE;
        for one in self.adapters.iter().map(|adapter| adapter.caps()) {
            caps.mapping = one.mapping;
            caps.window_max = caps.window_max.min(one.window_max - CONTROL_PAGE - HEADER as u64);
        }
        caps
    }

    /// Gives a job of a user a slice of each window that it wants. Fails if there is no adapter in one of the ports, or
    /// not enough room.
    pub fn allot(self: &Arc<Self>, windows: Windows, user: u32) -> Result<Arc<Allotment>, NtbError> {
        let page = SharedMemory::allocate(PAGE as u64);
        let page = page.map_err(|error| device(format!("memory of a register page: {error}")))?;
        let registers = Registers::create(page.region().clone(), windows.ports);
        registers.attend();
        let key = fastrand::u64(1..);
        let mut allotment = Allotment { owner: self.clone(), key, user, page, registers, slices: Vec::new() };
        // A host without neighbours needs no window.
        let ports = windows.ports.ports().iter().filter(|_| windows.bytes > 0);
        for &port in ports {
            let adapter = self.adapter(port).cloned().ok_or_else(|| self.no_adapter(port))?;
            let (range, memory) = adapter.add_slice(key, user, HEADER as u64 + windows.bytes)?;
            let doorbell = doorbell_of(range, adapter.chip().limits().doorbells);
            let bells = allotment.registers.bank(port).map(|bank| -> Arc<dyn Listener> {
                Arc::new(SliceBells::new(memory.region(), allotment.registers.clone(), bank, doorbell))
            });
            bells.iter().for_each(|bells| adapter.listen(bells.clone()));
            allotment.slices.push(Slice { adapter: adapter.clone(), range, memory, bells });
        }
        let allotment = Arc::new(allotment);
        let mut jobs = lock(&self.jobs);
        jobs.retain(|_, job| job.strong_count() > 0);
        jobs.insert(key, Arc::downgrade(&allotment));
        Ok(allotment)
    }

    /// Returns the number of free bytes in all windows.
    pub fn free(&self) -> u64 {
        self.adapters.iter().map(|adapter| adapter.free()).sum()
    }

    /// Returns the allotment of a job on this host; None if the address is another host's, or if the job has ended.
    pub fn find(&self, address: &SliceAddress) -> Option<Arc<Allotment>> {
        lock(&self.jobs).get(&address.key).filter(|_| address.host == self.host)?.upgrade()
    }

    fn no_adapter(&self, port: PortIndex) -> NtbError {
        let ports: Vec<String> = self.adapters.iter().map(|adapter| adapter.port().to_string()).collect();
        let ports = if ports.is_empty() { "none".to_string() } else { ports.join(", ") };
        let problem = format!("there is no adapter in port {port}; ports with adapters: {ports} (NTBRING_PORTS)");
        device(problem)
    }
}

/// A job's slice of one window.
pub struct Slice {
    /// The adapter.
    pub adapter: Arc<Adapter>,
    /// The place in the window.
    pub range: Range,
    /// The memory that the neighbour writes.
    pub memory: Arc<SharedMemory>,
    bells: Option<Arc<dyn Listener>>,
}

/// The slices of a job on a host, and its register page. Dropping it closes the slices.
pub struct Allotment {
    owner: Arc<HostAdapters>,
    key: u64,
    user: u32,
    page: SharedMemory,
    registers: Registers,
    slices: Vec<Slice>,
}

impl Allotment {
    /// Returns the address, for the hosts of the job.
    pub fn address(&self) -> SliceAddress {
        SliceAddress { host: self.owner.host, key: self.key, ports: self.registers.ports() }
    }

    /// Returns the adapters of the host.
    pub fn owner(&self) -> &Arc<HostAdapters> {
        &self.owner
    }

    /// Returns the register page of the job on this host.
    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// Returns the memory of the register page.
    pub fn page(&self) -> &SharedMemory {
        &self.page
    }

    /// Returns the slices.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Returns the slice of the window of a port; None if the job does not use the port.
    pub fn slice(&self, port: PortIndex) -> Option<&Slice> {
        self.slices.iter().find(|slice| slice.adapter.port() == port)
    }

    /// Waits until the link at a port is up and the neighbour has published the slice of its window for this job, and
    /// checks that the cable leads to the port `opposite` of the host at `address`. Returns access to the slice.
    pub fn reach(&self, port: PortIndex, address: &SliceAddress, opposite: PortIndex) -> Result<SliceUse, NtbError> {
        let ports = self.registers.ports();
        let slice = self.slice(port).ok_or(NtbError::NoPort { of: "this host", port, ports })?;
        if address.ports.position(opposite).is_none() {
            return Err(NtbError::NoPort { of: "the neighbour", port: opposite, ports: address.ports });
        }
        let start = Instant::now();
        loop {
            slice.adapter.serve(Duration::from_nanos(clock::now()), fastrand::u64(..));
            let peer = slice.adapter.peer();
            if let Some(peer) = peer.filter(|peer| (peer.host, peer.port) != (address.host, opposite)) {
                return Err(device(format!(
                    "the cable in port {port} leads to port {} of host {:016x} instead of port {opposite} of host \
                     {:016x}: the order of the hosts in the job is not that of the cabling",
                    peer.port, peer.host, address.host
                )));
            }
            match slice.adapter.use_slice(address.key, self.user) {
                Some(slice) => return Ok(slice),
                None if start.elapsed() < LINK_TIMEOUT => std::thread::sleep(Duration::from_millis(5)),
                None if peer.is_none() => return Err(device(format!("port {port}: {}", slice.adapter.why_down()))),
                None => {
                    return Err(device(format!(
                        "port {port}: the neighbour has no window for this job of user {}: the job has ended there, or \
                         its processes there belong to another user",
                        self.user
                    )))
                }
            }
        }
    }
}

impl Drop for Allotment {
    fn drop(&mut self) {
        for slice in self.slices.drain(..) {
            slice.bells.iter().for_each(|bells| slice.adapter.ignore(bells));
            slice.adapter.close_slice(self.key);
        }
    }
}

fn device(problem: String) -> NtbError {
    NtbError::Device { device: "pci".into(), problem }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
