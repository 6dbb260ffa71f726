//! Peers that are added after the ring was joined: processes outside it.
//!
//! | file | holds |
//! |---|---|
//! | `guest` | one such process, and its departure |
//! | `guests` | all of them, with their lanes |
//! | `greetings` | messages between two processes that have no communicator in common yet |

mod greetings;
mod guest;
mod guests;

pub use greetings::{Greetings, GREETING_MAX};
pub use guests::{Called, Guests};

/// Peers of a rank outside its job.
pub struct Dynamic {
    pub guests: Guests,
    pub greetings: Greetings,
}
