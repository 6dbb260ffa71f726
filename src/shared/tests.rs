//! Collectives of groups whose members are threads.

use crate::layout::Layout;
use crate::{Buffers, Parts, Reduction, SharedError, Waiting};
use ntbring_host::KernelCopy;
use ntbring_memory::{ForeignBytes, ForeignRoom, Region};
use ntbring_rma::operate::{Kind, Op};
use ntbring_zerocopy::SingleCopy;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

mod ways;

/// Yields while it waits; sleeps while a flag says so, as a rank does that has found nothing for a while.
struct Yields<'a> {
    me: usize,
    /// True while a member sleeps.
    sleeping: &'a [AtomicBool],
    passed: u32,
    /// True if it sleeps until it is woken, as soon as it may.
    sleeps: bool,
    gives_up_after: u32,
    since: Instant,
}

/// Longest time of a test; a member that has failed lets the others wait.
const LIMIT: Duration = Duration::from_secs(60);

impl Waiting for Yields<'_> {
    fn pass_time(&mut self, may_sleep: bool) -> bool {
        self.passed += 1;
        if may_sleep && self.sleeps {
            self.sleeping[self.me].store(true, Ordering::SeqCst);
            while self.sleeping[self.me].load(Ordering::SeqCst) {
                assert!(self.since.elapsed() < LIMIT, "member {} was not woken", self.me);
                std::thread::yield_now();
            }
        }
        std::thread::yield_now();
        assert!(self.since.elapsed() < LIMIT, "member {} waits for ever", self.me);
        self.passed < self.gives_up_after
    }

    fn relay(&mut self) -> bool {
        false
    }

    fn found(&mut self) {
        self.passed = 0;
    }

    fn wake(&mut self, member: usize) {
        self.sleeping[member].store(false, Ordering::SeqCst);
    }
}

/// Runs `body` at all members of a group, each a thread, and returns their results.
fn group<T: Send>(members: usize, grain: usize, body: impl Fn(&mut Buffers, &mut Yields) -> T + Sync) -> Vec<T> {
    group_with(SingleCopy::Never, members, grain, body)
}

