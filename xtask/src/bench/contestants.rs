//! Who is measured: ntbring, and the other MPIs that this machine has.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::mpi::Layout;
use crate::setup::Installed;

/// An MPI with a way to run two ranks on it.
pub struct Contestant {
    /// For the column.
    pub name: &'static str,
    /// For the legend.
    pub what: &'static str,
    /// The compiler wrapper.
    pub mpicc: PathBuf,
    /// The name of the compiled benchmark.
    pub binary: &'static str,
    /// The rank that rank 0 talks to.
    pub peer: usize,
    program: PathBuf,
    args: Vec<String>,
    env: &'static [(&'static str, &'static str)],
}

impl Contestant {
    /// The command that runs the benchmark; its options are still to be added.
    pub fn command(&self, binary: &Path) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).arg(binary).envs(self.env.iter().copied());
        command
    }
}

/// All that are there.
pub fn all(installed: &Installed) -> Vec<Contestant> {
    let mut all = vec![
        ours(installed, "ntbring", "neighbours on an emulated ring of 2 hosts", 2, 1),
        ours(installed, "ntbring-d2", "opposite hosts on an emulated ring of 4: relayed", 4, 2),
    ];
    if let (Some(mpicc), Some(program)) = (on_path("mpicc.mpich"), on_path("mpiexec.mpich")) {
        all.push(Contestant {
            name: "mpich",
            what: "Debian's mpich, its own shared memory off: ch4:ucx over UCX_TLS=posix,self",
            mpicc,
            binary: "p2p-mpich",
            peer: 1,
            program,
            args: words(&["-n", "2"]),
            env: &[("MPIR_CVAR_NOLOCAL", "1"), ("UCX_TLS", "posix,self")],
        });
    }
    if let (Some(mpicc), Some(program)) = (on_path("mpicc.openmpi"), on_path("mpiexec.openmpi")) {
        all.push(Contestant {
            name: "openmpi",
            what: "Debian's openmpi, shared memory (btl vader)",
            mpicc,
            binary: "p2p-openmpi",
            peer: 1,
            program,
            args: words(&[
                "--allow-run-as-root",
                "--oversubscribe",
                "--mca",
                "pml",
                "ob1",
                "--mca",
                "btl",
                "vader,self",
                "-n",
                "2",
            ]),
            env: &[],
        });
    }
    all
}

fn ours(installed: &Installed, name: &'static str, what: &'static str, hosts: usize, peer: usize) -> Contestant {
    let command = installed.mpi.run(&Layout::spread(hosts, hosts), &[]);
    Contestant {
        name,
        what,
        mpicc: installed.mpi.mpicc().to_path_buf(),
        binary: "p2p-ntbring",
        peer,
        program: command.get_program().into(),
        args: command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect(),
        env: &[],
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(ToString::to_string).collect()
}

fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(program)).find(|file| file.is_file())
}
