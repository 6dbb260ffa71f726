//! Handshakes with the neighbours, and the publication of their result to the host's other ranks. This module contains
//! every wait of joining.

use super::cards::Cards;
use super::error::JoinError;
use super::greeting::{Greeting, HandshakeError};
use super::handshake::{Handshake, Outcome, REGISTERS};
use crate::policy::LinkPolicy;
use crate::protocol::PROTOCOL_VERSION;
use crate::settings::JoinSettings;
use crate::topology::Topology;
use ntbring_host::Watch;
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::{LinkState, Port, Side};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Returns the error for a rank whose process has ended.
pub(super) fn died(topology: &Topology, pids: &[u32], rank: u32) -> JoinError {
    JoinError::Died { rank, host: topology.host_of(rank), pid: pids[rank as usize] }
}

/// Control block at the start of a host's local part, in which its first rank publishes the result of the handshakes
/// for the host's other ranks.
pub(super) struct Control {
    pub block: InWindow,
    pub out: OutWindow,
}

impl Control {
    const STATE: usize = 0; // 0 unknown, 1 joined, 2 failed
    const OFFSETS: [usize; 2] = [8, 16];
    const TEXT_LEN: usize = 24;
    const TEXT: usize = 32;
    const TEXT_MAX: usize = 1024;

    pub fn publish(&self, result: &Result<Vec<u64>, JoinError>) {
        match result {
            Ok(offsets) => {
                for (place, &offset) in Self::OFFSETS.into_iter().zip(offsets) {
                    self.out.store(place, offset);
                }
                self.out.store(Self::STATE, 1);
            }
            Err(error) => {
                let text = error.to_string();
                let len = text.len().min(Self::TEXT_MAX);
                self.out.write_bytes(Self::TEXT, &text.as_bytes()[..len]);
                self.out.store(Self::TEXT_LEN, len as u64);
                self.out.store(Self::STATE, 2);
            }
        }
    }

    fn state(&self) -> Option<Result<Vec<u64>, JoinError>> {
        match self.block.load(Self::STATE) {
            1 => Some(Ok(Self::OFFSETS.map(|place| self.block.load(place)).to_vec())),
            2 => {
                let mut text = vec![0; (self.block.load(Self::TEXT_LEN) as usize).min(Self::TEXT_MAX)];
                self.block.read(Self::TEXT, &mut text);
                Some(Err(JoinError::Leader(String::from_utf8_lossy(&text).into_owned())))
            }
            _ => None,
        }
    }
}

/// The waits for other ranks and hosts while joining, with the parameters that they need.
pub(super) struct JoinHandshakes<'a> {
    pub topology: &'a Topology,
    pub host: usize,
    pub window: u64,
    pub settings: &'a JoinSettings,
    pub policy: LinkPolicy,
    /// Number of doorbells of the adapters that are used.
    pub doorbells: usize,
    pub watch: &'a Watch,
    pub pids: &'a [u32],
    pub cards: Cards<'a>,
}

