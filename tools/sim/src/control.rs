//! Links that go down, and the manager drivers, which re-route around them: the code that runs in the forwarders of a
//! job.

use super::agenda::ns;
use super::machine::{Event, Load, Own, Packet, Simulation};
use super::net::PORTS;
use super::plan::SimError;
use ntbring_ntb::{LinkState, Side};

impl Simulation<'_> {
    /// Sets a link down or up. Packets in its lanes stay there and arrive late.
    pub fn cable(&mut self, cable: usize, up: bool) {
        let link = cable * PORTS + Side::Right as usize;
        let (peer, port) = self.end_of(link);
        for link in [link, peer * PORTS + port] {
            self.links[link].up = up;
            if up {
                let latency = ns(self.plan.links[self.links[link].kind].latency_ns);
                for event in std::mem::take(&mut self.links[link].held) {
                    self.agenda.after(latency, event);
                }
            }
        }
    }

    /// Lets a manager driver check its links, and schedules its next check.
    pub fn attend(&mut self, host: usize) -> Result<(), SimError> {
        let now = self.instant();
        let Some(control) = &mut self.control else { return Ok(()) };
        let watch = &mut control.watches[host];
        let links = &self.links;
        let state = |side: Side| match links[host * PORTS + side as usize].up {
            true => LinkState::Up,
            false => LinkState::Down,
        };
        watch.manager_driver.attend(now, state);
        let rest = watch.manager_driver.rest();
        self.follow(host);
        self.agenda.after(ns(rest.as_nanos() as u64), Event::Attend(host));
        Ok(())
    }

    /// Passes a packet of a neighbour's manager driver to a host's manager driver.
    pub fn control_came(&mut self, host: usize, port: usize, bytes: &[u8]) -> Result<(), SimError> {
        let Some(control) = &mut self.control else { return Ok(()) };
        let taken = control.watches[host].manager_driver.take(Side::BOTH[port], bytes);
        taken.map_err(|error| SimError::Protocol { host, what: error.to_string() })?;
        self.follow(host);
        Ok(())
    }

    /// Applies the decisions of a manager driver.
    fn follow(&mut self, host: usize) {
        let mut packets = Vec::new();
        let mut closed = Vec::new();
        let Some(control) = &mut self.control else { return };
        let watch = &mut control.watches[host];
        for side in Side::BOTH {
            while let Some(packet) = watch.manager_driver.next(side) {
                packets.push((side, packet.to_vec()));
                watch.manager_driver.sent(side);
            }
            let open = watch.manager_driver.is_up(side);
            let before = std::mem::replace(&mut watch.open[side as usize], open);
            closed.extend((before && !open).then_some(side));
        }
        let seen = watch.ways.read();
        let news = std::mem::replace(&mut watch.seen, seen) != seen;
        for (side, bytes) in packets {
            let track = self.way_of_control(host, side);
            let dst = self.end_of(host * PORTS + side as usize).0;
            let (len, since) = (bytes.len() as u64, self.agenda.now());
            let load = Load::Control(bytes);
            let packet = Packet {
                src: host,
                dst,
                side,
                hops: 0,
                bytes: len,
                urgent: true,
                acknowledges: false,
                lost: false,
                since,
                load,
            };
            self.put_source(host, track, Own::Packet(packet));
        }
        // Packets that wait for room behind a link that is down are dropped.
        for side in closed {
            let link = host * PORTS + side as usize;
            for track in 0..self.tracks.len() {
                if self.link_of(track) == link && self.tracks[track].is_some() {
                    self.unblock(track);
                }
            }
        }
        if news {
            self.turn(host);
        }
    }
}
