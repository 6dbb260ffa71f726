//! Jobs that connect by the name of a port, which one of them writes to a file.

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int};
use std::time::{Duration, Instant};

use mpi::ffi;
use mpi::topology::InterCommunicator;
use mpi::traits::*;

use crate::raw::ok;
use crate::{fail, Job};

/// Time that one job waits for the other's file.
const LIMIT: Duration = Duration::from_secs(30);

/// Opens a port and writes its name to a file.
pub fn open(job: &Job, file: &str) -> CString {
    let mut name = [0 as c_char; ffi::MPI_MAX_PORT_NAME as usize];
    if job.rank == 0 {
        // SAFETY: the buffer has room for the longest name, which the call terminates with NUL.
        let name = unsafe {
            ok(ffi::MPI_Open_port(ffi::RSMPI_INFO_NULL, name.as_mut_ptr()), "MPI_Open_port");
            CStr::from_ptr(name.as_ptr())
        };
        // The file is renamed, so that readers see its complete content.
        let draft = format!("{file}.draft");
        let written = std::fs::write(&draft, name.to_bytes()).and_then(|()| std::fs::rename(&draft, file));
        written.unwrap_or_else(|error| fail(format!("{file}: {error}")));
    }
    // SAFETY: the buffer is NUL-terminated: it was zeroed, or written by the call.
    unsafe { CStr::from_ptr(name.as_ptr()) }.to_owned()
}

/// Returns the name of a port from such a file, waiting for the file.
pub fn look_for(file: &str) -> CString {
    let start = Instant::now();
    loop {
        match std::fs::read(file) {
            Ok(name) => return CString::new(name).expect("a port's name has no zeros"),
            Err(error) if start.elapsed() > LIMIT => fail(format!("{file}: {error}")),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Connects the job to another at a port.
pub fn meet(job: &Job, port: &CStr, accepts: bool) -> InterCommunicator {
    let (inter, code) = try_to_meet(job, port, accepts);
    ok(code, "MPI_Comm_accept or MPI_Comm_connect");
    // SAFETY: the call has created the communicator, and this is its only owner.
    unsafe { InterCommunicator::from_raw(inter) }
}

/// Tries to connect: returns the communicator, which is valid if the code is MPI_SUCCESS, and the code.
pub fn try_to_meet(job: &Job, port: &CStr, accepts: bool) -> (ffi::MPI_Comm, c_int) {
    let (world, mut inter) = (job.world.as_raw(), no_comm());
    // SAFETY: the name is a port's name, which only the root reads, and the communicator is valid for writes.
    let code = unsafe {
        let info = ffi::RSMPI_INFO_NULL;
        match accepts {
            true => ffi::MPI_Comm_accept(port.as_ptr(), info, 0, world, &mut inter),
            false => ffi::MPI_Comm_connect(port.as_ptr(), info, 0, world, &mut inter),
        }
    };
    (inter, code)
}

fn no_comm() -> ffi::MPI_Comm {
    // SAFETY: the constant is initialized by the C side at load time and never written.
    unsafe { ffi::RSMPI_COMM_NULL }
}

/// Disconnects from another job.
pub fn disconnect(inter: InterCommunicator) {
    let mut comm = inter.as_raw();
    std::mem::forget(inter);
    // SAFETY: the communicator is valid and not used afterwards.
    ok(unsafe { ffi::MPI_Comm_disconnect(&mut comm) }, "MPI_Comm_disconnect");
}
