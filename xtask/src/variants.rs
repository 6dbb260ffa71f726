//! Runs the same tests under other settings: `--env`, and extreme values of the size thresholds.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use crate::ui::{self, Tally};

/// Extreme values of the size thresholds of `src/zerocopy`. Real links have no kernel copies, so zero-copy is
/// tested with and without them.
const EXTREMES: &[Extreme] = &[
    Extreme {
        name: "packed",
        what: "everything packed, or at least eager, as far as lanes allow",
        values: ["4M", "66K", "off", "off"],
    },
    Extreme {
        name: "copied",
        what: "everything zero-copy: rendezvous, copied from buffer to buffer by both sides",
        values: ["0", "0", "0", "2"],
    },
    Extreme {
        name: "streamed",
        what: "everything zero-copy as on real links: rendezvous, streamed into the receive buffer",
        values: ["0", "0", "off", "off"],
    },
];

/// The names of the extremes.
const NAMES: [&str; 3] = ["packed", "copied", "streamed"];

/// Factor by which a test's time limit is longer at an extreme: there, for example, each message of a flood of small
/// ones goes through a rendezvous.
const PATIENCE: u32 = 4;

/// The thresholds to which each extreme assigns a value, in this order.
const THRESHOLDS: [&str; 4] = ["NTBRING_PACKED_MAX", "NTBRING_EAGER_MAX", "NTBRING_SINGLE_COPY", "NTBRING_SPLIT_COPY"];

struct Extreme {
    name: &'static str,
    what: &'static str,
    values: [&'static str; 4],
}

/// Command-line options for the settings under which tests are run.
#[derive(Args, Clone, Debug, Default)]
pub struct VariantArgs {
    /// Run everything at these extremes of the thresholds: all packed, all zero-copy (copied or streamed) [default:
    /// each]
    #[arg(long, value_name = "NAME", num_args = 0.., require_equals = true, value_delimiter = ',',
          default_missing_values = NAMES, value_parser = NAMES)]
    extremes: Vec<String>,

    /// Set a variable for all tests (a variable that a test sets itself keeps the test's value)
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    env: Vec<(String, String)>,
}

/// Settings under which all tests are run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// Name of the extreme; empty for normal runs.
    pub name: &'static str,
    what: &'static str,
    /// Environment variables to set.
    pub env: Vec<(String, String)>,
}

impl Variant {
    /// Returns the time limit of a test whose limit in a normal run is `limit`.
    pub fn limit(&self, limit: Duration) -> Duration {
        if self.name.is_empty() {
            limit
        } else {
            PATIENCE * limit
        }
    }

    /// Returns a file or directory name that is distinct for this variant.
    pub fn place(&self, name: &str) -> String {
        match self.name {
            "" => name.to_string(),
            variant => format!("{name}-{variant}"),
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<String> = self.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        match self.name {
            "" => write!(out, "{}", env.join(" ")),
            name => write!(out, "{name}: {} ({})", self.what, env.join(" ")),
        }
    }
}

impl VariantArgs {
    /// Returns options that only set these variables.
    pub fn of(env: Vec<(String, String)>) -> Self {
        Self { extremes: Vec::new(), env }
    }

    /// Returns options that select all extremes.
    pub fn all_extremes() -> Self {
        Self { extremes: NAMES.map(String::from).to_vec(), env: Vec::new() }
    }

    /// Returns the variables that the user has set, as `NAME=VALUE`.
    pub fn settings(&self) -> impl Iterator<Item = String> + '_ {
        self.env.iter().map(|(name, value)| format!("{name}={value}"))
    }

    fn variants(&self) -> Vec<Variant> {
        if self.extremes.is_empty() {
            return vec![Variant { env: self.env.clone(), ..Variant::default() }];
        }
        let variant = |extreme: &Extreme| {
            let own = THRESHOLDS.iter().zip(extreme.values).map(|(name, value)| (name.to_string(), value.to_string()));
            let env = own.chain(self.env.iter().cloned()).collect();
            Variant { name: extreme.name, what: extreme.what, env }
        };
        EXTREMES.iter().filter(|extreme| self.extremes.iter().any(|name| name == extreme.name)).map(variant).collect()
    }

    /// Runs `work` under each of the variants and sums up the counts. If there are several, prints one line for each at
    /// the end.
    pub fn each(&self, mut work: impl FnMut(&Variant) -> Result<Tally>) -> Result<Tally> {
        let variants = self.variants();
        let mut sum = Tally::default();
        let mut lines = Vec::new();
        for variant in &variants {
            if !variant.env.is_empty() {
                println!("{variant}");
            }
            let begin = Instant::now();
            let tally = work(variant)?;
            sum += tally;
            lines.push(format!(
                "  {:<14} {:<28} {:>12}",
                variant.name,
                tally.to_string(),
                ui::seconds(begin.elapsed())
            ));
        }
        if variants.len() > 1 {
            println!("\nthe extremes:\n{}", lines.join("\n"));
        }
        Ok(sum)
    }
}

/// Parses `NAME=VALUE`.
pub fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err("expected NAME=VALUE".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_keep_what_the_user_sets() {
        let env = vec![assignment("NTBRING_LOG=info").unwrap()];
        let args = VariantArgs { extremes: NAMES.map(str::to_string).to_vec(), env: env.clone() };
        let variants = args.variants();
        assert_eq!(
            variants.iter().map(|v| v.place("logs")).collect::<Vec<_>>(),
            ["logs-packed", "logs-copied", "logs-streamed"]
        );
        assert!(variants.iter().all(|v| v.env.ends_with(&env) && v.env.len() == 5));
        assert!(variants[0].to_string().contains("NTBRING_PACKED_MAX=4M"));
        let normal = VariantArgs::default().variants();
        assert_eq!((normal.len(), normal[0].place("logs").as_str(), normal[0].env.len()), (1, "logs", 0));
        let second = Duration::from_secs(1);
        assert_eq!((normal[0].limit(second), variants[0].limit(second)), (second, 4 * second));
        let one = VariantArgs { extremes: vec!["copied".to_string()], env: Vec::new() };
        assert_eq!(one.variants()[0].name, "copied");
        assert!(EXTREMES.iter().map(|extreme| extreme.name).eq(NAMES));
        assert!(assignment("=x").is_err() && assignment("x").is_err() && assignment("x=").is_ok());
    }

    #[test]
    fn counts_are_summed_up() {
        let args = VariantArgs { extremes: NAMES.map(str::to_string).to_vec(), env: Vec::new() };
        let sum = args.each(|v| Ok(Tally { passed: v.name.len(), failed: 1 })).unwrap();
        assert_eq!(sum, Tally { passed: 6 + 6 + 8, failed: 3 });
    }
}
