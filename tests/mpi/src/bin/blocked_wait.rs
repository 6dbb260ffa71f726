//! All ranks but one wait: `blocked_wait [SECONDS [recv|wait|probe|mprobe|barrier|fence|expose|lock]]`, by default 1
//! second in MPI_Recv.
//!
//! Rank 0 sleeps, then does what they wait for: it sends to every rank, enters the barrier or fence, accesses their
//! windows, or releases its own lock. It prints the CPU time that all ranks used meanwhile, including forwarder
//! threads, as {"mode":"recv","seconds":1.0,"cpu_s":[..one per rank..],"total_cpu_s":..}. It only checks that the
//! messages arrive; the caller judges the times.

use std::time::{Duration, Instant};

use mpi::traits::*;
use ntbring_mpi_tests::window::{row, Window};
use ntbring_mpi_tests::{arg, fail, filled, verify, Job};

const MODES: [&str; 8] = ["recv", "wait", "probe", "mprobe", "barrier", "fence", "expose", "lock"];

/// Returns the CPU time in seconds that this process has used, in all its threads.
fn cpu_seconds() -> f64 {
    // SAFETY: the type is a plain C struct of integers, for which all zeros is a valid value.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writes.
    if unsafe { libc::getrusage(libc::RUSAGE_SELF, &mut usage) } != 0 {
        fail("getrusage failed");
    }
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 * 1e-6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn wait(job: &Job, window: &Window, mode: &str) {
    let (zero, mut buf) = (job.world.process_at_rank(0), vec![0; 1000]);
    match mode {
        "recv" => {
            zero.receive_into_with_tag(&mut buf[..], 1);
        }
        "wait" => {
            mpi::request::scope(|scope| job.world.any_process().immediate_receive_into_with_tag(scope, &mut buf[..], 1).wait());
        }
        "probe" => {
            job.world.any_process().probe();
            zero.receive_into_with_tag(&mut buf[..], 1);
        }
        "mprobe" => {
            let (message, _) = zero.matched_probe_with_tag(1);
            message.matched_receive_into(&mut buf[..]);
        }
        "fence" => return window.fence(),
        "expose" => {
            window.expose(&job.world, &[0]);
            return assert_eq!(window.own(0), 1, "what rank 0 has put");
        }
        "lock" => {
            window.lock(0, true);
            window.put(&[1], row(1), 0, 0, row(1));
            return window.unlock(0);
        }
        _ => return job.world.barrier(),
    }
    verify(&buf, 0, job.rank, 1);
}

fn main() {
    let job = Job::start("blocked_wait");
    let (seconds, mode) = (arg(1, 1.0_f64), arg(2, String::from("recv")));
    if !MODES.contains(&mode.as_str()) {
        fail(format!("mode '{mode}' is none of {}", MODES.join(", ")));
    }
    let window = Window::unlocked(&job, 1);
    if mode == "lock" && job.rank == 0 {
        window.lock(0, true);
    }
    job.world.barrier();
    let (before, start) = (cpu_seconds(), Instant::now());
    if job.rank == 0 {
        std::thread::sleep(Duration::from_secs_f64(seconds));
        match mode.as_str() {
            "barrier" => job.world.barrier(),
            "fence" => window.fence(),
            "lock" => window.unlock(0),
            "expose" => {
                let others: Vec<i32> = (1..job.size).collect();
                let put = |window: &Window| others.iter().for_each(|&rank| window.put(&[1], row(1), rank, 0, row(1)));
                window.access(&job.world, &others, put);
            }
            _ => {
                for rank in 1..job.size {
                    job.world.process_at_rank(rank).send_with_tag(&filled(0, rank, 1, 1000)[..], 1);
                }
            }
        }
    } else {
        wait(&job, &window, &mode);
    }
    let used = cpu_seconds() - before;
    let elapsed = start.elapsed().as_secs_f64();
    let mut all = vec![0.0; job.size as usize];
    job.world.all_gather_into(&used, &mut all[..]);
    assert!(elapsed > seconds * 0.5, "rank {} waited {elapsed} s for a message sent after {seconds} s", job.rank);
    if job.rank == 0 {
        let total: f64 = all.iter().sum();
        println!("{}", serde_json::json!({"mode": mode, "seconds": elapsed, "cpu_s": all, "total_cpu_s": total}));
    }
    drop(window);
    job.finish();
}
