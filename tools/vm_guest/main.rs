//! Runs commands in other virtual machines of a test ring: a stand-in for ssh, with which mpiexec starts its proxies.
//! The network joins only these machines, so nothing is authenticated or encrypted.
//!
//! `vm-guest serve USER` runs commands for others: those of one port as the user with this number, those of another,
//! which `cargo xtask vm-ring` uses, as root. `vm-guest HOST COMMAND...` has the command run at HOST by the user; its
//! output becomes the program's own. `vm-guest chip ADAPTER` drives an adapter by commands on its standard input.

mod chip;

use anyhow::{bail, Context, Result};
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::thread;

/// The port whose commands an ordinary user executes, and the port whose commands root executes.
const USER_PORT: u16 = 5140;
const ROOT_PORT: u16 = 5141;

/// Longest command line, bytes.
const LINE_MAX: u64 = 1 << 20;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    match &args[..] {
        [verb, user] if verb == "serve" => {
            let user = user.parse().context("the number of a user")?;
            thread::spawn(|| serve(ROOT_PORT, None));
            serve(USER_PORT, Some(user))
        }
        [verb, adapter] if verb == "chip" => chip::control(adapter),
        [host, command @ ..] if !command.is_empty() => run(host, &command.join(" ")),
        _ => bail!("usage: vm-guest serve USER, vm-guest chip ADAPTER, or vm-guest HOST COMMAND..."),
    }
}

fn serve(port: u16, user: Option<u32>) -> Result<()> {
    let listener = TcpListener::bind(("0.0.0.0", port)).context("waiting for commands")?;
    for stream in listener.incoming() {
        let stream = stream.context("waiting for commands")?;
        thread::spawn(move || {
            if let Err(error) = execute(stream, user) {
                eprintln!("vm-guest: {error:#}");
            }
        });
    }
    Ok(())
}

/// Runs the command in the first line of a connection. The rest of the connection is its input and output.
fn execute(stream: TcpStream, user: Option<u32>) -> Result<()> {
    let mut line = String::new();
    // One byte at a time: what follows the line is the command's.
    let mut bytes = stream.try_clone()?.take(LINE_MAX);
    BufReader::with_capacity(1, &mut bytes).read_line(&mut line).context("reading a command")?;
    let end = || -> Result<Stdio> { Ok(OwnedFd::from(stream.try_clone()?).into()) };
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", line.trim_end()]).stdin(end()?).stdout(end()?).stderr(end()?);
    if let Some(user) = user {
        shell.uid(user).gid(user).env("HOME", "/tmp");
    }
    shell.status().with_context(|| format!("running {line:?}"))?;
    stream.shutdown(Shutdown::Both).or(Ok(()))
}

fn run(host: &str, command: &str) -> Result<()> {
    let mut stream = TcpStream::connect((host, USER_PORT)).with_context(|| format!("connecting to {host}"))?;
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
