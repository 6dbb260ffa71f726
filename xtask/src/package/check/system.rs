//! The Debian packages in fresh systems, made by debootstrap.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use super::{of_downloads, write_programs, Trial};
use crate::paths;
use crate::setup::{apt, packages};

/// Packages of the system, beside the smallest one, that the steps need: a reader of manuals, shells, modules, Python.
const BESIDE: &str = "ca-certificates man-db bash-completion zsh fish environment-modules python3-venv";

/// Certificates of the machine, with which downloads may be signed.
const CERTIFICATES: &str = "etc/ssl/certs/ca-certificates.crt";

/// The user who runs a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Root,
    /// An ordinary user, in a home directory with the programs.
    User,
}

/// Steps after the packages were installed: name, script, text that it must print.
const STEPS: &[(By, &str, &str, &str)] = &[
    (By::User, "mpicc", "mpicc mpi.c -o mpi", ""),
    (By::User, "C, one host", "mpiexec -n 4 ./mpi", "sum 6 of 4 ranks"),
    (By::User, "C, 4 hosts of 2 ranks", "ntbring run -H 4 -n 8 ./mpi", "sum 28 of 8 ranks"),
    (By::User, "oshcc", "oshcc shmem.c -o shmem", ""),
    (By::User, "OpenSHMEM, one host", "oshrun -np 4 ./shmem", "sum 6 of 4 PEs"),
    (By::User, "OpenSHMEM, 4 hosts", "ntbring run -H 4 ./shmem", "sum 6 of 4 PEs"),
    (By::User, "pip install mpi4py", "python3 -m venv own && own/bin/pip install --only-binary mpi4py mpi4py", "Successfully"),
    (By::User, "mpi4py, 4 hosts", "ntbring run -H 4 own/bin/python -m mpi4py.bench ringtest", "time for"),
    (By::User, "man pages", "man -w ntbring ntbring-run mpiexec mpirun mpicc && man ntbring-run | cat", "ntbring-run"),
    (
        By::User,
        "completion: bash",
        "bash -c '. /usr/share/bash-completion/bash_completion; _completion_loader ntbring; complete -p ntbring'",
        "-F _ntbring",
    ),
    (By::User, "completion: zsh", "zsh -fc 'autoload -Uz compinit; compinit -uD; print ${_comps[ntbring]}'", "_ntbring"),
    (By::User, "completion: fish", "fish -c 'complete -C \"ntbring ru\"'", "run"),
    (
        By::User,
        "module",
        "bash -c '. /usr/share/modules/init/bash; module load mpi/ntbring; command -v mpicc; pkg-config --libs mpich || true'",
        "/usr/lib/ntbring/bin/mpicc",
    ),
    (
        By::Root,
        "beside Debian's mpich",
        "apt-get -q install -y --no-install-recommends mpich libmpich-dev; readlink -f /usr/bin/mpicc /usr/bin/mpirun; \
         update-alternatives --set mpi /usr/lib/ntbring/bin/mpicc; \
         update-alternatives --set mpirun /usr/lib/ntbring/bin/mpirun; mpicc -show; apt-get -q remove -y mpich libmpich-dev",
        "-I/usr/lib/ntbring/include",
    ),
    (By::User, "C, 4 hosts, afterwards", "mpicc mpi.c -o mpi && ntbring run -H 4 ./mpi", "sum 6 of 4 ranks"),
    (
        By::Root,
        "apt remove",
        "apt-get -q purge -y ntbring ntbring-dev; \
         if ls -d /usr/lib/ntbring /usr/bin/ntb* /usr/bin/mpi* /usr/bin/osh* 2>/dev/null | grep .; then exit 1; fi; \
         echo nothing left",
        "nothing left",
    ),
];

