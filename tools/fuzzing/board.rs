//! A neighbour that writes any words into the boards of small collectives.

use crate::script::Script;
use ntbring_memory::{InWindow, OutWindow, Region};
use ntbring_queue::{post_max, BoardLayout, BoardReader, BoardWriter, CoreId};

const LAYOUT: BoardLayout = BoardLayout { places: 3, place_bytes: 128 };

/// Runs one input.
pub fn run(data: &[u8]) {
    let mut script = Script(data);
    let [region, onward] = [(); 2].map(|()| Region::anonymous(LAYOUT.bytes()));
    let (hostile, mut reader) =
        (OutWindow::new(region.clone()), BoardReader::new(InWindow::new(region.clone()), LAYOUT));
    let (mut honest, mut next) =
        (BoardWriter::new(OutWindow::new(region), LAYOUT), BoardWriter::new(OutWindow::new(onward), LAYOUT));
    while !script.is_over() {
        let place = usize::from(script.below(LAYOUT.places as u8));
        match script.below(5) {
            0 => hostile.store(8 * usize::from(script.byte()) % LAYOUT.bytes(), script.word()),
            // A length and a round that are nearly right.
            1 => {
                let word =
                    u64::from(script.below(4)) | u64::from(script.short()) << 32 | u64::from(script.short()) << 48;
                hostile.store(place * LAYOUT.place_bytes, word);
            }
            2 => {
                honest.post(place, &script.some(post_max(LAYOUT.place_bytes)), false, CoreId::new(script.byte().into()))
            }
            3 => {
                honest.turn();
                reader.turn();
                next.turn();
            }
            _ => {}
        }
        if let Ok(Some(posted)) = reader.look(place) {
            let mut bytes = vec![0; posted.len];
            reader.read(place, &mut bytes);
            next.repost(place, reader.foreign(place, posted.len), posted);
        }
    }
}
