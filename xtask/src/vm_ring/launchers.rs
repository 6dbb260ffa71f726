//! The launchers that start the processes of jobs on a ring of virtual machines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Result};
use clap::ValueEnum;

use super::ring::{Job, Ring, USER};
use crate::process;

/// Longest time until all nodes of Slurm are there.
const START: Duration = Duration::from_secs(120);

/// A launcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Launcher {
    /// mpiexec, with a stand-in for ssh
    #[default]
    Remote,
    /// mpiexec over ssh
    Ssh,
    /// srun of Slurm, with PMI-2
    Slurm,
}

impl Launcher {
    /// Returns true if it consists of programs that are laid over the file system of the machines.
    pub fn is_fetched(self) -> bool {
        self != Launcher::Remote
    }

    /// Writes the files that the machines of a ring need into its directory. To be called before they boot, since they
    /// keep what they have seen of a directory; `over` holds the programs that were fetched.
    pub fn write_files(self, directory: &Path, over: Option<&Path>, guests: u32) -> Result<()> {
        let place = place(directory);
        fs::create_dir_all(&place)?;
        match self {
            Launcher::Remote => Ok(()),
            Launcher::Ssh => ssh_files(&place, over),
            Launcher::Slurm => slurm_files(&place, guests),
        }
    }

    /// Starts what it needs in the machines of a ring.
    pub fn start(self, ring: &Ring) -> Result<()> {
        let place = place(ring.directory());
        match self {
            Launcher::Remote => Ok(()),
            Launcher::Ssh => start_ssh(ring, &place),
            Launcher::Slurm => start_slurm(ring, &place),
        }
    }

    /// Returns the command that starts a job.
    pub fn command(self, ring: &Ring, job: &Job) -> String {
        let place = place(ring.directory());
        match self {
            Launcher::Remote => mpiexec(ring, job, "rsh", &ring.setting().tools.remote),
            Launcher::Ssh => mpiexec(ring, job, "ssh", &place.join("ssh")),
            Launcher::Slurm => srun(job, &place.join("slurm.conf")),
        }
    }
}

/// Returns the directory of a launcher's files, which the machines see.
fn place(directory: &Path) -> PathBuf {
    directory.join("launcher")
}

fn mpiexec(ring: &Ring, job: &Job, launcher: &str, executable: &Path) -> String {
    let count = |index: usize| job.ranks + u32::from((index as u32) < job.more);
    let hosts = job.hosts.iter().enumerate().map(|(index, host)| format!("node{host}:{}", count(index)));
    let env: Vec<String> = job.env.iter().map(|(name, value)| format!("-genv {name} {value} ")).collect();
    format!(
        "{mpiexec} -launcher {launcher} -launcher-exec {executable} -hosts {hosts} -n {ranks} {options} \
         -genv NTBRING_DEVICE pci {env}{program} {args}",
        mpiexec = ring.setting().mpi.join("bin/mpiexec").display(),
        executable = executable.display(),
        hosts = hosts.collect::<Vec<_>>().join(","),
        ranks = job.size(),
        options = job.options.join(" "),
        env = env.concat(),
        program = job.program.display(),
        args = job.args.join(" "),
    )
}

fn srun(job: &Job, configuration: &Path) -> String {
    let hosts: Vec<String> = job.hosts.iter().map(|host| format!("node{host}")).collect();
    let env: Vec<String> = job.env.iter().map(|(name, value)| format!("{name}={value} ")).collect();
    format!(
        "SLURM_CONF={configuration} NTBRING_DEVICE=pci {env}srun --mpi=pmi2 --overcommit -w {hosts} -N {nodes} \
         -n {ranks} {program} {args}",
        configuration = configuration.display(),
        env = env.concat(),
        hosts = hosts.join(","),
        nodes = hosts.len(),
        ranks = job.size(),
        program = job.program.display(),
        args = job.args.join(" "),
    )
}

