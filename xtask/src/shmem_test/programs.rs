//! The list of programs, `tests/shmem/programs.toml` and `tests/shmem/ends.toml`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{bail, Context, Result};
use serde::Deserialize;

use crate::mpi::Layout;
use crate::paths;
use crate::process::Outcome;

/// The layouts of programs that name none: PEs of one host, neighbours, hosts further away, and both together.
const LAYOUTS: &[&str] = &["1x2", "2x1", "4x1", "5x1", "4x2"];

/// The layouts of the smaller selection: hosts of several PEs, and hosts that are not neighbours.
const APART: &[&str] = &["2x2", "4x1"];

/// The files of the list.
const FILES: [&str; 2] = ["programs.toml", "ends.toml"];

/// The list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// The programs, in the order in which they are run.
    pub program: Vec<Program>,
}

/// The compiler of a program.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Compiler {
    /// `oshcc`.
    #[default]
    C,
    /// `oshc++`.
    Cxx,
    /// `mpicc` with the library.
    Mpi,
}

/// One program, its call, and what must come of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Name, which its last line `ok NAME` has.
    pub name: String,
    /// Name of the source without its ending, if it is not the program's.
    #[serde(default)]
    source: Option<String>,
    /// The compiler.
    #[serde(default)]
    pub compiler: Compiler,
    /// Options for the compiler.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Layouts: hosts x PEs of a host.
    #[serde(default)]
    layouts: Vec<String>,
    /// Time limit in seconds.
    #[serde(default = "default_timeout")]
    timeout: u64,
    /// Arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The last PE runs this program instead.
    #[serde(default)]
    pub last: Option<String>,
    /// Exit code of the job.
    #[serde(default)]
    exit: i32,
    /// The job must fail, with any exit code but 0.
    #[serde(default)]
    pub fails: bool,
    /// Texts that one line of the output has, all of them. The line `ok NAME` is not expected then.
    #[serde(default)]
    says: Vec<String>,
    /// The program measures or needs much memory: no other program runs at the same time.
    #[serde(default)]
    pub alone: bool,
    /// Neither processes nor shared memory may be left.
    #[serde(default)]
    pub swept: bool,
    /// It also belongs to the smaller selection for other settings.
    #[serde(default)]
    pub apart: bool,
}

fn default_timeout() -> u64 {
    30
}

impl Programs {
    /// Reads the list. If `only` is not empty, keeps the programs that it names.
    pub fn read(only: &[String]) -> Result<Self> {
        let mut list = Self { program: Vec::new() };
        for name in FILES {
            let file = directory().join(name);
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", paths::shown(&file)))?;
            let part: Self =
                toml::from_str(&text).with_context(|| format!("cannot understand {}", paths::shown(&file)))?;
            list.program.extend(part.program);
        }
        let mut names: Vec<&str> = list.program.iter().map(|program| program.name.as_str()).collect();
        names.dedup();
        if let Some(name) = only.iter().find(|name| !names.contains(&name.as_str())) {
            bail!("there is no program \"{name}\"; there are: {}", names.join(", "));
        }
        list.program.retain(|program| only.is_empty() || only.contains(&program.name));
        Ok(list)
    }
}

/// Returns the directory of the sources.
pub fn directory() -> PathBuf {
    paths::root().join("tests/shmem")
}

impl Program {
    /// Returns the program's name, variables and arguments, as shown in the output.
    pub fn call(&self) -> String {
        let mut call = vec![self.name.clone()];
        call.extend(self.env.iter().map(|(name, value)| format!("{name}={value}")));
        call.extend(self.args.iter().cloned());
        call.join(" ")
    }

    /// Returns the family of tests that it belongs to: the first word of its name.
    pub fn family(&self) -> &str {
        self.name.split('_').next().unwrap_or(&self.name)
    }

    /// Returns the file with the source.
    pub fn source(&self) -> PathBuf {
        let ending = if self.compiler == Compiler::Cxx { "cc" } else { "c" };
        directory().join(format!("{}.{ending}", self.source.as_ref().unwrap_or(&self.name)))
    }

