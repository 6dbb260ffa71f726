//! Alltoalls among neighbours that access each other's memory (kernel copies).

use super::*;
use ntbring_endpoint::{AlltoallProgress, Blocks};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use std::time::Instant;

const GROUP: u32 = 3;
const ROUND: usize = 64 << 10;
/// Fill byte of a receive buffer before any data has arrived.
const NOTHING: u8 = 0xee;

/// Block sizes in bytes: the same for all members, different in each turn. Some are parts of a round, some are whole
/// rounds, and some take so many rounds that places are reused.
const SIZES: [usize; 12] =
    [1, 0, 4097, 6144, 6145, ROUND - 1, ROUND, 2 * ROUND + 8, 33_000, 200_001, 3 * ROUND, 600_000];

struct Member {
    rank: u32,
    size: usize,
    from: Vec<u8>,
    to: Vec<u8>,
}

/// Returns the block from one member to another.
fn block(turn: usize, from: u32, to: u32, size: usize) -> impl Iterator<Item = u8> {
    let mut rng = fastrand::Rng::with_seed(u64::from(from) << 40 | u64::from(to) << 20 | turn as u64);
    std::iter::repeat_with(move || rng.u8(..)).take(size)
}

impl Member {
    fn new(turn: usize, rank: u32, hosts: u32, size: usize) -> Member {
        let from = (0..hosts).flat_map(|to| block(turn, rank, to, size)).collect();
        Member { rank, size, from, to: vec![NOTHING; hosts as usize * size] }
    }

    /// Returns the member's buffers as blocks. They are valid until the member is moved or dropped.
    fn blocks(&mut self) -> Blocks {
        // SAFETY: both buffers are valid and do not move, and the caller waits for the end of the alltoall before it
        // drops them.
        unsafe {
            Blocks {
                from: ForeignBytes::new(self.from.as_ptr(), self.from.len()),
                to: ForeignRoom::new(self.to.as_mut_ptr(), self.to.len()),
            }
        }
    }

    fn verify(&self, turn: usize) -> Result<(), String> {
        for (from, found) in self.to.chunks(self.size.max(1)).enumerate() {
            let own = from == self.rank as usize;
            let expected = block(turn, from as u32, self.rank, self.size).map(|byte| if own { NOTHING } else { byte });
            if !found.iter().copied().eq(expected) {
                return Err(format!("turn {turn}: wrong bytes from rank {from}, of {}", self.size));
            }
        }
        Ok(())
    }
}

fn open(rank: &mut Rank) -> Result<(), String> {
    let members: Vec<u32> = (0..rank.endpoint.hosts() as u32).collect();
    let mine = rank.endpoint.offer_boards();
    match rank.endpoint.open_group(GROUP, &members, mine, mine & mine.wrapping_neg()).map_err(|e| e.to_string())? {
        true => Ok(()),
        false => Err("no board is left".into()),
    }
}

/// Waits for the end of an alltoall as a blocked MPI call does. Returns its outcome.
fn finish(rank: &mut Rank, looks: u32) -> Result<AlltoallProgress, String> {
    loop {
        match rank.endpoint.await_alltoall(GROUP, looks).map_err(|e| e.to_string())? {
            AlltoallProgress::Pending => {}
            end => return Ok(end),
        }
        if rank.step(Duration::from_secs(10))?.is_some() {
            return Err("an unexpected event".into());
        }
    }
}

/// Runs one alltoall among all members. Returns its outcome.
fn once(rank: &mut Rank, turn: usize, member: &mut Member) -> Result<AlltoallProgress, String> {
    let blocks = Some(member.blocks());
    all_of(rank, turn, blocks, member.size)
}

/// As [`once`], but `blocks` is None if the rank has failed.
fn all_of(rank: &mut Rank, turn: usize, blocks: Option<Blocks>, size: usize) -> Result<AlltoallProgress, String> {
    match rank.endpoint.begin_alltoall(GROUP, blocks, size).map_err(|e| e.to_string())? {
        true => finish(rank, 3 * (turn as u32 % 2)),
        false => Ok(AlltoallProgress::ByMessages),
    }
}

fn must(end: AlltoallProgress, expected: AlltoallProgress, what: &str) -> Result<(), String> {
    if end == expected {
        Ok(())
    } else {
        Err(format!("{what}: {end:?}"))
    }
}

