//! Links over the ports of a host, created after the handshakes have returned the offsets of the neighbours' windows.

use super::cards::Cards;
use super::error::JoinError;
use super::ports::open;
use crate::layout::WindowLayout;
use crate::link::Link;
use crate::liveness::Channel;
use crate::policy::LinkPolicy;
use crate::topology::Topology;
use ntbring_memory::InWindow;
use ntbring_ntb::fabric::Fabric;
use ntbring_ntb::notice::Notices;
use ntbring_ntb::split::split;
use ntbring_ntb::{LinkState, Port, Side};
use std::sync::Arc;

/// Parameters on which the links of a host depend.
pub(super) struct Connect<'a> {
    pub topology: &'a Topology,
    pub host: usize,
    /// Size of each window, bytes.
    pub window: u64,
    pub policy: LinkPolicy,
    pub fabric: &'a dyn Fabric,
    pub cards: Cards<'a>,
}

impl Connect<'_> {
    fn layout(&self, host: usize, side: Side) -> Result<WindowLayout, JoinError> {
        Ok(WindowLayout::new(self.topology, host, side, self.window, self.policy.reroutes())?)
    }

    /// Creates the links over the ports, whose neighbours provide their windows at these offsets.
    pub fn links(&self, ports: Vec<Arc<dyn Port>>, offsets: &[u64]) -> Result<Vec<Link>, JoinError> {
        let ports = Side::BOTH.into_iter().zip(ports).zip(offsets);
        ports.map(|((side, port), &offset)| self.link(side, port, offset)).collect()
    }

    /// Creates channels beside the links, over ports that nothing else uses.
    pub fn channels(&self, offsets: &[u64]) -> Result<Vec<Channel>, JoinError> {
        Side::BOTH.into_iter().zip(offsets).map(|(side, &offset)| self.channel(side, offset)).collect()
    }

    fn link(&self, side: Side, port: Arc<dyn Port>, offset: u64) -> Result<Link, JoinError> {
        let neighbour = self.topology.neighbour(self.host, side);
        let caps = port.caps();
        if !offset.is_multiple_of(caps.window_align) || caps.window_for(self.window) != Some(self.window) {
            let what = format!(
                "they cannot map the {} bytes at {offset} of the neighbour host {neighbour}: windows begin at \
                 multiples of {}, are multiples of {} and have at most {} bytes (NTBRING_WINDOW)",
                self.window, caps.window_align, caps.window_size_align, caps.window_max
            );
            return Err(JoinError::Unfit { host: self.host, what });
        }
        let outgoing = port.outgoing(offset, self.window)?;
        let outgoing = match caps.max_transfer {
            Some(max) => split(outgoing, max),
            None => outgoing,
        };
        let engine = caps.async_copies.and_then(|copies| Some((port.copy_engine(&outgoing)?, copies.min)));
        Ok(Link {
            side,
            neighbour,
            incoming: port.incoming(),
            engine,
            outgoing,
            layout: self.layout(self.host, side)?,
            peer_layout: self.layout(neighbour, side.opposite())?,
            view: self.view(neighbour, side)?,
            threads: self.cards.threads(neighbour),
            reliability: self.policy.reliability(),
            outages_before: port.outages().saturating_sub((port.link() == LinkState::Down).into()),
            port,
        })
    }

    /// Returns the window into which the neighbour's other neighbour writes, with its layout, if this host may read it
    /// and that is of use: with several ranks on a host, boards may be in different rounds, and the neighbour must pass
    /// blocks on to this side.
    fn view(&self, neighbour: usize, side: Side) -> Result<Option<(WindowLayout, InWindow)>, JoinError> {
        let one_rank_each = self.topology.hosts() == self.topology.size();
        if !self.policy.shortcuts().windows || !one_rank_each || self.topology.span(side == Side::Left) <= 1 {
            return Ok(None);
        }
        let window = self.fabric.view(&self.cards.host(neighbour)?.port(side))?;
        let layout = self.layout(neighbour, side)?;
        Ok(window.map(|window| (layout, window)))
    }

    /// Returns the tables of liveness and of notices beside a link, reached past the port's decorators.
    fn channel(&self, side: Side, offset: u64) -> Result<Channel, JoinError> {
        let neighbour = self.topology.neighbour(self.host, side);
        let bare = open(self.fabric, self.topology, self.host, side, self.cards)?;
        let plans = [self.layout(self.host, side)?, self.layout(neighbour, side.opposite())?];
        Ok(Channel::new(self.topology, side, bare, offset, self.window, plans)?)
    }
}

/// Makes links ring doorbells on request only (by notices), since no process may read the registers of another host to
/// find out if a thread sleeps there.
pub(super) fn ask_for_rings(links: &mut [Link], notices: &Arc<Notices>) {
    links.iter_mut().for_each(|link| link.port = notices.port(link.port.clone(), link.side));
}
