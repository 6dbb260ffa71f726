//! Posts by bytes, by address, and of small blocks.

use super::*;
use crate::addresses::{of_cards, to_card, Blocks};

#[test]
fn the_way_of_blocks_is_tried_and_all_members_follow() {
    group_with(SingleCopy::Auto(0), 3, 1 << 16, |buffers, waiting| {
        // Enough for a trial of each kind.
        for turn in 0..900 {
            let kind = if turn % 3 == 0 { Kindness::Allgather } else { Kindness::Alltoall };
            let n = if turn % 5 == 0 { 8 } else { 40_000 };
            execute(buffers, waiting, kind, n, turn);
        }
    });
}

#[test]
fn blocks_that_member_0_does_not_measure_are_posted_by_bytes_unless_they_are_large() {
    let ways = group_with(SingleCopy::Auto(0), 3, 1 << 16, |buffers, waiting| {
        let (me, n, large) = (buffers.me(), 40_000, 768 << 10);
        let (input, mut output) = (vector(0, 0, n), vec![-1; n]);
        // Members 1 and 2 exchange blocks, and member 0 looks on.
        let parts = [0, 1, 2].map(|other| (0, if me * other == 2 { 4 * n } else { 0 }));
        for _ in 0..50 {
            let to = (room(&mut output), Parts::Each(&parts));
            buffers.alltoall((bytes(&input), Parts::Each(&parts)), to, waiting).unwrap();
        }
        [4 * n, large].map(|largest| buffers.way(Blocks::ForEach, bytes(&input), 4 * n, largest).by_address)
    });
    assert_eq!(ways, [[false, true]; 3]);
}

#[test]
fn only_large_blocks_of_alltoalls_begin_by_address() {
    let ways = group_with(SingleCopy::Auto(0), 2, 1 << 16, |buffers, waiting| {
        let large = 768 << 10;
        let input = vector(0, 0, large / 4);
        let mut begins = |blocks, n| buffers.way(blocks, bytes(&input).part(0, n), n, n).by_address;
        let ways = [(Blocks::ForEach, large), (Blocks::ForEach, large - 4), (Blocks::ForAll, large)]
            .map(|(blocks, n)| begins(blocks, n));
        execute(buffers, waiting, Kindness::Alltoall, large / 4, 0);
        ways
    });
    assert_eq!(ways, [[true, false, false]; 2]);
}

#[test]
fn a_buffer_that_the_kernel_does_not_copy_is_posted_by_bytes() {
    // No address of a process is as high, so the kernel refuses it as it does the memory of some devices.
    group_with(SingleCopy::Above(0), 2, 1 << 16, |buffers, waiting| {
        // SAFETY: the bytes are not accessed.
        let nowhere = unsafe { ForeignBytes::new((1usize << 63) as *const u8, 1 << 20) };
        assert!(!buffers.way(Blocks::ForAll, nowhere, 1 << 20, 1 << 20).by_address);
        assert!(buffers.way(Blocks::ForAll, bytes(&vector(0, 0, 100)), 400, 400).by_address);
        execute(buffers, waiting, Kindness::Alltoall, 40_000, 0);
    });
}

#[test]
fn blocks_of_another_size_than_expected_are_errors() {
    for (limits, numbers) in [(SingleCopy::Never, 2), (SingleCopy::Never, 9000), (SingleCopy::Above(0), 9000)] {
        let results = group_with(limits, 2, 1 << 15, |buffers, waiting| {
            let (me, input, mut output) = (buffers.me(), vector(0, 0, 2 * numbers), vec![0; 2 * numbers]);
            let parts = |other: usize| {
                let sizes = [0, 1].map(|i| if i == me { 4 } else { other });
                [(0, sizes[0]), (4 * numbers, sizes[1])]
            };
            // Member 1 sends less than member 0 expects.
            let (sends, receives) = (parts(4 * numbers - 4 * me), parts(4 * numbers));
            let (sent, received) = ((bytes(&input), Parts::Each(&sends)), (room(&mut output), Parts::Each(&receives)));
            let result = buffers.alltoall(sent, received, waiting);
            execute(buffers, waiting, Kindness::Alltoallv, 5000, 1);
            result
        });
        assert_eq!(results[0], Err(SharedError::OtherSize { member: 1 }), "{limits:?} {numbers}");
        // Member 1 is right, but may need more of the other.
        assert!(matches!(results[1], Ok(()) | Err(SharedError::Left { member: 0 })), "{results:?}");
    }
}

#[test]
fn members_agree_on_the_largest_limit() {
    let group = |limits: &[SingleCopy]| of_cards(limits.iter().map(|&limits| to_card(limits)));
    let (auto, above) = (SingleCopy::Auto(6144), SingleCopy::Above(0));
    assert_eq!([group(&[auto, auto]), group(&[above, above])], [auto, above]);
    assert_eq!(
        [group(&[above, auto, SingleCopy::Above(7000)]), group(&[auto, SingleCopy::Never])],
        [SingleCopy::Auto(7000), SingleCopy::Never]
    );
}
