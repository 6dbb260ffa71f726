//! Receiving: the lanes from other ranks, and the streams that are open in them.
//!
//! | file | holds |
//! |---|---|
//! | `inbox` | one incoming lane |
//! | `inbound` | taking entries from all lanes in turns |
//! | `record` | messages in the timeline |
//! | `attach` | the set of lanes; peers that come and go |
//! | `describe` | descriptions and counters |

mod attach;
mod describe;
mod inbound;
mod inbox;
mod record;
#[cfg(test)]
mod tests;

pub use inbound::Inbound;
