//! The events of a part, and their encoding in four words.
//!
//! | word | holds |
//! |---|---|
//! | 0 | time stamp: the beginning of a call; otherwise when the event was recorded |
//! | 1 | kind, 8 bits; detail, 8; more, 16; peer, 32 |
//! | 2 and 3 | by the kind |

use super::layout::EVENT_WORDS;

/// The protocol of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One entry of a lane.
    Packed,
    /// A header and chunks.
    Chunked,
    /// The receiver fetches the payload.
    Rendezvous,
}

impl Way {
    /// Returns the name, as in the statistics.
    pub fn name(self) -> &'static str {
        match self {
            Way::Packed => "packed",
            Way::Chunked => "chunked",
            Way::Rendezvous => "rendezvous",
        }
    }
}

/// The direction of a message or payload, seen by the process that records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The process sends it.
    Out,
    /// The process receives it.
    In,
}

/// A message that is sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the sender or receiver.
    pub peer: u32,
    /// Index of the endpoint in its process.
    pub vci: u8,
    /// The handler of the message.
    pub handler: u8,
    /// Its protocol.
    pub way: Way,
    /// Bytes of the payload.
    pub bytes: u64,
    /// Its tag, if messages of the handler have one.
    pub tag: i32,
    /// Its number among the messages of the same sender to the same receiver.
    pub number: u32,
}

impl Message {
    /// Encodes the event that the message is sent or received at a time stamp.
    #[inline(always)]
    pub fn words(self, direction: Direction, stamp: u64) -> [u64; EVENT_WORDS] {
        let kind = if direction == Direction::Out { SENT } else { RECEIVED };
        let more = u16::from(self.vci) << 8 | u16::from(self.handler);
        let last = u64::from(self.tag as u32) | u64::from(self.number) << 32;
        [stamp, word(kind, self.way as u8, more, self.peer), self.bytes, last]
    }
}

/// The name of no function.
pub const NO_NAME: u16 = u16::MAX;

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message was given to the ring, or queued for it, or its header has arrived.
    Message(Direction, Message),
    /// The process has forwarded an entry of a lane that is for another host.
    Hop {
        /// The rank that has sent it.
        src: u32,
        /// The rank that it is for.
        dst: u32,
        /// Bytes of the entry.
        bytes: u64,
        /// True if it left to the right.
        right: bool,
    },
    /// Calls of a function; the event's stamp is when the first one began.
    Call {
        /// Number of the function's name.
        name: u16,
        /// Time stamps from the beginning of the first call to the end of the last one.
        lasted: u64,
        /// Number of calls.
        calls: u64,
    },
    /// A wait, from its first yield to its last yield or sleep.
    Wait {
        /// Duration, ns.
        lasted: u64,
        /// Time from its end to the event's stamp, ns.
        ago: u64,
        /// Index of the endpoint.
        vci: u8,
        /// Number of the name of the function that waits, or [`NO_NAME`].
        name: u16,
    },
    /// A sleep that has just ended.
    Sleep {
        /// Duration, ns.
        lasted: u64,
        /// Index of the endpoint.
        vci: u8,
    },
    /// The payload of a message by rendezvous has left or arrived just now.
    Payload {
        /// Its direction.
        direction: Direction,
        /// The other rank.
        peer: u32,
        /// Its bytes.
        bytes: u64,
        /// Time since it was offered (out), or accepted (in), ns.
        lasted: u64,
    },
}

const SENT: u64 = 1;
const RECEIVED: u64 = 2;
const HOP: u64 = 3;
const CALL: u64 = 4;
const WAIT: u64 = 5;
const SLEEP: u64 = 6;
const PAYLOAD_OUT: u64 = 7;
const PAYLOAD_IN: u64 = 8;

#[inline(always)]
fn word(kind: u64, detail: u8, more: u16, peer: u32) -> u64 {
    kind | u64::from(detail) << 8 | u64::from(more) << 16 | u64::from(peer) << 32
}

impl Event {
    /// Encodes the event at a time stamp.
    #[inline(always)]
    pub fn words(self, stamp: u64) -> [u64; EVENT_WORDS] {
        match self {
            Event::Message(direction, message) => message.words(direction, stamp),
            Event::Hop { src, dst, bytes, right } => [stamp, word(HOP, right.into(), 0, dst), bytes, src.into()],
            Event::Call { name, lasted, calls } => [stamp, word(CALL, 0, name, 0), lasted, calls],
            Event::Wait { lasted, ago, vci, name } => [stamp, word(WAIT, vci, name, 0), lasted, ago],
            Event::Sleep { lasted, vci } => [stamp, word(SLEEP, vci, 0, 0), lasted, 0],
            Event::Payload { direction, peer, bytes, lasted } => {
                let kind = if direction == Direction::Out { PAYLOAD_OUT } else { PAYLOAD_IN };
                [stamp, word(kind, 0, 0, peer), bytes, lasted]
            }
        }
    }

    /// Decodes an event, without its time stamp. None if there is no such kind or protocol.
    pub fn of(words: &[u64]) -> Option<Event> {
        let &[_, word, second, third] = words else { return None };
        let (detail, more, peer) = ((word >> 8) as u8, (word >> 16) as u16, (word >> 32) as u32);
        let message = || {
            let way = [Way::Packed, Way::Chunked, Way::Rendezvous].into_iter().nth(detail.into())?;
            let (vci, handler, tag, number) =
                ((more >> 8) as u8, more as u8, third as u32 as i32, (third >> 32) as u32);
            Some(Message { peer, vci, handler, way, bytes: second, tag, number })
        };
        Some(match word & 0xff {
            SENT => Event::Message(Direction::Out, message()?),
            RECEIVED => Event::Message(Direction::In, message()?),
            HOP => Event::Hop { src: third as u32, dst: peer, bytes: second, right: detail != 0 },
            CALL => Event::Call { name: more, lasted: second, calls: third },
            WAIT => Event::Wait { lasted: second, ago: third, vci: detail, name: more },
            SLEEP => Event::Sleep { lasted: second, vci: detail },
            PAYLOAD_OUT => Event::Payload { direction: Direction::Out, peer, bytes: second, lasted: third },
            PAYLOAD_IN => Event::Payload { direction: Direction::In, peer, bytes: second, lasted: third },
            _ => return None,
        })
    }
}
