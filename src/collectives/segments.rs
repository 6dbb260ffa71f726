//! A vector that is cut into segments, some of which are under way at a time: a software pipeline.

/// Number of segments in transit in each direction.
pub(crate) const DEPTH: u64 = 16;

/// Number of requests of four streams, two in each direction.
pub(crate) const REQUESTS: u32 = 4 * DEPTH as u32;

/// A vector that is cut into segments.
#[derive(Clone, Copy, Debug)]
pub struct Segments {
    elements: u64,
    /// Elements of a segment.
    most: u64,
    number: u64,
}

/// The segments of one round of a pipeline: the one to be received next, the one that arrives now, and the one that was
/// sent last with the same request.
#[derive(Default)]
pub struct Turn {
    pub next: Option<u64>,
    pub now: Option<u64>,
    pub past: Option<u64>,
}

impl Segments {
    pub fn new(elements: u64, most: u64) -> Segments {
        let number = elements.div_ceil(most);
        Segments { elements, most, number }
    }

    /// Returns the number of segments under way in each direction.
    fn depth(&self) -> u64 {
        self.number.min(DEPTH)
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the largest number of elements of a segment.
    pub fn span(&self) -> u64 {
        self.most.min(self.elements)
    }

    /// Returns the numbers of rounds and of slots in the phases of the pipeline: in the first only receives begin, in
    /// the last there are only sends to wait for. The latest stream comes `lag` rounds after the first.
    pub fn phase(&self, phase: u32, slots: [u32; 3], lag: u64) -> Option<(u64, u32)> {
        let slots = *slots.get(phase as usize)?;
        Some((if phase == 1 && self.number > 0 { self.number + lag } else { self.depth() }, slots))
    }

    /// Returns the segments of a round in a stream that comes `lag` rounds later than the first.
    pub fn turn(&self, phase: u32, round: u64, lag: u64) -> Turn {
        let depth = self.depth();
        match phase {
            0 => Turn { next: Some(round), ..Turn::default() },
            1 => {
                let now = round.checked_sub(lag).filter(|&now| now < self.number);
                let next = now.map(|now| now + depth).filter(|&next| next < self.number);
                Turn { next, now, past: now.and_then(|now| now.checked_sub(depth)) }
            }
            _ => Turn { past: Some(self.number - depth + round), ..Turn::default() },
        }
    }

    pub fn begin(&self, segment: u64) -> u64 {
        segment * self.most
    }

    pub fn length(&self, segment: u64) -> u64 {
        self.most.min(self.elements - self.begin(segment))
    }

    /// Returns the request for a segment in one of four streams.
    pub fn request(&self, stream: u32, segment: u64) -> u32 {
        stream * DEPTH as u32 + segment as u32 % self.depth() as u32
    }
}
