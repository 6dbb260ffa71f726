//! Operations on segments of ranks whose memory cannot be mapped, and which do not poll meanwhile.

use super::*;
use ntbring_endpoint::{Event, Operation};
use ntbring_host::{Segment, SegmentAddress};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_rma::operate::{accumulate, Kind, Op};
use ntbring_rma::{Action, GRAIN};
use std::sync::Mutex;

/// Layout of every segment, bytes: a counter, a counter that the window's lock guards, and a part for each rank.
const PART: usize = 200_000;
const SIZE: u64 = 1 << 21;
const COUNTER: u64 = 0;
const GUARDED: u64 = 8;

fn part(rank: u32) -> u64 {
    64 + u64::from(rank) * PART as u64
}

/// Client of another rank's segment.
pub(super) struct Client<'a, 'b> {
    pub rank: &'a mut Rank<'b>,
    pub dest: u32,
    pub segment: u64,
}

impl Client<'_, '_> {
    /// Makes a request, waits for the reply, and returns the bytes that it carries.
    pub fn ask(&mut self, action: Action, offset: u64, len: u64, operands: &[u8]) -> Result<Vec<u8>, String> {
        let mut result = vec![0xee; action.result(len) as usize];
        let operation = Operation {
            dest: self.dest,
            action,
            segment: self.segment,
            offset,
            len,
            // SAFETY: both buffers stay allocated until the event has come.
            operands: unsafe { ForeignBytes::new(operands.as_ptr(), operands.len()) },
            // SAFETY: both buffers stay allocated until the event has come.
            result: (!result.is_empty()).then(|| unsafe { ForeignRoom::new(result.as_mut_ptr(), result.len()) }),
            cookie: 77,
            reports_sent: false,
        };
        self.rank.endpoint.begin(operation).map_err(|e| e.to_string())?;
        let mut outcome = Ok(());
        loop {
            match self.rank.event() {
                Ok(Event::Remote { cookie: 77 }) => break,
                Ok(event) => return Err(unexpected(&event)),
                // The client gets the error first, and then the event of the operation.
                Err(error) if outcome.is_ok() && error.contains("refused") => outcome = Err(error),
                Err(error) => return Err(error),
            }
        }
        outcome.map(|()| result)
    }

