//! One connection over a link that loses packets: number of attempts for a message.
//!
//! SPAX (ETRI 1995) assumes that a message arrives within n attempts with probability 1 - p^n, if one attempt fails
//! with probability p. Here the attempts are those of a real sender, to which a real receiver reports missing entries.

use super::agenda::{ms, us, Agenda, Time};
use fastrand::Rng;
use ntbring_endpoint::reliable::datagram::Datagram;
use ntbring_endpoint::reliable::{receiving_half, sending_half, Malformed};
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_ntb::timing::TICKS_PER_NS;
use std::time::{Duration, Instant};

/// Time from one end of the link to the other.
const LATENCY: Time = us(1);

enum Event {
    /// The sender checks if there is an entry to send or an acknowledgement to request.
    Look,
    /// A datagram arrives at the receiver, with its entry's bytes if it carries one.
    There(Datagram, Region, usize),
    /// A reply of the receiver arrives at the sender.
    Back(Datagram),
}

/// Returns the number of attempts for each of `messages` messages of `bytes` bytes, which are sent one after the other.
/// An attempt is lost with probability `loss`; with `back`, so is a reply of the receiver.
pub fn attempts(loss: f64, back: bool, messages: usize, bytes: usize, seed: u64) -> Result<Vec<u32>, Malformed> {
    let ((mut producer, mut sender), (mut consumer, mut receiver)) = (sending_half(), receiving_half());
    let (mut agenda, mut rng, start) = (Agenda::default(), Rng::with_seed(seed), Instant::now());
    let (mut taken, mut tries, mut sent) = (Vec::with_capacity(messages), 0, 0);
    let payload = vec![0x5a; bytes];
    agenda.at(0, Event::Look);
    while let Some(event) = agenda.take() {
        let now = start + Duration::from_nanos(agenda.now() / TICKS_PER_NS);
        match event {
            Event::Look => {
                if sent == taken.len() && sent < messages {
                    if let Some(mut slot) = producer.reserve(bytes) {
                        slot.write_bytes(0, &payload);
                        slot.commit(1, bytes, 0);
                        (sent, tries) = (sent + 1, 0);
                    }
                }
                while let Some(entry) = sender.outgoing() {
                    let datagram = Datagram { place: entry.place, tag: Some(entry.tag), ..Datagram::default() };
                    let len = entry.len;
                    let copy = Region::anonymous(len.max(8));
                    OutWindow::new(copy.clone()).write(0, sender.bytes(&entry));
                    sender.sent(&entry, now);
                    // The padding at a wrap is not a message: it is not counted, and never lost.
                    tries += u32::from(len > 0);
                    if len == 0 || rng.f64() >= loss {
                        agenda.after(LATENCY, Event::There(datagram, copy, len));
                    }
                }
                if sender.is_to_ask(now) {
                    sender.has_asked(now);
                    let datagram = Datagram { place: sender.place(), asks: true, ..Datagram::default() };
                    agenda.after(LATENCY, Event::There(datagram, Region::anonymous(8), 0));
                }
                if taken.len() < messages {
                    agenda.after(ms(1), Event::Look);
                }
            }
            Event::There(datagram, copy, len) => {
                receiver.take(&datagram, InWindow::new(copy).foreign(0, len), now)?;
                while let Ok(Some(_)) = consumer.take() {
                    consumer.release();
                    taken.push(tries);
                }
                if receiver.is_to_tell(now) || receiver.owes() {
                    let answer = receiver.datagram(Default::default());
                    receiver.has_sent(&answer);
                    if !back || rng.f64() >= loss {
                        agenda.after(LATENCY, Event::Back(answer));
                    }
                }
            }
            Event::Back(datagram) => {
                sender.acknowledge(&datagram, now)?;
            }
        }
    }
    Ok(taken)
}
