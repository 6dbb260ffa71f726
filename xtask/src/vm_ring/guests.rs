//! Virtual machines in a ring, and the models of the adapters between them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use super::images::Images;
use super::tools::Tools;
use crate::{paths, process, ui};

/// Memory of each machine, MiB.
const MEMORY: u32 = 512;

/// PCI device numbers of the left and of the right adapter.
const LEFT: u32 = 5;
const RIGHT: u32 = 6;

/// A ring of machines, and the script that the first one runs.
pub struct Ring<'a> {
    pub images: &'a Images,
    pub tools: &'a Tools,
    pub guests: u32,
    pub job: String,
}

/// One machine.
pub struct Guest;

impl Guest {
    /// Returns the file with the output of a machine.
    pub fn log(id: u32) -> PathBuf {
        directory().join(format!("guest{id}.log"))
    }
}

/// The output of the first machine.
pub struct Report(String);

impl Report {
    fn lines(&self) -> impl Iterator<Item = &str> {
        self.0.lines().filter_map(|line| Some(line.split_once("vm-ring: ")?.1.trim_end()))
    }

    /// Returns the exit status of a program and its time in seconds; None if it has not ended.
    pub fn outcome(&self, name: &str) -> Option<(i32, f64)> {
        self.lines().find_map(|line| {
            let (code, times) = line.strip_prefix(name)?.strip_prefix(" ended with ")?.split_once(" after ")?;
            let (start, end) = times.split_once(" to ")?;
            Some((code.parse().ok()?, end.parse::<f64>().ok()? - start.parse::<f64>().ok()?))
        })
    }

    /// Returns all other lines for the user.
    pub fn notes(&self) -> impl Iterator<Item = &str> {
        self.lines().filter(|line| !line.contains(" ended with ") && !line.starts_with("the agent"))
    }
}

/// A process that is killed when this is dropped.
struct Background(Child);

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn directory() -> PathBuf {
    paths::target().join("vm/run")
}

impl Ring<'_> {
    /// Boots the machines, and waits until they have switched themselves off.
    pub fn run(&self, limit: Duration) -> Result<Report> {
        let directory = directory();
        paths::remove(&directory)?;
        fs::create_dir_all(&directory)?;
        let job = directory.join("job.sh");
        fs::write(&job, &self.job)?;
        let _models = self.start_models(&directory)?;
        let machines = (0..self.guests).map(|id| {
            let mut command = self.machine(id, &directory, &job);
            thread::spawn(move || process::run_captured(&mut command, &Guest::log(id), Some(limit)))
        });
        let machines: Vec<_> = machines.collect();
        for (id, machine) in (0..).zip(machines) {
            let outcome = machine.join().map_err(|_| anyhow::anyhow!("a thread has panicked"))??;
            if !outcome.success() {
                return Err(ui::error_with_log(
                    format!("virtual machine {id}: {}", outcome.describe()),
                    &Guest::log(id),
                ));
            }
        }
        Ok(Report(String::from_utf8_lossy(&fs::read(Guest::log(0))?).into_owned()))
    }

    /// Returns the socket of one end of the cable to the right of a machine.
    fn socket(directory: &Path, cable: u32, end: &str) -> PathBuf {
        directory.join(format!("cable{cable}-{end}"))
    }

    /// Starts the server of the models; all sockets exist when it returns.
    fn start_models(&self, directory: &Path) -> Result<Background> {
        let sockets: Vec<PathBuf> =
            (0..self.guests).flat_map(|cable| ["a", "b"].map(|end| Self::socket(directory, cable, end))).collect();
        let log = fs::File::create(directory.join("models.log"))?;
        let mut command = Command::new(&self.tools.models);
        command.args(&sockets).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let models = Background(command.spawn().context("cannot start the models of the adapters")?);
        let start = Instant::now();
        while !sockets.iter().all(|socket| socket.exists()) {
            if start.elapsed() > Duration::from_secs(10) {
                bail!("the models of the adapters do not start: see {}", paths::shown(&directory.join("models.log")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(models)
    }

    fn machine(&self, id: u32, directory: &Path, job: &Path) -> Command {
        let left = (id + self.guests - 1) % self.guests;
        let adapter = |device: u32, socket: PathBuf| {
            // Reads wait for all earlier writes, which are slow in a model: they need much time.
            format!(
                r#"{{"driver":"vfio-user-pci","bus":"pcie.0","addr":"{device}","x-msg-timeout":60000,"socket":{{"type":"unix","path":"{}"}}}}"#,
                socket.display()
            )
        };
        let kernel_line = format!(
            "console=ttyS0 quiet no_timer_check intel_iommu=on iommu=strict id={id} guests={} job={} agent={} remote={}",
            self.guests,
            job.display(),
            self.tools.agent.display(),
            self.tools.remote.display()
        );
        let mut command = self.images.qemu();
        command
            .args([
                "-accel",
                "tcg,thread=single",
                "-cpu",
                "max",
                "-machine",
                "q35,memory-backend=ram,kernel-irqchip=split",
            ])
            .arg("-object")
            .arg(format!("memory-backend-memfd,id=ram,size={MEMORY}M,share=on"))
            .arg("-m")
            .arg(format!("{MEMORY}M"))
            .args(["-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio"])
            // Without caching mode QEMU aborts when the guest turns the IOMMU on.
            .args(["-device", "intel-iommu,intremap=on,caching-mode=on"])
            .arg("-kernel")
            .arg(&self.images.kernel)
            .arg("-initrd")
            .arg(&self.images.initrd)
            .args(["-append", &kernel_line])
            .args(["-virtfs", "local,path=/,security_model=none,readonly=on,mount_tag=root,multidevs=remap"])
            .args(["-netdev", "socket,id=net,mcast=230.9.0.1:12309,localaddr=127.0.0.1"])
            .arg("-device")
            .arg(format!("virtio-net-pci,netdev=net,mac=52:54:00:09:00:{:02x},romfile=", 0x10 + id))
            .args(["-device", &adapter(LEFT, Self::socket(directory, left, "b"))])
            .args(["-device", &adapter(RIGHT, Self::socket(directory, id, "a"))]);
        command
    }
}
