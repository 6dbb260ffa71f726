//! Parameters of experiments.

use anyhow::{Context, Result};
use ntbring_sim::Parameters;

/// The default parameters of all experiments.
pub const PARAMETERS: &str = include_str!("../parameters.toml");

/// Parameters of an experiment beside its own arguments.
pub struct Lab {
    /// Parameters of links, hosts and protocols.
    pub parameters: Parameters,
    /// Seed of all random choices.
    pub seed: u64,
}

/// Parses the parameters of a file.
pub fn parameters(text: &str, name: &str) -> Result<Parameters> {
    toml::from_str(text).with_context(|| format!("{name} holds no parameters"))
}
