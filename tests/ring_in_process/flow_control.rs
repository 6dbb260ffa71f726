//! Flow control of unexpected messages: the number that may be queued at their receiver, and the waits that it causes.

use super::*;
use ntbring_endpoint::wire::Packet;
use ntbring_endpoint::Event;
use ntbring_memory::ForeignBytes;
use std::collections::VecDeque;

/// A handler whose messages are charged, and one whose messages are not.
const CHARGED: u16 = 1;
const FREE: u16 = 2;

/// Smallest possible limit; one sender then has at least half of it.
const LIMIT: u64 = 1 << 20;
const SHARE_MIN: u64 = LIMIT / 2;

static PAYLOAD: [u8; 1000] = [7; 1000];

fn limited() -> Settings {
    settings().with(|s| s.endpoint.unexpected = Some(LIMIT))
}

/// A rank with its unexpected messages.
struct Matching<'a, 'b> {
    rank: &'a mut Rank<'b>,
    /// Unexpected messages: sender, number, cost.
    kept: VecDeque<(u32, u64, u64)>,
    /// Maximum total cost of the messages that were queued at one time.
    most: u64,
    /// Number of messages that were not charged.
    free: u64,
    /// Number of payloads that the library still needs.
    pending: u64,
    /// True if this rank accepts the messages that a stalled sender holds back.
    wants_more: bool,
    /// Number of times that the endpoint reported such a sender.
    asked: u64,
}

impl<'a, 'b> Matching<'a, 'b> {
    fn new(rank: &'a mut Rank<'b>) -> Self {
        rank.endpoint.charge(1 << CHARGED);
        Matching { rank, kept: VecDeque::new(), most: 0, free: 0, pending: 0, wants_more: false, asked: 0 }
    }

    fn send(&mut self, dest: u32, handler: u16, number: u64, payload: usize) -> Result<Sent, String> {
        let head = Head { handler };
        // SAFETY: the payload is a static.
        let bytes = unsafe { ForeignBytes::new(PAYLOAD.as_ptr(), payload) };
        let header = number.to_le_bytes();
        let message = Message { dest, head, header: &header, payload: Payload::Contiguous(bytes), cookie: 1 };
        let sent = self.rank.endpoint.send(message).map_err(|e| e.to_string())?;
        self.pending += u64::from(sent == Sent::Pending);
        Ok(sent)
    }

    /// Makes one step of waiting. Returns true if an event has come.
    fn step(&mut self, max: Duration) -> Result<bool, String> {
        let Some(event) = self.rank.step(max)? else { return Ok(false) };
        match event {
            Event::Sent { .. } => self.pending -= 1,
            Event::Stalled { src } if self.wants_more => {
                self.asked += 1;
                self.rank.endpoint.allow_more(Some(src), false).map_err(|e| e.to_string())?;
            }
            Event::Stalled { .. } => return Ok(false),
            Event::Arrival(a) => {
                let Packet::Message { head, payload, .. } = a.packet else { return Err("not a message".into()) };
                // SAFETY: an arrival's bytes stay readable until its token is released.
                let number = unsafe { a.header.0.cast::<u64>().read_unaligned() };
                let cost = self.rank.endpoint.cost(head.handler, payload as u64);
                if head.handler == CHARGED {
                    self.kept.push_back((a.src, number, cost));
                    self.most = self.most.max(self.kept.iter().map(|k| k.2).sum());
                } else {
                    self.free += 1;
                }
                self.rank.endpoint.release(a.token, 0).map_err(|e| e.to_string())?;
            }
            event => return Err(unexpected(&event)),
        }
        Ok(true)
    }

    /// Waits until `done` returns true.
    fn until(&mut self, done: impl Fn(&Self) -> bool) -> Result<(), String> {
        while !done(self) {
            self.step(Duration::from_millis(100))?;
        }
        Ok(())
    }

    /// Polls for a while, so that all messages that can arrive have arrived.
    fn settle(&mut self) -> Result<(), String> {
        let mut quiet = 0;
        while quiet < 1000 {
            quiet = if self.step(Duration::ZERO)? { 0 } else { quiet + 1 };
        }
        Ok(())
    }

    /// Receives the oldest unexpected message.
    fn take(&mut self) -> Result<(u32, u64), String> {
        self.until(|m| !m.kept.is_empty())?;
        let (src, number, cost) = self.kept.pop_front().ok_or("nothing is kept")?;
        self.rank.endpoint.discharge(src, cost).map_err(|e| e.to_string())?;
        Ok((src, number))
    }

    /// Receives `count` messages, and checks that those of each sender come in the order in which they were sent.
    fn take_in_order(&mut self, count: u64) -> Result<(), String> {
        let mut next = vec![0; self.rank.layout.size()];
        for _ in 0..count {
            let (src, number) = self.take()?;
            if std::mem::replace(&mut next[src as usize], number + 1) != number {
                return Err(format!("message {number} of rank {src} is out of order"));
            }
        }
        Ok(())
    }

    /// Waits until all sent messages have arrived and all ranks have reached this point.
    fn finish(&mut self) -> Result<(), String> {
        self.until(|m| m.pending == 0 && m.rank.endpoint.is_flushed() && !m.rank.endpoint.is_holding())?;
        self.rank.barrier()?;
        // Receives the last credits.
        self.settle()?;
        self.rank.barrier()
    }
}

