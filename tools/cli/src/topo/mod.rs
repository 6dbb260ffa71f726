//! `ntbring topo`: the network as managers discover it, or the ring of a running job.

mod cables;
mod job;
mod svg;
mod text;

use clap::Args;
use ntbring_manager::network::Network;
use ntbring_manager::shape::Shape;
use ntbring_manager::survey::Survey;
use ntbring_manager::{Rules, CLASSES_MAX};
use ntbring_ntb::settings::AGENT_SOCKET;
use ntbring_ntb::timing::Model;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// Largest virtual time in which managers must agree.
const SETTLE_MAX: Duration = Duration::from_secs(10);

/// Options of `topo`.
#[derive(Args)]
pub struct TopoArgs {
    /// Named network: ring:N, line:N, broken-ring:N or torus:WxH
    #[arg(required_unless_present_any = ["hosts", "file", "job", "cables"], conflicts_with_all = ["hosts", "file", "job", "cables"])]
    network: Option<String>,
    /// Shows the ring of a running job, as its hosts see it (--svg: as managers see one with such links); the process
    /// id of its rank 0 is needed if several jobs are running
    #[arg(long, value_name = "PID", num_args = 0..=1, conflicts_with_all = ["hosts", "file", "hwids", "cut", "off"])]
    job: Option<Option<u32>>,
    /// Shows the cabling of real adapters, as the agents of the hosts have discovered it, and what is wrong with it;
    /// asks the agent whose socket is at SOCKET
    #[arg(long, value_name = "SOCKET", num_args = 0..=1, default_missing_value = AGENT_SOCKET, conflicts_with_all = ["hosts", "file", "job"])]
    cables: Option<PathBuf>,
    /// Ring of this many hosts, same as `ring:N`
    #[arg(long, value_name = "N", conflicts_with = "file")]
    hosts: Option<usize>,
    /// File with a list of links, one per line: `HWID.PORT HWID.PORT [down] [weight=N | model=NAME]`
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Hardware ids of the hosts, in order
    #[arg(long, value_name = "ID,...", value_delimiter = ',', conflicts_with = "file")]
    hwids: Option<Vec<u64>>,
    /// Model of all links, as in NTBRING_LINK_MODEL
    #[arg(long, value_name = "MODEL", conflicts_with = "file")]
    model: Option<String>,
    /// Number of lane classes that forwarders have
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=i64::from(CLASSES_MAX)))]
    classes: u8,
    /// Cuts the cable at this port after the network has come up; can be given several times
    #[arg(long, value_name = "HOST.PORT", value_parser = port)]
    cut: Vec<(usize, u8)>,
    /// Switches this host off after the network has come up; can be given several times
    #[arg(long, value_name = "HOST")]
    off: Vec<usize>,
    /// Prints all results as one JSON object
    #[arg(long)]
    json: bool,
    /// Draws the network into this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Runs the managers of the network until they agree, and shows the result.
pub fn run(args: &TopoArgs) -> Result<(), Box<dyn Error>> {
    if let Some(socket) = &args.cables {
        let cabling = cables::Cabling::ask(socket)?;
        match args.json {
            true => println!("{}", serde_json::to_string(&cabling)?),
            false => print!("{}", cabling.show()),
        }
        return Ok(());
    }
    let ring = args.job.map(job::Ring::look).transpose()?;
    if let Some(ring) = &ring {
        match args.json {
            true => println!("{}", serde_json::to_string(ring)?),
            false => print!("{}", ring.show()),
        }
        if args.svg.is_none() {
            return Ok(());
        }
    }
    let shape = ring.as_ref().map_or_else(|| shape(args), |ring| ring.shape())?;
    let layout = shape.layout;
    let mut network = Network::started(shape, Rules { classes: args.classes, ..Rules::default() })?;
    network.settle(SETTLE_MAX)?;
    for &(host, port) in &args.cut {
        let cables = &network.shape().cables;
        let cable = cables.iter().position(|cable| cable.ends.contains(&(host, port)));
        let cable = cable.ok_or_else(|| format!("--cut {host}.{port}: there is no cable"))?;
        network.set_link(cable, false)?;
    }
    for &host in &args.off {
        let hosts = network.shape().hosts.len();
        if host >= hosts {
            return Err(format!("--off {host}: there are hosts 0 to {}", hosts - 1).into());
        }
        network.set_host(host, false)?;
    }
    network.settle(SETTLE_MAX)?;
    let survey = Survey::of(&network);
    if let Some(file) = &args.svg {
        let drawing = svg::draw(&survey, layout)?;
        std::fs::write(file, drawing).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    }
    match args.json {
        _ if ring.is_some() => {}
        true => println!("{}", serde_json::to_string(&survey)?),
        false => print!("{}", text::show(&survey, layout)),
    }
    Ok(())
}

fn shape(args: &TopoArgs) -> Result<Shape, Box<dyn Error>> {
    let mut shape = match (&args.network, args.hosts, &args.file) {
        (_, _, Some(file)) => {
            let text = std::fs::read_to_string(file);
            let text = text.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            let mut shape = Shape::from_links(&text, weigh).map_err(|error| format!("{}: {error}", file.display()))?;
            shape.name = file.display().to_string();
            shape
        }
        (_, Some(hosts), _) => Shape::parse(&format!("ring:{hosts}"))?,
        (Some(name), ..) => Shape::parse(name)?,
        (None, None, None) => return Err("no network is given; example: ring:8".into()),
    };
    if let Some(hwids) = &args.hwids {
        shape.set_hwids(hwids).map_err(|error| format!("--hwids: {error}"))?;
    }
    if let Some(model) = &args.model {
        let weight = weigh(model).map_err(|problem| format!("link model: {problem}"))?;
        for cable in &mut shape.cables {
            (cable.weight, cable.model) = (weight, (model != "none").then(|| model.clone()));
        }
    }
    Ok(shape)
}

/// Size in bytes of the transfer from which the weight of a link model is computed: a chunk.
const CHUNK: u64 = 16 << 10;

/// Returns the weight of a cable with a link model of this name: the time of a chunk in nanoseconds.
fn weigh(model: &str) -> Result<u32, String> {
    Ok(Model::parse(model)?.map_or(1, |model| model.transfer_ns(CHUNK) as u32))
}

/// Parses `HOST.PORT`.
fn port(text: &str) -> Result<(usize, u8), String> {
    let parts = text.split_once('.').and_then(|(host, port)| Some((host.parse().ok()?, port.parse().ok()?)));
    parts.ok_or_else(|| "expected HOST.PORT, e.g. 0.1".into())
}
