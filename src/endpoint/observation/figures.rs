//! Statistics of a rank: the JSON line that is written when it leaves the ring, and the words of its stats page, from
//! which tools make the same line while it runs.

use super::counters::{Counter, LinkCounter, COUNTERS, LINK_COUNTERS};
use super::histogram::{self, Sizes, Times, TIMES};
use super::state::{Reason, State};
use ntbring_host::StatsPage;
use ntbring_ntb::Side;
use ntbring_ring::relay::RelayCounters;
use serde::{Serialize, Serializer};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// The counters of a rank, or of one of its VCIs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// The rank.
    pub rank: u64,
    /// Index of the VCI.
    pub vci: u64,
    /// The rank's host.
    pub host: u64,
    /// Number of hosts in the ring.
    pub hosts: u64,
    /// Number of ranks in the job.
    pub size: u64,
    /// Size in bytes of the rank's smallest lane.
    pub lane_bytes: u64,
    /// Values of [`COUNTERS`], in that order.
    #[serde(flatten, serialize_with = "counters")]
    pub counters: Vec<u64>,
    /// Sizes of the messages sent.
    pub sizes: Sizes,
    /// Times that operations took.
    pub times: Times,
    /// State of the rank when it published its counters; None in the line that it writes when it leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// Traffic by link, left first; empty in a ring of one host.
    pub links: Vec<LinkFigures>,
    /// Traffic to each rank to which there was any.
    pub peers: Vec<Peer>,
}

/// The counters of a link, seen by one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LinkFigures {
    /// The side of the rank's host.
    #[serde(serialize_with = "side")]
    pub side: Side,
    /// The host at the other end.
    pub to: u64,
    /// Values of [`LINK_COUNTERS`], in that order.
    #[serde(flatten, serialize_with = "link_counters")]
    pub counters: Vec<u64>,
}

/// Traffic to one rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Peer {
    /// The rank.
    pub rank: u64,
    /// The rank's host.
    pub host: u64,
    /// Distance in hops.
    pub distance: u64,
    /// True if hosts between relay the messages.
    pub relayed: bool,
    /// Number of messages.
    pub msgs: u64,
    /// Number of bytes.
    pub bytes: u64,
}

fn counters<S: Serializer>(values: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(COUNTERS.iter().map(|counter| counter.name).zip(values))
}

fn link_counters<S: Serializer>(values: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(LINK_COUNTERS.iter().map(|counter| counter.name).zip(values))
}

fn side<S: Serializer>(side: &Side, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(side)
}

/// Number of words before the counters.
const FACTS: usize = 6;
/// Number of words for each peer.
const PEER: usize = 3;

/// Returns a digest of the names of counters, times and reasons: it identifies the layout of a stats page's words.
pub(super) fn meaning() -> u64 {
    static MEANING: OnceLock<u64> = OnceLock::new();
    *MEANING.get_or_init(|| {
        let names = COUNTERS.iter().map(|counter| counter.name).chain(LINK_COUNTERS.iter().map(|counter| counter.name));
        let names = names.chain(TIMES.iter().map(|kind| kind.name)).chain(Reason::ALL.map(Reason::name));
        let digest = names.fold(1, |digest, name| crc32c::crc32c_append(digest, format!("{name} ").as_bytes()));
        u64::from(digest)
    })
}

impl Figures {
    /// Encodes the counters as words for a stats page.
    pub(super) fn words(&self) -> Vec<u64> {
        let mut words = vec![self.rank, self.vci, self.host, self.hosts, self.size, self.lane_bytes];
        words.extend(&self.counters);
        words.push(self.links.len() as u64);
        for link in &self.links {
            words.push(link.to);
            words.extend(&link.counters);
        }
        histogram::write(&self.sizes, &self.times, &mut words);
        words.push(self.state.is_some().into());
        self.state.iter().for_each(|state| state.write(&mut words));
        for peer in &self.peers {
            words.extend([
                peer.rank | peer.host << 16 | peer.distance << 32 | u64::from(peer.relayed) << 48,
                peer.msgs,
                peer.bytes,
            ]);
        }
        words
    }

    fn parse(words: &[u64]) -> Option<Figures> {
        let (facts, words) = words.split_at_checked(FACTS)?;
        let &[rank, vci, host, hosts, size, lane_bytes] = facts else { return None };
        let (counters, words) = words.split_at_checked(COUNTERS.len())?;
        let (&count, mut words) = words.split_first()?;
        let mut links = Vec::new();
        for side in Side::BOTH.into_iter().take(count as usize) {
            let (of, rest) = words.split_at_checked(1 + LINK_COUNTERS.len())?;
            links.push(LinkFigures { side, to: of[0], counters: of[1..].to_vec() });
            words = rest;
        }
        let (sizes, times) = histogram::read(&mut words)?;
        let (&has_state, mut words) = words.split_first()?;
        let state = if has_state == 0 { None } else { Some(State::read(&mut words)?) };
        let peer = |peer: &[u64]| {
            let [rank, host, distance] = [0, 16, 32].map(|bits| peer[0] >> bits & 0xffff);
            Peer { rank, host, distance, relayed: peer[0] >> 48 & 1 == 1, msgs: peer[1], bytes: peer[2] }
        };
        let peers = words.chunks_exact(PEER).map(peer).collect();
        let counters = counters.to_vec();
        Some(Figures { rank, vci, host, hosts, size, lane_bytes, counters, sizes, times, state, links, peers })
    }

