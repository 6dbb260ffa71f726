//! The boards of an adapter: each agent writes its latest announcements into the neighbour's window as a whole.
//!
//! | offset in the board | holds |
//! |---|---|
//! | 0 | number of this text; 0: there is none |
//! | 8 | length of the text, bytes, and in the upper half its checksum |
//! | 16 | the text |

use super::state::{Adapter, State};
use crate::control::{AREA, BOARD};
use std::sync::atomic::Ordering;

const TEXT: u64 = 16;

/// Longest text of a board, bytes.
pub const TEXT_MAX: usize = (AREA - BOARD - TEXT) as usize;

impl Adapter {
    /// Writes a text into the neighbour's window: now, and each time the link has come up. Texts that are too long are
    /// refused; returns false then.
    pub fn post(&self, text: &[u8]) -> bool {
        if text.len() > TEXT_MAX {
            return false;
        }
        let mut state = self.state();
        state.posted = text.to_vec();
        self.repost(&mut state);
        true
    }

    /// Writes the latest text again, if the link is up.
    pub(crate) fn repost(&self, state: &mut State) {
        let (Some(_), Some(bringing)) = (state.peer, &state.setup) else { return };
        if state.posted.is_empty() {
            return;
        }
        state.posts += 1;
        let (window, number) = (&bringing.page, state.posts);
        let about = u64::from(checksum(number, &state.posted)) << 32 | state.posted.len() as u64;
        window.write_bytes((BOARD + TEXT) as usize, &state.posted);
        window.store(BOARD as usize + 8, about);
        window.fence();
        window.store(BOARD as usize, number);
        window.fence();
        // The doorbell may overtake the text; the neighbour also looks without one.
        self.ring(0);
    }

    /// Returns the neighbour's text if it is new and has arrived as a whole.
    pub fn take_posted(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        state.peer?;
        let word = |offset: u64| self.page.word(offset as usize).load(Ordering::Acquire);
        let number = word(BOARD);
        if number == 0 || number == state.taken {
            return None;
        }
        let about = word(BOARD + 8);
        let len = (about & 0xffff_ffff) as usize;
        if len > TEXT_MAX {
            return None;
        }
        let mut text = vec![0; len];
        ntbring_memory::InWindow::new(self.page.clone()).read((BOARD + TEXT) as usize, &mut text);
        if u64::from(checksum(number, &text)) != about >> 32 {
            return None;
        }
        state.taken = number;
        Some(text)
    }
}

fn checksum(number: u64, text: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&number.to_le_bytes()), text)
}
