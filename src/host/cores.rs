//! The processor cores of the job. Their number decides if the host is oversubscribed, so that a waiting rank should
//! yield; their numbers in the kernel decide where a forwarder thread runs without taking time from ranks.

use nix::sched::{sched_getaffinity, sched_setaffinity, CpuSet};
use nix::unistd::{getppid, Pid};
use std::collections::BTreeSet;

/// Name of the launcher process, which starts ranks and may bind them to cores.
const LAUNCHER: &str = "hydra_pmi_proxy";

/// A set of processor cores, by the kernel's numbers.
pub type Cores = BTreeSet<usize>;

/// Returns the cores that this process may run on, as the bit mask (core number modulo 128) that cards carry.
pub fn mine() -> u128 {
    of(Pid::from_raw(0)).into_iter().fold(0, |all, n| all | 1 << (n % 128))
}

/// Returns the number of cores that this process may use, with the control group's quota.
pub fn own() -> usize {
    std::thread::available_parallelism().map_or(1, |n| n.get())
}

/// Returns the number of cores of the ranks with these core masks. All emulated hosts share one machine, so the result
/// is the size of the union of the masks: ranks that are bound to one core each have several cores together.
pub fn count(cards: impl Iterator<Item = u128>) -> usize {
    let all = cards.fold(0, |all, cores| all | cores).count_ones() as usize;
    let (own, allowed) = (mine().count_ones() as usize, own());
    // A quota of the control group allows fewer cores than the affinity mask.
    if allowed < own {
        allowed
    } else {
        all.max(1)
    }
}

/// Returns the cores for a thread of this process that should not take time from ranks: the launcher's cores without
/// the cores to which it has bound ranks, or all of the launcher's cores if none is left. None if the thread should
/// stay on the cores of this process. `ranks` are the process ids of the job's ranks on this machine.
pub fn beside(ranks: &[u32]) -> Option<Cores> {
    let launcher = getppid();
    let started_by = std::fs::read_to_string(format!("/proc/{launcher}/comm")).unwrap_or_default();
    // For any other parent process it is unknown which of its cores belong to the job.
    let given = if started_by.trim_end() == LAUNCHER { of(launcher) } else { Cores::new() };
    let bound = ranks.iter().map(|&pid| of(Pid::from_raw(pid as i32)));
    choose(of(Pid::from_raw(0)), given, bound)
}

/// Returns true if this process may use one of these cores.
pub fn are_usable(cores: &Cores) -> bool {
    let mut set = CpuSet::new();
    if !cores.iter().all(|&core| set.set(core).is_ok()) {
        return false;
    }
    // Only an attempt shows this; the thread's own cores are restored afterwards.
    let before = sched_getaffinity(Pid::from_raw(0));
    let usable = sched_setaffinity(Pid::from_raw(0), &set).is_ok();
    if let Ok(before) = before {
        let _ = sched_setaffinity(Pid::from_raw(0), &before);
    }
    usable
}

/// Binds the calling thread to these cores. On failure its affinity stays as it is.
pub fn bind(cores: &Cores) {
    let mut set = CpuSet::new();
    let known = cores.iter().all(|&core| set.set(core).is_ok());
    match known.then(|| sched_setaffinity(Pid::from_raw(0), &set)) {
        Some(Ok(())) => log::debug!("{} runs on cores {cores:?}", name()),
        _ => log::debug!("{} cannot run on cores {cores:?}", name()),
    }
}

/// Returns the name of the calling thread.
fn name() -> String {
    std::thread::current().name().unwrap_or("a thread").to_string()
}

fn choose(own: Cores, given: Cores, ranks: impl Iterator<Item = Cores>) -> Option<Cores> {
    let all: Cores = &given | &own;
    if own == all {
        return None;
    }
    let bound = ranks.filter(|cores| *cores != all).fold(Cores::new(), |taken, cores| &taken | &cores);
    let spare = &all - &bound;
    Some(if spare.is_empty() { all } else { spare })
}

fn of(process: Pid) -> Cores {
    let set = sched_getaffinity(process).unwrap_or_default();
    (0..CpuSet::count()).filter(|&core| set.is_set(core).unwrap_or(false)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cores<const N: usize>(list: [usize; N]) -> Cores {
        list.into()
    }

    #[test]
    fn a_transfer_thread_stays_off_the_cores_that_ranks_are_bound_to() {
        let given = || cores([0, 1, 2, 3]);
        // No rank is bound; then only other ranks are.
        assert_eq!(choose(given(), given(), [given(), given()].into_iter()), None);
        assert_eq!(choose(given(), given(), [given(), cores([1])].into_iter()), None);
        // Two of four cores are taken, and then all.
        assert_eq!(choose(cores([0]), given(), [cores([0]), cores([2])].into_iter()), Some(cores([1, 3])));
        assert_eq!(choose(cores([0]), given(), [cores([0, 1]), cores([2, 3])].into_iter()), Some(given()));
        // A rank that is not bound occupies no core in particular.
        assert_eq!(choose(cores([0]), given(), [cores([0]), given()].into_iter()), Some(cores([1, 2, 3])));
        // The launcher's cores are unknown.
        assert_eq!(choose(cores([0]), cores([]), [cores([0]), cores([1])].into_iter()), None);
    }

    #[test]
    fn bound_ranks_have_their_cores_together() {
        assert!(mine() != 0);
        assert_eq!(count([1, 2, 4, 4].into_iter()).min(3), count([7].into_iter()).min(3));
        assert!(count([mine()].into_iter()) >= 1);
        let own = of(Pid::from_raw(0));
        assert!(are_usable(&own) && !are_usable(&cores([1023])) && of(Pid::from_raw(0)) == own);
    }
}
