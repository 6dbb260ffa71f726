//! `sim retry`: number of attempts of messages over a link that loses packets.

use crate::lab::Lab;
use crate::output::{number, Plot, Table};
use anyhow::{bail, Result};
use clap::Args;
use ntbring_sim::retry::attempts;

/// Command-line options.
#[derive(Args)]
pub struct RetryArgs {
    /// Probabilities that an attempt is lost
    #[arg(long, value_name = "P,...", value_delimiter = ',', default_value = "0.01,0.1,0.3,0.5")]
    loss: Vec<f64>,
    /// Number of messages
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    messages: usize,
    /// Number of attempts up to which the success rate is shown
    #[arg(long, value_name = "N", default_value_t = 6)]
    most: u32,
}

/// Tolerance in standard deviations: about one seed in two million exceeds it by chance.
const BOUND: f64 = 5.0;

/// Returns the table.
pub fn run(lab: &Lab, args: &RetryArgs) -> Result<Vec<Table>> {
    if args.messages == 0 || args.loss.iter().any(|loss| !(0.0..1.0).contains(loss)) {
        bail!("at least one message is needed, and a probability of loss of at least 0 and below 1");
    }
    let mut table = Table::new(
        &format!("messages that arrive within n attempts, {} messages each", args.messages),
        &["p", "n", "measured", "1 - p^n", "difference", "deviations"],
    );
    let mut lines = Vec::new();
    for &loss in &args.loss {
        let tries = attempts(loss, false, args.messages, 1000, lab.seed)?;
        let mut points = Vec::new();
        for n in 1..=args.most {
            let measured = tries.iter().filter(|&&tries| tries <= n).count() as f64 / args.messages as f64;
            let expected = 1.0 - loss.powi(n as i32);
            let deviation = (expected * (1.0 - expected) / args.messages as f64).sqrt();
            let off = (measured - expected).abs();
            if off > BOUND * deviation {
                table.failed.push(format!("p {loss}, n {n}: {measured} instead of {expected}"));
            }
            let deviations = if deviation > 0.0 { number(off / deviation) } else { "-".into() };
            let cells = [measured, expected].map(|rate| format!("{rate:.6}"));
            table.rows.push(
                [vec![loss.to_string(), n.to_string()], cells.to_vec(), vec![format!("{off:.6}"), deviations]].concat(),
            );
            points.push((f64::from(n), measured));
        }
        lines.push((format!("p = {loss}"), points));
    }
    let (title, y) = ("messages that arrive within n attempts".to_string(), "rate of success".to_string());
    table.plots.push(Plot { name: "retry".into(), title, x: "attempts".into(), y, lines });
    Ok(vec![table])
}
