//! Rings with other devices, and rings whose hosts use no shortcuts.

use super::*;
use ntbring_host::MEMFD;
use ntbring_ntb::fault::Faults;
use ntbring_ntb::settings::Device;
use ntbring_ntb::{LinkState, Shortcuts};
use ntbring_ring::RingPorts;

fn loopback(layout: &Layout) -> Settings {
    tiny(layout).with(|s| {
        s.links.device = Device::Loopback;
        s.host.shm_dir = MEMFD.into();
    })
}

#[test]
fn hosts_may_be_threads_of_one_process() {
    for layout in [Layout::blocks(&[1; 2]), Layout::blocks(&[2, 1, 2]), Layout::blocks(&[1; 5])] {
        everybody_to_everybody(&layout, &loopback(&layout), 200, 20 << 10);
        everybody_to_everybody(&layout, &loopback(&layout).with(|s| s.links.weak = Some(3)), 100, 20 << 10);
    }
}

#[test]
fn hosts_need_no_shortcut() {
    for text in ["none", "segments", "kernel-copies"] {
        for layout in [Layout::blocks(&[1; 2]), Layout::blocks(&[2; 2]), Layout::blocks(&[1; 5])] {
            let withheld = tiny(&layout).with(|s| s.links.shortcuts = Shortcuts::parse(text).unwrap());
            run(&layout, &withheld, |rank| {
                let here = rank.layout.host_of[rank.rank as usize];
                for (other, &host) in rank.layout.host_of.iter().enumerate().filter(|(_, host)| **host != here) {
                    let members = rank.endpoint.members();
                    assert!(
                        text == "kernel-copies" || members.kernel_copy(other as u32).is_none(),
                        "{text}: host {host}"
                    );
                    assert!(text == "segments" || !members.is_mappable(other as u32), "{text}: host {host}");
                }
                Ok(())
            });
            everybody_to_everybody(&layout, &withheld, 100, 200 << 10);
        }
    }
}

/// Returns the settings of a rank whose host uses these ports, left and right: host 0 the ports 2 and 3, host 1 the
/// ports 1 and 0, and host 2 the ports 0 and 1.
fn with_ports(settings: &Settings, host: usize) -> Settings {
    let [left, right] = [[2, 3], [1, 0], [0, 1]][host];
    settings.clone().with(|s| s.ring.ports = RingPorts::new(left, right).unwrap())
}

#[test]
fn each_host_may_use_other_ports() {
    for layout in [Layout::blocks(&[1; 2]), Layout::blocks(&[1; 3]), Layout::blocks(&[2, 1, 2])] {
        let changes: [fn(&mut Settings); 6] = [
            |_| {},
            |s| {
                s.links.device = Device::Loopback;
                s.host.shm_dir = MEMFD.into();
            },
            |s| s.links.shortcuts = Shortcuts::NONE,
            |s| s.links.model = Model::parse("gen3x8").unwrap(),
            |s| s.links.weak = Some(5),
            |s| {
                s.links.faults = Faults::parse("drop=0.01,double=0.01,seed=3").unwrap();
                s.ring.reliability = ntbring_queue::Reliability::Retry;
            },
        ];
        for change in changes {
            let settings = tiny(&layout).with(change);
            let plan = all_kinds(7, 50, 20 << 10);
            let host = |rank: u32| layout.topology().host_of(rank);
            run_each(&layout, |rank| with_ports(&settings, host(rank)), |rank| exchange(rank, 7, &plan).map(drop));
        }
    }
}

#[test]
fn the_link_of_a_side_is_that_of_its_port() {
    let layout = Layout::blocks(&[1; 3]);
    let settings = tiny(&layout).with(|s| s.links.faults = Faults::parse("command").unwrap());
    run_each(
        &layout,
        |rank| with_ports(&settings, rank as usize),
        |rank| {
            let members = rank.endpoint.members();
            for side in Side::BOTH {
                let down = || members.links().unwrap().map(|link| link.port().link() == LinkState::Down);
                members.set_link(side, LinkState::Down);
                let expected = Side::BOTH.map(|other| other == side);
                let found = down();
                members.set_link(side, LinkState::Up);
                if found != expected || down() != [false; 2] {
                    return Err(format!("{side}: {found:?}"));
                }
            }
            Ok(())
        },
    );
}

#[test]
fn ranks_of_a_host_need_the_same_ports() {
    let layout = Layout::blocks(&[2, 1]);
    let brief = settings().with(|s| s.ring.connect_timeout = Duration::from_secs(2));
    let results = try_to_join(&layout, |rank| with_ports(&brief, if rank == 1 { 1 } else { 2 }));
    let text = results[1].as_ref().unwrap_err().to_string();
    let expected = "host 0: NTBRING_PORTS is 1,0 at rank 1, but 0,1 at the host's first rank";
    assert!(text.starts_with(expected), "{text}");
}

#[test]
fn devices_that_are_not_there_are_named() {
    let layout = Layout::blocks(&[1; 2]);
    let settings = tiny(&layout).with(|s| s.links.device = Device::Pci("/nowhere/agent.sock".into()));
    let text = Candidate::new(layout.topology(), 0, settings).err().unwrap().to_string();
    assert!(text.contains("NTBRING_DEVICE=pci:/nowhere/agent.sock") && text.contains("does not run"), "{text}");
}
