//! Commands in a virtual machine, over a network that joins it with this machine alone.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use crate::process;

/// Mark of the line with which a command's exit status is told.
const STATUS: &str = "vm-ring-status ";

/// The ways into one machine; a copy may be used by another thread.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    /// Port of this machine at which commands are executed as an ordinary user.
    pub user: u16,
    /// Port at which root executes them.
    pub root: u16,
}

/// The end of a command.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Output and errors.
    pub output: String,
    /// Exit status; None if the machine is gone or the time was over.
    pub status: Option<i32>,
    /// Time that it took.
    pub elapsed: Duration,
}

impl Answer {
    /// Returns true if the command has succeeded.
    pub fn success(&self) -> bool {
        self.status == Some(0)
    }

    /// Returns the output without space around it.
    pub fn text(&self) -> &str {
        self.output.trim()
    }
}

impl Console {
    /// Runs a command as root.
    pub fn root(self, command: &str) -> Result<Answer> {
        run(self.root, command, Duration::from_secs(60))
    }

    /// Runs a command as an ordinary user, for at most `limit`.
    pub fn user(self, command: &str, limit: Duration) -> Result<Answer> {
        run(self.user, command, limit)
    }

    /// Starts a program as root that is used by lines.
    pub fn session(self, command: &str) -> Result<Session> {
        let mut stream = connect(self.root)?;
        writeln!(stream, "exec {command} 2>&1")?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Session { answers: BufReader::new(stream.try_clone()?), stream })
    }
}

fn connect(port: u16) -> Result<TcpStream> {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).context("connecting to a virtual machine")
}

/// Runs a command of one line.
fn run(port: u16, command: &str, limit: Duration) -> Result<Answer> {
    let start = Instant::now();
    let mut stream = connect(port)?;
    let seconds = limit.as_secs().max(1);
    // The machine itself ends what takes too long, else it would go on when this side has left.
    let quoted = command.replace('\'', r"'\''");
    let line = format!("timeout -k 5 {seconds} sh -c '{quoted}' </dev/null; code=$?; echo; echo {STATUS}$code");
    // A machine that is not ready refuses the connection late.
    if writeln!(stream, "{line}").is_err() {
        return Ok(Answer { output: String::new(), status: None, elapsed: start.elapsed() });
    }
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut bytes = Vec::new();
    let mut part = [0; 1 << 14];
    while start.elapsed() < limit + Duration::from_secs(15) {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&part[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        if process::interrupted() {
            bail!("interrupted");
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (output, status) = match text.rsplit_once(STATUS) {
        Some((output, status)) => (output.trim_end().to_string(), status.trim().parse().ok()),
        None => (text, None),
    };
    Ok(Answer { output, status, elapsed: start.elapsed() })
}

/// A program in a machine that answers each line with a line.
pub struct Session {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Session {
    /// Returns the next line that the program prints.
    pub fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let count = self.answers.read_line(&mut line).context("a program in a virtual machine does not answer")?;
        if count == 0 {
            bail!("a program in a virtual machine has ended");
        }
        Ok(line.trim().to_string())
    }

    /// Sends a line and returns the answer.
    pub fn ask(&mut self, line: &str) -> Result<String> {
        writeln!(self.stream, "{line}")?;
        self.line()
    }
}
