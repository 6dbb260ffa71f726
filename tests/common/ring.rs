//! A whole ring in one process: every rank is a thread with its own endpoint, which is created as the C side creates
//! it. Ranks share nothing but the cards (addresses) that they exchange at the start.

use ntbring_endpoint::Settings;
use ntbring_endpoint::{Endpoint, Event, Idle};
use ntbring_ntb::fabric::Backend;
use ntbring_queue::Reliability;
use ntbring_ring::join::{Candidate, Card, JoinError};
use ntbring_ring::liveness::{Monitor, PERIOD};
use ntbring_ring::Topology;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Timeout after which a job counts as hanging.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest sleep of a rank. Only a doorbell ends it sooner.
const SLEEP: Duration = Duration::from_secs(10);

/// Placement of ranks on hosts.
#[derive(Clone, Debug)]
pub struct Layout {
    pub hosts: usize,
    pub host_of: Vec<i32>,
    /// Hashes of the hosts' names, if hosts count as separate although they are in one process; otherwise empty.
    pub names: Vec<u32>,
}

impl Layout {
    /// Creates a layout with `ranks[h]` consecutive ranks on host `h`.
    pub fn blocks(ranks: &[usize]) -> Layout {
        let host_of = (0..ranks.len()).flat_map(|h| vec![h as i32; ranks[h]]).collect();
        Layout { hosts: ranks.len(), host_of, names: Vec::new() }
    }

    /// Creates a layout in which ranks are assigned to the hosts in turn.
    pub fn cyclic(hosts: usize, ranks: usize) -> Layout {
        Layout { hosts, host_of: (0..ranks).map(|r| (r % hosts) as i32).collect(), names: Vec::new() }
    }

    /// Returns this layout with hosts that count as separate and have these names.
    #[allow(dead_code)]
    pub fn named(self, names: &[u32]) -> Layout {
        Layout { names: names.to_vec(), ..self }
    }

    pub fn size(&self) -> usize {
        self.host_of.len()
    }

    pub fn topology(&self) -> Topology {
        Topology::new(self.hosts, &self.host_of).unwrap()
    }
}

/// State that the ranks of a job share.
struct Job {
    cards: Mutex<Vec<Option<Card>>>,
    arrived: AtomicUsize,
    failed: AtomicBool,
    size: usize,
    end: Instant,
}

impl Job {
    fn new(size: usize) -> Job {
        Job {
            cards: Mutex::new(vec![None; size]),
            arrived: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            size,
            end: Instant::now() + PATIENCE,
        }
    }

    /// Waits for all ranks without polling any endpoint; fails if one of them has failed.
    fn barrier(&self) -> Result<(), String> {
        let target = (self.arrived.fetch_add(1, Ordering::SeqCst) / self.size + 1) * self.size;
        while self.arrived.load(Ordering::SeqCst) < target {
            self.check(|| "in a barrier".into())?;
            std::thread::sleep(Duration::from_micros(300));
        }
        Ok(())
    }

    fn check(&self, state: impl FnOnce() -> String) -> Result<(), String> {
        if self.failed.load(Ordering::SeqCst) {
            return Err(format!("another rank has failed; {}", state()));
        }
        if Instant::now() > self.end {
            return Err(format!("the job hangs; {}", state()));
        }
        Ok(())
    }

    /// Publishes a card to all ranks and returns the cards of all, in their wire format.
    fn exchange(&self, rank: u32, card: Card) -> Result<Vec<Card>, String> {
        self.cards.lock().unwrap()[rank as usize] = Some(Card::parse(&card.bytes())?);
        self.barrier()?;
        Ok(self.cards.lock().unwrap().iter().map(|c| c.unwrap()).collect())
    }
}

/// The monitor of a host, in a thread.
struct MonitorThread {
    over: Arc<AtomicBool>,
}

impl MonitorThread {
    fn start(mut monitor: Monitor) -> MonitorThread {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        std::thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                monitor.step(Instant::now());
                std::thread::sleep(PERIOD);
            }
        });
        MonitorThread { over }
    }
}

