//! The monitor of a host: a process beside the ranks that reports to the other hosts that this one lives, and which of
//! its ranks have ended. It outlives the ranks, so the obituary of a host's only rank is sent even if that rank was
//! killed.

use super::table::Table;
use super::view::LivenessView;
use crate::layout::WindowLayout;
use crate::topology::Topology;
use ntbring_host::Watch;
use ntbring_memory::{InWindow, OutWindow};
use ntbring_ntb::demux::Demux;
use ntbring_ntb::fabric::OpenPort;
use ntbring_ntb::notice::{self, Echo, Notices, Tables};
use ntbring_ntb::{LinkState, NtbError, Port, Side};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval between two keep-alives; also the delay of news at each host that they pass.
pub const PERIOD: Duration = Duration::from_millis(50);

/// Upper bound of the time that one step adds to the silence of a host, however long ago the previous step was: a
/// monitor that was stopped itself has received nothing meanwhile.
const STEP_MAX: Duration = PERIOD.saturating_mul(4);

/// The tables at one link, reached past the decorators of ports: neither faults nor link models concern them.
#[derive(Clone)]
pub(crate) struct Channel {
    side: Side,
    /// The table of liveness that the neighbour writes.
    incoming: InWindow,
    /// The neighbour's table that this host writes.
    outgoing: OutWindow,
    notices: Tables,
    port: Arc<dyn Port>,
}

impl Channel {
    /// Returns the tables at the link on `side`, whose port is without decorators, since a monitor's process does not
    /// have the threads of decorators. The neighbour's window of `window` bytes is at `offset`; the layouts are those
    /// of the own window and of the neighbour's.
    pub fn new(
        topology: &Topology,
        side: Side,
        port: OpenPort,
        offset: u64,
        window: u64,
        [own, peer]: [WindowLayout; 2],
    ) -> Result<Channel, NtbError> {
        let port: Arc<dyn Port> = match port {
            OpenPort::Software(port) => Arc::new(port),
            OpenPort::Adapter(port) => port,
        };
        let doorbells = port.caps().usable_doorbells();
        let port = Demux::port(port, doorbells);
        let bytes = LivenessView::bytes(topology);
        let (incoming, outgoing) = (port.incoming(), port.outgoing(offset, window)?);
        let notices = Tables::new(
            incoming.part(own.notices_offset(), notice::TABLE),
            outgoing.part(peer.notices_offset(), notice::TABLE),
        );
        let incoming = incoming.part(own.liveness_offset(), bytes);
        let outgoing = outgoing.part(peer.liveness_offset(), bytes);
        Ok(Channel { side, incoming, outgoing, notices, port })
    }

    /// Returns the tables of requests for notifications.
    pub fn notices(&self) -> Tables {
        self.notices.clone()
    }
}

/// The monitor of a host.
pub struct Monitor {
    topology: Arc<Topology>,
    host: usize,
    /// Ranks of this host that live, with their process ids.
    living: Vec<(u32, u32)>,
    channels: Vec<Channel>,
    /// State of the requests for notifications of this host and of its neighbours, and the confirmation of the
    /// neighbours' requests.
    notices: Arc<Notices>,
    echoes: [Echo; 2],
    echoed: Option<Instant>,
    table: Table,
    /// Silence of a host after which its ranks count as lost.
    limit: Duration,
    view: LivenessView,
    silences: Vec<Duration>,
    stepped: Option<Instant>,
    /// The file that is removed when the monitor ends.
    leftover: Option<PathBuf>,
}

impl Monitor {
    pub(crate) fn new(
        topology: &Arc<Topology>,
        host: usize,
        pids: &[u32],
        (channels, notices): (Vec<Channel>, Arc<Notices>),
        table: Table,
        limit: Duration,
        leftover: Option<PathBuf>,
    ) -> Monitor {
        // All that a monitor writes, it writes again; and what it tells one neighbour must not wait for the other.
        channels.iter().for_each(|channel| channel.port.lose_rather_than_wait());
        let living = topology.ranks_of(host).iter().map(|&rank| (rank, pids[rank as usize])).collect();
        let view = LivenessView::new(topology);
        let silences = vec![Duration::ZERO; topology.hosts()];
        Monitor {
            topology: topology.clone(),
            host,
            living,
            channels,
            notices,
            echoes: Default::default(),
            echoed: None,
            table,
            limit,
            view,
            silences,
            stepped: None,
            leftover,
        }
    }

    /// Returns the descriptors that the process of [`Monitor::run`] needs.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.channels.iter().flat_map(|channel| channel.port.descriptors()).collect()
    }

    /// Runs until all ranks of the host have ended, or have left the job. To be called in a process of its own, without
    /// any thread of the ranks.
    pub fn run(mut self) {
        let mut watch = loop {
            match Watch::new(self.living.iter().copied()) {
                Ok(watch) => break watch,
                Err((rank, _)) => self.fail_orphaned(rank),
            }
        };
        while !self.living.is_empty() && !self.table.is_left() {
            self.step(Instant::now());
            for rank in watch.wait(PERIOD) {
                watch.forget(rank);
                self.fail_orphaned(rank);
            }
        }
        self.living.clone().into_iter().for_each(|(rank, _)| self.fail_orphaned(rank));
        self.step(Instant::now());
        if let Some(file) = self.leftover {
            let _ = std::fs::remove_file(file);
        }
    }

    /// Returns true if all ranks of a host have ended.
    fn has_ended(&self, host: usize) -> bool {
        self.topology.ranks_of(host).iter().all(|&rank| self.view.has_ended(rank))
    }

    /// Records that a rank of this host has ended.
    pub fn fail_orphaned(&mut self, rank: u32) {
        self.view.end(rank);
        self.living.retain(|(living, _)| *living != rank);
    }

    /// Sends a keep-alive and all news, takes the neighbours' news, and counts the time that hosts have been silent.
    /// To be called every [`PERIOD`], and when a rank of this host has ended.
    pub fn step(&mut self, now: Instant) {
        let passed =
            self.stepped.map_or(Duration::ZERO, |stepped| now.saturating_duration_since(stepped).min(STEP_MAX));
        self.stepped = Some(now);
        let before: Vec<u32> = (0..self.topology.hosts()).map(|host| self.view.beats(host)).collect();
        self.channels.iter().for_each(|channel| {
            self.view.read(&channel.incoming);
        });
        self.view.beat(self.host);
        // Requests are not confirmed at a step that news has caused: confirmations must be late enough.
        let echoes = self.echoed.is_none_or(|echoed| now.saturating_duration_since(echoed) >= PERIOD);
        self.echoed = if echoes { Some(now) } else { self.echoed };
        for channel in &self.channels {
            let (port, side) = (channel.port.as_ref(), channel.side);
            let is_up = port.link() == LinkState::Up;
            self.notices.set_absent(side, !is_up || self.has_ended(self.topology.neighbour(self.host, side)));
            if is_up {
                self.view.write(&channel.outgoing);
            }
            if is_up && echoes {
                self.echoes[side as usize].step(&self.notices, side, |doorbell| port.ring(doorbell));
            }
        }
        for (host, before) in before.into_iter().enumerate() {
            let ended = self.has_ended(host);
            let silence = &mut self.silences[host];
            *silence = match host == self.host || ended || self.view.beats(host) != before {
                // The loss of a host is final, since messages to and from it may have been dropped.
                _ if *silence >= self.limit => *silence,
                true => Duration::ZERO,
                false => *silence + passed,
            };
        }
        self.table.publish(&self.view, &self.silences);
    }
}
