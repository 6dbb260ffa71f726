//! The state of a rank at the time of a snapshot: for whom it waits, and which messages it keeps.
//!
//! A rank publishes it only when it is in MPI and has nothing to do. So an old snapshot (its age) means that the rank
//! computes, and a new one that it waits.

use serde::{Serialize, Serializer};
use std::collections::BTreeMap;

/// The state of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct State {
    /// Time in microseconds since the rank last found something to do, as far as it has looked at the clock: 0 during
    /// the first polls of a wait.
    pub waiting_us: u64,
    /// Number of messages that have arrived, but that no receive of the program has matched.
    pub unexpected_msgs: u64,
    /// Bytes of these messages that are in this rank's memory. Payloads of rendezvous stay with their senders.
    pub unexpected_bytes: u64,
    /// Reasons and ranks for which the rank waits: each pair once, sorted; at most [`WAITS_MAX`].
    pub waits: Vec<Wait>,
}

/// Largest number of entries of [`State::waits`]; further ones are left out.
pub const WAITS_MAX: usize = 64;

/// Operations of a rank that wait for another rank for the same reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// The reason.
    #[serde(rename = "for")]
    pub reason: Reason,
    /// The rank; None: any source. Numbers from the job's size on are processes outside the job.
    pub rank: Option<u64>,
    /// Number of operations.
    pub count: u64,
    /// Bytes that these operations still have to move; for receives, the room that they offer.
    pub bytes: u64,
}

/// A reason for which a rank waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// A message that matches a receive of the program.
    Message,
    /// The rest of a payload that has begun to arrive.
    Payload,
    /// Room in the lane to the rank: it does not take out what is there, or a link is slow.
    Room,
    /// Credit: the rank keeps as many unexpected messages of this one as it may.
    Credit,
    /// The receive that matches a large message which was offered to the rank.
    Receive,
    /// The rank's part of a collective.
    Collective,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Reason; 6] =
        [Reason::Message, Reason::Payload, Reason::Room, Reason::Credit, Reason::Receive, Reason::Collective];

    /// Returns the name, as in the lines of `ntbring stats --json`.
    pub fn name(self) -> &'static str {
        match self {
            Reason::Message => "message",
            Reason::Payload => "payload",
            Reason::Room => "room",
            Reason::Credit => "credit",
            Reason::Receive => "receive",
            Reason::Collective => "collective",
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The queues of the endpoint's caller, of which only the caller knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queues {
    /// Receives that no message has matched: number and bytes, for messages of each peer, and at the end for messages
    /// of any peer.
    pub receives: Vec<(u64, u64)>,
    /// Messages that no receive has matched.
    pub unexpected_msgs: u64,
    /// Bytes of these messages that are in this rank's memory.
    pub unexpected_bytes: u64,
}

/// Returns the caller's queues, for this number of peers.
pub type ReadQueues = Box<dyn Fn(usize) -> Queues + Send>;

/// Collects the entries of [`State::waits`].
#[derive(Default)]
pub struct Waits(BTreeMap<(Reason, Option<u64>), (u64, u64)>);

impl Waits {
    /// Adds `count` operations, unless that is 0.
    pub fn add(&mut self, reason: Reason, rank: Option<u32>, count: u64, bytes: u64) {
        if count > 0 {
            let of = self.0.entry((reason, rank.map(u64::from))).or_default();
            *of = (of.0 + count, of.1.saturating_add(bytes));
        }
    }

    /// Adds the receives of the caller.
    pub fn add_receives(&mut self, receives: &[(u64, u64)]) {
        let peers = receives.len().saturating_sub(1);
        for (peer, &(count, bytes)) in receives.iter().enumerate() {
            self.add(Reason::Message, (peer < peers).then_some(peer as u32), count, bytes);
        }
    }

    /// Returns the entries; as many as there may be.
    pub fn list(self) -> Vec<Wait> {
        let wait = |((reason, rank), (count, bytes))| Wait { reason, rank, count, bytes };
        self.0.into_iter().take(WAITS_MAX).map(wait).collect()
    }
}

