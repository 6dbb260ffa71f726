//! Gateways: messages between processes of different jobs on different hosts.
//!
//! A process puts entries for an external peer on another host into a lane to a gateway, a part of the forwarder in the
//! first rank of its host (of its own job, or of the peer's job if only that job has ranks on both hosts). A *tunnel*
//! carries the entries through the ring to the gateway of the peer's host, which copies them into a lane to the peer:
//!
//! ```text
//!   sender --lane--> gateway ==tunnel over the ring==> gateway --lane--> receiver
//! ```
//!
//! The far gateway confirms what it has received, and what it has put into the receiver's lane. The near one keeps each
//! packet until it is confirmed, sends it again if necessary, and takes no more entries than the far one stores. So a
//! receiver that does not poll holds up its own tunnels only, and packets in transit may be lost.
//!
//! | file | holds |
//! |---|---|
//! | `packet` | packets of tunnels |
//! | `sender` | sending end of a tunnel: window and retransmission, without I/O |
//! | `receiver` | receiving end of a tunnel: order and reassembly, without I/O |
//! | `source` | a lane from a process, and the tunnel that carries its entries away |
//! | `sink` | a lane to a process, and the tunnel from which its entries come |
//! | `gateway` | all tunnels of a host |
//! | `hostile` | the state machines of tunnels under packets that a fuzzer makes up |
//! | `mail` | packets that gateways and forwarder threads exchange |

#[allow(clippy::module_inception)]
mod gateway;
pub(crate) mod hostile;
mod mail;
mod packet;
mod receiver;
mod sender;
mod sink;
mod source;

pub(crate) use gateway::Gateway;
pub(crate) use mail::{Mail, TunnelPacket};
pub(crate) use packet::TUNNEL;
