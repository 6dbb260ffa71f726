//! Running jobs of this user on this machine, found from outside.

use ntbring_emu::RunningHost;
use ntbring_ntb::{LinkState, PortIndex, Side};
use std::collections::BTreeMap;
use std::error::Error;

/// Returns the hosts of each job.
pub fn running() -> std::io::Result<BTreeMap<u32, Vec<RunningHost>>> {
    let mut jobs = BTreeMap::<u32, Vec<RunningHost>>::new();
    for host in RunningHost::all()? {
        jobs.entry(host.is.job).or_default().push(host);
    }
    Ok(jobs)
}

/// Returns the port of a host that leads to its neighbour on `side`: hosts of a ring list their left port first.
pub fn port(host: &RunningHost, side: Side) -> Option<PortIndex> {
    host.ports().ports().get(side as usize).copied()
}

/// Returns the state of a host's link on `side`; down if the host has no such port.
pub fn state(host: &RunningHost, side: Side) -> LinkState {
    port(host, side).and_then(|port| host.link(port)).unwrap_or(LinkState::Down)
}

/// Returns the links of a job that are down, as `A-B`: the link to the right of host A.
pub fn down(hosts: &[RunningHost]) -> Vec<String> {
    let mut down = Vec::new();
    for host in hosts {
        let next = (host.is.host + 1) % host.is.hosts;
        let ends = hosts.iter().filter(|h| h.is.host == next).map(|h| state(h, Side::Left));
        if ends.chain([state(host, Side::Right)]).any(|state| state == LinkState::Down) {
            down.push(format!("{}-{next}", host.is.host));
        }
    }
    down.dedup();
    down
}

/// Returns the selected job and its hosts: the job whose rank 0 is process `wanted`, or the only job.
pub fn choose(wanted: Option<u32>) -> Result<(u32, Vec<RunningHost>), Box<dyn Error>> {
    choose_of(running()?, wanted)
}

/// Same as [`choose`], for jobs of any type of members.
pub fn choose_of<T>(mut jobs: BTreeMap<u32, Vec<T>>, wanted: Option<u32>) -> Result<(u32, Vec<T>), Box<dyn Error>> {
    let names = || jobs.keys().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let job = match wanted {
        Some(job) if jobs.contains_key(&job) => job,
        Some(job) => return Err(format!("--job {job}: there is no such job of this user; running: {}", names()).into()),
        None if jobs.len() > 1 => return Err(format!("several jobs run; choose one with --job: {}", names()).into()),
        None => *jobs.keys().next().ok_or("no job of this user is running on this machine")?,
    };
    let hosts = jobs.remove(&job).unwrap_or_default();
    Ok((job, hosts))
}
