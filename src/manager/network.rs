//! Managers of a described network that communicate through memory, in virtual time. `ntbring topo` and the tests use
//! it. Runs are deterministic: the same description and the same calls give the same run.

use super::shape::Shape;
use super::{Action, Event, Hwid, Manager, ManagerError, Rules};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Time from sending a packet until it arrives at the other end of a cable.
pub const LATENCY: Duration = Duration::from_micros(1);

/// The next event.
#[derive(Clone, Debug)]
struct Arrival {
    cable: usize,
    /// End of the cable at which the packet arrives.
    end: usize,
    bytes: Arc<[u8]>,
}

/// A simulated network.
#[derive(Clone, Debug)]
pub struct Network {
    shape: Shape,
    rules: Rules,
    managers: Vec<Option<Manager>>,
    timers: Vec<Option<Duration>>,
    /// Index of the cable and its end, by host and port.
    plugs: BTreeMap<(usize, u8), (usize, usize)>,
    queue: BTreeMap<(Duration, u64), Arrival>,
    now: Duration,
    sequence: u64,
    packets: u64,
    bytes: u64,
    changed: Duration,
    /// One of this many packets is lost; 0: none.
    lossy: u64,
}

/// Error: a network whose managers have not converged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The managers have not agreed in time.
    #[error("the managers have not agreed within {0:?}: {1}")]
    Time(Duration, String),
    /// A manager cannot interpret a packet of another one.
    #[error("host {0}: {1}")]
    Manager(Hwid, ManagerError),
}

impl Network {
    /// Returns the hosts of a shape, switched on, with all links down.
    pub fn new(mut shape: Shape, rules: Rules) -> Network {
        let plug = |(i, cable): (usize, &super::shape::Cable)| [0, 1].map(|end| (cable.ends[end], (i, end)));
        let plugs = shape.cables.iter().enumerate().flat_map(plug).collect();
        let managers: Vec<_> = shape.hosts.iter().map(|hwid| Some(Manager::new(*hwid, rules))).collect();
        shape.cables.iter_mut().for_each(|cable| cable.up = false);
        Network {
            timers: vec![None; managers.len()],
            managers,
            shape,
            rules,
            plugs,
            queue: BTreeMap::new(),
            now: Duration::ZERO,
            sequence: 0,
            packets: 0,
            bytes: 0,
            changed: Duration::ZERO,
            lossy: 0,
        }
    }

    /// Returns the same hosts in the present state of their managers, with nothing in flight.
    #[cfg(test)]
    pub(super) fn resumed(shape: Shape, rules: Rules, managers: Vec<Option<Manager>>) -> Network {
        let links = shape.cables.iter().map(|cable| cable.up).collect::<Vec<_>>();
        let mut network = Network::new(shape, rules);
        network.shape.cables.iter_mut().zip(links).for_each(|(cable, up)| cable.up = up);
        network.timers = managers.iter().map(|manager| manager.as_ref()?.due()).collect();
        network.managers = managers;
        network
    }

    /// Returns the hosts of a shape, with the links that are up in the shape coming up at time 0.
    pub fn started(shape: Shape, rules: Rules) -> Result<Network, NetworkError> {
        let up: Vec<usize> = (0..shape.cables.len()).filter(|cable| shape.cables[*cable].up).collect();
        let mut network = Network::new(shape, rules);
        up.into_iter().try_for_each(|cable| network.set_link(cable, true))?;
        Ok(network)
    }

    /// Hosts and cables in their present state.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the manager of a host if it is switched on.
    pub fn manager(&self, host: usize) -> Option<&Manager> {
        self.managers.get(host)?.as_ref()
    }

    /// Virtual time since the start.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Time of the latest change of a host's table or master.
    pub fn last_change(&self) -> Duration {
        self.changed
    }

    /// Number of packets sent, counted once per hop, and their bytes.
    pub fn traffic(&self) -> (u64, u64) {
        (self.packets, self.bytes)
    }

    /// Sets a link up or down, at both ends at once. Packets on the cable are lost. A link can be up only if both
    /// hosts are on.
    pub fn set_link(&mut self, cable: usize, up: bool) -> Result<(), NetworkError> {
        let ends = self.shape.cables[cable].ends;
        let on = ends.iter().all(|end| self.managers[end.0].is_some());
        let (up, weight) = (up && on, self.shape.cables[cable].weight);
        self.shape.cables[cable].up = up;
        self.queue.retain(|_, arrival| arrival.cable != cable);
        for (host, port) in ends {
            let event = if up { Event::PortUp { port, weight } } else { Event::PortDown { port } };
            self.step(host, event)?;
        }
        Ok(())
    }

    /// Sets the weight of a link.
    pub fn set_weight(&mut self, cable: usize, weight: u32) -> Result<(), NetworkError> {
        self.shape.cables[cable].weight = weight;
        let ends = self.shape.cables[cable].ends;
        match self.shape.cables[cable].up {
            true => ends.into_iter().try_for_each(|(host, port)| self.step(host, Event::PortUp { port, weight })),
            false => Ok(()),
        }
    }

    /// Switches a host off or on. A host that is switched on has no state. Its links go down, and those to hosts that
    /// are on come up again.
    pub fn set_host(&mut self, host: usize, on: bool) -> Result<(), NetworkError> {
        if self.managers[host].is_some() == on {
            return Ok(());
        }
        self.timers[host] = None;
        self.managers[host] = on.then(|| Manager::new(self.shape.hosts[host], self.rules));
        for cable in 0..self.shape.cables.len() {
            if self.shape.cables[cable].ends.iter().any(|end| end.0 == host) {
                self.set_link(cable, on)?;
            }
        }
        Ok(())
    }

