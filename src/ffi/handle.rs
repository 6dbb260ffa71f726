//! What stands behind an `ntbring_endpoint_t`.

use super::abi::{ntbring_endpoint_t, ntbring_job_t};
use super::deputy::{self, Deputy, Guarded, Owned};
use super::{argument, variables, Failure};
use ::ntbring_endpoint::Settings;
use ::ntbring_endpoint::{Endpoint, Idle};
use ntbring_ring::join::{Candidate, Card, JoinError};
use ntbring_ring::Topology;
use ntbring_settings::Loaded;
use std::cell::OnceCell;
use std::ffi::CString;
use std::sync::{Arc, Mutex, OnceLock};

/// What an `ntbring_endpoint_t` is.
struct Opaque {
    shared: Arc<Shared>,
    handle: Handle,
}

/// What any thread may use while another uses the handle.
#[derive(Default)]
pub struct Shared {
    idle: OnceLock<Arc<Idle>>,
    /// Groups that nobody will share in any more, but which are open yet.
    ended: Mutex<Vec<u32>>,
}

/// An endpoint before and after it has joined the ring.
pub struct Handle {
    state: State,
    size: usize,
    settings: Settings,
    /// Of all settings, in the table's order, as they would be written.
    values: Vec<CString>,
    /// Handlers whose messages are charged, a bit each.
    charged: u64,
    /// Which of its process's endpoints it is.
    vci: u32,
    shared: Arc<Shared>,
}

enum State {
    Open(Box<Candidate>),
    Connected(Connected),
    /// Joining has failed.
    Failed,
}

struct Connected {
    /// Decided upon with the first large payload; ends before the endpoint does.
    deputy: OnceCell<Option<Deputy>>,
    endpoint: Arc<Guarded<Endpoint>>,
}

impl Connected {
    #[inline]
    fn endpoint(&mut self) -> Owned<'_, Endpoint> {
        // SAFETY: whoever has this exclusively is the owner, and what is returned lives no longer.
        unsafe { self.endpoint.own() }
    }
}

impl Shared {
    /// What is behind a pointer.
    ///
    /// # Safety
    /// It must come from `Handle::into_raw`, or be NULL.
    pub unsafe fn from_raw<'a>(endpoint: *mut ntbring_endpoint_t) -> Result<&'a Shared, Failure> {
        if endpoint.is_null() {
            return Err(argument("endpoint must not be NULL"));
        }
        // SAFETY: made by Box::into_raw; nobody borrows this field mutably.
        Ok(unsafe { &*std::ptr::addr_of!((*endpoint.cast::<Opaque>()).shared) })
    }

    /// None before the endpoint is connected.
    pub fn idle(&self) -> Option<&Idle> {
        self.idle.get().map(Arc::as_ref)
    }

    /// Has a group closed as soon as the endpoint is asked for another.
    pub fn end_group(&self, id: u32) {
        self.ended.lock().unwrap_or_else(|e| e.into_inner()).push(id);
    }
}

impl Handle {
    pub fn open(job: &ntbring_job_t, host_of: &[i32]) -> Result<Handle, Failure> {
        let (rank, vci) = (job.rank as u32, job.vci as u32);
        let loaded = Settings::load()?;
        let values = variables::values(&loaded);
        let Loaded { mut settings, remark, .. } = loaded;
        if let Some(file) = settings.links.trace.as_mut().filter(|_| vci > 0) {
            file.as_mut_os_string().push(format!(".vci{vci}"));
        }
        let filter = settings.endpoint.log.as_deref().unwrap_or("warn");
        // Somebody else in the process may have a logger: theirs is as good.
        let _ = env_logger::Builder::new().parse_filters(filter).try_init();
        let topology = Topology::new(job.hosts.max(0) as usize, host_of).map_err(JoinError::from)?;
        let size = topology.size();
        // The ranks of a host, and the endpoints of a rank, would all say the same.
        if let Some(remark) = remark.filter(|_| topology.local_of(rank) == 0 && vci == 0) {
            log::info!("rank {rank}: {remark}");
        }
        let candidate = Candidate::new(topology, rank, settings.clone())?;
        let (state, charged) = (State::Open(Box::new(candidate)), job.charged);
        Ok(Handle { state, size, settings, values, charged, vci, shared: Arc::default() })
    }

    /// Gives the handle into the hands of C.
    pub fn into_raw(self) -> *mut ntbring_endpoint_t {
        Box::into_raw(Box::new(Opaque { shared: self.shared.clone(), handle: self })).cast()
    }

