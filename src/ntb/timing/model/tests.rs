use super::*;
use proptest::prelude::*;

const GEN3X8: Model = NAMED[0].1;

#[test]
fn names_and_values() {
    assert_eq!(Model::parse("none"), Ok(None));
    for (name, model) in NAMED {
        assert_eq!(Model::parse(name), Ok(Some(model)));
        assert!(model.to_string().starts_with(name));
        assert_eq!(Model::name_of(model.digest()), name);
    }
    let custom = Model { bandwidth: 6_500_000_000, latency: 900, doorbell: 2_500, register: 1_000, transfer: None };
    assert_eq!(Model::parse("bandwidth=6.5G, latency=900ns,doorbell=2.5us,register=1us"), Ok(Some(custom)));
    assert_eq!(Model::parse("latency=0ns"), Ok(Some(Model { latency: 0, ..GEN3X8 })));
    assert_eq!(Model::parse("pex8733,doorbell=10ms"), Ok(Some(Model { doorbell: 10_000_000, ..NAMED[1].1 })));
    let cut = Model { transfer: Some(1 << 20), ..GEN3X8 };
    assert_eq!(Model::parse("gen3x8,transfer=1M"), Ok(Some(cut)));
    assert_eq!(Model::parse("transfer=64K"), Ok(Some(Model { transfer: Some(64 << 10), ..GEN3X8 })));
    assert!(cut.to_string().contains("at most 1048576 bytes") && cut.digest() != GEN3X8.digest());
    assert_eq!(Model::name_of(0), "none");
    assert!(Model::name_of(custom.digest()).contains("custom"));
}

#[test]
fn what_is_wrong_with_a_bad_one() {
    for (text, problem) in [
        ("", "neither the name of a link nor key=value"),
        ("gen4x16", "neither the name of a link"),
        ("gen3x8,none", "neither the name of a link"),
        ("latency=1us,gen3x8", "a name stands first"),
        ("speed=6G", "none of bandwidth, latency, doorbell, register, transfer"),
        ("latency=900", "the unit is missing, as in 900ns"),
        ("latency=-1us", "is no number"),
        ("latency=infus", "is no number"),
        ("latency=us", "is no number"),
        ("latency=1.2.3us", "is no number"),
        ("latency=11ms", "more than 10ms"),
        ("latency=99999999999999999999999us", "more than 10ms"),
        ("bandwidth=6", "the unit is missing"),
        ("bandwidth=0G", "less than 1M"),
        ("bandwidth=1001G", "more than 1000G"),
        ("transfer=512", "the unit is missing, as in 64K or 1M"),
        ("transfer=0.5K", "less than 1K"),
        ("transfer=1025M", "more than 1024M"),
        ("transfer=1M,transfer=1M", "transfer is there twice"),
        ("latency=1us,latency=1us", "latency is there twice"),
    ] {
        let error = Model::parse(text).unwrap_err();
        assert!(error.contains(problem), "{text:?}: {error}");
    }
}

#[test]
fn small_packets_pay_for_their_headers() {
    let prices = GEN3X8.prices();
    let ns = |bytes| prices.cost(bytes) as f64 / TICKS_PER_NS as f64;
    assert_eq!(prices.cost(0), 0);
    assert!((ns(1 << 20) - (1 << 20) as f64 / 6.0).abs() < 10.0);
    // 32 of 280 bytes of what 256 cost.
    assert!((ns(8) - 256.0 / 6.0 * 32.0 / 280.0).abs() < 0.1, "{}", ns(8));
    assert!((ns(64) - 256.0 / 6.0 * 88.0 / 280.0).abs() < 0.1, "{}", ns(64));
    assert!(4 * prices.cost(64) > prices.cost(256));
}

fn models() -> impl Strategy<Value = Model> {
    (1_000_000..=1_000_000_000_000u64, 0..10_000_000u64).prop_map(|(bandwidth, latency)| Model {
        bandwidth,
        latency,
        doorbell: 0,
        register: 0,
        transfer: None,
    })
}

proptest! {
    #[test]
    fn any_text_is_judged_without_panic(text in "[a-z0-9=,.]{0,40}") {
        let _ = Model::parse(&text);
    }

    #[test]
    fn writing_more_at_once_is_never_dearer_than_in_pieces(model in models(), a in 0usize..100_000, b in 0usize..100_000) {
        let prices = model.prices();
        prop_assert!(prices.cost(a + b) <= prices.cost(a) + prices.cost(b) + 2);
        prop_assert!(prices.cost(a + 1) >= prices.cost(a));
    }

    /// For any sizes and times of writes: no write arrives too early, out of order, or above the bandwidth, and the
    /// link is never idle while there is work.
    #[test]
    fn the_link_keeps_its_limits(
        model in models(),
        start in 0u64..1 << 50,
        writes in prop::collection::vec((0u64..100_000, 1usize..40_000), 1..60),
    ) {
        let prices = model.prices();
        let begin = start * TICKS_PER_NS;
        let (mut now, mut free_at, mut last, mut sent) = (begin, 0, 0, 0u128);
        for (pause, bytes) in writes {
            now += pause;
            let before = free_at;
            free_at = prices.reserve(before, now, bytes);
            sent += bytes as u128;
            let arrival = prices.arrival(free_at);
            prop_assert!(arrival >= last);
            last = arrival;
            let transfer = bytes as u128 * 1_000_000_000 / u128::from(model.bandwidth);
            prop_assert!(u128::from(arrival) >= u128::from(now / TICKS_PER_NS + model.latency) + transfer);
            let ticks = u128::from(free_at - begin);
            prop_assert!(ticks * u128::from(model.bandwidth) >= sent * u128::from(TICKS_PER_NS) * 1_000_000_000);
            prop_assert_eq!(free_at - before.max(now), prices.cost(bytes));
        }
    }
}
