//! The libraries that are compared: how to compile for each, and how to start PEs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::rows::{Group, Placement, Program};
use crate::bench::contestants::on_path;
use crate::bench::figures::Figures;
use crate::mpi::{Layout, Mpi};
use crate::{paths, process};

/// The OpenSHMEM library of this repository.
pub const OURS: &str = "ntbring-shmem";
/// MPI windows of this repository's MPI.
pub const WINDOWS: &str = "ntbring-windows";
/// Debian's Open MPI, as it comes and with shared memory chosen.
pub const PEERS: [&str; 2] = ["oshmem", "oshmem-posix"];

/// Flags for every C compiler.
const FLAGS: [&str; 3] = ["-O2", "-Wall", "-Wextra"];

#[derive(Clone)]
enum Launcher {
    Ring(Mpi),
    Oshrun(PathBuf, &'static [&'static str]),
}

/// A library, and a way to run programs with it.
#[derive(Clone)]
pub struct Library {
    /// Name.
    pub name: &'static str,
    /// Description for the legend.
    pub what: &'static str,
    cc: Vec<String>,
    /// Ending of its executables' names.
    suffix: &'static str,
    over_mpi: bool,
    launcher: Launcher,
}

impl Library {
    /// Returns this repository's OpenSHMEM, as it is installed with this MPI.
    pub fn ours(mpi: &Mpi) -> Self {
        let prefix = mpi.prefix();
        let lib = prefix.join("lib").display().to_string();
        let cc = ["cc".to_string(), format!("-I{}", prefix.join("include").display()), format!("-L{lib}")];
        let cc = cc.into_iter().chain([format!("-Wl,-rpath,{lib}")]).collect();
        let what = "this repository's OpenSHMEM, one PE on each host of an emulated ring";
        Self { name: OURS, what, cc, suffix: "ours", over_mpi: false, launcher: Launcher::Ring(mpi.clone()) }
    }

    fn windows(mpi: &Mpi) -> Self {
        let what = "this repository's MPI on the same hosts: MPI_Put and MPI_Win_flush, MPI_Fetch_and_op, collectives";
        let cc = vec![mpi.mpicc().display().to_string()];
        Self { name: WINDOWS, what, cc, suffix: "windows", over_mpi: true, launcher: Launcher::Ring(mpi.clone()) }
    }

    fn oshmem(name: &'static str, oshcc: &Path, what: &'static str, options: &'static [&'static str]) -> Self {
        let launcher = Launcher::Oshrun(oshcc.with_file_name("oshrun"), options);
        Self { name, what, cc: vec![oshcc.display().to_string()], suffix: "oshmem", over_mpi: false, launcher }
    }

    /// Returns true if it can run a group.
    pub fn takes_part(&self, group: &Group) -> bool {
        match self.launcher {
            Launcher::Ring(_) => true,
            Launcher::Oshrun(..) => !group.placement.is_far(),
        }
    }

    /// Returns the path of a program's executable.
    fn binary(&self, program: Program, dir: &Path) -> PathBuf {
        dir.join(format!("{}-{}", program.name(), self.suffix))
    }

    /// Compiles a program.
    pub fn compile(&self, program: Program, dir: &Path) -> Result<()> {
        let mut command = Command::new(&self.cc[0]);
        command.args(FLAGS).arg("-o").arg(self.binary(program, dir));
        let sources = program.sources(self.over_mpi);
        command.args(sources.iter().map(|source| paths::root().join("benches").join(source)));
        command.args(&self.cc[1..]);
        if self.name == OURS {
            command.arg("-lntbshmem");
        }
        process::check_logged(&mut command, &dir.join("compile.log"))
    }

    /// Returns the command that runs a program; the caller adds the program's options.
    pub fn command(&self, program: Program, placement: Placement, dir: &Path) -> Command {
        let pes = placement.pes();
        let mut command = match &self.launcher {
            Launcher::Ring(mpi) => mpi.run(&Layout::spread(pes, pes), &[]),
            Launcher::Oshrun(oshrun, options) => {
                let mut command = Command::new(oshrun);
                command.args(["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]);
                command.args(*options).args(["-np", &pes.to_string()]);
                command
            }
        };
        command.envs(placement.env().iter().copied());
        command.arg(self.binary(program, dir));
        command
    }
}

/// Returns all libraries of this machine, and notes on those that are missing.
pub fn all(mpi: &Mpi) -> (Vec<Library>, Vec<String>) {
    let mut all = vec![Library::ours(mpi), Library::windows(mpi)];
    let is_openmpi = |oshcc: &PathBuf| {
        process::output(Command::new(oshcc).arg("--showme:version")).is_ok_and(|text| text.contains("Open SHMEM"))
    };
    let mut notes = Vec::new();
    match on_path("oshcc").filter(is_openmpi) {
        Some(oshcc) => {
            all.push(Library::oshmem(PEERS[0], &oshcc, "Open MPI's OpenSHMEM as it comes", &[]));
            let posix: &[&str] = &["-x", "UCX_TLS=posix,sysv,cma,self"];
            let what = "Open MPI's OpenSHMEM with UCX_TLS=posix,sysv,cma,self";
            all.push(Library::oshmem(PEERS[1], &oshcc, what, posix));
        }
        None => notes.push("oshmem: no oshcc of Open MPI: skipped (apt-get install openmpi-bin libopenmpi-dev)".into()),
    }
    (all, notes)
}

/// Time that a run may spend.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Seconds of a row.
    pub row: f64,
    /// Seconds after which a program begins no further row.
    pub limit: u64,
}

