//! Output of the demo's results: JSON lines for the command that started it, or a table for the user.

use std::fs::File;
use std::io::Write;

use ntbring_mpi_tests::fail;
use serde_json::{json, Value};

use crate::measure::Measured;

/// The variable that names the file for the results.
const OUT: &str = "RING_DEMO_OUT";

/// The report, which has no effect except on rank 0.
pub enum Report {
    /// No output on this rank.
    Silent,
    /// JSON lines in a file.
    Lines(File),
    /// A table on standard output; true once its head is printed.
    Table(bool),
}

impl Report {
    /// Opens the file, if one is named. `here` is true if this rank reports.
    pub fn open(here: bool) -> Self {
        match std::env::var_os(OUT) {
            _ if !here => Self::Silent,
            None => Self::Table(false),
            Some(path) => match File::create(&path) {
                Ok(file) => Self::Lines(file),
                Err(why) => fail(format!("{OUT}: {} cannot be written: {why}", path.to_string_lossy())),
            },
        }
    }

    fn line(&mut self, line: &Value) {
        if let Self::Lines(file) = self {
            if let Err(why) = writeln!(file, "{line}") {
                fail(format!("{OUT}: {why}"));
            }
        }
    }

    /// Reports the result of a check.
    pub fn check(&mut self, name: &str, ok: bool) {
        self.line(&json!({"check": name, "ok": ok}));
        if let Self::Table(_) = self {
            println!("{name:<12} {}", if ok { "ok" } else { "WRONG" });
        }
    }

    /// Reports the results of a pair.
    pub fn pair(&mut self, low: i32, high: i32, measured: &Measured) {
        let (latency, bandwidth) = (measured.latency_us, measured.bandwidth_mb_s);
        self.line(&json!({"pair": [low, high], "latency_us": latency, "bandwidth_mb_s": bandwidth}));
        if let Self::Table(head) = self {
            if !std::mem::replace(head, true) {
                println!("\n{:<12} {:>16} {:>20}", "ranks", "us at 8 bytes", "MB/s at 1 MiB");
            }
            println!("{:<12} {latency:>16.2} {bandwidth:>20.0}", format!("{low} - {high}"));
        }
    }

    /// Flushes the file.
    pub fn close(&mut self) {
        if let Self::Lines(file) = self {
            if let Err(why) = file.sync_all() {
                fail(format!("{OUT}: {why}"));
            }
        }
    }
}
