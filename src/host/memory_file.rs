//! Shared memory: a file without a name, all of whose pages are allocated before it is used.

use crate::memory_limit;
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

/// The value of `NTBRING_SHM_DIR` that selects `memfd_create` rather than a directory.
pub const MEMFD: &str = "memfd";

/// Size of a page, bytes.
pub const PAGE: usize = 4096;
/// Size of the header at the start of every memory file, bytes. The rest of the first page belongs to the file's owner.
pub const HEADER: usize = 64;
/// Size of the line of notes after the header, bytes.
const NOTES: usize = 64;

/// Offsets of the header's words, bytes: magic number, token, size of the file in bytes, kind set by the owner.
const MAGIC_AT: usize = 0;
const TOKEN_AT: usize = 8;
const SIZE_AT: usize = 16;
const KIND_AT: usize = 24;
const MAGIC: u64 = u64::from_le_bytes(*b"NTBRING\x03");

/// The address of a memory file, with which another process of the same user and host can open it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAddress {
    /// Id of the process that created the file and keeps it open.
    pub pid: u32,
    /// File descriptor in that process.
    pub fd: u32,
    /// Inode number, which detects a descriptor that was reused.
    pub inode: u64,
    /// A random number, which is also in the file's header.
    pub token: u64,
}

impl FileAddress {
    /// Length of an encoded address, bytes.
    pub const LEN: usize = 24;

    /// Appends the address as [`FileAddress::LEN`] bytes, little endian.
    pub fn put(&self, to: &mut impl BufMut) {
        to.put_u32_le(self.pid);
        to.put_u32_le(self.fd);
        to.put_u64_le(self.inode);
        to.put_u64_le(self.token);
    }

