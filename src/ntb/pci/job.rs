//! The jobs of a host, and their slices of the adapters' windows.

use crate::adapter::{doorbell_of, Adapter, Listener, SliceUse};
use crate::adapters::Adapters;
use crate::address::{slice_key, SliceAddress};
use crate::circuits::{Exposes, Wanted};
use crate::memory::SharedMemory;
use crate::relay::{LocalSlice, Outlet, Target};
use crate::slice::{SliceBells, HEADER};
use ntbring_ntb::fabric::Windows;
use ntbring_ntb::software::{Registers, PAGE};
use ntbring_ntb::{NtbError, PortIndex};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Longest time that a job waits for a link to come up.
const LINK_TIMEOUT: Duration = Duration::from_secs(20);

/// Time that a job waits for the link of a port's cable before it takes a circuit instead.
const LINK_PATIENCE: Duration = Duration::from_secs(3);

/// The jobs of a host, by their keys.
#[derive(Default)]
pub struct Jobs(Mutex<HashMap<u64, Weak<Allotment>>>);

impl Jobs {
    /// Adds a job.
    pub fn add(&self, job: &Arc<Allotment>) {
        let mut jobs = lock(&self.0);
        jobs.retain(|_, job| job.strong_count() > 0);
        jobs.insert(job.key, Arc::downgrade(job));
    }

    /// Returns the job with this key; None if it has ended.
    pub fn find(&self, key: u64) -> Option<Arc<Allotment>> {
        lock(&self.0).get(&key)?.upgrade()
    }
}

impl Exposes for Jobs {
    fn expose(&self, key: u64, user: u32, arrival: &Arc<Adapter>) -> Result<Option<Target>, String> {
        let Some((job, port)) = slice_key::split(key).and_then(|(job, port)| Some((self.find(job)?, port))) else {
            return Ok(None);
        };
        if job.user != user {
            return Err(format!("the slice is not one of user {user}"));
        }
        job.expose(port, arrival).map_err(|error| error.to_string())
    }
}

/// A job's slice of one window.
pub struct Slice {
    /// The port of the job.
    pub port: PortIndex,
    /// The adapter of that port; ports without an adapter share another port's.
    pub adapter: Arc<Adapter>,
    /// The memory that the neighbour writes.
    pub memory: Arc<SharedMemory>,
    bells: Arc<SliceBells>,
    /// The slice as the agent of this host writes it, for circuits.
    local: Arc<LocalSlice>,
    /// The adapters by whose cables it can be written.
    exposures: Mutex<Vec<Exposure>>,
    /// Relayed access of processes to the neighbour's slice.
    outlet: Mutex<Option<Arc<Outlet>>>,
    /// The route of all processes of the job; None until the first of them has one.
    route: Mutex<Option<Route>>,
}

/// An adapter by whose cable a slice can be written, with the listener for the doorbells there.
type Exposure = (Arc<Adapter>, Arc<dyn Listener>);

/// A route to the neighbour of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    /// The cable of the port.
    Cable,
    /// A circuit.
    Circuit,
}

impl Slice {
    /// Chooses the route, if none is chosen yet. Returns true if this is the route then.
    fn takes(&self, route: Route) -> bool {
        let mut chosen = lock(&self.route);
        if chosen.is_none() && route == Route::Circuit {
            self.bells.follow_circuit();
        }
        *chosen.get_or_insert(route) == route
    }
}

/// The way of a port's writes.
pub enum Way {
    /// The slice of the host to which the port's cable leads.
    Direct(SliceUse),
    /// The agents forward them.
    Relayed(Arc<Outlet>),
}

/// The slices of a job on a host, and its register page. Dropping it closes the slices.
pub struct Allotment {
    owner: Arc<Adapters>,
    key: u64,
    user: u32,
    page: SharedMemory,
    registers: Registers,
    slices: Vec<Slice>,
}

