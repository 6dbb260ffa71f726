//! Jobs over adapters: the agents of all hosts, and the models of their adapters, are in the test's process; the ranks are
//! processes, as on real hosts.

use crate::common::models::{Model, ModelRing};
use crate::harness::*;
use ntbring_agent::{Policy, Server};
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Size of the windows, bytes.
const WINDOW: u64 = 4 << 20;

/// Hosts in a ring, each with an agent that owns two adapters.
struct Hosts {
    ring: ModelRing,
    directory: TempDir,
}

impl Hosts {
    /// Starts the agents, which run until the test program ends.
    fn new(model: Model, hosts: usize) -> Hosts {
        let hosts = Hosts { ring: ModelRing::new(model, hosts, WINDOW), directory: tempfile::tempdir().unwrap() };
        for host in 0..hosts.ring.cables.len() {
            let server = Server::new(&hosts.socket(host), hosts.ring.adapters(host), &Policy::default()).unwrap();
            std::thread::spawn(move || server.run());
        }
        hosts
    }

    fn socket(&self, host: usize) -> PathBuf {
        self.directory.path().join(format!("agent{host}.sock"))
    }

    /// Creates a job of `per_host` ranks on each of some hosts.
    fn job(&self, hosts: &[usize], per_host: usize, call: &[&str]) -> Job {
        let device = |host: &usize| format!("pci:{}", self.socket(*host).display());
        let devices: Vec<String> = hosts.iter().map(device).collect();
        Job::with_devices(&devices, per_host, call)
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn messages_pass_over_adapters_of_every_chip() {
    for model in Model::ALL {
        eprintln!("{model:?}");
        let hosts = Hosts::new(model, 3);
        hosts.job(&[0, 1, 2], 1, &["any_source"]).run().ok();
        hosts.ring.check();
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn all_kinds_of_communication_pass_over_adapters() {
    let hosts = Hosts::new(Model::Skx, 3);
    for program in [
        "derived_types",
        "flood",
        "large",
        "layout",
        "nonblocking_collectives",
        "one_sided",
        "persistent",
        "probe",
        "random_traffic",
        "ring_collectives",
        "send_modes",
        "sizes",
        "small_collectives",
        "thread_multiple",
        "window_atomics",
        "window_operations",
        "window_passive",
    ] {
        eprintln!("{program}");
        hosts.job(&[0, 1, 2], 2, &[program]).run().ok();
    }
    hosts.ring.check();
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn two_jobs_share_a_ring_and_meet_over_hosts_of_the_other() {
    let hosts = Hosts::new(Model::Skx, 4);
    for (per_host, program) in [(1, "any_source"), (2, "any_source"), (2, "ring_collectives")] {
        let jobs = [[0, 2], [1, 3]].map(|on| hosts.job(&on, per_host, &[program]).start());
        jobs.into_iter().for_each(|job| drop(job.end(Duration::from_secs(90)).ok()));
    }
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn a_killed_rank_is_named_by_those_that_only_adapters_connect_with_it() {
    // The first rank of a host starts its monitor, which has to report it and to go on for the others.
    for (per_host, victim) in [(1, 1), (2, 2), (2, 3)] {
        let hosts = Hosts::new(Model::Skx, 3);
        let job = hosts.job(&[0, 1, 2], per_host, &["random_traffic", "1", "100000000"]);
        a_killed_rank_is_named_by_the_others(job, (3, per_host), victim);
    }
}
