//! Tests of single decorators, beyond the conformance tests.

use super::*;

#[test]
fn a_record_agrees_with_what_was_done() {
    for dress in [Dress::Trace, Dress::TraceWeak] {
        let bench = Bench::new(dress);
        let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
        let out = aim(from.as_ref(), to.as_ref());
        out.write_bytes(100, b"0123456789");
        let part = out.part(4096, 128);
        part.store(8, 77);
        assert_eq!(part.fill(64, 40, |_| 24), 24);
        out.fence();
        from.peer_scratchpad(5, 1234);
        from.ring(15);
        // Reads, and accesses to the own side, cross no link.
        from.scratchpad(1);
        to.incoming().load(0);
        to.clear_doorbells(1);
        from.vector(2).arm();
        panics("a write beyond the window", || part.store(128, 1));
        aim(to.as_ref(), from.as_ref()).store(0, u64::MAX);
        let expected = [
            serde_json::json!({"port": 1, "op": "write", "offset": 100, "len": 10}),
            serde_json::json!({"port": 1, "op": "store", "offset": 4104, "value": 77}),
            serde_json::json!({"port": 1, "op": "write", "offset": 4160, "len": 24}),
            serde_json::json!({"port": 1, "op": "fence"}),
            serde_json::json!({"port": 1, "op": "scratchpad", "register": 5, "value": 1234}),
            serde_json::json!({"port": 1, "op": "ring", "doorbell": 15}),
            serde_json::json!({"port": 0, "op": "store", "offset": 0, "value": u64::MAX}),
        ];
        assert_eq!(bench.record(), expected);
    }
}

/// Two decorated ports block each other no more than bare ones; and the weak decorator does reorder.
#[test]
fn weak_windows_are_disordered_between_fences() {
    let bench = Bench::new(Dress::Weak);
    let (from, to) = (bench.port(0, Side::Right), bench.port(1, Side::Left));
    let (out, incoming) = (aim(from.as_ref(), to.as_ref()), to.incoming());
    let (mut late, mut overtaken, mut split) = (false, false, false);
    for n in 1..200u64 {
        out.write_bytes(64, &[n as u8; 64]);
        out.store(0, n);
        let mut bytes = [0; 64];
        incoming.read(64, &mut bytes);
        let arrived = bytes.iter().filter(|&&b| b == n as u8).count();
        late |= arrived < 64 && incoming.load(0) != n;
        overtaken |= arrived < 64 && incoming.load(0) == n;
        split |= arrived > 0 && arrived < 64;
        out.fence();
        incoming.read(64, &mut bytes);
        assert_eq!((bytes, incoming.load(0)), ([n as u8; 64], n));
    }
    assert!(late && overtaken && split);
}
