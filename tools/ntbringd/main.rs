//! `ntbringd`: the agent of a host with adapters.

mod config;

use anyhow::{bail, Context, Result};
use clap::Parser;
use config::{Config, FILE};
use ntbring_agent::{Policy, Server};
use ntbring_ntb::settings::AGENT_SOCKET;
use ntbring_ntb::PortIndex;
use ntbring_pci::vfio;
use ntbring_pci::{chip_of, identify, Adapter, HostAdapters, PciAddress, Sysfs};
use std::path::{Path, PathBuf};

/// Owns the NTB adapters of this host, and gives MPI jobs windows of them
#[derive(Parser)]
#[command(name = "ntbringd", version)]
struct Args {
    /// Adapter of port 0, of port 1 and so on, such as 0000:05:00.0; without it all adapters that are bound to vfio-pci,
    /// in the order of their addresses
    #[arg(value_name = "ADAPTER", value_parser = address)]
    adapters: Vec<PciAddress>,
    /// Configuration file; the options of the command line replace its values
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Socket at which MPI processes connect [default: /run/ntbring/agent.sock]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Group whose members may connect; without it every user may
    #[arg(long)]
    group: Option<String>,
    /// Carry out the writes of all processes, so that none can reach the part of a window that belongs to another job;
    /// without it a process maps the windows of its neighbours, which is faster
    #[arg(long)]
    isolate: bool,
    /// Largest size of the window of each adapter that neighbours may write, bytes
    #[arg(long, value_name = "BYTES")]
    window: Option<u64>,
}

fn address(text: &str) -> Result<PciAddress, String> {
    PciAddress::parse(text).ok_or_else(|| format!("{text:?} is no address of a PCI function, such as 0000:05:00.0"))
}

/// Returns the adapters that are bound to vfio-pci.
fn bound() -> Result<Vec<PciAddress>> {
    let all = Sysfs::system().functions().context("looking for PCI functions in /sys")?;
    let known = all.into_iter().filter(|function| {
        function.identity().is_some_and(|identity| chip_of(&identity).is_some_and(|chip| chip.has_driver))
    });
    let (bound, others): (Vec<_>, Vec<_>) = known.partition(|one| one.driver().as_deref() == Some("vfio-pci"));
    if bound.is_empty() {
        match others.first() {
            None => bail!("this host has no NTB adapter that ntbring knows"),
            Some(one) => bail!("no NTB adapter is bound to vfio-pci: `ntbring bind {}` binds one", one.address),
        }
    }
    Ok(bound.into_iter().map(|function| function.address).collect())
}

fn main() -> Result<()> {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("info")).init();
    let args = Args::parse();
    let config = Config::read(args.config.as_deref().unwrap_or(Path::new(FILE)), args.config.is_some())?;
    let named = config.adapters.iter().map(|text| address(text).map_err(anyhow::Error::msg));
    let adapters = match named.collect::<Result<Vec<_>>>().context("adapters in the configuration")? {
        _ if !args.adapters.is_empty() => args.adapters,
        none if none.is_empty() => bound()?,
        named => named,
    };
    let window = args.window.or(config.window).unwrap_or(u64::MAX);
    let socket = args.socket.or(config.socket).unwrap_or_else(|| AGENT_SOCKET.into());
    let policy = Policy { relays: args.isolate || config.isolate, group: args.group.or(config.group) };
    if adapters.len() > PortIndex::MAX_PORTS {
        bail!(
            "{} adapters, but a host has at most {} ports: name those to be used",
            adapters.len(),
            PortIndex::MAX_PORTS
        );
    }
    let host = fastrand::u64(1..);
    let mut opened = Vec::new();
    for (port, function) in PortIndex::ALL.into_iter().zip(vfio::open(&adapters)?) {
        let chip = identify(function)?;
        log::info!("port {port}: {} {}", chip.name(), chip.function().identity());
        opened.push(Adapter::open(chip, port, host, window)?);
    }
    let adapters = HostAdapters::new(host, opened).context("starting the thread that serves the adapters")?;
    let server = Server::new(&socket, adapters, &policy);
    let server = server.with_context(|| format!("creating the socket {}", socket.display()))?;
    log::info!("host {host:016x}: processes are served at {}", socket.display());
    server.run().context("serving processes")
}
