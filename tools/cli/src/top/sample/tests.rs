//! Tests of samples, with readings made by hand.

use super::super::state::Activity;
use super::super::testing::{at, busy, link, rank, reading, sample, HOSTS};
use super::*;

#[test]
fn rates_need_two_readings() {
    let mut sampler = Sampler::default();
    let first = sampler.step(reading(0.0, (0..HOSTS).map(rank).collect()));
    assert_eq!((first.hosts, first.size, first.links.len(), first.ranks.len()), (4, 4, 4, 4));
    assert!(first.ranks.iter().all(|line| line.out_per_s.is_none()));
    assert_eq!((first.links[0].directions[0].bytes_per_s, first.limit.bytes_per_s), (None, None));
    let second = sampler.step(reading(2.0, vec![busy(0, 3_000_000, 2.0)]));
    let line = &second.ranks[0];
    assert_eq!((line.msgs_per_s, line.out_per_s, line.in_per_s), (Some(1500.0), Some(1.5e6), Some(0.75e6)));
    sampler.forget();
    assert_eq!(sampler.step(reading(3.0, vec![busy(0, 4_000_000, 3.0)])).ranks[0].out_per_s, None);
}

#[test]
fn rates_refer_to_the_times_of_publication() {
    let mut sampler = Sampler::default();
    sampler.step(reading(0.0, vec![busy(0, 0, 0.0)]));
    // It computes, and publishes nothing.
    let sample = sampler.step(reading(1.0, vec![busy(0, 0, 0.0)]));
    assert_eq!((sample.ranks[0].out_per_s, sample.ranks[0].age_s), (None, 1.0));
    assert_eq!(sample.ranks[0].state.activity, Activity::Computing);
    // The counters of the latest publication are 4 s newer, though the reading is 9 s later.
    let sample = sampler.step(reading(10.0, vec![busy(0, 4_000_000, 4.0)]));
    assert_eq!(sample.ranks[0].out_per_s, Some(1e6));
}

#[test]
fn links_carry_what_ranks_and_forwarders_send() {
    let mut sampler = Sampler::default();
    sampler.step(reading(0.0, vec![rank(0), rank(1)]));
    let mut forwarder = busy(0, 1_000_000, 1.0);
    *link(&mut forwarder, 0, "forwarded_bytes") = 500_000;
    *link(&mut forwarder, 1, "forwarded_bytes") = 3_000_000;
    *link(&mut forwarder, 1, "damaged") = 2;
    let mut neighbour = busy(1, 0, 1.0);
    *link(&mut neighbour, 0, "resent") = 5;
    let sample = sampler.step(reading(2.0, vec![forwarder, neighbour]));
    let rates = |index: usize| sample.links[index].directions.map(|direction| direction.bytes_per_s);
    // The rank's counters are of 1 s, the forwarder's of 2 s.
    assert_eq!(rates(0), [Some(2.5e6), Some(0.0)]);
    assert_eq!(rates(3), [None, Some(250_000.0)]);
    assert_eq!(rates(2), [None, None]);
    let link = &sample.links[0];
    assert_eq!((link.resent.total, link.resent.new, link.damaged.total, link.dropped.total), (5, 5, 2, 0));
    assert_eq!(sample.limit, Limit { bytes_per_s: Some(2.5e6), origin: Origin::LargestSeen });
    assert_eq!((link.utilisation(), sample.links[3].utilisation()), (Some(1.0), Some(0.1)));
}

#[test]
fn the_largest_rate_stays_and_a_link_model_is_preferred() {
    let mut sampler = Sampler::default();
    sampler.step(reading(0.0, vec![rank(0)]));
    sampler.step(reading(1.0, vec![busy(0, 8_000_000, 1.0)]));
    let sample = sampler.step(reading(2.0, vec![busy(0, 9_000_000, 2.0)]));
    assert_eq!(sample.links[0].directions[0].utilisation, Some(0.125));
    let mut reading = reading(3.0, vec![busy(0, 9_500_000, 3.0)]);
    (reading.job.link_model, reading.job.bandwidth) = (Some("gen3x8".into()), Some(1e6));
    let sample = sampler.step(reading);
    assert_eq!((sample.limit.origin, sample.links[0].directions[0].utilisation), (Origin::LinkModel, Some(0.5)));
}

