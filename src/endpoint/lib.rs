//! Messages between ranks: send, poll, idle, counters.
//!
//! | file | holds |
//! |---|---|
//! | `wire` | what an entry of a lane means |
//! | `error` | what can go wrong |
//! | `outbound` | flows to other ranks: what is sent, and what waits for room |
//! | `inbound` | lanes from other ranks: what has arrived |
//! | `carrier` | from end to end over links that may lose things, or go down |
//! | `poll` | looking for what has arrived, and going on with everything else |
//! | `credit` | how much may lie here that nobody has asked for |
//! | `offers` | large payloads, which the receiver fetches |
//! | `segments` | memory that near ranks map |
//! | `remote` | operations on memory of ranks that are not near |
//! | `share` | small collectives that go round the ring |
//! | `exchange` | alltoalls of neighbours that access each other's memory |
//! | `bell` | whom to ring |
//! | `patience` | the end of waiting for what injected faults have swallowed |
//! | `guests` | peers that are added later |
//! | `greetings` | what is said to them before there is a communicator |
//! | `linger` | what a rank does for others after it has left |
//! | `idle` | waiting without burning a core; noticing that somebody has died |
//! | `losses` | what becomes of that: who is lost, and that all else goes on |
//! | `counters`, `stats` | what is counted, the line it becomes, and where others read it meanwhile |
//! | `threads` | what runs beside a rank |
//! | `deputy` | what goes on with large payloads while the rank computes |
//! | `dump` | the state of a rank, for the diagnosis of a hang |

mod arrival;
mod bell;
pub mod carrier;
mod counters;
mod credit;
mod deputy;
mod dump;
mod error;
mod exchange;
mod greetings;
mod guests;
mod idle;
mod inbound;
mod linger;
mod losses;
mod offers;
mod outbound;
mod patience;
mod poll;
mod remote;
mod segments;
pub mod settings;
mod share;
mod stats;
mod threads;
pub mod wire;

pub use arrival::{Arrival, Event, Look, Plain, Token};
pub use carrier::Odd;
pub use counters::{Counter, LinkCounter, COUNTERS, LINK_COUNTERS};
pub use error::EndpointError;
pub use exchange::{Blocks, Exchanged};
pub use greetings::GREETING_MAX;
pub use idle::Idle;
pub use offers::Accepted;
pub use outbound::{Message, Sent};
pub use remote::Operation;
pub use settings::Settings;
pub use share::BLOCK_MAX;
pub use stats::{Figures, LinkFigures, Peer};

use carrier::{Caretaker, Carrier, Ends};
use guests::Guests;
use inbound::Inbound;
use ntbring_host::Bulletin;
use ntbring_memory::ForeignRoom;
use ntbring_ring::relay::RelayCounters;
use ntbring_ring::transfer::Transfer;
use ntbring_ring::Membership;
use ntbring_zerocopy::contest::Contests;
use ntbring_zerocopy::{Thresholds, Way};
use offers::Offers;
use outbound::Outbound;
use std::sync::Arc;
use std::time::Instant;

/// A rank's end of all its flows.
pub struct Endpoint {
    members: Arc<Membership>,
    settings: Settings,
    thresholds: Thresholds,
    out: Outbound,
    inbound: Inbound,
    offers: Offers,
    credits: credit::Credits,
    segments: segments::Counts,
    remotes: remote::Remotes,
    groups: share::Groups,
    exchanges: exchange::Exchanges,
    idle: Arc<Idle>,
    losses: losses::Losses,
    relay: Arc<RelayCounters>,
    transfer: Option<Transfer>,
    guests: Guests,
    greetings: greetings::Greetings,
    /// Retransmits recent packets, once the caller calls nothing any more but `drop`.
    lingering: Option<linger::Linger>,
    farewell: linger::Farewell,
    /// Polls cannot go the short way: links are not trusted, or something was left for the rank.
    odd: bool,
    interim: deputy::Interim,
    dump: dump::Trigger,
    /// Which of its process's endpoints it is.
    vci: u32,
    /// None without faults.
    patience: Option<patience::Patience>,
    /// Polls that found nothing and looked everywhere.
    fruitless: u32,
    /// Polls that went the short way.
    looks: u32,
    /// Polls that still look for transit each time, since there was some.
    relay_heat: u32,
    /// The counters that tools read...
    bulletin: Bulletin,
    /// ...and how often they had asked for it when it was last written.
    asked: u64,
}