    /// Reads an address from [`FileAddress::LEN`] bytes. Panics if there are fewer.
    pub fn get(from: &mut impl Buf) -> FileAddress {
        let (pid, fd) = (from.get_u32_le(), from.get_u32_le());
        FileAddress { pid, fd, inode: from.get_u64_le(), token: from.get_u64_le() }
    }

    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", self.pid, self.fd)
    }

    /// Returns true if its process has ended or has closed the file. Opens no descriptor.
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
    /// Creates a memory file of `size` bytes in `dir` and allocates every page of it. All bytes except the header are
    /// zero.
    pub fn create(dir: &Path, size: u64) -> Result<(MemoryFile, FileAddress), HostError> {
        let no_space = |cause| HostError::NoSpace { bytes: size, dir: dir.display().to_string(), cause };
        Self::allocate(unnamed(dir).map_err(no_space)?, dir, size)
    }

    /// Creates a memory file of `size` bytes in `dir` of which only the first `backed` are allocated. The rest must not
    /// be accessed before [`MemoryFile::back`] has allocated it.
    pub fn create_sparse(dir: &Path, size: u64, backed: u64) -> Result<(MemoryFile, FileAddress), HostError> {
        let no_space = |cause| HostError::NoSpace { bytes: backed, dir: dir.display().to_string(), cause };
        let file = unnamed(dir).map_err(no_space)?;
        file.set_len(size).map_err(no_space)?;
        back(&file, 0, backed).map_err(no_space)?;
        Self::begin(file, size).map_err(no_space)
    }

    /// Allocates all pages of a new file in `dir`, and writes its header.
    pub(crate) fn allocate(file: File, dir: &Path, size: u64) -> Result<(MemoryFile, FileAddress), HostError> {
        let no_space = |cause| HostError::NoSpace { bytes: size, dir: dir.display().to_string(), cause };
        back(&file, 0, size).map_err(no_space)?;
        Self::begin(file, size).map_err(no_space)
    }

    /// Allocates the pages of `len` bytes at `from`, which stay allocated. Pages that are allocated already keep their
    /// contents.
    pub fn back(&self, from: u64, len: u64) -> io::Result<()> {
        back(&self.file, from, len)
    }

    /// Writes the header of a new file whose first page is allocated.
    fn begin(file: File, size: u64) -> io::Result<(MemoryFile, FileAddress)> {
        let no_space = |error| match error {
            HostError::Open { cause, .. } => cause,
            other => io::Error::other(other.to_string()),
        };
        let token = random()?;
        let inode = file.metadata()?.ino();
        let address = FileAddress { pid: std::process::id(), fd: file.as_raw_fd() as u32, inode, token };
        let memory = MemoryFile { file, pid: address.pid, size };
        let header = OutWindow::new(memory.first_page().map_err(no_space)?);
        header.store(TOKEN_AT, token);
        header.store(SIZE_AT, size);
        header.store(MAGIC_AT, MAGIC);
        Ok((memory, address))
    }

    /// Opens another process's memory file and checks inode, magic number, token and size against the address.
    pub fn open(address: &FileAddress) -> Result<MemoryFile, HostError> {
        Self::open_at(Path::new(&address.path()), address)
    }

    /// Opens the memory file at a path and checks it against its address.
    pub(crate) fn open_at(path: &Path, address: &FileAddress) -> Result<MemoryFile, HostError> {
        let pid = address.pid;
        let foreign = |what| HostError::Foreign { pid, what };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_CLOEXEC)
            .open(path)
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

    /// Returns the memory file behind a process's descriptor, and its inode number; None if the descriptor is not a
    /// memory file of ntbring.
    pub fn found(pid: u32, descriptor: &Path) -> Option<(MemoryFile, u64)> {
        let meta = std::fs::metadata(descriptor).ok().filter(|meta| meta.is_file() && meta.len() >= PAGE as u64)?;
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(descriptor).ok()?;
        let mut first = [0; 8];
        file.read_exact_at(&mut first, 0).ok()?;
        let memory = MemoryFile { file, pid, size: meta.len() };
        let identity = (u64::from_le_bytes(first) == MAGIC).then(|| memory.identity().ok()?).flatten();
        identity.filter(|&(_, size)| size == memory.size).map(|_| (memory, meta.ino()))
    }

    /// Returns true if the file has this token in its header.
    pub(crate) fn has_token(&self, token: u64) -> bool {
        self.token() == Some(token)
    }

    /// Returns the token in the file's header.
    pub(crate) fn token(&self) -> Option<u64> {
        self.identity().ok()?.map(|(token, _)| token)
    }

    /// Returns the id of the process that created the file, as that process sees it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the open file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns the size of the file, bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Maps `len` bytes at `offset`; no other byte of the file becomes accessible.
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
        // SAFETY: the mapping is readable and writable, page-aligned, `len` bytes long, and lives as
        // long as the Arc; no references into it exist, as it was just created.
        Ok(unsafe { Region::new(base, len as usize, Arc::new(map)) })
    }

    /// Maps `len` bytes at `offset`, like [`MemoryFile::map`], at an address that is a multiple of `align`, a power of two.
    pub(crate) fn map_aligned(&self, offset: u64, len: u64, align: usize) -> Result<Region, HostError> {
        if offset > self.size || len > self.size - offset {
            return Err(HostError::Beyond { offset, len, size: self.size });
        }
        let failed = |cause| HostError::Open { pid: self.pid, cause };
        // Address space in which the aligned mapping lies; it uses no memory.
        let space = MmapOptions::new().len(len as usize + align).no_reserve_swap().map_anon().map_err(failed)?;
        let base = space.as_ptr().cast_mut();
        let base = base.wrapping_add(base.align_offset(align));
        // SAFETY: the range lies within `space`, which nothing else uses, and which is unmapped as a whole when the
        // region's owner is dropped.
        unsafe { self.map_over(offset, len as usize, base) }.map_err(failed)?;
        // SAFETY: the mapping is readable and writable, aligned, `len` bytes long, and lives as long as `space`; no
        // references into it exist.
        Ok(unsafe { Region::new(base, len as usize, Arc::new(space)) })
    }

    /// Maps `len` bytes at `offset` of the file over this process's memory at `at`.
    ///
    /// # Safety
    /// As for [`crate::Segment::take_place_of`].
    pub(crate) unsafe fn map_over(&self, offset: u64, len: usize, at: *mut u8) -> io::Result<()> {
        let (access, how) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        let file = self.file.as_raw_fd();
        // SAFETY: the caller gives up the pages there, which the mapping replaces; `file` is an open descriptor.
        let mapped = unsafe { libc::mmap(at.cast(), len, access, how, file, offset as libc::off_t) };
        match mapped == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(()),
        }
    }

    /// Maps the first page, which begins with the header of [`HEADER`] bytes.
    pub fn first_page(&self) -> Result<Region, HostError> {
        self.map(0, PAGE as u64)
    }

    /// Returns the token and the size in the header; None if the magic number is missing.
    fn identity(&self) -> Result<Option<(u64, u64)>, HostError> {
        let header = InWindow::new(self.first_page()?);
        Ok((header.load(MAGIC_AT) == MAGIC).then(|| (header.load(TOKEN_AT), header.load(SIZE_AT))))
    }

    /// Stores a word in the header that tells tools the kind of memory and its owner.
    pub fn set_kind(&self, kind: u64) -> Result<(), HostError> {
        OutWindow::new(self.first_page()?).store(KIND_AT, kind);
        Ok(())
    }

    /// Returns the word stored by [`MemoryFile::set_kind`]; 0 before its first call.
    pub fn kind(&self) -> Result<u64, HostError> {
        Ok(InWindow::new(self.first_page()?).load(KIND_AT))
    }

    /// Returns the line after the header, initially zeros, for the owners' own use.
    pub fn notes(&self) -> Result<Region, HostError> {
        Ok(self.first_page()?.part(HEADER, NOTES))
    }
}

