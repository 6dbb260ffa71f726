//! A lane from a process to the gateway, and the tunnel that carries its entries away.

use super::packet::{Content, Fragment, Packet};
use super::sender::Sender;
use crate::external_peer::{Announcement, Ending, ExternalReceiver, LaneState};
use bytes::Bytes;
use ntbring_ntb::fabric::Bells;
use ntbring_queue::Consumer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A lane from a process of this host, and the sending end of its tunnel.
pub(super) struct Source {
    announcement: Announcement,
    /// The host at the far end of the tunnel.
    pub host: usize,
    consumer: Consumer,
    lane_state: LaneState,
    bells: Arc<dyn Bells>,
    sender: Sender,
    /// For each entry in the tunnel: the number of its last packet, and the bytes of the lane up to its end.
    undelivered: VecDeque<(u64, u64)>,
    /// Set if the last packet of the tunnel has been made.
    ended: bool,
}

impl Source {
    /// Opens a tunnel to `host` for a lane whose maker `bells` wakes.
    pub fn new(lane: ExternalReceiver, host: usize, bells: Arc<dyn Bells>) -> Source {
        let ExternalReceiver { announcement, consumer, lane_state, lane_bytes } = lane;
        lane_state.open();
        let Announcement { from, to, .. } = announcement;
        let sender = Sender::new(Content::Open { from, to, lane: lane_bytes as u32 });
        let source = Source {
            announcement,
            host,
            consumer,
            lane_state,
            bells,
            sender,
            undelivered: VecDeque::new(),
            ended: false,
        };
        // The maker may wait for the lane to be opened.
        source.ring();
        source
    }

    fn ring(&self) {
        self.bells.ring(self.announcement.bell.1 as usize);
    }

    /// Takes entries from the lane, in parts of at most `part` bytes, while the tunnel has room. `check` is true if the
    /// process has to be looked at. Returns the number of entries.
    pub fn take(&mut self, part: usize, check: bool) -> usize {
        if self.ended {
            return 0;
        }
        // This is found out first, so that the lane is known to stay empty afterwards.
        let is_gone = self.lane_state.is_closed() || check && self.announcement.maker.is_gone();
        let mut taken = 0;
        while self.sender.has_room() {
            match self.consumer.take() {
                Ok(Some(entry)) => {
                    let mut bytes = vec![0; entry.len];
                    self.consumer.window().read(entry.offset, &mut bytes);
                    self.push(Bytes::from(bytes), (entry.kind, entry.meta), part);
                    if self.consumer.release() {
                        self.ring();
                    }
                    taken += 1;
                }
                Ok(None) => {
                    if is_gone {
                        self.close(Ending::of(self.lane_state.has_left()));
                    }
                    break;
                }
                Err(error) => {
                    log::warn!("a lane of process {} is invalid: {error}", self.announcement.from.mailbox.pid);
                    self.close(Ending::Died);
                    break;
                }
            }
        }
        taken
    }

    /// Puts an entry into the tunnel. An entry without bytes has one part, too.
    fn push(&mut self, bytes: Bytes, (kind, meta): (u8, u16), part: usize) {
        let total = bytes.len();
        let mut last = 0;
        for at in (0..total.max(1)).step_by(part) {
            let bytes = bytes.slice(at..total.min(at + part));
            last = self.sender.push(Content::Data(Fragment { kind, meta, total: total as u32, at: at as u32, bytes }));
        }
        self.undelivered.push_back((last, self.consumer.consumed()));
    }

    fn close(&mut self, ending: Ending) {
        self.ended = true;
        self.sender.push(Content::Close(ending));
    }

    /// Returns the next packet to be sent.
    pub fn next(&mut self, now: Instant) -> Option<Packet> {
        self.sender.next(now)
    }

    /// Handles a confirmation by the far gateway.
    pub fn confirm(&mut self, received: u64, waiting: u32, now: Instant) {
        if !self.sender.confirm(received, waiting, now) {
            return;
        }
        let mut delivered = None;
        while let Some(&(last, end)) = self.undelivered.front().filter(|(last, _)| *last < self.sender.placed()) {
            delivered = Some((last, end));
            self.undelivered.pop_front();
        }
        if let Some((_, end)) = delivered {
            self.lane_state.set_delivered(end);
            // The maker may wait to leave.
            self.ring();
        }
    }

    /// Returns true if the far gateway has everything, and nothing will follow.
    pub fn is_over(&self) -> bool {
        self.ended && self.sender.is_idle()
    }

    /// Informs the process that the receiver is gone.
    pub fn finish(&self, ending: Ending) {
        self.lane_state.close(ending, &self.announcement.maker);
        self.ring();
    }

    /// Returns the time until the next packet has to be sent again; None if none has to be.
    pub fn rest(&self, now: Instant) -> Option<Duration> {
        self.sender.rest(now)
    }

    /// Returns a line for the diagnosis of a hang, if entries are not delivered.
    pub fn describe(&self) -> Option<String> {
        let waiting = self.undelivered.len();
        (waiting > 0).then(|| {
            let [from, to] = [&self.announcement.from, &self.announcement.to].map(|process| process.mailbox.pid);
            format!("gateway: {waiting} entries of process {from} for process {to} on host {} are under way", self.host)
        })
    }
}
