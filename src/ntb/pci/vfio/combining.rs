//! Write-combining mappings of windows, which vfio-pci does not offer: files of /sys.

use crate::function::Bar;
use crate::sysfs::SysFunction;
use memmap2::MmapOptions;
use std::fs::File;
use std::io;
use std::path::PathBuf;

/// Returns the path of the file that maps a memory range write-combining.
pub fn path(function: &SysFunction, bar: Bar) -> PathBuf {
    function.file(&format!("resource{}_wc", bar.index))
}

/// Opens the file that maps a memory range write-combining. vfio-pci must not have mapped the range before: the kernel
/// would silently map it uncached.
pub fn file(function: &SysFunction, bar: Bar) -> io::Result<File> {
    let file = File::options().read(true).write(true).open(path(function, bar))?;
    // The kernel decides when it is mapped.
    MmapOptions::new().len(4096).map_raw(&file)?;
    Ok(file)
}

/// Returns the remedy for a memory range that cannot be mapped write-combining, after a semicolon.
pub fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => "; the kernel is locked down (Secure Boot): /sys/kernel/security/lockdown",
        Some(libc::EACCES) => "; only root may map it",
        Some(libc::EINVAL) => "; another driver has claimed it: boot with iomem=relaxed, or end the other program",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_of_the_kernel_has_its_remedy() {
        let of = |code| remedy(&io::Error::from_raw_os_error(code));
        assert!(of(libc::EPERM).contains("Secure Boot") && of(libc::EINVAL).contains("iomem=relaxed"));
        assert!(of(libc::EACCES).contains("root") && of(libc::ENOENT).is_empty());
    }
}
