//! Collectives: each host carries out the steps of its rank, which the library's schedules return. Sends and receives
//! are messages of the simulated network; copies and reductions occupy the thread of the rank.

use super::agenda::{time_for, Time};
use super::machine::{Event, Simulation};
use super::net::Form;
use super::plan::{Plan, SimError};
use super::threads::RANKS;
use super::traffic::Traffic;
use ntbring_collectives::{begin, Buffer, Collective, Kind, Method, Place, Step};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Largest block in bytes of an alltoall by messages that are all sent at once; larger ones are exchanged with one rank
/// after the other (MPICH 4.0, `MPIR_CVAR_ALLTOALL_MEDIUM_MSG_SIZE`).
const AT_ONCE_MAX: u64 = 32768;

/// Number of messages that are sent at once (`MPIR_CVAR_ALLTOALL_THROTTLE`).
const AT_ONCE: u32 = 32;

/// A collective on a ring with one rank on each host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Operation {
    /// Its kind.
    pub kind: Kind,
    /// Elements of a vector, or of one rank's block.
    pub elements: u64,
    /// Size of an element in bytes.
    pub element_size: u64,
    /// True if each rank's input is in its output; of a reduction, the root's.
    pub in_place: bool,
}

/// A rank in a collective.
pub(super) struct Rank {
    steps: Box<dyn Iterator<Item = Step>>,
    /// Requests that are complete and were not waited for yet.
    complete: BTreeSet<u32>,
    /// The request that is waited for.
    awaited: Option<u32>,
    /// Requests of messages that have not left yet, by message.
    sending: BTreeMap<usize, u32>,
    /// Requests of receives without a message, by sender.
    posted: BTreeMap<usize, VecDeque<u32>>,
    /// Number of messages without a receive, by sender.
    early: BTreeMap<usize, u64>,
    /// True while the rank copies or reduces, or waits for its thread to do so.
    computes: bool,
    /// True if it has taken all steps.
    done: bool,
}

fn wrong<T>(what: &str) -> Result<T, SimError> {
    Err(SimError::Plan(what.into()))
}

/// Returns the ranks of a plan's collective; none for other traffic.
pub(super) fn ranks(plan: &Plan) -> Result<Vec<Rank>, SimError> {
    let Traffic::Collective(operation) = &plan.traffic else { return Ok(Vec::new()) };
    let hosts = plan.form.hosts() as u32;
    if !matches!(plan.form, Form::Ring(_)) || plan.faults.retry || !plan.protocol.ranks_transfer {
        return wrong("collectives run on rings without packet loss, and ranks send their own messages");
    }
    if operation.elements == 0 || operation.element_size == 0 {
        return wrong("a collective has at least one element of at least one byte");
    }
    if matches!(operation.kind, Kind::Broadcast { root } | Kind::Reduce { root } if root >= hosts) {
        return wrong("the root of a collective is one of the hosts");
    }
    (0..hosts).map(|rank| Rank::new(operation, hosts, rank)).collect()
}

impl Rank {
    fn new(operation: &Operation, ranks: u32, rank: u32) -> Result<Rank, SimError> {
        let Operation { kind, elements, element_size, in_place } = *operation;
        let in_place = in_place && !matches!(kind, Kind::Reduce { root } if root != rank);
        let one = Collective { kind, ranks, rank, elements, element_size, in_place };
        let steps: Box<dyn Iterator<Item = Step>> = match begin(&one) {
            Method::Ring(schedule) => Box::new(schedule),
            Method::Messages if kind == Kind::Alltoall && !in_place => Box::new(alltoall(&one).into_iter()),
            Method::Messages => return wrong("of collectives by MPICH's algorithms only an alltoall can be simulated"),
        };
        let complete = BTreeSet::new();
        let (sending, posted, early) = Default::default();
        Ok(Rank { steps, complete, awaited: None, sending, posted, early, computes: false, done: false })
    }
}