/// Number of words before the waits.
const FACTS: usize = 4;
/// Number of words of each wait.
const WAIT: usize = 3;
/// The number for any source in a word.
const ANY: u64 = 0xffff_ffff;

impl State {
    /// Appends the state to the words of a stats page.
    pub(super) fn write(&self, words: &mut Vec<u64>) {
        words.extend([self.waiting_us, self.unexpected_msgs, self.unexpected_bytes, self.waits.len() as u64]);
        for wait in &self.waits {
            words.extend([wait.reason as u64 | wait.rank.unwrap_or(ANY) << 32, wait.count, wait.bytes]);
        }
    }

    /// Takes the state from the words of a stats page. Returns None if they are not complete.
    pub(super) fn read<'a>(words: &mut &'a [u64]) -> Option<State> {
        let (facts, rest) = words.split_at_checked(FACTS)?;
        let (waits, rest) = rest.split_at_checked((facts[3] as usize).min(WAITS_MAX) * WAIT)?;
        *words = rest;
        let wait = |wait: &'a [u64]| {
            let (reason, rank) = (wait[0] as u32 as usize, wait[0] >> 32);
            let reason = *Reason::ALL.get(reason)?;
            Some(Wait { reason, rank: (rank != ANY).then_some(rank), count: wait[1], bytes: wait[2] })
        };
        let waits = waits.chunks_exact(WAIT).map(wait).collect::<Option<_>>()?;
        Some(State { waiting_us: facts[0], unexpected_msgs: facts[1], unexpected_bytes: facts[2], waits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_summed_by_reason_and_rank() {
        let mut waits = Waits::default();
        waits.add(Reason::Room, Some(3), 1, 10);
        waits.add(Reason::Message, None, 1, 8);
        waits.add(Reason::Message, Some(2), 1, u64::MAX);
        waits.add(Reason::Message, Some(2), 2, 8);
        waits.add(Reason::Credit, Some(5), 0, 0);
        let wait = |reason, rank, count, bytes| Wait { reason, rank, count, bytes };
        let expected = [
            wait(Reason::Message, None, 1, 8),
            wait(Reason::Message, Some(2), 3, u64::MAX),
            wait(Reason::Room, Some(3), 1, 10),
        ];
        assert_eq!(waits.list(), expected);
        let mut waits = Waits::default();
        waits.add_receives(&[(0, 0), (0, 0), (3, 8), (1, 8)]);
        assert_eq!(waits.list(), [wait(Reason::Message, None, 1, 8), wait(Reason::Message, Some(2), 3, 8)]);
        let mut many = Waits::default();
        (0..100).for_each(|rank| many.add(Reason::Message, Some(rank), 1, 0));
        assert_eq!(many.list().len(), WAITS_MAX);
    }

    #[test]
    fn a_state_survives_its_words() {
        let mut waits = Waits::default();
        Reason::ALL.into_iter().zip(0..).for_each(|(reason, rank)| waits.add(reason, Some(rank), 2, 1 << 50));
        waits.add(Reason::Message, None, 1, 0);
        let state = State { waiting_us: 5, unexpected_msgs: 6, unexpected_bytes: 7, waits: waits.list() };
        let mut words = Vec::new();
        state.write(&mut words);
        let whole = words.len();
        words.push(99);
        let mut rest = words.as_slice();
        assert_eq!(State::read(&mut rest), Some(state));
        assert_eq!(rest, [99]);
        assert!((0..whole).all(|cut| State::read(&mut &words[..cut]).is_none()));
        words[4] = 6;
        assert_eq!(State::read(&mut words.as_slice()), None, "there is no such reason");
    }

    #[test]
    fn names_are_in_the_line() {
        let state =
            State { waits: vec![Wait { reason: Reason::Message, rank: None, count: 1, bytes: 8 }], ..State::default() };
        let line = serde_json::to_string(&state).unwrap();
        let waits = r#""waits":[{"for":"message","rank":null,"count":1,"bytes":8}]"#;
        assert_eq!(line, format!(r#"{{"waiting_us":0,"unexpected_msgs":0,"unexpected_bytes":0,{waits}}}"#));
    }
}
