//! The user's tool.

use clap::{Parser, Subcommand};
use ntbring::settings::{Settings, TABLE};
use std::process::ExitCode;

/// Looks after ntbring, the MPI transport for rings of PCIe Non-Transparent Bridges.
#[derive(Parser)]
#[command(version)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tells versions, the device, and the settings.
    Info {
        /// Lists every setting with default, unit, range and meaning.
        #[arg(long)]
        config: bool,
    },
}

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Info { config: true } => config(),
        Command::Info { config: false } => return info(),
    }
    ExitCode::SUCCESS
}

fn config() {
    println!("Every setting is an environment variable. Those marked * must be the same on all hosts.\n");
    for s in TABLE {
        println!("{}{}", s.name, if s.shared { " *" } else { "" });
        println!("    default {} ({}); allowed: {}", s.default, s.unit, s.allowed);
        println!("    {}", s.meaning);
    }
}

fn info() -> ExitCode {
    println!("ntbring {}, protocol version {}", env!("CARGO_PKG_VERSION"), ntbring::ring::PROTOCOL_VERSION);
    println!("device: emulated NTB in shared memory (up to {} hosts)", ntbring::ring::topology::HOSTS_MAX);
    match Settings::from_env() {
        Ok(settings) => {
            let same = settings == Settings::default();
            println!("settings: {}", if same { "all at their defaults" } else { "changed by the environment" });
            let window =
                settings.window.map_or("1 MiB or more, by the number of ranks".into(), |w| format!("{w} bytes"));
            println!("windows: {window} in each direction of a link, in {}", settings.shm_dir.display());
            if let Some(model) = settings.link_model {
                println!("links: {model}");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("ntbring: {error}");
            ExitCode::FAILURE
        }
    }
}
