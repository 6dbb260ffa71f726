//! A mailbox: a page of shared memory of a process in which any process of the same user can put short messages
//! (notes). It has no counterpart in NTB hardware; it serves processes of different jobs, which communicate outside the
//! ring, or by gateways. The process's [`StatsPage`] follows it in memory.

use crate::file_tag::FileKind;
use crate::machine::Place;
use crate::memory_file::{FileAddress, MemoryFile, PAGE};
use crate::open_files::look_through;
use crate::stats_page::{StatsPage, POSTED};
use crate::HostError;
use nix::errno::Errno;
use nix::sys::signal;
use nix::unistd::Pid;
use ntbring_memory::{InWindow, OutWindow, Region};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::Arc;

const SLOTS: usize = 31;
const SLOT: usize = 128;
/// Maximum length of a note, bytes.
pub const NOTE_MAX: usize = SLOT - 8;

// States of a slot. While a process writes a note, the state is WRITER and the process id.
const FREE: u32 = 0;
const WRITER: u32 = 1 << 31;

/// The reader of a note. Each reader takes only its own notes. The numbers are the states of slots that hold them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteReader {
    /// The process itself.
    Process = 2,
    /// The gateway in the process, which passes on messages of other processes.
    Gateway = 3,
}

/// Number of slots for notes for the process. The others are for its gateway, so that a process that does not read its
/// notes holds up no other.
const OF_PROCESS: usize = 23;

impl NoteReader {
    /// Returns the slots for notes for this reader.
    fn slots(self) -> Range<usize> {
        match self {
            NoteReader::Process => 0..OF_PROCESS,
            NoteReader::Gateway => OF_PROCESS..SLOTS,
        }
    }
}

/// Offsets in the line after the file's header, bytes: the token of the job; 1 if the process has a gateway, and twice
/// the number of the mailbox's descriptor; the address of the windows of its host; the rest of the place. The host's
/// name is followed by the process id.
const JOB_AT: usize = 0;
const GATEWAY_AT: usize = 8;
const HOST_AT: usize = 16;
/// Length of the address of a host's windows, bytes.
const HOST_LEN: usize = 32;
const MACHINE_AT: usize = 48;
const HOST_NAME_AT: usize = 56;

/// A mailbox: of this process, or of another process. Behind the stats page a mailbox may have an area for other users,
/// pages that are allocated only when they are needed.
pub struct Mailbox {
    /// The memory file; it is kept open so that other processes can open it.
    memory: Arc<MemoryFile>,
    page: Region,
    seen: u32,
}

/// Offset of the page with the notes, bytes: it follows the file's first page.
const NOTES: u64 = PAGE as u64;

fn slot(i: usize) -> usize {
    (i + 1) * SLOT
}

impl Mailbox {
    /// Creates an empty mailbox in `dir`, with a stats page for at least `words` words.
    pub fn create(dir: &Path, words: usize) -> Result<(Mailbox, FileAddress), HostError> {
        Self::create_with_area(dir, words, 0)
    }

    /// As [`Mailbox::create`], with an area of `area` bytes, a multiple of the page size, of which nothing is allocated
    /// yet.
    pub fn create_with_area(dir: &Path, words: usize, area: u64) -> Result<(Mailbox, FileAddress), HostError> {
        let mailbox = NOTES + PAGE as u64 + StatsPage::bytes(words);
        let (memory, address) = MemoryFile::create_sparse(dir, mailbox + area, mailbox)?;
        let page = memory.map(NOTES, PAGE as u64)?;
        StatsPage::begin(&memory, StatsPage::bytes(words))?;
        Ok((Mailbox { memory: Arc::new(memory), page, seen: 0 }, address))
    }

