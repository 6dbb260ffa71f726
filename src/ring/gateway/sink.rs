//! A lane from the gateway to a process, and the tunnel from which its entries come.

use super::packet::{Content, Packet};
use super::receiver::{Placed, Receiver};
use crate::external_peer::{Announcement, Ending, ExternalSender, LaneState};
use ntbring_host::HostMemory;
use ntbring_ntb::fabric::Bells;
use ntbring_queue::Producer;
use std::sync::Arc;

/// A lane to a process of this host, and the receiving end of its tunnel.
pub(super) struct Sink {
    announcement: Announcement,
    producer: Producer,
    lane_state: LaneState,
    /// The lane's memory, until the process has opened it.
    memory: Option<HostMemory>,
    bells: Arc<dyn Bells>,
    receiver: Receiver,
    /// Set if nothing more can arrive by the tunnel: the tunnel ends when all that has arrived is placed.
    is_cut: bool,
}

impl Sink {
    /// Returns the end of a tunnel whose first packet has arrived. `bells` wakes the process that reads the lane.
    pub fn new(announcement: Announcement, lane: ExternalSender, bells: Arc<dyn Bells>) -> Sink {
        let ExternalSender { memory, producer, lane_state } = lane;
        let receiver = Receiver::new(producer.entry_max());
        let sink = Sink { announcement, producer, lane_state, memory: Some(memory), bells, receiver, is_cut: false };
        sink.ring();
        sink
    }

    fn ring(&self) {
        self.bells.ring(self.announcement.to.doorbell as usize);
    }

    /// Handles a packet with contents; None for one that asks for a confirmation.
    pub fn accept(&mut self, content: Option<(u64, Content)>) {
        match content {
            Some((number, content)) => self.receiver.accept(number, content),
            None => self.receiver.probe(),
        }
    }

    /// Records that nothing more can arrive by the tunnel.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Puts entries into the lane, once the process has opened it. Returns the ending of the tunnel if it has ended.
    pub fn place(&mut self) -> Option<Ending> {
        if !self.lane_state.is_open() {
            return None;
        }
        self.memory = None;
        let (producer, mut put) = (&mut self.producer, false);
        let placed = self.receiver.place(|kind, meta, bytes| {
            let Some(mut slot) = producer.reserve(bytes.len()) else { return false };
            slot.write_bytes(0, bytes);
            slot.commit(kind, bytes.len(), meta);
            put = true;
            true
        });
        if put {
            self.ring();
        }
        match placed {
            Placed::Open => (self.is_cut && self.receiver.waiting() == 0).then_some(Ending::Died),
            Placed::Ended(ending) => Some(ending),
            Placed::Invalid(what) => {
                log::warn!("a tunnel from process {} is invalid: {what}", self.announcement.from.mailbox.pid);
                Some(Ending::Died)
            }
        }
    }

    /// Returns the confirmation for the sender, if there is one.
    pub fn confirmation(&mut self) -> Option<Packet> {
        self.receiver.confirmation()
    }

    /// Returns how the process that reads the lane has ended, if it has; `check` is true if the process has to be
    /// looked at.
    pub fn reader_ending(&self, check: bool) -> Option<Ending> {
        let is_gone = self.lane_state.is_closed() || check && self.announcement.to.mailbox.is_gone();
        // This is read afterwards: the process may have left meanwhile.
        is_gone.then(|| Ending::of(self.lane_state.has_left()))
    }

    /// Informs the process that the sender is gone.
    pub fn finish(&self, ending: Ending) {
        self.lane_state.close(ending, &self.announcement.to.mailbox);
        self.ring();
    }

    /// Returns a line for the diagnosis of a hang, if entries wait for the process.
    pub fn describe(&self) -> Option<String> {
        let waiting = self.receiver.waiting();
        let pid = self.announcement.to.mailbox.pid;
        let line =
            || format!("gateway: process {pid} of another job has to call MPI to receive {waiting} parts of messages");
        (waiting > 0 || self.memory.is_some()).then(line)
    }
}
