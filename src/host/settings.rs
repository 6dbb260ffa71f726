//! The settings of a host's services.

use ntbring_settings::parse::text;
use ntbring_settings::{Row, Setting};
use std::path::PathBuf;

/// Settings of a host's services.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSettings {
    /// Directory of a memory file system, for shared memory.
    pub shm_dir: PathBuf,
}

impl Default for HostSettings {
    fn default() -> Self {
        HostSettings { shm_dir: PathBuf::from("/dev/shm") }
    }
}

/// Rows of these settings for the table of all settings.
pub const ROWS: &[Row<HostSettings>] = &[Row {
    setting: Setting {
        name: "NTBRING_SHM_DIR",
        default: "/dev/shm",
        unit: "directory",
        allowed: "a directory of a memory file system, or memfd",
        shared: false,
        meaning: "directory in which shared memory is allocated; no file in it has a name; memfd: in none, where its size is no limit",
        tunable: false,
    },
    parse: |s, v| {
        s.shm_dir = text(v)?.into();
        Ok(())
    },
}];
