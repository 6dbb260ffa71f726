//! `cargo xtask package`: packages for users, in `target/packages`.
//!
//! All are made of the tree that can be moved (`cargo xtask install`), with stripped programs and the licences of
//! everything that is linked in.

mod alternatives;
mod check;
mod deb;
mod licences;
mod needs;
mod sources;
mod tarball;
mod tree;
mod wheel;

use std::fs;
use std::path::PathBuf;

use anyhow::{bail, Context, Result};
use clap::{Args, ValueEnum};

use crate::setup::{packages, SetupArgs};
use crate::{paths, ui};

/// Version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// One line about the packages.
const SUMMARY: &str = "MPI and OpenSHMEM over rings of hosts that are joined by PCIe Non-Transparent Bridges";

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct PackageArgs {
    /// Make only these [default: all; Debian packages only on Debian and systems derived from it]
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Kind>,

    /// Try the wheel in an empty Python environment
    #[arg(long)]
    check: bool,

    /// Try the packages in fresh systems of these releases of Debian, say bookworm,trixie (needs root)
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    chroot: Vec<String>,

    #[command(flatten)]
    setup: SetupArgs,
}

/// Kinds of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A Python wheel: `pip install`
    Wheel,
    /// Debian packages: `apt install ./...`
    Deb,
    /// A tree for any directory
    Tarball,
    /// The sources of everything
    Sources,
}

/// Makes the packages, prints their names and sizes, and tries them.
pub fn run(args: &PackageArgs) -> Result<()> {
    packages::install(&["binutils", "xz-utils"])?;
    let to = paths::target().join("packages");
    fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
    let wanted = |kind| match args.only.is_empty() {
        true => kind != Kind::Deb || packages::is_debian(),
        false => args.only.contains(&kind),
    };
    let tree = tree::make(&args.setup)?;
    let mut made: Vec<PathBuf> = Vec::new();
    if wanted(Kind::Wheel) {
        made.push(ui::step("package: wheel", || wheel::make(&tree, &to))?);
    }
    if wanted(Kind::Deb) {
        made.extend(ui::step("package: Debian packages", || deb::make(&tree, &to))?);
    }
    if wanted(Kind::Tarball) {
        made.push(ui::step("package: tarball", || tarball::make(&tree, &to))?);
    }
    if wanted(Kind::Sources) {
        made.push(ui::step("package: sources", || sources::make(&tree, &to))?);
    }
    for file in &made {
        let size = fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?.len();
        println!("{:6.1} MB  {}", size as f64 / 1e6, paths::shown(file));
    }
    try_them(args, &made)
}

/// Tries the packages in the places that the user has asked for, and prints a table.
fn try_them(args: &PackageArgs, made: &[PathBuf]) -> Result<()> {
    let mut trials = Vec::new();
    if args.check {
        let wheel = made.iter().find(|file| file.extension().is_some_and(|e| e == "whl"));
        trials.push(check::wheel(wheel.context("--check needs the wheel: add it to --only")?)?);
    }
    for suite in &args.chroot {
        trials.push(check::system(suite, made)?);
    }
    if trials.is_empty() {
        return Ok(());
    }
    let (table, tally) = check::summary(&trials);
    println!("\n{table}\n\n{tally}");
    match tally.failed {
        0 => Ok(()),
        failed => bail!("{failed} of the steps that try the packages failed"),
    }
}
