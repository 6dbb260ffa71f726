//! A host's memory: one file without a name, allocated in full before it is used.

use super::group;
use super::registers::{Registers, PAGE};
use crate::ntb::{NtbError, Region, Side};
use bytes::{Buf, BufMut};
use memmap2::{MmapOptions, MmapRaw};
use nix::sys::statvfs::statvfs;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// How a host's memory is divided: register page, left window, right window, local part; and, for
/// a link model, the accounts of both windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLayout {
    /// Bytes of each incoming window, a multiple of the page size.
    pub window: u64,
    /// Bytes that only this host's own processes map, a multiple of the page size.
    pub local: u64,
    /// Whether a link model keeps accounts of the windows: as much memory again.
    pub accounts: bool,
}

impl MemoryLayout {
    /// Where the incoming window of a side starts, bytes.
    pub fn window_offset(&self, side: Side) -> u64 {
        PAGE as u64 + side as u64 * self.window
    }

    /// Where the local part starts, bytes.
    pub fn local_offset(&self) -> u64 {
        PAGE as u64 + 2 * self.window
    }

    /// Bytes in total.
    pub fn total(&self) -> u64 {
        self.local_offset() + self.local + self.accounts_total()
    }

    /// Bytes of the accounts of both windows, at the end.
    pub fn accounts_total(&self) -> u64 {
        if self.accounts {
            2 * self.window
        } else {
            0
        }
    }

    /// Where in a memory of `size` bytes the accounts for `offset` are, which lies in a window.
    pub fn accounts_offset(&self, size: u64, offset: u64) -> Option<u64> {
        (size.checked_sub(self.accounts_total())?).checked_add(offset.checked_sub(PAGE as u64)?)
    }
}

/// Where another process finds a host's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostAddress {
    /// The process that created it and keeps it open.
    pub pid: u32,
    /// Its descriptor there.
    pub fd: u32,
    /// Inode number, to notice a descriptor that was reused.
    pub inode: u64,
    /// A random number that is also in the register page.
    pub token: u64,
}

impl HostAddress {
    /// Bytes that [`HostAddress::put`] writes.
    pub const LEN: usize = 24;

    /// As bytes.
    pub fn put(&self, to: &mut impl BufMut) {
        to.put_u32_le(self.pid);
        to.put_u32_le(self.fd);
        to.put_u64_le(self.inode);
        to.put_u64_le(self.token);
    }

    /// From [`HostAddress::LEN`] bytes; panics if there are fewer.
    pub fn get(from: &mut impl Buf) -> HostAddress {
        let (pid, fd) = (from.get_u32_le(), from.get_u32_le());
        HostAddress { pid, fd, inode: from.get_u64_le(), token: from.get_u64_le() }
    }

    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", self.pid, self.fd)
    }

    /// Whether its process has ended, or has it no more. Takes no descriptor.
    pub fn is_gone(&self) -> bool {
        match std::fs::metadata(self.path()) {
            Ok(meta) => meta.ino() != self.inode,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// An open memory file.
pub struct Memory {
    file: File,
    pid: u32,
    size: u64,
}

impl Memory {
    /// Creates a host's memory in `dir` and allocates every page of it.
    pub fn create(dir: &Path, layout: &MemoryLayout) -> Result<(Memory, HostAddress), NtbError> {
        let size = layout.total();
        let no_space = |cause| NtbError::NoSpace { bytes: size, dir: dir.display().to_string(), cause };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .mode(0o600)
            .custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC)
            .open(dir)
            .map_err(no_space)?;
        group::check(size).map_err(no_space)?;
        loop {
            // SAFETY: a plain system call on a descriptor that `file` owns.
            match unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, size as libc::off_t) } {
                0 => break,
                libc::EINTR => continue,
                code => return Err(no_space(io::Error::from_raw_os_error(code))),
            }
        }
        let token = random().map_err(no_space)?;
        let inode = file.metadata().map_err(no_space)?.ino();
        let address = HostAddress { pid: std::process::id(), fd: file.as_raw_fd() as u32, inode, token };
        let memory = Memory { file, pid: address.pid, size };
        memory.registers()?.identify(token, size);
        Ok((memory, address))
    }

    /// Opens another process's memory and checks that it is what the address says.
    pub fn open(address: &HostAddress) -> Result<Memory, NtbError> {
        let pid = address.pid;
        let foreign = |what| NtbError::Foreign { pid, what };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(address.path())
            .map_err(|cause| NtbError::Open { pid, cause })?;
        let meta = file.metadata().map_err(|cause| NtbError::Open { pid, cause })?;
        if meta.ino() != address.inode {
            return Err(foreign("another file has taken its place"));
        }
        let memory = Memory { file, pid, size: meta.len() };
        if memory.size < PAGE as u64 {
            return Err(foreign("it is shorter than a register page"));
        }
        match memory.registers()?.identity() {
            Some((token, size)) if token == address.token && size == memory.size => Ok(memory),
            Some(_) => Err(foreign("it belongs to another job")),
            None => Err(foreign("it is not an ntbring host's memory")),
        }
    }

    /// The memory behind a process's descriptor, and its inode; None if it is not that of a host.
    pub fn found(pid: u32, descriptor: &Path) -> Option<(Memory, u64)> {
        let meta = std::fs::metadata(descriptor).ok().filter(|meta| meta.is_file() && meta.len() >= PAGE as u64)?;
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(descriptor).ok()?;
        let mut first = [0; 8];
        file.read_exact_at(&mut first, 0).ok()?;
        let memory = Memory { file, pid, size: meta.len() };
        let identity = Registers::is_magic(first).then(|| memory.registers().ok()?.identity()).flatten();
        identity.filter(|&(_, size)| size == memory.size).map(|_| (memory, meta.ino()))
    }

    /// Bytes in all.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Maps a part of it; nothing else of it becomes reachable.
    pub fn map(&self, offset: u64, len: u64) -> Result<Region, NtbError> {
        if offset > self.size || len > self.size - offset {
            return Err(NtbError::Aperture { offset, len, size: self.size });
        }
        let map: MmapRaw = MmapOptions::new()
            .offset(offset)
            .len(len as usize)
            .map_raw(&self.file)
            .map_err(|cause| NtbError::Open { pid: self.pid, cause })?;
        let base = map.as_mut_ptr();
        // SAFETY: the mapping is readable and writable, page-aligned, `len` long, and lives as
        // long as the Arc; nobody holds references into it.
        Ok(unsafe { Region::new(base, len as usize, Arc::new(map)) })
    }

    /// Maps the register page.
    pub fn registers(&self) -> Result<Registers, NtbError> {
        Ok(Registers::new(self.map(0, PAGE as u64)?))
    }
}

/// Whether `reserve` bytes are left in `dir`, for others who do not look before they write.
pub fn check_space(dir: &Path, reserve: u64) -> Result<(), NtbError> {
    let shown = || dir.display().to_string();
    let stat = statvfs(dir).map_err(|e| NtbError::NoSpace { bytes: reserve, dir: shown(), cause: e.into() })?;
    let left = stat.blocks_available() as u64 * stat.fragment_size() as u64;
    if left < reserve {
        return Err(NtbError::NoReserve { left, reserve, dir: shown() });
    }
    Ok(())
}

/// Bytes that the memory file system at `dir` has in all, whatever of them is in use; no less than any number if it has no limit,
/// or is not there.
pub fn size_of(dir: &Path) -> u64 {
    let Ok(stat) = statvfs(dir) else { return u64::MAX };
    match stat.blocks() * stat.fragment_size() {
        0 => u64::MAX,
        bytes => bytes,
    }
}

fn random() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