/// Runs programs and keeps their figures.
pub struct Runner {
    /// Executables and output are stored here.
    pub dir: PathBuf,
    /// The results: the test is the row, without a size.
    pub figures: Figures,
    /// Cores to which PEs are bound.
    pub cores: Vec<usize>,
    /// The time that runs may spend.
    pub budget: Budget,
    /// A line for each library and program that failed.
    pub failures: BTreeMap<String, String>,
    /// True if this repository's library has failed.
    pub ours_failed: bool,
}

impl Runner {
    /// Creates a runner whose files are in `dir`.
    pub fn new(dir: PathBuf, cores: Vec<usize>, budget: Budget) -> Result<Self> {
        fs::create_dir_all(&dir).with_context(|| format!("cannot create {}", dir.display()))?;
        paths::remove(&dir.join("compile.log"))?;
        let (figures, failures) = (Figures::default(), BTreeMap::new());
        Ok(Self { dir, figures, cores, budget, failures, ours_failed: false })
    }

    /// Runs a group with a library, with further settings, and adds its figures under the name `whose`.
    pub fn run(&mut self, library: &Library, group: &Group, whose: &str, env: &[(&str, &str)]) -> Result<()> {
        let mut command = library.command(group.program, group.placement, &self.dir);
        command.envs(env.iter().copied());
        command.args(["--peer", &group.placement.peer().to_string()]);
        if !self.cores.is_empty() {
            let cores: Vec<String> = self.cores.iter().map(ToString::to_string).collect();
            command.args(["--cores", &cores.join(",")]);
        }
        command.args(["--budget", &self.budget.row.to_string(), "--limit", &self.budget.limit.to_string()]);
        command.args(&group.rows);
        let out = self.dir.join(format!("{whose}-{}-{:?}.out", group.program.name(), group.placement));
        let limit = Duration::from_secs(2 * self.budget.limit + 30);
        let outcome = process::run_captured(&mut command, &out, Some(limit))?;
        let text = String::from_utf8_lossy(&fs::read(&out)?).into_owned();
        let mut count = 0;
        for (row, value, unit) in text.lines().filter_map(parse) {
            self.figures.push(whose, group.placement.pes(), &group.shown(row), value, unit);
            count += 1;
        }
        // Peers lack rows that are not in their version of the interface; ours has to have all.
        let complete = count > 0 && (library.name != OURS || count == group.rows.len());
        if outcome.success() && complete {
            return Ok(());
        }
        self.ours_failed |= library.name == OURS;
        let what = if outcome.success() { "no more rows".to_string() } else { outcome.describe() };
        let (name, rows) = (group.describe(), group.rows.len());
        let line =
            format!("{whose}, {name}: {what} after {count} of {rows} rows, which are kept: {}", paths::shown(&out));
        self.failures.entry(format!("{whose} {name}")).or_insert(line);
        Ok(())
    }
}

/// Parses a line `row value unit`; other lines are remarks.
pub fn parse(line: &str) -> Option<(&str, f64, &str)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [row, value, unit @ ("us" | "ns" | "M/s" | "MB/s")] => Some((row, value.parse().ok()?, unit)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_rows_are_told_from_remarks() {
        assert_eq!(parse("put_8B 16.2 ns"), Some(("put_8B", 16.2, "ns")));
        assert_eq!(parse("put_8B is slow"), None);
        assert_eq!(parse("[host:1] Caught signal 11"), None);
        assert_eq!(parse("put_8B many ns"), None);
    }

    #[test]
    fn rings_have_a_host_for_each_pe_and_settings() {
        let mpi = Mpi::of_prefix(Path::new("/x"));
        let shown = |library: &Library, placement| {
            let command = library.command(Program::Pair, placement, Path::new("/d"));
            let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
            (args.join(" "), command.get_envs().count())
        };
        let (line, env) = shown(&Library::ours(&mpi), Placement::Apart);
        assert_eq!((line.as_str(), env), ("-launcher fork -hosts h0:1,h1:1 -n 2 /d/pair-ours", 1));
        let oshmem = Library::oshmem("oshmem", Path::new("/b/oshcc"), "", &["-x", "A=1"]);
        assert!(shown(&oshmem, Placement::Hosts(4)).0.ends_with("--bind-to none -x A=1 -np 4 /d/pair-oshmem"));
        let far = Group { program: Program::Pair, placement: Placement::Opposite, rows: vec!["put_8B"] };
        assert!(!oshmem.takes_part(&far) && Library::windows(&mpi).takes_part(&far));
    }
}
