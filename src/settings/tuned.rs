//! The file in which `ntbring tune` keeps the thresholds that it has measured.

use super::{Setting, SettingError, Settings, TABLE};
use crate::zerocopy::table;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The format of the file.
const FORMAT: u32 = 1;

/// Which file of tuned thresholds is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TunedFile {
    /// The user's, if there is one.
    Auto,
    /// None.
    Off,
    /// This one; it must be there.
    At(PathBuf),
}

/// For what thresholds were measured.
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
    /// This machine, with the link model of these settings.
    pub fn here(settings: &Settings) -> Place {
        let link_model = settings.link_model.map_or_else(|| "none".into(), |model| model.to_string());
        Place { cpu: cpu(), cores: cores(), link_model }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} cores, link model {}", self.cpu, self.cores, self.link_model)
    }
}

/// The processor's name. Where there is none (on Arm), the numbers that stand for it.
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

/// The machine's cores: not those of this process, which may be bound to one.
fn cores() -> usize {
    let list = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
    let count = |range: &str| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some((from.parse::<usize>().ok()?..=to.parse().ok()?).count())
    };
    let counts: Option<usize> = list.trim().split(',').map(count).sum();
    counts.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()))
}

/// What was measured in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// For what it was measured.
    pub made_for: Place,
    /// The version of ntbring that has measured it.
    pub ntbring: String,
    /// Values of settings, by their names; what is not here stays at its default.
    pub thresholds: BTreeMap<String, String>,
}

impl Entry {
    /// The settings that it sets, with their values.
    fn set(&self) -> Result<Vec<(&'static Setting, &str)>, String> {
        let one = |(name, value): (&String, &'_ String)| match TABLE.iter().find(|setting| setting.name == name) {
            Some(setting) if table::TABLE.iter().any(|t| t.name == name) => {
                (setting.parse)(&mut Settings::default(), value)
                    .map_err(|problem| format!("has {name}={value:?}: {problem}; allowed: {}", setting.allowed))?;
                Ok(setting)
            }
            _ => {
                let names: Vec<&str> = table::TABLE.iter().map(|t| t.name).collect();
                Err(format!("sets {name}; allowed: {}", names.join(", ")))
            }
        };
        self.thresholds.iter().map(|pair| Ok((one(pair)?, pair.1.as_str()))).collect()
    }
}

/// The file: an entry a place, so that machines that share a home directory can share it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    tuned: Vec<Entry>,
}

/// What a file has for this place.
pub(super) enum Found {
    /// There is no file.
    Nothing,
    /// Settings to be used, with their values.
    Values(Vec<(&'static Setting, String)>),
    /// Nothing that fits, for this reason.
    Unfit(String),
}

impl TunedFile {
    /// Where the file is, if one is used; `home` tells the variables that lead to the user's.
    pub fn path(&self, home: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
        match self {
            TunedFile::Off => None,
            TunedFile::At(path) => Some(path.clone()),
            TunedFile::Auto => {
                // The XDG base directory specification: what is no absolute path does not count.
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

/// The entries of a file. None if there is no file, or one of another format.
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

/// What the file has for a place; all of it must make sense, whether it fits or not.
pub(super) fn find(path: &Path, must_exist: bool, here: impl FnOnce() -> Place) -> Result<Found, SettingError> {
    let entries = match read(path)? {
        None if must_exist => return Err(unusable(path, "is not there")),
        None => return Ok(Found::Nothing),
        Some(Err(format)) => return Ok(Found::Unfit(format!("it has format {format}, this ntbring reads {FORMAT}"))),
        Some(Ok(entries)) => entries,
    };
    let here = here();
    let mut found = None;
    for entry in &entries {
        let set = entry.set().map_err(|problem| unusable(path, problem))?;
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

/// Puts an entry into the file in the stead of what it had for that place; creates it if need be,
/// and anew if it is malformed. Others see the old file or the new one, whole.
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
