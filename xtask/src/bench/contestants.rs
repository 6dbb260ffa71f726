//! The contestants that are measured: ntbring, and the other MPIs of this machine.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::bench::jobs::Shape;
use crate::mpi::{Layout, Mpi};
use crate::setup::Installed;

/// The contestant that all others are compared with.
pub const OURS: &str = "ntbring";

/// The peer that times suites, too: MPICH on UCX as `apt-get install mpich` installs it, with every rank a host.
pub const ON_UCX: &str = "mpich-ucx";

/// The role of a contestant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// ntbring between neighbours on the ring.
    Ours,
    /// ntbring between ranks that are further apart.
    Distance,
    /// ntbring under a link model.
    Model,
    /// A model of MPI-VMMC: two processes without MPI.
    Ablation,
    /// ntbring, as it is compared with the raw window.
    Efficiency,
    /// Another MPI.
    Peer,
}

/// The way to start the processes of a contestant.
#[derive(Clone)]
pub enum Launcher {
    /// A ring of emulated hosts, on which the pair is this many links apart.
    Ring(Mpi, usize),
    /// The mpiexec of another MPICH, with these options.
    Hydra(PathBuf, &'static [&'static str]),
    /// The mpiexec of Open MPI, with these options.
    Orte(PathBuf, &'static [&'static str]),
    /// No launcher: the program starts its second process itself. The names of the model and of the link model.
    None(&'static str, &'static str),
}

/// An MPI and the way to run ranks with it.
#[derive(Clone)]
pub struct Contestant {
    /// Name, as the head of its column.
    pub name: &'static str,
    /// Description for the legend.
    pub what: String,
    /// The compiler wrapper; None if the contestant is not an MPI.
    pub mpicc: Option<PathBuf>,
    /// The ending of its executables' names. Contestants of the same MPI share executables.
    pub suffix: &'static str,
    /// Its role.
    pub role: Role,
    /// Environment variables to set for it.
    pub env: Vec<(String, String)>,
    launcher: Launcher,
}

impl Contestant {
    /// Adds environment variables.
    pub fn with_env(mut self, env: &[(&str, &str)]) -> Self {
        self.env.extend(env.iter().map(|(name, value)| (name.to_string(), value.to_string())));
        self
    }

    /// Returns the rank that rank 0 of a pair communicates with.
    pub fn peer(&self) -> usize {
        match self.launcher {
            Launcher::Ring(_, distance) => distance,
            _ => 1,
        }
    }

    /// Returns the number of ranks to start for this shape. On a ring the hosts between the pair have ranks, too.
    pub fn ranks(&self, shape: Shape) -> usize {
        match (&self.launcher, shape) {
            (Launcher::Ring(_, distance), Shape::Pair) => 2 * distance,
            _ => shape.ranks(),
        }
    }

    /// Returns a call of its compiler wrapper; None if the contestant is not an MPI.
    pub fn compiler(&self) -> Option<Command> {
        let mut command = Command::new(self.mpicc.as_ref()?);
        command.envs(self.env.iter().cloned());
        Some(command)
    }

    /// Returns the command that runs a program; the caller adds the program's options.
    pub fn command(&self, shape: Shape, program: &Path) -> Command {
        let ranks = self.ranks(shape);
        let mut command = match &self.launcher {
            Launcher::Ring(mpi, _) => {
                let hosts = if shape == Shape::Pairs { 2 } else { ranks };
                mpi.run(&Layout::spread(ranks, hosts), &[])
            }
            Launcher::Hydra(mpiexec, options) => {
                let mut command = Command::new(mpiexec);
                command.args(*options).args(["-n", &ranks.to_string()]);
                command
            }
            Launcher::Orte(mpiexec, options) => {
                let mut command = Command::new(mpiexec);
                // By default Open MPI refuses more ranks than cores, refuses root, and binds ranks to cores.
                command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
                command.args(*options).args(["-n", &ranks.to_string()]);
                command
            }
            Launcher::None(model, link) => {
                let mut command = Command::new(program);
                command.args(["--model", model, "--link-model", link]);
                return command;
            }
        };
        command.arg(program).envs(self.env.iter().cloned());
        command
    }
}

/// Returns a model of MPI-VMMC on a link.
pub fn model(name: &'static str, what: &'static str, model: &'static str, link: &'static str) -> Contestant {
    let launcher = Launcher::None(model, link);
    Contestant {
        name,
        what: what.to_string(),
        mpicc: None,
        suffix: "",
        role: Role::Ablation,
        env: Vec::new(),
        launcher,
    }
}

