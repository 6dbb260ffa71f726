//! Joining the ring, and making the world out of what the PEs tell each other.

use super::card::Card;
use super::job::{check, Job};
use super::mapping::{map, share, Symmetric, CONTROL};
use crate::abi::*;
use crate::allocator::Allocator;
use crate::contexts::Contexts;
use crate::fail;
use crate::groups::Control;
use crate::locks::LocalLocks;
use crate::reach::{Far, Link, Pending, Pes, Sleepers, GROUP};
use crate::regions::{keep_private_in_children, Globals, PAGE};
use crate::symmetric::{Memory, Peer};
use crate::teams::{Introductions, Teams};
use crate::world::{self, World};
use ntbring_shmem_api::environment::{Settings, VARIABLES};
use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::AtomicUsize;
use std::sync::Mutex;

/// Offset of the first allocation in the heap, bytes. Blocks of whole pages begin in the middle of a page, while large
/// buffers of `malloc` begin 16 bytes behind the start of one: of two buffers at nearly the same place in their pages,
/// processors take loads from one for loads of what they have just stored to the other, and copies are slower.
const HEAP_START: usize = 2048;

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
    let (introductions, before) = before_groups(job.n());
    let control_backed = before + Teams::bytes(job.n());
    let own = Symmetric::create(endpoint, heap, globals, control_backed);
    let cards = share(&job, endpoint, &own);
    let all_near = cards.iter().all(|card| card.all_near == 1);
    let own_memory = own.describe();
    let peers = map(&job, endpoint, own, &cards);
    let [heap_base, _, control_base] = peers[job.me].base;
    let globals_size = agree_on_globals(&job, &settings, &cards);
    if let (Some(globals), Some(segment)) =
        (globals.filter(|_| globals_size > 0), &peers[job.me].mapped[Memory::Globals as usize])
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
    let block_max = open_mailboxes(&job, endpoint, &cards, all_near);
    if settings.debug {
        peers.iter().filter_map(|peer| Some((peer.pe, peer.writer(Memory::Heap)?))).for_each(|(pe, heap)| {
            fail::say(&format!(
                "puts to the first {} bytes of the heap of PE {pe} are stores through the link",
                heap.reach()
            ));
        });
    }
    let written = peers.iter().filter(|peer| peer.writer(Memory::Control).is_some()).map(|peer| peer.pe).collect();
    let pes = Pes {
        me: job.me,
        base: [heap_base, globals.map_or(0, |globals| globals.base), control_base],
        heap_backed: AtomicUsize::new(PAGE),
        globals_size,
        all_near,
        written,
        arrivals: Mutex::new(()),
        sleepers: Sleepers::new(job.me, control_base, introductions),
        pending: Pending::new(),
        link: Link::new(endpoint, far, block_max, own_memory),
        peers,
    };
    let teams = Teams::new(&pes, Control::new(before..CONTROL, control_backed));
    let heap_size = heap;
    let heap = Mutex::new(Allocator::new(HEAP_START..heap));
    let (contexts, locks) = (Contexts::new(), LocalLocks::default());
    let world = World { pes, heap_size, heap, settings, contexts, teams, locks };
    // No PE accesses the memory of another one before its globals are in their place and its flags are 0.
    job.barrier();
    world::begin(world);
    if let Some(world) = world::current() {
        world.pes.link.begin_polling();
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
        queues: None,
        queues_cookie: ptr::null_mut(),
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

/// Opens mailboxes for small collectives of all PEs, if each host of the ring has one PE, in the order of hosts, and not
/// all memory is mapped: flags in mapped memory are faster. Returns the largest block, bytes; 0 if there are no mailboxes.
fn open_mailboxes(job: &Job, endpoint: *mut ntbring_endpoint_t, cards: &[Card], all_near: bool) -> usize {
    let in_order = job.host_of.iter().zip(0..).all(|(&host, pe)| host == pe);
    let all =
        if in_order && !all_near { cards.iter().fold(u64::MAX, |all, card| all & card.mailboxes) } else { 0 } as u32;
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

/// Returns the offsets in the control memory behind the lines for introductions, which are at its start, and behind the
/// words of sleepers, which follow and end where the parts of groups begin, bytes.
fn before_groups(n: usize) -> (usize, usize) {
    let introductions = Introductions::bytes(n);
    (introductions, introductions + Sleepers::bytes(n).next_multiple_of(64))
}
