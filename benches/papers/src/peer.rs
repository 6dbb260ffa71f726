//! The second process: another run of this program. It reads commands as lines from its standard input, the first of
//! which is the first host's address; the only line that it writes is its own address.

use crate::end::{End, Watch};
use crate::link::{Host, Joined, Place};
use crate::measure::{Order, LANE, MEMORY};
use crate::model::Model;
use crate::{lane, Error};
use nix::sched::{sched_setaffinity, CpuSet};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::{getppid, Pid};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};

/// The option that makes this program the second process.
pub const FOLLOW: &str = "--follow";

/// Bytes of a window.
const WINDOW: usize = lane::CONTROL + LANE + MEMORY;

fn gone(what: impl std::fmt::Display) -> Error {
    Error::Gone(what.to_string())
}

/// Binds this process to a core.
pub fn bind(core: usize) -> Result<(), Error> {
    let mut set = CpuSet::new();
    let bound = set.set(core).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    bound.map_err(|error| Error::Argument(format!("core {core}: {error}")))
}

/// The second process, as a child of the first one. It ends when this value is dropped.
pub struct Peer {
    child: Arc<Mutex<Child>>,
    orders: ChildStdin,
    _host: Joined,
}

impl Peer {
    /// Starts the process with these options, and joins it. Returns this process's end of the connection, too.
    pub fn start(model: Model, link: &str, options: &[String]) -> Result<(Peer, End), Error> {
        let host = Host::create(WINDOW, crate::link::model(link)?)?;
        let program = std::env::current_exe().map_err(gone)?;
        let mut command = Command::new(program);
        command.arg(FOLLOW).args(["--model", model.name(), "--link-model", link]).args(options);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(gone)?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take());
        let child = Arc::new(Mutex::new(child));
        let (Some(mut orders), Some(answers)) = (orders, answers) else { return Err(gone("it has no pipes")) };
        writeln!(orders, "{}", host.address()).map_err(gone)?;
        let mut address = String::new();
        BufReader::new(answers).read_line(&mut address).map_err(gone)?;
        let host = host.join(Place::First, &address)?;
        let watched = child.clone();
        let watch: Watch = Box::new(move || match watched.lock().map(|mut child| child.try_wait()) {
            Ok(Ok(None)) => Ok(()),
            _ => Err(gone("the second process has ended")),
        });
        let end = End::new(model, host.own.clone(), host.peer.clone(), LANE, watch);
        Ok((Peer { child, orders, _host: host }, end))
    }

    /// Announces the next batch to the process.
    pub fn order(&mut self, order: Order) -> Result<(), Error> {
        writeln!(self.orders, "{order}").map_err(gone)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Ok(mut child) = self.child.lock() {
            // The process may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs the second process until its input ends.
pub fn follow(model: Model, link: &str) -> Result<(), Error> {
    let parent = getppid();
    set_pdeathsig(Signal::SIGKILL).map_err(gone)?;
    let host = Host::create(WINDOW, crate::link::model(link)?)?;
    println!("{}", host.address());
    let mut lines = std::io::stdin().lines();
    let mut next = || lines.next().transpose().map_err(gone);
    let Some(address) = next()? else { return Ok(()) };
    let host = host.join(Place::Second, &address)?;
    let watch: Watch =
        Box::new(move || if getppid() == parent { Ok(()) } else { Err(gone("the first process has ended")) });
    let mut end = End::new(model, host.own.clone(), host.peer.clone(), LANE, watch);
    while let Some(line) = next()? {
        let order = Order::parse(&line).ok_or_else(|| Error::Argument(format!("{line:?} is no order")))?;
        order.follow(&mut end)?;
    }
    Ok(())
}
