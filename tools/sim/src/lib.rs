//! The ring in virtual time: what it would do at sizes that nobody here can build, and with links that nobody here has.
//!
//! Nothing in here looks at a clock or at chance: a plan and its seed give the same run, event by event. Whatever decides
//! something is the code that decides it in a job, as far as it has no I/O: lanes and their heads ([`ntbring_queue`]), ways
//! round a ring and its dateline ([`ntbring_ring::Topology`]), the network manager and its tables, the stewards of hosts
//! whose links may go down, both halves of an end-to-end connection, the price list of a link model. What is simulated is
//! what lies between: threads, memory, links, doorbells. docs/simulator.md says what that leaves out.
//!
//! | file | holds |
//! |---|---|
//! | `agenda` | time, and what happens next |
//! | `parameters` | figures of links, hosts and protocols, from a file |
//! | `net` | hosts, ports, routes |
//! | `traffic` | who sends what, when |
//! | `plan` | all that a run is made of |
//! | `lane` | a lane over ordinary memory |
//! | `machine`, `messages` | a run: its state, its events; what becomes of messages |
//! | `multicast` | messages to a list of hosts: which part of the list takes which link |
//! | `pool`, `work` | which thread does what next; what it does with packets, and how long that takes |
//! | `carry` | messages that are sent again until they have come |
//! | `control` | links that go down, and the stewards that lead round them |
//! | `report` | what a run has found out |
//! | `retry` | one connection over a link that loses packets: how many attempts it takes |

pub mod agenda;
mod carry;
mod control;
pub mod lane;
mod machine;
mod messages;
mod multicast;
pub mod net;
pub mod parameters;
pub mod plan;
mod pool;
pub mod report;
pub mod retry;
pub mod traffic;
mod work;

#[cfg(test)]
mod tests;

pub use parameters::Parameters;
pub use plan::{Plan, SimError};
pub use report::Report;

/// Runs a plan until everything has come.
pub fn run(plan: &Plan) -> Result<Report, SimError> {
    machine::Simulation::new(plan)?.run()
}
