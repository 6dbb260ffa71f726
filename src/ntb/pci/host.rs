//! All adapters of a host, and the division of their windows among jobs.

use crate::adapter::{Adapter, Listener, CONTROL_PAGE};
use crate::address::SliceAddress;
use crate::allotment::{Range, Ranges};
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
    ranges: Mutex<HashMap<PortIndex, Ranges>>,
    jobs: Mutex<HashMap<u64, Weak<Allotment>>>,
    service: Service,
}

impl HostAdapters {
    /// Takes the adapters into service. `host` is the identity with which they were opened. Fails if no thread can be
    /// started.
    pub fn new(host: u64, adapters: Vec<Arc<Adapter>>) -> std::io::Result<Arc<HostAdapters>> {
        let ranges = adapters.iter().map(|adapter| (adapter.port(), Ranges::new(adapter.size(), CONTROL_PAGE)));
        let ranges = Mutex::new(ranges.collect());
        let service = Service::start(adapters.clone())?;
        Ok(Arc::new(HostAdapters { host, adapters, ranges, jobs: Mutex::default(), service }))
    }

    /// Returns the adapter in a port; None if there is none.
    pub fn adapter(&self, port: PortIndex) -> Option<&Arc<Adapter>> {
        self.adapters.iter().find(|adapter| adapter.port() == port)
    }

