//! NTB functions of PLX/Broadcom PEX 87xx switches.
//!
//! A switch has one or two NTBs. Each has two interfaces: Virtual, a function in the host of the switch, and Link, on
//! the other end. Each interface has a page of registers, and each host reaches both pages through its BAR 0.
//!
//! | file | holds |
//! |---|---|
//! | `identity` | number and revision of the chip, and the interface that a function is |
//! | `page` | the registers of an interface |
//! | `lut` | the requester ids whose accesses pass |
//! | `setup` | modes, back to back and NTB to root port, and their address translation |
//! | `chip` | the driver |

mod chip;
mod identity;
mod lut;
mod page;
mod setup;

pub use chip::Plx;
