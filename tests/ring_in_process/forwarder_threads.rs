//! One, two and more forwarder threads on each host, also with different numbers on neighbouring hosts.

use super::*;
use ntbring_queue::Reliability;

/// Sends messages of all kinds between all pairs, on hosts whose ranks sleep at once or spin.
fn traffic(layout: &Layout, threads: impl Fn(usize) -> usize + Sync, reliability: Reliability, messages: usize) {
    for spin in [None, Some(0)] {
        let seed = layout.size() as u64 * 31 + spin.map_or(0, u64::from);
        let plan = all_kinds(seed, messages, 60 << 10);
        let of = |rank: u32| {
            tiny(layout).with(|s| {
                s.ring.forwarder_threads = Some(threads(layout.topology().host_of(rank)));
                s.ring.reliability = reliability;
                s.endpoint.spin = spin;
                s.endpoint.yields = if spin.is_some() { 0 } else { settings().endpoint.yields };
                s.limits.eager_max = 4 << 10;
            })
        };
        run_each(layout, of, |rank| exchange(rank, seed, &plan).map(drop));
    }
}

#[test]
fn any_number_of_threads_forwards_everything() {
    for layout in [Layout::blocks(&[1; 4]), Layout::blocks(&[2, 1, 1, 1, 1]), Layout::blocks(&[1; 8])] {
        for threads in 1..=4 {
            traffic(&layout, |_| threads, Reliability::Off, 12);
        }
    }
}

#[test]
fn any_number_of_threads_forwards_what_is_repeated() {
    for layout in [Layout::blocks(&[1; 4]), Layout::blocks(&[1; 5]), Layout::blocks(&[1; 8])] {
        for threads in [1, 2, 4] {
            traffic(&layout, |_| threads, Reliability::Retry, 5);
        }
    }
}

#[test]
fn hosts_need_not_have_the_same_number() {
    traffic(&Layout::blocks(&[1, 2, 1, 1, 1]), |host| 1 + host % 4, Reliability::Off, 15);
    traffic(&Layout::blocks(&[1; 4]), |host| 4 - host % 4, Reliability::Retry, 5);
}

/// Ranks that do not poll, so that only threads forward: every doorbell has to wake the right thread.
#[test]
fn threads_forward_while_ranks_do_not_poll() {
    for threads in 1..=4 {
        let layout = Layout::blocks(&[1; 4]);
        let plan = |src: u32, dst: u32| match (src, dst) {
            (0, 2) | (2, 0) => vec![Shape::contiguous(HEADER, 300_000), Shape::contiguous(HEADER, 8)],
            _ => vec![],
        };
        let settings = settings().with(|s| s.ring.forwarder_threads = Some(threads));
        run(&layout, &settings, |rank| {
            if rank.rank % 2 == 0 {
                exchange(rank, 0, &plan)?;
            }
            rank.barrier()
        });
    }
}
