//! What stands behind an `ntbring_endpoint_t`.

use super::abi::{ntbring_endpoint_t, ntbring_job_t};
use super::deputy::{self, Deputy, Guarded, Owned};
use super::{argument, variables, Failure};
use crate::endpoint::{Endpoint, Idle};
use crate::ring::join::{Candidate, Card, JoinError};
use crate::ring::Topology;
use crate::settings::{Loaded, Settings};
use std::cell::OnceCell;
use std::ffi::CString;
use std::sync::{Arc, OnceLock};

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
    /// Apart from the rest, since any thread may use it while another uses the rest.
    idle: OnceLock<Arc<Idle>>,
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

impl Handle {
    pub fn open(job: &ntbring_job_t, host_of: &[i32]) -> Result<Handle, Failure> {
        let (rank, vci) = (job.rank as u32, job.vci as u32);
        let loaded = Loaded::from_env()?;
        let values = variables::values(&loaded);
        let Loaded { mut settings, remark, .. } = loaded;
        if let Some(file) = settings.trace.as_mut().filter(|_| vci > 0) {
            file.as_mut_os_string().push(format!(".vci{vci}"));
        }
        let filter = settings.log.as_deref().unwrap_or("warn");
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
        Ok(Handle { state, size, settings, values, charged, vci, idle: OnceLock::new() })
    }

    /// The handle behind a pointer.
    ///
    /// # Safety
    /// It must come from `ntbring_open`, and no other reference to the handle may exist, except
    /// to its `idle`.
    pub unsafe fn from_raw<'a>(endpoint: *mut ntbring_endpoint_t) -> Result<&'a mut Handle, Failure> {
        // SAFETY: made by Box::into_raw; exclusive by contract.
        unsafe { endpoint.cast::<Handle>().as_mut() }.ok_or_else(|| argument("endpoint must not be NULL"))
    }

    /// The part of a handle that any thread may use.
    ///
    /// # Safety
    /// The pointer must come from `ntbring_open`.
    pub unsafe fn idle<'a>(endpoint: *mut ntbring_endpoint_t) -> Option<&'a Idle> {
        if endpoint.is_null() {
            return None;
        }
        // SAFETY: made by Box::into_raw; only the one field is borrowed, which nobody borrows
        // mutably once the endpoint is connected.
        let idle = unsafe { &*std::ptr::addr_of!((*endpoint.cast::<Handle>()).idle) };
        idle.get().map(Arc::as_ref)
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
        let mut endpoint = Endpoint::new(candidate.join(&cards)?, self.settings.clone())?;
        endpoint.charge(self.charged);
        endpoint.set_vci(self.vci);
        let _ = self.idle.set(endpoint.idle());
        let endpoint = Arc::new(Guarded::new(endpoint));
        self.state = State::Connected(Connected { deputy: OnceCell::new(), endpoint });
        Ok(())
    }

    /// Nothing will be asked for any more.
    pub fn leave(&mut self) -> Result<(), Failure> {
        match &mut self.state {
            State::Connected(connected) => Ok(connected.endpoint().leave()?),
            _ => Ok(()),
        }
    }

    /// What others have not taken yet is looked after until this is dropped; before joining there is nothing.
    pub fn linger(&mut self) -> Result<(), Failure> {
        match &mut self.state {
            State::Connected(connected) => Ok(connected.endpoint().linger()?),
            _ => Ok(()),
        }
    }

    /// Whether nothing waits to be sent; so it is before joining.
    pub fn is_flushed(&mut self) -> bool {
        self.endpoint().map_or(true, |endpoint| endpoint.is_flushed())
    }

    /// Whether something waits for a way to its receiver, which may take as long as it likes.
    pub fn is_cut_off(&mut self) -> bool {
        self.endpoint().is_ok_and(|endpoint| endpoint.is_cut_off())
    }

    /// Whether nobody has to ask for anything, or to poll, before all that was sent outlives this process; so it is
    /// before joining.
    pub fn has_reached_others(&mut self) -> bool {
        self.endpoint().map_or(true, |endpoint| !endpoint.is_holding() && endpoint.has_reached_guests())
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
