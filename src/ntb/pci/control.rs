//! The start of each window, which the agents at both ends use themselves.
//!
//! | offset | holds |
//! |---|---|
//! | 0 | words of the bring-up and of the ledger |
//! | [`BOARD`] | the text of the neighbour's agent |
//! | [`AREA`] | the area in which the link is measured |

/// Size of the start of each window that the adapters use themselves, bytes.
pub const CONTROL: u64 = 32 << 10;

/// Offset of the board, bytes.
pub const BOARD: u64 = 4096;

/// Offset of the area in which the link is measured, bytes.
pub const AREA: u64 = 24 << 10;
