//! Interrupts of a function: event descriptors on which the kernel signals.

use super::calls::{self, Call};
use crate::function::{Alarm, InterruptKind};
use crate::identity::Identity;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use vfio_bindings::bindings::vfio;

/// Signals an event descriptor.
const SIGNAL: u32 = vfio::VFIO_IRQ_SET_DATA_EVENTFD | vfio::VFIO_IRQ_SET_ACTION_TRIGGER;

/// Makes the interrupts of a function signal `event`: `least` to `wanted` vectors of MSI-X, or else its line, or else one
/// vector of MSI.
pub fn enable(device: BorrowedFd, event: BorrowedFd, wanted: usize, least: usize) -> io::Result<InterruptKind> {
    let kinds = [
        (InterruptKind::MsiX, vfio::VFIO_PCI_MSIX_IRQ_INDEX, wanted, least),
        (InterruptKind::Line, vfio::VFIO_PCI_INTX_IRQ_INDEX, 1, 1),
        (InterruptKind::Msi, vfio::VFIO_PCI_MSI_IRQ_INDEX, 1, 1),
    ];
    let mut failure = io::Error::other("it has no interrupts");
    for (kind, index, wanted, least) in kinds {
        let count = vectors(device, index)?.min(wanted as u32);
        if count as usize >= least {
            let events = vec![event.as_raw_fd(); count as usize];
            // A line that cannot be masked and that another device shares is busy.
            match set(device, index, SIGNAL, count, &events) {
                Ok(()) => return Ok(kind),
                Err(error) => failure = error,
            }
        }
    }
    Err(failure)
}

/// Asks the kernel for its announcements; functions without error reporting have fewer.
pub fn alarms(device: BorrowedFd, identity: Identity) -> Vec<(Alarm, EventFd)> {
    let kinds = [(Alarm::Error, vfio::VFIO_PCI_ERR_IRQ_INDEX), (Alarm::Removal, vfio::VFIO_PCI_REQ_IRQ_INDEX)];
    let ask = |(alarm, index)| {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC).map_err(io::Error::from);
        let asked = event.and_then(|event| {
            set(device, index, SIGNAL, 1, &[event.as_fd().as_raw_fd()])?;
            Ok((alarm, event))
        });
        asked.inspect_err(|error| log::debug!("{identity}: the kernel does not announce {alarm:?}: {error}")).ok()
    };
    kinds.into_iter().filter_map(ask).collect()
}

/// Returns the number of vectors of a kind of interrupts.
fn vectors(device: BorrowedFd, index: u32) -> io::Result<u32> {
    let argsz = size_of::<vfio::vfio_irq_info>() as u32;
    let mut info = vfio::vfio_irq_info { argsz, index, ..Default::default() };
    // SAFETY: it is the structure of this call.
    unsafe { calls::with_struct(device, Call::DeviceGetIrqInfo, &mut info) }?;
    Ok(if info.flags & vfio::VFIO_IRQ_INFO_EVENTFD != 0 { info.count } else { 0 })
}

/// Executes an action on interrupts, with data that follow the header.
pub fn set(device: BorrowedFd, index: u32, flags: u32, count: u32, data: &[i32]) -> io::Result<()> {
    let header = size_of::<vfio::vfio_irq_set>();
    let argsz = header + size_of_val(data);
    // The structure has 32-bit fields, and so have the data.
    let mut words = vec![argsz as u32, flags, index, 0, count];
    debug_assert_eq!(words.len() * 4, header);
    words.extend(data.iter().map(|&fd| fd as u32));
    // SAFETY: the buffer has the layout of the structure of this call, and `argsz` bytes.
    unsafe { calls::with_struct(device, Call::DeviceSetIrqs, words.as_mut_ptr()) }.map(drop)
}
