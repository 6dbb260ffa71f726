//! An installed MPI, and the layout of its ranks over emulated hosts.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Result};

/// The paths of an MPICH's compiler wrapper and launcher.
#[derive(Clone, Debug)]
pub struct Mpi {
    prefix: PathBuf,
    mpicc: PathBuf,
    mpiexec: PathBuf,
}

impl Mpi {
    /// Returns the MPICH that set-up has installed below `prefix`.
    pub fn of_prefix(prefix: &Path) -> Self {
        let [mpicc, mpiexec] = ["bin/mpicc", "bin/mpiexec"].map(|program| prefix.join(program));
        Self { prefix: prefix.to_path_buf(), mpicc, mpiexec }
    }

    /// Returns another MPICH that is installed below `prefix`, for comparison. If several MPIs share that directory (as
    /// on Debian), the names of MPICH's programs end in `.mpich`.
    pub fn foreign(prefix: &Path) -> Result<Self> {
        let find = |name: &str| Some(wrapper(prefix, name)).filter(|program| program.exists());
        match (find("mpicc"), find("mpiexec")) {
            (Some(mpicc), Some(mpiexec)) => Ok(Self { prefix: prefix.to_path_buf(), mpicc, mpiexec }),
            _ => bail!("there is no bin/mpicc and bin/mpiexec in {}", prefix.display()),
        }
    }

    /// Returns the directory below which it is installed.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Returns the path of the C compiler wrapper.
    pub fn mpicc(&self) -> &Path {
        &self.mpicc
    }

    /// Returns the path of the compiler wrapper of that name.
    pub fn wrapper(&self, name: &str) -> PathBuf {
        wrapper(&self.prefix, name)
    }

    /// Returns a call of mpiexec with this layout and further options; the caller adds the program.
    pub fn run(&self, layout: &Layout, options: &[String]) -> Command {
        self.launched(&["-launcher".to_string(), "fork".to_string()], layout, options)
    }

    /// Like [`Mpi::run`], with the options that select hydra's launcher.
    pub fn launched(&self, launcher: &[String], layout: &Layout, options: &[String]) -> Command {
        let mut command = Command::new(&self.mpiexec);
        command.args(launcher).args(["-hosts", &layout.hosts(), "-n"]).arg(layout.ranks().to_string()).args(options);
        command
    }
}

fn wrapper(prefix: &Path, name: &str) -> PathBuf {
    let named = prefix.join("bin").join(format!("{name}.mpich"));
    if named.exists() {
        return named;
    }
    prefix.join("bin").join(name)
}

/// The number of ranks on each emulated host. Ranks are numbered in blocks: the first host has the first ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout(Vec<usize>);

impl Layout {
    /// Spreads `ranks` over at most `hosts` hosts, as evenly as possible.
    pub fn spread(ranks: usize, hosts: usize) -> Self {
        let hosts = hosts.clamp(1, ranks.max(1));
        Self((0..hosts).map(|host| ranks / hosts + usize::from(host < ranks % hosts)).collect())
    }

    /// Places `per_host` ranks on each of at most `hosts` hosts, and more on each if these do not suffice.
    pub fn fill(ranks: usize, hosts: usize, per_host: usize) -> Self {
        let needed = ranks.div_ceil(per_host.max(1));
        Self::spread(ranks, needed.min(hosts))
    }

    /// Places `ranks` at random on at most `hosts` hosts: unevenly, but with at least one on each.
    pub fn scattered(ranks: usize, hosts: usize, rng: &mut fastrand::Rng) -> Self {
        let hosts = rng.usize(1..=hosts.clamp(1, ranks.max(1)));
        let mut counts = vec![usize::from(ranks > 0); hosts];
        (hosts..ranks).for_each(|_| counts[rng.usize(..hosts)] += 1);
        Self(counts)
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.0.iter().sum()
    }

    /// Returns the number of hosts that have a rank.
    pub fn hosts_used(&self) -> usize {
        self.0.len()
    }

    /// Returns true if a host has a single rank and another host has several.
    pub fn has_lone_rank(&self) -> bool {
        self.0.contains(&1) && self.0.iter().any(|ranks| *ranks > 1)
    }

    /// Returns the value of hydra's option `-hosts`. Without the counts hydra would place ranks round-robin.
    pub fn hosts(&self) -> String {
        let hosts: Vec<String> = self.0.iter().enumerate().map(|(host, ranks)| format!("h{host}:{ranks}")).collect();
        hosts.join(",")
    }

    /// Returns a short description: `4x2` (4 hosts of 2 ranks) or `3+2` (2 hosts, of 3 and 2 ranks).
    pub fn describe(&self) -> String {
        let count = self.0.len();
        if self.0.iter().all(|ranks| *ranks == self.0[0]) {
            return format!("{count}x{}", self.0[0]);
        }
        let counts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        counts.join("+")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_spread_in_blocks() {
        assert_eq!(Layout::spread(8, 4).hosts(), "h0:2,h1:2,h2:2,h3:2");
        assert_eq!(Layout::spread(9, 4).hosts(), "h0:3,h1:2,h2:2,h3:2");
        assert_eq!(Layout::spread(3, 4).hosts(), "h0:1,h1:1,h2:1");
        assert_eq!(Layout::spread(9, 4).describe(), "3+2+2+2");
        assert_eq!(
            [(5, 2), (5, 3), (4, 4)].map(|(ranks, hosts)| Layout::spread(ranks, hosts).has_lone_rank()),
            [false, true, false]
        );
        assert_eq!(Layout::spread(4, 4).describe(), "4x1");
    }

    #[test]
    fn scattered_ranks_are_all_there() {
        let mut rng = fastrand::Rng::with_seed(7);
        for (ranks, hosts) in [(1, 4), (4, 4), (10, 3), (33, 5)] {
            let layout = Layout::scattered(ranks, hosts, &mut rng);
            assert_eq!(layout.ranks(), ranks);
            assert!(layout.hosts_used() <= hosts && layout.0.iter().all(|count| *count > 0));
        }
    }

    #[test]
    fn hosts_are_filled_before_another_is_taken() {
        assert_eq!(Layout::fill(4, 4, 2), Layout(vec![2, 2]));
        assert_eq!(Layout::fill(5, 4, 2), Layout(vec![2, 2, 1]));
        assert_eq!(Layout::fill(33, 4, 1), Layout(vec![9, 8, 8, 8]));
        assert_eq!(Layout::fill(1, 4, 1), Layout(vec![1]));
    }
}
