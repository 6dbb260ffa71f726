//! The adapters of a host and the jobs that use them.

use crate::adapter::Adapter;
use crate::adapters::Adapters;
use crate::address::SliceAddress;
use crate::job::{Allotment, Jobs};
use ntbring_ntb::fabric::Windows;
use ntbring_ntb::NtbError;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

/// The adapters of this host, which this process owns, and the jobs that use them.
pub struct HostAdapters {
    adapters: Arc<Adapters>,
    jobs: Arc<Jobs>,
    /// Held while a job gets its memory: there is room in a window for one of two that ask at the same time.
    allotting: Mutex<()>,
}

impl HostAdapters {
    /// Takes the adapters into service. `host` is the identity with which they were opened. Fails if no thread can be
    /// started.
    pub fn new(host: u64, adapters: Vec<Arc<Adapter>>) -> std::io::Result<Arc<HostAdapters>> {
        let jobs = Arc::new(Jobs::default());
        let adapters = Arc::new(Adapters::new(host, adapters, jobs.clone())?);
        Ok(Arc::new(HostAdapters { adapters, jobs, allotting: Mutex::default() }))
    }

    /// Gives a job of a user a slice of a window for each port that it wants. Fails if there is not enough room; waits
    /// for it, at most 5 s, while earlier jobs give up theirs: `is_one_ending` says that the processes of one of them have
    /// ended, although it still has its slices.
    pub fn allot(
        &self,
        windows: Windows,
        user: u32,
        is_one_ending: &dyn Fn() -> bool,
    ) -> Result<Arc<Allotment>, NtbError> {
        let _one = self.allotting.lock().unwrap_or_else(PoisonError::into_inner);
        let allotment = Arc::new(Allotment::new(&self.adapters, windows, user, is_one_ending)?);
        self.jobs.add(&allotment);
        Ok(allotment)
    }

    /// Returns the allotment of a job on this host; None if the address is another host's, or if the job has ended.
    pub fn find(&self, address: &SliceAddress) -> Option<Arc<Allotment>> {
        self.jobs.find(address.key).filter(|_| address.host == self.identity())
    }
}

impl Deref for HostAdapters {
    type Target = Adapters;

    fn deref(&self) -> &Adapters {
        &self.adapters
    }
}