/// As [`group`]; the kernel copies blocks as the limits say, if it may.
fn group_with<T: Send>(
    kernel_copies: SingleCopy,
    members: usize,
    grain: usize,
    body: impl Fn(&mut Buffers, &mut Yields) -> T + Sync,
) -> Vec<T> {
    let own = KernelCopy::probe(std::process::id(), KernelCopy::probe_address());
    let layout = Layout::new(members);
    let all: Vec<Region> = (0..members).map(|_| Region::anonymous(layout.bytes())).collect();
    let sleeping: Vec<_> = (0..members).map(|_| AtomicBool::new(false)).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..members)
            .map(|me| {
                let (all, sleeping, body, own) = (all.clone(), &sleeping[..], &body, &own);
                scope.spawn(move || {
                    let mut buffers = Buffers::new(me, all, layout, grain, true, false);
                    if let Ok(own) = own {
                        buffers.post_addresses(vec![*own; members], kernel_copies);
                    }
                    let since = Instant::now();
                    let never = u32::MAX;
                    let mut waiting = Yields { me, sleeping, passed: 0, sleeps: false, gives_up_after: never, since };
                    body(&mut buffers, &mut waiting)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[derive(Clone, Copy, Debug)]
enum Kindness {
    Barrier,
    Broadcast { root: usize },
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Reduce { root: Option<usize> },
    ReduceScatter,
    Scan { inclusive: bool },
}

/// A number that member `me` has at a place in a collective.
fn number(turn: usize, me: usize, i: usize) -> i32 {
    (turn * 1_000_003 + me * 7919 + i * 31) as i32
}

fn vector(turn: usize, me: usize, n: usize) -> Vec<i32> {
    (0..n).map(|i| number(turn, me, i)).collect()
}

fn bytes(numbers: &[i32]) -> ForeignBytes<'_> {
    // SAFETY: the bytes of the numbers.
    unsafe { ForeignBytes::new(numbers.as_ptr().cast(), 4 * numbers.len()) }
}

fn room(numbers: &mut [i32]) -> ForeignRoom<'_> {
    // SAFETY: the bytes of the numbers, which are not used meanwhile.
    unsafe { ForeignRoom::new(numbers.as_mut_ptr().cast(), 4 * numbers.len()) }
}

/// Sums two numbers with a remainder, so that not only known operations are tested.
fn add(from: *const u8, to: *mut u8, count: usize) {
    let (from, to) = (from.cast::<i32>(), to.cast::<i32>());
    // SAFETY: the collectives pass vectors of `count` numbers.
    (0..count).for_each(|i| unsafe { *to.add(i) = (*from.add(i)).wrapping_add(*to.add(i)) });
}

/// Executes a collective of `n` numbers, and compares its result.
fn execute(buffers: &mut Buffers, waiting: &mut dyn Waiting, kind: Kindness, n: usize, turn: usize) {
    let (members, me) = (buffers.members(), buffers.me());
    let known = turn.is_multiple_of(2).then_some((Op::Sum, Kind::I32));
    let mut fold = add;
    let mut reduction = Reduction { element: 4, known, fold: &mut fold };
    let sum =
        |of: &mut dyn Iterator<Item = usize>, i: usize| of.fold(0i32, |sum, m| sum.wrapping_add(number(turn, m, i)));
    let input = vector(turn, me, n);
    match kind {
        Kindness::Barrier => buffers.barrier(waiting).unwrap(),
        Kindness::Broadcast { root } => {
            let root = root % members;
            let mut data = if me == root { input } else { vec![-1; n] };
            buffers.broadcast(root, room(&mut data), waiting).unwrap();
            assert_eq!(data, vector(turn, root, n));
        }
        Kindness::Allgather => {
            let mut all = vec![-1; n * members];
            let output = room(&mut all);
            buffers.allgather(bytes(&input), Parts::Equal(4 * n), output, waiting).unwrap();
            assert!((0..members).all(|m| all[m * n..][..n] == vector(turn, m, n)));
        }
        Kindness::Allgatherv => {
            let count = |m: usize| (n * ((m + turn) % 4)) / 2;
            let begin = |m: usize| (0..m).map(|m| count(m) + 1).sum::<usize>();
            let parts: Vec<_> = (0..members).map(|m| (4 * begin(m), 4 * count(m))).collect();
            let mut all = vec![-1; begin(members)];
            let input = vector(turn, me, count(me));
            buffers.allgather(bytes(&input), Parts::Each(&parts), room(&mut all), waiting).unwrap();
            for m in 0..members {
                assert_eq!(all[begin(m)..][..count(m)], vector(turn, m, count(m)));
                assert_eq!(all[begin(m) + count(m)], -1);
            }
        }
        Kindness::Alltoall => {
            let input: Vec<i32> = (0..members).flat_map(|to| vector(turn + to, me, n)).collect();
            let mut all = vec![-1; n * members];
            let sent = (bytes(&input), Parts::Equal(4 * n));
            buffers.alltoall(sent, (room(&mut all), Parts::Equal(4 * n)), waiting).unwrap();
            assert!((0..members).all(|m| all[m * n..][..n] == vector(turn + me, m, n)));
        }
        Kindness::Alltoallv => {
            let count = |from: usize, to: usize| n * ((2 * from + to + turn) % 3) / 2;
            let places = |counts: &mut dyn Iterator<Item = usize>| {
                let mut at = 0;
                let mut parts = Vec::new();
                for n in counts {
                    parts.push((at, 4 * n));
                    at += 4 * n + 4;
                }
                parts
            };
            let sends = places(&mut (0..members).map(|to| count(me, to)));
            let receives = places(&mut (0..members).map(|from| count(from, me)));
            let words = |parts: &[(usize, usize)]| vec![-1; parts.iter().map(|part| part.1 / 4 + 1).sum()];
            let (mut input, mut output) = (words(&sends), words(&receives));
            for (to, &(at, len)) in sends.iter().enumerate() {
                input[at / 4..][..len / 4].copy_from_slice(&vector(turn + to, me, len / 4));
            }
            let (sent, received) = ((bytes(&input), Parts::Each(&sends)), (room(&mut output), Parts::Each(&receives)));
            buffers.alltoall(sent, received, waiting).unwrap();
            for (from, &(at, len)) in receives.iter().enumerate() {
                assert_eq!(output[at / 4..][..len / 4], vector(turn + me, from, len / 4));
                assert_eq!(output[at / 4 + len / 4], -1);
            }
        }
        Kindness::Reduce { root } => {
            let root = root.map(|root| root % members);
            let (in_place, gets) = (turn.is_multiple_of(3), root.is_none_or(|root| root == me));
            let mut output = if in_place { input.clone() } else { vec![-1; n] };
            let to = room(&mut output);
            // SAFETY: the bytes of the output, which are read only by the collective.
            let from = if in_place { unsafe { ForeignBytes::new(to.address(), to.len()) } } else { bytes(&input) };
            buffers.reduce(root, from, gets.then_some(to), &mut reduction, waiting).unwrap();
            if gets {
                (0..n).for_each(|i| assert_eq!(output[i], sum(&mut (0..members), i), "{i}"));
            }
        }
        Kindness::ReduceScatter => {
            let counts: Vec<_> = (0..members).map(|m| n * ((m + turn) % 3) / 2).collect();
            let begin = counts[..me].iter().sum::<usize>();
            let input = vector(turn, me, counts.iter().sum());
            let mut output = vec![-1; counts[me]];
            buffers.reduce_scatter(bytes(&input), &counts, room(&mut output), &mut reduction, waiting).unwrap();
            output.iter().enumerate().for_each(|(i, &o)| assert_eq!(o, sum(&mut (0..members), begin + i)));
        }
        Kindness::Scan { inclusive } => {
            let in_place = turn.is_multiple_of(3);
            let mut output = if in_place { input.clone() } else { vec![-1; n] };
            let to = room(&mut output);
            // SAFETY: the bytes of the output, which are read only by the collective.
            let from = if in_place { unsafe { ForeignBytes::new(to.address(), to.len()) } } else { bytes(&input) };
            buffers.scan(inclusive, from, to, &mut reduction, waiting).unwrap();
            let before = me + usize::from(inclusive);
            let expected = |i: usize| match before {
                0 if in_place => input[i],
                0 => -1,
                _ => sum(&mut (0..before), i),
            };
            (0..n).for_each(|i| assert_eq!(output[i], expected(i), "{i}"));
        }
    }
}

fn kinds() -> impl Strategy<Value = Kindness> {
    prop_oneof![
        Just(Kindness::Barrier),
        (0usize..8).prop_map(|root| Kindness::Broadcast { root }),
        Just(Kindness::Allgather),
        Just(Kindness::Allgatherv),
        Just(Kindness::Alltoall),
        Just(Kindness::Alltoallv),
        (0usize..8).prop_map(|root| Kindness::Reduce { root: Some(root) }),
        Just(Kindness::Reduce { root: None }),
        Just(Kindness::ReduceScatter),
        any::<bool>().prop_map(|inclusive| Kindness::Scan { inclusive }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn any_sequence_of_collectives_gives_every_member_its_result(
        members in 2usize..6,
        grain in prop_oneof![Just(4096usize), Just(1 << 15), Just(1 << 17)],
        calls in prop::collection::vec((kinds(), prop_oneof![0usize..20, 1000usize..1100, 0usize..60_000]), 1..8),
        sleeps in any::<bool>(),
        kernel_copies in prop_oneof![
            Just(SingleCopy::Never),
            Just(SingleCopy::Above(0)),
            Just(SingleCopy::Above(50_000)),
            Just(SingleCopy::Auto(0)),
        ],
    ) {
        group_with(kernel_copies, members, grain, |buffers, waiting| {
            waiting.sleeps = sleeps;
            for (turn, &(kind, n)) in calls.iter().enumerate() {
                execute(buffers, waiting, kind, n, turn);
            }
        });
    }
}

#[test]
fn members_run_ahead_of_each_other() {
    let turns = AtomicU32::new(0);
    group(4, 4096, |buffers, waiting| {
        for turn in 0..2000 {
            let kind = match turn % 4 {
                0 => Kindness::Broadcast { root: turn / 4 },
                1 => Kindness::Reduce { root: None },
                2 => Kindness::Scan { inclusive: true },
                _ => Kindness::Alltoall,
            };
            execute(buffers, waiting, kind, turn % 50, turn);
        }
        turns.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(turns.into_inner(), 4);
}

#[test]
fn members_that_sleep_are_woken_by_posts_and_by_reads() {
    for late in 0..3 {
        group(3, 4096, |buffers, waiting| {
            waiting.sleeps = true;
            if buffers.me() == late {
                std::thread::sleep(Duration::from_millis(30));
            }
            // A root waits for readers, and readers wait for the root.
            execute(buffers, waiting, Kindness::Broadcast { root: 1 }, 50_000, 0);
            execute(buffers, waiting, Kindness::Barrier, 0, 1);
        });
    }
}

#[test]
fn other_sizes_are_errors_and_the_next_collective_works() {
    let results = group(3, 4096, |buffers, waiting| {
        let n = if buffers.me() == 1 { 9000 } else { 6000 };
        let mut sums = vec![0; n];
        let mut fold = add;
        let mut reduction = Reduction { element: 4, known: None, fold: &mut fold };
        let input = vector(0, 0, n);
        let result = buffers.reduce(None, bytes(&input), Some(room(&mut sums)), &mut reduction, waiting);
        for (turn, kind) in
            [Kindness::Barrier, Kindness::Allgather, Kindness::Scan { inclusive: false }].into_iter().enumerate()
        {
            execute(buffers, waiting, kind, 5000, turn);
        }
        result
    });
    assert!(
        results.iter().all(|result| matches!(result, Err(SharedError::OtherSize { .. } | SharedError::Left { .. }))),
        "{results:?}"
    );
}

#[test]
fn a_member_that_fails_is_noticed_by_those_that_need_it() {
    let results = group(4, 4096, |buffers, waiting| {
        let me = buffers.me();
        let result = match me {
            2 => {
                buffers.fail(false, waiting);
                Ok(())
            }
            _ => buffers.barrier(waiting),
        };
        execute(buffers, waiting, Kindness::Alltoallv, 3000, 1);
        result
    });
    assert_eq!(results[2], Ok(()));
    assert!([0, 1, 3].iter().all(|&m| results[m] == Err(SharedError::Left { member: 2 })), "{results:?}");
}

#[test]
fn the_reason_of_a_member_that_gives_up_reaches_the_others() {
    let results = group(3, 4096, |buffers, waiting| match buffers.me() {
        0 => {
            buffers.fail(true, waiting);
            Ok(())
        }
        _ => buffers.barrier(waiting),
    });
    assert_eq!(results[1..], [Err(SharedError::Failed { member: 0 }); 2]);
}

#[test]
fn sizes_on_both_sides_of_a_small_cell_are_noticed() {
    let results = group(2, 4096, |buffers, waiting| {
        let n = [4, 100][buffers.me()];
        let mut sums = vec![0; n];
        let mut fold = add;
        let mut reduction = Reduction { element: 4, known: None, fold: &mut fold };
        let input = vector(0, 0, n);
        let result = buffers.reduce(None, bytes(&input), Some(room(&mut sums)), &mut reduction, waiting);
        execute(buffers, waiting, Kindness::Allgather, 7, 1);
        result
    });
    let noticed = |member| matches!(results[member], Err(SharedError::OtherSize { .. } | SharedError::Left { .. }));
    assert!(noticed(0) && noticed(1), "{results:?}");
}

#[test]
fn a_wait_can_be_given_up() {
    let results = group(2, 4096, |buffers, waiting| {
        waiting.gives_up_after = 100;
        match buffers.me() {
            0 => buffers.barrier(waiting),
            _ => Ok(()),
        }
    });
    assert_eq!(results, [Err(SharedError::GivenUp), Ok(())]);
}
