//! Every setting: an environment variable `NTBRING_*`, parsed here and nowhere else.

mod load;
mod paper;
mod parse;
pub mod reliability;
mod table;
pub mod tuned;

pub use crate::zerocopy::{BothCopy, SingleCopy};
pub use load::{Loaded, Origin};
pub use paper::PaperModel;
pub use table::{Setting, TABLE};
pub use tuned::TunedFile;

use crate::zerocopy::table::DEFAULTS;
use crate::zerocopy::Limits;
use ntbring_ntb::fault::Faults;
use ntbring_ntb::timing::Model;
use ntbring_queue::Reliability;
use std::path::PathBuf;
use std::time::Duration;

/// What can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Bytes of each incoming window; None: as `ring::WindowPlan` chooses.
    pub window: Option<u64>,
    /// Most bytes of one piece of a message that is sent in pieces; None: as `zerocopy::Cut` tells.
    pub chunk: Option<usize>,
    /// Largest header + payload that is packed into one entry.
    pub packed_max: usize,
    /// Largest header + payload that is sent without asking the receiver first.
    pub eager_max: usize,
    /// Largest header + payload that is sent without asking to a rank whose memory the kernel lets
    /// us copy from.
    pub single_copy: SingleCopy,
    /// Smallest payload of which sender and receiver copy a half each.
    pub both_copy: BothCopy,
    /// Bytes that messages may take here which nobody has asked for; None: any number.
    pub unexpected: Option<u64>,
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
    /// Whether large payloads go on while their rank computes; None: if cores can be free then.
    pub overlap: Option<bool>,
    /// Threads that forward at this host; None: chosen from the cores.
    pub xfer_threads: Option<usize>,
    /// The link that every cable is to be as fast as; None: as fast as memory is.
    pub link_model: Option<Model>,
    /// Which of the mechanisms of MPI-VMMC are used: all but in experiments.
    pub paper_model: PaperModel,
    /// How far links are trusted.
    pub reliability: Reliability,
    /// What goes wrong on the links, in tests; None: nothing.
    pub fault: Option<Faults>,
    /// Seed of the disorder, if windows are to be weakly ordered.
    pub weak: Option<u64>,
    /// Where accesses to the ports are recorded; the rank is appended.
    pub trace: Option<PathBuf>,
    /// Where tuned thresholds come from.
    pub tuned: TunedFile,
    /// File that takes one line of statistics a rank.
    pub stats: Option<PathBuf>,
    /// Signal that makes a rank describe its state on stderr.
    pub dump_signal: Option<i32>,
    /// Filter of the log, in env_logger's syntax.
    pub log: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            window: None,
            chunk: None,
            packed_max: DEFAULTS.packed_max,
            eager_max: DEFAULTS.eager_max,
            single_copy: DEFAULTS.single_copy,
            both_copy: DEFAULTS.both_copy,
            unexpected: Some(64 << 20),
            local_lane: 64 << 10,
            shm_dir: PathBuf::from("/dev/shm"),
            connect_timeout: Duration::from_secs(60),
            spin: None,
            yields: 2000,
            overlap: None,
            xfer_threads: None,
            link_model: None,
            paper_model: PaperModel::All,
            reliability: Reliability::Off,
            fault: None,
            weak: None,
            trace: None,
            tuned: TunedFile::Auto,
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
    /// Two values that do not go together.
    #[error("{0} and {1} cannot be used together: {2}")]
    Together(&'static str, &'static str, &'static str),
    /// The file of tuned thresholds cannot be used.
    #[error("{path}, the file of tuned thresholds (NTBRING_TUNED), {problem}; `ntbring tune` writes it, NTBRING_TUNED=off ignores it")]
    Tuned {
        /// The file.
        path: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl Settings {
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
            settings.set(setting, &value)?;
        }
        settings.check()?;
        Ok(settings)
    }

    /// Whether the values go together.
    fn check(&self) -> Result<(), SettingError> {
        if self.reliability != Reliability::Off && !self.paper_model.is_production() {
            let why = "the papers' experiments trust their links";
            return Err(SettingError::Together("NTBRING_RELIABILITY", "NTBRING_PAPER_MODEL", why));
        }
        Ok(())
    }

    /// Those about where one way to send ends and the next begins.
    pub fn limits(&self) -> Limits {
        Limits {
            packed_max: self.packed_max,
            eager_max: self.eager_max,
            single_copy: self.single_copy,
            both_copy: self.both_copy,
        }
    }

    fn set(&mut self, setting: &'static Setting, value: &str) -> Result<(), SettingError> {
        let Setting { name, allowed, .. } = *setting;
        let wrong = |problem| SettingError::Value { name, value: value.into(), problem, allowed };
        (setting.parse)(self, value.trim()).map_err(wrong)
    }
}

/// The variables of this process, those with names that are no text left out.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
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
        assert_eq!(with("NTBRING_CHUNK", "1k").unwrap().chunk, Some(1024));
        assert_eq!(with("NTBRING_CHUNK", "auto").unwrap().chunk, None);
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
            ("NTBRING_OVERLAP", "yes"),
            ("NTBRING_XFER_THREADS", "0"),
            ("NTBRING_XFER_THREADS", "5"),
            ("NTBRING_XFER_THREADS", "many"),
            ("NTBRING_LINK_MODEL", "gen9"),
            ("NTBRING_LINK_MODEL", "transfer=100"),
            ("NTBRING_PAPER_MODEL", "0"),
            ("NTBRING_PAPER_MODEL", "6"),
            ("NTBRING_PAPER_MODEL", "2-packed"),
            ("NTBRING_LINK_MODEL", "latency=5"),
            ("NTBRING_RELIABILITY", "maybe"),
            ("NTBRING_FAULT", "drop"),
            ("NTBRING_FAULT", "drop=2"),
            ("NTBRING_FAULT", "down=every:1s"),
            ("NTBRING_FAULT", ""),
        ] {
            let text = with(name, value).unwrap_err().to_string();
            assert!(text.contains(name) && text.contains(&format!("{value:?}")), "{text}");
            assert!(text.contains("allowed: "), "{text}");
        }
    }

    #[test]
    fn values_that_do_not_go_together_are_an_error() {
        let pair = [("NTBRING_RELIABILITY", "retry"), ("NTBRING_PAPER_MODEL", "2")];
        let text = Settings::from_vars(pair.map(|(n, v)| (n.into(), v.into()))).unwrap_err().to_string();
        assert!(text.contains("NTBRING_RELIABILITY and NTBRING_PAPER_MODEL"), "{text}");
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
