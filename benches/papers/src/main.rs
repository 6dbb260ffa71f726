//! Measures one of the five models of MPI-VMMC between two processes, and prints one line of JSON for each figure, like
//! the other benchmarks.

use anyhow::{bail, Context, Result};
use clap::Parser;
use ntbring_papers::measure::{self, Order, Test, LEN_MAX};
use ntbring_papers::model::Model;
use ntbring_papers::peer::{self, Peer};
use std::time::Instant;

/// Measures one of the five models of MPI-VMMC between two processes (docs/experiments.md).
#[derive(Debug, Parser)]
struct Args {
    /// Model: 1, 1-packed, 2, 3, 4 or 5
    #[arg(long, value_parser = Model::parse)]
    model: Model,

    /// The link between the two: none, gen3x8, pex8733, or any other value of NTBRING_LINK_MODEL
    #[arg(long, default_value = "none")]
    link_model: String,

    /// Binds the two processes to the first two of these cores
    #[arg(long, value_delimiter = ',')]
    cores: Vec<usize>,

    /// Seconds that a figure may take
    #[arg(long, default_value_t = 0.3)]
    budget: f64,

    /// Seconds after which no new figure is begun
    #[arg(long, default_value_t = 120)]
    limit: u64,

    /// Runs the second process, which the first one starts
    #[arg(long, hide = true)]
    follow: bool,

    /// The tests, TEST=SIZES: latency or bandwidth, and sizes such as 8,64,512
    #[arg(value_name = "TEST=SIZES", default_values = ["latency=8,512,8192", "bandwidth=8,512,8192,65536,1048576"])]
    tests: Vec<String>,
}

fn parse(text: &str) -> Result<(Test, Vec<usize>)> {
    let (name, sizes) = text.split_once('=').with_context(|| format!("{text:?} is not TEST=SIZES"))?;
    let test = Test::parse(name).with_context(|| format!("there is no test {name:?}, only latency and bandwidth"))?;
    let sizes = sizes.split(',').map(|size| match size.parse() {
        Ok(size) if size <= LEN_MAX => Ok(size),
        _ => bail!("{size:?} is not a size from 0 to {LEN_MAX}"),
    });
    Ok((test, sizes.collect::<Result<_>>()?))
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(core) = args.cores.get(usize::from(args.follow)) {
        peer::bind(*core)?;
    }
    if args.follow {
        return Ok(peer::follow(args.model, &args.link_model)?);
    }
    let tests = args.tests.iter().map(|text| parse(text)).collect::<Result<Vec<_>>>()?;
    let cores: Vec<String> = args.cores.iter().map(ToString::to_string).collect();
    let options = if cores.is_empty() { Vec::new() } else { vec!["--cores".to_string(), cores.join(",")] };
    let (mut peer, mut end) = Peer::start(args.model, &args.link_model, &options)?;
    let start = Instant::now();
    for (test, sizes) in tests {
        for bytes in sizes {
            if start.elapsed().as_secs() >= args.limit {
                return Ok(());
            }
            let before = end.placed();
            let order = |order: Order| peer.order(order);
            let value = measure::figure(&mut end, test, bytes, args.budget, order)?;
            let line = serde_json::json!({"test": test.name(), "bytes": bytes, "value": value, "unit": test.unit()});
            println!("{line}");
            let (placed, sent) = end.placed();
            if placed > before.0 {
                println!("# {} of {} payloads were placed", placed - before.0, sent - before.1);
            }
        }
    }
    Ok(())
}
