//! The choice between KVM and emulated processors.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use clap::ValueEnum;

use super::images::Images;
use crate::{paths, process};

/// Time in which a trial must have booted. Under KVM it takes about one second.
const TRIAL: Duration = Duration::from_secs(15);

/// The way in which QEMU executes the instructions of a virtual machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Accel {
    /// KVM if a trial boots with it, else TCG
    Auto,
    /// The processor executes them
    Kvm,
    /// QEMU emulates them
    Tcg,
}

impl Accel {
    /// Replaces [`Accel::Auto`] by the better one that works.
    pub fn decided(self, images: &Images) -> Result<Accel> {
        match self {
            Accel::Auto if Path::new("/dev/kvm").exists() && boots(images)? => Ok(Accel::Kvm),
            Accel::Auto => Ok(Accel::Tcg),
            other => Ok(other),
        }
    }

    /// Returns the option of QEMU, and the processor.
    pub fn options(self) -> [&'static str; 4] {
        match self {
            Accel::Kvm => ["-accel", "kvm", "-cpu", "host"],
            _ => ["-accel", "tcg,thread=single", "-cpu", "max"],
        }
    }

    /// Returns the name for headings.
    pub fn name(self) -> &'static str {
        match self {
            Accel::Kvm => "KVM",
            _ => "TCG, emulated processors",
        }
    }
}

/// Returns true if a machine boots under KVM.
fn boots(images: &Images) -> Result<bool> {
    let log = paths::target().join("vm/trial.log");
    let mut command = images.qemu();
    command.args(Accel::Kvm.options()).args(["-machine", "q35", "-m", "256M"]);
    images.boot(&mut command, "console=ttyS0 quiet panic=-1 vm-ring-trial");
    process::run_captured(&mut command, &log, Some(TRIAL))?;
    Ok(std::fs::read(&log)?.windows(18).any(|text| text == b"vm-ring: it boots\n" || text == b"vm-ring: it boots\r"))
}