fn of(single_copy: SingleCopy) -> Settings {
    settings().with(|s| s.limits.single_copy = single_copy)
}

#[test]
fn everybody_gets_what_is_for_it() {
    let routes = [SingleCopy::Never, SingleCopy::Above(0), SingleCopy::Above(6144), SingleCopy::Auto(6144)];
    for (hosts, way) in [2, 3, 4, 5].into_iter().flat_map(|hosts| routes.map(|way| (hosts, way))) {
        run(&Layout::blocks(&vec![1; hosts]), &of(way), |rank| {
            let mut rng = fastrand::Rng::with_seed(rank.rank.into());
            open(rank)?;
            // Enough turns for trials to end, and for their winners to be used.
            for turn in 0..90 {
                if rng.u8(..20) == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let size = SIZES[if turn < 40 { turn % SIZES.len() } else { SIZES.len() - 1 }];
                let mut member = Member::new(turn, rank.rank, hosts as u32, size);
                must(once(rank, turn, &mut member)?, AlltoallProgress::Done, "an alltoall")?;
                member.verify(turn)?;
            }
            // No member accesses the memory of others any more.
            rank.endpoint.close_group(GROUP);
            rank.barrier()
        });
    }
}

#[test]
fn everybody_goes_by_what_all_want() {
    let routes = [
        SingleCopy::Above(0),
        SingleCopy::Auto(0),
        SingleCopy::Auto(6144),
        SingleCopy::Above(70_000),
        SingleCopy::Never,
    ];
    for (hosts, others) in [(4, 0), (5, 0), (4, 1)] {
        let each = |rank: u32| of(routes[rank as usize + others]);
        run_each(&Layout::blocks(&vec![1; hosts]), each, |rank| {
            open(rank)?;
            for turn in 0..80 {
                let mut member = Member::new(turn, rank.rank, hosts as u32, SIZES[turn % SIZES.len()]);
                must(once(rank, turn, &mut member)?, AlltoallProgress::Done, "an alltoall")?;
                member.verify(turn)?;
            }
            rank.barrier()
        });
    }
}

#[test]
fn what_one_of_them_cannot_is_an_error_for_all() {
    run(&Layout::blocks(&[1; 4]), &of(SingleCopy::Auto(0)), |rank| {
        open(rank)?;
        for turn in 0..20 {
            // Also in the first turn.
            let size = 50_000 - usize::from(turn % 5 == 2 && rank.rank == 1);
            let able = turn % 5 != 0 || rank.rank != turn as u32 / 5;
            let mut member = Member::new(turn, rank.rank, 4, size);
            let blocks = Some(member.blocks()).filter(|_| able);
            let end = all_of(rank, turn, blocks, size);
            let expected = match turn % 5 {
                0 => "has failed",
                2 => "another size",
                _ => {
                    must(end?, AlltoallProgress::Done, "an alltoall")?;
                    member.verify(turn)?;
                    continue;
                }
            };
            match end {
                Err(text) if text.contains(expected) => {}
                other => return Err(format!("turn {turn}: {other:?}")),
            }
        }
        rank.barrier()
    });
}

#[test]
fn where_memory_is_not_reached_there_are_messages() {
    let links = settings().with(|s| s.links.model = Model::parse("gen3x8").unwrap());
    for (hosts, modelled) in [(6, false), (4, true), (5, true)] {
        let each = |_| if modelled { links.clone() } else { settings() };
        run_each(&Layout::blocks(&vec![1; hosts]), each, |rank| {
            open(rank)?;
            for turn in 0..3 {
                let mut member = Member::new(turn, rank.rank, hosts as u32, 50_000);
                must(once(rank, turn, &mut member)?, AlltoallProgress::ByMessages, "an alltoall")?;
            }
            let blocks = Member::new(0, rank.rank, hosts as u32, 8).blocks();
            match rank.endpoint.begin_alltoall(GROUP, Some(blocks), 8).map_err(|e| e.to_string())? {
                true => Err("it is tried again".into()),
                false => rank.barrier(),
            }
        });
    }
}

