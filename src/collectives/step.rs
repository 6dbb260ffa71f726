//! Steps of one rank, and tables of them.

/// A buffer of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// This rank's contribution. If the collective is in place, it is the output.
    Input,
    /// This rank's result; the vector of a broadcast.
    Output,
    /// Memory for the time of the collective, of [`crate::Schedule::scratch`] elements.
    Scratch,
}

/// A position in a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The buffer.
    pub buffer: Buffer,
    /// Number of elements before the position.
    pub offset: u64,
}

impl Place {
    pub(crate) fn new(buffer: Buffer, offset: u64) -> Place {
        Place { buffer, offset }
    }
}

/// A step that the caller carries out before it asks for the next one. `count` is a number of elements; a request is a
/// number below [`crate::Schedule::requests`] that is free until a send or receive begins with it, and again once that
/// has been waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begins to send elements to a rank.
    Send {
        /// Receiver.
        to: u32,
        /// First element.
        from: Place,
        /// Number of elements.
        count: u64,
        /// Number of the request.
        request: u32,
    },
    /// Begins to receive elements from a rank.
    Receive {
        /// Sender.
        from: u32,
        /// Place of the first element.
        to: Place,
        /// Number of elements.
        count: u64,
        /// Number of the request.
        request: u32,
    },
    /// Waits until the elements of a send may be overwritten.
    Sent {
        /// Number of the request.
        request: u32,
    },
    /// Waits until a receive is complete, of exactly `count` elements.
    Received {
        /// Number of the request.
        request: u32,
        /// Number of elements.
        count: u64,
    },
    /// Copies elements.
    Copy {
        /// First element.
        from: Place,
        /// Place of the first copy.
        to: Place,
        /// Number of elements.
        count: u64,
    },
    /// Combines elements with those of another place, which get the results.
    Reduce {
        /// First element.
        from: Place,
        /// First element to be replaced by a result.
        to: Place,
        /// Number of elements.
        count: u64,
    },
}

/// A table of steps: phases of rounds, each of which has the same number of slots, some of which are empty.
pub(crate) trait Table {
    /// Returns the numbers of rounds and of slots in each round of a phase; None after the last phase.
    fn phase(&self, phase: u32) -> Option<(u64, u32)>;

    /// Returns the step in a slot; None if it is empty.
    fn step(&self, phase: u32, round: u64, slot: u32) -> Option<Step>;

    /// Returns the number of elements of scratch memory.
    fn scratch(&self) -> u64;

    /// Returns an upper limit of the requests' numbers.
    fn requests(&self) -> u32;
}
