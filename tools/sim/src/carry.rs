//! Messages that are retransmitted until they arrive: both halves of real reliable connections, with a simulated
//! network between them.

use super::agenda::{ms, Time};
use super::connections::End;
use super::machine::{Event, Load, Own, Packet, Simulation};
use super::plan::SimError;
use ntbring_endpoint::reliable::datagram::Datagram;
use ntbring_endpoint::reliable::{receiving_half, sending_half};
use ntbring_memory::{InWindow, OutWindow, Region};
use std::collections::VecDeque;

/// Interval between two checks of a connection with unfinished work; the same as that of the retransmission thread in a
/// job.
const TEND: Time = ms(1);

/// Bytes of an entry that identify it: the number of the message, and the bytes of the message in this entry.
const LABEL: usize = 16;

impl Simulation<'_> {
    fn end(&mut self, host: usize, peer: usize) -> &mut End {
        let side = Some(self.net.side(host, peer));
        let side = self.control.as_ref().map_or(side, |control| control.side(host, peer, side));
        self.ends.all.entry((host, peer)).or_insert_with(|| {
            let ((producer, sender), (consumer, receiver)) = (sending_half(), receiving_half());
            let (pending, queued, tended) = (VecDeque::new(), false, false);
            End { producer, sender, consumer, receiver, side, pending, queued, tended }
        })
    }

    /// Sends a message through a connection.
    pub fn carry(&mut self, src: usize, dst: usize, message: usize) {
        self.end(src, dst).pending.push_back(message);
        self.pump(src, dst);
    }

    /// Fills the lane of a connection as far as there is room, and sends the next datagram.
    fn pump(&mut self, host: usize, peer: usize) {
        self.fill(host, peer);
        let now = self.instant();
        let since = self.agenda.now();
        let end = self.end(host, peer);
        let mut datagram = None;
        if let (Some(side), false) = (end.side, end.queued) {
            if let Some(entry) = end.sender.outgoing() {
                let head = Datagram { tag: Some(entry.tag), ..end.receiver.datagram(entry.place) };
                let len = entry.len;
                let copy = Region::anonymous(len.max(8));
                OutWindow::new(copy.clone()).write(0, end.sender.bytes(&entry));
                end.sender.sent(&entry, now);
                datagram = Some((side, head, copy, len));
            } else {
                let asks = end.sender.is_to_ask(now);
                if asks || end.receiver.is_to_tell(now) {
                    let head = Datagram { asks, ..end.receiver.datagram(end.sender.place()) };
                    if asks {
                        end.sender.has_asked(now);
                    }
                    datagram = Some((side, head, Region::anonymous(8), 0));
                }
            }
        }
        if let Some((side, head, bytes, len)) = datagram {
            end.receiver.has_sent(&head);
            end.queued = true;
            let load = Load::Datagram { datagram: head, bytes, len };
            let size = (Datagram::HEAD + len) as u64;
            let (src, dst) = (host, peer);
            let packet = Packet {
                src,
                dst,
                side,
                hops: 0,
                bytes: size,
                urgent: false,
                acknowledges: false,
                lost: false,
                since,
                load,
            };
            let track = self.way_out(host, peer, side, host, 0, false);
            self.put_source(host, track, Own::Packet(packet));
        }
        let end = self.end(host, peer);
        let open = !end.sender.is_settled() || end.receiver.owes() || !end.pending.is_empty();
        if open && !std::mem::replace(&mut end.tended, true) {
            self.agenda.after(TEND, Event::Tend(host, peer));
        }
    }

    /// Puts chunks of messages into the lane of a connection.
    fn fill(&mut self, host: usize, peer: usize) {
        let chunk = self.plan.protocol.chunk;
        loop {
            let Some(&message) = self.end(host, peer).pending.front() else { return };
            let (bytes, sent) = (self.messages[message].bytes, self.messages[message].sent);
            let chunk_len = chunk.min(bytes - sent);
            let end = self.end(host, peer);
            let len = (chunk_len as usize).max(LABEL);
            let Some(mut slot) = end.producer.reserve(len) else { return };
            slot.write_bytes(0, &(message as u64).to_le_bytes());
            slot.write_bytes(8, &chunk_len.to_le_bytes());
            slot.commit(1, len, 0);
            self.messages[message].sent += chunk_len;
            if sent + chunk_len == bytes {
                self.end(host, peer).pending.pop_front();
                self.left(message);
            }
        }
    }

    /// Continues after a datagram of the connection has left the host.
    pub fn datagram_left(&mut self, host: usize, peer: usize) {
        self.end(host, peer).queued = false;
        self.pump(host, peer);
    }

    /// Handles a datagram that has arrived.
    pub fn datagram_came(
        &mut self,
        src: usize,
        host: usize,
        datagram: &Datagram,
        bytes: &Region,
        len: usize,
    ) -> Result<(), SimError> {
        let now = self.instant();
        let window = InWindow::new(bytes.clone());
        let end = self.end(host, src);
        let odd = |what: String| SimError::Protocol { host, what };
        end.sender.acknowledge(datagram, now).map_err(|error| odd(error.to_string()))?;
        end.receiver.take(datagram, window.foreign(0, len), now).map_err(|error| odd(error.to_string()))?;
        let mut chunks = Vec::new();
        while let Some(entry) = end.consumer.take().map_err(|error| odd(error.to_string()))? {
            let [mut message, mut chunk_len] = [[0; 8]; 2];
            end.consumer.window().read(entry.offset, &mut message);
            end.consumer.window().read(entry.offset + 8, &mut chunk_len);
            end.consumer.release();
            chunks.push((u64::from_le_bytes(message) as usize, u64::from_le_bytes(chunk_len)));
        }
        chunks.into_iter().for_each(|(message, chunk_len)| self.come(message, chunk_len));
        self.pump(host, src);
        Ok(())
    }

    /// Checks a connection that had unfinished work.
    pub fn tend(&mut self, host: usize, peer: usize) {
        self.end(host, peer).tended = false;
        self.pump(host, peer);
    }

    /// Handles a change of a host's routes: the connection retransmits the entries that were sent by another route, as
    /// in a job.
    pub fn turn(&mut self, host: usize) {
        let now = self.instant();
        let peers: Vec<usize> = self.ends.all.range((host, 0)..(host + 1, 0)).map(|(key, _)| key.1).collect();
        for peer in peers {
            let before = self.end(host, peer).side;
            let side = self.control.as_ref().and_then(|control| control.side(host, peer, before));
            let end = self.end(host, peer);
            if side != before {
                end.side = side;
                end.sender.turned(now);
                end.receiver.repeat(now);
            }
            self.pump(host, peer);
        }
    }
}
