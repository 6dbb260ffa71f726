//! Conformance tests of the [`Port`] trait, written once and run on the emulated port, bare and in each decorator. A
//! new backend or decorator becomes a variant of `Dress` in `common::ports`.

#[path = "../common/mod.rs"]
mod common;
mod decorators;
mod registers;
mod vectors;
mod windows;

use common::models::Model;
use common::ports::{aim, Bench, Dress, WINDOW};
use ntbring_memory::ForeignBytes;
use ntbring_ntb::{LinkState, NtbError, Port, Side, DOORBELLS, SCRATCHPADS};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

/// Timeout that is longer than any wait that a ring is meant to end.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

/// All checks, which run on every port.
mod checks {
    pub use super::registers::*;
    pub use super::vectors::*;
    pub use super::windows::*;
}

macro_rules! run_on_every_port {
    ($($test:ident)*) => {
        run_on_every_port!(emu Dress::Emu, $($test)*);
        run_on_every_port!(loopback Dress::Loopback, $($test)*);
        run_on_every_port!(emu_ports_2_and_3 Dress::EmuPorts2And3, $($test)*);
        run_on_every_port!(loopback_ports_2_and_3 Dress::LoopbackPorts2And3, $($test)*);
        run_on_every_port!(weak Dress::Weak, $($test)*);
        run_on_every_port!(trace Dress::Trace, $($test)*);
        run_on_every_port!(trace_of_weak Dress::TraceWeak, $($test)*);
        run_on_every_port!(timing Dress::Timing, $($test)*);
        run_on_every_port!(trace_of_weak_of_timing Dress::TraceWeakTiming, $($test)*);
        run_on_every_port!(doubled Dress::Doubled, $($test)*);
        run_on_every_port!(trace_of_weak_of_doubled Dress::TraceWeakDoubled, $($test)*);
        run_on_every_port!(skx Dress::Modelled(Model::Skx), $($test)*);
        run_on_every_port!(weak_of_skx Dress::WeakModelled(Model::Skx), $($test)*);
        run_on_every_port!(icx Dress::Modelled(Model::Icx), $($test)*);
        run_on_every_port!(weak_of_icx Dress::WeakModelled(Model::Icx), $($test)*);
        run_on_every_port!(spr Dress::Modelled(Model::Spr), $($test)*);
        run_on_every_port!(weak_of_spr Dress::WeakModelled(Model::Spr), $($test)*);
        run_on_every_port!(amd Dress::Modelled(Model::Amd), $($test)*);
        run_on_every_port!(weak_of_amd Dress::WeakModelled(Model::Amd), $($test)*);
        run_on_every_port!(plx Dress::Modelled(Model::Plx87), $($test)*);
        run_on_every_port!(weak_of_plx Dress::WeakModelled(Model::Plx87), $($test)*);
        run_on_every_port!(plx_root_port Dress::Modelled(Model::Plx87RootPort), $($test)*);
        run_on_every_port!(weak_of_plx_root_port Dress::WeakModelled(Model::Plx87RootPort), $($test)*);
        run_on_every_port!(ivshmem Dress::Modelled(Model::Ivshmem), $($test)*);
        run_on_every_port!(weak_of_ivshmem Dress::WeakModelled(Model::Ivshmem), $($test)*);
    };
    ($name:ident $dress:expr, $($test:ident)*) => {
        mod $name {
            use super::{Bench, Dress};
            #[allow(unused_imports)]
            use super::Model;
            $(#[test] fn $test() { super::checks::$test(&Bench::new($dress)); })*
        }
    };
}

run_on_every_port! {
    sides_and_links
    outages_are_counted_whoever_looks
    only_memory_is_coherent_and_has_shortcuts
    what_is_written_before_a_fence_is_there_after_it
    writing_reaches_all_kinds_of_places
    windows_do_not_mix
    an_outgoing_window_shows_what_was_asked_for
    a_window_beyond_the_neighbours_memory_is_refused
    nothing_reaches_beyond_a_window
    words_are_never_torn
    bytes_are_there_when_the_word_after_the_fence_is
    scratchpads_hold_a_value_each_in_each_direction
    registers_that_do_not_exist_are_refused
    a_doorbell_is_pending_until_it_is_cleared
    doorbells_of_different_links_do_not_mix
    getting_ready_to_sleep_clears_no_doorbell
    waiting_ends_with_the_time
    a_ring_before_the_wait_is_not_lost
    a_ring_wakes_a_sleeper
    a_signal_loses_no_ring
    a_ring_between_arming_and_sleeping_ends_the_sleep
    sleepers_of_one_vector_all_wake
    a_vector_hears_both_links_and_its_own_host
    no_deposit_is_slept_over
}

fn panics<T>(what: &str, action: impl FnOnce() -> T) {
    assert!(catch_unwind(AssertUnwindSafe(action)).is_err(), "{what} is accepted");
}

#[test]
fn every_error_names_its_cause() {
    let window = NtbError::Aperture { offset: 1, len: 2, size: 3 };
    assert_eq!(window.to_string(), "a window of 2 bytes at 1 does not fit into the neighbour's 3 bytes");
}

/// Compile-time check: a port can be shared between the threads of a process.
#[test]
fn ports_are_shared_between_threads() {
    fn shared<T: Send + Sync + ?Sized>() {}
    shared::<dyn Port>();
    shared::<ntbring_memory::InWindow>();
    shared::<ntbring_memory::OutWindow>();
}
