//! Waiting for values in this PE's symmetric memory, and testing them.

use crate::fail;
use crate::world::{world, Memory, World};
use ntbring_shmem_api::constants::*;
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Looks at the memory between two polls of the ring: if no other process wants this processor, and if one does.
const LOOKS: [u32; 2] = [32, 4];
/// Rounds of looks between two yields, likewise.
const ROUNDS: [u32; 2] = [32, 1];
/// Yields before a sleep, likewise.
const YIELDS: [u32; 2] = [100, 100];
/// A yield that takes longer than this has let another process run.
const SWITCHED: Duration = Duration::from_nanos(1500);
/// Rounds between two polls of the ring if all PEs are near, when only failures can arrive.
const POLL_EVERY: u32 = 256;
/// Longest sleep, microseconds: stores through `shmem_ptr` wake no thread.
const SLEEP_US: u32 = 1000;

/// True while other processes want the processors on which this one waits.
static OVERSUBSCRIBED: AtomicBool = AtomicBool::new(false);

/// Yields, and notices from the time that it takes whether another process wants the processor.
fn give_way() {
    let before = Instant::now();
    std::thread::yield_now();
    OVERSUBSCRIBED.store(before.elapsed() > SWITCHED, Ordering::Relaxed);
}

/// Waits until a condition on memory of this PE holds: looks, then yields, then sleeps until the memory changes.
#[inline(always)]
pub fn until(world: &World, memory: Memory, mut holds: impl FnMut() -> bool) {
    if !holds() {
        keep_waiting(world, memory, &mut holds);
    }
}

