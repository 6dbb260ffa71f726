//! The settings of a host's services.

use crate::cores::Cores;
use ntbring_settings::parse::{cores, text};
use ntbring_settings::{Row, Setting};
use std::path::PathBuf;

/// Settings of a host's services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSettings {
    /// Directory of a memory file system, for shared memory.
    pub shm_dir: PathBuf,
    /// Cores for the threads that a rank starts; None: those that disturb no rank, as far as the launcher shows them.
    pub thread_cores: Option<Cores>,
}

impl Default for HostSettings {
    fn default() -> Self {
        HostSettings { shm_dir: PathBuf::from("/dev/shm"), thread_cores: None }
    }
}

/// Rows of these settings for the table of all settings.
pub const ROWS: &[Row<HostSettings>] = &[
    Row {
        setting: Setting {
            name: "NTBRING_SHM_DIR",
            default: "/dev/shm",
            unit: "directory",
            allowed: "a directory of a memory file system, or memfd",
            shared: false,
            meaning: "directory of the file system in which shared memory is allocated, as files without \
                 names; memfd: no directory, and its size is no limit",
            tunable: false,
        },
        parse: |s, v| {
            s.shm_dir = text(v)?.into();
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_THREAD_CORES",
            default: "auto",
            unit: "cores",
            allowed: "auto, or numbers and ranges of cores such as 2,4-6",
            shared: false,
            meaning: "cores for the forwarder threads and the threads of asynchronous progress; auto: \
                 those cores of mpiexec to which it has bound no rank",
            tunable: false,
        },
        parse: |s, v| {
            s.thread_cores = if v == "auto" { None } else { Some(cores(v)?) };
            Ok(())
        },
    },
];
