//! `cargo xtask fuzz`: runs the fuzzers of all parsers of remote data, one after the other.
//!
//! No nightly compiler is needed: libFuzzer's coverage instrumentation is an LLVM pass (`sancov-module`) that stable
//! Rust has, too.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use clap::Args;
use serde::Deserialize;

use crate::ui::{self, Tally};
use crate::{paths, process};

/// The compiler flags of cargo-fuzz, without the sanitizers, which only nightly compilers have.
const FLAGS: &str = "--cfg fuzzing -Ccodegen-units=1 -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Time limit of a single input in seconds: an input that takes longer is reported as a hang.
const HANG: u32 = 20;

/// Largest input, bytes.
const LEN_MAX: usize = 600;

/// Number of inputs with which a corpus begins.
const SEEDS: u64 = 40;

/// Time that a fuzzer may take beyond the requested time before it is killed as hanging.
const GRACE: Duration = Duration::from_secs(120);

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct FuzzArgs {
    /// Fuzzers to run (default: all)
    targets: Vec<String>,

    /// Seconds to run all of them together [default: 60]
    #[arg(long, value_name = "N", conflicts_with = "minutes")]
    seconds: Option<u64>,

    /// Minutes to run each of them
    #[arg(long, value_name = "N", value_parser = minutes)]
    minutes: Option<f64>,

    /// List the fuzzers
    #[arg(long)]
    list: bool,
}

fn minutes(text: &str) -> Result<f64, String> {
    let minutes = text.parse().ok().filter(|minutes| (0.01..=100_000.0).contains(minutes));
    minutes.ok_or_else(|| "from 0.01 to 100000 minutes".into())
}

