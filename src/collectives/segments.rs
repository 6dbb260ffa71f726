//! A vector that is cut into segments, some of which are under way at a time: a software pipeline.

/// Number of segments in transit in each direction.
pub(crate) const DEPTH: u64 = 4;

/// A vector that is cut into segments.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    elements: u64,
    /// Elements of a segment.
    most: u64,
    number: u64,
    /// Number of segments under way in each direction.
    depth: u64,
}

/// The segments of one round of a pipeline: the one to be received next, the one that arrives now, and the one that was
/// sent last with the same request.
pub struct Turn {
    pub next: Option<u64>,
    pub now: Option<u64>,
    pub past: Option<u64>,
}

impl Segments {
    pub fn new(elements: u64, most: u64) -> Segments {
        let number = elements.div_ceil(most);
        Segments { elements, most, number, depth: number.min(DEPTH) }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the largest number of elements of a segment.
    pub fn span(&self) -> u64 {
        self.most.min(self.elements)
    }

    /// Returns the numbers of rounds and of slots in the phases of the pipeline: in the first only receives begin, in
    /// the last there are only sends to wait for.
    pub fn phase(&self, phase: u32, slots: [u32; 3]) -> Option<(u64, u32)> {
        let slots = *slots.get(phase as usize)?;
        Some((if phase == 1 { self.number } else { self.depth }, slots))
    }

    /// Returns the segments of a round.
    pub fn turn(&self, phase: u32, round: u64) -> Turn {
        match phase {
            0 => Turn { next: Some(round), now: None, past: None },
            1 => {
                let next = Some(round + self.depth).filter(|&next| next < self.number);
                Turn { next, now: Some(round), past: round.checked_sub(self.depth) }
            }
            _ => Turn { next: None, now: None, past: Some(self.number - self.depth + round) },
        }
    }

    pub fn begin(&self, segment: u64) -> u64 {
        segment * self.most
    }

    pub fn length(&self, segment: u64) -> u64 {
        self.most.min(self.elements - self.begin(segment))
    }

    /// Returns the request for a segment in one of three streams.
    pub fn request(&self, stream: u32, segment: u64) -> u32 {
        stream * DEPTH as u32 + segment as u32 % self.depth as u32
    }
}
