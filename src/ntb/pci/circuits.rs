//! The circuits of a host: those that begin here, those that pass, and those that end here.
//!
//! A host wants a circuit when a job's neighbour in its ring is not at the other end of the port's cable. It announces
//! the way ([`Map`]); the hosts on the way then prepare for it, the last one first: it publishes the slice of the job at
//! the adapter where the circuit arrives. Each host in between gives the host before it a slice with a lane of records,
//! once it can write the next host's slice itself. If a link on the way fails, the circuit ends, and another one takes its
//! place when there is a way again; what was on the way is lost, as on a link.

use crate::adapter::Adapter;
use crate::allotment::PAGE;
use crate::network::{Announcement, Cable, Circuit, Map};
use crate::relay::{Inlet, Outlet, RelayThread, Target, DRAIN, LANE};
use crate::slice::SliceBells;
use ntbring_memory::InWindow;
use ntbring_ntb::LinkState;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The user of slices that only agents use.
const AGENT: u32 = 0;

/// Lets circuits end at slices.
pub trait Exposes: Send + Sync {
    /// Makes the slice with this key, of a job of this user, writable through the cable of `arrival`, too. Returns a
    /// target if the neighbour cannot write its memory, so that this host has to. A job that has ended is no error: the
    /// circuit to it ends soon. Fails with the reason if it cannot.
    fn expose(&self, key: u64, user: u32, arrival: &Arc<Adapter>) -> Result<Option<Target>, String>;
}

/// A circuit that a job of this host needs.
pub struct Wanted {
    /// Identity of the destination.
    pub to: u64,
    /// Key of the slice there.
    pub key: u64,
    /// The port of this host by which the circuit should leave, and the one at which it should arrive.
    pub ports: [u8; 2],
    /// The user whose job needs it.
    pub user: u32,
    /// The port whose link the circuit is.
    pub bells: Arc<SliceBells>,
}

/// All circuits of a host.
pub struct Circuits {
    adapters: Vec<Arc<Adapter>>,
    jobs: Arc<dyn Exposes>,
    relay: RelayThread,
    state: Mutex<State>,
}

struct State {
    map: Map,
    /// Circuits that begin here, by the key of the port's own slice.
    begun: HashMap<u64, Begun>,
    /// Circuits that pass, by their identities.
    passing: HashMap<u64, Passing>,
    /// Circuits for which there was no room: the problem was logged.
    refused: HashSet<u64>,
}

struct Begun {
    wanted: Wanted,
    outlet: Arc<Outlet>,
    circuit: Option<Circuit>,
    /// The slice into which the next host returns heads.
    credit: Option<Credit>,
}

struct Passing {
    arrival: Arc<Adapter>,
    /// Present until the hosts behind this one are ready.
    credit: Option<Credit>,
    /// Present when this host is ready.
    outlet: Option<Arc<Outlet>>,
    /// The time at which the circuit has ended; None while it is announced.
    ended: Option<Instant>,
}

/// A slice into which the next host returns the heads of a lane.
struct Credit {
    adapter: Arc<Adapter>,
    key: u64,
    words: InWindow,
}

impl Drop for Credit {
    fn drop(&mut self) {
        self.adapter.close_slice(self.key);
    }
}

impl Circuits {
    /// Returns the circuits of a host, of which there are none yet, and starts the thread that relays.
    pub fn new(host: u64, adapters: Vec<Arc<Adapter>>, jobs: Arc<dyn Exposes>) -> io::Result<Circuits> {
        let relay = RelayThread::start()?;
        adapters.iter().for_each(|adapter| adapter.listen(relay.listener()));
        let name = nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let map = Map::new(host, name);
        let (begun, passing, refused) = (HashMap::new(), HashMap::new(), HashSet::new());
        Ok(Circuits { adapters, jobs, relay, state: Mutex::new(State { map, begun, passing, refused }) })
    }

    /// Returns the thread that relays.
    pub fn relay(&self) -> &RelayThread {
        &self.relay
    }

    /// Returns all hosts and links that are known.
    pub fn announcements(&self) -> Vec<Announcement> {
        self.state().map.announcements().cloned().collect()
    }

    /// Returns true if a way leads to a host.
    pub fn knows(&self, host: u64) -> bool {
        self.state().map.knows(host)
    }

