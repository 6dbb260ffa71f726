//! Programs in other languages, programs of Debian's packages, and examples of the crate `mpi`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::bench::{fresh, Bench};
use crate::setup::{self, packages};
use crate::{mpi_programs, paths, process};

const LIMIT: Duration = Duration::from_secs(60);
/// Time limit of NetPIPE, which derives its number of repetitions from the time of the first ones: it takes half a
/// minute, and more if other processes use the cores.
const NETPIPE: Duration = Duration::from_secs(240);
const BUILD_LIMIT: Duration = Duration::from_secs(15 * 60);

/// Examples of the crate `mpi` that fail with Debian's mpich in the same way, and the reason.
const WRONG: &[(&str, &str)] = &[
    ("comm_name", "reads a name through a reference to its first character"),
    ("dyn_communicator", "receives eight bytes in a variable of four"),
];

/// Runs the same program in C, C++ and Fortran, one that sends sections of Fortran's arrays, and one that reads files to
/// their ends.
pub fn languages(bench: &mut Bench) -> Result<()> {
    for (compiler, source, flag, name) in [
        ("mpicc", "halo.c", "", "C"),
        ("mpicxx", "halo.cpp", "", "C++"),
        ("mpifort", "halo.F90", "-DMPI_FROM=1", "Fortran with mpif.h"),
        ("mpifort", "halo.F90", "-DMPI_FROM=2", "Fortran with mpi"),
        ("mpifort", "halo.F90", "-DMPI_FROM=3", "Fortran with mpi_f08"),
        ("mpifort", "sections.F90", "", "sections of Fortran's arrays"),
        ("mpicc", "read_end.c", "", "reads at the end of a file"),
    ] {
        let program = bench.place.join(format!("{source}{flag}").replace('.', "-"));
        let mut compile = Command::new(bench.tool(compiler));
        compile.arg("-O2").args((!flag.is_empty()).then_some(flag)).arg(bench.sources().join(source));
        if bench.test(&format!("{compiler}, {name}"), compile.arg("-o").arg(&program), LIMIT, None)? {
            let mut run = bench.mpiexec(4);
            bench.test(&format!("{name} on 4 hosts"), run.arg(&program), LIMIT, Some("ok"))?;
        }
    }
    Ok(())
}

/// Runs programs that were linked with Debian's mpich.
pub fn debian(bench: &mut Bench) -> Result<()> {
    packages::install(&["netpipe-mpich2", "libmpich-dev"])?;
    let stats = bench.place.join("stats.json");
    paths::remove(&stats)?;
    let mut netpipe = bench.exec("h0,h1", 2);
    netpipe.current_dir(&bench.place).args(["NPmpich2", "-u", "10000", "-o", "np.out"]);
    netpipe.env("NTBRING_STATS", &stats);

    bench.test("NPmpich2 of netpipe-mpich2", &mut netpipe, NETPIPE, None)?;
    // Only a rank that has loaded ntbring writes such a line.
    let mut lines = Command::new("grep");
    lines.args(["-c", "\"msgs_direct\""]).arg(&stats);
    bench.test("a line of statistics of either rank", &mut lines, LIMIT, Some("2"))?;
    for (compiler, source, flag) in
        [("mpicc.mpich", "halo.c", ""), ("mpicxx.mpich", "halo.cpp", ""), ("mpifort.mpich", "halo.F90", "-DMPI_FROM=2")]
    {
        let halo = bench.place.join(source.replace('.', "-"));
        let mut compile = Command::new(compiler);
        compile.args((!flag.is_empty()).then_some(flag)).arg(bench.sources().join(source)).arg("-o").arg(&halo);
        if bench.test(&format!("{compiler} {source}"), &mut compile, LIMIT, None)? {
            let mut run = bench.exec("h0,h1,h2,h3", 4);
            run.arg(&halo);
            bench.test(&format!("{source} as built by it"), &mut run, LIMIT, Some("ok"))?;
        }
    }
    Ok(())
}

/// Runs the examples of the crate `mpi` (rsmpi), built from the sources that cargo has fetched.
pub fn rsmpi(bench: &mut Bench) -> Result<()> {
    let copy = bench.place.join("source");
    let target = bench.place.join("target");
    copy_crate(&fresh(&copy)?, &bench.log("copy"))?;
    let installed = setup::ensure(&bench.setup)?;
    let mut build = Command::new("cargo");
    mpi_programs::environment(&installed, &mut build);
    build
        .current_dir(&copy)
        .args(["build", "--release", "--examples", "--features", "derive,complex", "--target-dir"])
        .arg(&target);
    if !bench.test("cargo build --examples", &mut build, BUILD_LIMIT, None)? {
        return Ok(());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(copy.join("examples"))? {
        let path = entry?.path();
        names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_string));
    }
    names.sort();
    for name in names {
        let program = target.join("release/examples").join(&name);
        // Some examples need further features.
        if let Some((_, why)) = WRONG.iter().find(|(wrong, _)| *wrong == name) {
            println!("  {name:<40} not run: it {why}");
        } else if program.exists() {
            bench.test(&name, bench.mpiexec(4).arg(program), LIMIT, None)?;
        }
    }
    Ok(())
}

/// Copies the sources of the crate `mpi` that tests/mpi uses. The copy becomes a workspace of its own.
fn copy_crate(to: &Path, log: &Path) -> Result<()> {
    let mut metadata = Command::new("cargo");
    metadata.args(["metadata", "--format-version", "1", "--manifest-path"]);
    let text = process::output(metadata.arg(paths::mpi_programs().join("Cargo.toml")))?;
    let metadata: serde_json::Value = serde_json::from_str(&text)?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let manifest =
        packages.find(|package| package["name"] == "mpi").and_then(|package| package["manifest_path"].as_str());
    let source = manifest.and_then(|path| Path::new(path).parent()).context("tests/mpi does not use the crate mpi")?;
    process::check_logged(Command::new("cp").arg("-r").arg(source.join(".")).arg(to), log)?;
    let manifest = to.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    Ok(fs::write(manifest, format!("{text}\n[workspace]\n"))?)
}
