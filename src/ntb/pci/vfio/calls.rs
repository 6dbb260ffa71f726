//! The system calls of VFIO and of iommufd.

use iommufd_bindings::iommufd;
use nix::request_code_none;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use vfio_bindings::bindings::vfio::{VFIO_BASE, VFIO_TYPE};

/// The numbers of the calls: those of VFIO are counted from its first one, and those of iommufd are the kernel's.
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
    DeviceBindIommufd = 18,
    DeviceAttachIommufd = 19,
    IoasAlloc = iommufd::IOMMUFD_CMD_IOAS_ALLOC as isize,
    IoasRanges = iommufd::IOMMUFD_CMD_IOAS_IOVA_RANGES as isize,
    IoasMap = iommufd::IOMMUFD_CMD_IOAS_MAP as isize,
    IoasUnmap = iommufd::IOMMUFD_CMD_IOAS_UNMAP as isize,
}

impl Call {
    fn request(self) -> libc::c_ulong {
        let request = match self {
            Call::IoasAlloc | Call::IoasRanges | Call::IoasMap | Call::IoasUnmap => {
                request_code_none!(iommufd::IOMMUFD_TYPE, self as u32)
            }
            _ => request_code_none!(VFIO_TYPE, VFIO_BASE + self as u32),
        };
        request as libc::c_ulong
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
/// `T` must be the structure that the call reads and writes, and its field `argsz` or `size`, if it has one, must not be
/// larger than the memory behind `argument`.
pub(super) unsafe fn with_struct<T>(fd: BorrowedFd, call: Call, argument: *mut T) -> io::Result<i32> {
    // SAFETY: by the contract of this function.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), call.request(), argument) };
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::Call;

    #[test]
    fn requests_have_the_numbers_of_the_kernels_headers() {
        let requests =
            [Call::GetApiVersion, Call::IommuMapDma, Call::DeviceBindIommufd, Call::IoasAlloc, Call::IoasMap];
        assert_eq!(requests.map(Call::request), [0x3b64, 0x3b71, 0x3b76, 0x3b81, 0x3b85]);
    }
}
