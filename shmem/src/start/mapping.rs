//! The symmetric memory of this PE, and that of the others.

use super::card::Card;
use super::job::{check, Job};
use crate::abi::*;
use crate::fail;
use crate::regions::{Globals, PAGE};
use crate::symmetric::{Memory, OwnMemory, OwnSegment, Peer, Segment, Writer, MEMORIES};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Version of what PEs write into each other's memory.
const VERSION: u64 = 2;

/// Largest size of the library's own memory at a PE, bytes. Only what is used is backed.
pub const CONTROL: usize = 1 << 30;

/// Globals up to this size are backed by memory as a whole, bytes. Of larger ones, such as arrays that a program uses in
/// part, only pages with contents are; the kernel backs others when they are first accessed.
const GLOBALS_BACKED: usize = 64 << 20;

/// The symmetric memory of this PE.
pub struct Symmetric {
    segments: [Option<Segment>; MEMORIES],
    addresses: [ntbring_segment_address_t; MEMORIES],
    heap: usize,
    globals: Option<Globals>,
}

impl Symmetric {
    /// Creates the memory: `heap` bytes, the globals, and control memory of which `control_backed` bytes are backed.
    pub fn create(
        endpoint: *mut ntbring_endpoint_t,
        heap: usize,
        globals: Option<Globals>,
        control_backed: usize,
    ) -> Symmetric {
        let globals_size = globals.map_or(0, |globals| globals.size);
        let globals_backed = if globals_size <= GLOBALS_BACKED { globals_size } else { PAGE };
        let sizes = [(heap, PAGE), (globals_size, globals_backed), (CONTROL, control_backed)];
        let mut addresses = [ntbring_segment_address_t::default(); MEMORIES];
        let mut create = |memory: usize| {
            let (size, backed) = sizes[memory];
            if size == 0 {
                return None;
            }
            // SAFETY: the endpoint is connected, and no other thread knows it.
            match unsafe { Segment::create(endpoint, size, backed) } {
                Ok((segment, address)) => {
                    addresses[memory] = address;
                    Some(segment)
                }
                Err(text) => {
                    let hint = ["SHMEM_SYMMETRIC_SIZE", "SHMEM_GLOBALS=off", "NTBRING_SHM_DIR"][memory];
                    fail::fatal(format_args!("symmetric memory ({hint}): {text}"))
                }
            }
        };
        // A window may have no room for all: without the library's own memory no other is written through it.
        let control = create(Memory::Control as usize);
        let globals_segment = create(Memory::Globals as usize);
        let segments = [create(Memory::Heap as usize), globals_segment, control];
        Symmetric { segments, addresses, heap, globals }
    }

    /// Describes the memory for operations that this PE carries out itself.
    pub fn describe(&self) -> OwnMemory {
        let sizes = [self.heap, self.globals.map_or(0, |globals| globals.size), CONTROL];
        OwnMemory::new(std::array::from_fn(|memory| {
            let segment = self.segments[memory].as_ref()?;
            Some(OwnSegment::of(segment, &self.addresses[memory], sizes[memory]))
        }))
    }
}

/// Exchanges the cards of all PEs.
pub fn share(job: &Job, endpoint: *mut ntbring_endpoint_t, own: &Symmetric) -> Vec<Card> {
    // SAFETY: the endpoint is connected.
    let all_near = (0..job.n()).all(|pe| unsafe { ntbring_is_mappable(endpoint, pe as i32) } == 1);
    let mut mailboxes = 0;
    // SAFETY: as above; the pointer is to a local.
    check("small collectives are not possible", unsafe { ntbring_group_offer(endpoint, &mut mailboxes) });
    let card = Card {
        version: VERSION,
        heap: own.heap as u64,
        globals: own.globals.map_or(0, |globals| globals.size as u64),
        executable: own.globals.map_or(0, |globals| globals.identity),
        all_near: all_near.into(),
        mailboxes: mailboxes.into(),
        segments: own.addresses.map(|address| address.words),
    };
    let cards = job.share("card", &card.bytes()).into_iter().map(|bytes| Card::parse(&bytes));
    let cards: Vec<Card> = cards
        .enumerate()
        .map(|(pe, card)| match card {
            Some(card) if card.version == VERSION => card,
            _ => fail::fatal(format_args!("PE {pe} runs another version of libntbshmem")),
        })
        .collect();
    if let Some(pe) = cards.iter().position(|other| other.heap != card.heap) {
        fail::fatal(format_args!(
            "SHMEM_SYMMETRIC_SIZE differs: the heap has {} bytes here, {} at PE {pe}",
            card.heap, cards[pe].heap
        ));
    }
    cards
}

/// Maps the memory of all PEs whose memory can be mapped, and takes over this PE's own segments.
pub fn map(job: &Job, endpoint: *mut ntbring_endpoint_t, own: Symmetric, cards: &[Card]) -> Box<[Peer]> {
    let mut own = Some(own.segments);
    let peer = |pe: usize| {
        // SAFETY: the endpoint is connected.
        let near = pe == job.me || unsafe { ntbring_is_mappable(endpoint, pe as i32) } == 1;
        let card = &cards[pe];
        let open = |memory: usize| {
            // SAFETY: the endpoint is connected, and no other thread knows it.
            card.has(memory).then(|| unsafe { Segment::open(endpoint, pe, &card.address(memory)) })
        };
        let mapped = match own.take_if(|_| pe == job.me) {
            Some(own) => own,
            None if near => std::array::from_fn(open),
            None => Default::default(),
        };
        let sleepers = mapped.each_ref().map(|segment| segment.as_ref().map(Segment::sleepers));
        Peer {
            pe,
            near,
            base: mapped.each_ref().map(|segment| segment.as_ref().map_or(0, Segment::base)),
            sleepers: sleepers.map(|sleepers| sleepers.map_or(ptr::null(), |(number, _)| number)),
            needs_fence: sleepers.iter().flatten().any(|&(_, needs_fence)| needs_fence),
            mapped,
            writers: if near { Default::default() } else { writers(endpoint, pe, card) },
            is_stored_to: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            woken: AtomicU64::new(0),
            addresses: std::array::from_fn(|memory| card.address(memory)),
            host: job.host_of[pe],
        }
    };
    (0..job.n()).map(peer).collect()
}

/// Opens the memory of a PE for writing, by kind, as far as its adapter reaches it.
fn writers(endpoint: *mut ntbring_endpoint_t, pe: usize, card: &Card) -> [Option<Writer>; MEMORIES] {
    let open = |memory: usize| {
        // SAFETY: the endpoint is connected, and no other thread knows it.
        card.has(memory).then(|| unsafe { Writer::open(endpoint, pe, &card.address(memory)) }).flatten()
    };
    // SAFETY: as above.
    let is_writable = unsafe { ntbring_is_writable(endpoint, pe as i32) } == 1;
    match is_writable.then(|| open(Memory::Control as usize)).flatten() {
        Some(control) => {
            // Pages of large globals are backed when they are accessed: an adapter cannot write others.
            let globals = (card.globals as usize <= GLOBALS_BACKED).then(|| open(Memory::Globals as usize)).flatten();
            [open(Memory::Heap as usize), globals, Some(control)]
        }
        None => Default::default(),
    }
}
