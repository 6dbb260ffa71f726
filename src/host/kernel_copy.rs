//! Kernel copies between processes (CMA, `process_vm_readv` and `process_vm_writev`): the memory of another process of
//! this machine is read or written directly, without an intermediate copy in a window. They are possible only between
//! processes of one machine, and only if the kernel permits them.

use ntbring_memory::{ForeignBytes, ForeignRoom};
use std::io;

/// The value that [`KernelCopy::probe`] expects to read from the other process.
static PROBE: u64 = u64::from_le_bytes(*b"ntbreach");

/// Handle for kernel copies from and to another process's memory, which was probed successfully.
#[derive(Clone, Copy, Debug)]
pub struct KernelCopy {
    pid: libc::pid_t,
}

impl KernelCopy {
    /// Returns the address with which other processes probe kernel copies to this process; 0 if they must not use them,
    /// because the process runs under valgrind.
    pub fn probe_address() -> u64 {
        if is_watched() {
            return 0;
        }
        std::ptr::addr_of!(PROBE) as u64
    }

    /// Probes kernel copies from process `pid`, given its probe address. Fails if the kernel refuses them or if
    /// `address` is 0 or does not hold the expected value.
    pub fn probe(pid: u32, address: u64) -> io::Result<KernelCopy> {
        if address == 0 {
            return Err(io::Error::other("the process runs under a memory checker"));
        }
        let kernel_copy = KernelCopy { pid: pid as libc::pid_t };
        let mut found = 0u64;
        // SAFETY: the destination is the eight bytes of a local variable, which outlives the call.
        kernel_copy.read(address, unsafe { ForeignRoom::new((&raw mut found).cast(), 8) })?;
        if found != PROBE {
            return Err(io::Error::other("the memory at the probe address does not hold the expected value"));
        }
        Ok(kernel_copy)
    }

    /// Returns false if this process has become one from which others may not copy, although they could: it has changed
    /// its user, or asked for it (`PR_SET_DUMPABLE`).
    pub fn is_still_permitted() -> bool {
        // SAFETY: the call has no memory.
        unsafe { libc::prctl(libc::PR_GET_DUMPABLE) == 1 }
    }

    /// Fills `to` with the bytes at `address` in the other process.
    pub fn read(&self, address: u64, to: ForeignRoom) -> io::Result<()> {
        let mut done = 0;
        while done < to.len() {
            let rest = to.part(done, to.len() - done);
            let (local, remote) = pair(rest.address(), address + done as u64, rest.len());
            // SAFETY: the local bytes are writable by ForeignRoom's contract; the kernel checks the remote address and
            // returns an error if it is not mapped.
            let n = unsafe { libc::process_vm_readv(self.pid, &local, 1, &remote, 1, 0) };
            done += moved(n)?;
        }
        Ok(())
    }

    /// Writes the bytes to `address` in the other process.
    pub fn write(&self, address: u64, from: ForeignBytes) -> io::Result<()> {
        let mut done = 0;
        while done < from.len() {
            let rest = from.part(done, from.len() - done);
            let (local, remote) = pair(rest.address().cast_mut(), address + done as u64, rest.len());
            // SAFETY: the local bytes are readable by ForeignBytes' contract; the remote process supplied the address
            // as the destination of this copy, and the kernel returns an error if it is not mapped.
            let n = unsafe { libc::process_vm_writev(self.pid, &local, 1, &remote, 1, 0) };
            done += moved(n)?;
        }
        Ok(())
    }
}

/// Returns true if this process runs under valgrind's memcheck, which would report bytes written by other processes'
/// kernel copies as uninitialised.
fn is_watched() -> bool {
    std::env::var_os("LD_PRELOAD").is_some_and(|libraries| libraries.to_string_lossy().contains("vgpreload_memcheck"))
}

fn pair(local: *mut u8, remote: u64, len: usize) -> (libc::iovec, libc::iovec) {
    let at = |base: *mut libc::c_void| libc::iovec { iov_base: base, iov_len: len };
    (at(local.cast()), at(remote as *mut libc::c_void))
}

fn moved(n: isize) -> io::Result<usize> {
    match n {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        n if n < 0 => Err(io::Error::last_os_error()),
        n => Ok(n as usize),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_reaches_itself_and_no_wrong_address() {
        let kernel_copy = KernelCopy::probe(std::process::id(), KernelCopy::probe_address()).unwrap();
        let from = [7u8; 100];
        let mut to = [0u8; 100];
        // SAFETY: both arrays outlive the last use of the buffers made of them.
        let (bytes, room) = unsafe { (ForeignBytes::new(from.as_ptr(), 100), ForeignRoom::new(to.as_mut_ptr(), 100)) };
        kernel_copy.read(from.as_ptr() as u64, room.part(0, 60)).unwrap();
        kernel_copy.write(room.address() as u64 + 60, bytes.part(60, 40)).unwrap();
        assert!(kernel_copy.read(8, room).is_err());
        assert_eq!(to, from);
        assert!(KernelCopy::probe(std::process::id(), from.as_ptr() as u64).is_err());
    }
}
