//! Messages whose every byte can be told from who sent it to whom and when.

use super::ring::{Rank, DEPUTIZES};
use ntbring_endpoint::wire::Offer;
use ntbring_endpoint::wire::{Head, Packet, HANDLERS};
use ntbring_endpoint::{Accepted, Arrival, Event, Message, Sent};
use ntbring_memory::{ForeignBytes, ForeignRoom, Room};
use ntbring_zerocopy::Payload;
use std::collections::HashMap;

/// What a message looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    /// Bytes of its header.
    pub header: usize,
    /// Bytes of its payload.
    pub payload: usize,
    /// Size of the elements that are packed one by one; None if it is contiguous.
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

/// What is sent from one rank to another, in order: known to both.
pub type Plan = dyn Fn(u32, u32) -> Vec<Shape> + Sync;

/// The name of a message.
fn id(src: u32, dst: u32, number: usize) -> u64 {
    (u64::from(src) << 48 | u64::from(dst) << 32 | number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1
}

fn word(id: u64, n: u64) -> u64 {
    let x = (n + 1).wrapping_mul(id);
    x ^ x >> 29
}

/// The bytes of a message from `offset` on.
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

/// Packs a message whose name and element size are the context. Stops before an element that
/// would be cut, and leaves rubbish behind it: the room is lent in full.
fn pack(context: [usize; 2], offset: u64, room: Room) -> Option<usize> {
    assert!(!DEPUTIZES.get(), "only the rank packs");
    let [id, element_and_len] = context;
    let (element, len) = (element_and_len & 0xffff, element_and_len >> 16);
    let left = len - offset as usize;
    let n = if room.len() >= left { left } else { room.len() / element * element };
    let mut bytes = content(id as u64, offset, n);
    bytes.resize(room.len(), 0xee);
    // SAFETY: the room is writable until we return, and as long as it says.
    unsafe { room.address().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    Some(n)
}

/// A message that has begun to arrive in pieces.
struct Open {
    src: u32,
    number: usize,
    got: usize,
    /// How much of it was accepted; all that was announced, if it was not an offer.
    wanted: usize,
    /// Where it goes, if not in pieces.
    room: Vec<u8>,
}

/// Whether a message is offered rather than sent.
fn is_offered(number: usize, shape: Shape) -> bool {
    shape.payload >= 1000 && number % 2 == 1
}

/// Bytes of a message that must come across: less than all if only a part of it is accepted.
#[allow(dead_code)]
pub fn crossing(number: usize, shape: Shape) -> usize {
    let payload = if is_offered(number, shape) { accepted(number, shape).0 } else { shape.payload };
    shape.header + payload
}

/// How much of an offer is accepted, and whether in pieces.
fn accepted(number: usize, shape: Shape) -> (usize, bool) {
    let size = match number % 16 {
        5 => 0,
        7 => shape.payload / 3,
        _ => shape.payload,
    };
    (size, number % 8 == 3)
}

/// What one rank has sent and received.
#[derive(Default)]
pub struct Traffic {
    /// Buffers that the library still needs, by cookie.
    lent: HashMap<usize, Vec<u8>>,
    cookies: usize,
    open: HashMap<usize, Open>,
    /// Messages that have begun to arrive, by source.
    begun: Vec<usize>,
    /// Messages that are complete.
    pub complete: usize,
}

fn bytes_at(at: *const u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    // SAFETY: an arrival's bytes stay readable until its token is released.
    unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(at, len) };
    bytes
}

/// Makes sure that whoever reads a buffer that was given back reads rubbish.
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
                let context = [id as usize, element | shape.payload << 16];
                Payload::Packed { len: shape.payload as u64, pack, context }
            }
            None => {
                buffer = content(id, 0, shape.payload);
                // SAFETY: the buffer is kept until the library gives it back.
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

    /// Takes in an event and checks it against the plan.
    pub fn take(&mut self, rank: &mut Rank, event: Event, plan: &Plan) -> Result<(), String> {
        match event {
            Event::Sent { cookie, .. } | Event::Taken { cookie } => {
                let buffer = self.lent.remove(&cookie).ok_or("a buffer is given back that was not lent")?;
                spoil(buffer);
                Ok(())
            }
            Event::Fetched { cookie } => self.fetched(rank.rank, cookie),
            Event::Remote { .. } => Err("an operation has ended that nobody began".into()),
            Event::Stalled { .. } => Err("a sender is stalled though nothing is charged".into()),
            Event::Lost(loss) => Err(loss.to_string()),
            Event::Arrival(arrival) => {
                let cookie = self.arrive(rank, &arrival, plan)?;
                rank.meanwhile();
                rank.endpoint.release(arrival.token, cookie).map_err(|e| e.to_string())
            }
        }
    }

    /// A payload is in its room.
    fn fetched(&mut self, me: u32, cookie: usize) -> Result<(), String> {
        let Open { src, number, wanted, room, .. } = self.open.remove(&cookie).ok_or("nothing was fetched")?;
        if room[..wanted] != content(id(src, me, number), 0, wanted) || room[wanted..].iter().any(|&b| b != 0xaa) {
            return Err(format!("message {number} from rank {src} is wrong in its room of {wanted} bytes"));
        }
        self.complete += 1;
        Ok(())
    }

    /// Accepts an offer: all of it or less, into a room or in pieces.
    fn accept(&mut self, rank: &mut Rank, src: u32, offer: Offer, number: usize, shape: Shape) -> Result<(), String> {
        let (wanted, in_pieces) = accepted(number, shape);
        self.cookies += 1;
        let cookie = self.cookies;
        let mut room = vec![0xaa; wanted + 64];
        // SAFETY: the room is kept until the payload is there.
        let place = (!in_pieces).then(|| unsafe { ForeignRoom::new(room.as_mut_ptr(), wanted) });
        self.open.insert(cookie, Open { src, number, got: 0, wanted, room });
        match rank.endpoint.accept(src, offer, place, wanted as u64, cookie).map_err(|e| e.to_string())? {
            Accepted::Done if !in_pieces => self.fetched(rank.rank, cookie),
            Accepted::Done if wanted > 0 => Err("pieces that were never shown".into()),
            Accepted::Done => {
                self.open.remove(&cookie);
                self.complete += 1;
                Ok(())
            }
            Accepted::Pending => Ok(()),
        }
    }

    /// The next message of a flow, checked against its header.
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
                    // SAFETY: the room is kept until the payload is there.
                    let place = unsafe { ForeignRoom::new(open.room.as_mut_ptr(), open.wanted) };
                    rank.endpoint.place_at(a.token, place, self.cookies);
                }
                self.open.insert(self.cookies, open);
                Ok(self.cookies)
            }
            Packet::Offer { head, header, offer } => {
                let (number, shape) = self.begin(me, a, head, header, plan)?;
                if offer.total != shape.payload as u64 || !is_offered(number, shape) {
                    return Err(format!("message {number} from rank {} is offered with {offer:?}", a.src));
                }
                self.accept(rank, a.src, offer, number, shape)?;
                Ok(0)
            }
            Packet::Chunk { payload, .. } => {
                let open = self.open.get_mut(&a.cookie).ok_or("a piece of nothing")?;
                let Open { src, number, got, wanted: total, ref room } = *open;
                if !room.is_empty() && !is_offered(number, plan(src, me)[number]) {
                    return Err(format!("message {number} from rank {src} has a place and comes in pieces"));
                }
                open.got += payload;
                let found = bytes_at(a.header.0, payload);
                if src != a.src || found != content(id(src, me, number), got as u64, payload) {
                    return Err(format!("message {number} from rank {src} is wrong in the piece at {got}"));
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

    /// Whether nothing is lent, and nothing half there.
    pub fn is_quiet(&self) -> bool {
        self.lent.is_empty() && self.open.is_empty()
    }

    /// Messages of which nothing but the beginning is there.
    pub fn open(&self) -> usize {
        self.open.len()
    }
}

/// Sends to everybody what the plan says, in an order that the seed gives, while receiving; until
/// everything has come and gone.
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
        // Sometimes much is sent at once, sometimes all that is there is taken in.
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
    // What carries no payload may still wait for room.
    while !rank.endpoint.is_flushed() {
        if let Some(event) = rank.poll()? {
            traffic.take(rank, event, plan)?;
        }
        rank.idle.wait(std::time::Duration::from_millis(1));
    }
    Ok(traffic)
}