impl JoinHandshakes<'_> {
    /// Calls `look` until it returns a value, a rank dies, or the timeout is over.
    fn wait<T>(
        &self,
        whom: impl Fn() -> String,
        mut look: impl FnMut() -> Result<Option<T>, JoinError>,
    ) -> Result<T, JoinError> {
        let start = Instant::now();
        for round in 0u32.. {
            if let Some(found) = look()? {
                return Ok(found);
            }
            if round < 50 {
                std::thread::yield_now();
                continue;
            }
            std::thread::sleep(Duration::from_micros(200));
            if round % 64 == 0 {
                if let Some(&rank) = self.watch.dead().first() {
                    return Err(died(self.topology, self.pids, rank));
                }
                if start.elapsed() > self.settings.ring.connect_timeout {
                    break;
                }
            }
        }
        let seconds = self.settings.ring.connect_timeout.as_secs();
        Err(JoinError::Timeout { host: self.host, whom: whom(), seconds })
    }

    /// Runs the handshakes on both ports, left first. Returns the offsets of the windows that the neighbours provide
    /// for this host, bytes.
    pub fn neighbours(&self, ports: &[Arc<dyn Port>]) -> Result<Vec<u64>, JoinError> {
        let shake = |(side, port): (Side, &Arc<dyn Port>)| self.handshake(side, port.as_ref());
        let mut shakes = Side::BOTH.into_iter().zip(ports).map(shake).collect::<Result<Vec<_>, _>>()?;
        let mut greetings: Vec<Option<Greeting>> = vec![None; ports.len()];
        let missing = std::cell::Cell::new(0);
        // Refusals propagate round the ring; the reason may be found on the other link.
        let mut refused = vec![None; ports.len()];
        let result = self.wait(
            || {
                Side::BOTH.get(missing.get()).map_or(String::new(), |&side| {
                    format!("host {} on the {side} link", self.topology.neighbour(self.host, side))
                })
            },
            || {
                for (i, port) in ports.iter().enumerate() {
                    if greetings[i].is_some() || refused[i].is_some() || port.link() != LinkState::Up {
                        continue;
                    }
                    match advance(&mut shakes[i], port.as_ref()) {
                        Err(JoinError::Handshake(refusal @ HandshakeError::Refused { .. })) => {
                            refused[i] = Some(refusal)
                        }
                        other => greetings[i] = other?,
                    }
                }
                let open = |i: &usize| greetings[*i].is_none() && refused[*i].is_none();
                let first_open = (0..ports.len()).find(open);
                missing.set(first_open.unwrap_or(0));
                Ok(first_open.is_none().then_some(()))
            },
        );
        let result = match (result, refused.into_iter().flatten().next()) {
            (Ok(()) | Err(JoinError::Timeout { .. }), Some(refusal)) => Err(refusal.into()),
            (result, _) => result,
        };
        if let Err(error) = result {
            refuse(shakes.iter_mut().zip(ports).collect());
            return Err(error);
        }
        let greetings: Vec<Greeting> = greetings.into_iter().flatten().collect();
        for ((side, port), g) in Side::BOTH.into_iter().zip(ports).zip(&greetings) {
            log::debug!(
                "host {}: {side} neighbour, at port {}, is host {} with {} ranks, window of {} bytes at {}",
                self.host,
                port.index(),
                g.host,
                g.ranks,
                g.window,
                g.offset
            );
        }
        Ok(greetings.iter().map(|g| g.offset).collect())
    }

    fn handshake(&self, side: Side, port: &dyn Port) -> Result<Handshake, JoinError> {
        let neighbour = self.topology.neighbour(self.host, side);
        let opposite = self.cards.host(neighbour)?.ports.on(side.opposite());
        let mine = Greeting {
            version: PROTOCOL_VERSION,
            host: self.host as u16,
            hosts: self.topology.hosts() as u16,
            ranks: self.topology.ranks_of(self.host).len() as u16,
            window: self.window,
            offset: port.incoming_offset(),
            chunk: self.settings.ring.chunk.unwrap_or(0) as u32,
            link_model: self.settings.links.model.map_or(0, |model| model.digest()),
            reliability: self.settings.ring.reliability.code(),
            shortcuts: self.policy.granted(),
            doorbells: self.doorbells as u16,
            keepalive_timeout: self.settings.ring.keepalive_timeout.as_secs() as u32,
            port: port.index().get(),
            opposite: opposite.get(),
        };
        Ok(Handshake::new(mine, neighbour as u16))
    }

    pub fn leader(&self, control: &Control, leader: u32) -> Result<Vec<u64>, JoinError> {
        self.wait(|| format!("rank {leader}, the first rank of this host"), || control.state().transpose())
    }
}

/// Longest time for which a host that gives up serves its greeting to its neighbours.
const SERVE: Duration = Duration::from_secs(1);

/// Refuses the handshakes: informs the neighbours that this host does not join, so that they do not wait, and sends
/// them its greeting, so that they can report the reason.
fn refuse(mut shakes: Vec<(&mut Handshake, &Arc<dyn Port>)>) {
    let write = |port: &dyn Port, written: Vec<(usize, u32)>| {
        written.into_iter().for_each(|(register, value)| port.peer_scratchpad(register, value));
    };
    shakes.iter_mut().for_each(|(shake, port)| write(port.as_ref(), shake.refuse()));
    let start = Instant::now();
    while start.elapsed() < SERVE && !shakes.iter().all(|(shake, _)| shake.is_over()) {
        std::thread::sleep(Duration::from_micros(200));
        for (shake, port) in shakes.iter_mut().filter(|(shake, _)| !shake.is_over()) {
            let own = registers(port.as_ref());
            write(port.as_ref(), shake.serve(&own));
        }
    }
    shakes.iter_mut().for_each(|(shake, port)| write(port.as_ref(), shake.end()));
}

/// Reads the own registers in the opposite order to that in which they are written: once the control word is read, the
/// registers that it validates are complete.
fn registers(port: &dyn Port) -> [u32; REGISTERS] {
    let mut own = [0; REGISTERS];
    (0..REGISTERS).rev().for_each(|register| own[register] = port.scratchpad(register));
    own
}

fn advance(shake: &mut Handshake, port: &dyn Port) -> Result<Option<Greeting>, JoinError> {
    let own = registers(port);
    let step = shake.step(&own);
    for (register, value) in step.write {
        port.peer_scratchpad(register, value);
    }
    match step.outcome {
        Outcome::Waiting => Ok(None),
        Outcome::Done(greeting) => Ok(Some(greeting)),
        Outcome::Failed(error) => Err(error.into()),
    }
}
