//! Greetings: what two processes say to each other before they have a communicator in common.
//!
//! Who connects asks, under a tag that the other has made known, and waits for the answer. Who accepts takes the oldest
//! question under that tag, whoever asks, and answers. Both use the same two calls, so which of the two a call means
//! follows from what its thread did before.

use super::arrival::Arrival;
use super::wire::{GreetingKind, Packet};
use super::{Endpoint, EndpointError};
use std::collections::VecDeque;
use std::thread::{current, ThreadId};

/// The most bytes of a greeting.
pub const GREETING_MAX: usize = 512;

/// Questions that are kept until somebody accepts.
const QUESTIONS_MAX: usize = 4096;

#[derive(Debug)]
struct Letter {
    peer: u32,
    tag: u32,
    bytes: Vec<u8>,
}

/// What this process has been told and has not heard, and what it owes.
#[derive(Default)]
pub(super) struct Greetings {
    questions: VecDeque<Letter>,
    answers: Vec<Letter>,
    /// Who of this process waits for an answer: thread, from whom, tag.
    asked: Vec<(ThreadId, u32, u32)>,
    /// Who has taken a question and has to answer it.
    owed: Vec<(ThreadId, u32, u32)>,
}

fn take(list: &mut Vec<(ThreadId, u32, u32)>, wanted: impl Fn(u32, u32) -> bool) -> Option<u32> {
    let me = current().id();
    let i = list.iter().position(|&(thread, peer, tag)| thread == me && wanted(peer, tag))?;
    Some(list.remove(i).1)
}

impl Greetings {
    pub fn describe(&self) -> Vec<String> {
        let asked = self.asked.iter().map(|(_, peer, tag)| format!("asked peer {peer} under tag {tag}: no answer yet"));
        let questions = self.questions.iter().map(|q| format!("peer {} asks under tag {}", q.peer, q.tag));
        asked.chain(questions).collect()
    }
}

impl Endpoint {
    /// Answers a peer if this thread has heard its question under that tag, and asks it otherwise.
    pub fn greet(&mut self, peer: u32, tag: u32, bytes: &[u8]) -> Result<(), EndpointError> {
        if bytes.len() > GREETING_MAX {
            return Err(EndpointError::Argument(format!("a greeting of {} bytes", bytes.len())));
        }
        let kind = match take(&mut self.greetings.owed, |p, t| (p, t) == (peer, tag)) {
            Some(_) => GreetingKind::Answer,
            None => {
                self.greetings.asked.push((current().id(), peer, tag));
                GreetingKind::Question
            }
        };
        self.out.send_bare(peer, Packet::Greeting { tag, kind, payload: bytes.len() }, bytes)
    }

    /// The answer if this thread has asked under that tag, and otherwise the oldest question; None if it has not come.
    pub fn greeting(&mut self, tag: u32) -> Option<Vec<u8>> {
        let g = &mut self.greetings;
        let me = current().id();
        if let Some(&(_, peer, _)) = g.asked.iter().find(|&&(thread, _, t)| thread == me && t == tag) {
            let i = g.answers.iter().position(|a| (a.peer, a.tag) == (peer, tag))?;
            take(&mut g.asked, |p, t| (p, t) == (peer, tag));
            return Some(g.answers.swap_remove(i).bytes);
        }
        let i = g.questions.iter().position(|q| q.tag == tag)?;
        let question = g.questions.remove(i)?;
        g.owed.push((me, question.peer, tag));
        Some(question.bytes)
    }

    /// Gives up what this thread has asked under that tag: nobody shall accept it any more.
    pub fn withdraw(&mut self, tag: u32) -> Result<(), EndpointError> {
        while let Some(peer) = take(&mut self.greetings.asked, |_, t| t == tag) {
            self.out.send_bare(peer, Packet::Greeting { tag, kind: GreetingKind::Withdrawal, payload: 0 }, &[])?;
        }
        Ok(())
    }

    pub(super) fn greeted(
        &mut self,
        a: &Arrival,
        tag: u32,
        kind: GreetingKind,
        len: usize,
    ) -> Result<(), EndpointError> {
        if len > GREETING_MAX {
            return Err(EndpointError::Greeting { src: a.src, what: "says too much" });
        }
        let mut bytes = vec![0; len];
        self.inbound.read(a.token.lane, a.offset, &mut bytes);
        let g = &mut self.greetings;
        let letter = Letter { peer: a.src, tag, bytes };
        match kind {
            GreetingKind::Question if g.questions.len() < QUESTIONS_MAX => g.questions.push_back(letter),
            GreetingKind::Question => {
                return Err(EndpointError::Greeting { src: a.src, what: "asks, like too many before" })
            }
            // Who has given up hears nothing.
            GreetingKind::Answer if g.asked.iter().any(|&(_, peer, t)| (peer, t) == (a.src, tag)) => {
                g.answers.push(letter)
            }
            GreetingKind::Answer => log::debug!("peer {} answers too late under tag {tag}", a.src),
            GreetingKind::Withdrawal => g.questions.retain(|q| (q.peer, q.tag) != (a.src, tag)),
        }
        Ok(())
    }
}