    /// Marks the memory file as that of a process of this job, for tools that list jobs and for other jobs that need
    /// one of its gateways. `gateway` is the address of the windows of the process's host if the process has a gateway.
    pub fn introduce(&self, job: u32, place: Place, gateway: Option<&[u8; HOST_LEN]>) -> Result<(), HostError> {
        let notes = OutWindow::new(self.memory.notes()?);
        notes.store(JOB_AT, place.job);
        notes.store(MACHINE_AT, place.machine);
        notes.store(HOST_NAME_AT, u64::from(place.host_name) | u64::from(std::process::id()) << 32);
        if let Some(host) = gateway {
            notes.write_bytes(HOST_AT, host);
            notes.store(GATEWAY_AT, 1 | (self.memory.file().as_raw_fd() as u64) << 1);
        }
        self.memory.set_kind(FileKind::Process { job }.word())
    }

    /// Returns the id of the process whose mailbox is in this memory file, as that process sees it.
    pub(crate) fn owner(memory: &MemoryFile) -> Result<u32, HostError> {
        Ok((InWindow::new(memory.notes()?).load(HOST_NAME_AT) >> 32) as u32)
    }

    /// Returns the address of the mailbox of a process that is a gateway of the job `place.job` and is near `place`,
    /// and the address of the windows of its host in that job; None if there is no such process of this user.
    pub fn of_gateway(place: Place) -> io::Result<Option<(FileAddress, [u8; HOST_LEN])>> {
        let mut found = None;
        look_through(|address, kind, memory| {
            if let (FileKind::Process { .. }, Ok(notes)) = (kind, memory.notes().map(InWindow::new)) {
                let name = notes.load(HOST_NAME_AT);
                let its = Place { job: notes.load(JOB_AT), machine: notes.load(MACHINE_AT), host_name: name as u32 };
                // Other descriptors of the file are closed sooner: those of processes that the owner has forked, and
                // those by which the owner itself opens it for a moment.
                let gateway = notes.load(GATEWAY_AT);
                let is_lasting = (u64::from(address.pid), u64::from(address.fd)) == (name >> 32, gateway >> 1);
                if is_lasting && gateway & 1 == 1 && its.job == place.job && its.is_near(&place) {
                    let mut host = [0; HOST_LEN];
                    notes.read(HOST_AT, &mut host);
                    found = Some((address, host));
                }
            }
        })?;
        Ok(found)
    }

    /// Returns the owner's stats page.
    pub fn stats_page(&self) -> Result<StatsPage, HostError> {
        StatsPage::of(&self.memory)
    }

    /// Opens another process's mailbox.
    pub fn open(address: &FileAddress) -> Result<Mailbox, HostError> {
        let memory = MemoryFile::open(address)?;
        let page = memory.map(NOTES, PAGE as u64)?;
        Ok(Mailbox { memory: Arc::new(memory), page, seen: 0 })
    }

    /// Maps `len` bytes at `at` in the mailbox's area of `area` bytes; both are multiples of the page size. They must be
    /// allocated ([`Mailbox::back_area`]).
    pub fn map_area(&self, area: u64, at: u64, len: u64) -> Result<Region, HostError> {
        self.memory.map(self.in_area(area, at, len)?, len)
    }

    /// Allocates such bytes, which are zero then, unless they are allocated already.
    pub fn back_area(&self, area: u64, at: u64, len: u64) -> Result<(), HostError> {
        let failed = |cause| HostError::Open { pid: self.memory.pid(), cause };
        self.memory.back(self.in_area(area, at, len)?, len).map_err(failed)
    }

    /// Returns the offset in the file of bytes in the area.
    fn in_area(&self, area: u64, at: u64, len: u64) -> Result<u64, HostError> {
        let size = self.memory.size();
        let inside = at <= area && len <= area - at;
        let start = size.checked_sub(area).filter(|start| inside && *start >= NOTES + PAGE as u64);
        Ok(start.ok_or(HostError::Beyond { offset: at, len, size })? + at)
    }

    /// Returns the size of the mailbox with all that follows it, bytes.
    pub fn size(&self) -> u64 {
        self.memory.size()
    }

    /// Returns another handle of this mailbox, for another reader.
    pub fn share(&self) -> Mailbox {
        Mailbox { memory: self.memory.clone(), page: self.page.clone(), seen: 0 }
    }

