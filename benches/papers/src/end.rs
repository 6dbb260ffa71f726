//! One end of a connection. Messages are received in the order in which they were sent, each by the receive that was
//! posted for it.
//!
//! | entry | holds |
//! |---|---|
//! | packed | header and payload |
//! | head | a header; the payload follows in chunks |
//! | chunk | a part of the payload |
//! | post | number and destination of a receive, from the receiver to the sender, which may place the payload there |
//! | placed | a header; the payload is at the posted destination |
//!
//! A receive that is posted early enough redirects its payload: the sender writes it straight to the destination, in
//! the receiver's window, and the receiver copies nothing. If the message leaves before the post has arrived, the
//! payload goes through the lane and is copied once by the receiver.

use crate::lane::{Receiver, Sender, CONTROL};
use crate::model::{Model, Way};
use crate::Error;
use ntbring_memory::{InWindow, OutWindow};
use ntbring_queue::Entry;
use std::collections::VecDeque;

/// Bytes of a header: the message's number and the length of its payload.
const HEADER: usize = 16;
/// Largest number of bytes of a chunk, and of a payload that is packed.
pub const CHUNK: usize = 16 << 10;
/// Fruitless polls between two calls of the watch.
const WATCH_EVERY: u32 = 1 << 12;

const PACKED: u8 = 1;
const HEAD: u8 = 2;
const CHUNKED: u8 = 3;
const POST: u8 = 4;
const PLACED: u8 = 5;

/// Called while an end waits for its peer; an error ends the wait.
pub type Watch = Box<dyn FnMut() -> Result<(), Error> + Send>;

/// Room for one message: `len` bytes, at offset `at` in the memory for receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Post {
    number: u64,
    at: usize,
    len: usize,
}

/// A message that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// Offset of the posted receive.
    pub at: usize,
    /// Bytes of its payload.
    pub len: usize,
    /// True if the sender has written the payload to its destination.
    pub placed: bool,
}

/// One end of a connection.
pub struct End {
    model: Model,
    to: Sender,
    from: Receiver,
    /// Memory for placed payloads: the peer's and this end's.
    there: OutWindow,
    here: InWindow,
    /// As much private memory, for payloads that are copied out of the lane.
    private: Vec<u8>,
    /// Buffer into which the sender copies before it writes to the window.
    buffer: Vec<u8>,
    chunk: usize,
    /// Receives that the peer has posted, for messages that were not sent yet.
    named: VecDeque<Post>,
    /// Receives that were posted here and wait for their message, and those that were not announced to the peer yet.
    receives: VecDeque<Post>,
    unannounced: VecDeque<Post>,
    /// For a message that arrives in chunks: the bytes that have arrived, and the size.
    chunked: Option<(usize, usize)>,
    /// An entry for which no receive has been posted yet.
    held: Option<Entry>,
    done: VecDeque<Received>,
    /// Numbers of messages sent and of receives posted so far.
    sent: u64,
    posted: u64,
    placed: u64,
    looks: u32,
    watch: Watch,
}

impl End {
    /// Creates an end over a pair of windows: its own one, which the peer writes, and the peer's. Both begin with a
    /// lane of `lane` bytes (see [`crate::lane`]); the rest is memory for receives.
    pub fn new(model: Model, own: InWindow, peer: OutWindow, lane: usize, watch: Watch) -> End {
        let to = Sender::new(&peer, &own, lane, model.is_explicit());
        let from = Receiver::new(&own, &peer, lane, model.is_explicit());
        let memory = own.len().min(peer.len()) - CONTROL - lane;
        let chunk = CHUNK.min(to.entry_max() - HEADER);
        End {
            model,
            to,
            from,
            there: peer.part(CONTROL + lane, memory),
            here: own.part(CONTROL + lane, memory),
            private: vec![0; memory],
            buffer: vec![0; HEADER + chunk],
            chunk,
            named: VecDeque::new(),
            receives: VecDeque::new(),
            unannounced: VecDeque::new(),
            chunked: None,
            held: None,
            done: VecDeque::new(),
            sent: 0,
            posted: 0,
            placed: 0,
            looks: 0,
            watch,
        }
    }

    /// Returns the number of bytes of the memory for receives.
    pub fn memory(&self) -> usize {
        self.here.len()
    }

