//! Tests against Linux's own NTB drivers: first these drivers at both ends of a modelled link, then ntbring's driver at
//! one end and Linux's at the other.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Result};

use super::checks::Checks;
use super::console::{Console, Session};
use super::machine::{fresh_directory, Config, Machine};
use super::models::Models;
use super::ring::Setting;
use crate::ui::Tally;

/// Size of the windows, bytes. Linux's test clients cannot allocate more.
const WINDOW: u64 = 4 << 20;

/// A machine with Linux's driver and ntb_tool.
struct Tool {
    console: Console,
    /// Directory of ntb_tool, and that of the peer in it.
    own: String,
    peer: String,
    address: String,
}

/// The properties in which Linux's drivers differ.
struct Traits {
    driver: &'static str,
    /// Scratchpads that are tested.
    scratchpads: [u32; 3],
    /// True if the driver takes a link up and down by command at either end; otherwise its presence decides.
    has_switch: bool,
}

/// Returns Linux's driver of a kind of chip.
fn driver(chip: &str) -> Result<Traits> {
    match chip {
        "skx" | "icx" | "spr" => Ok(Traits { driver: "ntb_hw_intel", scratchpads: [0, 3, 15], has_switch: true }),
        "amd" => Ok(Traits { driver: "ntb_hw_amd", scratchpads: [0, 3, 7], has_switch: false }),
        _ => bail!("Linux has no driver of {chip} with which ntbring's could be compared"),
    }
}

impl Tool {
    fn load(machine: &Machine, modules: &Path, driver: &str) -> Result<Tool> {
        let tool = Tool {
            console: machine.console,
            address: machine.addresses()[0].clone(),
            own: format!("/sys/kernel/debug/ntb_tool/{}", machine.addresses()[0]),
            peer: format!("/sys/kernel/debug/ntb_tool/{}/peer0", machine.addresses()[0]),
        };
        for module in ["ntb", driver, "ntb_tool"] {
            tool.insert(modules, module, "")?;
        }
        Ok(tool)
    }

    fn insert(&self, modules: &Path, module: &str, options: &str) -> Result<()> {
        let command = format!("/run/busybox insmod {}/{module}.ko {options}", modules.display());
        let answer = self.console.root(&command)?;
        ensure!(answer.success(), "loading {module}: {}", answer.output);
        Ok(())
    }

    fn remove(&self, module: &str) -> Result<()> {
        self.shell(&format!("/run/busybox rmmod {module}")).map(|_| ())
    }

    fn shell(&self, command: &str) -> Result<String> {
        Ok(self.console.root(command)?.text().to_string())
    }

    fn read(&self, file: &str) -> Result<String> {
        self.shell(&format!("cat {}/{file}", self.own))
    }

    fn write(&self, file: &str, text: &str) -> Result<()> {
        let answer = self.console.root(&format!("echo \"{text}\" >{}/{file}", self.own))?;
        ensure!(answer.success(), "writing {text} to {file}: {}", answer.output);
        Ok(())
    }

    /// Creates the windows of both directions.
    fn map(&self) -> Result<()> {
        self.write("peer0/mw_trans0", &WINDOW.to_string())?;
        // The peer's window appears only after this.
        self.write("peer0/peer_mw_trans0", &format!("0:{WINDOW}"))
    }

    /// Removes them: the client does not survive its removal with them.
    fn unmap(&self) -> Result<()> {
        self.write("peer0/mw_trans0", "0")?;
        self.write("peer0/peer_mw_trans0", "0:0")
    }

    /// Takes the link up. AMD's driver refuses that at the secondary end, where it has no effect but on events.
    fn enable(&self, traits: &Traits) -> Result<()> {
        match self.write("link", "Y") {
            Err(_) if !traits.has_switch => Ok(()),
            result => result,
        }
    }

    fn link(&self) -> Result<String> {
        self.read("peer0/link")
    }

