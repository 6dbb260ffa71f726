//! The suite's lists of tests, parsed as its own `runtests` script does.
//!
//! A line is `PROGRAM [NP [KEY=VALUE ...]]`, where PROGRAM may also be a directory with lists of its own. Comments
//! start with `#`.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{bail, Context, Result};

use super::judge::Judge;

/// The lists that the suite's `make testing` runs.
pub const LISTS: &[&str] = &["testlist", "testlist.dtp", "testlist.cvar"];

/// Number of ranks of a test that specifies none.
const DEFAULT_RANKS: usize = 2;

/// Time limit of a test that specifies none.
const DEFAULT_LIMIT: Duration = Duration::from_secs(180);

/// One line of a list.
#[derive(Clone, Debug, PartialEq)]
pub struct Test {
    /// The directory, relative to the suite's top.
    pub dir: String,
    /// The name of the list that contains it.
    pub list: String,
    /// The path of the program in that directory, which may be a file in a subdirectory.
    pub program: String,
    /// Number of ranks.
    pub ranks: usize,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Options for mpiexec.
    pub mpiexec_args: Vec<String>,
    /// The way to decide if it has passed.
    pub judge: Judge,
    /// Time limit.
    pub limit: Duration,
    /// The suite's own reason for which it is expected to fail.
    pub xfail: Option<String>,
    /// Memory that it needs, in gigabytes.
    pub memory: f64,
}

impl Test {
    /// Returns its identity: `dir/program ranks args... VARIABLE=value...`.
    pub fn id(&self) -> String {
        let mut words = vec![format!("{}/{}", self.dir, self.program), self.ranks.to_string()];
        words.extend(self.args.iter().cloned());
        words.extend(self.env.iter().map(|(name, value)| format!("{name}={value}")));
        words.join(" ")
    }

    /// Returns true if it writes files into its directory, as tests of MPI-IO do; several of them use the same file
    /// name.
    pub fn writes_files(&self) -> bool {
        self.dir.split('/').any(|part| part == "io")
    }
}

/// Returns all tests of a directory and of the directories that its lists name.
///
/// `build` is the suite's build directory, whose lists take precedence over those of `source`.
pub fn collect(build: &Path, source: &Path, dir: &str) -> Result<Vec<Test>> {
    let mut tests = Vec::new();
    for list in LISTS {
        collect_list(build, source, dir, list, &mut tests)?;
    }
    if tests.is_empty() {
        bail!("MPICH's suite has no tests in \"{dir}\"");
    }
    Ok(tests)
}

fn collect_list(build: &Path, source: &Path, dir: &str, list: &str, tests: &mut Vec<Test>) -> Result<()> {
    let file = [build, source]
        .map(|top| top.join(dir).join(list))
        .into_iter()
        .find(|file| fs::metadata(file).is_ok_and(|data| data.is_file() && data.len() > 0));
    let Some(file) = file else {
        return Ok(());
    };
    let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    for line in text.lines() {
        let test = parse(dir, list, line).with_context(|| format!("{}: {line}", file.display()))?;
        let Some(test) = test else {
            continue;
        };
        let below = format!("{dir}/{}", test.program);
        if build.join(&below).is_dir() {
            collect_list(build, source, &below, list, tests)?;
        } else {
            tests.push(test);
        }
    }
    Ok(())
}