    /// Returns the number of messages whose payload this end has placed, and the number of all that it has sent.
    pub fn placed(&self) -> (u64, u64) {
        (self.placed, self.sent)
    }

    /// Posts a receive for the next message that has none: up to `len` bytes, at offset `at` in the memory for
    /// receives. The memory must not be used otherwise until the message was received.
    pub fn post(&mut self, at: usize, len: usize) {
        assert!(at <= self.memory() && len <= self.memory() - at, "a receive beyond the memory for receives");
        let post = Post { number: self.posted, at, len };
        self.posted += 1;
        self.receives.push_back(post);
        if self.model.places() && len > 0 {
            self.unannounced.push_back(post);
            self.announce();
        }
    }

    /// Sends a message. While there is no room for it, this end receives arriving messages, as far as receives are
    /// posted.
    pub fn send(&mut self, payload: &[u8]) -> Result<(), Error> {
        let way = self.model.way(payload.len());
        let header = header(self.sent, payload.len());
        let place = if way.placed && !payload.is_empty() { self.place(payload.len())? } else { None };
        match place {
            Some(at) => self.send_placed(at, way, header, payload)?,
            None => self.send_by_lane(way, header, payload)?,
        }
        self.sent += 1;
        Ok(())
    }

    /// Returns the destination that the peer has posted for the next message, if it has posted one.
    fn place(&mut self, len: usize) -> Result<Option<usize>, Error> {
        while self.progress()? {}
        while self.named.front().is_some_and(|post| post.number < self.sent) {
            self.named.pop_front();
        }
        Ok(self.named.front().filter(|post| post.number == self.sent && post.len >= len).map(|post| post.at))
    }

    fn send_placed(&mut self, at: usize, way: Way, header: [u8; HEADER], payload: &[u8]) -> Result<(), Error> {
        match way.copied {
            false => self.there.write_bytes(at, payload),
            true => {
                for (i, part) in payload.chunks(self.chunk).enumerate() {
                    self.buffer[..part.len()].copy_from_slice(part);
                    self.there.write_bytes(at + i * self.chunk, &self.buffer[..part.len()]);
                }
            }
        }
        self.there.fence();
        self.placed += 1;
        self.put(PLACED, &header)
    }

    fn send_by_lane(&mut self, way: Way, header: [u8; HEADER], payload: &[u8]) -> Result<(), Error> {
        // A payload that is copied in any case may be copied behind its header, unless the model separates the two.
        let packed = way.packed || way.placed && way.copied || payload.is_empty();
        if packed && payload.len() <= self.chunk {
            let all = HEADER + payload.len();
            self.buffer[..HEADER].copy_from_slice(&header);
            self.buffer[HEADER..all].copy_from_slice(payload);
            return self.put_buffer(PACKED, all);
        }
        self.put(HEAD, &header)?;
        for part in payload.chunks(self.chunk) {
            match way.copied {
                false => self.put(CHUNKED, part)?,
                true => {
                    self.buffer[..part.len()].copy_from_slice(part);
                    self.put_buffer(CHUNKED, part.len())?;
                }
            }
        }
        Ok(())
    }

    fn put(&mut self, kind: u8, bytes: &[u8]) -> Result<(), Error> {
        while !self.to.put(kind, bytes) {
            self.wait()?;
        }
        Ok(())
    }

    fn put_buffer(&mut self, kind: u8, len: usize) -> Result<(), Error> {
        while !self.to.put(kind, &self.buffer[..len]) {
            self.wait()?;
        }
        Ok(())
    }

    /// Waits for the next message for which a receive was posted.
    pub fn receive(&mut self) -> Result<Received, Error> {
        loop {
            if let Some(received) = self.done.pop_front() {
                return Ok(received);
            }
            self.wait()?;
        }
    }

    /// Copies the payload of a received message out; its memory must not have been posted again.
    pub fn read(&self, received: &Received, to: &mut [u8]) {
        match received.placed {
            true => self.here.read(received.at, to),
            false => to.copy_from_slice(&self.private[received.at..received.at + received.len]),
        }
    }

