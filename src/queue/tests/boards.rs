//! Boards: two ranks, each of which needs data of the other in every round.

#[cfg(not(loom))]
use crate::{post_max, Corrupt};
use crate::{BoardLayout, BoardReader, BoardWriter, CoreId, Posted, PLACE};
use ntbring_memory::{InWindow, OutWindow, Region};

#[cfg(not(loom))]
const POST_MAX: usize = post_max(PLACE.0);

fn plan(places: usize) -> BoardLayout {
    BoardLayout { places, place_bytes: PLACE.0 }
}

fn board(region: &Region, places: usize) -> (BoardWriter, BoardReader) {
    let writer = BoardWriter::new(OutWindow::new(region.clone()), plan(places));
    (writer, BoardReader::new(InWindow::new(region.clone()), plan(places)))
}

/// The work of a rank in a round: posts its number in each slot and waits for the other rank's number.
#[cfg(loom)]
fn exchange(writer: &mut BoardWriter, reader: &mut BoardReader, turn: u64, places: usize) {
    writer.turn();
    reader.turn();
    for place in 0..places {
        writer.post(place, &(10 * turn + place as u64).to_le_bytes(), false, CoreId::new(3));
    }
    for place in 0..places {
        let posted = loop {
            match reader.look(place).expect("a correct board") {
                Some(posted) => break posted,
                None => loom::thread::yield_now(),
            }
        };
        assert_eq!(posted, Posted { len: 8, failed: false, core: CoreId::new(3) });
        let mut bytes = [0; 8];
        reader.read(place, &mut bytes);
        assert_eq!(bytes, (10 * turn + place as u64).to_le_bytes(), "turn {turn}, place {place} is torn");
    }
}

/// Returns the number of interleavings.
#[cfg(loom)]
fn check(turns: u64, places: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let regions = [(); 2].map(|()| Region::anonymous(plan(places).bytes()));
        let [(mut to_left, mut at_left), (mut to_right, mut at_right)] = [0, 1].map(|i| board(&regions[i], places));
        let left = loom::thread::spawn(move || {
            (0..turns).for_each(|turn| exchange(&mut to_right, &mut at_left, turn, places));
        });
        (0..turns).for_each(|turn| exchange(&mut to_left, &mut at_right, turn, places));
        left.join().unwrap();
    });
}

#[cfg(loom)]
#[test]
fn two_ranks_exchange_turn_by_turn() {
    check(4, 1);
    check(3, 2);
}

#[cfg(not(loom))]
#[test]
fn what_a_place_may_hold() {
    let region = Region::anonymous(plan(3).bytes());
    let (mut writer, mut reader) = board(&region, 3);
    for turn in 1..=5 {
        writer.turn();
        reader.turn();
        assert_eq!(reader.look(2), Ok(None), "turn {turn}");
        writer.post(2, &[turn; POST_MAX], turn == 4, CoreId::new(turn.into()));
        let posted = Posted { len: POST_MAX, failed: turn == 4, core: CoreId::new(turn.into()) };
        assert_eq!(reader.look(2), Ok(Some(posted)));
        let mut bytes = [0; POST_MAX];
        reader.read(2, &mut bytes);
        assert_eq!(bytes, [turn; POST_MAX]);
        // The other set of slots.
        assert_eq!(reader.look(1), Ok(None));
    }
    for word in [1, 4, 7, 5 | (POST_MAX as u64 + 1) << 32, u64::MAX] {
        OutWindow::new(region.clone()).store(4 * plan(3).place_bytes, word);
        assert_eq!(reader.look(1), Err(Corrupt::Place { place: 1, word, turn: 5 }));
    }
}

#[cfg(not(loom))]
#[test]
fn turns_go_round() {
    let region = Region::anonymous(plan(1).bytes());
    let (mut writer, mut reader) = board(&region, 1);
    for _ in 0..3 {
        writer.turn();
        reader.turn();
        writer.post(0, &[1], false, CoreId::default());
    }
    writer.skip_to(u32::MAX - 3);
    reader.skip_to(u32::MAX - 3);
    for turn in u32::MAX - 3..=u32::MAX {
        writer.post(0, &turn.to_le_bytes(), false, CoreId::new(3));
        writer.turn();
        reader.turn();
    }
    for turn in 0..5u8 {
        assert_eq!(reader.look(0), Ok(None), "turn {turn}");
        writer.post(0, &[turn], false, CoreId::default());
        assert_eq!(reader.look(0), Ok(Some(Posted { len: 1, failed: false, core: CoreId::default() })));
        writer.turn();
        reader.turn();
    }
}

#[cfg(not(loom))]
#[test]
#[should_panic(expected = "place 2 on a board of 2")]
fn there_are_no_more_places() {
    board(&Region::anonymous(plan(2).bytes()), 2).0.post(2, &[], false, CoreId::default());
}