impl Drop for MonitorThread {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

/// A rank that has joined.
pub struct Rank<'a> {
    pub rank: u32,
    pub layout: &'a Layout,
    pub endpoint: Endpoint,
    pub idle: Arc<Idle>,
    /// Random source of a simulated asynchronous-progress thread, which enters the endpoint between the rank's calls.
    pub progress_thread: Option<fastrand::Rng>,
    /// Number of times that the simulated thread had work to do.
    pub overlaps: u64,
    job: &'a Job,
}

thread_local! {
    /// Set while this thread acts as a progress thread.
    pub static ASYNC_PROGRESS: Cell<bool> = const { Cell::new(false) };
}

impl Rank<'_> {
    pub fn poll(&mut self) -> Result<Option<Event>, String> {
        self.meanwhile();
        self.endpoint.poll().map_err(|e| e.to_string())
    }

    /// Makes a random number of progress steps, as an asynchronous-progress thread may between two calls of the rank.
    pub fn meanwhile(&mut self) {
        let Some(chance) = &mut self.progress_thread else { return };
        for _ in 0..chance.u8(..4) {
            self.carry_on();
        }
    }

    /// Makes one progress step. Returns true if there was work.
    pub fn carry_on(&mut self) -> bool {
        ASYNC_PROGRESS.set(true);
        let any = self.endpoint.has_bulk() && self.endpoint.carry_on();
        ASYNC_PROGRESS.set(false);
        self.overlaps += u64::from(any);
        any
    }

    /// Makes progress steps until there is no more work for them.
    #[allow(dead_code)]
    pub fn carry_all(&mut self) -> Result<(), String> {
        while self.endpoint.has_bulk() {
            self.carry_some()?;
        }
        Ok(())
    }

    /// Makes progress steps until one of them had work.
    #[allow(dead_code)]
    pub fn carry_some(&mut self) -> Result<(), String> {
        while self.endpoint.has_bulk() && !self.carry_on() {
            self.job.check(|| format!("carrying on\n{}", self.endpoint.describe()))?;
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Returns the next event; if there is none, waits once for at most `max`.
    #[allow(dead_code)]
    pub fn step(&mut self, max: Duration) -> Result<Option<Event>, String> {
        let event = self.poll()?;
        if event.is_none() {
            self.job.check(|| format!("waiting\n{}", self.endpoint.describe()))?;
            self.idle.wait(max, false);
        }
        Ok(event)
    }

    /// Returns the next event; waits for it as a blocked MPI call does.
    pub fn event(&mut self) -> Result<Event, String> {
        let mut slept = false;
        loop {
            if let Some(event) = self.poll()? {
                if slept {
                    return Err(format!("an event was there without a doorbell; {}", self.endpoint.describe()));
                }
                return Ok(event);
            }
            self.job.check(|| format!("waiting\n{}", self.endpoint.describe()))?;
            let start = Instant::now();
            self.idle.wait(SLEEP, false);
            slept = start.elapsed() >= SLEEP;
        }
    }

    /// Waits for all ranks outside the library: no endpoint is polled meanwhile.
    pub fn barrier(&self) -> Result<(), String> {
        self.job.barrier()
    }
}

/// Describes an event that a test does not expect.
pub fn unexpected(event: &Event) -> String {
    let what = match event {
        Event::Arrival(arrival) => format!("a packet of rank {}: {:?}", arrival.src, arrival.packet),
        Event::Sent { cookie, .. } => format!("message {cookie} is sent"),
        Event::Taken { cookie } => format!("offer {cookie} is taken"),
        Event::Fetched { cookie } => format!("payload {cookie} is fetched"),
        Event::Stalled { src } => format!("rank {src} holds messages back"),
        Event::Lost(loss) => format!("lost: {loss}"),
        Event::Remote { cookie } => format!("operation {cookie} on a segment is complete"),
    };
    format!("unexpected event: {what}")
}

/// Runs `body` in every rank of a job. Panics with the reports of all ranks if one fails or hangs.
pub fn run(layout: &Layout, settings: &Settings, body: impl Fn(&mut Rank) -> Result<(), String> + Sync) {
    run_each(layout, |_| settings.clone(), body);
}

/// Runs a job in which every rank has its own settings.
pub fn run_each(
    layout: &Layout,
    settings: impl Fn(u32) -> Settings + Sync,
    body: impl Fn(&mut Rank) -> Result<(), String> + Sync,
) {
    let failures: Vec<String> = try_run(layout, settings, body).into_iter().filter_map(Result::err).collect();
    assert!(failures.is_empty(), "{layout:?}\n{}", failures.join("\n"));
}

/// Runs a job that may fail, and returns the result of each rank.
pub fn try_run(
    layout: &Layout,
    settings: impl Fn(u32) -> Settings + Sync,
    body: impl Fn(&mut Rank) -> Result<(), String> + Sync,
) -> Vec<Result<(), String>> {
    try_run_over(layout, None, settings, body)
}

/// The backends of a job's hosts, by host number.
pub type Backends<'a> = &'a (dyn Fn(usize) -> Arc<dyn Backend> + Sync);

/// Runs a job over the adapters of other backends than the one that the settings name.
pub fn try_run_over(
    layout: &Layout,
    backends: Option<Backends>,
    settings: impl Fn(u32) -> Settings + Sync,
    body: impl Fn(&mut Rank) -> Result<(), String> + Sync,
) -> Vec<Result<(), String>> {
    let job = Job::new(layout.size());
    let one = |rank: u32| {
        let candidate = match backends {
            None => Candidate::new(layout.topology(), rank, settings(rank)),
            Some(backends) => {
                let backend = backends(layout.host_of[rank as usize] as usize);
                Candidate::with_backend(layout.topology(), rank, settings(rank).into(), backend)
            }
        };
        let name = layout.names.get(layout.host_of[rank as usize] as usize).copied().unwrap_or(0);
        let candidate = candidate.map_err(|e| e.to_string())?.on_host(name);
        let cards = job.exchange(rank, candidate.card())?;
        let mut members = candidate.join(&cards).map_err(|e| e.to_string())?;
        let _monitor = members.take_monitor().map(MonitorThread::start);
        let endpoint = Endpoint::new(members, settings(rank)).map_err(|e| e.to_string())?;
        let mut rank =
            Rank { rank, layout, idle: endpoint.idle(), endpoint, progress_thread: None, overlaps: 0, job: &job };
        body(&mut rank)?;
        if !rank.endpoint.is_flushed() {
            return Err("something is still to be sent".into());
        }
        // As in MPICH, no rank leaves before all are done.
        let trusted = settings(rank.rank).ring.reliability == Reliability::Off;
        rank.endpoint.linger().map_err(|e| e.to_string())?;
        rank.barrier()?;
        // Now no packet can be in transit, unless packets are lost. The only exception is a STALLED packet: it may
        // arrive after the held messages.
        while let Some(event) = if trusted { rank.poll()? } else { None } {
            if !matches!(event, Event::Stalled { .. }) {
                return Err(unexpected(&event));
            }
        }
        rank.barrier()
    };
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..layout.size() as u32)
            .map(|rank| {
                let (one, job) = (&one, &job);
                scope.spawn(move || {
                    // A panic must not leave the other ranks waiting.
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| one(rank)))
                        .unwrap_or_else(|_| Err("panicked".into()));
                    result.map_err(|error| {
                        job.failed.store(true, Ordering::SeqCst);
                        format!("rank {rank}: {error}")
                    })
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

/// Lets every rank try to join, each with its own settings. Returns the result of each rank.
pub fn try_to_join(layout: &Layout, settings: impl Fn(u32) -> Settings + Sync) -> Vec<Result<(), JoinError>> {
    let job = Job::new(layout.size());
    std::thread::scope(|scope| {
        let ranks: Vec<_> = (0..layout.size() as u32)
            .map(|rank| {
                let (job, settings) = (&job, &settings);
                scope.spawn(move || {
                    let candidate = Candidate::new(layout.topology(), rank, settings(rank))?;
                    let cards = job.exchange(rank, candidate.card()).expect("all ranks have a card");
                    let joined = candidate.join(&cards);
                    // No rank's memory is released before all have used it.
                    job.barrier().expect("all ranks come to an end");
                    joined.map(drop)
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}