/// Fails unless at least `reserve` bytes are free in `dir`. The reserve is for code that allocates lazily there and
/// does not check for free space itself.
pub fn check_space(dir: &Path, reserve: u64) -> Result<(), HostError> {
    let shown = || dir.display().to_string();
    let stat = statvfs(dir).map_err(|e| HostError::NoSpace { bytes: reserve, dir: shown(), cause: e.into() })?;
    let left = stat.blocks_available() as u64 * stat.fragment_size() as u64;
    if left < reserve {
        return Err(HostError::NoReserve { left, reserve, dir: shown() });
    }
    Ok(())
}

/// Returns the total size of the memory file system at `dir`, used and free, in bytes; `u64::MAX` if it has no limit or
/// does not exist.
pub fn size_of(dir: &Path) -> u64 {
    let Ok(stat) = statvfs(dir) else { return u64::MAX };
    match stat.blocks() * stat.fragment_size() {
        0 => u64::MAX,
        bytes => bytes,
    }
}

/// Creates a file without a name (`O_TMPFILE`) in `dir`, a directory of a memory file system; or with `memfd_create` if
/// `dir` is [`MEMFD`].
pub(crate) fn unnamed(dir: &Path) -> io::Result<File> {
    if dir == Path::new(MEMFD) {
        return Ok(memfd_create(c"ntbring", MemFdCreateFlag::MFD_CLOEXEC)?.into());
    }
    OpenOptions::new().read(true).write(true).mode(0o600).custom_flags(libc::O_TMPFILE | libc::O_CLOEXEC).open(dir)
}

/// Allocates `len` bytes of a file at `from`, unless they exceed a memory limit of this process.
fn back(file: &File, from: u64, len: u64) -> io::Result<()> {
    memory_limit::check(len)?;
    loop {
        // SAFETY: the system call takes no pointers, and `file` owns the descriptor.
        match unsafe { libc::posix_fallocate(file.as_raw_fd(), from as libc::off_t, len as libc::off_t) } {
            0 => return Ok(()),
            libc::EINTR => continue,
            code => return Err(io::Error::from_raw_os_error(code)),
        }
    }
}

fn random() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}
