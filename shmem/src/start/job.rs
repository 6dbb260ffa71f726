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
    /// Largest number of characters of a published value.
    value_max: usize,
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
        let value_max = usize::try_from(job.vallen_max).unwrap_or(0).clamp(3, VALUE) - 1;
        let (mut host_of, mut hosts) = (vec![0; job.size.max(1) as usize], 0);
        // SAFETY: the array has an entry for each PE.
        let rc = unsafe { ntbring_pmi_hosts(host_of.as_mut_ptr(), &mut hosts) };
        check("the hosts of the PEs are not known", rc);
        Job { me: job.rank as usize, host_of, hosts, value_max, prefix: format!("ntbshmem-{number}") }
    }

    /// Returns the number of PEs.
    pub fn n(&self) -> usize {
        self.host_of.len()
    }

    /// Publishes bytes under a name, as many at each PE, waits until all PEs have, and returns those of all PEs.
    pub fn share(&self, name: &str, bytes: &[u8]) -> Vec<Vec<u8>> {
        let part_max = self.value_max / 2;
        for (part, bytes) in bytes.chunks(part_max).enumerate() {
            let value: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let value = CString::new(value).expect("digits have no zero");
            let key = self.key(name, self.me, part);
            // SAFETY: both are C strings.
            check("the process manager takes no value", unsafe { ntbring_pmi_put(key.as_ptr(), value.as_ptr()) });
        }
        self.barrier();
        let parts = bytes.len().div_ceil(part_max);
        (0..self.n()).map(|pe| (0..parts).flat_map(|part| self.get(name, pe, part)).collect()).collect()
    }

    /// Returns the key of a part of a PE's bytes.
    fn key(&self, name: &str, pe: usize, part: usize) -> CString {
        CString::new(format!("{}-{name}-{pe}-{part}", self.prefix)).expect("a key has no zero")
    }

    /// Returns a part of a PE's bytes. Ends the program if there is none.
    fn get(&self, name: &str, pe: usize, part: usize) -> Vec<u8> {
        let mut value = [0; VALUE];
        let key = self.key(name, pe, part);
        // SAFETY: the buffer has the size that is given.
        let rc = unsafe { ntbring_pmi_get(key.as_ptr(), value.as_mut_ptr(), VALUE as u64) };
        check("the process manager returns no value", rc);
        // SAFETY: the call has written a C string.
        let text = unsafe { CStr::from_ptr(value.as_ptr()) }.to_bytes();
        let digits = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        match text.chunks(2).map(digits).collect() {
            Some(bytes) => bytes,
            None => fail::fatal(format_args!("PE {pe} has published something that is not hexadecimal")),
        }
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
