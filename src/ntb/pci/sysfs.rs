//! The kernel's information on PCI functions, in /sys.

use crate::identity::{Identity, PciAddress};
use std::fs;
use std::io;
use std::path::PathBuf;

/// The kernel's files on PCI functions.
#[derive(Clone, Debug)]
pub struct Sysfs(PathBuf);

impl Sysfs {
    /// Returns those of this host.
    pub fn system() -> Sysfs {
        Sysfs::at("/sys")
    }

    /// Returns those below `root` instead of `/sys`, for tests.
    pub fn at(root: impl Into<PathBuf>) -> Sysfs {
        Sysfs(root.into())
    }

    /// Returns the directory of the PCI bus.
    pub fn bus(&self) -> PathBuf {
        self.0.join("bus/pci")
    }

    /// Returns the function at an address, which need not exist.
    pub fn function(&self, address: PciAddress) -> SysFunction {
        SysFunction { address, path: self.bus().join("devices").join(address.to_string()) }
    }

    /// Returns all functions of this host, ordered by their addresses.
    pub fn functions(&self) -> io::Result<Vec<SysFunction>> {
        let mut all = Vec::new();
        for entry in fs::read_dir(self.bus().join("devices"))? {
            let address = entry?.file_name().to_str().and_then(PciAddress::parse);
            all.extend(address.map(|address| self.function(address)));
        }
        all.sort_by_key(|function| function.address);
        Ok(all)
    }

    /// Returns the kernel's lockdown mode, which forbids to map memory ranges of functions; None without lockdown.
    pub fn lockdown(&self) -> Option<String> {
        let text = fs::read_to_string(self.0.join("kernel/security/lockdown")).ok()?;
        let mode = text.split_once('[')?.1.split_once(']')?.0.to_string();
        (mode != "none").then_some(mode)
    }
}

/// A PCI function in /sys.
#[derive(Clone, Debug)]
pub struct SysFunction {
    /// The bus address.
    pub address: PciAddress,
    path: PathBuf,
}

impl SysFunction {
    /// Returns the identity; None if the function does not exist.
    pub fn identity(&self) -> Option<Identity> {
        let hex = |file: &str| u32::from_str_radix(self.text(file)?.trim_start_matches("0x"), 16).ok();
        Some(Identity {
            address: self.address,
            vendor: hex("vendor")? as u16,
            device: hex("device")? as u16,
            revision: hex("revision")? as u8,
            class: hex("class")?,
        })
    }

    /// Returns the name of the driver that is bound to the function; None if there is none.
    pub fn driver(&self) -> Option<String> {
        self.target("driver")
    }

    /// Returns the number of the IOMMU group; None without an IOMMU.
    pub fn iommu_group(&self) -> Option<String> {
        self.target("iommu_group")
    }

    /// Returns the functions in the same IOMMU group, this one among them.
    pub fn group_members(&self) -> Vec<SysFunction> {
        let Ok(entries) = fs::read_dir(self.path.join("iommu_group/devices")) else { return Vec::new() };
        let addresses = entries.flatten().filter_map(|entry| PciAddress::parse(entry.file_name().to_str()?));
        let sibling =
            |address: PciAddress| SysFunction { address, path: self.path.with_file_name(address.to_string()) };
        let mut members: Vec<SysFunction> = addresses.map(sibling).collect();
        members.sort_by_key(|function| function.address);
        members
    }

    /// Returns the other functions in the same IOMMU group that keep this one from being used, with their drivers.
    pub fn foreign_members(&self) -> impl Iterator<Item = String> + '_ {
        self.group_members().into_iter().filter(|member| member.address != self.address).filter_map(|member| {
            let driver = member.driver().filter(|driver| driver != "vfio-pci" && driver != "pcieport")?;
            Some(format!("{} ({driver})", member.address))
        })
    }

    /// Returns speed and width of the function's own PCIe link, e.g. `8.0 GT/s PCIe x8`; None if the kernel does not
    /// tell them.
    pub fn link(&self) -> Option<String> {
        let (speed, width) = (self.text("current_link_speed")?, self.text("current_link_width")?);
        (width != "0").then(|| format!("{speed} x{width}"))
    }

    /// Returns the start address on the bus, the size in bytes and the flags of each of the memory ranges 0 to 5.
    pub fn resources(&self) -> [(u64, u64, u64); 6] {
        let text = self.text("resource").unwrap_or_default();
        let mut lines = text.lines();
        std::array::from_fn(|_| {
            let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(0);
            let words: Vec<u64> = lines.next().unwrap_or("").split_whitespace().map(hex).collect();
            match words[..] {
                [start, end, flags] if end > start => (start, end - start + 1, flags),
                _ => (0, 0, 0),
            }
        })
    }

    /// Returns the path of a file of the function.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Returns the contents of a file of the function without white space at the end; None if there is no such file.
    pub fn text(&self, name: &str) -> Option<String> {
        Some(fs::read_to_string(self.file(name)).ok()?.trim_end().to_string())
    }

    /// Returns the name of the directory to which a symbolic link of the function leads.
    fn target(&self, name: &str) -> Option<String> {
        Some(fs::read_link(self.file(name)).ok()?.file_name()?.to_str()?.to_string())
    }
}
