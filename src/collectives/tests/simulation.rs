//! Carries out the schedules of all ranks, with a transport that completes sends early or late.

use crate::method::schedule;
use crate::{Buffer, Collective, Kind, Place, Schedule, Step};
use fastrand::Rng;
use std::collections::{HashMap, VecDeque};

/// The order in which ranks run and messages are transferred.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// Every send is complete at once.
    Eager,
    /// A send is complete when its receive is; messages are transferred only when no rank can run.
    Late,
    /// As `Late`; the last rank runs first, and the latest pair of send and receive is served first.
    LateBackwards,
    /// Random ranks run, random transfers complete, and random sends are complete at once.
    Random,
}

/// The content of memory that holds no result yet.
const GARBAGE: u64 = 0xdead_beef_dead_beef;

struct Rank {
    schedule: Schedule,
    input: Vec<u64>,
    output: Vec<u64>,
    scratch: Vec<u64>,
    in_place: bool,
    /// Requests that are in use, and if they are complete.
    requests: HashMap<u32, bool>,
    awaited: Option<u32>,
    done: bool,
}

impl Rank {
    fn at(&mut self, place: Place, count: u64) -> &mut [u64] {
        let buffer = match place.buffer {
            Buffer::Input if self.in_place => &mut self.output,
            Buffer::Input => &mut self.input,
            Buffer::Output => &mut self.output,
            Buffer::Scratch => &mut self.scratch,
        };
        &mut buffer[place.offset as usize..(place.offset + count) as usize]
    }

    fn can_run(&self) -> bool {
        !self.done && self.awaited.is_none_or(|request| self.requests[&request])
    }
}

/// A send or receive that is not matched.
struct Half {
    place: Place,
    count: u64,
    request: u32,
    /// The data of a send that was complete at once.
    copied: Option<Vec<u64>>,
}

struct Ring {
    ranks: Vec<Rank>,
    order: Order,
    /// Unmatched sends and receives by sender and receiver.
    halves: HashMap<(u32, u32), (VecDeque<Half>, VecDeque<Half>)>,
    /// Matched pairs: sender, receiver, send and receive.
    pairs: Vec<(u32, u32, Half, Half)>,
}

impl Ring {
    /// Carries out a rank's next step.
    fn run(&mut self, index: u32, rng: &mut Rng) {
        let order = self.order;
        let rank = &mut self.ranks[index as usize];
        if let Some(request) = rank.awaited.take() {
            assert_eq!(rank.requests.remove(&request), Some(true));
        }
        let requests = rank.schedule.requests();
        let begin = |rank: &mut Rank, request: u32, is_complete: bool| {
            assert!(request < requests, "request {request} of {requests}");
            assert_eq!(rank.requests.insert(request, is_complete), None, "request {request} is in use");
        };
        let Some(step) = rank.schedule.next() else {
            assert!(rank.requests.is_empty(), "requests of rank {index} are left: {:?}", rank.requests);
            rank.done = true;
            return;
        };
        match step {
            Step::Send { to, from, count, request } => {
                let at_once = order == Order::Eager || order == Order::Random && rng.bool();
                begin(rank, request, at_once);
                let copied = at_once.then(|| rank.at(from, count).to_vec());
                let half = Half { place: from, count, request, copied };
                self.halves.entry((index, to)).or_default().0.push_back(half);
                self.pair((index, to));
            }
            Step::Receive { from, to, count, request } => {
                begin(rank, request, false);
                rank.at(to, count).fill(GARBAGE);
                let half = Half { place: to, count, request, copied: None };
                self.halves.entry((from, index)).or_default().1.push_back(half);
                self.pair((from, index));
            }
            Step::Sent { request } | Step::Received { request, .. } => rank.awaited = Some(request),
            Step::Copy { from, to, count } => {
                let data = rank.at(from, count).to_vec();
                rank.at(to, count).copy_from_slice(&data);
            }
            Step::Reduce { from, to, count } => {
                let data = rank.at(from, count).to_vec();
                rank.at(to, count).iter_mut().zip(data).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
            }
        }
    }

    fn pair(&mut self, (from, to): (u32, u32)) {
        let (sends, receives) = self.halves.get_mut(&(from, to)).unwrap();
        if !sends.is_empty() && !receives.is_empty() {
            let (send, receive) = (sends.pop_front().unwrap(), receives.pop_front().unwrap());
            assert_eq!(send.count, receive.count, "a message from rank {from} to rank {to}");
            self.pairs.push((from, to, send, receive));
        }
    }