impl Endpoint {
    /// The endpoint of a rank that has joined; starts forwarding if this is its host's first rank.
    pub fn new(mut members: Membership, settings: Settings) -> Result<Endpoint, EndpointError> {
        let mailbox = members.take_mailbox();
        let bulletin = mailbox.bulletin()?;
        let members = Arc::new(members);
        let relay = Arc::new(RelayCounters::new(&bulletin.live()));
        let transfer = threads::start_forwarding(&members, &relay).map_err(EndpointError::Thread)?;
        let ranks = members.topology().size();
        let tariff = credit::Tariff::new(settings.endpoint.unexpected, ranks);
        let (carrier, ends) = Carrier::new(&members).unzip();
        let packet_max = members.packet_max();
        let packet_max = carrier.as_ref().map_or(packet_max, |carrier: &Carrier| carrier.entry_max(packet_max));
        let (outward, inward) = ends.map(|Ends { out, inbound }| (out, inbound)).unzip();
        let mut out = Outbound::new(&members, &settings, tariff, packet_max, outward);
        let thresholds = Thresholds::new(settings.limits, members.is_crowded(), out.packed_limit());
        let lease = transfer.as_ref().map(Transfer::lease);
        let contests = thresholds.contested.then(|| Contests::new(members.is_crowded()));
        let idle = Arc::new(Idle::new(members.clone(), &settings, lease, bulletin.clone()));
        let inbound = Inbound::new(&members, inward);
        out.caretaker =
            carrier.map(|carrier| threads::take_care(carrier, &members)).transpose().map_err(EndpointError::Thread)?;
        let groups = share::Groups::new(&members);
        let remotes = remote::Remotes::new(&members, out.chunk());
        let guests = Guests::new(mailbox);
        let dump = dump::Trigger::new(settings.endpoint.dump_signal);
        let odd = out.checked;
        let patience = members.injector().and_then(|injector| injector.faults().patience);
        let patience = patience.map(|limit| patience::Patience::new(limit, Instant::now()));
        log::debug!(
            "rank {} on host {} of {}: lanes of {} bytes, {} boards for blocks of up to {}, packed up to {}, eager up to {}, pieces of up to {}",
            members.rank(),
            members.host(),
            members.topology().hosts(),
            out.smallest_lane(),
            groups.boards(),
            members.block_max(),
            thresholds.packed_max,
            thresholds.eager_max,
            out.chunk_max(),
        );
        let mut endpoint = Endpoint {
            members,
            thresholds,
            out,
            inbound,
            offers: Offers::new(contests),
            credits: credit::Credits::new(tariff.share, ranks),
            segments: segments::Counts::default(),
            remotes,
            groups,
            exchanges: exchange::Exchanges::default(),
            idle,
            losses: losses::Losses::default(),
            relay,
            transfer,
            guests,
            greetings: greetings::Greetings::default(),
            lingering: None,
            farewell: linger::Farewell::default(),
            odd,
            interim: deputy::Interim::default(),
            dump,
            vci: 0,
            patience,
            settings,
            fruitless: 0,
            looks: 0,
            relay_heat: 0,
            bulletin,
            asked: 0,
        };
        endpoint.publish_figures();
        Ok(endpoint)
    }

    /// Its process in the ring.
    pub fn members(&self) -> &Membership {
        &self.members
    }

    /// Hosts of the ring.
    pub fn hosts(&self) -> usize {
        self.members.topology().hosts()
    }

    /// This rank.
    pub fn rank(&self) -> u32 {
        self.members.rank()
    }

    /// The largest header of a message, bytes.
    pub fn header_max(&self) -> usize {
        self.out.header_max()
    }

    /// The sizes that decide how messages travel.
    pub fn thresholds(&self) -> Thresholds {
        self.thresholds
    }

    /// Says which of its process's endpoints it is, for what is told to people.
    pub fn set_vci(&mut self, vci: u32) {
        self.vci = vci;
        self.publish_figures();
    }

    /// The handle that any thread may use.
    pub fn idle(&self) -> Arc<Idle> {
        self.idle.clone()
    }

    /// Sends a message, or keeps it until there is room. See [`Sent`].
    #[inline]
    pub fn send(&mut self, message: Message<'_>) -> Result<Sent, EndpointError> {
        let dest = message.dest;
        self.offers.preferences.spend(dest, message.payload.len());
        // Taken apart and put together again: to move it as a whole, which is in other pieces than it was written in, would wait
        // until the payload has left the processor.
        let sent = self.out.send(message, &self.thresholds)?;
        if self.odd {
            self.out.carry(dest);
        }
        Ok(sent)
    }

    /// Sends a message that is one entry, if there is room for it right now and it need not be offered.
    #[inline]
    pub fn send_now(&mut self, message: &Message<'_>) -> Result<bool, EndpointError> {
        let (dest, bytes) = (message.dest, message.header.len() as u64 + message.payload.len());
        let plain = bytes <= self.thresholds.plain_max() as u64;
        if !plain && self.thresholds.choose(bytes, self.is_copied_for(dest)) == Way::Offered {
            return Ok(false);
        }
        let sent = self.out.send_now(message, &self.thresholds)?;
        if sent && !plain {
            self.offers.preferences.spend(dest, message.payload.len());
        }
        if self.odd {
            self.out.carry(dest);
        }
        Ok(sent)
    }

    /// Gives an arrival's space back. The beginning of a message in pieces gets the cookie that
    /// its pieces will carry.
    #[inline]
    pub fn release(&mut self, token: Token, cookie: usize) -> Result<(), EndpointError> {
        self.inbound.release(token, cookie)
    }

    /// Gives the space of a lane's entry back with which no message in pieces begins.
    #[inline(always)]
    pub fn release_entry(&mut self, lane: usize) -> Result<(), EndpointError> {
        self.inbound.release_entry(lane)
    }

    /// Copies bytes of an arrival to the application: those that lie `at` bytes behind its header's
    /// beginning, or its piece's. Panics if they reach beyond the lane.
    pub fn copy_out(&self, arrival: &Arrival, at: usize, room: ForeignRoom) {
        self.inbound.copy_out(arrival.token.lane, arrival.offset + at, room);
    }

    /// Returns true if everything sent has been deposited.
    pub fn is_flushed(&self) -> bool {
        let settled = !self.out.checked || self.out.has_reminded();
        !self.out.has_work() && self.offers.is_settled() && self.remotes.is_settled() && settled
    }

    /// Returns true if messages wait for credit.
    pub fn is_holding(&self) -> bool {
        self.out.held > 0
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // The threads first: they count, too.
        self.transfer = None;
        self.out.caretaker.iter_mut().for_each(Caretaker::stop);
        if let Some(lingering) = self.lingering.take() {
            self.out.take_back(lingering.end());
        }
        self.write_stats();
        self.members.flush_record();
    }
}
