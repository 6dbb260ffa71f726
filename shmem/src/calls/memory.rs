//! The functions of the symmetric heap. All PEs call them with the same arguments, so that their heaps stay alike.

use crate::allocator::Allocator;
use crate::collectives::{exchange_words, synchronise};
use crate::fail;
use crate::handles::Ctx;
use crate::reach::{self, copy};
use crate::symmetric::Memory;
use crate::world::{world, World};
use std::ffi::{c_long, c_void};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};

/// Alignment of allocations without a wish of their own, bytes.
const ALIGN: usize = 64;

/// Largest alignment: that of the heap itself, which has another address at each PE, bytes.
const ALIGN_MAX: usize = 2 << 20;

/// The heap is backed in steps of this many bytes, at least.
const STEP: usize = 1 << 20;
/// And of this many, at most, beyond what is needed.
const STEP_MAX: usize = 64 << 20;

/// Returns the address of the heap at this PE.
fn base(world: &World) -> usize {
    world.pes.base[Memory::Heap as usize]
}

fn allocator(world: &World) -> MutexGuard<'_, Allocator> {
    world.heap.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Backs the heap up to `end`. Returns libntbring's error text if that fails.
fn back(world: &World, end: usize) -> Result<(), String> {
    let backed = world.pes.heap_backed.load(Ordering::Relaxed);
    if end <= backed {
        return Ok(());
    }
    let (segment, size) = (world.pes.segment(Memory::Heap), world.heap_size);
    let ample = (end.max(backed + backed.clamp(STEP, STEP_MAX))).next_multiple_of(STEP).min(size);
    let grown = match segment.grow(backed, ample - backed) {
        Ok(()) => ample,
        // Perhaps there is memory for what is needed.
        Err(_) => segment.grow(backed, end - backed).map(|()| end)?,
    };
    world.pes.heap_backed.store(grown, Ordering::Relaxed);
    Ok(())
}

/// Allocates `len` bytes at every PE. Returns NULL at all of them if one has no memory. Every PE has returned from
/// [`back`] when this function returns, so all may be written to.
fn allocate(world: &World, name: &'static str, len: usize, align: usize, zeroed: bool) -> *mut c_void {
    let mut heap = allocator(world);
    let found = heap.allocate(len, align);
    let result = match found {
        Some(at) => back(world, at + len),
        None => Err(format!("the heap has {} bytes (SHMEM_SYMMETRIC_SIZE)", world.heap_size)),
    };
    let to = found.map_or(ptr::null_mut(), |at| (base(world) + at) as *mut c_void);
    if zeroed && result.is_ok() {
        // SAFETY: the range was just allocated and backed, and no other PE knows it yet.
        unsafe { ptr::write_bytes(to.cast::<u8>(), 0, len) };
    }
    // The place, from 1; 0 if there is no memory.
    let place = found.filter(|_| result.is_ok()).map_or(0, |at| at as u64 + 1);
    let answers = exchange_words(&world.pes, world.teams.world(), [len as u64, place]);
    if let Some((pe, &[other, _])) = answers.iter().enumerate().find(|(_, &[other, _])| other != len as u64) {
        fail::call(name, format_args!("size: this PE asks for {len} bytes, PE {pe} for {other}; all PEs must agree"));
    }
    if answers.iter().all(|&[_, place]| place != 0) {
        if let Some(pe) = answers.iter().position(|&[_, other]| other != place) {
            fail::call(
                name,
                format_args!(
                    "the heap of PE {pe} differs from that of this PE: all PEs must make the same calls with the same \
                     arguments"
                ),
            );
        }
        return to;
    }
    if let Some(at) = found {
        heap.free(at);
    }
    if world.settings.debug {
        let cause = match result {
            Err(cause) => cause,
            Ok(()) => "another PE has no memory".to_string(),
        };
        fail::say(&format!(
            "{name}: {len} bytes cannot be allocated: {cause} (in use: {} bytes; largest \
             free part: {} bytes)",
            heap.used(),
            heap.largest_free()
        ));
    }
    ptr::null_mut()
}