    /// Waits until a file holds a text; returns what it holds at last.
    fn until(&self, file: &str, text: &str) -> Result<String> {
        until(text, || self.read(file))
    }

    fn window(&self, length: usize) -> Result<String> {
        self.shell(&format!("head -c {length} {}/mw0", self.peer))
    }
}

/// Repeats a question until the answer is `text`, for at most 20 s. Returns the last answer.
fn until(text: &str, ask: impl FnMut() -> Result<String>) -> Result<String> {
    until_so(|answer| answer == text, ask)
}

/// Repeats a question until the answer is as wanted, for at most 20 s. Returns the last answer.
fn until_so(is_so: impl Fn(&str) -> bool, mut ask: impl FnMut() -> Result<String>) -> Result<String> {
    let start = Instant::now();
    loop {
        let answer = ask()?;
        if is_so(&answer) || start.elapsed() > Duration::from_secs(20) {
            return Ok(answer);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Runs all tests.
pub fn run(setting: &Setting, modules: &Path) -> Result<Tally> {
    let traits = driver(&setting.chip)?;
    let driver = traits.driver;
    let directory = fresh_directory("peer")?;
    let models = Models::start(&setting.tools.models, &setting.chip, 1, &directory)?;
    let network = fastrand::u16(20_000..60_000);
    let boot = |id: u32| {
        let adapters = vec![models.socket(0, if id == 0 { "a" } else { "b" })];
        let words = setting.words(false);
        let directory = directory.clone();
        let chip = setting.chip.clone();
        Config { id, guests: 2, adapters, chip, over: None, words, network, accel: setting.accel, directory }
            .start(setting.images)
    };
    let mut machines = [boot(0)?, boot(1)?];
    machines.iter_mut().try_for_each(Machine::wait)?;
    let mut checks = Checks::new(format!("{driver} at both ends of a {} link", setting.chip));
    let [a, b] = [Tool::load(&machines[0], modules, driver)?, Tool::load(&machines[1], modules, driver)?];
    both_ends(&a, &b, modules, &models, &traits, &mut checks)?;
    clients(&a, &b, modules, &mut checks)?;
    let mut tally = checks.tally();
    a.remove(driver)?;

    let mut checks = Checks::new(format!("ntbring's driver against {driver}"));
    b.insert(modules, "ntb_tool", "")?;
    let bound = a.console.root(&format!("{} bind {}", setting.tools.tool.display(), a.address))?;
    checks.that("ntbring bind", bound.success(), bound.text());
    let mut ours = a.console.session(&format!("{} chip {}", setting.tools.remote.display(), a.address))?;
    mixed(&mut ours, &b, &models, &traits, &mut checks)?;
    drop(ours);
    tally += checks.tally();
    Ok(tally)
}

fn both_ends(a: &Tool, b: &Tool, modules: &Path, models: &Models, traits: &Traits, checks: &mut Checks) -> Result<()> {
    a.write("link", "Y")?;
    b.enable(traits)?;
    checks.equal("link, seen by A", "Y", &a.until("peer0/link", "Y")?);
    checks.equal("link, seen by B", "Y", &b.until("peer0/link", "Y")?);
    for (from, to, value, names) in [(a, b, "0xaa000001", "A to B"), (b, a, "0xaa000002", "B to A")] {
        from.write("peer0/spad3", value)?;
        checks.equal(&format!("scratchpad 3, {names}"), value, &to.read("spad3")?);
        checks.equal(&format!("scratchpad 3 read across, {names}"), value, &from.read("peer0/spad3")?);
    }
    for tool in [a, b] {
        tool.map()?;
    }
    for (from, to, text, names) in [(a, b, "hello from A", "A to B"), (b, a, "hello from B", "B to A")] {
        from.write("peer0/peer_mw0", text)?;
        checks.equal(&format!("window, {names}"), text, &until(text, || to.window(text.len()))?);
        let across = from.shell(&format!("head -c {} {}/peer_mw0", text.len(), from.peer))?;
        checks.equal(&format!("window read across, {names}"), text, &across);
    }
    for (from, to, names) in [(a, b, "A to B"), (b, a, "B to A")] {
        to.write("db_mask", "c 0x24")?;
        from.write("peer_db", "s 0x24")?;
        checks.equal(&format!("doorbells 2 and 5, {names}"), "0x24", &to.until("db", "0x24")?);
        to.write("db", "c 0x24")?;
        checks.equal(&format!("doorbells cleared, {names}"), "0x0", &to.until("db", "0x0")?);
    }
    models.command("cable 0 out")?;
    checks.equal("link without cable, seen by A", "N", &a.until("peer0/link", "N")?);
    if traits.has_switch {
        checks.equal("link without cable, seen by B", "N", &b.until("peer0/link", "N")?);
    }
    models.command("cable 0 in")?;
    if !traits.has_switch {
        // The primary host has cleared the bit by which the driver at B says that it is there.
        println!("  {} is loaded again at B, without which its link would stay down", traits.driver);
        b.unmap()?;
        b.remove("ntb_tool")?;
        b.remove(traits.driver)?;
        b.insert(modules, traits.driver, "")?;
        b.insert(modules, "ntb_tool", "")?;
        b.enable(traits)?;
    }
    checks.equal("link with the cable again, seen by A", "Y", &a.until("peer0/link", "Y")?);
    checks.equal("link with the cable again, seen by B", "Y", &b.until("peer0/link", "Y")?);
    for tool in [a, b] {
        tool.unmap()?;
        tool.remove("ntb_tool")?;
    }
    Ok(())
}

/// Linux's ntb_pingpong and ntb_perf.
fn clients(a: &Tool, b: &Tool, modules: &Path, checks: &mut Checks) -> Result<()> {
    for tool in [a, b] {
        tool.insert(modules, "ntb_pingpong", "delay_ms=0")?;
    }
    let count = |tool: &Tool| -> Result<u64> {
        let text = tool.shell(&format!("cat /sys/kernel/debug/ntb_pingpong/{}/count", tool.address))?;
        Ok(text.parse().unwrap_or(0))
    };
    thread::sleep(Duration::from_secs(3));
    let before = count(a)?;
    thread::sleep(Duration::from_secs(2));
    let after = count(a)?;
    checks.that("ntb_pingpong goes on", after > before && before > 0, &format!("{before}, 2 s later {after}"));
    for tool in [a, b] {
        tool.remove("ntb_pingpong")?;
        tool.insert(modules, "ntb_perf", "chunk_order=14 total_order=18")?;
    }
    let file = format!("/sys/kernel/debug/ntb_perf/{}", a.address);
    thread::sleep(Duration::from_secs(3));
    let result = a.shell(&format!("echo 0 >{file}/run; cat {file}/run"))?;
    let rate = result.lines().find(|line| line.contains("MBytes/s")).unwrap_or(&result).trim().to_string();
    checks.that("ntb_perf, A to B", rate.contains("MBytes/s"), &rate);
    for tool in [a, b] {
        tool.remove("ntb_perf")?;
    }
    Ok(())
}

/// ntbring's driver at end A, ntb_tool at end B.
fn mixed(ours: &mut Session, theirs: &Tool, models: &Models, traits: &Traits, checks: &mut Checks) -> Result<()> {
    let ready = ours.line()?;
    checks.that("ntbring's driver starts", ready.starts_with("ready"), &ready);
    theirs.enable(traits)?;
    checks.equal("link, seen by ntb_tool", "Y", &theirs.until("peer0/link", "Y")?);
    let up = until_up(ours)?;
    checks.that("link, seen by ntbring", up.starts_with("up gen"), &up);
    exchange(ours, theirs, traits, "1", checks)?;

    ours.ask("events")?;
    ours.ask("disable")?;
    checks.equal("link that ntbring has disabled, seen by ntb_tool", "N", &theirs.until("peer0/link", "N")?);
    ours.ask("prepare")?;
    ours.ask("enable")?;
    checks.equal("link that ntbring has enabled", "Y", &theirs.until("peer0/link", "Y")?);
    if traits.has_switch {
        theirs.write("link", "N")?;
        checks.equal("link that ntb_tool has disabled, seen by ntbring", "down", &until("down", || ours.ask("link"))?);
        theirs.write("link", "Y")?;
        checks.equal("link that ntb_tool has enabled", &up, &until_up(ours)?);
    }
    ours.ask("events")?;
    models.command("cable 0 out")?;
    if traits.has_switch {
        checks.equal("link without cable, seen by ntb_tool", "N", &theirs.until("peer0/link", "N")?);
    }
    let events = ours.ask("events")?;
    checks.equal("ntbring's event of the link", "doorbells=0x0 link_changed=true", &events);
    checks.equal("link without cable, seen by ntbring", "down", &ours.ask("link")?);
    models.command("cable 0 in")?;
    if !traits.has_switch {
        ours.ask("events")?;
        println!("  the link after that is not tested: {} stays down until it is loaded again", traits.driver);
        return theirs.unmap();
    }
    checks.equal("link with the cable again", &up, &until_up(ours)?);
    checks.equal("... seen by ntb_tool", "Y", &theirs.until("peer0/link", "Y")?);
    ours.ask("prepare")?;
    theirs.unmap()?;
    exchange(ours, theirs, traits, "2", checks)?;
    theirs.unmap()?;
    theirs.link().map(|_| ())
}

/// Waits until ntbring sees the link up; returns what it sees at last.
fn until_up(ours: &mut Session) -> Result<String> {
    until_so(|link| link.starts_with("up"), || ours.ask("link"))
}

/// Scratchpads, windows and doorbells in both directions; `round` makes the values differ from earlier ones.
fn exchange(ours: &mut Session, theirs: &Tool, traits: &Traits, round: &str, checks: &mut Checks) -> Result<()> {
    for register in traits.scratchpads {
        let (mine, other) = (format!("0xbeef0{round}{register:02}"), format!("0xcafe0{round}{register:02}"));
        ours.ask(&format!("set-peer-scratchpad {register} {mine}"))?;
        let found = theirs.until(&format!("spad{register}"), &mine)?;
        checks.equal(&format!("scratchpad {register}, ntbring to ntb_tool"), &mine, &found);
        theirs.write(&format!("peer0/spad{register}"), &other)?;
        let found = ours.ask(&format!("scratchpad {register}"))?;
        checks.equal(&format!("scratchpad {register}, ntb_tool to ntbring"), &other, &found);
    }
    theirs.map()?;
    let text = format!("from-ntbring-{round}");
    ours.ask(&format!("write 0 {text}"))?;
    checks.equal("window, ntbring to ntb_tool", &text, &until(&text, || theirs.window(text.len()))?);
    let text = format!("from-ntb_tool-{round}");
    theirs.write("peer0/peer_mw0", &text)?;
    let read = format!("read 0 {}", text.len());
    checks.equal("window, ntb_tool to ntbring", &text, &until(&text, || ours.ask(&read))?);
    theirs.write("db_mask", "c 0x24")?;
    ours.ask("ring 2")?;
    ours.ask("ring 5")?;
    checks.equal("doorbells 2 and 5, ntbring to ntb_tool", "0x24", &theirs.until("db", "0x24")?);
    theirs.write("db", "c 0x24")?;
    ours.ask("events")?;
    theirs.write("peer_db", "s 0x24")?;
    let expected = "doorbells=0x24 link_changed=false";
    checks.equal("doorbells 2 and 5, ntb_tool to ntbring", expected, &ours.ask("events")?);
    Ok(())
}
