//! Rings of up to 64 hosts: maps of hosts and links have more than 16 and more than 32 bits.

use super::allgathers::everybody_shares;
use super::healing::Ring;
use super::*;
use ntbring_ntb::settings::Device;
use ntbring_ntb::LinkState;
use ntbring_queue::Reliability;
use std::time::Instant;

/// Returns settings of a ring with small windows, in memory of this process.
fn small(layout: &Layout) -> Settings {
    tiny(layout).with(|s| {
        s.links.device = Device::Loopback;
        s.ring.forwarder_threads = Some(1);
        s.endpoint.spin = Some(0);
        s.endpoint.yields = 0;
    })
}

fn one_rank_each(hosts: usize) -> Layout {
    Layout::blocks(&vec![1; hosts])
}

#[test]
fn seventeen_hosts() {
    let layout = one_rank_each(17);
    everybody_to_everybody(&layout, &small(&layout), 3, 20 << 10);
}

#[test]
fn thirty_three_hosts() {
    let layout = one_rank_each(33);
    everybody_to_everybody(&layout, &small(&layout), 1, 5000);
}

#[test]
fn sixty_four_hosts() {
    let layout = one_rank_each(64);
    everybody_to_everybody(&layout, &small(&layout), 1, 1000);
}

#[test]
fn blocks_of_many_hosts_are_shared() {
    for (hosts, turns) in [(17, 6), (33, 4), (64, 2)] {
        let layout = one_rank_each(hosts);
        everybody_shares(&layout, &small(&layout), turns);
    }
}

#[test]
fn all_of_many_hosts_hear_which_links_are_down() {
    for (hosts, links) in [(17, vec![16]), (33, vec![32, 3]), (64, vec![40, 63])] {
        let mut ring = Ring::with(hosts, small(&one_rank_each(hosts)));
        for (i, &link) in links.iter().enumerate() {
            ring.set(link, LinkState::Down);
            let end = Instant::now() + Duration::from_secs(50);
            let hear = |ring: &Ring| {
                ring.members.iter().all(|members| {
                    let outages = members.outages();
                    outages.len() == i + 1 && links[..=i].iter().all(|link| outages.contains(*link))
                })
            };
            while !hear(&ring) {
                assert!(Instant::now() < end, "{hosts} hosts, link {link}");
                ring.report_links();
            }
        }
    }
}

#[test]
fn routes_of_many_hosts_lead_round_a_link_that_is_down() {
    for (hosts, link) in [(17, 16), (33, 31), (64, 40)] {
        let retry = small(&one_rank_each(hosts)).with(|s| s.ring.reliability = Reliability::Retry);
        let mut ring = Ring::with(hosts, retry);
        ring.settle(&[]);
        ring.set(link, LinkState::Down);
        ring.settle(&[link]);
    }
}

#[test]
fn messages_of_seventeen_hosts_arrive_though_links_lose_packets() {
    let layout = one_rank_each(17);
    let faults = ntbring_ntb::fault::Faults::parse("drop=0.002").unwrap();
    let lossy = small(&layout).with(|s| {
        s.ring.reliability = Reliability::Retry;
        s.links.faults = faults;
    });
    everybody_to_everybody(&layout, &lossy, 1, 2000);
}
