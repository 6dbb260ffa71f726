//! Rings with checked links (`detect` and `retry`).

use super::*;
use ntbring_ntb::fault::Faults;
use ntbring_queue::Reliability;

#[test]
fn everything_crosses_checked_lanes() {
    for reliability in [Reliability::Detect, Reliability::Retry] {
        for (layout, messages, weak) in [
            (Layout::blocks(&[1, 1]), 40, None),
            (Layout::blocks(&[2, 1, 1]), 20, Some(3)),
            (Layout::blocks(&[2, 1, 2, 1]), 20, None),
            (Layout::blocks(&[1; 5]), 10, Some(5)),
        ] {
            let settings = tiny(&layout).with(|s| {
                s.ring.reliability = reliability;
                s.links.weak = weak;
            });
            everybody_to_everybody(&layout, &settings, messages, 100 << 10);
        }
    }
}

#[test]
fn what_is_checked_needs_no_retries_on_good_links() {
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let layout = Layout::blocks(&[1; 4]);
    let settings = settings().with(|s| {
        s.ring.reliability = Reliability::Retry;
        s.endpoint.stats = Some(stats.clone());
    });
    everybody_to_everybody(&layout, &settings, 20, 100 << 10);
    let lines = std::fs::read_to_string(stats).unwrap();
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(["resent", "damaged", "dropped"].map(|name| line[name].as_u64()), [Some(0); 3]);
    }
    assert_eq!(lines.lines().count(), 4);
}

fn faulty(faults: &str, reliability: Reliability) -> Settings {
    settings().with(|s| {
        s.links.faults = Faults::parse(faults).unwrap();
        s.ring.reliability = reliability;
    })
}

#[test]
fn what_links_do_to_messages_is_mended() {
    let dir = tempfile::tempdir().unwrap();
    for (number, (layout, messages)) in [
        (Layout::blocks(&[1, 1]), 60),
        (Layout::blocks(&[2, 1, 1]), 30),
        (Layout::blocks(&[1, 2, 1, 1]), 30),
        (Layout::blocks(&[1; 5]), 20),
    ]
    .into_iter()
    .enumerate()
    {
        let stats = dir.path().join(number.to_string());
        let faults = "flip=0.001,drop=0.001,double=0.01,delay=0.001:50us,bell=0.05";
        let settings = faulty(faults, Reliability::Retry).with(|s| s.endpoint.stats = Some(stats.clone()));
        everybody_to_everybody(&layout, &settings, messages, 60 << 10);
        let lines = std::fs::read_to_string(stats).unwrap();
        let resent = |line| serde_json::from_str::<serde_json::Value>(line).unwrap()["resent"].as_u64().unwrap();
        assert!(lines.lines().map(resent).sum::<u64>() > 0, "{lines}");
    }
}

#[test]
fn a_link_that_is_down_for_a_while_loses_nothing() {
    for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[1; 4])] {
        let settings = faulty("down=every:100ms:for:30ms", Reliability::Retry);
        everybody_to_everybody(&layout, &settings, 400, 20 << 10);
    }
}

/// Packets that are on a link when it goes down for good take the other way round, through all other hosts.
#[test]
fn a_link_that_stays_down_is_gone_round() {
    let dir = tempfile::tempdir().unwrap();
    let layouts = [&[1, 1][..], &[2, 1, 1], &[1, 2, 1, 1], &[1; 5]];
    for (number, layout) in layouts.into_iter().map(Layout::blocks).enumerate() {
        let stats = dir.path().join(number.to_string());
        let faults = faulty("down=0-1:at:10ms,flip=0.0005,drop=0.0005", Reliability::Retry);
        everybody_to_everybody(&layout, &faults.with(|s| s.endpoint.stats = Some(stats.clone())), 500, 20 << 10);
        let lines = std::fs::read_to_string(stats).unwrap();
        let value = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
        let sum = |counter: &str| lines.lines().map(|line| value(line)[counter].as_u64().unwrap()).sum::<u64>();
        // With three hosts, packets are forwarded only because of the link that is down.
        assert!(layout.hosts != 3 || sum("forwarded_chunks") > 0, "{lines}");
    }
}
