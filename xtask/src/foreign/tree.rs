//! `cargo xtask install`, and programs that are built and run with the installation.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::bench::{fresh, Bench};
use crate::install;
use crate::mpi::{Layout, Mpi};
use crate::setup::packages;

const LIMIT: Duration = Duration::from_secs(120);

/// Installs, moves the installation, and then builds and runs programs with it.
pub fn moved(bench: &mut Bench) -> Result<()> {
    packages::install(&["cmake", "pkg-config"])?;
    // The directory is not below target, where no installation is allowed.
    let dir = tempfile::tempdir()?;
    let tree = dir.path().join("second/place");
    install::into(&dir.path().join("first"), &bench.setup)?;
    fs::create_dir_all(dir.path().join("second"))?;
    fs::rename(dir.path().join("first"), &tree)?;
    let mpi = Mpi::of_prefix(&tree);
    let built = bench.mpi.prefix().to_path_buf();
    let halo = |program: &Path| {
        let mut command = mpi.run(&Layout::spread(4, 4), &[]);
        command.arg(program).env_remove("LD_LIBRARY_PATH");
        hiding(&built, &command)
    };

    let source = bench.sources().join("halo.c");
    let own = bench.place.join("halo-mpicc");
    let mut compile = Command::new(mpi.mpicc());
    compile.arg(&source).arg("-o").arg(&own);
    if bench.test("mpicc of a tree that was moved", &mut hiding(&built, &compile), LIMIT, None)? {
        bench.test("a program of it", &mut halo(&own), LIMIT, Some("ok"))?;
    }
    for tool in names(&tree.join("bin"))? {
        let mut help = Command::new("sh");
        help.args(["-c", "test -e \"$2\" || \"$1\" --help", "sh"]);
        help.arg(tree.join("bin").join(&tool)).arg(tree.join(format!("share/man/man1/{tool}.1")));
        bench.test(&format!("help: {tool}"), &mut hiding(&built, &help), LIMIT, None)?;
    }

    let flags = bench.place.join("halo-pkg-config");
    let mut compile = Command::new("sh");
    compile
        .args(["-ec", "flags=$(pkg-config --cflags --libs mpich); cc \"$1\" -o \"$2\" $flags -Wl,-rpath,\"$3\"", "sh"])
        .args([&source, &flags, &tree.join("lib")])
        .env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig"));
    if bench.test("pkg-config", &mut hiding(&built, &compile), LIMIT, None)? {
        bench.test("a program built with its flags", &mut halo(&flags), LIMIT, Some("ok"))?;
    }

    let build = fresh(&bench.place.join("cmake"))?;
    let mut cmake = Command::new("sh");
    cmake.args(["-ec", "cmake -S \"$1\" -B \"$2\" -DMPI_HOME=\"$3\" && cmake --build \"$2\"", "sh"]).args([
        &bench.sources().join("cmake"),
        &build,
        &tree,
    ]);
    if bench.test("CMake's FindMPI", &mut hiding(&built, &cmake), LIMIT, None)? {
        for program in ["halo_c", "halo_cpp", "halo_f08"] {
            bench.test(&format!("{program} built by CMake"), &mut halo(&build.join(program)), LIMIT, Some("ok"))?;
        }
    }
    openshmem(bench, &tree)
}

/// Builds and runs a program with the OpenSHMEM library of such an installation.
fn openshmem(bench: &mut Bench, tree: &Path) -> Result<()> {
    let built = bench.mpi.prefix().to_path_buf();
    let source = bench.sources().join("ring.c");
    let two = Layout::spread(2, 2);
    let run = |program: &Path| {
        let mut command = Command::new(tree.join("bin/oshrun"));
        command.args(["-launcher", "fork", "-hosts", &two.hosts(), "-np", "2"]).arg(program);
        hiding(&built, command.env_remove("LD_LIBRARY_PATH"))
    };
    let own = bench.place.join("ring-oshcc");
    let mut compile = Command::new(tree.join("bin/oshcc"));
    compile.arg(&source).arg("-o").arg(&own);
    if bench.test("oshcc of a tree that was moved", &mut hiding(&built, &compile), LIMIT, None)? {
        bench.test("a program of oshcc", &mut run(&own), LIMIT, Some("ok"))?;
    }

    // The description's flags include the path of the library at run time.
    let flags = bench.place.join("ring-pkg-config");
    let mut compile = Command::new("sh");
    compile
        .args(["-ec", "flags=$(pkg-config --cflags --libs ntbshmem); cc \"$1\" -o \"$2\" $flags", "sh"])
        .args([&source, &flags])
        .env("PKG_CONFIG_PATH", tree.join("lib/pkgconfig"));
    if bench.test("pkg-config for ntbshmem", &mut hiding(&built, &compile), LIMIT, None)? {
        bench.test("a program built with these flags", &mut run(&flags), LIMIT, Some("ok"))?;
    }

    let build = fresh(&bench.place.join("cmake-shmem"))?;
    let mut cmake = Command::new("sh");
    cmake.args(["-ec", "cmake -S \"$1\" -B \"$2\" -DCMAKE_PREFIX_PATH=\"$3\" && cmake --build \"$2\"", "sh"]).args([
        bench.sources().join("cmake-shmem"),
        build.clone(),
        tree.to_path_buf(),
    ]);
    if bench.test("CMake's find_package(ntbshmem)", &mut hiding(&built, &cmake), LIMIT, None)? {
        bench.test("ring built by CMake", &mut run(&build.join("ring")), LIMIT, Some("ok"))?;
    }
    Ok(())
}

/// Returns the same command, run where a directory appears empty. Without root the directory stays visible.
fn hiding(dir: &Path, command: &Command) -> Command {
    let mut hidden = Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        hidden = Command::new("env");
    } else {
        hidden.args(["-m", "sh", "-ec", "mount -t tmpfs tmpfs \"$1\"; shift; exec \"$@\"", "sh"]).arg(dir);
    }
    hidden.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => hidden.env(name, value),
            None => hidden.env_remove(name),
        };
    }
    hidden
}

/// Returns the names of a directory's entries, sorted.
fn names(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}
