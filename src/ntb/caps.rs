//! Capabilities of ports, and shortcuts: faster paths between hosts that are on one machine.

use ntbring_memory::Mapping;
use std::fmt;
use std::ops::BitAnd;

/// Number of scratchpad registers on each side of a link; each holds 32 bits.
pub const SCRATCHPADS: usize = 8;
/// Number of doorbell bits on each side of a link.
pub const DOORBELLS: usize = 16;

/// Capabilities of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortCaps {
    /// The kind of mapping of the outgoing window.
    pub mapping: Mapping,
    /// Number of windows in each direction.
    pub windows: usize,
    /// Alignment of the address of an outgoing window, bytes.
    pub window_align: u64,
    /// Alignment of the size of an outgoing window, bytes.
    pub window_size_align: u64,
    /// Largest size of a window, bytes.
    pub window_max: u64,
    /// Number of 32-bit scratchpad registers on each side.
    pub scratchpads: usize,
    /// Number of doorbell bits on each side.
    pub doorbells: usize,
    /// Number of interrupt vectors that the doorbell bits raise.
    pub vectors: usize,
    /// Largest transfer into the outgoing window, bytes; None: unlimited. The writer must keep to it
    /// ([`crate::split`]).
    pub max_transfer: Option<usize>,
    /// Asynchronous copies by an engine of the port ([`Port::copy_engine`](crate::Port::copy_engine)); None if there is
    /// no engine, and the processor makes all copies.
    pub async_copies: Option<AsyncCopies>,
    /// True if memory of processes of the neighbour can be written through the port
    /// ([`Port::segment`](crate::Port::segment)).
    pub segments: bool,
}

/// Capabilities of a port's copy engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncCopies {
    /// Largest number of copies in flight.
    pub in_flight: usize,
    /// Smallest copy for which the engine is faster than the processor, bytes.
    pub min: usize,
}

impl PortCaps {
    /// Capabilities of a port whose bridge is memory of this machine.
    pub const SOFTWARE: PortCaps = PortCaps {
        mapping: Mapping::Coherent,
        windows: 1,
        window_align: 4096,
        window_size_align: 4096,
        window_max: 1 << 40,
        scratchpads: SCRATCHPADS,
        doorbells: DOORBELLS,
        vectors: DOORBELLS,
        max_transfer: None,
        async_copies: None,
        segments: false,
    };

    /// Returns the same capabilities for a port that reaches memory of processes of the neighbour, or does not.
    pub fn with_segments(self, segments: bool) -> PortCaps {
        PortCaps { segments, ..self }
    }

    /// Returns the number of doorbells that can be used: each of them has an interrupt vector of its own.
    pub fn usable_doorbells(self) -> usize {
        self.doorbells.min(self.vectors).min(DOORBELLS)
    }

    /// Returns the size of a window for `wanted` bytes: the next size that the device can map; None if that is larger
    /// than its largest window.
    pub fn window_for(self, wanted: u64) -> Option<u64> {
        let size = wanted.next_multiple_of(self.window_size_align.max(1));
        (size <= self.window_max).then_some(size)
    }

    /// Returns the capabilities of the port behind a decorator that models a link: its window does not behave like
    /// memory of this machine, and neither an engine nor a segment bypasses the decorator.
    pub fn modelled(self) -> PortCaps {
        PortCaps { mapping: Mapping::WriteCombining, async_copies: None, segments: false, ..self }
    }
}

/// Shortcuts: faster paths that two hosts have only if both are on one machine. A port grants them for the host at its
/// other end, the setting `NTBRING_SHORTCUTS` withholds them, and everything works without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcuts {
    /// Kernel copies (CMA) between processes of the two hosts, by process id.
    pub kernel_copies: bool,
    /// Mapping of the segments of the other host's processes, for reading and writing.
    pub segments: bool,
    /// Reading the windows that the other host's neighbours write.
    pub windows: bool,
    /// Watching the other host's processes, by process id; without it, hosts report the ends of their processes to each
    /// other.
    pub processes: bool,
    /// Lanes in memory of the receiving process, for messages between processes whose hosts are not neighbours.
    pub lanes: bool,
}