/// Steps with the wheel in the system.
const WHEEL_STEPS: &[(By, &str, &str, &str)] = &[
    (By::User, "python3 -m venv", "python3 -m venv env", ""),
    (By::User, "pip install ntbring", "env/bin/pip install /opt/packages/*.whl", "Successfully"),
    (By::User, "pip install mpi4py", "env/bin/pip install --only-binary mpi4py mpi4py", "Successfully"),
    (By::User, "wheel: mpi4py", ". env/bin/activate; mpiexec -n 4 python -m mpi4py.bench ringtest", "time for"),
    (
        By::User,
        "wheel: C, 4 hosts of 2 ranks",
        ". env/bin/activate; mpicc mpi.c -o mpi; ntbring run -H 4 -n 8 ./mpi",
        "sum 28 of 8 ranks",
    ),
    (
        By::User,
        "wheel: OpenSHMEM, 4 hosts",
        ". env/bin/activate; oshcc shmem.c -o shmem; ntbring run -H 4 ./shmem",
        "sum 6 of 4 PEs",
    ),
];

/// Installs packages in a fresh system of this release and runs programs there. Needs root.
pub fn system(suite: &str, made: &[PathBuf]) -> Result<Trial> {
    if !rustix::process::geteuid().is_root() {
        bail!("--chroot {suite}: only root can make a system in a directory");
    }
    packages::install(&["debootstrap"])?;
    let root = paths::target().join("packages").join(format!("system-{suite}"));
    paths::remove(&root)?;
    let mirror = apt::mirror()?;
    let trial = Trial::run(suite, |trial| {
        let mut debootstrap = Command::new("debootstrap");
        trial.step("debootstrap", debootstrap.arg("--variant=minbase").arg(suite).arg(&root).arg(mirror), "")?;
        prepare(&root, made)?;
        let install = format!("apt-get -q update; apt-get -q install -y --no-install-recommends {BESIDE}");
        trial.step("apt install: shells, man, Python", &mut inside(&root, By::Root, &install), "")?;
        copy_if_there(CERTIFICATES, &root)?;
        let user = "useradd -m -s /bin/bash user; cp /opt/programs/* ~user; chown -R user: ~user";
        trial.step("an ordinary user", &mut inside(&root, By::Root, user), "")?;
        let install = "apt-get -q install -y --no-install-recommends /opt/packages/*.deb";
        trial.step("apt install: ntbring", &mut inside(&root, By::Root, install), "")?;
        for &(by, what, script, expected) in STEPS {
            trial.step(what, &mut inside(&root, by, script), expected)?;
        }
        let wheel = made.iter().any(|file| file.extension().is_some_and(|extension| extension == "whl"));
        for &(by, what, script, expected) in WHEEL_STEPS.iter().filter(|_| wheel) {
            trial.step(what, &mut inside(&root, by, script), expected)?;
        }
        Ok(())
    })?;
    paths::remove(&root)?;
    Ok(trial)
}

/// Puts packages, programs, and the settings of downloads into a system.
fn prepare(root: &Path, made: &[PathBuf]) -> Result<()> {
    let to = root.join("opt/packages");
    fs::create_dir_all(&to).with_context(|| format!("cannot make {}", to.display()))?;
    let kinds = ["deb", "whl"];
    for file in made.iter().filter(|file| file.extension().is_some_and(|e| kinds.iter().any(|kind| e == *kind))) {
        let name = file.file_name().context("a package has no name")?;
        fs::copy(file, to.join(name)).with_context(|| format!("cannot copy {}", file.display()))?;
    }
    write_programs(&root.join("opt/programs"))?;
    copy_if_there("etc/pip.conf", root)
}

fn copy_if_there(file: &str, root: &Path) -> Result<()> {
    let from = Path::new("/").join(file);
    if from.exists() {
        fs::copy(&from, root.join(file)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(())
}

/// Returns a command that runs a script in a system, with file systems of its own for processes and shared memory.
fn inside(root: &Path, by: By, script: &str) -> Command {
    let begin = match by {
        By::Root => "exec",
        By::User => "export HOME=/home/user; cd; exec runuser -u user --",
    };
    let whole = format!("mount -t tmpfs -o mode=1777 tmpfs /dev/shm; {begin} /bin/sh -ec \"$1\"");
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.arg(format!("--root={}", root.display())).args(["/bin/sh", "-ec", &whole, "sh", script]);
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("HOME", "/root").env("LANG", "C.UTF-8");
    command.env("DEBIAN_FRONTEND", "noninteractive").envs(of_downloads());
    command
}