    /// Returns an event descriptor that rings the doorbell of a slice of the neighbour's window, at `offset`, whenever it
    /// is signalled.
    pub fn bell(&self, adapter: &Arc<Adapter>, offset: u64) -> std::io::Result<BellEvent> {
        let doorbells = adapter.peer().map_or(1, |peer| peer.doorbells.into());
        self.service.bell(adapter, doorbell_of(offset, doorbells))
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

    /// Gives a job a slice of each window that it wants. Fails if there is no adapter in one of the ports, or not
    /// enough room.
    pub fn allot(self: &Arc<Self>, windows: Windows) -> Result<Arc<Allotment>, NtbError> {
        let memory =
            |size| SharedMemory::allocate(size).map_err(|error| device(format!("allocating a window: {error}")));
        let page = memory(PAGE as u64)?;
        let registers = Registers::create(page.region().clone(), windows.ports);
        registers.attend();
        let key = fastrand::u64(1..);
        let mut allotment = Allotment { owner: self.clone(), key, page, registers, slices: Vec::new() };
        // A host without neighbours needs no window.
        let ports = windows.ports.ports().iter().filter(|_| windows.bytes > 0);
        for &port in ports {
            let adapter = self.adapter(port).cloned().ok_or_else(|| self.no_adapter(port))?;
            let range = self.take(port, HEADER as u64 + windows.bytes)?;
            let memory = memory(range.len).inspect_err(|_| self.give_back(port, range))?;
            adapter.map(range.offset, memory.region()).map_err(|error| {
                self.give_back(port, range);
                device(error.to_string())
            })?;
            let bank = allotment.registers.bank(port).ok_or_else(|| self.no_adapter(port))?;
            let doorbell = doorbell_of(range.offset, adapter.chip().limits().doorbells);
            let bells: Arc<dyn Listener> =
                Arc::new(SliceBells::new(memory.region(), allotment.registers.clone(), bank, doorbell));
            allotment.slices.push(Slice { adapter: adapter.clone(), range, memory, bells: bells.clone() });
            adapter.listen(bells);
        }
        let allotment = Arc::new(allotment);
        let mut jobs = lock(&self.jobs);
        jobs.retain(|_, job| job.strong_count() > 0);
        jobs.insert(key, Arc::downgrade(&allotment));
        Ok(allotment)
    }

    /// Returns the number of free bytes in all windows.
    pub fn free(&self) -> u64 {
        lock(&self.ranges).values().map(Ranges::free).sum()
    }

    /// Returns the allotment of a job on this host; None if the address is another host's, or if the job has ended.
    pub fn find(&self, address: &SliceAddress) -> Option<Arc<Allotment>> {
        lock(&self.jobs).get(&address.key).filter(|_| address.host == self.host)?.upgrade()
    }

    fn take(&self, port: PortIndex, len: u64) -> Result<Range, NtbError> {
        let mut ranges = lock(&self.ranges);
        let ranges = ranges.get_mut(&port).ok_or_else(|| self.no_adapter(port))?;
        ranges.take(len).ok_or_else(|| {
            let problem = format!(
                "a job needs {len} bytes of the window of port {port}, of which {} are free: set NTBRING_WINDOW to less, \
                 wait until another job has ended, or give the adapter a larger window",
                ranges.free()
            );
            device(problem)
        })
    }

    fn give_back(&self, port: PortIndex, range: Range) {
        if let Some(ranges) = lock(&self.ranges).get_mut(&port) {
            ranges.give_back(range);
        }
    }

    fn no_adapter(&self, port: PortIndex) -> NtbError {
        let ports: Vec<String> = self.adapters.iter().map(|adapter| adapter.port().to_string()).collect();
        let ports = if ports.is_empty() { "none".to_string() } else { ports.join(", ") };
        let problem = format!("there is no adapter in port {port}; ports with adapters: {ports} (NTBRING_PORTS)");
        device(problem)
    }
}

/// Returns the doorbell of the chip that announces words of the slice at `offset` of a window, for a chip with this
/// number of doorbells.
pub fn doorbell_of(offset: u64, doorbells: usize) -> usize {
    (offset / crate::allotment::PAGE) as usize % doorbells.max(1)
}

/// A job's slice of one window.
pub struct Slice {
    /// The adapter.
    pub adapter: Arc<Adapter>,
    /// The place in the window.
    pub range: Range,
    /// The memory that the neighbour writes.
    pub memory: SharedMemory,
    bells: Arc<dyn Listener>,
}

/// What a job has of the adapters of a host. The slices are free for other jobs when it is dropped.
pub struct Allotment {
    owner: Arc<HostAdapters>,
    key: u64,
    page: SharedMemory,
    registers: Registers,
    slices: Vec<Slice>,
}

impl Allotment {
    /// Returns the address, for the hosts of the job.
    pub fn address(&self) -> SliceAddress {
        let mut pages = [0; PortIndex::MAX_PORTS];
        for slice in &self.slices {
            pages[usize::from(slice.adapter.port().get())] = (slice.range.offset / crate::allotment::PAGE) as u32;
        }
        SliceAddress { host: self.owner.host, key: self.key, pages }
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

    /// Waits until the link at a port is up, and checks that its cable leads to the port `opposite` of the host at
    /// `address`. Returns the offset of that host's slice in its window, bytes.
    pub fn reach(&self, port: PortIndex, address: &SliceAddress, opposite: PortIndex) -> Result<u64, NtbError> {
        let unused = |of, ports| NtbError::NoPort { of, port, ports };
        let slice = self.slice(port).ok_or_else(|| unused("this host", self.registers.ports()))?;
        let offset = address.offset(opposite).ok_or_else(|| NtbError::NoPort {
            of: "the neighbour",
            port: opposite,
            ports: address.ports().unwrap_or_default(),
        })?;
        let wrong = |problem| Err(device(problem));
        let start = Instant::now();
        let peer = loop {
            slice.adapter.serve(Duration::from_nanos(clock::now()), fastrand::u64(..));
            match slice.adapter.peer() {
                Some(peer) => break peer,
                None if start.elapsed() > LINK_TIMEOUT => {
                    return wrong(format!("port {port}: {}", slice.adapter.why_down()));
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        if (peer.host, peer.port) != (address.host, opposite) {
            return wrong(format!(
                "the cable in port {port} leads to port {} of host {:016x} instead of port {opposite} of host {:016x}: \
                 the order of the hosts in the job is not that of the cabling",
                peer.port, peer.host, address.host
            ));
        }
        Ok(offset)
    }
}

impl Drop for Allotment {
    fn drop(&mut self) {
        for slice in self.slices.drain(..) {
            slice.adapter.ignore(&slice.bells);
            slice.adapter.unmap(slice.range.offset);
            self.owner.give_back(slice.adapter.port(), slice.range);
        }
    }
}

fn device(problem: String) -> NtbError {
    NtbError::Device { device: "pci".into(), problem }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
