//! Selections of MPICH's parts to build.

use std::fmt;

use clap::ValueEnum;

/// The parts of MPICH that are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// C only, without ROMIO, with the dataloop datatype engine: minutes.
    Quick,
    /// As quick, without MPICH's shared memory module: ranks of one host talk through the ring's queues too.
    NoShm,
    /// As quick, with a lock for each VCI: threads on different communicators need not wait for each other.
    PerVci,
    /// As quick, with MPICH, the netmod and programs under AddressSanitizer.
    Asan,
    /// As quick, with MPICH not optimized and with debugging symbols: for debuggers and for memory checkers that name
    /// lines.
    Debug,
    /// C, Fortran, C++ and MPI-IO, with the dataloop datatype engine.
    Full,
    /// As full, with MPICH's default datatype engine, yaksa: about 20 minutes.
    Yaksa,
}

impl Profile {
    /// Returns true if it has Fortran, C++ and MPI-IO.
    pub fn has_all_languages(self) -> bool {
        matches!(self, Self::Full | Self::Yaksa)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Quick => "quick",
            Self::NoShm => "no-shm",
            Self::PerVci => "per-vci",
            Self::Asan => "asan",
            Self::Debug => "debug",
            Self::Full => "full",
            Self::Yaksa => "yaksa",
        })
    }
}
