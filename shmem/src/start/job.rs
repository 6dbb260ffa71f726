//! The job, as the process manager describes it.

use crate::abi::*;
use crate::fail;
use std::ffi::{CStr, CString};

/// The place of this process in the job.
pub struct Job {
    /// Number of this PE.
    pub me: usize,
    /// Host of each PE.
    pub host_of: Vec<i32>,
    /// Number of hosts.
    pub hosts: i32,
    /// Begin of the keys of values that PEs publish: different for each job that the process joins.
    prefix: String,
}

/// Largest size of a published value, with the zero at its end, bytes.
const VALUE: usize = 1024;

impl Job {
    /// Asks the process manager for the job. `number` is that of the job in this process.
    pub fn open(number: u32) -> Job {
        let mut job = ntbring_pmi_job_t::default();
        // SAFETY: the pointer is to a local.
        check("the process manager cannot be reached", unsafe { ntbring_pmi_open(&mut job) });
        fail::PE.store(job.rank, std::sync::atomic::Ordering::Relaxed);
        let (mut host_of, mut hosts) = (vec![0; job.size.max(1) as usize], 0);
        // SAFETY: the array has an entry for each PE.
        let rc = unsafe { ntbring_pmi_hosts(host_of.as_mut_ptr(), &mut hosts) };
        check("the hosts of the PEs are not known", rc);
        Job { me: job.rank as usize, host_of, hosts, prefix: format!("ntbshmem-{number}") }
    }

    /// Returns the number of PEs.
    pub fn n(&self) -> usize {
        self.host_of.len()
    }

    /// Publishes bytes under a name, waits until all PEs have, and returns those of all PEs.
    pub fn share(&self, name: &str, bytes: &[u8]) -> Vec<Vec<u8>> {
        let key = |pe: usize| CString::new(format!("{}-{name}-{pe}", self.prefix)).expect("a key has no zero");
        let value: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let value = CString::new(value).expect("digits have no zero");
        // SAFETY: both are C strings.
        check("the process manager takes no value", unsafe { ntbring_pmi_put(key(self.me).as_ptr(), value.as_ptr()) });
        self.barrier();
        let get = |pe: usize| {
            let mut value = [0; VALUE];
            // SAFETY: the buffer has the size that is given.
            let rc = unsafe { ntbring_pmi_get(key(pe).as_ptr(), value.as_mut_ptr(), VALUE as u64) };
            check("the process manager returns no value", rc);
            // SAFETY: the call has written a C string.
            let text = unsafe { CStr::from_ptr(value.as_ptr()) }.to_bytes();
            let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
            text.chunks(2).map(digits).collect::<Option<Vec<u8>>>()
        };
        (0..self.n())
            .map(|pe| match get(pe) {
                Some(bytes) => bytes,
                None => fail::fatal(format_args!("PE {pe} has published something that is not hexadecimal")),
            })
            .collect()
    }

    /// Waits until all PEs have called it.
    pub fn barrier(&self) {
        barrier();
    }
}

/// Waits until all PEs have called it.
pub fn barrier() {
    // SAFETY: the session with the process manager is open.
    check("a barrier of the process manager has failed", unsafe { ntbring_pmi_barrier() });
}

/// Ends the program if a call of libntbring has failed.
pub fn check(doing: &str, rc: i32) {
    if rc < 0 {
        fail::ring(doing);
    }
}
