//! Real NTB adapters.
//!
//! | module | holds |
//! |---|---|
//! | `identity` | addresses and identities of PCI functions |
//! | `registers`, `function` | access to a PCI function: the seam between drivers of chips and VFIO or a model |
//! | `sysfs` | the kernel's information on PCI functions |
//! | [`vfio`] | functions that are bound to vfio-pci |
//! | `catalogue` | the NTB chips that exist |
//! | `chip`, `identify` | the interface of a chip's driver; the choice of the driver |
//! | `driver`, `intel`, `amd`, `plx`, `ivshmem` | the parts that drivers share; the drivers |
//! | [`link`] | bringing a link up between two adapters |
//! | `retry` | the time at which another way for outgoing writes is tried |
//! | `adapter` | an adapter of this host: its link, the slices of its window, news for the neighbour |
//! | `control`, [`measure`] | the start of each window, which adapters use themselves; measuring a link |
//! | `service` | the thread that serves all adapters of a host |
//! | `slice`, `address` | parts of the windows, one for each job: ports over them, and their addresses |
//! | `segments` | memory of a job's processes behind the windows |
//! | `adapters`, `host`, `job` | all adapters of a host, and the slices that a job has of their windows |
//! | [`network`], `circuits` | the network of all hosts, and ways through it between hosts that no cable joins |
//! | [`relay`] | writes that the agent carries out for processes and other hosts |
//! | `allotment`, `ledger` | the division of a window among jobs, and what both neighbours know of it |
//! | [`memory`] | memory that a neighbour writes and that processes share |
//! | `local` | the backend over adapters that this process owns |

mod adapter;
mod adapters;
mod address;
mod allotment;
mod amd;
mod catalogue;
mod chip;
mod circuits;
mod control;
mod driver;
mod error;
mod function;
mod host;
mod identify;
mod identity;
mod intel;
mod ivshmem;
mod job;
mod ledger;
pub mod link;
mod local;
pub mod measure;
pub mod memory;
pub mod network;
mod plx;
mod registers;
pub mod relay;
mod retry;
mod segments;
mod service;
mod slice;
mod sysfs;
pub mod vfio;

pub use adapter::{Adapter, ExposedMemory, Listener, SliceUse};
pub use adapters::Adapters;
pub use address::SliceAddress;
pub use allotment::Range;
pub use catalogue::{chip_of, KnownChip};
pub use chip::{Aperture, Chip, Events, Limits, LinkStatus};
pub use control::CONTROL;
pub use error::PciError;
pub use function::{Alarm, Bar, Function, InterruptKind, Interrupts};
pub use host::HostAdapters;
pub use identify::identify;
pub use identity::{Identity, PciAddress};
pub use job::{Allotment, Slice, Way};
pub use local::LocalAdapters;
pub use registers::{Block, Registers, Space, Width};
pub use service::{BellEvent, Service};
pub use slice::{Grant, SliceBells, SlicePort, HEADER};
pub use sysfs::{SysFunction, Sysfs};
