//! Every setting: an environment variable `NTBRING_*`, parsed here and nowhere else.

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

impl Default for Settings {
    fn default() -> Self {
        Settings {
            window: None,
            chunk: 16 << 10,
            packed_max: 8 << 10,
            eager_max: 64 << 10,
            local_lane: 64 << 10,
            shm_dir: PathBuf::from("/dev/shm"),
            connect_timeout: Duration::from_secs(60),
            spin: None,
            yields: 32,
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

/// One line of the table of settings.
pub struct Setting {
    /// The variable.
    pub name: &'static str,
    /// The default, as it would be written.
    pub default: &'static str,
    /// What its number counts.
    pub unit: &'static str,
    /// What is allowed.
    pub allowed: &'static str,
    /// Whether all hosts must have the same value.
    pub shared: bool,
    /// What it does.
    pub meaning: &'static str,
    parse: fn(&mut Settings, &str) -> Result<(), String>,
}

macro_rules! setting {
    ($name:literal, $default:literal, $unit:literal, $allowed:literal, $shared:literal, $meaning:literal, $parse:expr) => {
        Setting {
            name: $name,
            default: $default,
            unit: $unit,
            allowed: $allowed,
            shared: $shared,
            meaning: $meaning,
            parse: $parse,
        }
    };
}

/// All settings.
pub const TABLE: &[Setting] =
    &[
        setting!(
            "NTBRING_WINDOW",
            "auto",
            "bytes",
            "auto, or 64K to 1G",
            true,
            "size of each incoming window, which is divided into lanes; auto: 1M, or more if there are many ranks",
            |s, v| {
                s.window = match v {
                    "auto" => None,
                    _ => Some(within(bytes(v)?, 64 << 10, 1 << 30)?.next_multiple_of(4096)),
                };
                Ok(())
            }
        ),
        setting!(
            "NTBRING_CHUNK",
            "16K",
            "bytes",
            "64 to 4M",
            true,
            "largest piece of a message that is sent in pieces; at most a quarter of a lane is used",
            |s, v| {
                s.chunk = within(bytes(v)?, 64, 4 << 20)? as usize;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_PACKED_MAX",
            "8K",
            "bytes",
            "0 to 4M",
            false,
            "largest header + payload that is written as one entry; at most a quarter of a lane is used",
            |s, v| {
                s.packed_max = within(bytes(v)?, 0, 4 << 20)? as usize;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_EAGER_MAX",
            "64K",
            "bytes",
            "0 to 64K",
            false,
            "largest header + payload that is sent without asking the receiver first",
            |s, v| {
                s.eager_max = within(bytes(v)?, 0, 64 << 10)? as usize;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_LOCAL_LANE",
            "64K",
            "bytes",
            "4K to 2M",
            false,
            "size of each lane between two ranks of one host (used when MPICH has no shared-memory module)",
            |s, v| {
                s.local_lane = within(bytes(v)?, 4 << 10, 2 << 20)?;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_SHM_DIR",
            "/dev/shm",
            "directory",
            "a directory of a memory file system",
            false,
            "where the memory of the emulated hosts is allocated; nothing in it has a name",
            |s, v| {
                s.shm_dir = text(v)?.into();
                Ok(())
            }
        ),
        setting!(
            "NTBRING_CONNECT_TIMEOUT",
            "60",
            "seconds",
            "1 to 86400",
            false,
            "how long to wait for the neighbours when joining the ring",
            |s, v| {
                s.connect_timeout = Duration::from_secs(within(number(v)?, 1, 86400)?);
                Ok(())
            }
        ),
        setting!(
            "NTBRING_SPIN",
            "auto",
            "polls",
            "auto, or 0 to 1000000",
            false,
            "fruitless polls before a waiting rank yields its core; auto: few with more ranks than cores, else many",
            |s, v| {
                s.spin = if v == "auto" { None } else { Some(within(number(v)?, 0, 1_000_000)? as u32) };
                Ok(())
            }
        ),
        setting!(
            "NTBRING_YIELDS",
            "32",
            "yields",
            "0 to 1000000",
            false,
            "yields of a waiting rank before it sleeps until its doorbell rings",
            |s, v| {
                s.yields = within(number(v)?, 0, 1_000_000)? as u32;
                Ok(())
            }
        ),
        setting!("NTBRING_WEAK", "off", "seed", "off, or a number", false,
        "makes the windows weakly ordered: writes between fences arrive in any order and in pieces (for tests; slow)",
        |s, v| { s.weak = if v == "off" { None } else { Some(number(v)?) }; Ok(()) }),
        setting!(
            "NTBRING_TRACE",
            "off",
            "file",
            "off, or a path",
            false,
            "records every access to the ports in FILE.RANK, one JSON object a line (for tests; slow)",
            |s, v| {
                s.trace = path(v)?;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_STATS",
            "off",
            "file",
            "off, or a path",
            false,
            "appends one JSON line of counters a rank to the file when the rank leaves the ring",
            |s, v| {
                s.stats = path(v)?;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_DUMP_SIGNAL",
            "off",
            "signal",
            "off, USR1, USR2, or a number from 1 to 64",
            false,
            "signal that makes a rank write its queues, credits and pending work to stderr",
            |s, v| {
                s.dump_signal = signal(v)?;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_LOG",
            "warn",
            "filter",
            "error, warn, info, debug, trace, or env_logger's syntax",
            false,
            "what is logged to stderr; debug tells what was chosen and why",
            |s, v| {
                s.log = Some(text(v)?.to_string());
                Ok(())
            }
        ),
    ];

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

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "not a whole number".to_string())
}

fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let n: u64 = digits.parse().map_err(|_| "not a number of bytes such as 65536, 64K or 1M".to_string())?;
    n.checked_mul(1 << shift).ok_or_else(|| "too large".to_string())
}

fn within(n: u64, least: u64, most: u64) -> Result<u64, String> {
    match n {
        n if n < least => Err("too small".into()),
        n if n > most => Err("too large".into()),
        n => Ok(n),
    }
}

fn text(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("empty".into());
    }
    Ok(text)
}

fn path(value: &str) -> Result<Option<PathBuf>, String> {
    Ok(if value == "off" { None } else { Some(text(value)?.into()) })
}

fn signal(value: &str) -> Result<Option<i32>, String> {
    Ok(match value.trim_start_matches("SIG") {
        "off" => None,
        "USR1" => Some(libc::SIGUSR1),
        "USR2" => Some(libc::SIGUSR2),
        number => {
            let n = number.parse().map_err(|_| "not a signal".to_string())?;
            within(n, 1, 64)?;
            if n as i32 == libc::SIGKILL || n as i32 == libc::SIGSTOP {
                return Err("this signal cannot be caught".into());
            }
            Some(n as i32)
        }
    })
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
