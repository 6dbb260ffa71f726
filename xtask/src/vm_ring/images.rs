//! The files of a virtual machine: QEMU, a kernel, and an initial file system. All of it is unpacked below `target/vm`;
//! nothing is installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::packages::{fetch, Dependencies, Request};
use crate::{lock, paths, process, ui};

/// The modules of the kernel that the machines load.
const MODULES: [&str; 19] = [
    "drivers/virtio/virtio",
    "drivers/virtio/virtio_ring",
    "drivers/virtio/virtio_pci_legacy_dev",
    "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci",
    "fs/fscache/fscache",
    "fs/netfs/netfs",
    "net/9p/9pnet",
    "net/9p/9pnet_virtio",
    "fs/9p/9p",
    "net/core/failover",
    "drivers/net/net_failover",
    "drivers/net/virtio_net",
    "fs/overlayfs/overlay",
    "virt/lib/irqbypass",
    "drivers/vfio/vfio",
    "drivers/vfio/vfio_iommu_type1",
    "drivers/vfio/pci/vfio-pci-core",
    "drivers/vfio/pci/vfio-pci",
];
/// Modules that only some kernels have.
const OPTIONAL_MODULES: [&str; 1] = ["drivers/vfio/vfio_virqfd"];

/// The files of the virtual machines.
pub struct Images {
    qemu: PathBuf,
    pub kernel: PathBuf,
    pub initrd: PathBuf,
    /// The release of the kernel, such as `6.1.0-50-amd64`.
    pub release: String,
}

impl Images {
    /// Returns a call of QEMU, which runs with the libraries of its own release.
    pub fn qemu(&self) -> Command {
        let usr = self.qemu.join("usr");
        let libraries = usr.join("lib/x86_64-linux-gnu");
        let mut command = Command::new(usr.join("lib64/ld-linux-x86-64.so.2"));
        command.arg("--library-path");
        command.arg(format!("{0}:{0}/pulseaudio", libraries.display()));
        command.arg(usr.join("bin/qemu-system-x86_64"));
        command.arg("-L").arg(usr.join("share/qemu")).arg("-L").arg(usr.join("share/seabios"));
        command
    }

    /// Returns QEMU's options for a machine's kernel.
    pub fn boot(&self, command: &mut Command, kernel_line: &str) {
        command.args(["-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio", "-kernel"]).arg(&self.kernel);
        command.arg("-initrd").arg(&self.initrd).args(["-append", kernel_line]);
    }
}

/// Fetches what is missing, and makes the initial file system.
pub fn ensure() -> Result<Images> {
    if std::env::consts::ARCH != "x86_64" {
        bail!("the models of adapters are for x86-64 machines");
    }
    let directory = paths::target().join("vm");
    let (qemu, kernel) = (directory.join("qemu"), directory.join("kernel"));
    let _lock = lock()?;
    // vfio-user is in QEMU since version 10.1, which Debian 12 does not have.
    fetch(&Request {
        what: "QEMU",
        suites: &["trixie", "trixie-backports"],
        prefer: Some("trixie-backports"),
        packages: &["qemu-system-x86"],
        dependencies: Dependencies::All,
        to: &qemu,
    })?;
    fetch(&Request {
        what: "kernel of the virtual machines",
        suites: &["bookworm"],
        prefer: None,
        packages: &["linux-image-amd64"],
        dependencies: Dependencies::None,
        to: &kernel,
    })?;
    fetch(&Request {
        what: "busybox",
        suites: &["bookworm"],
        prefer: None,
        packages: &["busybox-static"],
        dependencies: Dependencies::None,
        to: &directory.join("busybox"),
    })?;
    let image = only(&kernel.join("boot"), "vmlinuz-")?;
    let initrd = directory.join("initrd.gz");
    ui::step("initial file system of the virtual machines", || {
        pack(&kernel, &directory.join("busybox/bin/busybox"), &directory.join("initrd"), &initrd)
    })?;
    let release = image.file_name().and_then(|name| name.to_str()?.strip_prefix("vmlinuz-").map(String::from));
    let release = release.context("the kernel's file has no release in its name")?;
    Ok(Images { qemu, kernel: image, initrd, release })
}

