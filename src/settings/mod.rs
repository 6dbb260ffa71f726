//! Every setting: an environment variable `NTBRING_*`, parsed here and nowhere else.

mod paper;
mod parse;
mod table;

pub use paper::PaperModel;
pub use table::{Setting, TABLE};

use crate::ntb::timing::Model;
use std::path::PathBuf;
use std::time::Duration;

/// What can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Bytes of each incoming window; None: chosen from the number of ranks.
    pub window: Option<u64>,
    /// Most bytes of one piece of a message that is sent in pieces.
    pub chunk: usize,
    /// Largest header + payload that is packed into one entry.
    pub packed_max: usize,
    /// Largest header + payload that is sent without asking the receiver first.
    pub eager_max: usize,
    /// Largest header + payload that is sent without asking to a rank whose memory the kernel lets
    /// us copy from; None: such copies are not made.
    pub single_copy: Option<usize>,
    /// Smallest payload of which sender and receiver copy a half each; None: chosen from the cores.
    pub both_copy: Option<BothCopy>,
    /// Bytes of each lane between ranks of one host.
    pub local_lane: u64,
    /// Directory of a memory file system for the emulated windows.
    pub shm_dir: PathBuf,
    /// How long to wait for neighbours when joining the ring.
    pub connect_timeout: Duration,
    /// Fruitless polls before a waiting rank yields its core; None: chosen from the cores.
    pub spin: Option<u32>,
    /// Yields before it sleeps on its doorbell.
    pub yields: u32,
    /// The link that every cable is to be as fast as; None: as fast as memory is.
    pub link_model: Option<Model>,
    /// Which of the mechanisms of MPI-VMMC are used: all but in experiments.
    pub paper_model: PaperModel,
    /// Seed of the disorder, if windows are to be weakly ordered.
    pub weak: Option<u64>,
    /// Where accesses to the ports are recorded; the rank is appended.
    pub trace: Option<PathBuf>,
    /// File that takes one line of statistics a rank.
    pub stats: Option<PathBuf>,
    /// Signal that makes a rank describe its state on stderr.
    pub dump_signal: Option<i32>,
    /// Filter of the log, in env_logger's syntax.
    pub log: Option<String>,
}

/// When both sides copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BothCopy {
    /// Never.
    Never,
    /// Payloads of at least so many bytes.
    From(u64),
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            window: None,
            chunk: 8 << 10,
            packed_max: 8 << 10,
            eager_max: 66 << 10,
            single_copy: Some(6 << 10),
            both_copy: None,
            local_lane: 64 << 10,
            shm_dir: PathBuf::from("/dev/shm"),
            connect_timeout: Duration::from_secs(60),
            spin: None,
            yields: 2000,
            link_model: None,
            paper_model: PaperModel::All,
            weak: None,
            trace: None,
            stats: None,
            dump_signal: None,
            log: None,
        }
    }
}

/// A setting that cannot be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum SettingError {
    /// A value that is not allowed.
    #[error("{name}={value:?}: {problem}; allowed: {allowed}")]
    Value {
        /// The variable.
        name: &'static str,
        /// What it is set to.
        value: String,
        /// What is wrong with that.
        problem: String,
        /// What is allowed.
        allowed: &'static str,
    },
    /// A variable that does not exist.
    #[error("{name} is not a setting of ntbring{}; `ntbring info --config` lists them all",
        .nearest.map(|n| format!(" (did you mean {n}?)")).unwrap_or_default())]
    Unknown {
        /// The variable.
        name: String,
        /// The setting that is spelled most alike.
        nearest: Option<&'static str>,
    },
}

impl Settings {
    /// The settings of this process's environment.
    pub fn from_env() -> Result<Settings, SettingError> {
        let vars = std::env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            Some((name, value.to_string_lossy().into_owned()))
        });
        Settings::from_vars(vars)
    }

    /// The settings among these variables; those that do not begin with `NTBRING_` are ignored.
    pub fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        for (name, value) in vars {
            if !name.starts_with("NTBRING_") {
                continue;
            }
            let Some(setting) = TABLE.iter().find(|s| s.name == name) else {
                return Err(SettingError::Unknown { nearest: nearest(&name), name });
            };
            (setting.parse)(&mut settings, value.trim()).map_err(|problem| SettingError::Value {
                name: setting.name,
                value: value.clone(),
                problem,
                allowed: setting.allowed,
            })?;
        }
        Ok(settings)
    }
}

/// The setting whose name differs least from `name`, if any is close.
fn nearest(name: &str) -> Option<&'static str> {
    TABLE.iter().map(|s| (strsim::levenshtein(s.name, name), s.name)).min().and_then(|(d, n)| (d <= 3).then_some(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Settings, SettingError> {
        Settings::from_vars([(name.to_string(), value.to_string())])
    }

    #[test]
    fn the_table_says_the_real_defaults() {
        for setting in TABLE.iter().filter(|s| s.name != "NTBRING_LOG") {
            assert_eq!(with(setting.name, setting.default), Ok(Settings::default()), "{}", setting.name);
        }
    }

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(with("NTBRING_WINDOW", "2M").unwrap().window, Some(2 << 20));
        assert_eq!(with("NTBRING_WINDOW", "65536").unwrap().window, Some(64 << 10));
        assert_eq!(with("NTBRING_CHUNK", "1k").unwrap().chunk, 1024);
    }

    #[test]
    fn bad_values_name_variable_value_and_what_is_allowed() {
        for (name, value) in [
            ("NTBRING_WINDOW", "huge"),
            ("NTBRING_WINDOW", "12"),
            ("NTBRING_WINDOW", ""),
            ("NTBRING_WINDOW", "99999999999999999999G"),
            ("NTBRING_CHUNK", "-1"),
            ("NTBRING_DUMP_SIGNAL", "KILL"),
            ("NTBRING_DUMP_SIGNAL", "9"),
            ("NTBRING_STATS", ""),
            ("NTBRING_SPIN", "fast"),
            ("NTBRING_LINK_MODEL", "gen9"),
            ("NTBRING_PAPER_MODEL", "0"),
            ("NTBRING_PAPER_MODEL", "6"),
            ("NTBRING_PAPER_MODEL", "2-packed"),
            ("NTBRING_LINK_MODEL", "latency=5"),
        ] {
            let text = with(name, value).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(&format!("{value:?}")), "{text}");
            assert!(text.contains("allowed: "), "{text}");
        }
    }

    #[test]
    fn unknown_variables_are_errors_with_a_hint() {
        let text = with("NTBRING_WINDOWS", "1M").unwrap_err().to_string();
        assert!(text.contains("did you mean NTBRING_WINDOW?"), "{text}");
        let text = with("NTBRING_COLOUR_OF_THE_CABLE", "red").unwrap_err().to_string();
        assert!(!text.contains("did you mean"), "{text}");
        assert!(with("PATH", "x").is_ok());
    }
}
