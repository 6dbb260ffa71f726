//! The system calls of VFIO.

use nix::request_code_none;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use vfio_bindings::bindings::vfio::{VFIO_BASE, VFIO_TYPE};

/// The numbers of the calls, counted from the first one of VFIO.
#[derive(Clone, Copy)]
pub(super) enum Call {
    GetApiVersion = 0,
    CheckExtension = 1,
    SetIommu = 2,
    GroupGetStatus = 3,
    GroupSetContainer = 4,
    GroupGetDeviceFd = 6,
    DeviceGetRegionInfo = 8,
    DeviceGetIrqInfo = 9,
    DeviceSetIrqs = 10,
    IommuGetInfo = 12,
    IommuMapDma = 13,
    IommuUnmapDma = 14,
}

impl Call {
    fn request(self) -> libc::c_ulong {
        request_code_none!(VFIO_TYPE, VFIO_BASE + self as u32) as libc::c_ulong
    }
}

/// Makes a call with a number as argument.
pub(super) fn with_number(fd: BorrowedFd, call: Call, argument: u32) -> io::Result<i32> {
    // SAFETY: the calls that are made in this way take a number, not a pointer.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), call.request(), libc::c_ulong::from(argument)) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// Makes a call with a structure as argument.
///
/// # Safety
/// `T` must be the structure that the call reads and writes, and its field `argsz`, if it has one, must not be larger
/// than the memory behind `argument`.
pub(super) unsafe fn with_struct<T>(fd: BorrowedFd, call: Call, argument: *mut T) -> io::Result<i32> {
    // SAFETY: by the contract of this function.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), call.request(), argument) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}
