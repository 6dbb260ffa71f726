//! `ntbring jobs` and `ntbring link`: running jobs of this user on this machine, and their links.

use crate::running::{choose, down, port, running};
use clap::{Args, ValueEnum};
use comfy_table::presets::NOTHING;
use comfy_table::Table;
use ntbring_ntb::{LinkState, Side};
use serde_json::json;
use std::error::Error;

/// Options of `jobs`.
#[derive(Args)]
pub struct JobsArgs {
    /// Prints one JSON object per job
    #[arg(long)]
    json: bool,
}

/// Options of `link`.
#[derive(Args)]
pub struct LinkArgs {
    /// New state of the link
    state: State,
    /// The two neighbouring hosts, e.g. 0-1
    #[arg(value_name = "A-B", value_parser = pair)]
    link: (u8, u8),
    /// Process id of rank 0 of the job; needed if several jobs are running
    #[arg(long, value_name = "PID")]
    job: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum State {
    Down,
    Up,
}

/// Lists the jobs.
pub fn jobs(args: &JobsArgs) -> Result<(), Box<dyn Error>> {
    let jobs = running()?;
    if args.json {
        for (job, hosts) in &jobs {
            let is = hosts[0].is;
            println!("{}", json!({ "job": job, "hosts": is.hosts, "faults": is.faulty, "links_down": down(hosts) }));
        }
        return Ok(());
    }
    if jobs.is_empty() {
        println!("no job of this user is running on this machine");
        return Ok(());
    }
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(["job", "hosts", "links down", "links can be taken down"]);
    for (job, hosts) in &jobs {
        let (is, down) = (hosts[0].is, down(hosts));
        let links = if down.is_empty() { "none".into() } else { down.join(" ") };
        let can = if is.faulty { "yes" } else { "no (NTBRING_FAULT)" };
        table.add_row([job.to_string(), is.hosts.to_string(), links, can.into()]);
    }
    println!("{table}");
    Ok(())
}

/// Sets a link of a job down or up.
pub fn link(args: &LinkArgs) -> Result<(), Box<dyn Error>> {
    let (job, hosts) = choose(args.job)?;
    let is = hosts[0].is;
    if !is.faulty {
        let start = "start it with NTBRING_FAULT=command";
        return Err(format!("the links of job {job} cannot be taken down, {start}").into());
    }
    let (a, b) = args.link;
    // In a ring of two hosts there are two links between them; this is the one to the right of the first host.
    let (left, right) = match (a, b) {
        (a, b) if a.max(b) < is.hosts && (a + 1) % is.hosts == b => (a, b),
        (a, b) if a.max(b) < is.hosts && (b + 1) % is.hosts == a => (b, a),
        _ => {
            return Err(format!("{a}-{b} is no link: neighbours have consecutive numbers, 0 to {}", is.hosts - 1).into())
        }
    };
    let state = match args.state {
        State::Down => LinkState::Down,
        State::Up => LinkState::Up,
    };
    let ends = [(left, Side::Right), (right, Side::Left)];
    let of = |number| hosts.iter().filter(move |host| host.is.host == number);
    // Both ends must be set; with one end alone the link would be half down. A host that has not joined waits for its
    // links to come up, and would not join at all.
    let has_joined = |number| of(number).next().is_some() && of(number).all(|host| host.is.joined);
    if let Some((missing, _)) = ends.iter().find(|(number, _)| !has_joined(*number)) {
        return Err(format!("host {missing} of job {job} has not joined yet, or its memory cannot be opened").into());
    }
    for (number, side) in ends {
        of(number).for_each(|host| port(host, side).into_iter().for_each(|port| host.set_link(port, state)));
    }
    Ok(())
}

/// Parses `A-B`.
fn pair(text: &str) -> Result<(u8, u8), String> {
    let parts = text.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parts.ok_or_else(|| "two hosts are needed, e.g. 0-1".into())
}
