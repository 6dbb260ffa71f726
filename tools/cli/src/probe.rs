//! `ntbring probe`: the NTB adapters of this host, and what is wrong with them.

use clap::Args;
use ntbring_pci::{chip_of, KnownChip, SysFunction, Sysfs};
use serde::Serialize;
use std::error::Error;
use std::path::PathBuf;

/// Options of `probe`.
#[derive(Args)]
pub struct ProbeArgs {
    /// Prints one JSON object per adapter
    #[arg(long)]
    json: bool,
    /// Directory that is read instead of /sys
    #[arg(long, default_value = "/sys", hide = true)]
    sysfs: PathBuf,
}

/// Bit of a memory range's flags that says that it is prefetchable.
const PREFETCHABLE: u64 = 0x2000;

/// An adapter.
#[derive(Serialize)]
struct Found {
    address: String,
    chip: &'static str,
    id: String,
    revision: u8,
    driver: Option<String>,
    iommu_group: Option<String>,
    /// Speed and width of its PCIe link.
    link: Option<String>,
    /// Memory ranges by the numbers of their base address registers.
    ranges: Vec<MemoryRange>,
    problems: Vec<Problem>,
}

#[derive(Serialize)]
struct MemoryRange {
    bar: usize,
    bytes: u64,
    is_prefetchable: bool,
    /// True if the kernel has a file that maps it write-combining.
    can_combine: bool,
}

/// Something that keeps an adapter from being used, and the command that mends it.
#[derive(Serialize)]
struct Problem {
    what: String,
    command: Option<String>,
}

/// Prints the adapters. Fails if there is none, or if one of them has a problem.
pub fn run(args: &ProbeArgs) -> Result<(), Box<dyn Error>> {
    let sysfs = Sysfs::at(&args.sysfs);
    let all = sysfs.functions().map_err(|error| format!("the PCI functions of this host cannot be listed: {error}"))?;
    let known = all.iter().filter_map(|function| {
        let identity = function.identity()?;
        Some((function, chip_of(&identity)?, identity))
    });
    let mut found = Vec::new();
    for (function, chip, identity) in known {
        found.push(Found {
            address: function.address.to_string(),
            chip: chip.name,
            id: format!("{:04x}:{:04x}", identity.vendor, identity.device),
            revision: identity.revision,
            driver: function.driver(),
            iommu_group: function.iommu_group(),
            link: function.link(),
            ranges: ranges(function),
            problems: problems(function, chip, &sysfs),
        });
    }
    for one in &found {
        match args.json {
            true => println!("{}", serde_json::to_string(one)?),
            false => show(one),
        }
    }
    let faulty = found.iter().filter(|one| !one.problems.is_empty()).count();
    match (found.len(), faulty) {
        (0, _) => Err("this host has no NTB adapter".into()),
        (_, 0) => Ok(()),
        (all, faulty) => Err(format!("{faulty} of {all} adapters cannot be used").into()),
    }
}

fn ranges(function: &SysFunction) -> Vec<MemoryRange> {
    let ranges = function.resources().into_iter().enumerate().filter(|(_, (_, bytes, _))| *bytes > 0);
    let range = |(bar, (_, bytes, flags)): (usize, (u64, u64, u64))| MemoryRange {
        bar,
        bytes,
        is_prefetchable: flags & PREFETCHABLE != 0,
        can_combine: function.file(&format!("resource{bar}_wc")).exists(),
    };
    ranges.map(range).collect()
}

fn problems(function: &SysFunction, chip: KnownChip, sysfs: &Sysfs) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut add = |what: String, command: Option<String>| problems.push(Problem { what, command });
    if !chip.has_driver {
        let advice = if chip.advice.is_empty() { String::new() } else { format!(": {}", chip.advice) };
        add(format!("ntbring has no driver for this chip{advice}"), None);
        return problems;
    }
    let bind = Some(format!("ntbring bind {}", function.address));
    match function.driver().as_deref() {
        Some("vfio-pci") => {}
        Some(driver) => add(format!("the driver {driver} is bound to it"), bind),
        None => add("no driver is bound to it".into(), bind),
    }
    if function.iommu_group().is_none() {
        let what = "it is in no IOMMU group: enable VT-d or AMD-Vi in the BIOS, and boot with intel_iommu=on";
        add(what.into(), None);
    }
    let others: Vec<String> = function.foreign_members().collect();
    if !others.is_empty() {
        add(format!("other drivers use functions of its IOMMU group: {}", others.join(", ")), None);
    }
    if let Some(mode) = sysfs.lockdown() {
        let what = "so that windows are uncached and many times slower: switch Secure Boot off";
        add(format!("the kernel is locked down ({mode}), {what}"), None);
    }
    let ranges = ranges(function);
    let largest = ranges.iter().filter(|range| range.bar > 0).map(|range| range.bytes).max().unwrap_or(0);
    match largest < 1 << 20 {
        true if chip.is_virtual() => add(
            format!("its shared memory has {largest} bytes: give its ivshmem server a power of two from 1 MiB on"),
            None,
        ),
        true => add("it has no memory range for a window: enable the NTB's BARs in the BIOS".into(), None),
        false => {}
    }
    // The table of the interrupt vectors.
    if chip.is_virtual() && !ranges.iter().any(|range| range.bar == 1) {
        let what = "it has no interrupts (ivshmem-plain): give the machine an ivshmem-doorbell device and a server";
        add(what.into(), None);
    }
    problems
}

fn show(found: &Found) {
    println!("{} {} ({}, revision {:02x})", found.address, found.chip, found.id, found.revision);
    let or_none = |text: &Option<String>| text.clone().unwrap_or("none".into());
    println!("  driver: {}; IOMMU group: {}", or_none(&found.driver), or_none(&found.iommu_group));
    found.link.iter().for_each(|link| println!("  PCIe link: {link}"));
    for range in &found.ranges {
        let kind = match (range.is_prefetchable, range.can_combine) {
            (true, true) => "can be mapped write-combining",
            (true, false) => "prefetchable, but the kernel has no file to map it write-combining",
            (false, _) => "not prefetchable",
        };
        println!("  BAR {}: {} KiB, {kind}", range.bar, range.bytes >> 10);
    }
    for Problem { what, command } in &found.problems {
        println!("  PROBLEM: {what}");
        command.iter().for_each(|command| println!("           {command}"));
    }
}