impl Shortcuts {
    /// Every shortcut.
    pub const ALL: Shortcuts =
        Shortcuts { kernel_copies: true, segments: true, windows: true, processes: true, lanes: true };
    /// No shortcut, as between two machines.
    pub const NONE: Shortcuts =
        Shortcuts { kernel_copies: false, segments: false, windows: false, processes: false, lanes: false };

    /// Parses `all`, `none`, or names joined by `+`. The error names the part that is not a shortcut.
    pub fn parse(text: &str) -> Result<Shortcuts, String> {
        let mut shortcuts = Shortcuts::NONE;
        for name in text.split('+') {
            match name {
                "all" if text == "all" => return Ok(Shortcuts::ALL),
                "none" if text == "none" => return Ok(Shortcuts::NONE),
                "kernel-copies" => shortcuts.kernel_copies = true,
                "segments" => shortcuts.segments = true,
                "windows" => shortcuts.windows = true,
                "processes" => shortcuts.processes = true,
                "lanes" => shortcuts.lanes = true,
                _ => return Err(format!("{name:?} is no shortcut")),
            }
        }
        Ok(shortcuts)
    }

    /// Returns the code of the set: a bit for each shortcut, in the order of their names; less than 32.
    pub fn code(self) -> u8 {
        self.named().iter().enumerate().map(|(bit, (granted, _))| u8::from(*granted) << bit).sum()
    }

    /// Returns the set with a code; bits of no shortcut are ignored.
    pub fn of_code(code: u8) -> Shortcuts {
        let has = |bit: u8| code >> bit & 1 == 1;
        Shortcuts { kernel_copies: has(0), segments: has(1), windows: has(2), processes: has(3), lanes: has(4) }
    }

    /// Returns those that carry no data. A decorator of a port grants only these: the others would bypass it.
    pub fn past_links(self) -> Shortcuts {
        Shortcuts { processes: self.processes, ..Shortcuts::NONE }
    }

    /// Returns the shortcuts with their names.
    fn named(self) -> [(bool, &'static str); 5] {
        [
            (self.kernel_copies, "kernel-copies"),
            (self.segments, "segments"),
            (self.windows, "windows"),
            (self.processes, "processes"),
            (self.lanes, "lanes"),
        ]
    }
}

impl Default for Shortcuts {
    fn default() -> Self {
        Shortcuts::ALL
    }
}

impl BitAnd for Shortcuts {
    type Output = Shortcuts;

    /// Returns the shortcuts that both operands have.
    fn bitand(self, other: Shortcuts) -> Shortcuts {
        Shortcuts {
            kernel_copies: self.kernel_copies && other.kernel_copies,
            segments: self.segments && other.segments,
            windows: self.windows && other.windows,
            processes: self.processes && other.processes,
            lanes: self.lanes && other.lanes,
        }
    }
}

impl fmt::Display for Shortcuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Shortcuts::ALL => f.write_str("all"),
            Shortcuts::NONE => f.write_str("none"),
            _ => {
                let named = self.named().into_iter().filter(|(granted, _)| *granted).map(|(_, name)| name);
                f.write_str(&named.collect::<Vec<_>>().join("+"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        let names = ["kernel-copies", "segments", "windows", "processes", "lanes"];
        for text in names.into_iter().chain(["all", "none", "kernel-copies+segments"]) {
            let shortcuts = Shortcuts::parse(text).unwrap();
            assert_eq!(shortcuts.to_string(), text);
            assert_eq!(Shortcuts::of_code(shortcuts.code()), shortcuts);
        }
        assert_eq!(Shortcuts::parse("segments+processes+windows+lanes+kernel-copies"), Ok(Shortcuts::ALL));
        for text in ["", "all+none", "segments+", "memory"] {
            assert!(Shortcuts::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_shortcuts_of_both_are_common() {
        let segments = Shortcuts::parse("segments").unwrap();
        assert_eq!(segments & Shortcuts::ALL, segments);
        assert_eq!(segments & Shortcuts::parse("kernel-copies").unwrap(), Shortcuts::NONE);
    }
}
