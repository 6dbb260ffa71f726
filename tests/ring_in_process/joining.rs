//! Errors: messages that are impossible, hosts that disagree, and hosts that do not join.

use super::*;
use ntbring_ntb::settings::Device;
use ntbring_zerocopy::Packed;
use std::ffi::c_void;

#[test]
fn what_cannot_be_sent_is_refused_and_does_no_harm() {
    unsafe extern "C" fn fails(_: *mut c_void, _: u64, room: *mut c_void, len: u64) -> i64 {
        // SAFETY: the room is valid for writes of its length.
        unsafe { room.cast::<u8>().write_bytes(0x77, len as usize) };
        -1
    }
    const ROUNDS: usize = 300;
    let layout = Layout::blocks(&[1, 1]);
    let shape = Shape::contiguous(HEADER, 8);
    let plan = move |src: u32, dst: u32| vec![shape; if src == dst { 0 } else { ROUNDS }];
    run(&layout, &tiny(&layout), |rank| {
        let mut traffic = Traffic::new(2);
        let answer = |rank: &mut Rank, traffic: &mut Traffic, number: usize| -> Result<(), String> {
            while traffic.complete <= number {
                let event = rank.event()?;
                traffic.take(rank, event, &plan)?;
            }
            Ok(())
        };
        if rank.rank == 1 {
            for number in 0..ROUNDS {
                answer(rank, &mut traffic, number)?;
                traffic.send(rank, 0, number, shape)?;
            }
            return Ok(());
        }
        // Each message is answered before the next, so there is room, and a failure is immediate.
        for number in 0..ROUNDS {
            let header = vec![0; rank.endpoint.header_max() + 1];
            let ordinary = Message { dest: 1, head: Head::default(), header: &[], payload: Payload::NONE, cookie: 0 };
            let handler = Head { handler: 64 };
            // SAFETY: the function writes only to the room.
            let failing = Payload::Packed(unsafe { Packed::new(700, fails, std::ptr::null_mut()) });
            let bad = [
                Message { dest: 2, ..ordinary },
                Message { head: handler, ..ordinary },
                Message { header: &header, ..ordinary },
                Message { payload: failing, ..ordinary },
            ];
            for (i, message) in bad.into_iter().enumerate() {
                match (i, rank.endpoint.send(message)) {
                    (0..3, Err(EndpointError::Argument(_))) | (3, Err(EndpointError::Pack(_))) => {}
                    (_, other) => return Err(format!("{i}: {other:?}")),
                }
            }
            let bogus = Token { lane: number, begun: None };
            if !matches!(rank.endpoint.release(bogus, 0), Err(EndpointError::Argument(_))) {
                return Err("a token was taken back that was never given out".into());
            }
            traffic.send(rank, 1, number, shape)?;
            answer(rank, &mut traffic, number)?;
        }
        Ok(())
    });
}

#[test]
fn settings_that_differ_are_named_on_both_sides() {
    type Change = fn(&mut Settings);
    let changes: [(&str, Change); 5] = [
        ("NTBRING_WINDOW", |s| s.ring.window = Some(2 << 20)),
        ("NTBRING_CHUNK", |s| s.ring.chunk = Some(1024)),
        ("NTBRING_LINK_MODEL", |s| s.links.model = Model::parse("gen3x8").unwrap()),
        ("NTBRING_KEEPALIVE_TIMEOUT", |s| s.ring.keepalive_timeout = Duration::from_secs(10)),
        ("NTBRING_RELIABILITY", |s| s.ring.reliability = ntbring_queue::Reliability::Retry),
    ];
    for (name, change) in changes {
        for layout in [Layout::blocks(&[1, 1]), Layout::blocks(&[2, 2]), Layout::blocks(&[1, 1, 1])] {
            let t = layout.topology();
            // Host 1 has different settings.
            let results = try_to_join(&layout, |rank| {
                let mut s = settings();
                if t.host_of(rank) == 1 {
                    change(&mut s);
                }
                s
            });
            for (rank, result) in results.into_iter().enumerate() {
                let error = result.expect_err("it has joined");
                if t.local_of(rank as u32) == 0 {
                    assert!(
                        matches!(&error, JoinError::Handshake(HandshakeError::Disagree { what, .. }) if *what == name),
                        "rank {rank}: {error}"
                    );
                }
                assert!(error.to_string().contains(name), "rank {rank}: {error}");
            }
        }
    }
}

#[test]
fn windows_that_are_too_small_are_refused_with_a_size_that_is_not() {
    let layout = Layout::blocks(&[8; 4]);
    let small = settings().with(|s| s.ring.window = Some(64 << 10));
    let error = Candidate::new(layout.topology(), 0, small).err().expect("81 lanes in 64 KiB");
    assert!(matches!(error, JoinError::TooSmall(_)), "{error}");
    let text = error.to_string();
    let (_, needed) = text.rsplit_once("NTBRING_WINDOW=").unwrap();
    let needed: u64 = needed.split_whitespace().next().unwrap().parse().unwrap();
    assert!(Candidate::new(layout.topology(), 0, settings().with(|s| s.ring.window = Some(needed))).is_ok(), "{text}");
}

fn cards(ranks: usize) -> (Vec<Candidate>, Vec<Card>) {
    let layout = Layout::blocks(&vec![1; ranks]);
    let brief = settings().with(|s| s.ring.connect_timeout = Duration::from_secs(1));
    let candidates: Vec<_> =
        (0..ranks as u32).map(|r| Candidate::new(layout.topology(), r, brief.clone()).unwrap()).collect();
    let cards = candidates.iter().map(Candidate::card).collect();
    (candidates, cards)
}

#[test]
fn neighbours_that_do_not_come_are_named() {
    let (mut candidates, cards) = cards(4);
    let error = candidates.swap_remove(0).join(&cards).err().expect("no other host has joined");
    match &error {
        JoinError::Timeout { host: 0, whom, seconds: 1 } => assert!(whom.contains("host 3"), "{whom}"),
        other => panic!("{other}"),
    }
    assert!(error.to_string().contains("NTBRING_CONNECT_TIMEOUT"));
}

#[test]
fn neighbours_that_have_died_are_named() {
    let (mut candidates, mut cards) = cards(3);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    child.wait().unwrap();
    cards[2].pid = child.id();
    match candidates.swap_remove(0).join(&cards).err() {
        Some(JoinError::Died { rank: 2, host: 2, pid }) => assert_eq!(pid, child.id()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn cards_that_cannot_be_used_are_refused() {
    let (mut candidates, mut others) = cards(3);
    others[2].device = Device::Shared("/dev/shm".into()).kind();
    let error = candidates.swap_remove(0).join(&others).err().expect("rank 2 has another kind of device").to_string();
    assert_eq!(error, "rank 0 and rank 2 disagree on NTBRING_DEVICE: emu here, emu:DIR there");
    let (mut candidates, mut others) = cards(3);
    others[2].host = None;
    assert!(matches!(candidates.swap_remove(0).join(&others).err(), Some(JoinError::Address { rank: 2, .. })));
    let (mut candidates, mut others) = cards(3);
    if let Some(host) = &mut others[1].host {
        // Changes the token of the file.
        host.fabric.0[16] ^= 1;
    }
    assert!(matches!(candidates.swap_remove(0).join(&others).err(), Some(JoinError::Host(_))));
    let bytes = others[0].bytes();
    for len in 0..bytes.len() {
        assert!(Card::parse(&bytes[..len]).is_err());
    }
    assert_eq!(Card::parse(&bytes), Ok(others[0]));
    let mut other = bytes;
    other[0] ^= 1;
    assert!(Card::parse(&other).is_err());
}
