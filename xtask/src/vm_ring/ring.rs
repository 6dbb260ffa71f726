//! Virtual machines in a ring, each with the agent and two adapters.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::accel::Accel;
use super::console::{Answer, Console};
use super::images::Images;
use super::launchers::Launcher;
use super::machine::{fresh_directory, Config, Machine};
use super::models::Models;
use super::tools::Tools;

/// The user of all jobs.
pub const USER: u32 = 1000;

/// The setting that all rings of a command share.
pub struct Setting<'a> {
    /// QEMU, kernel and file system.
    pub images: &'a Images,
    /// Programs beside the machines and in them.
    pub tools: &'a Tools,
    /// Directory of further programs, which is laid over the file system of the machines.
    pub over: Option<PathBuf>,
    /// Launcher of jobs.
    pub launcher: Launcher,
    /// Directory below which MPI is installed; empty if no job runs.
    pub mpi: PathBuf,
    /// Directory of the MPI programs; empty if no job runs.
    pub programs: PathBuf,
    /// Kind of chip, as the models' server names it.
    pub chip: String,
    /// Kind of processors.
    pub accel: Accel,
}

/// A job: a program on some of the machines.
#[derive(Clone, Debug, Default)]
pub struct Job {
    /// Numbers of the machines.
    pub hosts: Vec<u32>,
    /// Ranks on each.
    pub ranks: u32,
    /// Number of machines, the first ones, that have a rank more.
    pub more: u32,
    /// The executable.
    pub program: PathBuf,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Options of mpiexec.
    pub options: Vec<String>,
    /// The directory in which it runs; /tmp if it is None.
    pub directory: Option<PathBuf>,
    /// Longest time.
    pub limit: Duration,
    /// True if the limit is what is left of the time for many jobs: this one has not failed if it needs more.
    pub is_cut: bool,
}

impl Job {
    /// Returns the number of ranks.
    pub fn size(&self) -> u32 {
        self.hosts.len() as u32 * self.ranks + self.more
    }
}

/// A ring that runs.
pub struct Ring<'a> {
    setting: &'a Setting<'a>,
    /// The machines; None in the place of one that was killed.
    machines: Vec<Option<Machine>>,
    /// The models of the adapters.
    pub models: Models,
    directory: PathBuf,
}

impl<'a> Setting<'a> {
    /// Returns the words of the kernel's command line that name programs.
    pub fn words(&self, drives: bool) -> String {
        let [agent, remote, tool] =
            [&self.tools.agent, &self.tools.remote, &self.tools.tool].map(|path| path.display().to_string());
        let drive = if drives { "agent" } else { "none" };
        let over = if self.over.is_some() { "yes" } else { "no" };
        format!("agent={agent} remote={remote} tool={tool} user={USER} drive={drive} over={over}")
    }

    /// Boots a ring, and waits until all machines are up. With `drives` each runs the agent.
    pub fn ring(&'a self, guests: u32) -> Result<Ring<'a>> {
        let directory = fresh_directory("run")?;
        self.launcher.write_files(&directory, self.over.as_deref(), guests)?;
        let models = Models::start(&self.tools.models, &self.chip, guests, &directory)?;
        let network = fastrand::u16(20_000..60_000);
        let mut machines = Vec::new();
        for id in 0..guests {
            let left = (id + guests - 1) % guests;
            let adapters = vec![models.socket(left, "b"), models.socket(id, "a")];
            let (words, accel, directory, over) = (self.words(true), self.accel, directory.clone(), self.over.clone());
            let chip = self.chip.clone();
            let config = Config { id, guests, adapters, chip, over, words, network, accel, directory };
            machines.push(Some(config.start(self.images)?));
        }
        for machine in machines.iter_mut().flatten() {
            machine.wait()?;
        }
        let ring = Ring { setting: self, machines, models, directory };
        (0..guests).try_for_each(|id| ring.wait_for_agent(id))?;
        self.launcher.start(&ring)?;
        Ok(ring)
    }
}

impl Ring<'_> {
    /// Returns the number of machines.
    pub fn guests(&self) -> u32 {
        self.machines.len() as u32
    }

    /// Returns the way to run commands in a machine.
    pub fn console(&self, id: u32) -> Result<Console> {
        Ok(self.machine(id)?.console)
    }

    /// Returns a machine. Fails if it was killed.
    pub fn machine(&self, id: u32) -> Result<&Machine> {
        self.machines[id as usize].as_ref().with_context(|| format!("virtual machine {id} was killed"))
    }