    /// Puts a note of at most [`NOTE_MAX`] bytes for a reader. Returns false if all slots are full: the owner has to
    /// read notes first. Panics if the note is longer.
    ///
    /// A slot stays in use if the process that writes its note is killed. Such slots are used again when no other is
    /// free.
    pub fn post(&self, reader: NoteReader, note: &[u8]) -> bool {
        assert!(note.len() <= NOTE_MAX, "a note of {} bytes", note.len());
        reader.slots().any(|i| self.put(i, FREE, reader, note))
            || reader.slots().any(|i| {
                let state = self.page.register(slot(i)).load(Ordering::Relaxed);
                is_abandoned(state) && self.put(i, state, reader, note)
            })
    }

    /// Returns true if there is a free slot for a note for this reader.
    pub fn has_room(&self, reader: NoteReader) -> bool {
        reader.slots().any(|i| {
            let state = self.page.register(slot(i)).load(Ordering::Relaxed);
            state == FREE || is_abandoned(state)
        })
    }

    /// Puts a note into a slot. Returns false if the slot's state is not `state`.
    fn put(&self, i: usize, state: u32, reader: NoteReader, note: &[u8]) -> bool {
        let (word, writing) = (self.page.register(slot(i)), WRITER | std::process::id());
        if word.compare_exchange(state, writing, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return false;
        }
        OutWindow::new(self.page.clone()).write_bytes(slot(i) + 8, note);
        word.store(reader as u32, Ordering::Release);
        self.page.register(POSTED).fetch_add(1, Ordering::SeqCst);
        true
    }

    /// Makes the owner check its mailbox although there is no note.
    pub fn nudge(&self) {
        self.page.register(POSTED).fetch_add(1, Ordering::SeqCst);
    }

    /// Returns true if a note may have arrived since [`Mailbox::read`] last returned None. Costs one load.
    #[inline]
    pub fn has_news(&self) -> bool {
        self.page.register(POSTED).load(Ordering::Relaxed) != self.seen
    }

    /// Removes and returns a note for a reader, which must be the only one with this mailbox value; None if there is
    /// none. Notes are padded with zeros or old bytes to [`NOTE_MAX`] bytes.
    pub fn read(&mut self, reader: NoteReader) -> Option<[u8; NOTE_MAX]> {
        let posted = self.page.register(POSTED).load(Ordering::SeqCst);
        for i in reader.slots() {
            let state = self.page.register(slot(i));
            if state.load(Ordering::Acquire) == reader as u32 {
                let mut note = [0; NOTE_MAX];
                InWindow::new(self.page.clone()).read(slot(i) + 8, &mut note);
                state.store(FREE, Ordering::Release);
                return Some(note);
            }
        }
        self.seen = posted;
        None
    }
}