/// Writes the keys and configurations of sshd and ssh; the user of jobs can log in with a key.
fn ssh_files(place: &Path, over: Option<&Path>) -> Result<()> {
    let at = |name: &str| place.join(name).display().to_string();
    let fetched = over.map(|over| over.join("usr/bin/ssh-keygen")).filter(|path| path.exists());
    for key in ["host", "user"] {
        let mut make = Command::new(fetched.as_deref().unwrap_or(Path::new("ssh-keygen")));
        make.args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]);
        process::check_logged(&mut make, &place.join("keys.log"))?;
    }
    let server = format!(
        "HostKey /run/keys/host\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n",
        at("user.pub")
    );
    fs::write(at("sshd.conf"), server)?;
    let client = "Host node*\n IdentityFile /run/keys/user\n StrictHostKeyChecking no\n \
                  UserKnownHostsFile /dev/null\n LogLevel ERROR\n";
    fs::write(at("ssh.conf"), client)?;
    fs::write(at("ssh"), format!("#!/bin/sh\nexec ssh -F {} \"$@\"\n", at("ssh.conf")))?;
    fs::set_permissions(at("ssh"), fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Starts sshd in every machine.
fn start_ssh(ring: &Ring, place: &Path) -> Result<()> {
    ring.everywhere(|_| {
        format!(
            "mkdir -p -m 755 /run/sshd /run/keys && cp {0}/host {0}/user /run/keys && chmod 600 /run/keys/* && \
             chown {USER} /run/keys/user && /usr/sbin/sshd -f {0}/sshd.conf",
            place.display()
        )
    })
}

/// Writes the key of munge and the configuration of Slurm: a node in every machine, and the controller in the first one.
fn slurm_files(place: &Path, guests: u32) -> Result<()> {
    fs::write(place.join("key"), (0..128).map(|_| fastrand::u8(..)).collect::<Vec<_>>())?;
    // Emulated processors are slow: the time limits are longer than usual.
    let lines = [
        "ClusterName=ring\nSlurmctldHost=node0\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n\
         CredType=cred/munge\nMessageTimeout=90\nTCPTimeout=30\nSlurmdTimeout=600\nSlurmctldTimeout=600",
        "StateSaveLocation=/run/slurm/state\nSlurmdSpoolDir=/run/slurm/spool\nSlurmctldPidFile=/run/slurm/controller.pid\n\
         SlurmdPidFile=/run/slurm/node.pid\nSlurmctldLogFile=/run/slurm/controller.log\n\
         SlurmdLogFile=/run/slurm/node.log",
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres\nMpiDefault=pmi2\n\
         ReturnToService=2",
    ];
    let nodes = format!("NodeName=node[0-{}] CPUs=1 State=UNKNOWN", guests - 1);
    let partition = "PartitionName=ring Nodes=ALL Default=YES State=UP";
    // Slurm looks at control groups even if no plugin uses them; the first version needs no systemd.
    fs::write(place.join("cgroup.conf"), "CgroupPlugin=cgroup/v1\nCgroupAutomount=yes\n")?;
    fs::write(place.join("slurm.conf"), format!("{}\n{nodes}\n{partition}\n", lines.join("\n")))?;
    Ok(())
}

/// Starts the daemons of Slurm and munge.
fn start_slurm(ring: &Ring, place: &Path) -> Result<()> {
    let configuration = format!("SLURM_CONF={}", place.join("slurm.conf").display());
    ring.everywhere(|id| {
        let controller = if id == 0 { format!("{configuration} /usr/sbin/slurmctld && ") } else { String::new() };
        format!(
            "mount -t tmpfs none /sys/fs/cgroup; \
             mkdir -p -m 755 /run/munge /run/slurm/state /run/slurm/spool && cp {key} /run/munge/key && \
             chmod 400 /run/munge/key && /usr/sbin/munged --force --key-file /run/munge/key \
             --socket /run/munge/munge.socket.2 --pid-file /run/munge/pid --log-file /run/munge/log \
             --seed-file /run/munge/seed && {controller}{configuration} /usr/sbin/slurmd || \
             {{ cat /run/munge/log /run/slurm/*.log; false; }}",
            key = place.join("key").display()
        )
    })?;
    let (start, first) = (Instant::now(), ring.console(0)?);
    loop {
        let said = first.root(&format!("{configuration} sinfo -h -N -o %T"))?;
        if said.text().lines().filter(|state| *state == "idle").count() as u32 == ring.guests() {
            return Ok(());
        }
        if start.elapsed() > START {
            let logs = first.root("cat /run/slurm/controller.log /run/slurm/node.log")?;
            bail!("the nodes of Slurm are not idle within {START:?}: {}\n{}", said.output, logs.output);
        }
        thread::sleep(Duration::from_millis(500));
    }
}