    /// Marks a host as used by a job or not.
    pub fn set_busy(&mut self, host: usize, busy: bool) -> Result<(), NetworkError> {
        self.step(host, Event::Busy(busy))
    }

    /// Makes one of `every` packets get lost at a hop, which real links do not do; 0: none.
    pub fn set_loss(&mut self, every: u64) {
        self.lossy = every;
    }

    fn step(&mut self, host: usize, event: Event<'_>) -> Result<(), NetworkError> {
        let Some(manager) = &mut self.managers[host] else { return Ok(()) };
        let actions = manager.step(self.now, event).map_err(|error| NetworkError::Manager(manager.hwid(), error))?;
        for action in actions {
            match action {
                Action::Send { port, bytes } => self.send(host, port, bytes),
                Action::Timer(due) => self.timers[host] = due,
                Action::Table { .. } | Action::Master(_) => self.changed = self.now,
            }
        }
        Ok(())
    }

    fn send(&mut self, host: usize, port: u8, bytes: Vec<u8>) {
        (self.packets, self.bytes) = (self.packets + 1, self.bytes + bytes.len() as u64);
        let Some(&(cable, end)) = self.plugs.get(&(host, port)) else { return };
        let lost = self.lossy > 0 && self.packets.is_multiple_of(self.lossy);
        if self.shape.cables[cable].up && !lost {
            self.sequence += 1;
            let arrival = Arrival { cable, end: 1 - end, bytes: bytes.into() };
            self.queue.insert((self.now + LATENCY, self.sequence), arrival);
        }
    }

    /// Delivers the next packet or fires the next timer, if it is due before `until`.
    fn advance(&mut self, until: Duration) -> Result<bool, NetworkError> {
        let timer = (0..self.timers.len()).filter_map(|host| Some((self.timers[host]?, host))).min();
        let packet = self.queue.first_key_value().map(|((at, _), _)| *at);
        match (packet, timer) {
            (Some(at), _) if at <= until && timer.is_none_or(|(due, _)| at <= due) => {
                let Some((_, arrival)) = self.queue.pop_first() else { return Ok(false) };
                self.now = at;
                let (host, port) = self.shape.cables[arrival.cable].ends[arrival.end];
                self.step(host, Event::Packet { port, bytes: &arrival.bytes })?;
            }
            (_, Some((due, host))) if due <= until => {
                self.now = self.now.max(due);
                self.step(host, Event::Tick)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Advances the time by `time`.
    pub fn run(&mut self, time: Duration) -> Result<(), NetworkError> {
        let until = self.now + time;
        while self.advance(until)? {}
        self.now = until;
        Ok(())
    }

    /// Advances the time until nothing is in flight and the managers agree, but by at most `most`.
    pub fn settle(&mut self, most: Duration) -> Result<(), NetworkError> {
        let until = self.now + most;
        loop {
            let disagree = match self.queue.is_empty() {
                true => self.agree().err(),
                false => Some("packets are in flight".into()),
            };
            let Some(why) = disagree else { return Ok(()) };
            if !self.advance(until)? {
                return Err(NetworkError::Time(most, why));
            }
        }
    }

    /// Checks that the hosts that can reach each other have the same master, the one with the smallest hardware id,
    /// and its newest tables, which must contain exactly these hosts and correct routes. Returns a description of the
    /// first violation.
    pub fn agree(&self) -> Result<(), String> {
        for host in (0..self.managers.len()).filter(|host| self.managers[*host].is_some()) {
            self.agree_at(host)?;
        }
        Ok(())
    }

    fn agree_at(&self, host: usize) -> Result<(), String> {
        let Some(manager) = self.manager(host) else { return Ok(()) };
        let mut reached: Vec<Hwid> = self.shape.graph(host).search().into_iter().map(|(hwid, _)| hwid).collect();
        reached.sort();
        let (hwid, table) = (manager.hwid(), manager.table());
        let leader = self.shape.hosts.iter().position(|hwid| reached.first() == Some(hwid));
        let stamp = leader.and_then(|leader| self.manager(leader)).map(|leader| leader.table().stamp());
        let mut known: Vec<Hwid> = table.hosts().iter().map(|entry| entry.hwid).collect();
        known.sort();
        if reached.first() != Some(&manager.master()) {
            return Err(format!("host {hwid} considers {} the master", manager.master()));
        }
        if known != reached || Some(table.stamp()) != stamp || table.stamp().master != manager.master() {
            return Err(format!("host {hwid} has an old table"));
        }
        for entry in table.hosts() {
            if self.follow(host, entry.path.iter()) != Some(entry.hwid) {
                return Err(format!("host {hwid} has a wrong route to {}", entry.hwid));
            }
        }
        Ok(())
    }

    /// Returns the host at the end of a path over links that are up.
    pub fn follow(&self, from: usize, mut ports: impl Iterator<Item = u8>) -> Option<Hwid> {
        let end = ports.try_fold(from, |at, port| {
            let &(cable, end) = self.plugs.get(&(at, port))?;
            let cable = Some(&self.shape.cables[cable]).filter(|cable| cable.up)?;
            Some(cable.ends[1 - end].0)
        })?;
        Some(self.shape.hosts[end])
    }
}