/// Packages of programs that virtual machines need and this system may not have.
const GUEST_PACKAGES: [&str; 8] = [
    "openssh-server",
    "openssh-client",
    "slurmctld",
    "slurmd",
    "slurm-client",
    "slurm-wlm-basic-plugins",
    "munge",
    "netpipe-mpich2",
];

/// Fetches them, and returns the directory that is to be laid over the file system of virtual machines.
pub fn guest_programs() -> Result<PathBuf> {
    let _lock = lock()?;
    let to = paths::target().join("vm/guest");
    fetch(&Request {
        what: "launchers and NetPIPE for the virtual machines",
        suites: &["bookworm"],
        prefer: None,
        packages: &GUEST_PACKAGES,
        dependencies: Dependencies::Missing,
        to: &to,
    })?;
    // These are links to directories below usr in a system that runs; directories of the packages would hide them.
    for place in ["bin", "sbin", "lib", "lib64"].map(|name| to.join(name)).iter().filter(|place| place.is_dir()) {
        let below = to.join("usr").join(place.file_name().context("a directory has a name")?);
        fs::create_dir_all(&below)?;
        let mut copy = Command::new("cp");
        copy.arg("-a").arg(place.join(".")).arg(&below);
        process::check_logged(&mut copy, &paths::target().join("vm/packages.log"))?;
        paths::remove(place)?;
    }
    // Links that are made when the packages are installed.
    for name in ["slurmctld", "slurmd", "slurmstepd"] {
        let (link, file) = (to.join("usr/sbin").join(name), format!("{name}-wlm"));
        if !link.exists() && to.join("usr/sbin").join(&file).exists() {
            std::os::unix::fs::symlink(file, &link)?;
        }
    }
    Ok(to)
}

/// Takes the lock of the files that all virtual machines share.
pub fn lock() -> Result<lock::Lock> {
    lock::take(&paths::target().join("vm/lock"))
}

/// Returns the only entry of a directory whose name begins with `start`.
fn only(directory: &Path, start: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut found = entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
    found.next().map(|entry| entry.path()).with_context(|| format!("no {start}* in {}", directory.display()))
}

/// Makes the archive of the initial file system.
fn pack(kernel: &Path, busybox: &Path, root: &Path, archive: &Path) -> Result<()> {
    paths::remove(root)?;
    for place in ["bin", "dev", "proc", "sys", "modules"] {
        fs::create_dir_all(root.join(place))?;
    }
    let modules = only(&kernel.join("lib/modules"), "")?.join("kernel");
    for module in MODULES.iter().chain(&OPTIONAL_MODULES) {
        let file = modules.join(format!("{module}.ko"));
        let name = file.file_name().context("a module has a name")?;
        match fs::copy(&file, root.join("modules").join(name)) {
            Err(error) if !OPTIONAL_MODULES.contains(module) => {
                return Err(error).with_context(|| format!("cannot copy {}", file.display()));
            }
            _ => {}
        }
    }
    fs::copy(busybox, root.join("bin/busybox")).context("cannot copy busybox")?;
    let init = root.join("init");
    fs::copy(paths::root().join("tests/vm/init"), &init).context("cannot copy tests/vm/init")?;
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755))?;
    // Machines of another command may be about to read the old one.
    let script = r#"find . | "$1" cpio -o -H newc | gzip -1 >"$2.new" && mv "$2.new" "$2""#;
    let mut command = Command::new("sh");
    command.current_dir(root).args(["-c", script, "sh"]).arg(busybox).arg(archive);
    process::check_logged(&mut command, &paths::target().join("vm/initrd.log"))
}
