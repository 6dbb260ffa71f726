//! `ntbring bench link`: what the links of this host can do, measured by the agents at both ends.

use clap::{Args, Subcommand};
use comfy_table::presets::NOTHING;
use comfy_table::Table;
use ntbring_agent::AgentBackend;
use ntbring_ntb::settings::AGENT_SOCKET;
use ntbring_ntb::PortIndex;
use ntbring_pci::measure::{limit, LinkMeasurement};
use ntbring_pci::network::Announcement;
use ntbring_pci::{LinkStatus, PciAddress, Sysfs};
use serde::Serialize;
use std::error::Error;
use std::path::PathBuf;

/// Options of `bench`.
#[derive(Args)]
pub struct BenchArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Measures the links of this host's adapters: latency, doorbells, bandwidth each way; both agents take part.
    Link(LinkArgs),
}

/// Options of `bench link`.
#[derive(Args)]
struct LinkArgs {
    /// Number of the port; all ports with a link if it is not given
    #[arg(long, value_name = "N")]
    port: Option<u8>,
    /// Socket of this host's ntbringd
    #[arg(long, value_name = "SOCKET", default_value = AGENT_SOCKET)]
    socket: PathBuf,
    /// Prints one JSON object per link
    #[arg(long)]
    json: bool,
}

/// A measured link.
#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    link: LinkMeasurement,
    /// Name of the neighbour.
    neighbour: String,
    /// The most bytes per second that speed and width of the link allow; None if the chip does not tell them.
    limit: Option<u64>,
    /// Errors that this host's end has counted since it was started; None if the kernel does not count them.
    errors: Option<Errors>,
}

/// PCI Express errors of a function (advanced error reporting).
#[derive(Serialize)]
struct Errors {
    correctable: u64,
    nonfatal: u64,
    fatal: u64,
}

/// Runs the command.
pub fn run(args: &BenchArgs) -> Result<(), Box<dyn Error>> {
    let What::Link(args) = &args.what;
    let agent = AgentBackend::connect(&args.socket)?;
    let (this, hosts) = agent.network()?;
    let ports = match args.port {
        Some(port) => vec![port],
        None => {
            let own = hosts.iter().find(|host| host.host == this);
            let mut ports: Vec<u8> = own.into_iter().flat_map(|host| &host.cables).map(|cable| cable.port).collect();
            ports.sort_unstable();
            ports
        }
    };
    if ports.is_empty() {
        return Err("no link of this host is up: the log of ntbringd says why".into());
    }
    let mut all = Vec::new();
    for port in ports {
        let index = PortIndex::new(port).ok_or_else(|| format!("--port {port}: there is no such port"))?;
        let measured = Measured::new(agent.measure(index)?, &hosts);
        match args.json {
            true => println!("{}", serde_json::to_string(&measured)?),
            false => all.push(measured),
        }
    }
    if !args.json {
        println!("{}", show(&all));
    }
    Ok(())
}

impl Measured {
    fn new(link: LinkMeasurement, hosts: &[Announcement]) -> Measured {
        let named = hosts.iter().find(|host| host.host == link.peer);
        let neighbour = named.map_or_else(|| format!("{:016x}", link.peer), |host| host.name.clone());
        let (generation, width) = (link.generation, link.width);
        let limit = Some(limit(LinkStatus::Up { generation, width })).filter(|limit| *limit < u64::MAX);
        let errors = PciAddress::parse(&link.address).and_then(errors);
        Measured { link, neighbour, limit, errors }
    }
}

/// Returns the errors that the kernel has counted at a function.
fn errors(address: PciAddress) -> Option<Errors> {
    let function = Sysfs::system().function(address);
    let total =
        |name: &str| function.text(name)?.lines().find_map(|line| line.strip_prefix("TOTAL_ERR_")).and_then(last);
    let [correctable, nonfatal, fatal] =
        ["correctable", "nonfatal", "fatal"].map(|kind| total(&format!("aer_dev_{kind}")));
    Some(Errors { correctable: correctable?, nonfatal: nonfatal?, fatal: fatal? })
}

/// Returns the number at the end of a line.
fn last(line: &str) -> Option<u64> {
    line.split_whitespace().last()?.parse().ok()
}

fn show(all: &[Measured]) -> String {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header([
        "port",
        "to",
        "link",
        "window",
        "latency",
        "doorbell",
        "out MB/s",
        "in MB/s",
        "limit MB/s",
        "PCIe errors",
    ]);
    let megabytes = |rate: u64| (rate / 1_000_000).to_string();
    let microseconds = |nanoseconds: u64| format!("{:.2} us", nanoseconds as f64 / 1000.0);
    for Measured { link, neighbour, limit, errors } in all {
        let speed = match (link.generation, link.width) {
            (0, _) | (_, 0) => "unknown".into(),
            (generation, width) => format!("Gen{generation} x{width}"),
        };
        let window = if link.is_combining { "combining" } else { "uncached" };
        let errors = errors.as_ref().map_or("not counted".into(), |errors| {
            format!("{} correctable, {} others", errors.correctable, errors.nonfatal + errors.fatal)
        });
        table.add_row([
            link.port.to_string(),
            format!("{neighbour} port {}", link.peer_port),
            speed,
            window.into(),
            microseconds(link.latency_ns),
            microseconds(link.doorbell_ns),
            megabytes(link.outgoing),
            megabytes(link.incoming),
            limit.map_or("unknown".into(), megabytes),
            errors,
        ]);
    }
    format!(
        "{table}\nlatency: one way, both sides polling; doorbell: until the neighbour's agent runs; limit: what speed and \
         width allow\nfor packets of 64 bytes, which write-combining makes"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_link_is_shown_in_words() {
        let link = LinkMeasurement {
            port: 1,
            address: "0000:3b:00.0".into(),
            peer: 7,
            peer_port: 0,
            generation: 3,
            width: 8,
            is_combining: true,
            latency_ns: 740,
            doorbell_ns: 12_345,
            outgoing: 5_000_000_000,
            incoming: 40_000_000,
        };
        let named = Announcement { host: 7, sequence: 1, name: "node7".into(), cables: vec![], circuits: vec![] };
        let text = show(&[Measured::new(link.clone(), &[named])]);
        for part in ["node7 port 0", "Gen3 x8", "combining", "0.74 us", "12.35 us", "5000", "40", "5728", "not counted"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        let text = show(&[Measured::new(LinkMeasurement { width: 0, is_combining: false, ..link }, &[])]);
        assert!(
            text.contains("0000000000000007 port 0") && text.contains("unknown") && text.contains("uncached"),
            "{text}"
        );
    }

    #[test]
    fn errors_are_the_last_number_of_their_line() {
        assert_eq!(last("COR 12"), Some(12));
        assert_eq!(last("COR"), None);
    }
}
