//! Whole rings over links with faults, without reliability (`checked` covers rings with it): harmful faults end in an
//! error that names the cause, and harmless ones have no effect.

use super::*;
use common::ring::try_run;
use ntbring_ntb::fault::Faults;

fn faulty(settings: Settings, text: &str) -> Settings {
    settings.with(|s| s.links.faults = Faults::parse(text).unwrap())
}

#[test]
fn what_is_doubled_or_late_does_no_harm() {
    for (layout, messages) in [
        (Layout::blocks(&[1, 1]), 30),
        (Layout::blocks(&[2, 1, 1]), 15),
        (Layout::blocks(&[2, 1, 2, 1]), 10),
        (Layout::blocks(&[1; 5]), 10),
    ] {
        for (weak, text) in [(None, "double=0.2,delay=0.002:100us"), (Some(3), "double=0.2,delay=0.0005:300us")] {
            let settings = faulty(tiny(&layout).with(|s| s.links.weak = weak), text);
            everybody_to_everybody(&layout, &settings, messages, 30 << 10);
        }
    }
}

#[test]
fn rings_that_are_lost_cost_time_and_nothing_else() {
    let layout = Layout::blocks(&[1, 2, 1, 1]);
    // Ranks that do not sleep need no doorbells; forwarder threads also poll without them from time to time.
    let awake = tiny(&layout).with(|s| {
        s.endpoint.spin = Some(100);
        s.endpoint.yields = 1_000_000;
    });
    for text in ["bell=0.5", "stuck=all"] {
        everybody_to_everybody(&layout, &faulty(awake.clone(), text), 10, 20_000);
    }
}

/// Returns the result of each rank of a job whose messages are checked byte by byte.
fn outcomes(layout: &Layout, text: &str) -> Vec<Result<(), String>> {
    let settings = faulty(tiny(layout), text);
    let plan = all_kinds(5, 20, 20_000);
    try_run(layout, |_| settings.clone(), |rank| exchange(rank, 5, &plan).map(drop))
}

#[test]
fn harm_ends_in_an_error_and_never_in_a_panic_or_a_hang() {
    let mut in_vain = 0;
    for hosts in [2, 4] {
        let layout = Layout::blocks(&vec![1; hosts]);
        for seed in 1..=3 {
            for text in [
                "drop=0.0003",
                "flip=0.0003",
                "flip=0.02",
                "drop=0.001,flip=0.001,double=0.1,bell=0.1,delay=0.001:50us",
                "drop=1,link=0-1",
                "down=every:5ms:for:2ms",
            ] {
                let results = outcomes(&layout, &format!("{text},timeout=400ms,seed={seed}"));
                for error in results.into_iter().filter_map(Result::err) {
                    assert!(!error.contains("panicked") && !error.contains("the job hangs"), "{text}: {error}");
                    in_vain += usize::from(error.contains("has waited for 400ms in vain"));
                }
            }
        }
    }
    assert!(in_vain > 0, "nothing was ever missing");
}

#[test]
fn a_link_that_goes_down_is_an_error_that_names_it_and_the_setting() {
    let layout = Layout::blocks(&[1; 4]);
    let results = outcomes(&layout, "down=1-2:at:0s");
    let errors: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    let named =
        |e: &String| e.contains("the link between host 1 and host 2") && e.contains("NTBRING_RELIABILITY=retry");
    assert!(errors.iter().any(named), "{errors:?}");
    // A rank that has received all it waits for has no error of its own.
    for error in &errors {
        assert!(named(error) || error.contains("another rank has failed"), "{error}");
    }
}

#[test]
fn what_was_injected_is_counted_and_memory_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let stats = dir.path().join("stats");
    let layout = Layout::blocks(&[1, 1]);
    let settings = faulty(settings(), "double=0.5,bell=0.01").with(|s| s.endpoint.stats = Some(stats.clone()));
    let plan = |src: u32, dst: u32| vec![Shape::contiguous(HEADER, 50_000); if src == dst { 0 } else { 2 }];
    run(&layout, &settings, |rank| exchange(rank, 0, &plan).map(drop));
    for line in std::fs::read_to_string(&stats).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let count = |name: &str| line[name].as_u64().unwrap_or_else(|| panic!("{name} in {line}"));
        assert!(count("faults_doubled") > 100, "{line}");
        assert_eq!(["faults_flipped", "faults_dropped", "faults_delayed", "faults_outages"].map(count), [0; 4]);
        // Only the window is used, since the faults are injected there.
        assert_eq!((count("bytes_single_copy"), count("fetches_streamed")), (0, 1));
    }
}

#[test]
fn the_handshake_is_spared_unless_it_is_asked_for() {
    let layout = Layout::blocks(&[1, 1, 1]);
    let brief = settings().with(|s| s.ring.connect_timeout = Duration::from_secs(1));
    let join = |text: &str| try_to_join(&layout, |_| faulty(brief.clone(), text));
    assert!(join("drop=1,flip=1").iter().all(Result::is_ok));
    assert!(join("from=start,double=1,delay=1:1ms").iter().all(Result::is_ok));
    for result in join("from=start,drop=1") {
        let error = result.expect_err("no rank can have joined");
        assert!(matches!(error, JoinError::Timeout { .. }), "{error}");
    }
    for result in join("from=start,flip=1") {
        let error = result.expect_err("every register is wrong").to_string();
        assert!(!error.is_empty());
    }
    for result in join("from=start,down=at:0s") {
        assert!(matches!(result.expect_err("all links are down"), JoinError::Timeout { .. }));
    }
}

#[test]
fn hosts_of_which_one_has_no_faults_are_told_so() {
    let layout = Layout::blocks(&[1, 1]);
    let results = try_to_join(&layout, |rank| if rank == 1 { faulty(settings(), "drop=0.1") } else { settings() });
    for result in results {
        let error = result.expect_err("it has joined").to_string();
        assert!(error.contains("NTBRING_FAULT") && error.contains("disagree"), "{error}");
    }
}

#[test]
fn links_that_are_not_there_are_refused() {
    for (hosts, text) in [(4, "drop=1,link=0-2"), (4, "down=3-4:at:0s"), (2, "link=1-2"), (3, "link=0-0")] {
        let layout = Layout::blocks(&vec![1; hosts]);
        let error = Candidate::new(layout.topology(), 0, faulty(settings(), text)).err().expect(text);
        assert!(matches!(error, JoinError::NoLink { .. }), "{error}");
        assert!(error.to_string().contains("NTBRING_FAULT"), "{error}");
    }
    for (hosts, text) in [(4, "link=3-0"), (4, "link=0-3"), (2, "link=1-0"), (1, "link=5-6"), (3, "link=left")] {
        let layout = Layout::blocks(&vec![1; hosts]);
        assert!(Candidate::new(layout.topology(), 0, faulty(settings(), text)).is_ok(), "{hosts} {text}");
    }
}