/// Forbids kernel copies for this thread from now on.
fn forbid_copies() {
    let jump = |number: libc::c_long, to| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: to,
        jf: 0,
        k: number as u32,
    };
    let end = |k| libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k };
    let mut filter = [
        libc::sock_filter { code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16, jt: 0, jf: 0, k: 0 },
        jump(libc::SYS_process_vm_readv, 2),
        jump(libc::SYS_process_vm_writev, 1),
        end(libc::SECCOMP_RET_ALLOW),
        end(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the pointer refers to a valid filter, which the kernel copies.
    let code = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program)
    };
    assert_eq!(code, 0, "{}", std::io::Error::last_os_error());
}

#[test]
fn what_the_kernel_refuses_ranks_copy() {
    let routes = [SingleCopy::Above(0), SingleCopy::Auto(0)];
    for (hosts, way) in [2, 4, 5].into_iter().flat_map(|hosts| routes.map(|way| (hosts, way))) {
        run(&Layout::blocks(&vec![1; hosts]), &of(way), |rank| {
            open(rank)?;
            for turn in 0..60 {
                if turn == 3 && rank.rank == 1 {
                    forbid_copies();
                }
                let mut member = Member::new(turn, rank.rank, hosts as u32, 2 * ROUND + 1);
                must(once(rank, turn, &mut member)?, AlltoallProgress::Done, "an alltoall")?;
                member.verify(turn)?;
            }
            rank.barrier()
        });
    }
}

#[test]
fn who_has_left_is_written_to_no_more() {
    for hosts in [4, 5] {
        run(&Layout::blocks(&vec![1; hosts]), &of(SingleCopy::Above(0)), |rank| {
            open(rank)?;
            let text = |e: EndpointError| e.to_string();
            let mut first = Member::new(0, rank.rank, hosts as u32, 1000);
            must(once(rank, 0, &mut first)?, AlltoallProgress::Done, "an alltoall")?;
            let mut member = Member::new(1, rank.rank, hosts as u32, 100_000);
            rank.endpoint.begin_alltoall(GROUP, Some(member.blocks()), member.size).map_err(text)?;
            // All members but one have the addresses of all and continue.
            while !rank.endpoint.is_allgathered(GROUP).map_err(text)? {
                std::thread::yield_now();
            }
            if rank.rank == 1 {
                rank.endpoint.leave_alltoall(GROUP);
            }
            rank.barrier()?;
            if rank.rank != 1 {
                // The alltoall cannot end, since one member is missing.
                let start = Instant::now();
                while start.elapsed() < Duration::from_millis(100) {
                    must(
                        rank.endpoint.await_alltoall(GROUP, 3).map_err(text)?,
                        AlltoallProgress::Pending,
                        "an alltoall that one member has left",
                    )?;
                    rank.poll()?;
                    std::thread::yield_now();
                }
                rank.endpoint.leave_alltoall(GROUP);
                rank.endpoint.leave_alltoall(GROUP);
            }
            rank.barrier()?;
            match rank.rank == 1 && member.to.iter().any(|&byte| byte != NOTHING) {
                true => Err("another rank has written here".into()),
                false => Ok(()),
            }
        });
    }
}

#[test]
fn what_makes_no_sense_is_an_error() {
    run(&Layout::blocks(&[1; 2]), &settings(), |rank| {
        let mut member = Member::new(0, rank.rank, 2, 100);
        let blocks = member.blocks();
        let endpoint = &mut rank.endpoint;
        let not_open =
            endpoint.begin_alltoall(GROUP, Some(blocks), 100).is_err() && endpoint.await_alltoall(GROUP, 0).is_err();
        open(rank)?;
        let endpoint = &mut rank.endpoint;
        let sizes = [99, 101, usize::MAX].map(|size| endpoint.begin_alltoall(GROUP, Some(blocks), size).is_err());
        let not_begun = endpoint.await_alltoall(GROUP, 0).is_err();
        let begun = endpoint.begin_alltoall(GROUP, Some(blocks), 100).map_err(|e| e.to_string())?;
        let twice = endpoint.begin_alltoall(GROUP, Some(blocks), 100).is_err();
        must(finish(rank, 0)?, AlltoallProgress::Done, "an alltoall")?;
        rank.barrier()?;
        match [not_open, sizes[0], sizes[1], sizes[2], not_begun, begun, twice] {
            [true, true, true, true, true, true, true] => member.verify(0),
            found => Err(format!("{found:?}")),
        }
    });
}