    /// Takes it back.
    ///
    /// # Safety
    /// The pointer must come from `into_raw`, and nobody may use it any more.
    pub unsafe fn take_back(endpoint: *mut ntbring_endpoint_t) -> Handle {
        // SAFETY: made by Box::into_raw, given up by the caller.
        unsafe { Box::from_raw(endpoint.cast::<Opaque>()) }.handle
    }

    /// The handle behind a pointer.
    ///
    /// # Safety
    /// It must come from `into_raw`, or be NULL, and no other reference to the handle may exist.
    #[inline]
    pub unsafe fn from_raw<'a>(endpoint: *mut ntbring_endpoint_t) -> Result<&'a mut Handle, Failure> {
        if endpoint.is_null() {
            return Err(argument("endpoint must not be NULL"));
        }
        // SAFETY: made by Box::into_raw; exclusive by contract, as far as this field goes.
        Ok(unsafe { &mut *std::ptr::addr_of_mut!((*endpoint.cast::<Opaque>()).handle) })
    }

    /// Closes the groups that have ended. Any thread may end one, even while another is at the endpoint.
    pub fn close_ended_groups(&mut self) -> Result<(), Failure> {
        let ended = std::mem::take(&mut *self.shared.ended.lock().unwrap_or_else(|e| e.into_inner()));
        let mut endpoint = self.endpoint()?;
        ended.into_iter().for_each(|id| endpoint.close_group(id));
        Ok(())
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Of all settings, in the table's order.
    pub fn values(&self) -> &[CString] {
        &self.values
    }

    pub fn check_space(&self) -> Result<(), Failure> {
        match &self.state {
            State::Open(candidate) => Ok(candidate.check_space()?),
            _ => Err(argument("space is asked for after joining")),
        }
    }

    /// What others need: the job before joining, anybody else afterwards.
    pub fn address(&mut self) -> Result<Vec<u8>, Failure> {
        match &mut self.state {
            State::Open(candidate) => Ok(candidate.card().bytes().to_vec()),
            State::Connected(connected) => Ok(connected.endpoint().guest_address().bytes().to_vec()),
            State::Failed => Err(argument("joining has failed")),
        }
    }

    pub fn connect<'a>(&mut self, addresses: impl Iterator<Item = &'a [u8]>) -> Result<(), Failure> {
        let State::Open(candidate) = std::mem::replace(&mut self.state, State::Failed) else {
            return Err(argument("ntbring_connect is called twice"));
        };
        let cards = addresses
            .enumerate()
            .map(|(rank, a)| Card::parse(a).map_err(|what| JoinError::Address { rank: rank as u32, what }))
            .collect::<Result<Vec<Card>, JoinError>>()?;
        let members = candidate.join(&cards)?;
        let tells = members.rank() == 0 && self.vci == 0;
        if let Some(remark) = tells.then(|| members.remark()).flatten() {
            log::warn!("{remark}");
        }
        let mut endpoint = Endpoint::new(members, self.settings.clone())?;
        endpoint.charge(self.charged);
        endpoint.set_vci(self.vci);
        let _ = self.shared.idle.set(endpoint.idle());
        let endpoint = Arc::new(Guarded::new(endpoint));
        self.state = State::Connected(Connected { deputy: OnceCell::new(), endpoint });
        Ok(())
    }

    /// Whether all that was sent outlives this process; before joining it does.
    pub fn flush(&mut self) -> Result<bool, Failure> {
        match &mut self.state {
            State::Connected(connected) => Ok(connected.endpoint().flush()?),
            _ => Ok(true),
        }
    }

    /// What others have not taken yet is looked after until this is dropped; before joining there is nothing.
    pub fn linger(&mut self) -> Result<(), Failure> {
        match &mut self.state {
            State::Connected(connected) => Ok(connected.endpoint().linger()?),
            _ => Ok(()),
        }
    }

    #[inline]
    pub fn endpoint(&mut self) -> Result<Owned<'_, Endpoint>, Failure> {
        match &mut self.state {
            State::Connected(connected) => Ok(connected.endpoint()),
            _ => Err(argument("the endpoint is not connected")),
        }
    }

    /// To be called when a payload of so many bytes gets under way that may take until this rank is no longer in MPI.
    #[inline]
    pub fn overlap(&mut self, bytes: u64) {
        let State::Connected(connected) = &mut self.state else { return };
        if bytes < deputy::BULK {
            return;
        }
        if connected.deputy.get().is_none() {
            let deputy = Deputy::appoint(connected.endpoint.clone(), &connected.endpoint());
            let _ = connected.deputy.set(deputy);
        }
        connected.deputy.get().into_iter().flatten().for_each(Deputy::call);
    }
}
