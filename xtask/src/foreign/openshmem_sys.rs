//! The crate `openshmem-sys`: the tests of its bindings, and a program that uses them.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::bench::Bench;
use crate::mpi::Layout;

/// Numbers of PEs and of hosts.
const LAYOUTS: [(usize, usize); 3] = [(2, 1), (2, 2), (4, 4)];

const LIMIT: Duration = Duration::from_secs(60);
const BUILD_LIMIT: Duration = Duration::from_secs(10 * 60);

/// An archive without members.
const EMPTY_ARCHIVE: &str = "!<arch>\n";

/// Builds the crate with the installed headers, runs its tests, and runs the program.
///
/// The crate links `libsma` and `libpmi_simple`, as Sandia's OpenSHMEM calls its libraries. An installation has the
/// former as a link. It has no client of the process manager as a library of its own; an empty archive among the files
/// of this test takes the place of the latter.
pub fn tests(bench: &mut Bench) -> Result<()> {
    fs::write(bench.place.join("libpmi_simple.a"), EMPTY_ARCHIVE)?;
    let prefix = bench.mpi.prefix().to_path_buf();
    let target = bench.place.join("target");
    let flags = format!("-L native={} -C link-arg=-Wl,-rpath,{}", bench.place.display(), prefix.join("lib").display());
    let crate_dir = bench.sources().join("openshmem");
    let cargo = |args: &[&str]| {
        let mut command = Command::new("cargo");
        command.args(args).arg("--locked").arg("--target-dir").arg(&target).current_dir(&crate_dir);
        command.env("SHMEM_INSTALL_DIR", &prefix).env("RUSTFLAGS", &flags);
        command
    };
    if !bench.test("cargo build with openshmem-sys", &mut cargo(&["build"]), BUILD_LIMIT, None)? {
        return Ok(());
    }
    let mut own = cargo(&["test", "--package", "openshmem-sys", "--lib"]);
    bench.judged("the tests of openshmem-sys", &mut own, BUILD_LIMIT, 1, |text| {
        let result = text.lines().find_map(|line| line.strip_prefix("test result: ok. "));
        result.is_none_or(|counts| counts.starts_with("0 passed")).then(|| "it has not run any test".to_string())
    })?;
    let said = fs::read_to_string(bench.log("the tests of openshmem-sys"))?;
    if let Some(counts) = said.lines().find_map(|line| line.strip_prefix("test result: ok. ")) {
        println!("    {counts}");
    }
    for (ranks, hosts) in LAYOUTS {
        let layout = Layout::spread(ranks, hosts);
        let mut run = bench.oshrun(&layout);
        run.arg(target.join("debug/ntbring-openshmem-program"));
        bench.test(&format!("a program over it on {}", layout.describe()), &mut run, LIMIT, Some("ok"))?;
    }
    Ok(())
}
