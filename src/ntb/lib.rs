//! The device: the interface of one NTB adapter to the protocol, decorators of it, and ports without an adapter.
//!
//! | module | holds |
//! |---|---|
//! | `port`, `port_index` | [`Port`]: the operations of an adapter; the numbers of a host's ports |
//! | `side` | [`Side`]: the directions of a ring, for those decorators that concern them |
//! | [`fabric`] | backends, which open the ports of a host |
//! | `caps` | capabilities of ports, and shortcuts: faster paths between hosts on one machine |
//! | [`weak`], [`trace`], [`fault`], [`timing`], [`split`], [`demux`] | decorators, which wrap a port or a window |
//! | [`deferred`] | a copy engine whose copies complete later, for tests |
//! | [`notice`] | doorbells that are rung only if a thread sleeps, without a read across the link |
//! | [`settings`] | settings of links |
//! | [`software`], [`loopback`] | ports whose bridge is shared memory; the backend between threads of one process |
//! | [`narrow`] | a loopback backend with few capabilities, for tests |
//!
//! `ntbring-emu` emulates adapters between processes of one machine. `tests/port_conformance` is the suite that every
//! backend and decorator must pass.

mod caps;
pub mod deferred;
mod delegate;
pub mod demux;
pub mod fabric;
pub mod fault;
pub mod loopback;
pub mod narrow;
pub mod notice;
mod port;
mod port_index;
pub mod settings;
mod side;
pub mod software;
pub mod split;
pub mod timing;
pub mod trace;
pub mod weak;

pub use caps::{AsyncCopies, PortCaps, Shortcuts, DOORBELLS, SCRATCHPADS};
pub use port::{LinkState, NtbError, Port, Ticket, Vector};
pub use port_index::{PortIndex, PortList};
pub use settings::LinkSettings;
pub use side::Side;