    /// Kills a machine (SIGKILL of QEMU), and returns its configuration.
    pub fn kill(&mut self, id: u32) -> Result<Config> {
        let machine = self.machines[id as usize].take().with_context(|| format!("virtual machine {id} was killed"))?;
        Ok(machine.kill())
    }

    /// Boots a machine again.
    pub fn boot(&mut self, config: Config) -> Result<()> {
        let id = config.id;
        let mut machine = config.start(self.setting.images)?;
        machine.wait()?;
        self.machines[id as usize] = Some(machine);
        self.wait_for_agent(id)
    }

    /// Waits until the agent of a machine has its socket.
    pub fn wait_for_agent(&self, id: u32) -> Result<()> {
        let wait = "n=0; while [ ! -S /run/ntbring/agent.sock ] && [ $n -lt 300 ]; do sleep 0.1; n=$((n+1)); done; \
                    [ -S /run/ntbring/agent.sock ]";
        let answer = self.console(id)?.root(wait)?;
        anyhow::ensure!(answer.success(), "the agent of virtual machine {id} does not start");
        Ok(())
    }

    /// Returns a job of a program of tests/mpi on all machines.
    pub fn job(&self, program: &str, ranks: u32, limit: Duration) -> Job {
        let hosts = (0..self.guests()).collect();
        Job { hosts, ranks, program: self.setting.programs.join(program), limit, ..Job::default() }
    }

    /// Runs a job, launched at the first of its machines, and waits for its end.
    pub fn run(&self, job: &Job) -> Result<Answer> {
        self.console(job.hosts[0])?.user(&self.command(job), job.limit)
    }

    /// Starts a job, and returns the thread that waits for its end.
    pub fn start(&self, job: &Job) -> Result<Running> {
        let (console, command, limit) = (self.console(job.hosts[0])?, self.command(job), job.limit);
        let thread = thread::spawn(move || (console.user(&command, limit), Instant::now()));
        Ok(Running { thread, start: Instant::now() })
    }

    fn command(&self, job: &Job) -> String {
        let directory = job.directory.as_deref().unwrap_or(Path::new("/tmp"));
        format!("cd {} && {}", directory.display(), self.setting.launcher.command(self, job))
    }

    /// Returns the setting.
    pub fn setting(&self) -> &Setting<'_> {
        self.setting
    }

    /// Returns the directory of the ring's files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Runs a command as root in every machine; `command` is given the number of the machine. Fails if the command does.
    pub fn everywhere(&self, command: impl Fn(u32) -> String) -> Result<()> {
        for id in 0..self.guests() {
            let answer = self.console(id)?.root(&command(id))?;
            anyhow::ensure!(answer.success(), "virtual machine {id}: {}: {}", command(id), answer.output);
        }
        Ok(())
    }

    /// Returns the number of packets that machines have sent each other over the network, and of bytes.
    pub fn network(&self) -> Result<(u64, u64)> {
        let mut sum = (0, 0);
        for machine in self.machines.iter().flatten() {
            let answer = machine.console.root("cd /sys/class/net/eth0/statistics; cat tx_packets tx_bytes")?;
            let counts: Vec<u64> = answer.text().split_whitespace().filter_map(|word| word.parse().ok()).collect();
            if let [packets, bytes] = counts[..] {
                sum = (sum.0 + packets, sum.1 + bytes);
            }
        }
        Ok(sum)
    }

    /// Keeps the output of a job that has failed; returns the file.
    pub fn keep(&self, name: &str, answer: &Answer) -> Result<PathBuf> {
        let log = self.directory.join(format!("failed-{}.log", name.replace([' ', '/', ','], "-")));
        fs::write(&log, &answer.output)?;
        Ok(log)
    }

    /// Returns the path of the agent, which is the same in the machines.
    pub fn agent(&self) -> &Path {
        &self.setting.tools.agent
    }
}

/// A job that was started.
pub struct Running {
    thread: thread::JoinHandle<(Result<Answer>, Instant)>,
    start: Instant,
}

impl Running {
    /// Returns true if it has ended.
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Returns the time since the start.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Waits for the end; returns the time of it, too.
    pub fn wait(self) -> Result<(Answer, Instant)> {
        let (answer, end) = self.thread.join().map_err(|_| anyhow::anyhow!("a thread has panicked"))?;
        Ok((answer?, end))
    }
}
