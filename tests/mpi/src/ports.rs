//! Jobs that meet by the name of a port, which one leaves in a file.

use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int};
use std::time::{Duration, Instant};

use mpi::ffi;
use mpi::topology::InterCommunicator;
use mpi::traits::*;

use crate::raw::ok;
use crate::{fail, Job};

/// How long one waits for the other's file.
const LIMIT: Duration = Duration::from_secs(30);

/// Opens a port, and leaves its name in a file.
pub fn open(job: &Job, file: &str) -> CString {
    let mut name = [0 as c_char; ffi::MPI_MAX_PORT_NAME as usize];
    if job.rank == 0 {
        // SAFETY: room for the longest name, which the call ends with a zero.
        let name = unsafe {
            ok(ffi::MPI_Open_port(ffi::RSMPI_INFO_NULL, name.as_mut_ptr()), "MPI_Open_port");
            CStr::from_ptr(name.as_ptr())
        };
        // Whoever sees it sees all of it.
        let draft = format!("{file}.draft");
        let written = std::fs::write(&draft, name.to_bytes()).and_then(|()| std::fs::rename(&draft, file));
        written.unwrap_or_else(|error| fail(format!("{file}: {error}")));
    }
    // SAFETY: written to its end by the call, or zeros.
    unsafe { CStr::from_ptr(name.as_ptr()) }.to_owned()
}

/// The name of a port from such a file.
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
    // SAFETY: the call has made it.
    unsafe { InterCommunicator::from_raw(inter) }
}

/// The same, as far as it goes: a communicator if the code is that of success.
pub fn try_to_meet(job: &Job, port: &CStr, accepts: bool) -> (ffi::MPI_Comm, c_int) {
    let (world, mut inter) = (job.world.as_raw(), no_comm());
    // SAFETY: a port's name, which matters at the root only, and a place for a communicator.
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

/// Parts from another job.
pub fn disconnect(inter: InterCommunicator) {
    let mut comm = inter.as_raw();
    std::mem::forget(inter);
    // SAFETY: a communicator of ours that is not used any more.
    ok(unsafe { ffi::MPI_Comm_disconnect(&mut comm) }, "MPI_Comm_disconnect");
}