    fn number(&mut self, action: Action, offset: u64, operand: i64) -> Result<i64, String> {
        let before = self.ask(action, offset, 8, &operand.to_ne_bytes())?;
        Ok(i64::from_ne_bytes(before.try_into().map_err(|_| "not a number")?))
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(got: T, expected: T, what: &str) -> Result<(), String> {
    (got == expected).then_some(()).ok_or_else(|| format!("{what}: {got:?} instead of {expected:?}"))
}

/// Compares every operation on every kind of number with the expected result.
fn all_operations(client: &mut Client, rng: &mut fastrand::Rng) -> Result<(), String> {
    let at = part(client.rank.rank);
    for kind in Kind::ALL {
        for op in Op::ALL.into_iter().filter(|op| op.takes(kind)) {
            let mut random = || -> Vec<u8> { (0..2 * GRAIN).map(|_| rng.u8(..)).collect() };
            let (before, operand) = (random(), random());
            let len = before.len() as u64;
            let mut after = before.clone();
            accumulate(op, kind, &mut after, &operand);
            let (first, second) = (Action::Accumulate(op, kind), Action::Fetch(op, kind));
            client.ask(Action::Put, at, len, &before)?;
            client.ask(first, at, len, &operand)?;
            expect(client.ask(Action::Get, at, len, &[])?, after.clone(), &format!("{first:?}"))?;
            let operand = &operand[..second.operands(len) as usize];
            expect(client.ask(second, at, len, operand)?, after.clone(), &format!("before {second:?}"))?;
            accumulate(op, kind, &mut after, if operand.is_empty() { &before } else { operand });
            expect(client.ask(Action::Get, at, len, &[])?, after, &format!("{second:?}"))?;
        }
    }
    Ok(())
}

fn everything(client: &mut Client) -> Result<(), String> {
    let me = client.rank.rank;
    let mut rng = fastrand::Rng::with_seed(u64::from(me));
    all_operations(client, &mut rng)?;
    // In many chunks.
    let large: Vec<u8> = (0..PART).map(|_| rng.u8(..)).collect();
    client.ask(Action::Put, part(me), large.len() as u64, &large)?;
    expect(client.ask(Action::Get, part(me), large.len() as u64, &[])? == large, true, "what was put")?;
    let sum = Action::Fetch(Op::Sum, Kind::I64);
    for _ in 0..20 {
        client.number(sum, COUNTER, 1)?;
        let mut old = client.number(sum, COUNTER, 0)?;
        loop {
            let both = [old, old + 1].map(i64::to_ne_bytes).concat();
            let found = client.ask(Action::Swap, COUNTER, 8, &both)?;
            match i64::from_ne_bytes(found.try_into().map_err(|_| "not a number")?) {
                found if found == old => break,
                found => old = found,
            }
        }
        client.ask(Action::Acquire(true), 0, 0, &[])?;
        let number = client.ask(Action::Get, GUARDED, 8, &[])?;
        let number = i64::from_ne_bytes(number.try_into().map_err(|_| "not a number")?);
        client.ask(Action::Put, GUARDED, 8, &(number + 1).to_ne_bytes())?;
        client.ask(Action::Release(true), 0, 0, &[])?;
        client.ask(Action::Acquire(false), 0, 0, &[])?;
        client.ask(Action::Release(false), 0, 0, &[])?;
    }
    Ok(())
}

fn refusals(client: &mut Client) -> Result<(), String> {
    let refused = |result: Result<Vec<u8>, String>, what: &str| match result {
        Err(error) if error.contains(what) => Ok(()),
        other => Err(format!("{other:?} instead of: {what}")),
    };
    for offset in [SIZE, SIZE - 7, u64::MAX, u64::MAX - 7] {
        refused(client.ask(Action::Get, offset, 8, &[]), "exceeds the window")?;
        refused(client.ask(Action::Put, offset, 8, &[0; 8]), "exceeds the window")?;
        refused(client.ask(Action::Fetch(Op::Sum, Kind::U64), offset, 8, &[0; 8]), "exceeds the window")?;
    }
    refused(client.ask(Action::Release(true), 0, 0, &[]), "is invalid")?;
    let right = std::mem::replace(&mut client.segment, 1);
    refused(client.ask(Action::Get, 0, 8, &[]), "no such window")?;
    client.segment = right;
    // An invalid request is not even sent.
    refused(client.ask(Action::Swap, 0, 24, &[0; 48]), "not served")?;
    refused(client.ask(Action::Put, 0, 8, &[0; 7]), "not served")
}

/// All ranks that cannot map the segment of `target` operate on it, while `target` does nothing at all.
fn serve(layout: &Layout, settings: &Settings, target: u32) {
    let place: Mutex<Option<SegmentAddress>> = Mutex::new(None);
    let origins = Mutex::new(0);
    run(layout, settings, |rank| {
        let mut own: Option<Segment> = None;
        if rank.rank == target {
            let (segment, address) = rank.endpoint.create_segment(SIZE).map_err(|e| e.to_string())?;
            *place.lock().unwrap() = Some(address);
            own = Some(segment);
        }
        rank.barrier()?;
        let address = place.lock().unwrap().ok_or("no segment")?;
        if rank.endpoint.is_served(target) {
            let mut client = Client { rank, dest: target, segment: address.file.token };
            everything(&mut client)?;
            *origins.lock().unwrap() += 1;
        }
        rank.barrier()?;
        if rank.endpoint.is_served(target) {
            refusals(&mut Client { rank, dest: target, segment: address.file.token })?;
        }
        rank.barrier()?;
        if let Some(segment) = own {
            let word = |at: u64| segment.source().load(at as usize) as i64;
            let count: i64 = *origins.lock().unwrap();
            expect(count > 0, true, "a rank that cannot map the segment")?;
            expect((word(COUNTER), word(GUARDED)), (40 * count, 20 * count), "what all have added")?;
            rank.endpoint.withdraw_segment(&segment).map_err(|e| e.to_string())?;
        }
        rank.barrier()
    });
}

#[test]
fn far_ranks_work_on_memory_of_a_rank_that_does_nothing() {
    // The target is the first rank of its host, or another one.
    serve(&Layout::blocks(&[1, 2, 2, 1]), &settings(), 1);
    serve(&Layout::blocks(&[1, 2, 2, 1]), &settings(), 4);
    serve(&Layout::cyclic(6, 9), &settings(), 8);
}

#[test]
fn next_hosts_do_so_too_where_ports_are_not_coherent() {
    for hosts in 2..=4 {
        let weak = settings().with(|s| s.links.weak = Some(7));
        serve(&Layout::cyclic(hosts, hosts + 2), &weak, hosts as u32);
    }
    let modelled = settings().with(|s| s.links.model = Model::parse("gen3x8").unwrap());
    serve(&Layout::blocks(&[1, 1, 1]), &modelled, 1);
}

#[test]
fn the_smallest_windows_are_enough() {
    let layout = Layout::blocks(&[2, 1, 2, 1]);
    serve(&layout, &tiny(&layout), 0);
}
