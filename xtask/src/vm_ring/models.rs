//! The server of the models of adapters.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use super::machine::Background;
use crate::paths;

/// A server that runs, with a number of cables.
pub struct Models {
    _process: Background,
    directory: PathBuf,
}

impl Models {
    /// Starts the server; all sockets exist when this returns.
    pub fn start(program: &Path, chip: &str, cables: u32, directory: &Path) -> Result<Models> {
        let ends = (0..cables).flat_map(|cable| ["a", "b"].map(|end| Self::place(directory, cable, end)));
        let mut sockets: Vec<PathBuf> = ends.collect();
        let log = File::create(directory.join("models.log"))?;
        let mut command = Command::new(program);
        command.args(["--chip", chip, "--control"]).arg(directory.join("control")).args(&sockets);
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = Background(command.spawn().context("cannot start the models of the adapters")?);
        sockets.push(directory.join("control"));
        let start = Instant::now();
        while !sockets.iter().all(|socket| socket.exists()) {
            if start.elapsed() > Duration::from_secs(10) {
                bail!("the models of the adapters do not start: see {}", paths::shown(&directory.join("models.log")));
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(Models { _process: process, directory: directory.to_path_buf() })
    }

    fn place(directory: &Path, cable: u32, end: &str) -> PathBuf {
        directory.join(format!("cable{cable}-{end}"))
    }

    /// Returns the socket of one end, `a` or `b`, of a cable.
    pub fn socket(&self, cable: u32, end: &str) -> PathBuf {
        Self::place(&self.directory, cable, end)
    }

    /// Executes a command, and returns its answer.
    pub fn command(&self, line: &str) -> Result<String> {
        let mut stream = UnixStream::connect(self.directory.join("control")).context("the models do not answer")?;
        writeln!(stream, "{line}")?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        match answer.trim() {
            error if error.starts_with("error") || error.is_empty() => bail!("models: {line}: {error}"),
            answer => Ok(answer.to_string()),
        }
    }

    /// Returns one of the counts.
    pub fn count(&self, name: &str) -> Result<u64> {
        let all = self.command("counts")?;
        let count = all.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
        count.with_context(|| format!("the models do not count {name}"))
    }
}