/// Returns the steps of an alltoall with messages between all ranks, as MPICH takes them.
fn alltoall(collective: &Collective) -> Vec<Step> {
    let Collective { ranks, rank, elements: count, element_size, .. } = *collective;
    let place = |buffer, of: u32| Place { buffer, offset: u64::from(of) * count };
    let (ahead, behind) = (|n| (rank + n) % ranks, |n| (rank + ranks - n) % ranks);
    let receive = |from, n| Step::Receive { from, to: place(Buffer::Output, from), count, request: 2 * n };
    let send = |to, n| Step::Send { to, from: place(Buffer::Input, to), count, request: 2 * n + 1 };
    let received = |n| Step::Received { request: 2 * n, count };
    let sent = |n| Step::Sent { request: 2 * n + 1 };
    let mut steps = vec![Step::Copy { from: place(Buffer::Input, rank), to: place(Buffer::Output, rank), count }];
    let others: Vec<u32> = (1..ranks).collect();
    if count * element_size <= AT_ONCE_MAX {
        for some in others.chunks(AT_ONCE as usize) {
            steps.extend(some.iter().map(|&n| receive(ahead(n), n)));
            steps.extend(some.iter().map(|&n| send(behind(n), n)));
            steps.extend(some.iter().flat_map(|&n| [received(n), sent(n)]));
        }
    } else {
        for n in others {
            let (from, to) = if ranks.is_power_of_two() { (rank ^ n, rank ^ n) } else { (behind(n), ahead(n)) };
            steps.extend([receive(from, n), send(to, n), received(n), sent(n)]);
        }
    }
    steps
}

impl Simulation<'_> {
    /// Lets a rank take its steps as far as it need not wait.
    pub fn advance(&mut self, host: usize) {
        let Traffic::Collective(operation) = &self.plan.traffic else { return };
        // A message without elements is a packet all the same.
        let bytes = |count: u64| (count * operation.element_size).max(1);
        let figures = &self.plan.host;
        loop {
            let rank = &mut self.ranks[host];
            if rank.computes || rank.done || rank.awaited.is_some_and(|request| !rank.complete.remove(&request)) {
                return;
            }
            rank.awaited = None;
            let Some(step) = rank.steps.next() else {
                rank.done = true;
                self.tally.ends.push(self.agenda.now());
                return;
            };
            match step {
                Step::Send { to, count, request, .. } => {
                    let message = self.send(host, to as usize, bytes(count), None);
                    self.ranks[host].sending.insert(message, request);
                }
                Step::Receive { from, request, .. } => match rank.early.get_mut(&(from as usize)) {
                    Some(number) if *number > 0 => {
                        *number -= 1;
                        rank.complete.insert(request);
                    }
                    _ => rank.posted.entry(from as usize).or_default().push_back(request),
                },
                Step::Sent { request } | Step::Received { request, .. } => rank.awaited = Some(request),
                Step::Copy { count, .. } => self.compute(host, time_for(bytes(count), figures.copy)),
                Step::Reduce { count, .. } => self.compute(host, time_for(bytes(count), figures.reduce)),
            }
        }
    }

    /// Occupies the thread of a rank for a time, as soon as it has finished its present packet.
    fn compute(&mut self, host: usize, time: Time) {
        self.ranks[host].computes = true;
        self.hosts[host].centres[RANKS].compute = Some(time);
        self.rouse(host, RANKS, true);
    }

    /// Continues after a rank has copied or reduced.
    pub fn computed(&mut self, host: usize) {
        // The thread looks for work itself below.
        self.hosts[host].centres[RANKS].coming += 1;
        self.ranks[host].computes = false;
        self.advance(host);
        self.hosts[host].centres[RANKS].coming -= 1;
        self.look_for_work(host, RANKS);
        self.rouse(host, RANKS, false);
    }

    /// Completes the send of a message that has left its host.
    pub fn sent(&mut self, host: usize, message: usize) {
        let Some(rank) = self.ranks.get_mut(host) else { return };
        if let Some(request) = rank.sending.remove(&message) {
            rank.complete.insert(request);
            self.advance(host);
        }
    }

    /// Completes the receive of a message that has arrived, if it was posted.
    pub fn received(&mut self, host: usize, from: usize) {
        let Some(rank) = self.ranks.get_mut(host) else { return };
        match rank.posted.get_mut(&from).and_then(VecDeque::pop_front) {
            Some(request) => {
                rank.complete.insert(request);
                self.advance(host);
            }
            None => *rank.early.entry(from).or_default() += 1,
        }
    }

    /// Fails if a rank has not taken all of its steps, although no event is left.
    pub fn check_ranks(&self) -> Result<(), SimError> {
        match self.ranks.iter().position(|rank| !rank.done) {
            Some(host) => Err(SimError::Protocol { host, what: "its rank waits in a collective for ever".into() }),
            None => Ok(()),
        }
    }

    /// Lets all ranks begin.
    pub fn begin_collective(&mut self) {
        (0..self.ranks.len()).for_each(|host| self.agenda.at(0, Event::Inject(host)));
    }
}