/// The part of fuzz/Cargo.toml that is used here.
#[derive(Deserialize)]
struct Manifest {
    bin: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// Builds the fuzzers and runs each of them for the requested time. A fuzzer that finds a defect counts as failed.
pub fn run(args: &FuzzArgs) -> Result<Tally> {
    let known = targets()?;
    if args.list {
        known.iter().for_each(|target| println!("{target}"));
        return Ok(Tally::default());
    }
    if let Some(odd) = args.targets.iter().find(|target| !known.contains(target)) {
        bail!("there is no fuzzer \"{odd}\"; there are: {}", known.join(", "));
    }
    let wanted = if args.targets.is_empty() { &known } else { &args.targets };
    let folder = ui::step("build the fuzzers", || build(wanted))?;
    let time = args.time(wanted.len());
    let mut tally = Tally::default();
    for target in wanted {
        tally += fuzz(target, &folder, time)?;
    }
    Ok(tally)
}

impl FuzzArgs {
    /// Returns the time for each of `count` fuzzers, at least a second.
    fn time(&self, count: usize) -> Duration {
        let each = match (self.minutes, self.seconds) {
            (Some(minutes), _) => Duration::from_secs_f64(60.0 * minutes),
            (None, seconds) => Duration::from_secs(seconds.unwrap_or(60)) / count.max(1) as u32,
        };
        each.max(Duration::from_secs(1))
    }
}

fn manifest() -> PathBuf {
    paths::root().join("fuzz/Cargo.toml")
}

fn home() -> PathBuf {
    paths::target().join("fuzz")
}

fn targets() -> Result<Vec<String>> {
    let text = fs::read_to_string(manifest()).context("cannot read fuzz/Cargo.toml")?;
    let manifest: Manifest = toml::from_str(&text).context("cannot understand fuzz/Cargo.toml")?;
    Ok(manifest.bin.into_iter().map(|target| target.name).collect())
}

/// Builds fuzzers and returns the directory of their executables.
fn build(targets: &[String]) -> Result<PathBuf> {
    let version = process::output(Command::new("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    let mut command = Command::new("cargo");
    // With --target, cargo does not pass the flags to build scripts and procedural macros.
    command.args(["build", "--release", "--target", host, "--manifest-path"]).arg(manifest());
    command.arg("--target-dir").arg(home());
    for target in targets {
        command.args(["--bin", target]);
    }
    command
        .current_dir(paths::root())
        .env("RUSTFLAGS", FLAGS)
        .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
        .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
    fs::create_dir_all(home())?;
    process::check_logged(&mut command, &home().join("build.log"))?;
    Ok(home().join(host).join("release"))
}

/// Runs one fuzzer. Its corpus is kept for the next run.
fn fuzz(target: &str, folder: &Path, time: Duration) -> Result<Tally> {
    let (corpus, log) = (home().join("corpus").join(target), home().join(format!("{target}.log")));
    fs::create_dir_all(&corpus)?;
    seed(&corpus)?;
    let mut findings = OsString::from("-artifact_prefix=");
    findings.push(home().join(format!("{target}-")));
    let mut command = Command::new(folder.join(target));
    command.arg(&corpus).arg(findings).args(["-print_final_stats=1", "-rss_limit_mb=2048"]);
    // Inputs are long from the start: slow fuzzers would never get beyond short ones.
    command.args(["-len_control=0".to_string(), format!("-max_len={LEN_MAX}")]);
    command.arg(format!("-timeout={HANG}")).arg(format!("-max_total_time={}", time.as_secs().max(1)));
    print!("  {target:<16} ");
    ui::flush();
    let start = Instant::now();
    let outcome = process::run_captured(&mut command, &log, Some(time + GRACE))?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    let (runs, elapsed) = (executions(&text), ui::seconds(start.elapsed()));
    match outcome.success() {
        true => {
            println!("clean: {} inputs in {elapsed}", runs.map_or_else(|| "?".into(), |runs| runs.to_string()));
            Ok(Tally { passed: 1, failed: 0 })
        }
        false => {
            println!("FAILED after {elapsed}");
            ui::failed(process::shown(&command));
            if let Some(input) = finding(&text) {
                println!("  the input is in {input}; to repeat it: {} {input}", folder.join(target).display());
            }
            println!("{}", ui::error_with_log(format!("{}: {}", process::shown(&command), outcome.describe()), &log));
            Ok(Tally { passed: 0, failed: 1 })
        }
    }
}

/// Writes the first inputs into a corpus: random bytes, always the same.
fn seed(corpus: &Path) -> Result<()> {
    for number in 0..SEEDS {
        let mut random = fastrand::Rng::with_seed(number);
        let len = random.usize(..LEN_MAX);
        let bytes: Vec<u8> = (0..len).map(|_| if random.bool() { random.u8(..) } else { random.u8(..8) }).collect();
        fs::write(corpus.join(format!("seed{number}")), bytes)?;
    }
    Ok(())
}

/// Returns the file in which the fuzzer has kept the input that failed, from its log.
fn finding(log: &str) -> Option<&str> {
    log.lines().find_map(|line| line.split_once("Test unit written to ")).map(|(_, file)| file.trim())
}

/// Returns the number of inputs that a fuzzer has tried, from the statistics at the end of its log.
fn executions(log: &str) -> Option<u64> {
    let said = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    said.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_fuzzers_are_known() {
        let found = targets().unwrap();
        let folder = fs::read_dir(paths::root().join("fuzz/fuzz_targets")).unwrap();
        let mut files: Vec<String> =
            folder.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
        files.sort();
        let mut names = found.clone();
        names.sort();
        assert_eq!(names, files);
    }

    #[test]
    fn what_a_fuzzer_says_at_the_end() {
        let log = "Done 7 runs in 2 second(s)\nstat::number_of_executed_units: 12345\nstat::average_exec_per_sec: 3\n";
        assert_eq!(executions(log), Some(12345));
        assert_eq!(executions("==1== ERROR: libFuzzer: deadly signal\n"), None);
        let log = "SUMMARY: libFuzzer: deadly signal\nartifact_prefix='x'; Test unit written to /t/lane-crash-1f\nBase64: AA==\n";
        assert_eq!((finding(log), finding("Done 7 runs\n")), (Some("/t/lane-crash-1f"), None));
    }

    #[test]
    fn the_time_is_shared() {
        let args = |seconds, minutes| FuzzArgs { targets: Vec::new(), seconds, minutes, list: false };
        assert_eq!(args(None, None).time(16), Duration::from_millis(3750));
        assert_eq!(args(Some(8), None).time(16), Duration::from_secs(1));
        assert_eq!(args(None, Some(0.5)).time(16), Duration::from_secs(30));
    }
}