/// Frees an allocation at every PE, none of which uses it any more.
fn release(world: &World, name: &'static str, at: *mut c_void) {
    len_of(world, name, at);
    agree(world, name, at, 0);
    allocator(world).free(at as usize - base(world));
}

/// Completes all operations, and waits until all PEs have called it, with the same allocation and size.
fn agree(world: &World, name: &'static str, at: *mut c_void, size: usize) {
    reach::quiet(&world.pes, Ctx::DEFAULT);
    let own = [(at as usize - base(world)) as u64, size as u64];
    let all = exchange_words(&world.pes, world.teams.world(), own);
    if let Some(pe) = all.iter().position(|&other| other != own) {
        fail::call(name, format_args!("PE {pe} calls it with another allocation or size; all PEs must agree"));
    }
}

/// Returns the length of an allocation. Ends the program if it is none.
fn len_of(world: &World, name: &'static str, at: *mut c_void) -> usize {
    match allocator(world).len_of((at as usize).wrapping_sub(base(world))) {
        Some(len) => len,
        None => fail::call(
            name,
            format_args!("ptr: {at:p} is not an allocation of the symmetric heap, or was freed before"),
        ),
    }
}

pub unsafe fn malloc(name: &'static str, size: usize) -> *mut c_void {
    let world = world(name);
    if size == 0 {
        return ptr::null_mut();
    }
    allocate(world, name, size, ALIGN, false)
}

pub unsafe fn malloc_with_hints(name: &'static str, size: usize, _hints: c_long) -> *mut c_void {
    // SAFETY: the program's guarantee.
    unsafe { malloc(name, size) }
}

pub unsafe fn calloc(name: &'static str, count: usize, size: usize) -> *mut c_void {
    let world = world(name);
    match count.checked_mul(size) {
        Some(0) => ptr::null_mut(),
        Some(len) => allocate(world, name, len, ALIGN, true),
        // More than any memory has.
        None => allocate(world, name, usize::MAX, ALIGN, false),
    }
}

pub unsafe fn align(name: &'static str, alignment: usize, size: usize) -> *mut c_void {
    let world = world(name);
    if size == 0 || !alignment.is_power_of_two() || alignment > ALIGN_MAX {
        return ptr::null_mut();
    }
    allocate(world, name, size, alignment, false)
}

pub unsafe fn free(name: &'static str, at: *mut c_void) {
    let world = world(name);
    if !at.is_null() {
        release(world, name, at);
    }
}

/// Changes the size of an allocation, after all PEs have called it. It moves if it has to grow, and stays as it is if there
/// is no memory for that.
pub unsafe fn realloc(name: &'static str, at: *mut c_void, size: usize) -> *mut c_void {
    let world = world(name);
    if at.is_null() {
        // SAFETY: the program's guarantee.
        return unsafe { malloc(name, size) };
    }
    if size == 0 {
        release(world, name, at);
        return ptr::null_mut();
    }
    let len = len_of(world, name, at);
    agree(world, name, at, size);
    if allocator(world).shrink(at as usize - base(world), size) {
        // All PEs keep it. None may use it before the others have come here.
        synchronise(&world.pes, world.teams.world());
        return at;
    }
    let new = allocate(world, name, size, ALIGN, false);
    if !new.is_null() {
        // SAFETY: both are allocations of at least the smaller size.
        unsafe { copy(at.cast_const().cast(), new.cast(), len.min(size)) };
        // Others write to the new allocation only when this PE has filled it.
        synchronise(&world.pes, world.teams.world());
        allocator(world).free(at as usize - base(world));
    }
    new
}

/// Writes the state of the heap, each number to where it is wanted.
pub unsafe fn heap_info(
    name: &'static str,
    reserved: *mut usize,
    backed: *mut usize,
    used: *mut usize,
    largest_free: *mut usize,
) {
    let world = world(name);
    let heap = allocator(world);
    let numbers = [world.heap_size, world.pes.heap_backed.load(Ordering::Relaxed), heap.used(), heap.largest_free()];
    for (to, number) in [reserved, backed, used, largest_free].into_iter().zip(numbers) {
        if !to.is_null() {
            // SAFETY: the program guarantees writable memory.
            unsafe { to.write(number) };
        }
    }
}
