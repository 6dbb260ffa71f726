//! The link policy: the properties that all links of a ring have in common, and that follow from settings and ports.

use crate::settings::JoinSettings;
use ntbring_memory::Mapping;
use ntbring_ntb::{Port, Shortcuts};
use ntbring_queue::Reliability;
use std::sync::Arc;

/// Properties that all links of a ring have in common. A process computes them once, when it joins, from
/// `NTBRING_RELIABILITY`, `NTBRING_SHORTCUTS`, the number of hosts and the capabilities of its ports. All hosts compute
/// the same, except for `coherent` and `direct_stores`, since neighbours compare settings and shortcuts in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkPolicy {
    reliability: Reliability,
    /// Shortcuts that both ports grant and the settings permit.
    granted: Shortcuts,
    coherent: bool,
    /// True if the settings permit stores into memory of neighbours' processes, where a port reaches it.
    direct_stores: bool,
    hosts: usize,
}

impl LinkPolicy {
    /// Computes the policy of a ring of `hosts` hosts, given this process's ports.
    pub(crate) fn new(hosts: usize, ports: &[Arc<dyn Port>], settings: &JoinSettings) -> LinkPolicy {
        let grant = |granted, port: &Arc<dyn Port>| granted & port.shortcuts();
        LinkPolicy {
            // A ring of one host has no link that could damage packets.
            reliability: if hosts > 1 { settings.ring.reliability } else { Reliability::Off },
            granted: ports.iter().fold(settings.links.shortcuts, grant),
            coherent: ports.iter().all(|port| port.caps().mapping == Mapping::Coherent),
            direct_stores: !settings.links.no_direct_stores,
            hosts,
        }
    }

    /// Returns the reliability level of the lanes over links.
    pub fn reliability(self) -> Reliability {
        self.reliability
    }

    /// Returns true if lanes over links are checked (`detect` or `retry`).
    pub fn is_checked(self) -> bool {
        self.reliability != Reliability::Off
    }

    /// Returns true if packets that cannot take one way round the ring take the other (`retry`). Hosts then have a
    /// network manager, and ranks keep their packets until the receiving rank has confirmed them.
    pub fn reroutes(self) -> bool {
        self.reliability.retransmits()
    }

    /// Returns the shortcuts that both ports grant and the settings permit, which neighbours compare.
    pub fn granted(self) -> Shortcuts {
        self.granted
    }

    /// Returns the shortcuts for data that are used: none if lanes are checked, since the checks cover lanes only.
    pub fn shortcuts(self) -> Shortcuts {
        if self.is_checked() {
            Shortcuts::NONE
        } else {
            self.granted
        }
    }

    /// Returns true if outgoing windows are coherent memory of this machine, and lanes in them are not checked.
    pub fn is_coherent(self) -> bool {
        self.coherent && !self.is_checked()
    }

    /// Returns true if processes may write memory of neighbours' processes through ports that reach it: not if lanes are
    /// checked, since the checks cover lanes only, and since packets may take another way than stores then.
    pub fn stores_directly(self) -> bool {
        self.direct_stores && !self.is_checked()
    }

    /// Returns true if hosts have monitors, since ranks of other hosts cannot be watched by process ids.
    pub fn is_monitored(self) -> bool {
        self.hosts > 1 && !self.granted.processes
    }

    /// Returns true if hosts have forwarders, which also serve segments and are gateways to other jobs. They have none
    /// if all hosts are neighbours, map each other's segments, and see each other's processes.
    pub fn is_forwarded(self) -> bool {
        self.hosts >= 4 || self.hosts > 1 && !(self.shortcuts().segments && self.granted.processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::RingPorts;
    use ntbring_ntb::loopback::LoopbackHost;
    use ntbring_ntb::Side;

    fn policy(hosts: usize, reliability: Reliability, shortcuts: Shortcuts) -> LinkPolicy {
        let host = LoopbackHost::new(4096);
        let ports = RingPorts::default();
        let port = |side: Side| {
            Arc::new(host.port(ports.on(side), (&host, ports.on(side.opposite()))).unwrap()) as Arc<dyn Port>
        };
        let mut settings = JoinSettings::default();
        (settings.ring.reliability, settings.links.shortcuts) = (reliability, shortcuts);
        LinkPolicy::new(hosts, &Side::BOTH.map(port), &settings)
    }

    #[test]
    fn checked_links_have_no_shortcuts_for_data() {
        for reliability in [Reliability::Detect, Reliability::Retry] {
            let policy = policy(3, reliability, Shortcuts::ALL);
            assert_eq!((policy.shortcuts(), policy.granted()), (Shortcuts::NONE, Shortcuts::ALL));
            assert!(policy.is_checked() && policy.is_forwarded() && !policy.is_coherent() && !policy.is_monitored());
            assert_eq!(policy.reroutes(), reliability == Reliability::Retry);
        }
        assert!(policy(3, Reliability::Off, Shortcuts::ALL).is_coherent());
    }

    #[test]
    fn memory_of_neighbours_is_written_directly_unless_links_are_checked() {
        assert!(policy(3, Reliability::Off, Shortcuts::NONE).stores_directly());
        for reliability in [Reliability::Detect, Reliability::Retry] {
            assert!(!policy(3, reliability, Shortcuts::NONE).stores_directly());
        }
    }

    #[test]
    fn forwarders_are_for_packets_in_transit_and_for_segments() {
        for (hosts, shortcuts, forwarded) in [
            (1, Shortcuts::NONE, false),
            (2, Shortcuts::ALL, false),
            (2, Shortcuts::NONE, true),
            (3, Shortcuts::ALL, false),
            (4, Shortcuts::ALL, true),
        ] {
            assert_eq!(policy(hosts, Reliability::Off, shortcuts).is_forwarded(), forwarded, "{hosts} {shortcuts}");
        }
    }

    #[test]
    fn a_ring_of_one_host_has_nothing_to_check() {
        let policy = policy(1, Reliability::Retry, Shortcuts::NONE);
        assert!(!policy.is_checked() && !policy.reroutes() && !policy.is_monitored());
    }
}
