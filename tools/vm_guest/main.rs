//! Runs commands in other virtual machines of a test ring: a stand-in for ssh, with which mpiexec starts its proxies.
//! The network joins only these machines, so nothing is authenticated or encrypted.
//!
//! `vm-guest serve` runs commands for others; `vm-guest HOST COMMAND...` has the command run at HOST, whose output
//! becomes its own.

use anyhow::{bail, Context, Result};
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::thread;

/// The port of the service.
const PORT: u16 = 5140;

/// Longest command line, bytes.
const LINE_MAX: u64 = 1 << 20;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match &args[..] {
        [verb] if verb == "serve" => serve(),
        [host, command @ ..] if !command.is_empty() => run(host, &command.join(" ")),
        _ => bail!("usage: vm-guest serve, or vm-guest HOST COMMAND..."),
    }
}

fn serve() -> Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", PORT)).context("waiting for commands")?;
    for stream in listener.incoming() {
        let stream = stream.context("waiting for commands")?;
        thread::spawn(move || {
            if let Err(error) = execute(stream) {
                eprintln!("vm-guest: {error:#}");
            }
        });
    }
    Ok(())
}

/// Runs the command in the first line of a connection. The rest of the connection is its input and output.
fn execute(stream: TcpStream) -> Result<()> {
    let mut line = String::new();
    // One byte at a time: what follows the line is the command's.
    let mut bytes = stream.try_clone()?.take(LINE_MAX);
    BufReader::with_capacity(1, &mut bytes).read_line(&mut line).context("reading a command")?;
    let end = || -> Result<Stdio> { Ok(OwnedFd::from(stream.try_clone()?).into()) };
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line.trim_end()]).stdin(end()?).stdout(end()?).stderr(end()?);
    shell.status().with_context(|| format!("running {line:?}"))?;
    stream.shutdown(Shutdown::Both).or(Ok(()))
}

fn run(host: &str, command: &str) -> Result<()> {
    let mut stream = TcpStream::connect((host, PORT)).with_context(|| format!("connecting to {host}"))?;
    writeln!(stream, "{command}")?;
    let mut input = stream.try_clone()?;
    // The thread ends with the process; its input may stay open longer.
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut input);
        let _ = input.shutdown(Shutdown::Write);
    });
    io::copy(&mut stream, &mut io::stdout()).with_context(|| format!("reading from {host}"))?;
    Ok(())
}