    /// Adds the counters of the host's forwarder.
    pub(crate) fn and(mut self, relay: &RelayCounters) -> Figures {
        let add = |(value, counter): (&mut u64, &Counter)| *value += counter.relayed(relay);
        self.counters.iter_mut().zip(COUNTERS).for_each(add);
        for link in &mut self.links {
            let add = |(value, counter): (&mut u64, &LinkCounter)| *value += counter.relayed(relay, link.side);
            link.counters.iter_mut().zip(LINK_COUNTERS).for_each(add);
        }
        self
    }

    /// Appends the line to the file at `path`. It is written by a single call, so that lines of ranks that share the
    /// file do not mix.
    pub(crate) fn append(&self, path: &Path) {
        let result = serde_json::to_string(self).map_err(std::io::Error::from).and_then(|mut line| {
            line.push('\n');
            OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
        });
        if let Err(error) = result {
            log::error!("NTBRING_STATS={}: {error}", path.display());
        }
    }

    /// Returns the value of a counter.
    pub fn count(&self, name: &str) -> Option<u64> {
        COUNTERS.iter().position(|counter| counter.name == name).map(|i| self.counters[i])
    }

    /// Reads the counters that a rank last published, with the current ones of its host's forwarder, and the age of
    /// the former. Returns None if the rank has published nothing yet, and an error if it runs with another version
    /// of ntbring.
    pub fn look(stats_page: &StatsPage) -> Result<Option<(Figures, Duration)>, &'static str> {
        let Some(posted) = stats_page.read() else { return Ok(None) };
        let figures = (posted.meaning == meaning()).then(|| Figures::parse(&posted.words)).flatten();
        let figures = figures.ok_or("the rank runs with another version of ntbring")?;
        Ok(Some((figures.and(&RelayCounters::new(&stats_page.live())), posted.age())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    fn figures() -> Figures {
        let link = |side, to| LinkFigures { side, to, counters: (0..LINK_COUNTERS.len() as u64).collect() };
        let peer =
            |rank| Peer { rank, host: rank / 2, distance: 1, relayed: rank % 2 == 0, msgs: 1 << 40, bytes: u64::MAX };
        Figures {
            rank: 3,
            vci: 1,
            host: 2,
            hosts: 4,
            size: 8,
            lane_bytes: 4096,
            counters: (100..100 + COUNTERS.len() as u64).collect(),
            sizes: Sizes::default(),
            times: Times::default(),
            state: Some(State::default()),
            links: vec![link(Side::Left, 1), link(Side::Right, 3)],
            peers: vec![peer(0), peer(7)],
        }
    }

    #[test]
    fn figures_survive_their_words() {
        for figures in [figures(), Figures { links: vec![], peers: vec![], state: None, ..figures() }] {
            assert_eq!(Figures::parse(&figures.words()), Some(figures.clone()));
            let words = figures.words();
            let whole = words.len() - PEER * figures.peers.len();
            assert!((0..whole).all(|cut| Figures::parse(&words[..cut]).is_none()));
        }
    }

    #[test]
    fn what_the_forwarder_counts_is_added() {
        let (relay, before) = (RelayCounters::default(), figures());
        relay.chunks[0].store(5, Ordering::Relaxed);
        relay.chunks[1].store(7, Ordering::Relaxed);
        relay.damaged[1].store(9, Ordering::Relaxed);
        let after = before.clone().and(&relay);
        let more = |name: &str| after.count(name).unwrap() - before.count(name).unwrap();
        assert_eq!((more("forwarded_chunks"), more("damaged"), more("msgs_direct")), (12, 9, 0));
        let at = |name: &str| LINK_COUNTERS.iter().position(|counter| counter.name == name).unwrap();
        let link = |side: usize, name: &str| after.links[side].counters[at(name)] - at(name) as u64;
        assert_eq!([link(0, "forwarded_chunks"), link(1, "forwarded_chunks")], [5, 7]);
        assert_eq!([link(0, "damaged"), link(1, "damaged")], [0, 9]);
    }

    #[test]
    fn names_are_used_once() {
        let names: Vec<&str> = COUNTERS.iter().map(|counter| counter.name).collect();
        assert!((1..names.len()).all(|i| !names[..i].contains(&names[i])));
        let facts = [
            "rank",
            "vci",
            "host",
            "hosts",
            "size",
            "lane_bytes",
            "sizes",
            "times",
            "state",
            "links",
            "peers",
            "age_ms",
        ];
        assert!(names.iter().all(|name| !facts.contains(name)));
    }
}