    /// Receives the messages that have arrived. If there are none, checks from time to time that the peer is still
    /// alive.
    #[inline]
    fn wait(&mut self) -> Result<(), Error> {
        if self.progress()? {
            return Ok(());
        }
        self.looks = self.looks.wrapping_add(1);
        match self.looks % WATCH_EVERY {
            0 => {
                std::thread::yield_now();
                (self.watch)()
            }
            _ => {
                std::hint::spin_loop();
                Ok(())
            }
        }
    }

    /// Announces the posted receives to the peer, as far as there is room.
    fn announce(&mut self) {
        while let Some(post) = self.unannounced.front() {
            let mut bytes = [0; 24];
            for (to, word) in bytes.chunks_exact_mut(8).zip([post.number, post.at as u64, post.len as u64]) {
                to.copy_from_slice(&word.to_le_bytes());
            }
            if !self.to.put(POST, &bytes) {
                break;
            }
            self.unannounced.pop_front();
        }
    }

    /// Takes the next entry. Returns true if there was one that could be taken.
    #[inline]
    fn progress(&mut self) -> Result<bool, Error> {
        if !self.unannounced.is_empty() {
            self.announce();
        }
        let entry = match self.held.take() {
            Some(entry) => entry,
            None => match self.from.take()? {
                Some(entry) => entry,
                None => return Ok(false),
            },
        };
        if entry.kind == POST {
            let post = self.parse_post(&entry)?;
            self.named.push_back(post);
        } else {
            let Some(&receive) = self.receives.front() else {
                self.held = Some(entry);
                return Ok(false);
            };
            self.arrive(&entry, receive)?;
        }
        self.from.release();
        Ok(true)
    }

    /// Handles an entry of the message for which a receive was posted.
    fn arrive(&mut self, entry: &Entry, receive: Post) -> Result<(), Error> {
        if let Some((got, len)) = self.chunked {
            if entry.kind != CHUNKED || entry.len == 0 || entry.len > len - got {
                return Err(Error::Message("something else than the rest of a payload"));
            }
            let at = receive.at + got;
            self.from.read(entry, 0, &mut self.private[at..at + entry.len]);
            self.chunked = Some((got + entry.len, len));
            if got + entry.len == len {
                self.complete(receive, len, false);
            }
            return Ok(());
        }
        let len = self.parse_header(entry, &receive)?;
        match entry.kind {
            PACKED if entry.len == HEADER + len => {
                self.from.read(entry, HEADER, &mut self.private[receive.at..receive.at + len]);
                self.complete(receive, len, false);
            }
            PLACED if self.model.places() && entry.len == HEADER => self.complete(receive, len, true),
            HEAD if entry.len == HEADER && len > 0 => self.chunked = Some((0, len)),
            _ => return Err(Error::Message("an entry that is none of the protocol's")),
        }
        Ok(())
    }

    fn complete(&mut self, receive: Post, len: usize, placed: bool) {
        self.chunked = None;
        self.receives.pop_front();
        self.done.push_back(Received { at: receive.at, len, placed });
    }

    fn parse_header(&self, entry: &Entry, receive: &Post) -> Result<usize, Error> {
        let [number, len] = self.words(entry).ok_or(Error::Message("half a header"))?;
        if number != receive.number {
            return Err(Error::Message("a message out of turn"));
        }
        usize::try_from(len).ok().filter(|len| *len <= receive.len).ok_or(Error::Message("more than there is room for"))
    }

    fn parse_post(&self, entry: &Entry) -> Result<Post, Error> {
        let [number, at, len] = self.words(entry).ok_or(Error::Message("half a post"))?;
        let memory = self.there.len() as u64;
        if at > memory || len > memory - at {
            return Err(Error::Message("a place beyond its memory"));
        }
        Ok(Post { number, at: at as usize, len: len as usize })
    }

    /// Returns the first words of an entry; None if it has fewer.
    fn words<const N: usize>(&self, entry: &Entry) -> Option<[u64; N]> {
        let mut bytes = [0; 24];
        let bytes = &mut bytes[..8 * N];
        if entry.len < bytes.len() {
            return None;
        }
        self.from.read(entry, 0, bytes);
        let mut words = [0; N];
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        }
        Some(words)
    }
}

fn header(number: u64, len: usize) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&number.to_le_bytes());
    header[8..].copy_from_slice(&(len as u64).to_le_bytes());
    header
}