    /// Begins a circuit for the port whose own slice has the key `own`, unless there is one. It is up when the outlet is.
    pub fn begin(&self, own: u64, wanted: impl FnOnce() -> Wanted) -> Arc<Outlet> {
        let mut state = self.state();
        let begun = state.begun.entry(own).or_insert_with(|| {
            let outlet = Arc::new(Outlet::new(Target::Down));
            self.relay.add(&outlet);
            Begun { wanted: wanted(), outlet, circuit: None, credit: None }
        });
        begun.outlet.clone()
    }

    /// Ends the circuit of a port.
    pub fn end(&self, own: u64) {
        let begun = self.state().begun.remove(&own);
        begun.iter().for_each(|begun| begun.outlet.set_target(Target::Down));
    }

    /// Exchanges announcements with the neighbours, and brings circuits forward. Returns true if it should be called
    /// again soon.
    pub fn tick(&self) -> bool {
        let mut state = self.state();
        let cables: Vec<Cable> = self.adapters.iter().filter_map(|adapter| adapter.cable()).collect();
        let mut is_changed = self.read_boards(&mut state.map);
        let circuits = state.map.own_circuits().to_vec();
        is_changed |= state.map.announce(cables.clone(), circuits);
        is_changed |= state.map.forget_unreachable();
        state.choose_ways();
        let circuits = state.begun.values().filter_map(|begun| begun.circuit.clone()).collect();
        is_changed |= state.map.announce(cables, circuits);
        if is_changed {
            self.post(&state.map);
        }
        let here: Vec<(u64, Circuit, usize)> =
            state.map.circuits_here().map(|(from, circuit, place)| (from, circuit.clone(), place)).collect();
        let is_waiting = self.serve_passing(&mut state, &here) | self.serve_begun(&mut state);
        is_waiting || is_changed
    }

    fn read_boards(&self, map: &mut Map) -> bool {
        let mut is_changed = false;
        for adapter in &self.adapters {
            let Some(text) = adapter.take_posted() else { continue };
            match postcard::from_bytes::<Vec<Announcement>>(&text) {
                Ok(all) => is_changed = all.into_iter().fold(is_changed, |changed, one| map.merge(one) | changed),
                Err(error) => log::warn!(
                    "port {}: the neighbour's announcements are not understood ({error}): does its ntbringd have another \
                     version?",
                    adapter.port()
                ),
            }
        }
        is_changed
    }

    fn post(&self, map: &Map) {
        let all: Vec<&Announcement> = map.announcements().collect();
        let text = postcard::to_allocvec(&all).unwrap_or_default();
        if !self.adapters.iter().all(|adapter| adapter.post(&text)) {
            log::error!("the announcements of {} hosts take {} bytes: too many circuits", all.len(), text.len());
        }
    }

    /// Returns the adapter whose cable leads to this port of a host.
    fn adapter_to(&self, host: u64, port: u8) -> Option<&Arc<Adapter>> {
        self.adapters
            .iter()
            .find(|adapter| adapter.cable().is_some_and(|cable| (cable.peer, cable.peer_port) == (host, port)))
    }

    /// Returns the target for the step of a circuit at this place, when the next host is ready.
    fn connect(&self, circuit: &Circuit, place: usize, credit: &mut Option<Credit>) -> Option<Target> {
        let step = circuit.steps.get(place)?;
        let adapter = self.adapter_to(step.host, step.port)?;
        let is_last = place + 1 == circuit.steps.len();
        let slice = if is_last { adapter.use_slice(circuit.key, circuit.user) } else { None };
        let target = match slice {
            Some(slice) => Target::slice(slice),
            None if is_last && !adapter.has_own_memory() => return None,
            // The last host may have to carry out the writes itself.
            None => {
                let credit = match credit {
                    Some(credit) => credit,
                    None => {
                        let key = circuit.id | 1;
                        let (_, memory) = adapter.add_slice(key, AGENT, PAGE).ok()?;
                        let words = InWindow::new(memory.region().part(0, 64));
                        credit.insert(Credit { adapter: adapter.clone(), key, words })
                    }
                };
                Target::lane(adapter.use_slice(circuit.id, AGENT)?, credit.words.clone())
            }
        };
        target.inspect_err(|error| log::warn!("circuit {:016x}: {error}", circuit.id)).ok()
    }

    fn serve_begun(&self, state: &mut State) -> bool {
        let mut is_waiting = false;
        for (own, begun) in &mut state.begun {
            if let Some(circuit) = begun.circuit.as_ref().filter(|_| !begun.outlet.is_up()) {
                match self.connect(circuit, 0, &mut begun.credit) {
                    Some(target) => begun.outlet.set_target(target),
                    None => is_waiting = true,
                }
            }
            let is_up = begun.outlet.is_up() && state.map.is_reached(*own);
            let link = if is_up { LinkState::Up } else { LinkState::Down };
            if begun.wanted.bells.set_circuit(link) {
                log::info!("the circuit to host {:016x} is {link:?}", begun.wanted.to);
            }
        }
        is_waiting
    }