impl Allotment {
    /// Gives a job of a user a slice for each port. Fails if no port has an adapter, or if there is not enough room.
    pub(crate) fn new(
        owner: &Arc<Adapters>,
        windows: Windows,
        user: u32,
        is_one_ending: &dyn Fn() -> bool,
    ) -> Result<Allotment, NtbError> {
        let page = SharedMemory::allocate(PAGE as u64);
        let page = page.map_err(|error| device(format!("memory of a register page: {error}")))?;
        let registers = Registers::create(page.region().clone(), windows.ports);
        registers.attend();
        let key = slice_key::job(fastrand::u64(1..));
        let mut allotment = Allotment { owner: owner.clone(), key, user, page, registers, slices: Vec::new() };
        // A host without neighbours needs no window.
        if windows.bytes > 0 {
            let ports = windows.ports.ports();
            for (&port, adapter) in ports.iter().zip(owner.adapters_of(ports)?) {
                let len = windows.bytes.saturating_add(HEADER as u64);
                let slice = allotment.slice_for(port, adapter, len, is_one_ending)?;
                allotment.slices.push(slice);
            }
        }
        Ok(allotment)
    }

    fn slice_for(
        &self,
        port: PortIndex,
        adapter: Arc<Adapter>,
        len: u64,
        is_one_ending: &dyn Fn() -> bool,
    ) -> Result<Slice, NtbError> {
        let unused = NtbError::NoPort { of: "this host", port, ports: self.registers.ports() };
        let bank = self.registers.bank(port).ok_or(unused)?;
        let (range, memory) = adapter.wait_for_slice(slice_key::of(self.key, port), self.user, len, is_one_ending)?;
        let bells = Arc::new(SliceBells::new(memory.region(), self.registers.clone(), bank));
        let listener = bells.listener(doorbell_of(range, adapter.chip().limits().doorbells), true);
        adapter.listen(listener.clone());
        let exposures = Mutex::new(vec![(adapter.clone(), listener)]);
        let local = Arc::new(LocalSlice::new(&memory, bells.clone()));
        let (outlet, route) = Default::default();
        Ok(Slice { port, adapter, memory, bells, local, exposures, outlet, route })
    }

    /// Returns the address, for the hosts of the job.
    pub fn address(&self) -> SliceAddress {
        SliceAddress { host: self.owner.identity(), key: self.key, ports: self.registers.ports() }
    }

