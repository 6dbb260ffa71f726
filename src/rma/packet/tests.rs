use super::*;
use proptest::prelude::*;

fn actions() -> impl Strategy<Value = Action> {
    let numbers =
        (0..Op::ALL.len(), 0..Kind::ALL.len()).prop_filter_map("not every kind has every op", |(op, kind)| {
            let (op, kind) = (Op::ALL[op], Kind::ALL[kind]);
            op.takes(kind).then_some((op, kind))
        });
    prop_oneof![
        Just(Action::Put),
        Just(Action::Get),
        Just(Action::AtomicSwap),
        numbers
            .clone()
            .prop_filter_map("not all are instructions", |(op, kind)| Action::parse(7, op as u8, kind as u8)),
        numbers.clone().prop_map(|(op, kind)| Action::Accumulate(op, kind)),
        numbers.prop_map(|(op, kind)| Action::Fetch(op, kind)),
        Just(Action::Swap),
        any::<bool>().prop_map(Action::Acquire),
        any::<bool>().prop_map(Action::Release),
    ]
}

proptest! {
    #[test]
    fn requests_survive_their_bytes(id: u32, action in actions(), segment: u64, offset: u64, count in 0u64..1000) {
        let len = match action {
            Action::Swap => count % (SWAP_MAX + 1),
            Action::AtomicSwap => 4 << (count % 2),
            Action::Atomic(_, kind) => kind.size() as u64,
            Action::Acquire(_) | Action::Release(_) => 0,
            _ => count * GRAIN as u64,
        };
        let request = Request { id, action, segment, offset, len };
        let operands = action.operands(len) as usize;
        prop_assert_eq!(Request::parse(&request.bytes(), operands), Ok(request));
        prop_assert_eq!(Request::parse(&request.bytes(), operands + 1), Err(id));
    }

    #[test]
    fn whatever_is_parsed_makes_sense(bytes: [u8; Request::LEN], few in 0usize..64, len: u64, action in 0u8..10) {
        let mut bytes = bytes;
        // Makes nearly valid requests likely.
        bytes[4] = action;
        bytes[7] = 0;
        bytes[24..].copy_from_slice(&if few < 32 { few as u64 } else { len }.to_le_bytes());
        match Request::parse(&bytes, few) {
            Ok(r) => {
                prop_assert_eq!(r.bytes(), {
                    let mut exact = bytes;
                    let [_, op, kind] = r.action.numbers();
                    exact[5..7].copy_from_slice(&[op, kind]);
                    exact
                });
                prop_assert_eq!(r.action.operands(r.len), few as u64);
                prop_assert!(r.action.fits(r.len) && r.len <= u64::from(u32::MAX));
            }
            Err(id) => prop_assert_eq!(&id.to_le_bytes()[..], &bytes[..4]),
        }
    }

    #[test]
    fn replies_survive_their_bytes_and_others_are_none(id: u32, status in 0u8..5, rank: u32, bytes: [u8; Reply::LEN]) {
        let status = match status {
            0 => Status::Done,
            1 => Status::Unknown,
            2 => Status::Outside,
            3 => Status::Impossible,
            _ => Status::Orphaned(rank),
        };
        let reply = Reply { id, status };
        prop_assert_eq!(Reply::parse(&reply.bytes()), Some(reply));
        if let Some(other) = Reply::parse(&bytes) {
            prop_assert_eq!(other.bytes(), bytes);
        }
    }
}
