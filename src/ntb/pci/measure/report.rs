//! The result of a measurement, and the limit that speed and width of a link set.

use crate::chip::LinkStatus;
use serde::{Deserialize, Serialize};

/// The result of the measurement of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkMeasurement {
    /// Number of this host's port.
    pub port: u8,
    /// Address of this host's adapter on its bus.
    pub address: String,
    /// Identity of the neighbour.
    pub peer: u64,
    /// Number of the neighbour's port.
    pub peer_port: u8,
    /// Generation of PCI Express and number of lanes; 0 if the chip does not tell.
    pub generation: u8,
    /// Number of lanes; 0 if the chip does not tell.
    pub width: u8,
    /// True if this host's mapping of the neighbour's window is write-combining.
    pub is_combining: bool,
    /// Time of a word from this host until the neighbour's processor reads it, ns: half a round trip in which both
    /// sides poll, the median.
    pub latency_ns: u64,
    /// Time from a doorbell until the neighbour's agent runs, ns: what a round trip takes longer if its thread sleeps,
    /// the median.
    pub doorbell_ns: u64,
    /// Bandwidth of writes of this host, bytes per second.
    pub outgoing: u64,
    /// Bandwidth of writes of the neighbour, bytes per second.
    pub incoming: u64,
}

/// Returns the most bytes per second that a link can carry if each packet has 64 bytes, a full write-combining buffer;
/// `u64::MAX` if the chip does not tell the link's speed.
pub fn limit(status: LinkStatus) -> u64 {
    // Bytes per second of a lane, after its line code.
    let lane = |generation| match generation {
        1 => 250_000_000,
        2 => 500_000_000,
        3 => 984_615_384,
        4 => 1_969_230_769,
        5 => 3_938_461_538,
        6 => 7_563_000_000,
        _ => 0u64,
    };
    match status {
        LinkStatus::Up { generation, width } if lane(generation) > 0 && width > 0 => {
            let (payload, overhead) = (64, ntbring_ntb::timing::PACKET_OVERHEAD);
            lane(generation) * u64::from(width) * payload / (payload + overhead)
        }
        _ => u64::MAX,
    }
}

/// Returns a remark on a link that is slower than PCI Express 3 with 8 lanes; None if it is not, or if the chip does not
/// tell its speed.
pub(crate) fn slow_link(status: LinkStatus) -> Option<String> {
    let LinkStatus::Up { generation, width } = status else { return None };
    let is_slow = limit(status) < limit(LinkStatus::Up { generation: 3, width: 8 });
    is_slow.then(|| {
        format!(
            "the link has come up with {width} lanes of PCI Express {generation}: is that all that the slots and the cable \
             allow? `ntbring bench link` shows it at the other end"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_that_of_packets_of_64_bytes() {
        let up = |generation, width| LinkStatus::Up { generation, width };
        assert_eq!(limit(up(3, 8)) / 1_000_000, 5728);
        assert_eq!(limit(up(3, 16)) / 1_000_000, 11457);
        assert_eq!([limit(up(0, 8)), limit(up(3, 0)), limit(LinkStatus::Down)], [u64::MAX; 3]);
    }

    #[test]
    fn a_link_that_came_up_with_fewer_lanes_is_remarked_on() {
        let up = |generation, width| slow_link(LinkStatus::Up { generation, width });
        assert!(up(3, 4).is_some_and(|remark| remark.contains("4 lanes of PCI Express 3")) && up(1, 8).is_some());
        assert_eq!([up(3, 8), up(4, 4), up(5, 16), up(0, 0)], [None, None, None, None]);
    }
}
