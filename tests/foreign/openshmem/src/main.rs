//! Puts, gets, atomics, signals, barriers and reductions through the bindings of the crate `openshmem-sys`. PE 0 prints
//! `ok` if all results are right.
//!
//! bindgen does not translate constants with casts, such as `SHMEM_TEAM_WORLD`; the program gets that team from a
//! context.

use std::ffi::{c_int, c_long};
use std::ptr;
use std::sync::atomic::{AtomicI64, Ordering};

use openshmem_sys::shmem::*;

const ROUNDS: c_long = 1000;
const BLOCK: usize = 5000;

/// Global objects of the executable, which are symmetric.
static TICKETS: AtomicI64 = AtomicI64::new(7);
static WINNER: AtomicI64 = AtomicI64::new(-1);

/// A symmetric array on the heap.
struct Symmetric<T> {
    data: *mut T,
    count: usize,
}

impl<T: Copy> Symmetric<T> {
    /// Allocates an array of zeros; all PEs call it together.
    fn new(count: usize) -> Self {
        // SAFETY: the library is initialized.
        let data = unsafe { shmem_calloc(count, size_of::<T>()) }.cast::<T>();
        assert!(!data.is_null(), "no symmetric memory");
        Self { data, count }
    }

    /// Returns this PE's elements.
    fn elements(&self) -> &[T] {
        // SAFETY: the library has returned that many initialized elements; no PE writes them now.
        unsafe { std::slice::from_raw_parts(self.data, self.count) }
    }

    /// Frees the array; all PEs call it together.
    fn free(self) {
        // SAFETY: the array comes from shmem_calloc, and nobody uses it any more.
        unsafe { shmem_free(self.data.cast()) }
    }
}

/// A PE of the job.
struct Pe {
    me: c_long,
    count: c_long,
    context: shmem_ctx_t,
    world: shmem_team_t,
}

impl Pe {
    fn init() -> Self {
        let (mut provided, mut context, mut world) = (0, ptr::null_mut(), ptr::null_mut());
        // SAFETY: these are called once, in this order, with places for their results.
        unsafe {
            assert_eq!(shmem_init_thread(SHMEM_THREAD_MULTIPLE as c_int, &mut provided), 0);
            assert_eq!(shmem_ctx_create(0, &mut context), 0);
            assert_eq!(shmem_ctx_get_team(context, &mut world), 0);
            assert_eq!(shmem_team_n_pes(world), shmem_n_pes());
            let (me, count) = (shmem_my_pe().into(), shmem_n_pes().into());
            Self { me, count, context, world }
        }
    }

    fn barrier(&self) {
        // SAFETY: the library is initialized.
        unsafe { shmem_barrier_all() }
    }

    /// Returns the sum of all PEs' values.
    fn sum(&self, value: c_long) -> c_long {
        let (from, to) = (Symmetric::<c_long>::new(1), Symmetric::<c_long>::new(1));
        // SAFETY: both arrays are symmetric, and all PEs take part.
        unsafe {
            from.data.write(value);
            assert_eq!(shmem_long_sum_reduce(self.world, to.data, from.data, 1), 0);
        }
        let sum = to.elements()[0];
        to.free();
        from.free();
        sum
    }

    /// Returns the same by the older function, which has memory of the program to work in.
    fn sum_to_all(&self, value: c_long) -> c_long {
        let (from, to) = (Symmetric::<c_long>::new(1), Symmetric::<c_long>::new(1));
        let work = Symmetric::<c_long>::new(SHMEM_REDUCE_MIN_WRKDATA_SIZE as usize);
        let sync = Symmetric::<c_long>::new(SHMEM_REDUCE_SYNC_SIZE as usize);
        // SAFETY: all arrays are symmetric and as large as the function demands, and all PEs take part.
        unsafe {
            from.data.write(value);
            (0..sync.count).for_each(|i| sync.data.add(i).write(SHMEM_SYNC_VALUE.into()));
            shmem_barrier_all();
            shmem_long_sum_to_all(to.data, from.data, 1, 0, 0, self.count as c_int, work.data, sync.data);
        }
        let sum = to.elements()[0];
        [sync, work, to, from].into_iter().for_each(Symmetric::free);
        sum
    }