/// Returns ntbring with settings of its own, its pair `distance` links apart.
pub fn ours(installed: &Installed, name: &'static str, distance: usize, role: Role, what: &'static str) -> Contestant {
    Contestant {
        name,
        what: what.to_string(),
        mpicc: Some(installed.mpi.mpicc().to_path_buf()),
        suffix: "ntbring",
        role,
        env: Vec::new(),
        launcher: Launcher::Ring(installed.mpi.clone(), distance),
    }
}

/// Returns one of several builds of ntbring, run between neighbours; its name is the ending of its executables' names.
pub fn build(mpi: &Mpi, name: &'static str, what: String, env: Vec<(String, String)>) -> Contestant {
    Contestant {
        name,
        what,
        mpicc: Some(mpi.mpicc().to_path_buf()),
        suffix: name,
        role: Role::Ours,
        env,
        launcher: Launcher::Ring(mpi.clone(), 1),
    }
}

/// Returns another MPI; `suffix` is the ending of its executables' names.
pub fn peer(name: &'static str, what: String, mpicc: &Path, suffix: &'static str, launcher: Launcher) -> Contestant {
    let mpicc = Some(mpicc.to_path_buf());
    Contestant { name, what, mpicc, suffix, role: Role::Peer, env: Vec::new(), launcher }
}

/// Returns Debian's MPICH, run in several ways.
pub fn debian_mpich(mpicc: &Path, mpiexec: &Path) -> Vec<Contestant> {
    let one = |name, what: &str, env| {
        let launcher = Launcher::Hydra(mpiexec.to_path_buf(), &[]);
        peer(name, what.to_string(), mpicc, "mpich", launcher).with_env(env)
    };
    let apart = ("MPIR_CVAR_NOLOCAL", "1");
    vec![
        one(ON_UCX, "mpich, every rank a host: ch4:ucx over UCX's posix", &[apart, ("UCX_TLS", "posix,self")]),
        one("mpich-ucx-default", "mpich, every rank a host: ch4:ucx over what UCX chooses", &[apart]),
        one("mpich-shm", "mpich, all ranks on one host: its own shared memory", &[]),
    ]
}

/// Returns Debian's Open MPI, run in several ways.
pub fn debian_openmpi(mpicc: &Path, mpiexec: &Path) -> Vec<Contestant> {
    let one = |name, what: &str, options| {
        peer(name, what.to_string(), mpicc, "openmpi", Launcher::Orte(mpiexec.to_path_buf(), options))
    };
    vec![
        one("openmpi", "openmpi as it comes", &[]),
        one(
            "openmpi-nocma",
            "openmpi without copies by the kernel (with which its accumulates may crash)",
            &["--mca", "btl_vader_single_copy_mechanism", "none"],
        ),
    ]
}

/// Searches the user's PATH for a program.
pub fn on_path(program: &str) -> Option<PathBuf> {
    env::split_paths(&env::var_os("PATH")?).map(|dir| dir.join(program)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(command: &Command) -> String {
        command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_ring_gets_the_hosts_that_the_distance_needs() {
        let mut one = debian_mpich(Path::new("/x/mpicc"), Path::new("/x/mpiexec")).remove(0);
        one.launcher = Launcher::Ring(Mpi::of_prefix(Path::new("/x")), 2);
        assert_eq!(one.peer(), 2);
        let shown = words(&one.command(Shape::Pair, Path::new("prog")));
        assert_eq!(shown, "-launcher fork -hosts h0:1,h1:1,h2:1,h3:1 -n 4 prog");
        let shown = words(&one.command(Shape::Pairs, Path::new("prog")));
        assert_eq!(shown, "-launcher fork -hosts h0:2,h1:2 -n 4 prog");
    }

    #[test]
    fn others_get_a_number_of_ranks() {
        let all = debian_mpich(Path::new("/x/mpicc"), Path::new("/x/mpiexec"));
        assert_eq!(words(&all[0].command(Shape::Hosts(8), Path::new("prog"))), "-n 8 prog");
        assert!(all.iter().all(|one| one.role == Role::Peer && one.peer() == 1));
        let shown = words(&model("m", "", "1-packed", "gen3x8").command(Shape::Pair, Path::new("prog")));
        assert_eq!(shown, "--model 1-packed --link-model gen3x8");
        let all = debian_openmpi(Path::new("/x/mpicc"), Path::new("/x/mpiexec"));
        assert!(words(&all[1].command(Shape::Pair, Path::new("prog"))).ends_with("mechanism none -n 2 prog"));
    }
}
