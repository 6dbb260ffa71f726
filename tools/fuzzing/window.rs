//! A neighbour's processes that write anything into the window of a host of a ring, while the ranks of the ring send each
//! other messages: tags, headers, packets of all kinds, heads, boards, keep-alives, requests for notifications, and the
//! network manager's packets. The host may report errors; it must neither panic nor hang.

use crate::common::ring::{try_run_over, Layout, Rank};
use crate::common::traffic::{Shape, Traffic};
use crate::script::Script;
use ntbring_endpoint::Settings;
use ntbring_memory::OutWindow;
use ntbring_ntb::fabric::{Backend, Bells, Fabric, FabricAddress, OpenPort, PortAddress, Windows};
use ntbring_ntb::loopback::Loopback;
use ntbring_ntb::{NtbError, Port, PortIndex, Side};
use ntbring_queue::{lines_for, Reliability, Tag, LINE, TAG};
use ntbring_ring::layout::WindowLayout;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Size of all windows, bytes.
const WINDOW: u64 = 128 << 10;

/// Longest time that a host takes for an input.
const PATIENCE: Duration = Duration::from_secs(15);

/// The backend, which remembers the addresses of the hosts.
struct Remembering {
    host: usize,
    addresses: Arc<Mutex<HashMap<usize, FabricAddress>>>,
}

impl Backend for Remembering {
    fn create(&self, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        let fabric = Loopback.create(windows)?;
        self.addresses.lock().expect("no panic").insert(self.host, fabric.address());
        Ok(fabric)
    }

    fn attach(&self, address: &FabricAddress, windows: Windows) -> Result<Box<dyn Fabric>, NtbError> {
        Loopback.attach(address, windows)
    }

    fn bells(&self, address: &FabricAddress) -> Result<Arc<dyn Bells>, NtbError> {
        Loopback.bells(address)
    }
}

/// Access of a neighbour to the window of host 0 on one side.
struct Hostile {
    window: OutWindow,
    ring: Box<dyn Fn(usize)>,
    layout: WindowLayout,
    /// The line and the sequence number of the next entry of each lane.
    cursors: Vec<(usize, u16)>,
}

impl Hostile {
    fn new(rank: &Rank, side: Side, addresses: &HashMap<usize, FabricAddress>, is_managed: bool) -> Hostile {
        let topology = rank.layout.topology();
        let neighbour = topology.neighbour(0, side);
        let (own, theirs) = (PortIndex::ALL[side as usize], PortIndex::ALL[side.opposite() as usize]);
        let windows = Windows { bytes: WINDOW, accounts: false, ports: Default::default() };
        let fabric = Loopback.attach(&addresses[&neighbour], windows).expect("the neighbour");
        let port = fabric.port(theirs, &PortAddress { host: addresses[&0], port: own }).expect("its port");
        let OpenPort::Software(port) = port else { panic!("windows are memory") };
        let window = port.outgoing(own.get() as u64 * WINDOW, WINDOW).expect("the window");
        let layout = WindowLayout::new(&topology, 0, side, WINDOW, is_managed).expect("a layout");
        let cursors = vec![(0, 0); layout.lanes()];
        Hostile { window, ring: Box::new(move |doorbell| port.ring(doorbell)), layout, cursors }
    }

    fn act(&mut self, script: &mut Script) {
        let layout = &self.layout;
        let lane = usize::from(script.byte()) % layout.lanes();
        match script.below(12) {
            0 => self.window.store(8 * script.int() as usize % WINDOW as usize, script.word()),
            1 => {
                let at = script.pick(&[layout.credit_offset(lane), layout.tail_offset(lane)]);
                let near = u64::from(script.short());
                self.window.store(at, script.pick(&[near, u64::MAX, 1, 64]));
            }
            2 => self.window.store(layout.liveness_offset() + 8 * usize::from(script.below(6)), {
                let value = script.int();
                u64::from(!value) << 32 | u64::from(value)
            }),
            3 => self.window.store(layout.notices_offset() + 8 * usize::from(script.below(32)), script.word()),
            4 => self.window.store(layout.outages_offset() + 8 * usize::from(script.below(8)), script.word()),
            5 if layout.boards() > 0 && layout.board().bytes() > 0 => {
                let at = layout.board_offset(0, 0, usize::from(script.byte()) % layout.boards());
                let word = u64::from(script.below(3)) | u64::from(script.short()) << 32;
                self.window.store(at + 8 * usize::from(script.byte()) % layout.board().bytes(), word);
            }
            6 => (self.ring)(usize::from(script.below(16))),
            _ => {
                let kind = script.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
                let kind = if script.byte() < 100 { kind | 0x40 } else { kind };
                let kind = if script.byte() < 20 { script.byte() } else { kind };
                let meta = if script.byte() < 128 { 0 } else { script.short() & 0x7fff };
                self.entry(lane, kind, meta, script);
            }
        }
    }