    /// Every PE puts its number to all PEs, then gets one element of each.
    fn puts_and_gets(&self) -> bool {
        let (table, got) =
            (Symmetric::<c_long>::new(self.count as usize), Symmetric::<c_long>::new(self.count as usize));
        for pe in 0..self.count as c_int {
            // SAFETY: the element exists on that PE.
            unsafe { shmem_long_put(table.data.add(self.me as usize), &(self.me + 1), 1, pe) };
        }
        self.barrier();
        let mut right = (1..=self.count).eq(table.elements().iter().copied());
        for pe in 0..self.count as c_int {
            // SAFETY: both elements exist, and the results are read only after the call of quiet.
            unsafe {
                shmem_ctx_long_get_nbi(self.context, got.data.add(pe as usize), table.data.add(pe as usize), 1, pe)
            };
        }
        // SAFETY: the context exists.
        unsafe { shmem_ctx_quiet(self.context) };
        right &= got.elements() == table.elements();
        got.free();
        table.free();
        right
    }

    /// All PEs draw tickets from PE 0; together they have drawn each once. One PE wins by compare-and-swap.
    fn atomics(&self) -> bool {
        let first = TICKETS.load(Ordering::Relaxed);
        self.barrier();
        // SAFETY: the static objects belong to the executable, so that they are symmetric.
        let drawn: c_long =
            (0..ROUNDS).map(|_| unsafe { shmem_long_atomic_fetch_inc(TICKETS.as_ptr(), 0) } - first).sum();
        // SAFETY: as above.
        let before = unsafe { shmem_long_atomic_compare_swap(WINNER.as_ptr(), -1, self.me, 0) };
        let total = ROUNDS * self.count;
        let right = self.sum(drawn) == total * (total - 1) / 2 && self.sum((before == -1).into()) == 1;
        // SAFETY: as above.
        let winner = unsafe { shmem_long_g(WINNER.as_ptr(), 0) };
        right && (0..self.count).contains(&winner) && (before == -1) == (winner == self.me)
    }

    /// Blocks go to the next PE, each with a signal.
    fn signals(&self) -> bool {
        let (block, signal) = (Symmetric::<c_long>::new(BLOCK), Symmetric::<u64>::new(1));
        let (next, previous) = ((self.me + 1) % self.count, (self.me + self.count - 1) % self.count);
        let mut right = true;
        for round in 1..=10 {
            let mine: Vec<c_long> = (0..BLOCK as c_long).map(|i| round * self.me + i).collect();
            let add = SHMEM_SIGNAL_ADD as c_int;
            // SAFETY: the block and the signal exist on the next PE, which has read the last block.
            unsafe {
                shmem_long_put_signal(block.data, mine.as_ptr(), BLOCK, signal.data, 1, add, next as c_int);
                shmem_signal_wait_until(signal.data, SHMEM_CMP_EQ as c_int, round as u64);
            }
            right &= (0..BLOCK as c_long).map(|i| round * previous + i).eq(block.elements().iter().copied());
            self.barrier();
        }
        signal.free();
        block.free();
        right
    }
}

fn main() {
    let pe = Pe::init();
    let results = [
        ("puts and gets", pe.puts_and_gets()),
        ("atomics", pe.atomics()),
        ("signals", pe.signals()),
        ("sum_to_all", pe.sum_to_all(pe.me + 1) == pe.count * (pe.count + 1) / 2),
    ];
    for (name, _) in results.iter().filter(|(_, right)| !right) {
        println!("PE {}: {name}: wrong", pe.me);
    }
    let wrong = pe.sum(results.iter().filter(|(_, right)| !right).count() as c_long);
    if pe.me == 0 && wrong == 0 {
        println!("ok");
    }
    // SAFETY: the context exists, and nothing is called later.
    unsafe {
        shmem_ctx_destroy(pe.context);
        shmem_finalize();
    }
}