    fn transfer(&mut self, index: usize) {
        let (from, to, send, receive) = self.pairs.swap_remove(index);
        let sender = &mut self.ranks[from as usize];
        let data = match send.copied {
            Some(data) => data,
            None => {
                sender.requests.insert(send.request, true);
                sender.at(send.place, send.count).to_vec()
            }
        };
        let receiver = &mut self.ranks[to as usize];
        receiver.at(receive.place, receive.count).copy_from_slice(&data);
        receiver.requests.insert(receive.request, true);
    }

    /// Runs a rank or transfers a message; returns false if neither is possible.
    fn advance(&mut self, rng: &mut Rng) -> bool {
        let mut able = (0..self.ranks.len()).filter(|&rank| self.ranks[rank].can_run());
        let (rank, pair) = match self.order {
            Order::Random => {
                let able: Vec<usize> = able.collect();
                let choice = rng.usize(0..(able.len() + self.pairs.len()).max(1));
                (able.get(choice).copied(), choice.wrapping_sub(able.len()))
            }
            Order::Eager | Order::Late => (able.next(), 0),
            Order::LateBackwards => (able.next_back(), self.pairs.len().wrapping_sub(1)),
        };
        match rank {
            Some(rank) => self.run(rank as u32, rng),
            None if pair < self.pairs.len() => self.transfer(pair),
            None => return false,
        }
        true
    }
}

/// Returns the outputs of all ranks as a naive computation has them; None where a rank has no result.
fn expected(collective: &Collective, inputs: &[Vec<u64>]) -> Vec<Option<Vec<u64>>> {
    let elements = collective.elements as usize;
    let sum = |at: usize| inputs.iter().fold(0u64, |sum, input| sum.wrapping_add(input[at]));
    (0..inputs.len())
        .map(|rank| match collective.kind {
            Kind::Broadcast { root } => Some(inputs[root as usize].clone()),
            Kind::Reduce { root } if root as usize != rank => None,
            Kind::Reduce { .. } | Kind::Allreduce => Some((0..elements).map(sum).collect()),
            Kind::Allgather => Some(inputs.concat()),
            Kind::Alltoall => {
                Some(inputs.iter().flat_map(|input| &input[rank * elements..(rank + 1) * elements]).copied().collect())
            }
        })
        .collect()
}

/// Creates a rank with its input, which is in its output if the collective is in place.
fn create(collective: &Collective, input: &[u64]) -> Rank {
    let (rank, elements) = (collective.rank as usize, collective.elements as usize);
    let schedule = schedule(collective);
    assert!(schedule.requests() <= (4 * collective.ranks).max(64));
    let blocks = matches!(collective.kind, Kind::Allgather | Kind::Alltoall);
    let mut output = vec![GARBAGE; elements * if blocks { collective.ranks as usize } else { 1 }];
    match collective.kind {
        Kind::Broadcast { root } if root == collective.rank => output.copy_from_slice(input),
        Kind::Allgather if collective.in_place => {
            output[rank * elements..][..elements].copy_from_slice(input);
        }
        _ if collective.in_place => output.copy_from_slice(input),
        _ => {}
    }
    let (input, scratch) = (input.to_vec(), vec![GARBAGE; schedule.scratch() as usize]);
    let (requests, in_place) = (HashMap::new(), collective.in_place);
    Rank { schedule, input, output, scratch, in_place, requests, awaited: None, done: false }
}

/// Simulates a collective at all ranks, whose inputs are random, and checks its results. Of a reduction, only the root
/// can be in place.
pub fn check(collective: Collective, order: Order, rng: &mut Rng) {
    let blocks = if collective.kind == Kind::Alltoall { u64::from(collective.ranks) } else { 1 };
    let inputs: Vec<Vec<u64>> =
        (0..collective.ranks).map(|_| (0..blocks * collective.elements).map(|_| rng.u64(..)).collect()).collect();
    let ranks = (0..collective.ranks)
        .map(|rank| {
            let in_place = collective.in_place
                && match collective.kind {
                    Kind::Broadcast { .. } => false,
                    Kind::Reduce { root } => root == rank,
                    _ => true,
                };
            create(&Collective { rank, in_place, ..collective }, &inputs[rank as usize])
        })
        .collect();
    let mut ring = Ring { ranks, order, halves: HashMap::new(), pairs: Vec::new() };
    while ring.advance(rng) {}
    for (rank, expected) in expected(&collective, &inputs).into_iter().enumerate() {
        let found = &ring.ranks[rank];
        assert!(found.done, "rank {rank} waits for request {:?} for ever: {collective:?}, {order:?}", found.awaited);
        if let Some(expected) = expected {
            assert!(found.output == expected, "rank {rank} has a wrong result: {collective:?}, {order:?}");
        }
        if !found.in_place {
            assert!(found.input == inputs[rank], "the input of rank {rank} was changed: {collective:?}");
        }
    }
    assert!(ring.halves.values().all(|(sends, receives)| sends.is_empty() && receives.is_empty()));
}
