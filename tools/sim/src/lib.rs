//! The ring in virtual time: its behaviour at sizes and with links that are not available as hardware.
//!
//! The simulation uses neither clocks nor true randomness: a plan and its seed give the same run, event by event.
//! Decisions are taken by the code that takes them in a job, as far as it has no I/O: lanes and their heads
//! ([`ntbring_queue`]), routes around a ring and its dateline ([`ntbring_ring::Topology`]), the network manager and its
//! tables, the manager drivers of hosts with links that may go down, both halves of an end-to-end connection, the
//! schedules of collectives, the costs of a link model. Simulated are the parts between them: threads, memory, links, doorbells. docs/simulator.md
//! describes the limits of this model.
//!
//! | file | contents |
//! |---|---|
//! | `agenda` | virtual time and the event queue |
//! | `parameters` | parameters of links, hosts and protocols, from a file |
//! | `net` | hosts, ports, routes |
//! | `traffic` | patterns, times and traces of messages |
//! | `plan` | the complete description of a run |
//! | `lane` | a lane over ordinary memory |
//! | `run`, `machine` | a run; its state and events |
//! | `messages` | sending and delivery of messages |
//! | `collective` | collectives: the steps of each host's rank |
//! | `multicast` | messages to a list of hosts: the part of the list that each link carries |
//! | `threads`, `pool`, `work` | threads: their state, their scheduling, their work on packets and its cost |
//! | `connections`, `carry` | messages that are retransmitted until they arrive |
//! | `drivers`, `control` | links that go down, and the manager drivers that re-route around them |
//! | `report` | the results of a run |
//! | `retry` | one connection over a link that loses packets: number of attempts |

pub mod agenda;
mod carry;
pub mod collective;
mod connections;
mod control;
mod drivers;
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
mod run;
mod threads;
pub mod traffic;
mod work;

#[cfg(test)]
mod tests;

pub use parameters::Parameters;
pub use plan::{Plan, SimError};
pub use report::Report;

/// Runs a plan until everything has arrived.
pub fn run(plan: &Plan) -> Result<Report, SimError> {
    machine::Simulation::new(plan)?.run()
}
