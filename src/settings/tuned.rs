//! The file in which `ntbring tune` keeps the thresholds that it has measured.

use crate::parse::text;
use crate::{Row, Setting, SettingError, Table};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The format of the file.
const FORMAT: u32 = 1;

/// The choice of the file of tuned thresholds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TunedFile {
    /// The user's file, if it exists.
    #[default]
    Auto,
    /// No file.
    Off,
    /// The file at this path, which must exist.
    At(PathBuf),
}

/// The setting for the choice of the file.
pub const ROWS: &[Row<TunedFile>] = &[Row {
    setting: Setting {
        name: "NTBRING_TUNED",
        default: "auto",
        unit: "file",
        allowed: "auto, off, or a path",
        shared: false,
        meaning:
            "file of thresholds that `ntbring tune` has measured, for thresholds that the environment does not set; \
                  auto: $XDG_CONFIG_HOME/ntbring/tuned.json or ~/.config/ntbring/tuned.json, if it exists",
        tunable: false,
    },
    parse: |file, value| {
        *file = match value {
            "auto" => TunedFile::Auto,
            "off" => TunedFile::Off,
            _ => TunedFile::At(text(value)?.into()),
        };
        Ok(())
    },
}];

/// The machine and link that thresholds were measured on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Place {
    /// The processor, as the kernel calls it.
    pub cpu: String,
    /// Cores of the machine.
    pub cores: usize,
    /// The link model; "none" for links as fast as memory is.
    pub link_model: String,
}

impl Place {
    /// Returns this machine, with this link model ("none" without one).
    pub fn here(link_model: String) -> Place {
        Place { cpu: cpu(), cores: cores(), link_model }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} cores, link model {}", self.cpu, self.cores, self.link_model)
    }
}

/// Returns the name of the processor. If the kernel gives none (on Arm), returns the numbers that identify it.
fn cpu() -> String {
    let lines = fs::File::open("/proc/cpuinfo").map(|file| BufReader::new(file).lines());
    let first = lines.into_iter().flatten().map_while(Result::ok).take_while(|line| !line.is_empty());
    let mut numbers = Vec::new();
    for line in first {
        let Some((key, value)) = line.split_once(':') else { continue };
        match key.trim() {
            "model name" => return value.trim().to_string(),
            key if key.starts_with("CPU ") => numbers.push(format!("{key} {}", value.trim())),
            _ => {}
        }
    }
    if numbers.is_empty() {
        return std::env::consts::ARCH.to_string();
    }
    numbers.join(", ")
}

/// Returns the number of online cores of the machine. This process may be bound to fewer.
fn cores() -> usize {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let count = |range: &str| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some((from.parse::<usize>().ok()?..=to.parse().ok()?).count())
    };
    let counts: Option<usize> = list.trim().split(',').map(count).sum();
    counts.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// The thresholds of one machine and link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Machine and link on which they were measured.
    pub made_for: Place,
    /// The version of ntbring that measured them.
    pub ntbring: String,
    /// Values of settings, by present or former name; others stay at their defaults.
    pub thresholds: BTreeMap<String, String>,
}

impl Entry {
    /// Returns the settings and their values. Fails, with a description, unless each of them is tunable and valid.
    fn set<S: Default + 'static>(&self, table: &Table<S>) -> Result<Vec<(&'static str, &str)>, String> {
        let tunable = |name: &str| table.find(name).filter(|setting| setting.tunable);
        let one = |(name, value): (&String, &'_ String)| match tunable(name) {
            Some(setting) => match table.set(&mut S::default(), name, value) {
                Ok(()) => Ok(setting.name),
                Err(error) => Err(format!("has {error}")),
            },
            None => {
                let names = table.settings().filter(|setting| setting.tunable).map(|setting| setting.name);
                Err(format!("sets {name}; allowed: {}", names.collect::<Vec<_>>().join(", ")))
            }
        };
        self.thresholds.iter().map(|pair| Ok((one(pair)?, pair.1.as_str()))).collect()
    }
}

