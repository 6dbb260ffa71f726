//! The agent's configuration file.

use anyhow::{bail, Context, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// Place of the configuration file; it need not exist.
pub const FILE: &str = "/etc/ntbring/ring.toml";

/// The configuration. All keys may be missing.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Addresses of the adapters of the ports 0, 1 and so on.
    #[serde(default)]
    pub adapters: Vec<String>,
    /// Socket at which processes connect.
    pub socket: Option<PathBuf>,
    /// Group whose members may connect; without it every user may.
    pub group: Option<String>,
    /// Largest size of the window of each adapter, bytes.
    pub window: Option<u64>,
    /// True if the agent carries out the writes of all processes.
    #[serde(default)]
    pub isolate: bool,
}

impl Config {
    /// Reads a file. A missing file is an error only if it is `required`.
    pub fn read(path: &Path, required: bool) -> Result<Config> {
        match std::fs::read_to_string(path) {
            Ok(text) => Config::parse(&text).with_context(|| format!("reading {}", path.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !required => Ok(Config::default()),
            Err(error) => Err(error).with_context(|| format!("reading {}", path.display())),
        }
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Config> {
        let config: Config = toml::from_str(text)?;
        if config.window == Some(0) {
            bail!("window = 0: a size in bytes is needed");
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_keys_may_be_missing() {
        assert_eq!(Config::parse("").unwrap(), Config::default());
        assert_eq!(Config::read(Path::new("/nowhere/ring.toml"), false).unwrap(), Config::default());
        assert!(Config::read(Path::new("/nowhere/ring.toml"), true).is_err());
    }

    #[test]
    fn the_keys_are_read() {
        let text =
            "adapters = [\"0000:06:00.0\", \"0000:05:00.0\"]\ngroup = \"hpc\"\nisolate = true\nwindow = 67108864\n";
        let config = Config::parse(text).unwrap();
        assert_eq!(config.adapters, ["0000:06:00.0", "0000:05:00.0"]);
        assert_eq!((config.group.as_deref(), config.isolate, config.window), (Some("hpc"), true, Some(64 << 20)));
    }

    #[test]
    fn unknown_and_wrong_keys_are_named() {
        for (text, named) in [("adaptors = []", "adaptors"), ("window = -1", "window"), ("window = 0", "window = 0")] {
            let error = format!("{:#}", Config::parse(text).unwrap_err());
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
