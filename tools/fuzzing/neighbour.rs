//! A neighbour's agent that writes anything anywhere: scratchpads, the books on slices, the board, lanes of records and
//! doorbells, at every state of the link. Behind the host that it attacks is another one, to which circuits lead.
//! Afterwards a new agent of the neighbour must be served, and nothing may be held for the old one.

use crate::network::announcement;
use crate::script::Script;
use ntbring_host::clock;
use ntbring_memory::{OutWindow, Region};
use ntbring_models::{Cable, End, Model, Plugged};
use ntbring_ntb::fabric::Windows;
use ntbring_ntb::{PortIndex, PortList};
use ntbring_pci::link::{Action, Inputs, Introduction, LinkSetup, ARRIVAL, CONFIRMATION, REGISTERS};
use ntbring_pci::network::{Announcement, Circuit, Step};
use ntbring_pci::{identify, Adapter, Allotment, Chip, HostAdapters, PciAddress, SliceUse, CONTROL};
use ntbring_queue::{lines_for, Tag, LINE, TAG};
use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Identities of the host that is attacked, of the host behind it, of the neighbour, and of its successor.
const HOST: u64 = 5;
const BEHIND: u64 = 6;
const HOSTILE: u64 = 7;
const SUCCESSOR: u64 = 8;

/// Size of all windows, bytes.
const WINDOW: u64 = 1 << 20;

/// The most jobs that ask for windows.
const ALLOTS: usize = 2;

/// The user of all jobs.
const USER: u32 = 1000;

/// Longest time in which an honest neighbour is served.
const PATIENCE: Duration = Duration::from_secs(15);

/// Places in the first page of a window: entries on slices (64 bytes from the start, 32 each), and confirmations. See
/// `ledger` in ntbring-pci.
const ENTRIES: usize = 64;
const SLOTS: usize = 60;
const CONFIRMATIONS: usize = 2048;
const BOARD: usize = 4096;

fn now() -> Duration {
    Duration::from_nanos(clock::now())
}

fn plug(cable: &Cable) -> [Arc<Plugged>; 2] {
    End::BOTH.map(|end| Plugged::new(cable, end, PciAddress { domain: 0, bus: 5 + end as u8, device: 0, function: 0 }))
}

/// The hosts.
struct World {
    host: Arc<HostAdapters>,
    behind: Arc<HostAdapters>,
    hostile: Hostile,
    /// Number of jobs that have asked for windows.
    allots: usize,
}

impl World {
    /// Returns the hosts, and the neighbour's function for its successor.
    fn new(introduction: Introduction, outer: &Cable, inner: &Cable) -> (World, Arc<Plugged>) {
        let ([left, own], [right, far]) = (plug(outer), plug(inner));
        let open = |function: Arc<Plugged>, port: usize, host| {
            let chip = identify(function).expect("a driver");
            Adapter::open(chip, PortIndex::ALL[port], host, WINDOW).expect("an adapter")
        };
        let adapters = vec![open(right, 0, HOST), open(own, 1, HOST)];
        let host = HostAdapters::new(HOST, adapters).expect("threads");
        let behind = HostAdapters::new(BEHIND, vec![open(far, 1, BEHIND)]).expect("threads");
        let hostile = Hostile::new(identify(left.clone()).expect("a driver"), introduction);
        (World { host, behind, hostile, allots: 0 }, left)
    }

    /// Serves all hosts until the links are up, if they come up.
    fn bring_up(&mut self) {
        for _ in 0..60 {
            self.serve(1);
            if self.adapter().peer().is_some() && self.behind.network().len() > 1 {
                break;
            }
        }
    }

    fn adapter(&self) -> &Arc<Adapter> {
        self.host.adapter(PortIndex::ALL[1]).expect("the adapter that is attacked")
    }

    /// Lets all hosts look at what has arrived, the hostile one as if it were honest.
    fn serve(&mut self, rounds: usize) {
        for _ in 0..rounds {
            self.hostile.step();
            self.serve_honest();
        }
    }

    fn serve_honest(&self) {
        for host in [&self.host, &self.behind] {
            PortIndex::ALL.into_iter().filter_map(|port| host.adapter(port)).for_each(|adapter| {
                adapter.serve(now(), 11);
            });
            host.exchange();
        }
    }
}

