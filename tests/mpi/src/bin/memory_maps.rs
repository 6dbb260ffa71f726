//! Checks that no process maps memory of a host that is not its neighbour: `memory_maps [RANKS_PER_HOST]`.
//!
//! Every rank lists the shared memory that it maps (files in /dev/shm and memfds, including deleted ones), and rank 0
//! determines which hosts map each file. On a ring a window belongs to one host, which maps it itself, and only that
//! host's neighbours may map it, too. So the hosts that map a file must be among h-1, h, h+1 for one of these hosts h.
//! The check is meaningful from 4 hosts on: there, hosts 0 and 2 may both map a file of host 1, which host 1 then maps
//! as well; a file that only 0 and 2 map, or that all four map, is a failure. From 5 hosts on, 0, 1 and 3 must not
//! share any file either.
//!
//! Buffers of collectives are the exception: where hosts may map segments of all others, because all are on one machine,
//! all hosts map them. `NTBRING_SHORTCUTS` without `segments` excludes that.
//!
//! Conversely, any two neighbouring hosts must have a file in common; otherwise the program would be looking for the
//! wrong files.

use std::collections::{BTreeMap, BTreeSet};

use mpi::traits::*;
use ntbring_mpi_tests::window::{coherent, Window};
use ntbring_mpi_tests::{arg, exchange, fail, shifts, Hosts, Job};

/// Returns one line for each mapped file: device, inode and name.
fn own_maps() -> BTreeSet<String> {
    let Ok(maps) = std::fs::read_to_string("/proc/self/maps") else { fail("/proc/self/maps cannot be read") };
    let mut files = BTreeSet::new();
    for line in maps.lines() {
        // address permissions offset device inode name
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, permissions, _, device, inode, name, ..] = fields[..] else { continue };
        let memory = ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero"].iter().any(|start| name.starts_with(start));
        // All other shared writable mappings count, too, wherever the file is.
        let shared = permissions.ends_with('s') && (memory || permissions.contains('w'));
        if shared && inode != "0" {
            files.insert(format!("{device} {inode} {name}"));
        }
    }
    files
}

/// Returns true if the hosts in `set` are one of them and its neighbours.
fn around_one(set: &BTreeSet<usize>, hosts: usize) -> bool {
    let distance = |a: usize, b: usize| a.abs_diff(b).min(hosts - a.abs_diff(b));
    set.iter().any(|owner| set.iter().all(|host| distance(*owner, *host) <= 1))
}

fn check(job: &Job, hosts: &Hosts, files: &BTreeMap<String, BTreeSet<usize>>) {
    for (file, set) in files {
        // Then ranks also map lanes of hosts that are not neighbours, and buffers of collectives.
        assert!(
            coherent() || around_one(set, hosts.count),
            "the hosts {set:?} of a ring of {} map the same file '{file}': they are not one host and its neighbours",
            hosts.count
        );
    }
    let ring = (0..hosts.count).map(|host| (host, (host + 1) % hosts.count));
    for (a, b) in ring.filter(|(a, b)| a != b) {
        assert!(
            files.values().any(|set| set.contains(&a) && set.contains(&b)),
            "the neighbouring hosts {a} and {b} have no file in common"
        );
    }
    let shared = files.values().filter(|set| set.len() > 1).count();
    println!("{} ranks on {} hosts map {} files, {shared} of them on more than one host", job.size, hosts.count, files.len());
}

fn main() {
    let job = Job::start("memory_maps");
    let per_host = arg(1, 0_usize);
    let hosts = Hosts::discover(&job.world);
    if per_host > 0 {
        let wrong = (0..hosts.count).find(|host| hosts.ranks_on(*host) != per_host);
        assert_eq!(wrong, None, "a host that does not have {per_host} ranks");
    }
    // This maps all memory that is mapped on first use.
    for shift in shifts(job.size) {
        exchange(&job.world, shift, 1, 100);
        exchange(&job.world, shift, 1, 300_000);
    }
    // Window memory is a file of each rank.
    let window = Window::new(&job, 1000);
    let mine: Vec<String> = own_maps().into_iter().collect();
    if job.rank == 0 {
        let mut files: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
        let mut add = |rank: i32, list: &str| {
            for file in list.lines() {
                // A file is identified by device and inode; its name may have been removed meanwhile.
                files.entry(file.trim_end_matches(" (deleted)").to_owned()).or_default().insert(hosts.of_rank[rank as usize]);
            }
        };
        add(0, &mine.join("\n"));
        for rank in 1..job.size {
            let (list, _) = job.world.process_at_rank(rank).receive_vec::<u8>();
            add(rank, &String::from_utf8_lossy(&list));
        }
        check(&job, &hosts, &files);
    } else {
        job.world.process_at_rank(0).send(mine.join("\n").as_bytes());
    }
    // No rank unmaps anything before all have listed their mappings.
    job.world.barrier();
    drop(window);
    job.finish();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_belongs_to_one_host_and_its_neighbours() {
        let allowed = |hosts: usize, set: &[usize]| around_one(&set.iter().copied().collect(), hosts);
        assert!(allowed(2, &[0, 1]) && allowed(3, &[0, 1, 2]));
        assert!(allowed(4, &[3, 0, 1]) && allowed(4, &[2, 3]) && allowed(4, &[1]));
        assert!(!allowed(4, &[0, 2]) && !allowed(4, &[0, 1, 2, 3]));
        assert!(allowed(8, &[7, 0, 1]) && !allowed(8, &[0, 1, 2, 3]) && !allowed(8, &[7, 1]));
    }
}