    /// Writes an entry that comes next in its lane.
    fn entry(&mut self, lane: usize, kind: u8, meta: u16, script: &mut Script) {
        let mut bytes = script.some(400);
        if kind & 0x40 != 0 && bytes.len() >= 8 {
            // Ranks of the job, most often.
            bytes[..8].copy_from_slice(&(u64::from(script.below(5)) | u64::from(script.below(5)) << 32).to_le_bytes());
        }
        let len = if script.byte() < 12 { script.int() & 0xf_ffff } else { bytes.len() as u32 };
        let lines = self.layout.lane_bytes() / LINE;
        let (line, sequence) = &mut self.cursors[lane];
        if *line + lines_for(bytes.len()) > lines {
            return;
        }
        let at = self.layout.lane_offset(lane) + *line * LINE;
        self.window.write_bytes(at + TAG, &bytes);
        self.window.store(at, Tag { sequence: *sequence, kind, len, meta }.word());
        *line += lines_for(bytes.len());
        *sequence = sequence.wrapping_add(1);
    }
}

/// Runs one input.
pub fn run(data: &[u8]) {
    let script = Mutex::new(data);
    let mut first = Script(data);
    let hosts = script_hosts(first.byte());
    let reliability = first.pick(&[Reliability::Off, Reliability::Off, Reliability::Detect, Reliability::Retry]);
    let side = if first.byte() % 2 == 0 { Side::Left } else { Side::Right };
    *script.lock().expect("no panic") = first.0;
    let layout = Layout::blocks(&vec![1; hosts]);
    let settings = Settings::default().with(|s| {
        s.ring.window = Some(WINDOW);
        s.ring.reliability = reliability;
    });
    let addresses = Arc::new(Mutex::new(HashMap::new()));
    let backend = |host| -> Arc<dyn Backend> { Arc::new(Remembering { host, addresses: addresses.clone() }) };
    let is_over = AtomicBool::new(false);
    // The buffers of messages live longer than the endpoints.
    let finished = Mutex::new(Vec::new());
    let body = |rank: &mut Rank| -> Result<(), String> {
        let mut traffic = Traffic::new(hosts);
        let plan = |_: u32, _: u32| -> Vec<Shape> {
            [40, 3000, 100_000].map(|payload| Shape { header: 48, payload, element: None }).to_vec()
        };
        let step = |rank: &mut Rank, traffic: &mut Traffic| -> Result<(), String> {
            while let Some(event) = rank.poll()? {
                traffic.take(rank, event, &plan)?;
            }
            Ok(())
        };
        if rank.rank != 0 {
            let mut outcome = Ok(());
            let mut shapes = plan(0, 0).into_iter().enumerate();
            let start = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                if start.elapsed() > PATIENCE {
                    return Err("the host that is attacked hangs".into());
                }
                if outcome.is_ok() {
                    if let Some((number, shape)) = shapes.next() {
                        outcome = traffic.send(rank, 0, number, shape).map(drop);
                    }
                    outcome = outcome.and_then(|()| step(rank, &mut traffic));
                }
                std::thread::yield_now();
            }
            finished.lock().expect("no panic").push(traffic);
            return Err("over".into());
        }
        let bytes = std::mem::take(&mut *script.lock().expect("no panic"));
        let (mut script, is_managed) = (Script(bytes), reliability == Reliability::Retry);
        let mut hostile = Hostile::new(rank, side, &addresses.lock().expect("no panic"), is_managed);
        let mut outcome = Ok(());
        let mut sent = 0;
        while !script.is_over() && outcome.is_ok() {
            if script.byte() < 60 && sent < 3 {
                let to = 1 + u32::from(script.byte()) % (hosts as u32 - 1);
                let _ = traffic.send(rank, to, sent, plan(0, 0)[sent]);
                sent += 1;
            }
            hostile.act(&mut script);
            outcome = step(rank, &mut traffic);
        }
        (0..20).for_each(|_| drop(step(rank, &mut traffic)));
        is_over.store(true, Ordering::Relaxed);
        finished.lock().expect("no panic").push(traffic);
        Err("over".into())
    };
    let results = try_run_over(&layout, Some(&backend), |_| settings.clone(), body);
    let left = script.into_inner().expect("no panic").len();
    assert!(left == 0, "the ring was not joined: {results:?}");
    for error in results.into_iter().filter_map(Result::err) {
        assert!(!error.contains("panicked") && !error.contains("hangs"), "{error}");
    }
}

fn script_hosts(byte: u8) -> usize {
    [2, 3, 4, 4][usize::from(byte) % 4]
}
