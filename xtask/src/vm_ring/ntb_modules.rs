//! Linux's own NTB drivers and their test clients. Debian's kernels come without them, so they are built from its
//! sources, outside the kernel's tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::images::{self, Images};
use super::packages::{fetch, Dependencies, Request};
use crate::{paths, process, ui};

/// The modules, with the files of each, relative to the kernel's `drivers/ntb`.
const MODULES: [(&str, &[&str]); 6] = [
    ("ntb", &["core"]),
    ("ntb_hw_intel", &["ntb_hw_gen1", "ntb_hw_gen3", "ntb_hw_gen4"]),
    ("ntb_hw_amd", &[]),
    ("ntb_tool", &[]),
    ("ntb_pingpong", &[]),
    ("ntb_perf", &[]),
];

/// Builds the modules for the kernel of the virtual machines unless that was done before. Returns their directory.
pub fn ensure(images: &Images) -> Result<PathBuf> {
    let directory = paths::target().join("vm");
    let _lock = images::lock()?;
    let (sources, modules) = (directory.join("kernel-sources"), directory.join("ntb-modules"));
    let release = &images.release;
    let common = release.strip_suffix("-amd64").context("the kernel is not for amd64")?;
    let short: Vec<&str> = release.split('.').take(2).collect();
    let short = short.join(".");
    let packages = [
        format!("linux-headers-{release}"),
        format!("linux-headers-{common}-common"),
        format!("linux-kbuild-{short}"),
        format!("linux-source-{short}"),
    ];
    let packages: Vec<&str> = packages.iter().map(String::as_str).collect();
    fetch(&Request {
        what: "sources of Linux's NTB drivers",
        suites: &["bookworm"],
        prefer: None,
        packages: &packages,
        dependencies: Dependencies::None,
        to: &sources,
    })?;
    let stamp = modules.join(format!("{release}.built"));
    if !stamp.exists() {
        ui::step("Linux's NTB drivers", || build(&sources, release, common, &short, &modules))?;
        fs::write(&stamp, "")?;
    }
    Ok(modules)
}

fn build(sources: &Path, release: &str, common: &str, short: &str, modules: &Path) -> Result<()> {
    let log = paths::target().join("vm/ntb-modules.log");
    paths::remove(modules)?;
    fs::create_dir_all(modules)?;
    let tree = sources.join("usr/src");
    let name = format!("linux-source-{short}");
    let mut unpack = Command::new("tar");
    unpack.current_dir(&tree).arg("-xf").arg(format!("{name}.tar.xz")).arg(format!("{name}/drivers/ntb"));
    process::check_logged(&mut unpack, &log)?;
    // This is the only absolute path in the tree of the headers.
    let headers = tree.join(format!("linux-headers-{release}"));
    let include = format!("include {}\n", tree.join(format!("linux-headers-{common}-common/Makefile")).display());
    fs::write(headers.join("Makefile"), include)?;
    let drivers = tree.join(&name).join("drivers/ntb");
    for place in ["", "test", "hw/intel", "hw/amd"] {
        for entry in fs::read_dir(drivers.join(place))?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "c" || extension == "h") {
                fs::copy(&path, modules.join(entry.file_name()))?;
            }
        }
    }
    let mut rules = String::new();
    for (module, files) in MODULES {
        rules.push_str(&format!("obj-m += {module}.o\n"));
        files.iter().for_each(|file| rules.push_str(&format!("{module}-y += {file}.o\n")));
    }
    fs::write(modules.join("Kbuild"), rules)?;
    let mut make = Command::new("make");
    make.arg("-C").arg(&headers).arg(format!("M={}", modules.display())).args(["modules", "-j2"]);
    process::check_logged(&mut make, &log)
}