/// Parses one line. Returns None for an empty line.
fn parse(dir: &str, list: &str, line: &str) -> Result<Option<Test>> {
    let line = line.split('#').next().unwrap_or_default();
    let mut words = line.split_whitespace();
    let Some(program) = words.next() else {
        return Ok(None);
    };
    let ranks = match words.next() {
        Some(word) => word.parse().context("invalid number of ranks")?,
        None => DEFAULT_RANKS,
    };
    let mut test = Test {
        dir: dir.to_string(),
        list: list.to_string(),
        program: program.to_string(),
        ranks,
        args: Vec::new(),
        env: Vec::new(),
        mpiexec_args: Vec::new(),
        judge: Judge::default(),
        limit: DEFAULT_LIMIT,
        xfail: None,
        memory: 0.0,
    };
    // Words without "=" are ignored, as by the suite's script: some generated lines repeat the program's name.
    for (key, value) in words.filter_map(|word| word.split_once('=')) {
        match key {
            "arg" => test.args.push(value.to_string()),
            "mpiexecarg" => test.mpiexec_args.push(value.to_string()),
            "env" => {
                let (name, value) = value.split_once('=').context("env= needs NAME=VALUE")?;
                test.env.push((name.to_string(), value.to_string()));
            }
            "resultTest" => test.judge = value.parse()?,
            "timeLimit" => test.limit = Duration::from_secs(value.parse().context("timeLimit")?),
            "xfail" => test.xfail = Some(value.to_string()),
            "mem" => test.memory = value.parse().context("mem")?,
            // "strict" and "mpix" do not apply, since ntbring's MPI is MPICH and allows its extensions. Unknown keys
            // are ignored, as by the suite's script.
            _ => {}
        }
    }
    Ok(Some(test))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(line: &str) -> Test {
        parse("d", "testlist", line).unwrap().unwrap()
    }

    #[test]
    fn tests_of_mpi_io_write_files() {
        let writes = |dir: &str| parse(dir, "testlist", "rdwrord 4").unwrap().unwrap().writes_files();
        assert!(writes("io") && writes("f90/io"));
        assert!(!writes("f90/info") && !writes("coll"));
    }

    #[test]
    fn lines_are_read_as_the_suite_reads_them() {
        assert_eq!(parse("d", "testlist", "  # nothing").unwrap(), None);
        let plain = line("allred 7 # comment");
        assert_eq!((plain.program.as_str(), plain.ranks), ("allred", 7));
        assert_eq!(plain.limit, DEFAULT_LIMIT);
        assert_eq!(line("lonely").ranks, 2);

        let full = line(
            "t 4 repeated/t arg=-count=10 arg=5 env=A=b=c mpiexecarg=-disable-auto-cleanup strict=false \
             resultTest=TestStatus timeLimit=10 xfail=ticket1 xfail=ticket2 mem=6.5",
        );
        assert_eq!(full.args, ["-count=10", "5"]);
        assert_eq!(full.env, [("A".to_string(), "b=c".to_string())]);
        assert_eq!(full.mpiexec_args, ["-disable-auto-cleanup"]);
        assert_eq!(full.judge, Judge::Status);
        assert_eq!(full.limit, Duration::from_secs(10));
        assert_eq!(full.xfail.as_deref(), Some("ticket2"));
        assert_eq!(full.id(), "d/t 4 -count=10 5 A=b=c");

        assert_eq!(line("t 4 mpiversion=3.0").args, [""; 0]);
        assert!(parse("d", "testlist", "t four").is_err());
    }

    #[test]
    fn directories_are_entered_and_built_lists_win() {
        let build = tempfile::tempdir().unwrap();
        let source = tempfile::tempdir().unwrap();
        for top in [&build, &source] {
            fs::create_dir_all(top.path().join("errors/coll")).unwrap();
        }
        fs::write(source.path().join("errors/testlist"), "old 1\n").unwrap();
        fs::write(build.path().join("errors/testlist"), "#\ncoll\n").unwrap();
        fs::write(source.path().join("errors/coll/testlist"), "a 2\nb 3\n").unwrap();
        fs::write(build.path().join("errors/testlist.dtp"), "c 4\n").unwrap();
        let ids: Vec<_> = collect(build.path(), source.path(), "errors").unwrap().iter().map(Test::id).collect();
        assert_eq!(ids, ["errors/coll/a 2", "errors/coll/b 3", "errors/c 4"]);
        assert!(collect(build.path(), source.path(), "none").is_err());
    }
}
