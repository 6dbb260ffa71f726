//! The object behind an `ntbring_endpoint_t`.

use super::abi::{ntbring_endpoint_t, ntbring_job_t};
use super::progress_thread::{self, Guarded, Owned, ProgressThread};
use super::timeline::Timeline;
use super::{argument, Failure};
use ::ntbring_endpoint::settings::TABLE;
use ::ntbring_endpoint::Settings;
use ::ntbring_endpoint::{Endpoint, Idle, ReadQueues};
use ntbring_host::{keep_freed_memory, sidecar};
use ntbring_ring::join::{Candidate, Card, JoinError};
use ntbring_ring::liveness::Monitor;
use ntbring_ring::Topology;
use ntbring_settings::Loaded;
use std::cell::OnceCell;
use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock};

/// The allocation to which an `ntbring_endpoint_t` points.
struct Opaque {
    shared: Arc<Shared>,
    handle: Handle,
}

/// The part that any thread may use while another thread uses the handle.
#[derive(Default)]
pub struct Shared {
    idle: OnceLock<Arc<Idle>>,
    /// Groups in which no further allgather will begin, but which are still open.
    ended: Mutex<Vec<u32>>,
}

/// An endpoint, before and after it has joined the ring.
pub struct Handle {
    state: State,
    size: usize,
    settings: Settings,
    /// Values of all settings as text, in the table's order.
    values: Vec<CString>,
    /// Handlers whose messages are charged for credit; one bit for each.
    charged: u64,
    /// Reads the caller's queues, until the endpoint is connected.
    queues: Option<ReadQueues>,
    /// Index of the endpoint in its process.
    vci: u32,
    shared: Arc<Shared>,
    timeline: Option<Timeline>,
}

enum State {
    Open(Box<Candidate>),
    Connected(Connected),
    /// Joining the ring has failed.
    Failed,
}

struct Connected {
    /// Started with the first large payload; stopped before the endpoint is dropped.
    progress_thread: OnceCell<Option<ProgressThread>>,
    endpoint: Arc<Guarded<Endpoint>>,
}

impl Connected {
    #[inline]
    fn endpoint(&mut self) -> Owned<'_, Endpoint> {
        // SAFETY: the exclusive borrow of this value makes the thread the only owner, and the guard does not outlive
        // it.
        unsafe { self.endpoint.own() }
    }
}

impl Shared {
    /// Returns the shared part behind a pointer.
    ///
    /// # Safety
    /// It must come from `Handle::into_raw`, or be NULL.
    pub unsafe fn from_raw<'a>(endpoint: *mut ntbring_endpoint_t) -> Result<&'a Shared, Failure> {
        if endpoint.is_null() {
            return Err(argument("endpoint must not be NULL"));
        }
        // SAFETY: allocated by `Box::into_raw`; this field is never borrowed mutably.
        Ok(unsafe { &*std::ptr::addr_of!((*endpoint.cast::<Opaque>()).shared) })
    }

    /// Returns the waiting strategy; None before the endpoint is connected.
    pub fn idle(&self) -> Option<&Idle> {
        self.idle.get().map(Arc::as_ref)
    }

    /// Schedules a group to be closed when the next group is requested.
    pub fn end_group(&self, id: u32) {
        self.ended.lock().unwrap_or_else(|e| e.into_inner()).push(id);
    }
}

/// Returns the values of all settings, in the table's order.
fn values(loaded: &Loaded<Settings>) -> Vec<CString> {
    TABLE.settings().map(|setting| CString::new(loaded.value(setting).0.to_string()).unwrap_or_default()).collect()
}

impl Handle {
    pub fn open(job: &ntbring_job_t, host_of: &[i32], queues: Option<ReadQueues>) -> Result<Handle, Failure> {
        let (rank, vci) = (job.rank as u32, job.vci as u32);
        keep_freed_memory();
        let loaded = Settings::load()?;
        let values = values(&loaded);
        let Loaded { mut settings, remark, warnings, .. } = loaded;
        if let Some(file) = settings.links.trace.as_mut().filter(|_| vci > 0) {
            file.as_mut_os_string().push(format!(".vci{vci}"));
        }
        let filter = settings.endpoint.log.as_deref().unwrap_or("warn");
        // The process may have a logger already; it is used then.
        let _ = env_logger::Builder::new().parse_filters(filter).try_init();
        let topology = Topology::new(job.hosts.max(0) as usize, host_of).map_err(JoinError::from)?;
        let size = topology.size();
        // All ranks of a host, and all endpoints of a rank, have the same remark; one of them logs it.
        if let Some(remark) = remark.filter(|_| topology.local_of(rank) == 0 && vci == 0) {
            log::info!("rank {rank}: {remark}");
        }
        if rank == 0 && vci == 0 && size > 1 && topology.hosts() == 1 {
            log::info!(
                "all {size} ranks are on one host, without a ring; `ntbring run -H {size} -n {size} PROGRAM` or `mpiexec \
                 -launcher fork -hosts h0,h1,...` has them on emulated hosts"
            );
        }
        for warning in warnings.iter().filter(|_| rank == 0 && vci == 0) {
            log::warn!("{warning}");
        }
        let candidate = Candidate::new(topology, rank, settings.clone())?;
        let (state, charged) = (State::Open(Box::new(candidate)), job.charged);
        Ok(Handle { state, size, settings, values, charged, queues, vci, shared: Arc::default(), timeline: None })
    }

    /// Converts the handle into the pointer that C holds.
    pub fn into_raw(self) -> *mut ntbring_endpoint_t {
        Box::into_raw(Box::new(Opaque { shared: self.shared.clone(), handle: self })).cast()
    }

