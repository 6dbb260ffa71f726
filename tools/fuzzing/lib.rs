//! The bodies of the fuzzers of everything that other processes and neighbours write. `cargo xtask fuzz` runs them with
//! coverage feedback (`fuzz/fuzz_targets`), and each has a short run with fixed seeds as a test. A defect is a panic in
//! any thread, a signal, or a hang; a refusal is none.
//!
//! | module | input |
//! |---|---|
//! | [`agent_socket`] | requests of processes to the agent, in any order and form, and the memory that it shares with them |
//! | [`neighbour`] | all that a neighbour's agent writes: scratchpads, books, boards, lanes of records |
//! | [`link_setup`] | the scratchpads and the words of a link's bring-up, for its state machine alone |
//! | [`network`] | announcements of other hosts |
//! | [`window`] | all that a neighbour's processes write into the window of a host of a ring, while messages flow |
//! | [`lane`], [`board`], [`packet`], [`datagrams`], [`requests`], [`tunnels`], [`liveness`], [`manager`] | its parts, alone |
//! | [`handshake`], [`addresses`] | greetings of neighbours, and addresses of ranks |
//! | [`settings`], [`configuration`] | the environment, and the agent's configuration |

pub mod addresses;
pub mod agent_socket;
pub mod board;
#[path = "../../tests/common/mod.rs"]
#[allow(missing_docs)]
mod common;
#[path = "../ntbringd/config.rs"]
#[allow(dead_code)]
mod config;
pub mod configuration;
pub mod datagrams;
pub mod handshake;
pub mod lane;
pub mod link_setup;
pub mod liveness;
pub mod manager;
pub mod neighbour;
pub mod network;
pub mod packet;
pub mod requests;
mod script;
pub mod settings;
pub mod tunnels;
pub mod window;

#[cfg(test)]
mod tests;