    /// Returns the adapters of the host.
    pub fn owner(&self) -> &Arc<Adapters> {
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

    /// Returns the slice of a port; None if the job does not use the port.
    pub fn slice(&self, port: PortIndex) -> Option<&Slice> {
        self.slices.iter().find(|slice| slice.port == port)
    }

    /// Makes the slice of a port writable by the cable of an adapter, too. Returns the slice as a target if its memory
    /// cannot be behind the adapter's window.
    fn expose(&self, port: PortIndex, arrival: &Arc<Adapter>) -> Result<Option<Target>, NtbError> {
        let Some(slice) = self.slice(port) else { return Ok(None) };
        let mut exposures = lock(&slice.exposures);
        if exposures.iter().any(|(adapter, _)| Arc::ptr_eq(adapter, arrival)) {
            return Ok(None);
        }
        if arrival.has_own_memory() {
            return Ok(Some(Target::Local(slice.local.clone())));
        }
        let range = arrival.add_memory(slice_key::of(self.key, port), self.user, slice.memory.clone())?;
        let listener = slice.bells.listener(doorbell_of(range, arrival.chip().limits().doorbells), false);
        arrival.listen(listener.clone());
        exposures.push((arrival.clone(), listener));
        Ok(None)
    }

    /// Finds the way from a port to the port `opposite` of the host at `address`, and waits until it is there: directly
    /// through the port's cable if that leads to the host, otherwise by a circuit. Gives up when `is_abandoned` says that
    /// nobody waits for the way any more.
    pub fn reach(
        &self,
        port: PortIndex,
        address: &SliceAddress,
        opposite: PortIndex,
        is_abandoned: &dyn Fn() -> bool,
    ) -> Result<Way, NtbError> {
        let ports = self.registers.ports();
        let slice = self.slice(port).ok_or(NtbError::NoPort { of: "this host", port, ports })?;
        if address.ports.position(opposite).is_none() {
            return Err(NtbError::NoPort { of: "the neighbour", port: opposite, ports: address.ports });
        }
        let (own, key) = (slice_key::of(self.key, port), slice_key::of(address.key, opposite));
        let start = Instant::now();
        loop {
            let route = *lock(&slice.route);
            let cable = slice.adapter.cable();
            if route != Some(Route::Circuit) && cable.is_some_and(|cable| cable.peer == address.host) {
                if let Some(found) = slice.adapter.use_slice(key, self.user).filter(|_| slice.takes(Route::Cable)) {
                    self.owner.circuits().end(own);
                    return Ok(Way::Direct(found));
                }
            }
            let is_straight =
                cable.is_some_and(|cable| (cable.peer, cable.peer_port) == (address.host, opposite.get()));
            // The cable's link may be about to come up.
            let is_patient = cable.is_none() && slice.adapter.port() == port && start.elapsed() < LINK_PATIENCE;
            let needs_circuit = route == Some(Route::Circuit) || route.is_none() && !is_straight && !is_patient;
            if needs_circuit && self.owner.circuits().knows(address.host) {
                let outlet = self.owner.circuits().begin(own, || self.wanted(slice, address, key, opposite));
                if outlet.is_up() && slice.takes(Route::Circuit) {
                    return Ok(Way::Relayed(outlet));
                }
            }
            if start.elapsed() > LINK_TIMEOUT || is_abandoned() {
                return Err(device(format!("port {port}: {}", self.why_unreached(slice, address))));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the user whose job it is.
    pub(crate) fn user(&self) -> u32 {
        self.user
    }

    /// Returns the adapter by whose cable a port writes the neighbour; None if it has another way.
    pub(crate) fn cable(&self, port: PortIndex) -> Option<&Arc<Adapter>> {
        let slice = self.slice(port).filter(|slice| *lock(&slice.route) == Some(Route::Cable))?;
        Some(&slice.adapter)
    }

    /// Returns the circuit that a port needs.
    fn wanted(&self, slice: &Slice, address: &SliceAddress, key: u64, opposite: PortIndex) -> Wanted {
        log::info!(
            "port {}: its cable does not lead to host {:016x}, the next one of a job: agents forward the messages",
            slice.port,
            address.host
        );
        let ports = [slice.adapter.port().get(), opposite.get()];
        Wanted { to: address.host, key, ports, user: self.user, bells: slice.bells.clone() }
    }

    fn why_unreached(&self, slice: &Slice, address: &SliceAddress) -> String {
        match slice.adapter.cable() {
            _ if self.owner.circuits().knows(address.host) => format!(
                "host {:016x} has no window for this job of user {}: the job has ended there, its processes there belong \
                 to another user, or a host on the way has no room (see the logs of ntbringd)",
                address.host, self.user
            ),
            None => slice.adapter.why_down(),
            Some(_) => format!(
                "no cables lead to host {:016x}: `ntbring topo` on both hosts shows what is connected",
                address.host
            ),
        }
    }

    /// Returns the outlet through which processes that cannot map the neighbour's slice write it; `slice` is the right
    /// to write it, for the first of them.
    pub fn relayed(&self, port: PortIndex, slice: SliceUse) -> Result<Arc<Outlet>, NtbError> {
        let ports = self.registers.ports();
        let own = self.slice(port).ok_or(NtbError::NoPort { of: "this host", port, ports })?;
        let mut outlet = lock(&own.outlet);
        if let Some(outlet) = &*outlet {
            return Ok(outlet.clone());
        }
        let new = Arc::new(Outlet::new(Target::slice(slice)?));
        self.owner.relay().add(&new);
        Ok(outlet.insert(new).clone())
    }
}

impl Drop for Allotment {
    fn drop(&mut self) {
        for slice in self.slices.drain(..) {
            let key = slice_key::of(self.key, slice.port);
            self.owner.circuits().end(key);
            slice.local.close();
            lock(&slice.outlet).iter().for_each(|outlet| outlet.set_target(Target::Down));
            for (adapter, listener) in lock(&slice.exposures).drain(..) {
                adapter.ignore(&listener);
                adapter.close_slice(key);
            }
        }
    }
}

fn device(problem: String) -> NtbError {
    NtbError::Device { device: "pci".into(), problem }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
