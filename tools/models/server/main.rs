//! A server of modelled NTB adapters for virtual machines: each function appears in a QEMU as a `vfio-user-pci` device.
//! With ivshmem, which QEMU has itself, it serves the memory that two machines share.

mod control;
mod function;
mod guest_memory;
mod shared_memory;

use anyhow::{bail, Context, Result};
use clap::Parser;
use function::Served;
use ntbring_models::{End, Ivshmem, Model};
use std::path::PathBuf;
use std::thread;

/// Serves modelled NTB adapters to virtual machines
#[derive(Parser)]
struct Args {
    /// Sockets of the two ends of each cable: A of the first, B of the first, A of the second, ...
    #[arg(required = true, value_name = "SOCKET")]
    sockets: Vec<PathBuf>,
    /// Chip at the ends of the cables
    #[arg(long, default_value = "skx")]
    chip: Model,
    /// Size of each window, bytes; a power of two
    #[arg(long, default_value_t = 4 << 20)]
    window: u64,
    /// Socket for commands that cause faults and show counts
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
}

fn main() -> Result<()> {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("info")).init();
    let args = Args::parse();
    if args.sockets.len() % 2 != 0 {
        bail!("a cable has two ends: an even number of sockets is needed");
    }
    if !args.window.is_power_of_two() || args.window < 1 << 20 {
        bail!("--window {}: a power of two from 1 MiB on is needed", args.window);
    }
    let (mut servers, mut cables) = (Vec::new(), Vec::new());
    for ends in args.sockets.chunks(2) {
        if args.chip == Model::Ivshmem {
            servers.extend(shared_memory::serve(Ivshmem::memory_for(args.window), ends)?);
            continue;
        }
        let cable = args.chip.cable(args.window);
        for (end, socket) in End::BOTH.into_iter().zip(ends) {
            let served = Served::new(cable.clone(), end, socket);
            // All sockets exist when the first virtual machine starts.
            let server = served.listen().with_context(|| format!("listening at {}", socket.display()))?;
            servers.push(thread::spawn(move || served.serve(server)));
        }
        cables.push(cable);
    }
    if let Some(path) = args.control {
        let control = control::listen(&path).with_context(|| format!("listening at {}", path.display()))?;
        thread::spawn(move || control::serve(&control, &cables));
    }
    for server in servers {
        if server.join().is_err() {
            bail!("a server has panicked");
        }
    }
    Ok(())
}