/// The file. It has one entry per machine and link, so that machines that share a home directory can share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    tuned: Vec<Entry>,
}

/// Contents of a file for one machine and link.
pub(crate) enum Found {
    /// There is no file.
    Nothing,
    /// Settings to be used, with their values.
    Values(Vec<(&'static str, String)>),
    /// The file cannot be used, for this reason.
    Unfit(String),
}

impl TunedFile {
    /// Returns the path of the file, if one is used. `home` returns environment variables that determine the user's
    /// path.
    pub fn path(&self, home: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        match self {
            TunedFile::Off => None,
            TunedFile::At(path) => Some(path.clone()),
            TunedFile::Auto => {
                // The XDG base directory specification requires an absolute path; other values are ignored.
                let config = home("XDG_CONFIG_HOME").filter(|dir| dir.is_absolute());
                let config = config.or_else(|| Some(home("HOME").filter(|dir| dir.is_absolute())?.join(".config")));
                Some(config?.join("ntbring/tuned.json"))
            }
        }
    }
}

fn unusable(path: &Path, problem: impl fmt::Display) -> SettingError {
    SettingError::Tuned { path: path.display().to_string(), problem: problem.to_string() }
}

/// Reads the entries of a file. Returns None if it does not exist; the inner error is the number of another format.
fn read(path: &Path) -> Result<Option<Result<Vec<Entry>, u32>>, SettingError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, format!("cannot be read: {error}"))),
    };
    let malformed = |error: serde_json::Error| unusable(path, format!("is malformed: {error}"));
    let value: serde_json::Value = serde_json::from_str(&text).map_err(malformed)?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format != u64::from(FORMAT) => Ok(Some(Err(format as u32))),
        _ => Ok(Some(Ok(serde_json::from_value::<File>(value).map_err(malformed)?.tuned))),
    }
}

/// Searches the file for the entry of one machine and link. Every entry must be valid, also those for other machines.
pub(crate) fn find<S: Default + 'static>(
    table: &Table<S>,
    path: &Path,
    must_exist: bool,
    here: impl FnOnce() -> Place,
) -> Result<Found, SettingError> {
    let entries = match read(path)? {
        None if must_exist => return Err(unusable(path, "is not there")),
        None => return Ok(Found::Nothing),
        Some(Err(format)) => return Ok(Found::Unfit(format!("it has format {format}, this ntbring reads {FORMAT}"))),
        Some(Ok(entries)) => entries,
    };
    let here = here();
    let mut found = None;
    for entry in &entries {
        let set = entry.set(table).map_err(|problem| unusable(path, problem))?;
        if entry.made_for == here {
            found = Some(set.into_iter().map(|(setting, value)| (setting, value.to_string())).collect());
        }
    }
    Ok(found.map_or_else(
        || {
            let places: Vec<String> = entries.iter().map(|entry| entry.made_for.to_string()).collect();
            Found::Unfit(format!("it was made for {}; this is {here}", places.join("; for ")))
        },
        Found::Values,
    ))
}

/// Replaces the file's entry for the same machine and link, or adds it. Creates the file if it does not exist, and
/// replaces it if it is malformed. The update is atomic: other processes see either the old or the new file.
pub fn save(path: &Path, entry: &Entry) -> Result<(), SettingError> {
    let entries = read(path).ok().flatten().and_then(Result::ok).unwrap_or_default();
    let mut tuned: Vec<Entry> = entries.into_iter().filter(|old| old.made_for != entry.made_for).collect();
    tuned.push(entry.clone());
    let work = || -> std::io::Result<()> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let mut text = serde_json::to_string_pretty(&File { format: FORMAT, tuned })?;
        text.push('\n');
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        let written = fs::File::create(&temporary)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&temporary, path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    };
    work().map_err(|error| unusable(path, format!("cannot be written: {error}")))
}
