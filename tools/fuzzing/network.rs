//! Announcements of other hosts that a neighbour has passed on, or made up.

use crate::script::Script;
use ntbring_pci::network::{Announcement, Cable, Circuit, Map, Step};
use std::collections::HashSet;

/// Identity of the host that reads the announcements.
const HOST: u64 = 5;

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut map = Map::new(HOST, "this".into());
    let mut script = Script(data);
    while !script.is_over() {
        match script.below(4) {
            0 => {
                let bytes = script.some(255);
                let all = postcard::from_bytes::<Vec<Announcement>>(&bytes).unwrap_or_default();
                all.into_iter().for_each(|one| _ = map.merge(one));
            }
            1 => {
                let cables = (0..script.below(5)).map(|_| cable(&mut script)).collect();
                map.announce(cables, (0..script.below(3)).map(|_| circuit(&mut script)).collect());
            }
            2 => _ = map.forget_unreachable(),
            _ => _ = map.merge(announcement(&mut script)),
        }
        check(&map, &mut script);
    }
}

fn check(map: &Map, script: &mut Script) {
    let known: HashSet<u64> = map.announcements().map(|one| one.host).collect();
    assert!(map.knows(HOST) && known.len() <= 256);
    let to = host(script);
    if let Some(way) = map.way(to, script.below(4), script.below(4)) {
        let mut seen = HashSet::from([HOST]);
        assert!(way.iter().all(|step| known.contains(&step.host) && seen.insert(step.host)), "a way without circles");
        assert!(way.last().is_some_and(|last| last.host == to) && map.is_up(HOST, &way));
    }
    for (from, circuit, place) in map.circuits_here() {
        assert!(from != HOST && circuit.steps[place].host == HOST);
        map.is_reached(circuit.key);
    }
}

/// Returns an announcement of one of a few hosts.
pub(crate) fn announcement(script: &mut Script) -> Announcement {
    let cables = (0..script.below(5)).map(|_| cable(script)).collect();
    let circuits = (0..script.below(4)).map(|_| circuit(script)).collect();
    let sequence = script.pick(&[1, 2, 3, 4, 5, 6, 7, u64::MAX]);
    Announcement { host: host(script), sequence, name: "other".into(), cables, circuits }
}

/// Returns the identity of one of a few hosts; [`HOST`] and others.
fn host(script: &mut Script) -> u64 {
    script.pick(&[HOST, 1, 2, 3, 4, 6, 7, 101, 102, 0, u64::MAX])
}

fn cable(script: &mut Script) -> Cable {
    let [port, peer_port] = [script.below(5), script.below(5)];
    Cable {
        port,
        peer: host(script),
        peer_port,
        epoch: script.below(3).into(),
        window: 4096,
        rate: script.byte().into(),
    }
}

fn circuit(script: &mut Script) -> Circuit {
    let steps = (0..script.below(6)).map(|_| step(script)).collect();
    let (id, user) = (script.pick(&[2, 4, 6, 0, 3]), script.pick(&[0, 1000]));
    Circuit { id, user, key: u64::from(script.byte()), steps }
}

fn step(script: &mut Script) -> Step {
    Step { host: host(script), port: script.below(5), epoch: script.below(3).into() }
}
