//! `ntbring bind` and `ntbring unbind`: the driver of an adapter.

use clap::Args;
use ntbring_pci::{chip_of, PciAddress, SysFunction, Sysfs};
use std::error::Error;
use std::fs;
use std::path::PathBuf;

/// Options of `bind` and `unbind`.
#[derive(Args)]
pub struct BindArgs {
    /// Adapters, such as 0000:05:00.0
    #[arg(required = true, value_name = "ADAPTER", value_parser = address)]
    adapters: Vec<PciAddress>,
    /// Prints the commands of a shell that do the same, and changes nothing
    #[arg(long)]
    dry_run: bool,
    /// Directory that is used instead of /sys
    #[arg(long, default_value = "/sys", hide = true)]
    sysfs: PathBuf,
}

fn address(text: &str) -> Result<PciAddress, String> {
    PciAddress::parse(text).ok_or_else(|| format!("{text:?} is no address of a PCI function, such as 0000:05:00.0"))
}

/// Text that is written into a file.
struct Write {
    text: String,
    file: PathBuf,
}

/// Binds vfio-pci to the adapters.
pub fn bind(args: &BindArgs) -> Result<(), Box<dyn Error>> {
    let sysfs = Sysfs::at(&args.sysfs);
    let adapters = adapters(&sysfs, args)?;
    if !args.dry_run && !sysfs.bus().join("drivers/vfio-pci").exists() {
        return Err("the kernel has not loaded vfio-pci: modprobe vfio-pci".into());
    }
    for function in adapters {
        match function.driver().as_deref() {
            Some("vfio-pci") => println!("{}: vfio-pci is bound to it already", function.address),
            _ => change(&sysfs, &function, "vfio-pci", args.dry_run)?,
        }
    }
    Ok(())
}

/// Gives the adapters back to the kernel's own drivers.
pub fn unbind(args: &BindArgs) -> Result<(), Box<dyn Error>> {
    let sysfs = Sysfs::at(&args.sysfs);
    for function in adapters(&sysfs, args)? {
        match function.driver().as_deref() {
            Some("vfio-pci") => change(&sysfs, &function, "", args.dry_run)?,
            _ => println!("{}: vfio-pci is not bound to it", function.address),
        }
    }
    Ok(())
}

/// Returns the functions that were named. Fails if one of them is no NTB adapter: another device must not lose its
/// driver by a mistyped address.
fn adapters(sysfs: &Sysfs, args: &BindArgs) -> Result<Vec<SysFunction>, String> {
    let adapter = |&address: &PciAddress| {
        let function = sysfs.function(address);
        let identity = function.identity().ok_or_else(|| format!("there is no PCI function {address}"))?;
        match chip_of(&identity) {
            Some(_) => Ok(function),
            None => Err(format!("{identity} is no NTB adapter")),
        }
    };
    args.adapters.iter().map(adapter).collect()
}

/// Changes the driver of a function to the named one, or to the kernel's choice.
fn change(sysfs: &Sysfs, function: &SysFunction, driver: &str, dry_run: bool) -> Result<(), String> {
    let address = function.address.to_string();
    let mut writes = vec![Write { text: format!("{driver}\n"), file: function.file("driver_override") }];
    if function.driver().is_some() {
        writes.push(Write { text: address.clone(), file: function.file("driver/unbind") });
    }
    writes.push(Write { text: address.clone(), file: sysfs.bus().join("drivers_probe") });
    for Write { text, file } in &writes {
        match dry_run {
            true => println!("echo {} > {}", text.trim_end(), file.display()),
            false => fs::write(file, text).map_err(|error| {
                let help =
                    if error.kind() == std::io::ErrorKind::PermissionDenied { "; only root may do that" } else { "" };
                format!("{address}: writing {}: {error}{help}", file.display())
            })?,
        }
    }
    if !dry_run {
        println!(
            "{address}: {}",
            function.driver().map_or("no driver is bound to it".into(), |now| format!("{now} is bound to it"))
        );
    }
    Ok(())
}
