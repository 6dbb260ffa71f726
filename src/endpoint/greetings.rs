//! Greetings: what two processes say to each other before they have a communicator in common.
//!
//! A process that connects asks, under a tag that the other has made known, and waits for the answer. One that accepts takes the oldest
//! question under that tag, whoever asks, and answers. Both use the same two calls, so which of the two a call means
//! follows from what its thread did before.

use super::arrival::Arrival;
use super::wire::{About, GreetingKind, Packet};
use super::{Endpoint, EndpointError};
use std::collections::VecDeque;
use std::thread::{current, ThreadId};

/// The most bytes of a greeting.
pub const GREETING_MAX: usize = 512;

/// Questions that are kept until somebody accepts.
const QUESTIONS_MAX: usize = 4096;

struct Letter {
    peer: u32,
    what: About,
    bytes: Vec<u8>,
}

/// A question that this process has asked, or has taken and must answer.
struct Open {
    thread: ThreadId,
    peer: u32,
    what: About,
}

/// Greetings that have arrived and were not taken, and answers that this process owes.
#[derive(Default)]
pub(super) struct Greetings {
    questions: VecDeque<Letter>,
    answers: Vec<Letter>,
    asked: Vec<Open>,
    owed: Vec<Open>,
    /// Questions asked so far.
    count: u32,
}

/// Removes the first that this thread has open.
fn take(list: &mut Vec<Open>, wanted: impl Fn(&Open) -> bool) -> Option<Open> {
    let me = current().id();
    let i = list.iter().position(|o| o.thread == me && wanted(o))?;
    Some(list.remove(i))
}

impl Greetings {
    /// Forgets the greetings of a peer and the answers owed to it. Questions put to it stay open, for the callers that wait.
    pub fn lose(&mut self, peer: u32) {
        self.questions.retain(|question| question.peer != peer);
        self.answers.retain(|answer| answer.peer != peer);
        self.owed.retain(|owed| owed.peer != peer);
    }

    /// Returns true if a caller waits for an answer of this peer.
    pub fn has_asked(&self, peer: u32) -> bool {
        self.asked.iter().any(|asked| asked.peer == peer)
    }

    pub fn describe(&self) -> Vec<String> {
        let line = |o: &Open, what| format!("{what} peer {} under tag {}", o.peer, o.what.tag);
        let asked = self.asked.iter().map(|o| line(o, "no answer yet of"));
        let owed = self.owed.iter().map(|o| line(o, "no answer yet to"));
        let questions = self.questions.iter().map(|q| format!("peer {} asks under tag {}", q.peer, q.what.tag));
        asked.chain(owed).chain(questions).collect()
    }
}

impl Endpoint {
    /// Answers a peer if this thread has heard its question under that tag, and asks it otherwise.
    pub fn greet(&mut self, peer: u32, tag: u32, bytes: &[u8]) -> Result<(), EndpointError> {
        if bytes.len() > GREETING_MAX {
            return Err(EndpointError::Argument(format!("a greeting of {} bytes", bytes.len())));
        }
        let g = &mut self.greetings;
        let (kind, what) = match take(&mut g.owed, |o| (o.peer, o.what.tag) == (peer, tag)) {
            Some(owed) => (GreetingKind::Answer, owed.what),
            None => {
                g.count = g.count.wrapping_add(1);
                let what = About { tag, number: g.count };
                g.asked.push(Open { thread: current().id(), peer, what });
                (GreetingKind::Question, what)
            }
        };
        self.out.send_bare(peer, Packet::Greeting { what, kind, payload: bytes.len() }, bytes)
    }

    /// The answer if this thread has asked under that tag, and otherwise the oldest question of one who is still there; None
    /// if it has not come. An error if who was asked is lost.
    pub fn greeting(&mut self, tag: u32) -> Result<Option<Vec<u8>>, EndpointError> {
        let me = current().id();
        if let Some(asked) = self.greetings.asked.iter().find(|o| o.thread == me && o.what.tag == tag) {
            return self.answer(asked.peer, asked.what);
        }
        while let Some(i) = self.greetings.questions.iter().position(|q| q.what.tag == tag) {
            let Some(Letter { peer, what, bytes }) = self.greetings.questions.remove(i) else { break };
            if self.is_gone(peer) {
                continue;
            }
            // What this thread has not answered yet it never will.
            while take(&mut self.greetings.owed, |o| o.what.tag == tag).is_some() {}
            self.greetings.owed.push(Open { thread: me, peer, what });
            return Ok(Some(bytes));
        }
        Ok(None)
    }

    fn answer(&mut self, peer: u32, what: About) -> Result<Option<Vec<u8>>, EndpointError> {
        let g = &mut self.greetings;
        let found = g.answers.iter().position(|a| (a.peer, a.what) == (peer, what));
        let loss = self.losses.of(peer).or_else(|| self.guests.loss_of(peer, self.members.topology().size()));
        if found.is_some() || loss.is_some() {
            take(&mut g.asked, |o| (o.peer, o.what) == (peer, what));
        }
        match (found, loss) {
            (Some(i), _) => Ok(Some(g.answers.swap_remove(i).bytes)),
            (None, Some(loss)) => Err(loss.into()),
            (None, None) => Ok(None),
        }
    }

    /// Gives up what this thread has asked under that tag: nobody shall accept it any more.
    pub fn withdraw(&mut self, tag: u32) -> Result<(), EndpointError> {
        while let Some(Open { peer, what, .. }) = take(&mut self.greetings.asked, |o| o.what.tag == tag) {
            self.greetings.answers.retain(|a| (a.peer, a.what) != (peer, what));
            self.out.send_bare(peer, Packet::Greeting { what, kind: GreetingKind::Withdrawal, payload: 0 }, &[])?;
        }
        Ok(())
    }

    /// Strangers may say what they like: what makes no sense is dropped.
    pub(super) fn greeted(&mut self, a: &Arrival, what: About, kind: GreetingKind, len: usize) {
        if len > GREETING_MAX {
            return log::warn!("peer {} says too much: {len} bytes", a.src);
        }
        let mut bytes = vec![0; len];
        self.inbound.read(a.token.lane, a.offset, &mut bytes);
        let g = &mut self.greetings;
        let letter = Letter { peer: a.src, what, bytes };
        match kind {
            GreetingKind::Question if g.questions.len() < QUESTIONS_MAX => g.questions.push_back(letter),
            GreetingKind::Question => log::warn!("peer {} asks, like too many before: nobody will answer", a.src),
            // Who has given up hears nothing.
            GreetingKind::Answer if g.asked.iter().any(|o| (o.peer, o.what) == (a.src, what)) => g.answers.push(letter),
            GreetingKind::Answer => log::debug!("peer {} answers too late under tag {}", a.src, what.tag),
            GreetingKind::Withdrawal => g.questions.retain(|q| (q.peer, q.what) != (a.src, what)),
        }
    }
}
