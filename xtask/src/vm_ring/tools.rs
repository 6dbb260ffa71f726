//! Programs of ours that run beside the virtual machines or in them.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::{paths, process, ui};

/// The programs.
pub struct Tools {
    /// The server of the models.
    pub models: PathBuf,
    /// The agent.
    pub agent: PathBuf,
    /// The stand-in for ssh.
    pub remote: PathBuf,
    /// The tool that binds adapters.
    pub tool: PathBuf,
}

/// Builds them.
pub fn build() -> Result<Tools> {
    let log = paths::target().join("vm/build.log");
    ui::step("tools: ntbringd, models of adapters, remote commands", || {
        let mut cargo = Command::new("cargo");
        cargo.current_dir(paths::root()).args(["build", "--release", "-p", "ntbringd", "-p", "ntbring-vm-guest"]);
        cargo.args(["-p", "ntbring-cli"]);
        cargo.args(["-p", "ntbring-models", "--features", "ntbring-models/server"]);
        cargo.arg("--target-dir").arg(paths::target());
        process::check_logged(&mut cargo, &log)
    })?;
    let tool = |name| paths::target().join("release").join(name);
    Ok(Tools { models: tool("ntb-models"), agent: tool("ntbringd"), remote: tool("vm-guest"), tool: tool("ntbring") })
}