#[test]
fn ranks_that_end_stay_in_the_table() {
    let mut sampler = Sampler::default();
    sampler.step(reading(0.0, vec![rank(0), rank(1), rank(2)]));
    let dead = Rank { pid: None, ..rank(1) };
    for seconds in [1.0, 2.0] {
        let sample = sampler.step(reading(seconds, vec![busy(0, 1000, seconds), dead.clone()]));
        let activities: Vec<Activity> = sample.ranks.iter().map(|line| line.state.activity).collect();
        assert_eq!(activities, [Activity::InMpi, Activity::Ended, Activity::Ended]);
    }
    let last = sampler.step(reading(3.0, vec![busy(0, 2000, 3.0)])).end();
    assert!(last.ended && last.ranks.iter().all(|line| line.state.activity == Activity::Ended));
    assert_eq!(last.ranks.len(), 3);
}

#[test]
fn vcis_of_a_rank_are_one_line() {
    let vci = |vci, bytes, published| {
        let mut rank = busy(0, bytes, published);
        rank.figures.vci = vci;
        rank
    };
    let mut sampler = Sampler::default();
    sampler.step(reading(0.0, vec![vci(0, 0, 0.0), vci(1, 0, 0.0)]));
    let sample = sampler.step(reading(1.0, vec![vci(0, 1_000_000, 1.0), vci(1, 2_000_000, 1.0)]));
    assert_eq!((sample.ranks.len(), sample.ranks[0].out_per_s), (1, Some(3e6)));
    let detail = sample.detail(0).unwrap();
    assert_eq!((detail.peers.len(), detail.peers[0].bytes, detail.peers[0].bytes_per_s), (1, 3_000_000, Some(3e6)));
    let sent = detail.counters.iter().find(|counter| counter.name == "bytes_direct").unwrap();
    assert_eq!((sent.total, sent.per_s), (3_000_000, Some(3e6)));
}

#[test]
fn odd_readings_are_harmless() {
    let mut sampler = Sampler::default();
    let empty = sampler.step(reading(0.0, vec![]));
    assert_eq!((empty.hosts, empty.links.len(), empty.ranks.len()), (0, 0, 0));
    let mut alone = rank(0);
    (alone.figures.hosts, alone.figures.links) = (1, vec![]);
    assert!(sampler.step(reading(1.0, vec![alone])).links.is_empty());
    // Counters that shrink, times that go back, and a neighbour that does not exist.
    let mut odd = busy(0, 5, 0.5);
    odd.figures.links[0].to = 99;
    sampler.step(reading(2.0, vec![busy(0, 1_000_000, 1.0)]));
    sampler.step(reading(3.0, vec![odd]));
    let sample = sampler.step(Reading { at: at(2.5), ..reading(0.0, vec![busy(0, 1, 9.0)]) });
    assert_eq!(sample.ranks[0].out_per_s, Some(0.0));
}

#[test]
fn the_page_gets_names_it_knows() {
    let json = serde_json::to_value(sample()).unwrap();
    assert_eq!((&json["job"]["id"], &json["job"]["program"]), (&100.into(), &"halo".into()));
    assert_eq!((&json["links"][1]["link"], &json["links"][1]["up"]), (&"1-2".into(), &false.into()));
    assert_eq!(json["links"][3]["directions"][0]["bytes_per_s"], 4e6);
    assert_eq!(json["links"][3]["resent"]["total"], 0);
    assert_eq!(
        (&json["ranks"][2]["out_per_s"], &json["ranks"][2]["state"]["activity"]),
        (&3e6.into(), &"in_mpi".into())
    );
    assert_eq!(json["limit"]["origin"], "largest_seen");
}
