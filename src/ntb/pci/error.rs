//! Errors of adapters.

use crate::identity::{Identity, PciAddress};

/// Error of an adapter or of its driver.
#[derive(Debug, thiserror::Error)]
pub enum PciError {
    /// The function does not exist.
    #[error("there is no PCI function {address}")]
    Missing {
        /// The address.
        address: PciAddress,
    },
    /// There is no driver for the function.
    #[error("{identity}: {chip}; {advice}")]
    Unknown {
        /// The function.
        identity: Identity,
        /// Kind of the function.
        chip: &'static str,
        /// Advice on it, or the drivers that exist.
        advice: &'static str,
    },
    /// The function is a known one, in a mode that cannot be used.
    #[error("{chip} {identity}: {problem}. {help}")]
    Unusable {
        /// Name of the chip.
        chip: &'static str,
        /// The function.
        identity: Identity,
        /// The problem.
        problem: String,
        /// The way to mend it.
        help: &'static str,
    },
    /// A register did not take a value.
    #[error("{chip} {identity}: register {register} holds {found:#x} instead of {written:#x}. {help}")]
    ReadBack {
        /// Name of the chip.
        chip: &'static str,
        /// The function.
        identity: Identity,
        /// Name of the register.
        register: &'static str,
        /// Value that was written.
        written: u64,
        /// Value that was read afterwards.
        found: u64,
        /// A likely cause.
        help: &'static str,
    },
    /// The registers return all ones.
    #[error("{identity} is gone: its registers return all ones (unplugged, in reset, or asleep)")]
    Gone {
        /// The function.
        identity: Identity,
    },
    /// There are no bus addresses for incoming memory.
    #[error("{identity}: there are no {size} bytes of free bus addresses for its window: use smaller windows (BIOS)")]
    NoAddresses {
        /// The function.
        identity: Identity,
        /// The size of the window, bytes.
        size: u64,
    },
    /// The kernel refused an operation on the function.
    #[error("{identity}: {operation}: {source}{help}")]
    System {
        /// The function.
        identity: Identity,
        /// The operation.
        operation: &'static str,
        /// The kernel's error.
        source: std::io::Error,
        /// The way to mend it, after a semicolon; may be empty.
        help: String,
    },
}
