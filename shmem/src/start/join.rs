//! Joining the ring and mapping the memory of the other PEs.

use super::card::Card;
use super::job::{check, Job};
use crate::abi::*;
use crate::contexts::Contexts;
use crate::fail;
use crate::heap::Allocator;
use crate::locks::LocalLocks;
use crate::reach::{Far, Link, GROUP};
use crate::regions::{keep_private_in_children, Globals, PAGE};
use crate::teams::{Area, Group, Introductions, Teams};
use crate::world::{self, Memory, OwnMemory, OwnSegment, Peer, Segment, Sleepers, World, Writer, MEMORIES};
use ntbring_shmem_api::environment::{Settings, VARIABLES};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::Mutex;

/// Version of what PEs write into each other's memory.
const VERSION: u64 = 2;

/// Offset of the first allocation in the heap, bytes. Blocks of whole pages begin in the middle of a page, while large
/// buffers of `malloc` begin 16 bytes behind the start of one: of two buffers at nearly the same place in their pages,
/// processors take loads from one for loads of what they have just stored to the other, and a get of 64 KiB takes a third
/// longer (AMD EPYC).
const HEAP_START: usize = 2048;

/// Largest size of the library's own memory at a PE, bytes. Only what is used is backed.
const CONTROL: usize = 1 << 30;

/// Globals up to this size are backed by memory as a whole, bytes. Of larger ones, such as arrays that a program uses in
/// part, only pages with contents are; the kernel backs others when they are first accessed.
const GLOBALS_BACKED: usize = 64 << 20;

/// Number of the endpoint, which only messages show: MPI's are numbered from 0.
const VCI: i32 = 64;

/// Joins the job and makes it the world. `number` is that of the job in this process.
pub fn join(name: &'static str, number: u32) {
    let settings = Settings::load(|name| std::env::var(name).ok()).unwrap_or_else(|error| fail::call(name, error));
    check_version(name);
    let job = Job::open(number);
    if job.me == 0 {
        describe(&settings);
    }
    let endpoint = connect(&job);
    let heap = (settings.heap as usize + HEAP_START).next_multiple_of(PAGE);
    let globals = Globals::find().filter(|_| settings.globals);
    let own = Symmetric::create(&job, endpoint, heap, globals);
    let cards = share(&job, endpoint, &own);
    let (peers, all_near) = map(&job, endpoint, &own, &cards);
    let globals_size = agree_on_globals(&job, &settings, &cards);
    if let (Some(globals), Some(segment)) =
        (globals.filter(|_| globals_size > 0), &own.segments[Memory::Globals as usize])
    {
        // In a later job they are shared memory already, whose pages this process need not have touched.
        let whole = if number == 1 { globals.from_file } else { globals.size };
        // SAFETY: the pages are the executable's own data. No other thread may use them during initialisation, which
        // the description of the library says.
        let taken = with_signals_blocked(|| unsafe { segment.take_place_of(globals.base, whole) });
        if let Err(text) = taken {
            fail::call(name, format_args!("globals cannot be made symmetric (SHMEM_GLOBALS=off): {text}"));
        }
        keep_private_in_children(globals.base, globals.size);
    }
    let far = far(endpoint, &peers);
    let base = |memory: Memory| own.segments[memory as usize].as_ref().map_or(0, Segment::base);
    let block_max = open_mailboxes(&job, endpoint, &cards);
    if settings.debug {
        peers.iter().filter_map(|peer| Some((peer.pe, peer.writer(Memory::Heap)?))).for_each(|(pe, heap)| {
            fail::say(&format!(
                "puts to the first {} bytes of the heap of PE {pe} are stores through the link",
                heap.reach()
            ));
        });
    }
    let own_memory = own.describe();
    let written = peers.iter().filter(|peer| peer.writer(Memory::Control).is_some()).map(|peer| peer.pe).collect();
    let world = World {
        me: job.me,
        heap_base: base(Memory::Heap),
        heap_size: heap,
        heap_backed: AtomicUsize::new(PAGE),
        globals_base: globals.map_or(0, |globals| globals.base),
        globals_size,
        control_base: base(Memory::Control),
        segments: own.segments,
        all_near,
        written,
        arrivals: Mutex::new(()),
        sleepers: Sleepers::new(Introductions::bytes(job.n())),
        link: Link::new(endpoint, far, block_max, own_memory),
        heap: Mutex::new(Allocator::new(HEAP_START..heap)),
        control: Mutex::new(Allocator::new(0..CONTROL)),
        control_backed: AtomicUsize::new(own.control_backed),
        settings,
        contexts: Contexts::new(),
        teams: Teams::default(),
        introductions: Introductions::new(job.n()),
        locks: LocalLocks::default(),
        peers,
    };
    world.teams.begin(world_team(&world), shared_team(&world));
    // No PE accesses the memory of another one before its globals are in their place and its flags are 0.
    job.barrier();
    world::begin(world);
    if let Some(world) = world::current() {
        world.link.begin_polling();
    }
}

/// Runs `work` while no signal handler of this thread can run.
fn with_signals_blocked<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: all pointers are to locals; the old mask is restored.
    unsafe {
        let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        let result = work();
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
        result
    }
}

