//! Waiting for values in this PE's symmetric memory, and testing them.

use super::compare::{Awaited, Cmp};
use crate::fail;
use crate::reach::{self, Pes};
use crate::symmetric::{size, Memory};
use crate::world::world;
use ntbring_shmem_api::constants::SHMEM_CMP_NE;
use std::ffi::c_int;

/// Returns the kind of memory of `n` values. Ends the program if they are not aligned symmetric ones.
#[inline(always)]
fn locate<T>(pes: &Pes, name: &'static str, values: *const T, n: usize) -> Memory {
    let address = values as usize;
    if !address.is_multiple_of(align_of::<T>()) {
        fail::call(name, format_args!("ivar: {address:#x} is not a multiple of {}", align_of::<T>()));
    }
    pes.locate(name, "ivar", address, size::<T>(name, n)).memory
}

#[inline(always)]
pub unsafe fn wait_until<T: Awaited>(name: &'static str, ivar: *mut T, cmp: c_int, value: T) {
    let world = world(name);
    let (memory, cmp) = (locate(&world.pes, name, ivar, 1), Cmp::of(name, cmp));
    // SAFETY: an aligned symmetric value (checked).
    reach::until(&world.pes, memory, || cmp.holds(unsafe { T::load(ivar) }, value));
}

/// Waits until a value differs from another one (a deprecated function).
pub unsafe fn wait<T: Awaited>(name: &'static str, ivar: *mut T, value: T) {
    // SAFETY: the program's guarantee.
    unsafe { wait_until(name, ivar, SHMEM_CMP_NE, value) }
}

#[inline(always)]
pub unsafe fn test<T: Awaited>(name: &'static str, ivar: *mut T, cmp: c_int, value: T) -> c_int {
    let world = world(name);
    locate(&world.pes, name, ivar, 1);
    // SAFETY: an aligned symmetric value (checked).
    let holds = Cmp::of(name, cmp).holds(unsafe { T::load(ivar) }, value);
    tested(&world.pes, holds)
}

/// Returns the result of a test. A program may repeat a test that fails.
fn tested(pes: &Pes, holds: bool) -> c_int {
    if !holds {
        reach::has_failed(pes);
    }
    holds.into()
}

/// A wait or test on several values.
struct Several<T> {
    pes: &'static Pes,
    /// The kind of memory in which the values lie.
    memory: Memory,
    values: *const T,
    n: usize,
    /// Elements that are not 0 exclude the value of their index; null excludes none.
    status: *const c_int,
    cmp: Cmp,
    /// The value, or one value for each, to compare with.
    with: Operand<T>,
}

/// The values that others are compared with.
enum Operand<T> {
    One(T),
    Each(*const T),
}

impl<T: Awaited> Several<T> {
    /// Checks the arguments of the function `name`.
    ///
    /// # Safety
    /// As the specification of the C functions says, for as long as the result is used.
    unsafe fn new(
        name: &'static str,
        (values, n): (*const T, usize),
        status: *const c_int,
        cmp: c_int,
        with: Operand<T>,
    ) -> Several<T> {
        let (pes, cmp) = (&world(name).pes, Cmp::of(name, cmp));
        let memory = if n == 0 { Memory::Heap } else { locate(pes, name, values, n) };
        Several { pes, memory, values, n, status, cmp, with }
    }

    /// Returns true if a value counts.
    #[inline(always)]
    fn counts(&self, i: usize) -> bool {
        // SAFETY: null or `n` elements, as the program guarantees.
        self.status.is_null() || unsafe { self.status.add(i).read() } == 0
    }

    /// Returns true if a value fulfils the condition.
    #[inline(always)]
    fn holds(&self, i: usize) -> bool {
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
    fn all(&self) -> bool {
        (0..self.n).all(|i| !self.counts(i) || self.holds(i))
    }

    /// Returns the index of a value that counts and fulfils the condition; the largest number if there is none.
    fn any(&self) -> usize {
        (0..self.n).find(|&i| self.counts(i) && self.holds(i)).unwrap_or(usize::MAX)
    }

    /// Writes the indices of all values that count and fulfil the condition. Returns their number.
    fn some(&self, indices: *mut usize) -> usize {
        let found = (0..self.n).filter(|&i| self.counts(i) && self.holds(i));
        // SAFETY: the program guarantees room for `n` indices.
        found.zip(0..).map(|(i, at)| unsafe { indices.add(at).write(i) }).count()
    }

    /// Repeats `look` until its result is another than `nothing`, which is the result if no value counts.
    fn wait(&self, nothing: usize, look: impl Fn(&Self) -> usize) -> usize {
        let mut found = nothing;
        if (0..self.n).any(|i| self.counts(i)) {
            reach::until(self.pes, self.memory, || {
                found = look(self);
                found != nothing
            });
        }
        found
    }

    /// Returns the result of `look` of a test, which fails if that is `nothing`.
    fn test(&self, nothing: usize, look: impl Fn(&Self) -> usize) -> usize {
        let found = look(self);
        tested(self.pes, found != nothing);
        found
    }
}

/// Defines a function on several values: its name, additional parameters, result, and what it does.
macro_rules! several {
    ($operand:ident($t:ty): $($name:ident($($indices:ident)?) $(-> $result:ty)?, |$several:ident| $body:expr;)*) => {
        $(pub unsafe fn $name<T: Awaited>(
            name: &'static str,
            values: *mut T,
            n: usize,
            $($indices: *mut usize,)?
            status: *const c_int,
            cmp: c_int,
            with: $t,
        ) $(-> $result)? {
            // SAFETY: the program's guarantee.
            let $several = unsafe { Several::new(name, (values, n), status, cmp, Operand::$operand(with)) };
            $body
        })*
    };
}

several! { One(T):
    wait_until_all(), |several| reach::until(several.pes, several.memory, || several.all());
    wait_until_any() -> usize, |several| several.wait(usize::MAX, Several::any);
    wait_until_some(indices) -> usize, |several| several.wait(0, |several| several.some(indices));
    test_all() -> c_int, |several| tested(several.pes, several.all());
    test_any() -> usize, |several| several.test(usize::MAX, Several::any);
    test_some(indices) -> usize, |several| several.test(0, |several| several.some(indices));
}

several! { Each(*const T):
    wait_until_all_vector(), |several| reach::until(several.pes, several.memory, || several.all());
    wait_until_any_vector() -> usize, |several| several.wait(usize::MAX, Several::any);
    wait_until_some_vector(indices) -> usize, |several| several.wait(0, |several| several.some(indices));
    test_all_vector() -> c_int, |several| tested(several.pes, several.all());
    test_any_vector() -> usize, |several| several.test(usize::MAX, Several::any);
    test_some_vector(indices) -> usize, |several| several.test(0, |several| several.some(indices));
}
