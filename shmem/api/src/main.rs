//! Writes the C headers of the library to a directory: `shmem-headers shmem/include`.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(directory) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("Usage: shmem-headers DIRECTORY");
        return ExitCode::from(2);
    };
    match ntbring_shmem_api::write_headers(&directory) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("The headers cannot be written to {}: {error}", directory.display());
            ExitCode::FAILURE
        }
    }
}
