//! One virtual machine.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{kill_process, Pid, Signal};

use super::accel::Accel;
use super::console::Console;
use super::images::Images;
use crate::{paths, process, ui};

/// Memory of each machine, MiB.
const MEMORY: u32 = 512;

/// PCI device number of a machine's first adapter, or of the root port behind which it is.
const FIRST_DEVICE: u32 = 5;

/// The chip that QEMU has itself: memory that two machines share.
const IVSHMEM: &str = "ivshmem";

/// Longest time from the start to the first command.
const BOOT: Duration = Duration::from_secs(180);

/// A process that is killed when this is dropped.
pub struct Background(pub Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The configuration of a machine.
#[derive(Clone, Debug)]
pub struct Config {
    /// Its number in the ring.
    pub id: u32,
    /// Number of machines in the ring.
    pub guests: u32,
    /// Sockets of its adapters' models.
    pub adapters: Vec<PathBuf>,
    /// Kind of chip of the adapters.
    pub chip: String,
    /// Directory that is laid over the file system of this machine, for the virtual one.
    pub over: Option<PathBuf>,
    /// Further words of the kernel's command line.
    pub words: String,
    /// Port of the multicast group that joins the machines, for launching.
    pub network: u16,
    /// Kind of processors.
    pub accel: Accel,
    /// Directory of the logs.
    pub directory: PathBuf,
}

/// A machine that runs.
pub struct Machine {
    process: Background,
    config: Config,
    /// The way to run commands in it.
    pub console: Console,
}

/// Returns unused ports of this machine.
pub fn free_ports<const N: usize>() -> Result<[u16; N]> {
    let mut listeners = Vec::new();
    for _ in 0..N {
        listeners.push(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?);
    }
    let mut ports = [0; N];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

impl Config {
    /// Returns the file with the output of the machine: of the kernel and of the agent.
    pub fn log(&self) -> PathBuf {
        self.directory.join(format!("guest{}.log", self.id))
    }

    /// Returns the PCI addresses of the adapters, as the machine's kernel shows them.
    pub fn addresses(&self) -> Vec<String> {
        let address = |number: u32| match self.chip == IVSHMEM {
            true => format!("0000:00:{:02x}.0", FIRST_DEVICE + number),
            false => format!("0000:{:02x}:00.0", 1 + number),
        };
        (0..).take(self.adapters.len()).map(address).collect()
    }

    /// Starts the machine.
    pub fn start(self, images: &Images) -> Result<Machine> {
        let [user, root] = free_ports()?;
        let log = File::options().create(true).append(true).open(self.log())?;
        let mut command = images.qemu();
        self.hardware(&mut command, (user, root));
        let kernel_line = format!(
            "console=ttyS0 quiet no_timer_check intel_iommu=on iommu=strict id={} guests={} adapters={} {}",
            self.id,
            self.guests,
            self.addresses().join(","),
            self.words
        );
        images.boot(&mut command, &kernel_line);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = Background(command.spawn().context("cannot start QEMU")?);
        Ok(Machine { process, config: self, console: Console { user, root } })
    }

    fn hardware(&self, command: &mut Command, (user, root): (u16, u16)) {
        command
            .args(self.accel.options())
            .args(["-machine", "q35,memory-backend=ram,kernel-irqchip=split", "-object"])
            .arg(format!("memory-backend-memfd,id=ram,size={MEMORY}M,share=on"))
            .args(["-m", &format!("{MEMORY}M")])
            // Without caching mode QEMU aborts when the guest turns the IOMMU on.
            .args(["-device", "intel-iommu,intremap=on,caching-mode=on"])
            .args(["-virtfs", "local,path=/,security_model=none,readonly=on,mount_tag=root,multidevs=remap"])
            .arg("-netdev")
            .arg(format!("socket,id=net,mcast=230.9.0.1:{},localaddr=127.0.0.1", self.network))
            .arg("-device")
            .arg(format!("virtio-net-pci,netdev=net,addr=2,mac=52:54:00:09:00:{:02x},romfile=", 0x10 + self.id))
            .arg("-netdev")
            .arg(format!(
                "user,id=console,restrict=on,hostfwd=tcp:127.0.0.1:{user}-:5140,hostfwd=tcp:127.0.0.1:{root}-:5141"
            ))
            .args(["-device", "virtio-net-pci,netdev=console,addr=3,romfile="]);
        if let Some(over) = &self.over {
            let path = over.display();
            command
                .args(["-fsdev", &format!("local,id=over,path={path},security_model=none,readonly=on,multidevs=remap")])
                .args(["-device", "virtio-9p-pci,fsdev=over,mount_tag=over,addr=10"]);
        }
        for (device, socket) in (FIRST_DEVICE..).zip(&self.adapters) {
            if self.chip == IVSHMEM {
                let socket = format!("socket,id=cable{device},path={}", socket.display());
                let adapter = format!("ivshmem-doorbell,vectors=1,chardev=cable{device},bus=pcie.0,addr={device}");
                command.args(["-chardev", &socket, "-device", &adapter]);
                continue;
            }
            // A bus of its own: the requests of a PEX 87xx have all numbers of its bus, so Linux puts them into one IOMMU
            // group.
            let port = format!("pcie-root-port,id=port{device},bus=pcie.0,chassis={device},addr={device}");
            command.args(["-device", &port]);
            // Reads wait for all earlier writes, which are slow in a model: they need much time.
            command.arg("-device").arg(format!(
                r#"{{"driver":"vfio-user-pci","bus":"port{device}","x-msg-timeout":120000,"socket":{{"type":"unix","path":"{}"}}}}"#,
                socket.display()
            ));
        }
    }
}

impl Machine {
    /// Waits until commands can be run.
    pub fn wait(&mut self) -> Result<()> {
        let start = Instant::now();
        while start.elapsed() < BOOT && !process::interrupted() {
            if self.process.0.try_wait()?.is_some() {
                break;
            }
            if self.console.root("echo up").is_ok_and(|answer| answer.text() == "up") {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(200));
        }
        let what = format!("virtual machine {} does not come up", self.config.id);
        Err(ui::error_with_log(what, &self.config.log()))
    }

    /// Stops the machine (SIGSTOP), or lets it go on.
    pub fn pause(&self, is_paused: bool) -> Result<()> {
        let signal = if is_paused { Signal::STOP } else { Signal::CONT };
        kill_process(Pid::from_child(&self.process.0), signal).context("a signal to QEMU")
    }

    /// Kills the machine without notice; its configuration remains.
    pub fn kill(self) -> Config {
        self.config
    }

    /// Returns the PCI addresses of its adapters.
    pub fn addresses(&self) -> Vec<String> {
        self.config.addresses()
    }
}

/// Returns a new, empty directory for the sockets and logs of this process's ring. Those of processes that have ended
/// are removed.
pub fn fresh_directory(name: &str) -> Result<PathBuf> {
    let place = paths::target().join("vm");
    let start = format!("{name}-");
    for entry in fs::read_dir(&place).with_context(|| format!("cannot read {}", place.display()))?.flatten() {
        let file = entry.file_name();
        let process = file.to_str().and_then(|file| file.strip_prefix(&start)?.parse::<u32>().ok());
        if process.is_some_and(|id| id == std::process::id() || !Path::new(&format!("/proc/{id}")).exists()) {
            paths::remove(&entry.path())?;
        }
    }
    let directory = place.join(format!("{start}{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    Ok(directory)
}