    /// Converts the pointer back into the handle.
    ///
    /// # Safety
    /// The pointer must come from `into_raw`, and must not be used afterwards.
    pub unsafe fn take_back(endpoint: *mut ntbring_endpoint_t) -> Handle {
        // SAFETY: allocated by `Box::into_raw`; the caller gives up the pointer.
        unsafe { Box::from_raw(endpoint.cast::<Opaque>()) }.handle
    }

    /// Returns the handle behind a pointer.
    ///
    /// # Safety
    /// It must come from `into_raw`, or be NULL, and no other reference to the handle may exist.
    #[inline]
    pub unsafe fn from_raw<'a>(endpoint: *mut ntbring_endpoint_t) -> Result<&'a mut Handle, Failure> {
        if endpoint.is_null() {
            return Err(argument("endpoint must not be NULL"));
        }
        // SAFETY: allocated by `Box::into_raw`; the caller guarantees that there is no other reference to this field.
        Ok(unsafe { &mut *std::ptr::addr_of_mut!((*endpoint.cast::<Opaque>()).handle) })
    }

    /// Closes the groups that are scheduled for it. Any thread may schedule one while another uses the endpoint.
    pub fn close_ended_groups(&mut self) -> Result<(), Failure> {
        let ended = std::mem::take(&mut *self.shared.ended.lock().unwrap_or_else(|e| e.into_inner()));
        let mut endpoint = self.endpoint()?;
        ended.into_iter().for_each(|id| endpoint.close_group(id));
        Ok(())
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the values of all settings, in the table's order.
    pub fn values(&self) -> &[CString] {
        &self.values
    }

    pub fn check_space(&self) -> Result<(), Failure> {
        match &self.state {
            State::Open(candidate) => Ok(candidate.check_space()?),
            _ => Err(argument("ntbring_check_space must be called before ntbring_connect")),
        }
    }

    /// Returns the address that other processes need: the ranks of the job before joining, any process afterwards.
    pub fn address(&mut self) -> Result<Vec<u8>, Failure> {
        match &mut self.state {
            State::Open(candidate) => Ok(candidate.card().bytes().to_vec()),
            State::Connected(connected) => Ok(connected.endpoint().external_peer_address().bytes().to_vec()),
            State::Failed => Err(argument("joining has failed")),
        }
    }

    pub fn connect<'a>(&mut self, addresses: impl Iterator<Item = &'a [u8]>) -> Result<(), Failure> {
        let State::Open(candidate) = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(argument("ntbring_connect must not be called twice"));
        };
        let cards = addresses
            .enumerate()
            .map(|(rank, a)| Card::parse(a).map_err(|what| JoinError::Address { rank: rank as u32, what }))
            .collect::<Result<Vec<Card>, JoinError>>()?;
        let mut members = candidate.join(&cards)?;
        if let Some(monitor) = members.take_monitor() {
            let started = sidecar::start(c"ntbring-monitor", monitor, Monitor::descriptors, Monitor::run);
            started.map_err(JoinError::Monitor)?;
        }
        let tells = members.rank() == 0 && self.vci == 0;
        if let Some(remark) = tells.then(|| members.remark()).flatten() {
            log::warn!("{remark}");
        }
        self.timeline = Timeline::start(&self.settings, &members, &cards, self.charged);
        let mut endpoint = Endpoint::new(members, self.settings.clone())?;
        endpoint.charge(self.charged);
        endpoint.set_vci(self.vci);
        self.queues.take().into_iter().for_each(|read| endpoint.set_queues(read));
        let _ = self.shared.idle.set(endpoint.idle());
        let endpoint = Arc::new(Guarded::new(endpoint));
        self.state = State::Connected(Connected { progress_thread: OnceCell::new(), endpoint });
        Ok(())
    }

    /// Returns true once everything that was sent outlives this process; true before joining.
    pub fn flush(&mut self) -> Result<bool, Failure> {
        match &mut self.state {
            State::Connected(connected) => Ok(connected.endpoint().flush()?),
            _ => Ok(true),
        }
    }

    /// Keeps retransmitting entries that peers have not taken, until the handle is dropped. Does nothing before
    /// joining.
    pub fn linger(&mut self) -> Result<(), Failure> {
        match &mut self.state {
            State::Connected(connected) => connected.endpoint().linger()?,
            _ => return Ok(()),
        }
        self.timeline.iter_mut().for_each(Timeline::stop);
        Ok(())
    }

    /// Removes and returns the endpoint's part in the timeline.
    pub fn take_timeline(&mut self) -> Option<Timeline> {
        self.timeline.take()
    }

    #[inline]
    pub fn endpoint(&mut self) -> Result<Owned<'_, Endpoint>, Failure> {
        match &mut self.state {
            State::Connected(connected) => Ok(connected.endpoint()),
            _ => Err(argument("the endpoint is not connected")),
        }
    }

    /// To be called when a payload of `bytes` bytes begins that may not be complete when this rank leaves MPI.
    #[inline]
    pub fn overlap(&mut self, bytes: u64) {
        let State::Connected(connected) = &mut self.state else { return };
        if bytes < progress_thread::BULK {
            return;
        }
        if connected.progress_thread.get().is_none() {
            let progress_thread = ProgressThread::start(connected.endpoint.clone(), &connected.endpoint());
            let _ = connected.progress_thread.set(progress_thread);
        }
        connected.progress_thread.get().into_iter().flatten().for_each(ProgressThread::call);
    }
}
