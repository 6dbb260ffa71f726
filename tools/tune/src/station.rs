//! One rank's end of one ring of two hosts, with message buffers: sends and receives.

use super::error::TuneError;
use super::plan::{Method, LARGEST};
use ntbring_endpoint::wire::{Head, Packet};
use ntbring_endpoint::{Accepted, Arrival, Endpoint, Event, Idle, Message, Sent};
use ntbring_memory::{ForeignBytes, ForeignRoom, InWindow, OutWindow, Region};
use ntbring_zerocopy::{Payload, LONG_HEADER};
use std::sync::Arc;
use std::time::Duration;

/// Longest sleep of a waiting rank: the same as in the netmod.
const SLEEP: Duration = Duration::from_millis(1);
/// Alignment of buffers in bytes: the size of a page.
const PAGE: usize = 4096;

/// Handler id of measured messages.
const DATA: u16 = 0;
/// Handler id of control messages.
const CONTROL: u16 = 1;
/// Size of a control message in bytes.
pub const CONTROL_LEN: usize = 16;

/// Memory of this process, as an application has it.
struct Buffer {
    region: Region,
    start: usize,
}

impl Buffer {
    fn new() -> Buffer {
        let region = Region::anonymous(LARGEST + PAGE);
        let start = region.room(0, 0).address().align_offset(PAGE);
        let buffer = Buffer { region, start };
        // Touches all pages, so that there are no page faults during the measurement.
        buffer.set(&vec![0; LARGEST]);
        buffer
    }

    fn room(&self, at: usize, len: usize) -> ForeignRoom<'_> {
        self.region.room(self.start + at, len)
    }

    /// Returns the buffer as the destination of an operation that ends after the call.
    fn lasting_room(&self, len: usize) -> ForeignRoom<'static> {
        // SAFETY: a station keeps its buffers until it is dropped with its endpoint, which runs the operations; there
        // are no references to a region's bytes.
        unsafe { ForeignRoom::new(self.room(0, len).address(), len) }
    }

    /// Returns the buffer as the source of an operation that ends after the call.
    fn lasting_bytes(&self, len: usize) -> ForeignBytes<'static> {
        // SAFETY: as in `lasting_room`.
        unsafe { ForeignBytes::new(self.room(0, len).address(), len) }
    }

    fn copy_to(&self, other: &Buffer, len: usize) {
        InWindow::new(self.region.clone()).copy_out(self.start, other.room(0, len));
    }

    fn set(&self, bytes: &[u8]) {
        OutWindow::new(self.region.clone()).write_bytes(self.start, bytes);
    }

    fn get(&self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        InWindow::new(self.region.clone()).read(self.start, &mut bytes);
        bytes
    }
}

/// One rank's end of a ring.
pub struct Station {
    endpoint: Endpoint,
    idle: Arc<Idle>,
    peer: u32,
    outgoing: Buffer,
    incoming: Buffer,
    /// Buffer for unexpected messages.
    aside: Buffer,
    late: bool,
    /// Number of bytes of the current message that have arrived.
    arrived: usize,
    complete: bool,
    /// True while the payload that was sent is still in use.
    lent: bool,
    control: Option<[u8; CONTROL_LEN]>,
}

impl Station {
    /// Returns the end of a rank that has joined.
    pub fn new(endpoint: Endpoint, peer: u32) -> Station {
        Station {
            idle: endpoint.idle(),
            endpoint,
            peer,
            outgoing: Buffer::new(),
            incoming: Buffer::new(),
            aside: Buffer::new(),
            late: false,
            arrived: 0,
            complete: false,
            lent: false,
            control: None,
        }
    }

    /// Returns the largest size of header and payload in one entry, in bytes.
    pub fn packed_max(&self) -> usize {
        self.endpoint.thresholds().packed_max
    }

    /// Returns true if the kernel copies between the two ranks.
    pub fn is_reached(&self) -> bool {
        self.endpoint.eager_max(self.peer) < self.endpoint.thresholds().eager_max
    }

    /// Sends a message; returns when its payload may be reused.
    pub fn send(&mut self, way: Method, len: usize) -> Result<(), TuneError> {
        self.start(way, len)?;
        while self.lent {
            self.step()?;
        }
        Ok(())
    }