/// The neighbour's agent.
struct Hostile {
    chip: Arc<dyn Chip>,
    /// Its window, into which the attacked host writes.
    memory: Region,
    iova: u64,
    /// The window of the attacked host.
    window: OutWindow,
    introduction: Introduction,
    setup: LinkSetup,
    /// Line and sequence number of the next record in the slice of each slot.
    cursors: [(usize, u16); SLOTS],
    posts: u64,
}

impl Hostile {
    fn new(chip: Arc<dyn Chip>, introduction: Introduction) -> Hostile {
        let limits = chip.limits();
        let memory = Region::anonymous(WINDOW as usize);
        let iova = chip.function().reserve_addresses(limits.incoming, limits.iova_align, limits.iova_below);
        let iova = iova.expect("free addresses");
        let window = chip.function().window(limits.aperture.bar, limits.aperture.offset, WINDOW).expect("a window");
        chip.initialize().expect("an initial state");
        chip.function().map_memory(&memory, iova).expect("a mapping");
        chip.function().set_bus_master(true);
        chip.set_translation(iova, WINDOW).expect("a translation");
        chip.enable_link().expect("a link");
        let (setup, cursors) = (LinkSetup::new(introduction, 3), [(0, 0); SLOTS]);
        Hostile { chip, memory, iova, window, introduction, setup, cursors, posts: 0 }
    }

    /// Makes an honest step of the bring-up.
    fn step(&mut self) {
        if self.chip.take_events().is_ok_and(|events| events.link_changed) {
            self.restart(4);
        }
        let (Ok(_), Ok(registers)) = (self.chip.link(), self.registers()) else { return };
        let words = [ARRIVAL, CONFIRMATION].map(|at| self.memory.word(at).load(Ordering::Relaxed));
        let mut actions = Vec::new();
        self.setup.step(&Inputs { now: now(), registers, words }, &mut actions);
        for action in actions {
            match action {
                Action::Scratchpad { register, value } => self.chip.set_peer_scratchpad(register, value),
                Action::Store { offset, value } => self.window.store(offset, value),
            }
        }
    }

    fn registers(&self) -> Result<[u32; REGISTERS], ntbring_pci::PciError> {
        let mut registers = [0; REGISTERS];
        for (number, register) in registers.iter_mut().enumerate() {
            *register = self.chip.scratchpad(number)?;
        }
        Ok(registers)
    }

    /// Begins a new bring-up.
    fn restart(&mut self, seed: u64) {
        self.setup = LinkSetup::new(self.introduction, seed);
        self.chip.function().set_bus_master(true);
        let _ = self.chip.initialize();
        let _ = self.chip.set_translation(self.iova, WINDOW);
    }

    /// Publishes a slice.
    fn publish(&self, slot: usize, words: [u64; 3]) {
        let sum = words.iter().fold(0, |sum, word| crc32c::crc32c_append(sum, &word.to_le_bytes()));
        for (i, word) in words.into_iter().chain([u64::from(sum) | 1 << 63]).enumerate() {
            self.window.store(ENTRIES + 32 * slot + 8 * i, word);
        }
    }

    /// Writes a text on the board.
    fn post(&mut self, text: &[u8]) {
        let text = &text[..text.len().min(CONTROL as usize - BOARD - 16)];
        self.posts += 1;
        let sum = crc32c::crc32c_append(crc32c::crc32c(&self.posts.to_le_bytes()), text);
        self.window.write_bytes(BOARD + 16, text);
        self.window.store(BOARD + 8, u64::from(sum) << 32 | text.len() as u64);
        self.window.store(BOARD, self.posts);
    }

    /// Returns the key and the place of a slice of the attacked host's window.
    fn slice(&self, slot: usize) -> Option<(u64, usize)> {
        let word = |i: usize| self.memory.word(ENTRIES + 32 * slot + 8 * i).load(Ordering::Relaxed);
        let place = (word(1) >> 32) as usize * 4096;
        (word(0) != 0 && place + (132 << 10) <= WINDOW as usize).then(|| (word(0), place))
    }