/// Returns true if a slot in this state was being written by a process that has ended.
fn is_abandoned(state: u32) -> bool {
    let pid = (state & !WRITER) as i32;
    // A process id is positive: 0 stands for the own process group.
    state & WRITER != 0 && pid > 0 && signal::kill(Pid::from_raw(pid), None) == Err(Errno::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunningProcess;
    use std::process::Command;

    #[test]
    fn a_slot_whose_writer_was_killed_is_used_again() {
        let (mut mine, address) = Mailbox::create(Path::new("/dev/shm"), 0).unwrap();
        let theirs = Mailbox::open(&address).unwrap();
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        theirs.page.register(slot(7)).store(WRITER | child.id(), Ordering::Relaxed);
        assert!((1..OF_PROCESS).all(|_| theirs.post(NoteReader::Process, b"note")));
        assert!(!theirs.post(NoteReader::Process, b"one too many"), "the writer lives");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            theirs.post(NoteReader::Process, b"in its place") && !theirs.post(NoteReader::Process, b"one too many")
        );
        let notes: Vec<_> = std::iter::from_fn(|| mine.read(NoteReader::Process)).collect();
        assert_eq!((notes.len(), &notes[7][..12]), (OF_PROCESS, &b"in its place"[..]));
    }

    #[test]
    fn notes_arrive_once_each_until_the_box_is_full() {
        let (mut mine, address) = Mailbox::create(Path::new("/dev/shm"), 0).unwrap();
        let theirs = Mailbox::open(&address).unwrap();
        assert!(!mine.has_news());
        for i in 0..OF_PROCESS {
            assert!(theirs.post(NoteReader::Process, &[i as u8 + 1; 10]));
        }
        assert!(!theirs.post(NoteReader::Process, b"one too many"));
        assert!(mine.has_news());
        for i in 0..OF_PROCESS {
            assert_eq!(mine.read(NoteReader::Process).unwrap()[..10], [i as u8 + 1; 10]);
        }
        assert!(mine.read(NoteReader::Process).is_none() && !mine.has_news());
        assert!(theirs.post(NoteReader::Process, b"again"));
        assert_eq!(&mine.read(NoteReader::Process).unwrap()[..5], b"again");
    }

    #[test]
    fn each_reader_takes_only_its_notes() {
        let (mut process, _) = Mailbox::create(Path::new("/dev/shm"), 0).unwrap();
        let mut gateway = process.share();
        assert!(process.post(NoteReader::Gateway, b"tunnel") && process.post(NoteReader::Process, b"lane"));
        assert!(process.has_news() && gateway.has_news());
        assert_eq!(&process.read(NoteReader::Process).unwrap()[..4], b"lane");
        assert!(process.read(NoteReader::Process).is_none() && !process.has_news() && gateway.has_news());
        assert_eq!(&gateway.read(NoteReader::Gateway).unwrap()[..6], b"tunnel");
        assert!(gateway.read(NoteReader::Gateway).is_none() && !gateway.has_news());
    }

    #[test]
    fn tools_know_the_owner_of_a_mailbox_while_it_lives() {
        let (process, _) = Mailbox::create(Path::new("/dev/shm"), 0).unwrap();
        // A number that no job has, as it is above all ids of processes.
        let job = 1 << 31 | std::process::id();
        let place = Place { job: 0, machine: 5, host_name: 3 };
        process.introduce(job, place, None).unwrap();
        let pid = || {
            let found = RunningProcess::all().unwrap();
            found.iter().find(|process| process.job == job).map(|process| process.pid)
        };
        assert_eq!(pid(), Some(Some(std::process::id())));
        // Another process, which has ended, while this one still holds its mailbox open.
        OutWindow::new(process.memory.notes().unwrap()).store(HOST_NAME_AT, u64::MAX);
        assert_eq!(pid(), Some(None));
    }

    #[test]
    fn a_gateway_is_found_by_the_token_of_its_job() {
        let job = u64::from(std::process::id()) << 20 | 0xabcde;
        let other = job + 1;
        let (process, _) = Mailbox::create(Path::new("/dev/shm"), 0).unwrap();
        let (gateway, address) = Mailbox::create(Path::new("/dev/shm"), 0).unwrap();
        let place = Place { job, machine: 5, host_name: 3 };
        process.introduce(7, place, None).unwrap();
        assert_eq!(Mailbox::of_gateway(place).unwrap(), None);
        gateway.introduce(7, place, Some(&[9; HOST_LEN])).unwrap();
        // Another descriptor of the same file, which is closed before the owner ends.
        let _other = Mailbox::open(&address).unwrap();
        let found = Some((address, [9; HOST_LEN]));
        assert_eq!(Mailbox::of_gateway(place).unwrap(), found);
        assert_eq!(Mailbox::of_gateway(Place { host_name: 0, ..place }).unwrap(), found);
        for far in [Place { job: other, ..place }, Place { machine: 6, ..place }, Place { host_name: 4, ..place }] {
            assert_eq!(Mailbox::of_gateway(far).unwrap(), None, "{far:?}");
        }
    }
}
