//! Test messages in which every byte depends on sender, receiver and sequence number.

use super::ring::{Rank, ASYNC_PROGRESS};
use ntbring_endpoint::wire::Offer;
use ntbring_endpoint::wire::{Head, Packet, HANDLERS};
use ntbring_endpoint::{Accepted, Arrival, Event, Message, Sent};
use ntbring_memory::{ForeignBytes, ForeignRoom};
use ntbring_zerocopy::{Packed, Payload};
use std::collections::HashMap;
use std::ffi::c_void;

/// Sizes and layout of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Size of the header, bytes.
    pub header: usize,
    /// Size of the payload, bytes.
    pub payload: usize,
    /// Size of the elements that are packed one by one, bytes; None if the payload is contiguous.
    pub element: Option<usize>,
}

impl Shape {
    pub fn contiguous(header: usize, payload: usize) -> Shape {
        Shape { header, payload, element: None }
    }

    pub fn packed(header: usize, elements: usize, size: usize) -> Shape {
        Shape { header, payload: elements * size, element: Some(size) }
    }
}

/// Returns the messages from one rank to another, in order; sender and receiver both know them.
pub type Plan = dyn Fn(u32, u32) -> Vec<Shape> + Sync;

/// Returns the id of a message, from which its contents follow.
fn id(src: u32, dst: u32, number: usize) -> u64 {
    (u64::from(src) << 48 | u64::from(dst) << 32 | number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

fn word(id: u64, n: u64) -> u64 {
    let x = (n + 1).wrapping_mul(id);
    x ^ x >> 29
}

/// Returns `len` bytes of a message's contents, from `offset` on.
fn content(id: u64, offset: u64, len: usize) -> Vec<u8> {
    let first = offset / 8;
    let skip = (offset % 8) as usize;
    let mut bytes = Vec::with_capacity(len + 16);
    for n in 0..((skip + len).div_ceil(8)) as u64 {
        bytes.extend_from_slice(&word(id, first + n).to_le_bytes());
    }
    bytes.drain(..skip);
    bytes.truncate(len);
    bytes
}

fn header_of(id: u64, len: usize) -> Vec<u8> {
    content(!id, 0, len)
}

fn head(number: usize) -> Head {
    Head { handler: number as u16 % HANDLERS }
}

/// A message to be packed.
struct Parts {
    id: u64,
    element: usize,
    len: usize,
}

/// Packs a message; the cookie points to its [`Parts`]. Stops before an element that would be split, and fills the rest
/// of the room with a pattern, since the whole room is lent.
unsafe extern "C" fn pack(cookie: *mut c_void, offset: u64, room: *mut c_void, space: u64) -> i64 {
    assert!(!ASYNC_PROGRESS.get(), "only the rank packs");
    // SAFETY: `Traffic::send` passes the parts, which live as long as the traffic.
    let &Parts { id, element, len } = unsafe { &*cookie.cast::<Parts>() };
    let (left, space) = (len - offset as usize, space as usize);
    let n = if space >= left { left } else { space / element * element };
    let mut bytes = content(id, offset, n);
    bytes.resize(space, 0xee);
    // SAFETY: the room is valid for writes of `space` bytes until this function returns.
    unsafe { room.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    n as i64
}

/// A message of which a part has arrived.
struct Open {
    src: u32,
    number: usize,
    got: usize,
    /// Number of accepted bytes; all announced bytes, if the message was not offered by rendezvous.
    wanted: usize,
    /// Receive buffer, unless the payload arrives in chunks.
    room: Vec<u8>,
}

/// Returns true if a message is offered (rendezvous) rather than sent eagerly.
fn is_offered(number: usize, shape: Shape) -> bool {
    shape.payload >= 1000 && number % 2 == 1
}

/// Returns the number of bytes of a message that must be transferred: less than all if only a part is accepted.
#[allow(dead_code)]
pub fn crossing(number: usize, shape: Shape) -> usize {
    let payload = if is_offered(number, shape) { accepted(number, shape).0 } else { shape.payload };
    shape.header + payload
}

/// Returns the number of bytes of an offer that are accepted, and true if they are received in chunks.
fn accepted(number: usize, shape: Shape) -> (usize, bool) {
    let size = match number % 16 {
        5 => 0,
        7 => shape.payload / 3,
        _ => shape.payload,
    };
    (size, number % 8 == 3)
}

/// State of the messages that one rank has sent and received.
#[derive(Default)]
pub struct Traffic {
    /// Buffers that are lent to the library, by cookie.
    lent: HashMap<usize, Vec<u8>>,
    cookies: usize,
    /// The messages that are packed: a payload points to its own.
    #[allow(clippy::vec_box)]
    parts: Vec<Box<Parts>>,
    open: HashMap<usize, Open>,
    /// Number of messages that have begun to arrive, by source.
    begun: Vec<usize>,
    /// Number of complete messages.
    pub complete: usize,
}

fn bytes_at(at: *const u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: an arrival's bytes stay readable until its token is released.
    unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(at, len) };
    bytes
}

/// Overwrites a buffer that was given back, so that later reads of it are detected.
fn spoil(mut buffer: Vec<u8>) {
    buffer.fill(0xdd);
    std::hint::black_box(&buffer);
}

impl Traffic {
    pub fn new(size: usize) -> Traffic {
        Traffic { begun: vec![0; size], cookies: 1, ..Traffic::default() }
    }

    /// Sends message `number` to `dst`.
    pub fn send(&mut self, rank: &mut Rank, dst: u32, number: usize, shape: Shape) -> Result<Sent, String> {
        let id = id(rank.rank, dst, number);
        let cookie = self.cookies;
        self.cookies += 1;
        let mut buffer = Vec::new();
        let payload = match shape.element {
            _ if shape.payload == 0 => Payload::NONE,
            Some(element) => {
                let parts = Box::new(Parts { id, element, len: shape.payload });
                let cookie: *const Parts = &*parts;
                self.parts.push(parts);
                // SAFETY: the parts are kept with the traffic, which outlives its messages; `pack` only reads them.
                Payload::Packed(unsafe { Packed::new(shape.payload as u64, pack, cookie.cast_mut().cast()) })
            }
            None => {
                buffer = content(id, 0, shape.payload);
                // SAFETY: the buffer stays allocated until the library gives it back.
                Payload::Contiguous(unsafe { ForeignBytes::new(buffer.as_ptr(), buffer.len()) })
            }
        };
        let mut header = header_of(id, shape.header);
        let message = Message { dest: dst, head: head(number), header: &header, payload, cookie };
        let sent = match is_offered(number, shape) {
            true => rank.endpoint.offer(message).map(|()| Sent::Pending),
            false => rank.endpoint.send(message),
        };
        let sent = sent.map_err(|e| e.to_string())?;
        header.fill(0xdd);
        match sent {
            Sent::Done => spoil(buffer),
            Sent::Pending => drop(self.lent.insert(cookie, buffer)),
        }
        Ok(sent)
    }

    /// Processes an event and checks it against the plan.
    pub fn take(&mut self, rank: &mut Rank, event: Event, plan: &Plan) -> Result<(), String> {
        match event {
            Event::Sent { cookie, .. } | Event::Taken { cookie } => {
                let buffer = self.lent.remove(&cookie).ok_or("a buffer is given back that was not lent")?;
                spoil(buffer);
                Ok(())
            }
            Event::Fetched { cookie } => self.fetched(rank.rank, cookie),
            Event::Remote { .. } => Err("an operation has ended that was not begun".into()),
            Event::Stalled { .. } => Err("a sender is stalled though nothing is charged".into()),
            Event::Lost(loss) => Err(loss.to_string()),
            Event::Arrival(arrival) => {
                let cookie = self.arrive(rank, &arrival, plan)?;
                rank.meanwhile();
                rank.endpoint.release(arrival.token, cookie).map_err(|e| e.to_string())
            }
        }
    }

    /// Checks a payload that is complete in its receive buffer.
    fn fetched(&mut self, me: u32, cookie: usize) -> Result<(), String> {
        let Open { src, number, wanted, room, .. } = self.open.remove(&cookie).ok_or("nothing was fetched")?;
        if room[..wanted] != content(id(src, me, number), 0, wanted) || room[wanted..].iter().any(|&b| b != 0xaa) {
            return Err(format!("message {number} from rank {src} is wrong in its room of {wanted} bytes"));
        }
        self.complete += 1;
        Ok(())
    }

    /// Accepts an offer, completely or in part, into a receive buffer or in chunks.
    fn accept(&mut self, rank: &mut Rank, src: u32, offer: Offer, number: usize, shape: Shape) -> Result<(), String> {
        let (wanted, in_pieces) = accepted(number, shape);
        self.cookies += 1;
        let cookie = self.cookies;
        let mut room = vec![0xaa; wanted + 64];
        // SAFETY: the room stays allocated until the payload has arrived.
        let place = (!in_pieces).then(|| unsafe { ForeignRoom::new(room.as_mut_ptr(), wanted) });
        self.open.insert(cookie, Open { src, number, got: 0, wanted, room });
        match rank.endpoint.accept(src, offer, place, wanted as u64, cookie).map_err(|e| e.to_string())? {
            Accepted::Done if !in_pieces => self.fetched(rank.rank, cookie),
            Accepted::Done if wanted > 0 => Err("chunks that were never shown".into()),
            Accepted::Done => {
                self.open.remove(&cookie);
                self.complete += 1;
                Ok(())
            }
            Accepted::Pending => Ok(()),
        }
    }

    /// Returns number and shape of the next message from a source, checked against its header.
    fn begin(&mut self, me: u32, a: &Arrival, h: Head, len: usize, plan: &Plan) -> Result<(usize, Shape), String> {
        let number = self.begun[a.src as usize];
        self.begun[a.src as usize] += 1;
        let Some(&shape) = plan(a.src, me).get(number) else {
            return Err(format!("more messages from rank {} than were sent", a.src));
        };
        if len != shape.header
            || h != head(number)
            || bytes_at(a.header.0, len) != header_of(id(a.src, me, number), len)
        {
            return Err(format!("message {number} from rank {} has a wrong header: {:?}", a.src, a.packet));
        }
        Ok((number, shape))
    }

    fn arrive(&mut self, rank: &mut Rank, a: &Arrival, plan: &Plan) -> Result<usize, String> {
        let me = rank.rank;
        match a.packet {
            Packet::Message { head, header, payload } => {
                let (number, shape) = self.begin(me, a, head, header, plan)?;
                let found = bytes_at(a.header.0.wrapping_add(header), payload);
                if payload != shape.payload || found != content(id(a.src, me, number), 0, payload) {
                    return Err(format!("message {number} from rank {} is wrong: {:?}", a.src, a.packet));
                }
                self.complete += 1;
                Ok(0)
            }
            Packet::Begin { head, header, total, .. } => {
                let (number, shape) = self.begin(me, a, head, header, plan)?;
                if total != shape.payload as u64 {
                    return Err(format!("message {number} from rank {} announces {total} bytes", a.src));
                }
                self.cookies += 1;
                let mut open = Open { src: a.src, number, got: 0, wanted: shape.payload, room: Vec::new() };
                if number % 4 == 2 {
                    open.wanted = match number % 16 {
                        6 => 0,
                        10 => shape.payload / 3,
                        _ => shape.payload,
                    };
                    open.room = vec![0xaa; open.wanted + 64];
                    // SAFETY: the room stays allocated until the payload has arrived.
                    let place = unsafe { ForeignRoom::new(open.room.as_mut_ptr(), open.wanted) };
                    rank.endpoint.place_at(a.token, place);
                }
                self.open.insert(self.cookies, open);
                Ok(self.cookies)
            }
            Packet::Rts { head, header, offer } => {
                let (number, shape) = self.begin(me, a, head, header, plan)?;
                if offer.total != shape.payload as u64 || !is_offered(number, shape) {
                    return Err(format!("message {number} from rank {} is offered with {offer:?}", a.src));
                }
                self.accept(rank, a.src, offer, number, shape)?;
                Ok(0)
            }
            Packet::Chunk { payload, .. } => {
                let open = self.open.get_mut(&a.cookie).ok_or("a chunk of no message")?;
                let Open { src, number, got, wanted: total, ref room } = *open;
                if !room.is_empty() && !is_offered(number, plan(src, me)[number]) {
                    return Err(format!("message {number} from rank {src} has a destination and arrives in chunks"));
                }
                open.got += payload;
                let found = bytes_at(a.header.0, payload);
                if src != a.src || found != content(id(src, me, number), got as u64, payload) {
                    return Err(format!("message {number} from rank {src} is wrong in the chunk at {got}"));
                }
                if a.last != (got + payload == total) {
                    return Err(format!("message {number} from rank {src}: {} of {total} bytes", got + payload));
                }
                if a.last {
                    self.open.remove(&a.cookie);
                    self.complete += 1;
                }
                Ok(0)
            }
            _ => Err(format!("the endpoint should have kept {:?} to itself", a.packet)),
        }
    }

    /// Returns true if no buffer is lent and no message is incomplete.
    pub fn is_quiet(&self) -> bool {
        self.lent.is_empty() && self.open.is_empty()
    }

    /// Returns the number of messages that have begun to arrive and are incomplete.
    pub fn open(&self) -> usize {
        self.open.len()
    }
}

/// Sends the messages of the plan to all ranks, in an order that the seed determines, while receiving; returns when all
/// messages are sent and received.
pub fn exchange(rank: &mut Rank, seed: u64, plan: &Plan) -> Result<Traffic, String> {
    let (me, size) = (rank.rank, rank.layout.size() as u32);
    let mut rng = fastrand::Rng::with_seed(seed ^ u64::from(me) << 32);
    let mut traffic = Traffic::new(size as usize);
    let mut flows: Vec<(u32, usize, Vec<Shape>)> =
        (0..size).map(|dst| (dst, 0, plan(me, dst))).filter(|(_, _, shapes)| !shapes.is_empty()).collect();
    let expected: usize = (0..size).map(|src| plan(src, me).len()).sum();
    while !flows.is_empty() {
        let i = rng.usize(..flows.len());
        let (dst, number, shapes) = &mut flows[i];
        traffic.send(rank, *dst, *number, shapes[*number])?;
        *number += 1;
        if *number == shapes.len() {
            flows.swap_remove(i);
        }
        // Alternates between sending many messages at once and receiving all that have arrived.
        while rng.u8(..3) > 0 {
            match rank.poll()? {
                Some(event) => traffic.take(rank, event, plan)?,
                None => break,
            }
        }
    }
    while traffic.complete < expected || !traffic.is_quiet() {
        let event = rank.event()?;
        traffic.take(rank, event, plan)?;
    }
    // Packets without payload may still wait for room.
    while !rank.endpoint.is_flushed() {
        if let Some(event) = rank.poll()? {
            traffic.take(rank, event, plan)?;
        }
        rank.idle.wait(std::time::Duration::from_millis(1), false);
    }
    Ok(traffic)
}