    /// Writes a record into the slice of a slot as if it were a lane.
    fn record(&mut self, slot: usize, kind: u8, bytes: &[u8]) {
        let Some((_, place)) = self.slice(slot) else { return };
        let (line, sequence) = &mut self.cursors[slot];
        let at = place + *line * LINE;
        self.window.write_bytes(at + TAG, bytes);
        self.window.store(at, Tag { sequence: *sequence, kind, len: bytes.len() as u32, meta: 0 }.word());
        *line = (*line + lines_for(bytes.len())) % 2000;
        *sequence = sequence.wrapping_add(1);
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut script = Script(data);
    let model = script.pick(&[Model::Skx, Model::Skx, Model::Icx, Model::Spr, Model::Amd, Model::Plx87]);
    let (outer, inner) = (model.cable(WINDOW), Model::Skx.cable(WINDOW));
    let introduction = Introduction {
        host: script.pick(&[HOSTILE, HOSTILE, HOSTILE, HOST, BEHIND, 0, u64::MAX]),
        port: PortIndex::ALL[usize::from(script.below(4))],
        doorbells: script.pick(&[31, 16, 1, 255, 200]),
        bytes: script.pick(&[WINDOW, WINDOW, WINDOW, 4096, CONTROL, u64::from(u32::MAX) * 4096]),
    };
    let (mut world, left) = World::new(introduction, &outer, &inner);
    let free = world.host.free();
    if script.byte() < 240 {
        world.bring_up();
    }
    let windows = Windows { bytes: 64 << 10, accounts: false, ports: PortList::default() };
    let far_job = world.behind.allot(windows, USER, &|| false).ok();
    let (mut jobs, mut uses) = (Vec::new(), Vec::new());
    while !script.is_over() {
        act(&mut world, &mut script, &outer, far_job.as_deref(), &mut jobs, &mut uses);
    }
    drop((uses, jobs));
    succeed(world, left, &outer, free);
}

/// Does one thing that the script says.
fn act(
    world: &mut World,
    script: &mut Script,
    cable: &Cable,
    far_job: Option<&Allotment>,
    jobs: &mut Vec<Arc<Allotment>>,
    uses: &mut Vec<SliceUse>,
) {
    let windows = Windows { bytes: 64 << 10, accounts: false, ports: PortList::default() };
    let job_key = jobs.last().map_or(9, |job| job.address().key | 1);
    let far_key = far_job.map_or(9, |job| job.address().key | 1);
    let keys = [2, 3, 4, 5, 6, 7, 0, 9, u64::MAX, job_key, far_key];
    let slot = usize::from(script.byte()) % SLOTS;
    match script.below(18) {
        0 => world.serve(usize::from(script.below(8))),
        1 => world.serve_honest(),
        2 => world.hostile.window.store(8 * usize::from(script.short()) % WINDOW as usize, script.word()),
        3 => world.hostile.window.store(8 * usize::from(script.short()) % CONTROL as usize, script.word()),
        4 => world.hostile.window.store(CONFIRMATIONS + 8 * slot, script.pick(&keys)),
        5 | 6 => {
            let pages = script.pick(&[1, 8, 32, 33, 100, 255, 1 << 32, u64::from(u32::MAX)]);
            let at = script.pick(&[8, 16, 40, 100, 200, 0, 255, u64::from(u32::MAX)]);
            let state = script.pick(&[1, 1, 1, 2, 0, 3]);
            let user = script.pick(&[0, 0, USER]);
            let place = (at << 32).wrapping_add(pages);
            world.hostile.publish(slot, [script.pick(&keys), place, state << 32 | u64::from(user)]);
        }
        7 => {
            let (register, value) = (usize::from(script.below(REGISTERS as u8)), script.int());
            world.hostile.chip.set_peer_scratchpad(register, value);
        }
        8 => world.hostile.restart(script.word()),
        9 => {
            let text = script.some(255);
            world.hostile.post(&text);
        }
        10 | 11 => {
            let (mut all, key) = (vec![announcement(script)], script.pick(&keys));
            if script.byte() < 200 {
                all.push(route(world, script, key));
            }
            world.hostile.post(&postcard::to_allocvec(&all).expect("bytes"));
        }
        12 => {
            let adapter = world.adapter().clone();
            let found = adapter.use_slice(script.pick(&keys), script.pick(&[0, USER]));
            if let Some(slice) = found {
                slice.ring();
                if let Ok(window) = slice.map(0, slice.range.len.min(WINDOW)) {
                    window.store(window.len() - 8, 1);
                }
                uses.push(slice);
            }
        }
        13 => {
            uses.pop();
            if script.byte() < 100 {
                jobs.pop();
            }
        }
        14 => {
            let (kind, len) = (script.below(6), usize::from(script.byte()));
            let mut bytes = script.word().to_le_bytes().to_vec();
            bytes.truncate(len);
            bytes.resize(len, 1);
            if script.byte() < 128 && len >= 8 {
                bytes[..8].copy_from_slice(&(8 * u64::from(script.short())).to_le_bytes());
            }
            let slot = (0..SLOTS).map(|i| (slot + i) % SLOTS).find(|&slot| world.hostile.slice(slot).is_some());
            slot.into_iter().for_each(|slot| world.hostile.record(slot, kind, &bytes));
        }
        15 => {
            world.hostile.chip.ring(usize::from(script.byte()) % world.hostile.chip.limits().doorbells);
        }
        16 => {
            let is_plugged = script.byte() < 128;
            cable.lock().set_cable(is_plugged);
        }
        // A job waits for room for some seconds.
        _ if world.allots < ALLOTS => {
            world.allots += 1;
            jobs.extend(world.host.allot(windows, USER, &|| false).ok());
        }
        _ => {}
    }
}

/// Returns an announcement of the neighbour with a circuit through the attacked host to the one behind it, nearly as an
/// honest one would make it.
fn route(world: &World, script: &mut Script, key: u64) -> Announcement {
    let mine = world.hostile.introduction;
    let epoch = |adapter: Option<&Arc<Adapter>>| adapter.and_then(|one| one.cable()).map_or(1, |cable| cable.epoch);
    let here = epoch(world.host.adapter(PortIndex::ALL[1]));
    let there = epoch(world.behind.adapter(PortIndex::ALL[1]));
    let cable = ntbring_pci::network::Cable {
        port: mine.port.get(),
        peer: HOST,
        peer_port: 1,
        epoch: 1,
        window: WINDOW,
        rate: 0,
    };
    let steps = vec![Step { host: HOST, port: 1, epoch: here }, Step { host: BEHIND, port: 1, epoch: there }];
    let key = if script.byte() < 30 { key } else { script.pick(&[key, 9]) };
    let user = script.pick(&[USER, 0]);
    let circuits = [2, 4].into_iter().map(|id| Circuit { id, user, key, steps: steps.clone() }).collect();
    let sequence = 100 + world.hostile.posts;
    Announcement { host: mine.host, sequence, name: String::new(), cables: vec![cable], circuits }
}

/// Replaces the neighbour's agent by an honest one, which must be served.
fn succeed(world: World, function: Arc<Plugged>, cable: &Cable, free: u64) {
    let World { host, behind, hostile, .. } = world;
    cable.lock().set_cable(true);
    // Otherwise AMD's chips make the successor wait for a second.
    hostile.chip.disable_link();
    drop(hostile);
    let chip = identify(function).expect("a driver");
    let successor = Adapter::open(chip, PortIndex::ALL[0], SUCCESSOR, WINDOW).expect("an adapter");
    let own = host.adapter(PortIndex::ALL[1]).expect("the adapter that was attacked").clone();
    let start = Instant::now();
    loop {
        successor.serve(now(), 12);
        for host in [&host, &behind] {
            PortIndex::ALL.into_iter().filter_map(|port| host.adapter(port)).for_each(|adapter| {
                adapter.serve(now(), 13);
            });
            host.exchange();
        }
        let peer = own.peer().is_some_and(|peer| peer.host == SUCCESSOR) && successor.peer().is_some();
        if peer && host.free() == free && behind.adapter(PortIndex::ALL[1]).is_some_and(|far| far.peer().is_some()) {
            return;
        }
        assert!(
            start.elapsed() < PATIENCE,
            "the successor is not served: {}; {}; {} of {free} bytes are free",
            own.why_down(),
            successor.why_down(),
            host.free()
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn world(doorbells: u8) -> World {
        let introduction = Introduction { host: HOSTILE, port: PortIndex::ALL[0], doorbells, bytes: WINDOW };
        let (mut world, _) = World::new(introduction, &Model::Skx.cable(WINDOW), &Model::Skx.cable(WINDOW));
        world.bring_up();
        assert!(world.adapter().peer().is_some());
        world
    }

    #[test]
    fn a_doorbell_that_the_chip_does_not_have_is_not_rung() {
        let world = world(255);
        for page in 8..248 {
            world.hostile.publish(0, [9, page << 32 | 1, 1 << 32 | u64::from(USER)]);
            let slice = world.adapter().use_slice(9, USER).expect("a slice");
            slice.ring();
            assert!(slice.doorbell() < world.adapter().chip().limits().doorbells);
        }
    }
}
