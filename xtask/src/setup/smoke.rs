//! The last step: check that the installation works from any directory and without environment variables.

use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::stamp::Stamp;
use crate::mpi::{Layout, Mpi};
use crate::{paths, process, ui};

const HELLO: &str = r#"
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank++;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 1)
        printf("hello from %d ranks, sum %d\n", size, sum);
    MPI_Finalize();
    return 0;
}
"#;

/// Compiles and runs a small program with two ranks, unless that has been done for this installation.
pub fn ensure(mpi: &Mpi, digest: &str) -> Result<()> {
    Stamp::new("smoke").unless_held(digest, || ui::step("check: a program of two ranks on two hosts", || run(mpi)))
}

fn run(mpi: &Mpi) -> Result<()> {
    let dir = tempfile::tempdir().context("cannot make a temporary directory")?;
    fs::write(dir.path().join("hello.c"), HELLO)?;
    let log = paths::logs().join("smoke.log");
    let mut compile = Command::new(mpi.mpicc());
    compile.current_dir(dir.path()).args(["hello.c", "-o", "hello"]).env_remove("LD_LIBRARY_PATH");
    process::check_logged(&mut compile, &log)?;

    let out = dir.path().join("out");
    let mut hello = mpi.run(&Layout::spread(2, 2), &[]);
    hello.current_dir(dir.path()).arg("./hello").env_remove("LD_LIBRARY_PATH");
    let outcome = process::run_captured(&mut hello, &out, Some(Duration::from_secs(60)))?;
    let text = fs::read_to_string(&out)?;
    fs::copy(&out, &log)?;
    if !outcome.success() || text.trim() != "hello from 2 ranks, sum 3" {
        return Err(ui::error_with_log(format!("{}: {}", process::shown(&hello), outcome.describe()), &log));
    }
    Ok(())
}
