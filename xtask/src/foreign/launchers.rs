//! Jobs that other launchers start: hydra over ssh, and Slurm's srun. Their daemons run on this machine for the
//! duration of the tests, with their own configurations and ports.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use super::bench::{fresh, Bench};
use crate::setup::packages;
use crate::{paths, process};

const LIMIT: Duration = Duration::from_secs(60);

/// Time that a daemon may take until it answers.
const START: Duration = Duration::from_secs(20);

/// A daemon that is ended when the tests are over.
struct Daemon(Child);

impl Daemon {
    /// Starts the daemon; its output goes to `log`.
    fn start(command: &mut Command, log: &Path) -> Result<Daemon> {
        let out = fs::File::create(log)?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        Ok(Daemon(command.spawn().with_context(|| process::shown(command))?))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a condition holds. Fails after [`START`].
fn until(what: &str, mut so: impl FnMut() -> bool) -> Result<()> {
    let start = Instant::now();
    while !so() {
        if start.elapsed() > START {
            bail!("{what}: not within {START:?}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Returns `N` unused ports.
fn ports<const N: usize>() -> Result<[u16; N]> {
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

/// Builds the halo exchange in C with the installed mpicc.
fn halo(bench: &mut Bench) -> Result<Option<PathBuf>> {
    let program = bench.place.join("halo");
    let mut compile = Command::new(bench.tool("mpicc"));
    compile.arg(bench.sources().join("halo.c")).arg("-o").arg(&program);
    Ok(bench.test("mpicc halo.c", &mut compile, LIMIT, None)?.then_some(program))
}

/// Tests that a job succeeds and that its ranks ran on the expected number of hosts.
fn on_hosts(bench: &mut Bench, name: &str, command: &mut Command, ranks: usize, hosts: usize) -> Result<()> {
    let stats = bench.place.join("stats.json");
    paths::remove(&stats)?;
    command.env("NTBRING_STATS", &stats);
    if bench.test(name, command, LIMIT, Some("ok"))? {
        let mut lines = Command::new("grep");
        lines.args(["-c", &format!("\"hosts\":{hosts},")]).arg(&stats);
        bench.test(&format!("  {ranks} ranks on {hosts} hosts"), &mut lines, LIMIT, Some(&ranks.to_string()))?;
    }
    Ok(())
}

/// hydra starts the ranks of each host by ssh.
pub fn ssh(bench: &mut Bench) -> Result<()> {
    packages::install(&["openssh-server", "openssh-client"])?;
    let place = fresh(&bench.place)?;
    let at = |name: &str| place.join(name).display().to_string();
    for key in ["host", "user"] {
        let mut make = Command::new("ssh-keygen");
        make.args(["-q", "-t", "ed25519", "-N", "", "-f", &at(key)]);
        process::check_logged(&mut make, &bench.log("keys"))?;
    }
    let [port] = ports()?;
    let daemon = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\nUsePAM no\n",
        at("host"),
        at("user.pub")
    );
    fs::write(at("sshd.conf"), daemon)?;
    let client = format!(
        "Host h?\n HostName 127.0.0.1\n Port {port}\n IdentityFile {}\n StrictHostKeyChecking no\n \
         UserKnownHostsFile {}\n LogLevel ERROR\n",
        at("user"),
        at("known")
    );
    fs::write(at("ssh.conf"), client)?;
    fs::write(at("ssh"), format!("#!/bin/sh\nexec ssh -F {} \"$@\"\n", at("ssh.conf")))?;
    fs::set_permissions(at("ssh"), fs::Permissions::from_mode(0o755))?;
    if rustix::process::geteuid().is_root() {
        fs::create_dir_all("/run/sshd")?;
    }
    let mut sshd = Command::new("/usr/sbin/sshd");
    let _sshd = Daemon::start(sshd.args(["-D", "-e", "-f", &at("sshd.conf")]), &bench.log("sshd"))?;
    until("sshd", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok())?;

    let Some(halo) = halo(bench)? else { return Ok(()) };
    let mpiexec = |bench: &Bench| {
        let mut command = Command::new(bench.tool("mpiexec"));
        command.args(["-launcher", "ssh", "-launcher-exec", &at("ssh")]);
        command
    };
    let mut even = mpiexec(bench);
    even.args(["-hosts", "ha,hb,hc,hd", "-n", "4"]).arg(&halo);
    on_hosts(bench, "halo.c by hydra over ssh", &mut even, 4, 4)?;
    fs::write(at("hosts"), "ha:2\nhb:1\nhc:3\n")?;
    let mut uneven = mpiexec(bench);
    uneven.args(["-f", &at("hosts"), "-n", "6"]).arg(&halo);
    on_hosts(bench, "halo.c on hosts of 2, 1 and 3 ranks", &mut uneven, 6, 3)
}

/// Slurm starts the ranks and speaks PMI with them. It knows one machine, which MPICH is told to treat as several
/// hosts.
pub fn slurm(bench: &mut Bench) -> Result<()> {
    packages::install(&["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge"])?;
    let place = fresh(&bench.place)?;
    let at = |name: &str| place.join(name).display().to_string();
    for folder in ["state", "spool"] {
        fs::create_dir(place.join(folder))?;
    }
    fs::write(at("key"), (0..128).map(|_| fastrand::u8(..)).collect::<Vec<_>>())?;
    fs::set_permissions(at("key"), fs::Permissions::from_mode(0o400))?;
    let mut munged = Command::new("/usr/sbin/munged");
    munged.args(["--foreground", "--force", "--key-file", &at("key"), "--socket", &at("munge")]);
    munged.args(["--pid-file", &at("munge.pid"), "--log-file", &at("munge.said"), "--seed-file", &at("munge.seed")]);
    let _munged = Daemon::start(&mut munged, &bench.log("munged"))?;
    until("munged", || place.join("munge").exists())?;

    let [controller, node] = ports()?;
    let host = process::output(Command::new("hostname").arg("-s"))?.trim().to_string();
    let user = process::output(Command::new("id").arg("-un"))?.trim().to_string();
    let cores = std::thread::available_parallelism()?;
    let lines = [
        format!("ClusterName=ring\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser={user}\nSlurmdUser={user}"),
        format!("SlurmctldPort={controller}\nSlurmdPort={node}"),
        format!("AuthType=auth/munge\nAuthInfo=socket={}\nCredType=cred/munge", at("munge")),
        format!("StateSaveLocation={}\nSlurmdSpoolDir={}", at("state"), at("spool")),
        format!("SlurmctldPidFile={}\nSlurmdPidFile={}", at("controller.pid"), at("node.pid")),
        "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/cons_tres".into(),
        format!("MpiDefault=pmi2\nReturnToService=2\nNodeName={host} NodeAddr=127.0.0.1 CPUs={cores} State=UNKNOWN"),
        "PartitionName=ring Nodes=ALL Default=YES State=UP\n".into(),
    ];
    fs::write(at("slurm.conf"), lines.join("\n"))?;
    let tool = |name: &str| {
        let mut command = Command::new(name);
        command.env("SLURM_CONF", at("slurm.conf"));
        command
    };
    let _controller = Daemon::start(tool("/usr/sbin/slurmctld").arg("-D"), &bench.log("slurmctld"))?;
    let _node = Daemon::start(tool("/usr/sbin/slurmd").args(["-D", "-N", &host]), &bench.log("slurmd"))?;
    until("the node of Slurm", || process::output(&mut tool("sinfo")).is_ok_and(|said| said.contains(" idle ")))?;

    let Some(halo) = halo(bench)? else { return Ok(()) };
    let srun = || {
        let mut command = tool("srun");
        command.args(["--mpi=pmi2", "--overcommit", "-n", "4"]);
        command
    };
    on_hosts(bench, "halo.c by srun", srun().env("MPIR_CVAR_NOLOCAL", "1").arg(&halo), 4, 4)?;
    on_hosts(bench, "halo.c by srun, two ranks a host", srun().env("MPIR_CVAR_NUM_CLIQUES", "2").arg(&halo), 4, 2)?;
    let script = format!("#!/bin/sh\nexec {} -n 4 {}\n", bench.tool("mpiexec").display(), halo.display());
    fs::write(at("job.sh"), script)?;
    let said = at("job.out");
    let mut batch = tool("sbatch");
    batch.args(["--wait", "--ntasks=4", "--overcommit", "--output", &said, &at("job.sh")]);
    bench.test("sbatch of a script with mpiexec", batch.env("MPIR_CVAR_NOLOCAL", "1"), LIMIT, None)?;
    bench.test("  what it has printed", Command::new("cat").arg(&said), LIMIT, Some("ok"))?;
    Ok(())
}