    /// Returns the layouts to run it on, in the smaller selection if `apart`.
    pub fn layouts(&self, apart: bool) -> Result<Vec<Layout>> {
        if apart {
            return APART.iter().copied().map(layout).collect();
        }
        let own = self.layouts.iter().map(String::as_str);
        own.chain(LAYOUTS.iter().copied().filter(|_| self.layouts.is_empty())).map(layout).collect()
    }

    /// Returns its time limit.
    pub fn limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    /// Returns the reason for which a run has failed; None if it went as it should.
    pub fn complaint(&self, outcome: &Outcome, output: &str) -> Option<String> {
        if let Some(line) = output.lines().find(|line| line.contains("FAIL")) {
            return Some(line.to_string());
        }
        let as_expected = match self.fails {
            true => !outcome.timed_out && !outcome.status.success(),
            false => !outcome.timed_out && outcome.status.code() == Some(self.exit),
        };
        if !as_expected {
            return Some(outcome.describe());
        }
        let ok = format!("ok {}", self.name);
        let is_said = |line: &str| match self.says.is_empty() {
            true => line.trim() == ok,
            false => self.says.iter().all(|text| line.contains(text)),
        };
        if self.fails && self.says.is_empty() || output.lines().any(is_said) {
            return None;
        }
        let wanted = if self.says.is_empty() { ok } else { self.says.join("\", \"") };
        Some(format!("it did not print \"{wanted}\""))
    }
}

/// Parses a layout.
fn layout(text: &str) -> Result<Layout> {
    let numbers = text.split_once('x').and_then(|(hosts, pes)| Some((hosts.parse().ok()?, pes.parse::<usize>().ok()?)));
    let Some((hosts, pes)) = numbers.filter(|&(hosts, pes)| hosts > 0 && pes > 0) else {
        bail!("\"{text}\" is no layout such as 4x2");
    };
    Ok(Layout::spread(hosts * pes, hosts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    fn program(rest: &str) -> Program {
        let mut list: Programs = toml::from_str(&format!("[[program]]\nname = \"a_b\"\n{rest}")).unwrap();
        list.program.remove(0)
    }

    fn ended(code: i32) -> Outcome {
        Outcome { status: ExitStatus::from_raw(code << 8), timed_out: false, elapsed: Duration::ZERO }
    }

    #[test]
    fn the_list_is_consistent() {
        let list = Programs::read(&[]).unwrap();
        for program in &list.program {
            assert!(program.source().exists(), "{}", program.source().display());
            assert!(!program.layouts(false).unwrap().is_empty());
        }
        assert!(Programs::read(&["nothing".to_string()]).is_err());
    }

    #[test]
    fn wrong_ends_are_noticed() {
        let normal = program("");
        assert_eq!(normal.family(), "a");
        assert_eq!(normal.complaint(&ended(0), "x\nok a_b\n"), None);
        assert_eq!(normal.complaint(&ended(0), "ok b\n").unwrap(), "it did not print \"ok a_b\"");
        assert_eq!(normal.complaint(&ended(1), "ok a_b\n").unwrap(), "exit status 1");
        assert_eq!(normal.complaint(&ended(0), "FAIL: 1\nok a_b\n").unwrap(), "FAIL: 1");
        let bad = program("fails = true\nsays = [\"PE 9\", \"shmem_p\"]\nlayouts = [\"1x2\"]\n");
        assert_eq!(bad.complaint(&ended(3), "shmem_p: PE 9 does not exist\n"), None);
        assert!(bad.complaint(&ended(0), "shmem_p: PE 9 does not exist\n").is_some());
        assert!(bad.complaint(&ended(3), "shmem_p:\nPE 9 does not exist\n").is_some());
        let hung = Outcome { timed_out: true, ..ended(3) };
        assert!(bad.complaint(&hung, "shmem_p: PE 9 does not exist\n").is_some());
        let code = program("exit = 7\n");
        assert_eq!(code.complaint(&ended(7), "ok a_b"), None);
        assert!(code.complaint(&ended(0), "ok a_b").is_some());
    }

    #[test]
    fn layouts_are_parsed() {
        assert_eq!(layout("4x2").unwrap().describe(), "4x2");
        assert!(["", "4", "0x1", "ax2", "1x"].iter().all(|text| layout(text).is_err()));
    }
}