/// Returns how operations on PEs whose memory is not mapped get there.
fn far(endpoint: *mut ntbring_endpoint_t, peers: &[Peer]) -> Far {
    match peers.iter().find(|peer| !peer.near) {
        None => Far::Nowhere,
        // SAFETY: the endpoint is connected. It is the same for all far PEs.
        Some(peer) if unsafe { ntbring_is_served(endpoint, peer.pe as i32) } == 1 => Far::ByHosts,
        Some(_) => Far::ByMessages,
    }
}

fn check_version(name: &'static str) {
    // SAFETY: the function takes no arguments.
    let version = unsafe { ntbring_abi_version() };
    if version != NTBRING_ABI_VERSION {
        fail::call(
            name,
            format_args!(
                "libntbring.so has version {version} of its interface, and libntbshmem.so needs {NTBRING_ABI_VERSION}: \
                 install both from one source"
            ),
        );
    }
}

/// Prints what the user has asked for.
fn describe(settings: &Settings) {
    if settings.version {
        println!("ntbring {} (OpenSHMEM 1.6)", env!("CARGO_PKG_VERSION"));
    }
    if settings.info {
        VARIABLES.iter().for_each(|(name, meaning)| println!("{name:24} {meaning}"));
    }
}

/// Opens an endpoint and joins the ring.
fn connect(job: &Job) -> *mut ntbring_endpoint_t {
    let description = ntbring_job_t {
        rank: job.me as i32,
        size: job.n() as i32,
        hosts: job.hosts,
        host_of: job.host_of.as_ptr(),
        vci: VCI,
        charged: 0,
    };
    let mut endpoint = ptr::null_mut();
    // SAFETY: the description is valid, and the pointer is to a local.
    check("the ring cannot be joined", unsafe { ntbring_open(&description, &mut endpoint) });
    let (mut address, mut size) = ([0u8; NTBRING_ADDRESS_MAX as usize], 0);
    // SAFETY: the endpoint is open; the buffer has the size that the call may write.
    let rc = unsafe { ntbring_address(endpoint, address.as_mut_ptr().cast(), &mut size) };
    check("the ring cannot be joined", rc);
    let size = size as usize;
    let addresses = job.share("address", &address[..size]);
    if let Some(pe) = addresses.iter().position(|address| address.len() != size) {
        fail::fatal(format_args!("PE {pe} runs another version of libntbring"));
    }
    let table = addresses.concat();
    // SAFETY: the table has an address of that size for each PE.
    let rc = unsafe { ntbring_connect(endpoint, table.as_ptr().cast::<c_void>(), size as u64) };
    check("the ring cannot be joined", rc);
    endpoint
}

/// The symmetric memory of this PE.
struct Symmetric {
    segments: [Option<Segment>; MEMORIES],
    addresses: [ntbring_segment_address_t; MEMORIES],
    heap: usize,
    globals: Option<Globals>,
    control_backed: usize,
}

impl Symmetric {
    fn create(job: &Job, endpoint: *mut ntbring_endpoint_t, heap: usize, globals: Option<Globals>) -> Symmetric {
        let control_backed = before_areas(job.n()) + 2 * Area::bytes(job.n());
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
        let segments = [create(0), create(1), create(2)];
        Symmetric { segments, addresses, heap, globals, control_backed }
    }

    /// Describes the memory for operations that this PE carries out itself.
    fn describe(&self) -> OwnMemory {
        let sizes = [self.heap, self.globals.map_or(0, |globals| globals.size), CONTROL];
        OwnMemory::new(std::array::from_fn(|memory| {
            let segment = self.segments[memory].as_ref()?;
            Some(OwnSegment::of(segment, &self.addresses[memory], sizes[memory]))
        }))
    }
}

/// Opens mailboxes for small collectives of all PEs, if each host of the ring has one PE, in the order of hosts, and not
/// all memory is mapped: flags in mapped memory are faster. Returns the largest block, bytes; 0 if there are no mailboxes.
fn open_mailboxes(job: &Job, endpoint: *mut ntbring_endpoint_t, cards: &[Card]) -> usize {
    let in_order = job.host_of.iter().zip(0..).all(|(&host, pe)| host == pe);
    let wanted = in_order && !cards.iter().all(|card| card.all_near == 1);
    let all = if wanted { cards.iter().fold(u64::MAX, |all, card| all & card.mailboxes) } else { 0 } as u32;
    let ranks: Vec<i32> = (0..job.n() as i32).collect();
    let mine = cards[job.me].mailboxes as u32;
    if !in_order {
        return 0;
    }
    let mut limits = ntbring_limits_t::default();
    // SAFETY: the endpoint is connected; there is a rank for each host; the pointer is to a local.
    unsafe {
        check("the ring has failed", ntbring_limits(endpoint, &mut limits));
        let rc = ntbring_group_open(endpoint, GROUP, ranks.as_ptr(), mine, all);
        check("small collectives are not possible", rc);
        if rc == NTBRING_OK as i32 {
            limits.block_max as usize
        } else {
            0
        }
    }
}