const FLOOD: u64 = 2000;

#[test]
fn who_sleeps_is_not_buried() {
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[1; 4]), Layout::blocks(&[2, 1, 2, 1, 1])] {
        run(&layout, &limited(), |rank| {
            let mut m = Matching::new(rank);
            if m.rank.rank != 0 {
                for number in 0..FLOOD {
                    m.send(0, CHARGED, number, 1000)?;
                }
                // Messages that are not charged overtake those that are held, if they use another lane.
                m.send(0, FREE, 0, 8)?;
                return m.finish();
            }
            let senders = layout.size() as u64 - 1;
            m.until(|m| m.free == senders)?;
            m.settle()?;
            let allowed = senders * (LIMIT / senders).max(SHARE_MIN);
            if m.most > allowed || m.most < allowed / 2 {
                return Err(format!("{} bytes were kept, {allowed} are allowed", m.most));
            }
            m.take_in_order(senders * FLOOD)?;
            m.finish()
        });
    }
}

#[test]
fn what_is_awaited_behind_too_many_comes() {
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[1; 4])] {
        run(&layout, &limited(), |rank| {
            let mut m = Matching::new(rank);
            let last = layout.size() as u32 - 1;
            if m.rank.rank == last {
                for number in 0..FLOOD {
                    m.send(0, CHARGED, number, 1000)?;
                }
                m.until(|m| m.pending == 0)?;
            } else if m.rank.rank == 0 {
                m.wants_more = true;
                m.until(|m| m.kept.back().is_some_and(|k| k.1 == FLOOD - 1))?;
                m.take_in_order(FLOOD)?;
                // The next messages are within the limit again.
                m.wants_more = false;
                m.most = 0;
            }
            m.rank.barrier()?;
            if m.rank.rank == last {
                for number in 0..FLOOD {
                    m.send(0, CHARGED, number, 0)?;
                }
            } else if m.rank.rank == 0 {
                m.settle()?;
                // Credit that was granted earlier is used up first.
                if m.most > 2 * FLOOD * 3048 {
                    return Err(format!("{} bytes were kept", m.most));
                }
                m.take_in_order(FLOOD)?;
            }
            m.finish()
        });
    }
}

#[test]
fn who_receives_in_order_is_not_asked_for_more() {
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[1; 5])] {
        run(&layout, &limited(), |rank| {
            let mut m = Matching::new(rank);
            let (me, last) = (m.rank.rank, layout.size() as u32 - 1);
            if me == last {
                // The number is such that the receiver has consumed a quarter of a share, and has sent credit for it,
                // when it receives the STALLED of the sender, which had not received that credit yet.
                for number in 0..FLOOD {
                    m.send(0, CHARGED, number, 0)?;
                }
            } else if me == 0 {
                m.wants_more = true;
                m.take_in_order(FLOOD)?;
                if m.asked != 0 {
                    return Err(format!("asked {} times whether more is wanted than may be kept", m.asked));
                }
            }
            m.finish()
        });
    }
}

#[test]
fn ranks_that_all_send_first_get_on() {
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[1; 3]), Layout::blocks(&[1; 5]), Layout::blocks(&[2, 2])] {
        run(&layout, &limited(), |rank| {
            let mut m = Matching::new(rank);
            let next = (m.rank.rank + 1) % layout.size() as u32;
            for number in 0..FLOOD {
                m.send(next, CHARGED, number, 1000)?;
            }
            // As with MPI_Send, nothing is received before all is sent.
            m.until(|m| m.pending == 0)?;
            m.take_in_order(FLOOD)?;
            m.finish()
        });
    }
}

#[test]
fn who_leaves_takes_what_is_held_for_it() {
    run(&Layout::blocks(&[1; 3]), &limited(), |rank| {
        let mut m = Matching::new(rank);
        if m.rank.rank == 1 {
            for number in 0..FLOOD {
                m.send(0, CHARGED, number, 1000)?;
            }
        } else if m.rank.rank == 0 {
            m.settle()?;
            m.rank.endpoint.leave().map_err(|e| e.to_string())?;
            m.until(|m| m.kept.len() as u64 == FLOOD)?;
        }
        m.finish()
    });
}

#[test]
fn hosts_may_have_different_limits() {
    let settings =
        |rank: u32| settings().with(|s| s.endpoint.unexpected = [None, Some(LIMIT), Some(8 * LIMIT)][rank as usize]);
    run_each(&Layout::blocks(&[1; 3]), settings, |rank| {
        let mut m = Matching::new(rank);
        let me = m.rank.rank;
        for number in 0..FLOOD {
            for dest in (0..3).filter(|&dest| dest != me) {
                m.send(dest, CHARGED, number, 1000)?;
            }
        }
        m.take_in_order(2 * FLOOD)?;
        m.finish()
    });
}

#[test]
fn nothing_is_charged_without_being_told() {
    run(&Layout::blocks(&[1, 1]), &limited(), |rank| {
        let mut m = Matching::new(rank);
        m.rank.endpoint.charge(0);
        if m.rank.rank == 1 {
            for number in 0..FLOOD {
                m.send(0, CHARGED, number, 1000)?;
            }
        } else {
            m.until(|m| m.kept.len() as u64 == FLOOD)?;
        }
        m.finish()
    });
}
