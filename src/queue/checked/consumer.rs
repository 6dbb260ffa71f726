//! Verification of entries in a checked lane, and the control words that its consumer sends to the producer.

use super::word::{checksum, seal, unseal, Word, CHECK};
use crate::{Corrupt, Tag, LINE, TAG};
use crate::{Damage, Reliability};
use ntbring_memory::{InWindow, OutWindow, Region};

/// Number of looks at a damaged entry between two complaints: the first complaint may have been lost.
const LOOKS: u32 = 256;

/// Additional state of a checked consumer.
pub(crate) struct Verifier {
    mode: Reliability,
    /// Destination to which verified entries are copied: a late duplicate may still overwrite the entry in the lane.
    copy_out: OutWindow,
    /// Word in which the producer announces its tail.
    tail: InWindow,
    /// The latest announcement that was read.
    announcement: u64,
    buffer: Vec<u8>,
    /// Place of the latest complaint, and number of checks of it since.
    complained: Option<(u64, u32)>,
    complaints: u32,
    heads: u32,
    /// Number of entries that were damaged or missing.
    pub damaged: u64,
}

/// Result of a check of the line at which the next entry must begin.
pub(crate) enum Finding {
    /// The entry is there and was verified.
    Entry(Tag),
    /// The entry is not there yet.
    Nothing,
}

impl Verifier {
    /// Returns the verifier and the window from which verified entries are read.
    pub fn new(mode: Reliability, lines: usize, tail: InWindow) -> (Verifier, InWindow) {
        let region = Region::anonymous(lines * LINE);
        let verifier = Verifier {
            mode,
            copy_out: OutWindow::new(region.clone()),
            tail,
            announcement: 0,
            buffer: Vec::new(),
            complained: None,
            complaints: 0,
            heads: 0,
            damaged: 0,
        };
        (verifier, InWindow::new(region))
    }

    /// Looks for the entry that begins at line `at`, which has the absolute number `place`. `max` is the largest
    /// number of bytes that it may have. The producer may overwrite all lines before `head`.
    pub fn find(
        &mut self,
        lane: &InWindow,
        credit: &OutWindow,
        (at, place): (usize, u64),
        sequence: u16,
        max: usize,
        head: u64,
    ) -> Result<Finding, Corrupt> {
        let mut damage = match self.verify(lane, (at, place), sequence, max) {
            Ok(Some(tag)) => return Ok(Finding::Entry(tag)),
            Ok(None) => None,
            Err(damage) => Some(damage),
        };
        let announcement = self.tail.load(0);
        if announcement != std::mem::replace(&mut self.announcement, announcement) {
            let lines = (lane.len() / LINE) as u64;
            match unseal(Word::Tail, announcement, place, lines) {
                // All entries were consumed, but the producer does not know it.
                Some((tail, _)) if tail == place => self.return_head(credit, head),
                Some(_) => {
                    // The entry may have arrived between the two looks.
                    damage = match self.verify(lane, (at, place), sequence, max) {
                        Ok(Some(tag)) => return Ok(Finding::Entry(tag)),
                        Ok(None) => Some(Damage::Missing),
                        Err(damage) => Some(damage),
                    };
                    self.complained = None;
                }
                None => {}
            }
        }
        match damage {
            None => {}
            Some(damage) if self.mode == Reliability::Detect => return Err(Corrupt::Damaged { line: at, damage }),
            Some(damage) => self.complain(credit, place, damage),
        }
        Ok(Finding::Nothing)
    }

    /// Verifies the entry, copies its bytes and returns its tag; returns None if it is not there.
    fn verify(
        &mut self,
        lane: &InWindow,
        (at, place): (usize, u64),
        sequence: u16,
        max: usize,
    ) -> Result<Option<Tag>, Damage> {
        let word = lane.load(at * LINE);
        if !Tag::carries(word, sequence) {
            return Ok(None);
        }
        let tag = Tag::parse(word).filter(|tag| tag.len as usize <= max).ok_or(Damage::Checksum)?;
        let len = tag.len as usize;
        self.buffer.resize(len + CHECK, 0);
        lane.read(at * LINE + TAG, &mut self.buffer);
        let (bytes, check) = self.buffer.split_at(len);
        if check != checksum(place, word, bytes).to_le_bytes() {
            return Err(Damage::Checksum);
        }
        self.copy_out.write_bytes(at * LINE + TAG, bytes);
        self.complained = None;
        Ok(Some(tag))
    }

    fn complain(&mut self, credit: &OutWindow, place: u64, damage: Damage) {
        match &mut self.complained {
            Some((of, looks)) if *of == place && *looks < LOOKS => {
                *looks += 1;
                return;
            }
            _ => self.complained = Some((place, 0)),
        }
        self.damaged += 1;
        self.complaints = (self.complaints + 1) & 0x7ff;
        let missing = u32::from(damage == Damage::Missing);
        credit.store(8, seal(Word::Complaint, place, self.complaints << 1 | missing));
        credit.fence();
    }

    /// Writes the head to the producer's memory.
    pub fn return_head(&mut self, credit: &OutWindow, head: u64) {
        self.heads = (self.heads + 1) & 0xfff;
        credit.fence();
        credit.store(0, seal(Word::Head, head, self.heads));
        credit.fence();
    }
}