/// Exchanges the cards of all PEs.
fn share(job: &Job, endpoint: *mut ntbring_endpoint_t, own: &Symmetric) -> Vec<Card> {
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

/// Maps the memory of all PEs whose memory can be mapped. Returns the PEs, and true if each can map all others.
fn map(job: &Job, endpoint: *mut ntbring_endpoint_t, own: &Symmetric, cards: &[Card]) -> (Box<[Peer]>, bool) {
    let peer = |pe: usize| {
        let mut peer = Peer {
            pe,
            // SAFETY: the endpoint is connected.
            near: pe == job.me || unsafe { ntbring_is_mappable(endpoint, pe as i32) } == 1,
            base: [0; MEMORIES],
            sleepers: [ptr::null(); MEMORIES],
            needs_fence: true,
            mapped: [const { None }; MEMORIES],
            writers: [const { None }; MEMORIES],
            is_stored_to: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            woken: AtomicU64::new(0),
            addresses: std::array::from_fn(|memory| cards[pe].address(memory)),
            host: job.host_of[pe],
        };
        if !peer.near {
            peer.writers = writers(endpoint, pe, &cards[pe]);
            return peer;
        }
        for memory in 0..MEMORIES {
            if cards[pe].segments[memory] == [0; 4] {
                continue;
            }
            if pe == job.me {
                let segment = own.segments[memory].as_ref().expect("this PE has the segments on its card");
                (peer.sleepers[memory], peer.needs_fence) = segment.sleepers();
                peer.base[memory] = segment.base();
                // SAFETY: the endpoint is connected, and no other thread knows it.
                peer.mapped[memory] = Some(unsafe { Segment::open(endpoint, pe, &peer.addresses[memory]) });
                continue;
            }
            // SAFETY: as above.
            let segment = unsafe { Segment::open(endpoint, pe, &peer.addresses[memory]) };
            (peer.sleepers[memory], peer.needs_fence) = segment.sleepers();
            peer.base[memory] = segment.base();
            peer.mapped[memory] = Some(segment);
        }
        peer
    };
    ((0..job.n()).map(peer).collect(), cards.iter().all(|card| card.all_near == 1))
}

/// Opens the memory of a PE for writing, by kind, as far as its adapter reaches it.
fn writers(endpoint: *mut ntbring_endpoint_t, pe: usize, card: &Card) -> [Option<Writer>; MEMORIES] {
    let open = |memory: usize| {
        let exists = card.segments[memory] != [0; 4];
        // SAFETY: the endpoint is connected, and no other thread knows it.
        exists.then(|| unsafe { Writer::open(endpoint, pe, &card.address(memory)) }).flatten()
    };
    // SAFETY: as above.
    let is_writable = unsafe { ntbring_is_writable(endpoint, pe as i32) } == 1;
    match is_writable.then(|| open(Memory::Control as usize)).flatten() {
        Some(control) => {
            // Pages of large globals are backed when they are accessed: an adapter cannot write others.
            let globals = (card.globals as usize <= GLOBALS_BACKED).then(|| open(Memory::Globals as usize)).flatten();
            [open(Memory::Heap as usize), globals, Some(control)]
        }
        None => [const { None }; MEMORIES],
    }
}

/// Returns the size of the symmetric globals: 0 if not all PEs run the same executable.
fn agree_on_globals(job: &Job, settings: &Settings, cards: &[Card]) -> usize {
    let own = &cards[job.me];
    let differs = |card: &Card| (card.globals, card.executable) != (own.globals, own.executable);
    match cards.iter().position(differs) {
        None => own.globals as usize,
        Some(pe) => {
            if settings.debug {
                fail::say(&format!("PE {pe} runs another executable, so globals are not symmetric"));
            }
            0
        }
    }
}

/// Returns the size of the control memory before the parts of teams, bytes.
fn before_areas(n: usize) -> usize {
    Introductions::bytes(n) + Sleepers::bytes(n).next_multiple_of(64)
}

/// Makes the team of all PEs, whose memory lies at the same place at all of them.
fn world_team(world: &World) -> Group {
    let part = reserve(world, before_areas(world.n()));
    Group::new((0..world.n()).collect(), world.me, 0, Area::new(vec![part; world.n()], world.me))
}

/// Makes the team of the PEs whose memory all of them can map: those of this host, or all.
fn shared_team(world: &World) -> Group {
    let is_in = |peer: &&Peer| world.all_near || peer.host == world.peers[world.me].host;
    let members: Vec<usize> = world.peers.iter().filter(is_in).map(|peer| peer.pe).collect();
    let me = members.iter().position(|&pe| pe == world.me).expect("this PE is in its own team");
    let part = reserve(world, 0);
    Group::new(members.clone(), me, 0, Area::new(vec![part; members.len()], me))
}

/// Allocates a part for a team of all PEs, behind `before` bytes of control memory. Returns the same at all PEs.
fn reserve(world: &World, before: usize) -> usize {
    if before > 0 {
        world.control.lock().expect("no other thread has it").allocate(before, 1).expect("memory is reserved for it");
    }
    Area::allocate(world, world.n()).expect("memory is reserved for it")
}