#[cold]
#[inline(never)]
fn keep_waiting(world: &World, memory: Memory, holds: &mut dyn FnMut() -> bool) {
    let (mut rounds, mut yields) = (0u32, 0);
    loop {
        let oversubscribed = usize::from(OVERSUBSCRIBED.load(Ordering::Relaxed));
        for _ in 0..LOOKS[oversubscribed] {
            if holds() {
                return;
            }
            std::hint::spin_loop();
        }
        rounds += 1;
        if (world.link.has_far || rounds % POLL_EVERY == 0) && world.link.poll() {
            continue;
        }
        if rounds % ROUNDS[oversubscribed] != 0 {
            continue;
        }
        if yields < YIELDS[oversubscribed] {
            yields += 1;
            give_way();
            continue;
        }
        world.link.rest();
        world.sleepers.tell(world, memory, || world.segment(memory).sleep(SLEEP_US, &mut || holds()));
        world.link.poll();
    }
}

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cmp {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

impl Cmp {
    /// Returns the comparison with this number. Ends the program if there is none.
    #[inline(always)]
    pub fn of(name: &'static str, cmp: c_int) -> Cmp {
        match cmp {
            SHMEM_CMP_EQ => Cmp::Eq,
            SHMEM_CMP_NE => Cmp::Ne,
            SHMEM_CMP_GT => Cmp::Gt,
            SHMEM_CMP_GE => Cmp::Ge,
            SHMEM_CMP_LT => Cmp::Lt,
            SHMEM_CMP_LE => Cmp::Le,
            _ => fail::call(name, format_args!("cmp: {cmp} is none of the constants SHMEM_CMP_EQ to SHMEM_CMP_LE")),
        }
    }

    /// Returns true if `a` compares so with `b`.
    #[inline(always)]
    pub fn holds<V: PartialOrd>(self, a: V, b: V) -> bool {
        match self {
            Cmp::Eq => a == b,
            Cmp::Ne => a != b,
            Cmp::Gt => a > b,
            Cmp::Ge => a >= b,
            Cmp::Lt => a < b,
            Cmp::Le => a <= b,
        }
    }
}

/// A type for whose values a PE can wait.
pub trait Awaited: Copy + PartialOrd {
    /// Loads the value at an address, after which everything is visible that was written before it.
    ///
    /// # Safety
    /// The address must be that of an aligned value.
    unsafe fn load(at: *const Self) -> Self;
}

macro_rules! awaited {
    ($($t:ty: $atomic:ty),*) => {
        $(impl Awaited for $t {
            #[inline(always)]
            unsafe fn load(at: *const Self) -> Self {
                // SAFETY: aligned as the caller guarantees; all accesses of symmetric words are atomic.
                unsafe { <$atomic>::from_ptr(at.cast_mut().cast()) }.load(Ordering::Acquire) as $t
            }
        })*
    };
}

awaited!(i16: AtomicU16, u16: AtomicU16, i32: AtomicU32, u32: AtomicU32, i64: AtomicU64, u64: AtomicU64);
awaited!(isize: AtomicU64, usize: AtomicU64);

/// The arguments of a wait or test on several values.
#[derive(Clone, Copy)]
struct Several<T> {
    values: *const T,
    n: usize,
    /// Elements that are not 0 exclude the value of their index; null excludes none.
    status: *const c_int,
    cmp: Cmp,
    /// The value, or one value for each, to compare with.
    with: Operand<T>,
}

#[derive(Clone, Copy)]
enum Operand<T> {
    One(T),
    Each(*const T),
}

impl<T: Awaited> Several<T> {
    /// Checks the arguments. Returns the kind of memory in which the values lie.
    unsafe fn check(&self, world: &World, name: &'static str) -> Memory {
        if self.n == 0 {
            return Memory::Heap;
        }
        locate(world, name, self.values, self.n)
    }

    /// Returns true if a value counts.
    #[inline(always)]
    unsafe fn counts(&self, i: usize) -> bool {
        // SAFETY: null or `n` elements, as the program guarantees.
        self.status.is_null() || unsafe { self.status.add(i).read() } == 0
    }

    /// Returns true if a value fulfils the condition.
    #[inline(always)]
    unsafe fn holds(&self, i: usize) -> bool {
        // SAFETY: `n` aligned values, in symmetric memory (checked) and as the program guarantees.
        unsafe {
            let with = match self.with {
                Operand::One(value) => value,
                Operand::Each(values) => values.add(i).read(),
            };
            self.cmp.holds(T::load(self.values.add(i)), with)
        }
    }

    /// Returns true if all values that count fulfil the condition.
    unsafe fn all(&self) -> bool {
        // SAFETY: indices below `n`.
        (0..self.n).all(|i| unsafe { !self.counts(i) || self.holds(i) })
    }

    /// Returns the index of a value that counts and fulfils the condition.
    unsafe fn any(&self) -> Option<usize> {
        // SAFETY: indices below `n`.
        (0..self.n).find(|&i| unsafe { self.counts(i) && self.holds(i) })
    }

    /// Writes the indices of all values that count and fulfil the condition. Returns their number.
    unsafe fn some(&self, indices: *mut usize) -> usize {
        let mut found = 0;
        for i in 0..self.n {
            // SAFETY: indices below `n`; the program guarantees room for `n` indices.
            unsafe {
                if self.counts(i) && self.holds(i) {
                    indices.add(found).write(i);
                    found += 1;
                }
            }
        }
        found
    }

    /// Returns true if a value counts.
    unsafe fn is_anything(&self) -> bool {
        // SAFETY: indices below `n`.
        (0..self.n).any(|i| unsafe { self.counts(i) })
    }
}

/// Returns the kind of memory of `n` values. Ends the program if they are not aligned symmetric ones.
#[inline(always)]
fn locate<T>(world: &World, name: &'static str, values: *const T, n: usize) -> Memory {
    let address = values as usize;
    if address % align_of::<T>() != 0 {
        fail::call(name, format_args!("ivar: {address:#x} is not a multiple of {}", align_of::<T>()));
    }
    world.locate(name, "ivar", address, crate::rma::size::<T>(name, n)).memory
}

#[inline(always)]
pub unsafe fn wait_until<T: Awaited>(name: &'static str, ivar: *mut T, cmp: c_int, value: T) {
    let world = world(name);
    let (memory, cmp) = (locate(world, name, ivar, 1), Cmp::of(name, cmp));
    // SAFETY: an aligned symmetric value (checked).
    until(world, memory, || cmp.holds(unsafe { T::load(ivar) }, value));
}

/// Waits until a value differs from another one (a deprecated function).
pub unsafe fn wait<T: Awaited>(name: &'static str, ivar: *mut T, value: T) {
    // SAFETY: the program's guarantee.
    unsafe { wait_until(name, ivar, SHMEM_CMP_NE, value) }
}

#[inline(always)]
pub unsafe fn test<T: Awaited>(name: &'static str, ivar: *mut T, cmp: c_int, value: T) -> c_int {
    let world = world(name);
    locate(world, name, ivar, 1);
    // SAFETY: an aligned symmetric value (checked).
    let holds = Cmp::of(name, cmp).holds(unsafe { T::load(ivar) }, value);
    tested(world, holds)
}

/// Returns the result of a test. A program may repeat a test that fails.
fn tested(world: &World, holds: bool) -> c_int {
    if !holds {
        failed_test(world);
    }
    holds.into()
}

/// Polls now and then, and lets other processes run if they want to.
#[cold]
fn failed_test(world: &World) {
    thread_local!(static FAILED: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
    let failed = FAILED.with(|failed| failed.replace(failed.get().wrapping_add(1)));
    if failed % ROUNDS[0] == 0 {
        world.link.poll();
        give_way();
    } else if OVERSUBSCRIBED.load(Ordering::Relaxed) {
        std::thread::yield_now();
    }
}

/// Defines the functions on several values, with one value to compare with, or one for each.
macro_rules! several {
    ($operand:ident($t:ty): $wait_all:ident, $wait_any:ident, $wait_some:ident, $all:ident, $any:ident, $some:ident) => {
        pub unsafe fn $wait_all<T: Awaited>(
            name: &'static str,
            values: *mut T,
            n: usize,
            status: *const c_int,
            cmp: c_int,
            with: $t,
        ) {
            let world = world(name);
            let several = Several { values, n, status, cmp: Cmp::of(name, cmp), with: Operand::$operand(with) };
            // SAFETY: checked here, and the program's guarantee.
            unsafe {
                let memory = several.check(world, name);
                until(world, memory, || several.all());
            }
        }

        pub unsafe fn $wait_any<T: Awaited>(
            name: &'static str,
            values: *mut T,
            n: usize,
            status: *const c_int,
            cmp: c_int,
            with: $t,
        ) -> usize {
            let world = world(name);
            let several = Several { values, n, status, cmp: Cmp::of(name, cmp), with: Operand::$operand(with) };
            let mut found = None;
            // SAFETY: checked here, and the program's guarantee.
            unsafe {
                let memory = several.check(world, name);
                if several.is_anything() {
                    until(world, memory, || {
                        found = several.any();
                        found.is_some()
                    });
                }
            }
            found.unwrap_or(usize::MAX)
        }

        pub unsafe fn $wait_some<T: Awaited>(
            name: &'static str,
            values: *mut T,
            n: usize,
            indices: *mut usize,
            status: *const c_int,
            cmp: c_int,
            with: $t,
        ) -> usize {
            let world = world(name);
            let several = Several { values, n, status, cmp: Cmp::of(name, cmp), with: Operand::$operand(with) };
            let mut found = 0;
            // SAFETY: checked here, and the program's guarantee.
            unsafe {
                let memory = several.check(world, name);
                if several.is_anything() {
                    until(world, memory, || {
                        found = several.some(indices);
                        found > 0
                    });
                }
            }
            found
        }

        pub unsafe fn $all<T: Awaited>(
            name: &'static str,
            values: *mut T,
            n: usize,
            status: *const c_int,
            cmp: c_int,
            with: $t,
        ) -> c_int {
            let world = world(name);
            let several = Several { values, n, status, cmp: Cmp::of(name, cmp), with: Operand::$operand(with) };
            // SAFETY: checked here, and the program's guarantee.
            tested(world, unsafe {
                several.check(world, name);
                several.all()
            })
        }

        pub unsafe fn $any<T: Awaited>(
            name: &'static str,
            values: *mut T,
            n: usize,
            status: *const c_int,
            cmp: c_int,
            with: $t,
        ) -> usize {
            let world = world(name);
            let several = Several { values, n, status, cmp: Cmp::of(name, cmp), with: Operand::$operand(with) };
            // SAFETY: checked here, and the program's guarantee.
            let found = unsafe {
                several.check(world, name);
                several.any()
            };
            tested(world, found.is_some());
            found.unwrap_or(usize::MAX)
        }

        pub unsafe fn $some<T: Awaited>(
            name: &'static str,
            values: *mut T,
            n: usize,
            indices: *mut usize,
            status: *const c_int,
            cmp: c_int,
            with: $t,
        ) -> usize {
            let world = world(name);
            let several = Several { values, n, status, cmp: Cmp::of(name, cmp), with: Operand::$operand(with) };
            // SAFETY: checked here, and the program's guarantee.
            let found = unsafe {
                several.check(world, name);
                several.some(indices)
            };
            tested(world, found > 0);
            found
        }
    };
}

several!(One(T): wait_until_all, wait_until_any, wait_until_some, test_all, test_any, test_some);
several!(Each(*const T): wait_until_all_vector, wait_until_any_vector, wait_until_some_vector, test_all_vector, test_any_vector, test_some_vector);
