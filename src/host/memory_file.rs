//! Shared memory: one file without a name, allocated in full before it is used.

use crate::group;
use crate::HostError;
use bytes::{Buf, BufMut};
use memmap2::{MmapOptions, MmapRaw};
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};
use nix::sys::statvfs::statvfs;
use ntbring_memory::{InWindow, OutWindow, Region};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// The value of `NTBRING_SHM_DIR` that stands for memory in no directory.
pub const MEMFD: &str = "memfd";

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Bytes at the start of every memory file that [`MemoryFile`] uses itself; the rest of its first page is its owner's.
pub const HEADER: usize = 64;

/// Words of the header, by offset: magic number, token, bytes of the file, the owner's kind; then two words for the owner.
const MAGIC_AT: usize = 0;
const TOKEN_AT: usize = 8;
const SIZE_AT: usize = 16;
const KIND_AT: usize = 24;
const NOTES_AT: usize = 32;

const MAGIC: u64 = u64::from_le_bytes(*b"NTBRING\x02");

/// The address of a memory file: enough for another process of the same user and host to open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAddress {
    /// The process that created it and keeps it open.
    pub pid: u32,
    /// Its descriptor there.
    pub fd: u32,
    /// Inode number, to notice a descriptor that was reused.
    pub inode: u64,
    /// A random number that is also in the file's header.
    pub token: u64,
}

impl FileAddress {
    /// Bytes that [`FileAddress::put`] writes.
    pub const LEN: usize = 24;

    /// As bytes.
    pub fn put(&self, to: &mut impl BufMut) {
        to.put_u32_le(self.pid);
        to.put_u32_le(self.fd);
        to.put_u64_le(self.inode);
        to.put_u64_le(self.token);
    }

    /// From [`FileAddress::LEN`] bytes; panics if there are fewer.
    pub fn get(from: &mut impl Buf) -> FileAddress {
        let (pid, fd) = (from.get_u32_le(), from.get_u32_le());
        FileAddress { pid, fd, inode: from.get_u64_le(), token: from.get_u64_le() }
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
pub struct MemoryFile {
    file: File,
    pid: u32,
    size: u64,
}

impl MemoryFile {
    /// Creates a memory file of `size` bytes in `dir` and allocates every page of it. It is zero but for its header.
    pub fn create(dir: &Path, size: u64) -> Result<(MemoryFile, FileAddress), HostError> {
        let no_space = |cause| HostError::NoSpace { bytes: size, dir: dir.display().to_string(), cause };
        let file = unnamed(dir).map_err(no_space)?;
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
        let address = FileAddress { pid: std::process::id(), fd: file.as_raw_fd() as u32, inode, token };
        let memory = MemoryFile { file, pid: address.pid, size };
        let header = OutWindow::new(memory.first_page()?);
        header.store(TOKEN_AT, token);
        header.store(SIZE_AT, size);
        header.store(MAGIC_AT, MAGIC);
        Ok((memory, address))
    }

    /// Opens another process's memory and checks that it is what the address says.
    pub fn open(address: &FileAddress) -> Result<MemoryFile, HostError> {
        let pid = address.pid;
        let foreign = |what| HostError::Foreign { pid, what };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(address.path())
            .map_err(|cause| HostError::Open { pid, cause })?;
        let meta = file.metadata().map_err(|cause| HostError::Open { pid, cause })?;
        if meta.ino() != address.inode {
            return Err(foreign("another file has taken its place"));
        }
        let memory = MemoryFile { file, pid, size: meta.len() };
        if memory.size < PAGE as u64 {
            return Err(foreign("it is shorter than a page"));
        }
        match memory.identity()? {
            Some((token, size)) if token == address.token && size == memory.size => Ok(memory),
            Some(_) => Err(foreign("it belongs to another job")),
            None => Err(foreign("it is not memory of ntbring")),
        }
    }

    /// The memory file behind a process's descriptor, and its inode; None if the descriptor is anything else.
    pub fn found(pid: u32, descriptor: &Path) -> Option<(MemoryFile, u64)> {
        let meta = std::fs::metadata(descriptor).ok().filter(|meta| meta.is_file() && meta.len() >= PAGE as u64)?;
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(descriptor).ok()?;
        let mut first = [0; 8];
        file.read_exact_at(&mut first, 0).ok()?;
        let memory = MemoryFile { file, pid, size: meta.len() };
        let identity = (u64::from_le_bytes(first) == MAGIC).then(|| memory.identity().ok()?).flatten();
        identity.filter(|&(_, size)| size == memory.size).map(|_| (memory, meta.ino()))
    }

    /// Bytes in all.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Maps a part of it; nothing else of it becomes reachable.
    pub fn map(&self, offset: u64, len: u64) -> Result<Region, HostError> {
        if offset > self.size || len > self.size - offset {
            return Err(HostError::Beyond { offset, len, size: self.size });
        }
        let map: MmapRaw = MmapOptions::new()
            .offset(offset)
            .len(len as usize)
            .map_raw(&self.file)
            .map_err(|cause| HostError::Open { pid: self.pid, cause })?;
        let base = map.as_mut_ptr();
        // SAFETY: the mapping is readable and writable, page-aligned, `len` long, and lives as
        // long as the Arc; nobody holds references into it.
        Ok(unsafe { Region::new(base, len as usize, Arc::new(map)) })
    }

    /// Maps its first page, which begins with [`HEADER`] bytes of the file's own.
    pub fn first_page(&self) -> Result<Region, HostError> {
        self.map(0, PAGE as u64)
    }

    /// Token and size in its header; None without the magic number.
    fn identity(&self) -> Result<Option<(u64, u64)>, HostError> {
        let header = InWindow::new(self.first_page()?);
        Ok((header.load(MAGIC_AT) == MAGIC).then(|| (header.load(TOKEN_AT), header.load(SIZE_AT))))
    }

    /// Leaves a word that tells tools the kind of memory and its owner.
    pub fn set_kind(&self, kind: u64) -> Result<(), HostError> {
        OutWindow::new(self.first_page()?).store(KIND_AT, kind);
        Ok(())
    }

    /// The word of [`MemoryFile::set_kind`]; 0 before the first call.
    pub fn kind(&self) -> Result<u64, HostError> {
        Ok(InWindow::new(self.first_page()?).load(KIND_AT))
    }

    /// Two words of the header, 0 at first, that the owners may use as they like.
    pub fn notes(&self) -> Result<Region, HostError> {
        Ok(self.first_page()?.part(NOTES_AT, 16))
    }
}

/// Whether `reserve` bytes are left in `dir`, for others who do not look before they write.
pub fn check_space(dir: &Path, reserve: u64) -> Result<(), HostError> {
    let shown = || dir.display().to_string();
    let stat = statvfs(dir).map_err(|e| HostError::NoSpace { bytes: reserve, dir: shown(), cause: e.into() })?;
    let left = stat.blocks_available() as u64 * stat.fragment_size() as u64;
    if left < reserve {
        return Err(HostError::NoReserve { left, reserve, dir: shown() });
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

/// A file without a name in `dir`, a directory of a memory file system; or in none, if `dir` is [`MEMFD`].
fn unnamed(dir: &Path) -> io::Result<File> {
    if dir == Path::new(MEMFD) {
        return Ok(memfd_create(c"ntbring", MemFdCreateFlag::MFD_CLOEXEC)?.into());
    }
    OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC).open(dir)
}

fn random() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
