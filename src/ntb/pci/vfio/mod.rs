//! Functions that are bound to vfio-pci, the kernel's driver for drivers in user space.
//!
//! | file | holds |
//! |---|---|
//! | `container` | IOMMU groups and the container: which memory of this process the functions reach |
//! | `device` | one function: regions, interrupts, and [`crate::Function`] over them |
//! | `open` | opening functions, and the reasons for which one cannot be used |
//! | `calls` | the system calls |
//!
//! Only one process can open a group, and the kernel stops a function's accesses to memory when its last descriptor is
//! closed.

mod calls;
mod container;
mod device;
mod open;

pub use container::Container;
pub use device::VfioFunction;
pub use open::open;