    /// Sends a message; returns when the reply has arrived.
    pub fn send_and_receive(&mut self, way: Method, len: usize) -> Result<(), TuneError> {
        self.start(way, len)?;
        while self.lent || !self.complete {
            self.step()?;
        }
        self.finish(len);
        Ok(())
    }

    /// Receives a message.
    pub fn receive(&mut self, way: Method, len: usize) -> Result<(), TuneError> {
        self.late = way.is_late();
        while !self.complete {
            self.step()?;
        }
        self.finish(len);
        Ok(())
    }

    /// Sends a control message.
    pub fn say(&mut self, control: [u8; CONTROL_LEN]) -> Result<(), TuneError> {
        let head = Head { handler: CONTROL };
        self.endpoint.send(Message { dest: self.peer, head, header: &control, payload: Payload::NONE, cookie: 0 })?;
        Ok(())
    }

    /// Receives a control message.
    pub fn hear(&mut self) -> Result<[u8; CONTROL_LEN], TuneError> {
        loop {
            match self.control.take() {
                Some(control) => return Ok(control),
                None => self.step()?,
            }
        }
    }

    /// Sets the payload of all further messages.
    pub fn load(&mut self, bytes: &[u8]) {
        self.outgoing.set(bytes);
    }

    /// Returns the payload of the latest message.
    pub fn received(&self, len: usize) -> Vec<u8> {
        self.incoming.get(len)
    }

    fn start(&mut self, way: Method, len: usize) -> Result<(), TuneError> {
        self.late = way.is_late();
        let header = [0; LONG_HEADER];
        let message = Message {
            dest: self.peer,
            head: Head { handler: DATA },
            header: &header[..way.header()],
            payload: Payload::Contiguous(self.outgoing.lasting_bytes(len)),
            cookie: 0,
        };
        self.lent = match way.is_offered() {
            true => self.endpoint.offer(message).map(|()| true)?,
            false => self.endpoint.send(message)? == Sent::Pending,
        };
        Ok(())
    }

    fn finish(&mut self, len: usize) {
        self.complete = false;
        if self.late {
            self.aside.copy_to(&self.incoming, len);
        }
    }

    /// Polls once, and waits if nothing has arrived.
    fn step(&mut self) -> Result<(), TuneError> {
        match self.endpoint.poll()? {
            None => {
                self.idle.wait(SLEEP, false);
            }
            Some(Event::Sent { .. } | Event::Taken { .. }) => self.lent = false,
            Some(Event::Fetched { .. }) => self.complete = true,
            // There are no one-sided operations here, and messages are not charged against flow-control credit.
            Some(Event::Remote { .. } | Event::Stalled { .. }) => {}
            Some(Event::Lost(loss)) => return Err(ntbring_endpoint::EndpointError::from(loss).into()),
            Some(Event::Arrival(arrival)) => {
                self.take(&arrival)?;
                self.endpoint.release(arrival.token, 0)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, arrival: &Arrival) -> Result<(), TuneError> {
        let place = if self.late { &self.aside } else { &self.incoming };
        match arrival.packet {
            Packet::Message { head, header, .. } if head.handler == CONTROL => {
                let mut control = [0; CONTROL_LEN];
                if header == CONTROL_LEN {
                    let buffer = &self.aside;
                    self.endpoint.copy_out(arrival, 0, buffer.room(0, header));
                    control.copy_from_slice(&buffer.get(header));
                }
                self.control = Some(control);
            }
            Packet::Message { header, payload, .. } => {
                self.endpoint.copy_out(arrival, header, place.room(0, payload));
                self.complete = true;
            }
            Packet::Begin { .. } => self.arrived = 0,
            Packet::Chunk { payload, .. } => {
                self.endpoint.copy_out(arrival, 0, place.room(self.arrived, payload));
                self.arrived += payload;
                self.complete = arrival.last;
            }
            Packet::Rts { offer, .. } => {
                let room = self.incoming.lasting_room(offer.total as usize);
                let accepted = self.endpoint.accept(arrival.src, offer, Some(room), offer.total, 0)?;
                self.complete = accepted == Accepted::Done;
            }
            // All other packets are handled inside the endpoint.
            _ => {}
        }
        Ok(())
    }
}
