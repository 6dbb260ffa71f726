//! Copies between processes that the kernel makes, without a stop in a window: the memory of
//! another process of this machine is read or written where it lies. Only possible where the
//! "hosts" are one machine, and only if the kernel allows it.

use ntbring_memory::{ForeignBytes, ForeignRoom};
use std::io;

/// What [`Reach::probe`] looks for in the other process.
static PROBE: u64 = u64::from_le_bytes(*b"ntbreach");

/// The right to copy from and to another process's memory.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    pid: libc::pid_t,
}

impl Reach {
    /// The address that others need to find out whether they reach this process; 0 if they are not to.
    pub fn probe_address() -> u64 {
        if is_watched() {
            return 0;
        }
        std::ptr::addr_of!(PROBE) as u64
    }

    /// Tries whether the process can be reached, given its probe address.
    pub fn probe(pid: u32, address: u64) -> io::Result<Reach> {
        if address == 0 {
            return Err(io::Error::other("it runs under a memory checker"));
        }
        let reach = Reach { pid: pid as libc::pid_t };
        let mut found = 0u64;
        // SAFETY: eight bytes of a local variable, which outlives the call.
        reach.read(address, unsafe { ForeignRoom::new((&raw mut found).cast(), 8) })?;
        if found != PROBE {
            return Err(io::Error::other("it holds something else than it should"));
        }
        Ok(reach)
    }

    /// Fills `to` with the bytes at `address` in the other process.
    pub fn read(&self, address: u64, to: ForeignRoom) -> io::Result<()> {
        let mut done = 0;
        while done < to.len() {
            let rest = to.part(done, to.len() - done);
            let (local, remote) = pair(rest.address(), address + done as u64, rest.len());
            // SAFETY: the local bytes are writable by ForeignRoom's contract; a wrong address in
            // the other process is an error.
            let n = unsafe { libc::process_vm_readv(self.pid, &local, 1, &remote, 1, 0) };
            done += moved(n)?;
        }
        Ok(())
    }

    /// Fills `to` likewise, and a room with what is at another address: with one system call, unless the kernel stops half-way.
    pub fn read_both(&self, address: u64, to: &mut [u8], other: (u64, ForeignRoom)) -> io::Result<()> {
        // SAFETY: borrowed for longer than it is used.
        let parts = [(address, unsafe { ForeignRoom::new(to.as_mut_ptr(), to.len()) }), other];
        let [(local, remote), (other_local, other_remote)] =
            parts.map(|(at, room)| pair(room.address(), at, room.len()));
        let (local, remote) = ([local, other_local], [remote, other_remote]);
        // SAFETY: as in `read`.
        let n = unsafe { libc::process_vm_readv(self.pid, local.as_ptr(), 2, remote.as_ptr(), 2, 0) };
        let mut done = if parts.iter().all(|(_, room)| room.is_empty()) { 0 } else { moved(n)? };
        for (address, room) in parts {
            let here = done.min(room.len());
            self.read(address + here as u64, room.part(here, room.len() - here))?;
            done -= here;
        }
        Ok(())
    }

    /// Writes the bytes to `address` in the other process.
    pub fn write(&self, address: u64, from: ForeignBytes) -> io::Result<()> {
        let mut done = 0;
        while done < from.len() {
            let rest = from.part(done, from.len() - done);
            let (local, remote) = pair(rest.address().cast_mut(), address + done as u64, rest.len());
            // SAFETY: the local bytes are readable by ForeignBytes' contract; the caller was given
            // the remote address by that process for this purpose, and a wrong one is an error.
            let n = unsafe { libc::process_vm_writev(self.pid, &local, 1, &remote, 1, 0) };
            done += moved(n)?;
        }
        Ok(())
    }

    /// Writes `from` likewise.
    pub fn write_bytes(&self, address: u64, from: &[u8]) -> io::Result<()> {
        // SAFETY: borrowed for longer than it is used.
        self.write(address, unsafe { ForeignBytes::new(from.as_ptr(), from.len()) })
    }
}

/// Whether valgrind watches this process: it would take what others write here for never written.
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
        let reach = Reach::probe(std::process::id(), Reach::probe_address()).unwrap();
        let from = [7u8; 100];
        let mut to = [0u8; 100];
        // SAFETY: both arrays outlive their uses.
        let (bytes, room) = unsafe { (ForeignBytes::new(from.as_ptr(), 100), ForeignRoom::new(to.as_mut_ptr(), 100)) };
        reach.read(from.as_ptr() as u64, room.part(0, 60)).unwrap();
        reach.write(room.address() as u64 + 60, bytes.part(60, 40)).unwrap();
        assert!(reach.read(8, room).is_err());
        assert_eq!(to, from);
        let at = |i: usize| &raw const from[i] as u64;
        let mut other = [0u8; 30];
        reach.read_both(at(0), &mut other, (at(60), room.part(0, 40))).unwrap();
        assert_eq!((other, to), ([7; 30], from));
        // What comes before the wrong address is there, and it is an error all the same.
        other = [0; 30];
        assert!(reach.read_both(at(0), &mut other, (8, room)).is_err());
        assert_eq!(other, [7; 30]);
        reach.read_both(at(0), &mut [], (at(0), room)).unwrap();
        reach.read_both(8, &mut [], (8, room.part(0, 0))).unwrap();
        reach.read_both(at(0), &mut other, (8, room.part(0, 0))).unwrap();
        assert!(Reach::probe(std::process::id(), from.as_ptr() as u64).is_err());
    }
}