    fn serve_passing(&self, state: &mut State, here: &[(u64, Circuit, usize)]) -> bool {
        let State { passing, refused, .. } = state;
        let present: HashSet<u64> = here.iter().map(|(_, circuit, _)| circuit.id).collect();
        let mut is_waiting = false;
        passing.retain(|id, one| {
            if present.contains(id) {
                return true;
            }
            // The records of the last messages may still be on their way.
            let ended = *one.ended.get_or_insert_with(Instant::now);
            let is_busy = one.outlet.as_ref().is_some_and(|outlet| !outlet.is_drained());
            if is_busy && ended.elapsed() < DRAIN {
                is_waiting = true;
                return true;
            }
            one.outlet.iter().for_each(|outlet| outlet.set_target(Target::Down));
            one.arrival.close_slice(*id);
            false
        });
        refused.retain(|id| present.contains(id));
        for (from, circuit, place) in here {
            let before = if *place == 0 { *from } else { circuit.steps[place - 1].host };
            let step = circuit.steps[*place];
            let arrives = |adapter: &&Arc<Adapter>| {
                adapter.port().get() == step.port && adapter.cable().is_some_and(|cable| cable.peer == before)
            };
            let Some(arrival) = self.adapters.iter().find(arrives) else { continue };
            let is_last = place + 1 == circuit.steps.len();
            let end = if is_last { self.jobs.expose(circuit.key, circuit.user, arrival) } else { Ok(None) };
            let outcome = match end {
                Ok(None) if is_last => Ok(true),
                Ok(end) => self.pass(passing, circuit, *place, (arrival, end)),
                Err(problem) => Err(problem),
            };
            is_waiting |= outcome == Ok(false);
            if let Err(problem) = outcome {
                if refused.insert(circuit.id) {
                    log::warn!("the circuit {:016x} from host {from:016x} is refused: {problem}", circuit.id);
                }
            }
        }
        is_waiting
    }

    /// Prepares for a circuit that passes, or ends at a target of this host, after its arrival at an adapter. Returns true
    /// when this host is ready.
    fn pass(
        &self,
        passing: &mut HashMap<u64, Passing>,
        circuit: &Circuit,
        place: usize,
        (arrival, end): (&Arc<Adapter>, Option<Target>),
    ) -> Result<bool, String> {
        let one = passing.entry(circuit.id).or_insert_with(|| Passing {
            arrival: arrival.clone(),
            credit: None,
            outlet: None,
            ended: None,
        });
        if !Arc::ptr_eq(&one.arrival, arrival) {
            return Err("another circuit has the same identity".into());
        }
        if one.outlet.is_some() {
            return Ok(true);
        }
        let Some(credit) = arrival.use_slice(circuit.id | 1, AGENT) else { return Ok(false) };
        let target = end.or_else(|| self.connect(circuit, place + 1, &mut one.credit));
        let Some(target) = target else { return Ok(false) };
        let (_, memory) = arrival.add_slice(circuit.id, AGENT, LANE).map_err(|error| error.to_string())?;
        let lane = InWindow::new(memory.region().part(0, LANE as usize));
        let inlet = Inlet::remote(lane, credit).inspect_err(|_| arrival.close_slice(circuit.id));
        let inlet = inlet.map_err(|error| error.to_string())?;
        let outlet = Arc::new(Outlet::new(target));
        outlet.add(circuit.id, inlet);
        self.relay.add(&outlet);
        one.outlet = Some(outlet);
        Ok(true)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Ends circuits whose ways have failed, and chooses ways for those that have none.
    fn choose_ways(&mut self) {
        let State { map, begun, .. } = self;
        for one in begun.values_mut() {
            if one.circuit.as_ref().is_some_and(|circuit| !map.is_up(map.host(), &circuit.steps)) {
                one.outlet.set_target(Target::Down);
                (one.circuit, one.credit) = (None, None);
            }
            if one.circuit.is_none() {
                let Wanted { to, key, ports: [port, opposite], user, .. } = one.wanted;
                let steps = map.way(to, port, opposite);
                let id = fastrand::u64(2..) & !1;
                one.circuit = steps.map(|steps| Circuit { id, user, key, steps });
            }
        }
    }
}
