//! Functions that are bound to vfio-pci, the kernel's driver for drivers in user space.
//!
//! | file | holds |
//! |---|---|
//! | `container` | the memory of this process that the functions reach |
//! | `device` | one function: regions, and [`crate::Function`] over them |
//! | `interrupts`, `combining` | its interrupts; write-combining mappings of its windows |
//! | `open` | opening functions, and the reasons for which one cannot be used |
//! | `opening` | parts that both ways of opening functions share |
//! | `group`, `cdev` | the kernel's two interfaces for that: IOMMU groups, and files of functions with iommufd |
//! | `calls` | the system calls |
//!
//! Only one process can use a function, and the kernel stops a function's accesses to memory when its last descriptor is
//! closed.

mod calls;
mod cdev;
mod combining;
mod container;
mod device;
mod group;
mod interrupts;
mod open;
mod opening;

pub use container::Container;
pub use device::VfioFunction;
pub use open::open;
