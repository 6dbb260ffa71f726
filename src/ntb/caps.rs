//! Capabilities of ports, and shortcuts beside them.

use ntbring_memory::Mapping;
use std::fmt;
use std::ops::BitAnd;

/// What a port can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortCaps {
    /// The kind of mapping of the outgoing window.
    pub mapping: Mapping,
    /// Windows in each direction.
    pub windows: usize,
    /// Multiple that the address of an outgoing window must have, bytes.
    pub window_align: u64,
    /// Multiple that its size must have, bytes.
    pub window_size_align: u64,
    /// Largest size of a window, bytes.
    pub window_max: u64,
    /// Scratchpad registers of 32 bits on each side.
    pub scratchpads: usize,
    /// Doorbell bits on each side.
    pub doorbells: usize,
    /// Interrupt vectors that these bits raise.
    pub vectors: usize,
    /// Most bytes of one transfer into the outgoing window; None: any number. The writer must obey it ([`crate::cut`]).
    pub max_transfer: Option<usize>,
    /// Whether copies can be submitted and completed later.
    pub async_copies: bool,
}

impl PortCaps {
    /// Those of a port whose bridge is memory of this machine.
    pub const SOFTWARE: PortCaps = PortCaps {
        mapping: Mapping::Coherent,
        windows: 1,
        window_align: 4096,
        window_size_align: 4096,
        window_max: 1 << 40,
        scratchpads: crate::SCRATCHPADS,
        doorbells: crate::DOORBELLS,
        vectors: crate::DOORBELLS,
        max_transfer: None,
        async_copies: false,
    };

    /// The same port behind a decorator that models a link: its window does not behave like memory of this machine.
    pub fn modelled(self) -> PortCaps {
        PortCaps { mapping: Mapping::WriteCombining, ..self }
    }
}

/// Possibilities that two hosts have only if both are on one machine. A port grants them for the host at its other end,
/// the setting `NTBRING_SHORTCUTS` withholds them, and everything works without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortcuts {
    /// The kernel copies between processes of both hosts, by process id.
    pub kernel_copies: bool,
    /// A process may map segments of the other host's processes, for reading and writing.
    pub segments: bool,
}

/// All shortcuts with their names.
const NAMES: [&str; 2] = ["kernel-copies", "segments"];

impl Shortcuts {
    /// Every shortcut.
    pub const ALL: Shortcuts = Shortcuts { kernel_copies: true, segments: true };
    /// No shortcut: two machines.
    pub const NONE: Shortcuts = Shortcuts { kernel_copies: false, segments: false };

    /// Reads `all`, `none`, or names joined by `+`.
    pub fn parse(text: &str) -> Result<Shortcuts, String> {
        let mut shortcuts = Shortcuts::NONE;
        for name in text.split('+') {
            match name {
                "all" if text == "all" => return Ok(Shortcuts::ALL),
                "none" if text == "none" => return Ok(Shortcuts::NONE),
                "kernel-copies" => shortcuts.kernel_copies = true,
                "segments" => shortcuts.segments = true,
                _ => return Err(format!("{name:?} is no shortcut")),
            }
        }
        Ok(shortcuts)
    }
}

impl Default for Shortcuts {
    fn default() -> Self {
        Shortcuts::ALL
    }
}

impl BitAnd for Shortcuts {
    type Output = Shortcuts;

    /// The shortcuts that both have.
    fn bitand(self, other: Shortcuts) -> Shortcuts {
        Shortcuts {
            kernel_copies: self.kernel_copies && other.kernel_copies,
            segments: self.segments && other.segments,
        }
    }
}

impl fmt::Display for Shortcuts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Shortcuts::ALL => f.write_str("all"),
            Shortcuts::NONE => f.write_str("none"),
            Shortcuts { kernel_copies: true, .. } => f.write_str(NAMES[0]),
            Shortcuts { .. } => f.write_str(NAMES[1]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for text in ["all", "none", "kernel-copies", "segments"] {
            assert_eq!(Shortcuts::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Shortcuts::parse("segments+kernel-copies"), Ok(Shortcuts::ALL));
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
