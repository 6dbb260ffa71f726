//! The settings of an endpoint, and those of the whole library.

use ntbring_host::HostSettings;
use ntbring_ntb::LinkSettings;
use ntbring_ring::{JoinSettings, RingSettings};
use ntbring_settings::parse::{bytes, number, path, signal, text, within};
use ntbring_settings::{environment, Loaded, Row, Setting, SettingError, Table, TunedFile};
use ntbring_timeline::Calls;
use ntbring_zerocopy::{Limits, SingleCopy};
use std::path::PathBuf;
use std::sync::LazyLock;

/// Settings of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Maximum number of bytes for unexpected messages; None: no limit.
    pub unexpected: Option<u64>,
    /// Fruitless polls before a waiting rank yields its core; None: chosen from the number of cores.
    pub spin: Option<u32>,
    /// Yields before a waiting rank sleeps on its doorbell.
    pub yields: u32,
    /// True if large payloads make progress while their rank computes; None: only if cores are likely to be free.
    pub overlap: Option<bool>,
    /// File to which a line of statistics is appended for each rank.
    pub stats: Option<PathBuf>,
    /// File into which a timeline of all ranks is written.
    pub timeline: Option<PathBuf>,
    /// Number of events of the timeline for which each rank has room.
    pub timeline_events: usize,
    /// The calls of MPI functions that the timeline shows.
    pub timeline_calls: Calls,
    /// Signal on which a rank writes its state to stderr.
    pub dump_signal: Option<i32>,
    /// Filter of the log, in env_logger's syntax.
    pub log: Option<String>,
}

impl Default for EndpointSettings {
    fn default() -> Self {
        EndpointSettings {
            unexpected: Some(64 << 20),
            spin: None,
            yields: 2000,
            overlap: None,
            stats: None,
            timeline: None,
            timeline_events: 256 << 10,
            timeline_calls: Calls::Coarse,
            dump_signal: None,
            log: None,
        }
    }
}

/// The table rows of these settings.
pub const ROWS: &[Row<EndpointSettings>] = &[
    Row {
        setting: Setting {
            name: "NTBRING_UNEXPECTED",
            default: "64M",
            unit: "bytes",
            allowed: "off, or 1M to 1024G",
            shared: false,
            meaning:
                "memory of a rank for unexpected messages, in equal shares for all senders, at least 512K each; a \
                      sender that has used its share waits; off: no limit",
            tunable: false,
        },
        parse: |s, v| {
            s.unexpected = if v == "off" { None } else { Some(within(bytes(v)?, 1 << 20, 1 << 40)?) };
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_SPIN",
            default: "auto",
            unit: "polls",
            allowed: "auto, or 0 to 1000000",
            shared: false,
            meaning: "fruitless polls before a waiting rank yields its core; auto: few with more ranks than cores, \
                      else many",
            tunable: false,
        },
        parse: |s, v| {
            s.spin = if v == "auto" { None } else { Some(within(number(v)?, 0, 1_000_000)? as u32) };
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_YIELDS",
            default: "2000",
            unit: "yields",
            allowed: "0 to 1000000",
            shared: false,
            meaning: "yields of a waiting rank before it sleeps until its doorbell rings",
            tunable: false,
        },
        parse: |s, v| {
            s.yields = within(number(v)?, 0, 1_000_000)? as u32;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_OVERLAP",
            default: "auto",
            unit: "switch",
            allowed: "auto, on or off",
            shared: false,
            meaning:
                "progress of large payloads with a matching receive while their rank computes, by a thread of the \
                      lowest priority; auto: on with at least as many cores as ranks",
            tunable: false,
        },
        parse: |s, v| {
            s.overlap = match v {
                "auto" => None,
                "on" => Some(true),
                "off" => Some(false),
                _ => return Err("it is a switch".into()),
            };
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_STATS",
            default: "off",
            unit: "file",
            allowed: "off, or a path",
            shared: false,
            meaning: "file to which each rank appends one JSON line of counters when it leaves the ring",
            tunable: false,
        },
        parse: |s, v| {
            s.stats = path(v)?;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_TIMELINE",
            default: "off",
            unit: "file",
            allowed: "off, or a path",
            shared: false,
            meaning:
                "file into which a timeline of all ranks is written at the end, for Perfetto; meanwhile each rank \
                      records in a file of its own beside it",
            tunable: false,
        },
        parse: |s, v| {
            s.timeline = path(v)?;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_TIMELINE_EVENTS",
            default: "256K",
            unit: "events",
            allowed: "4K to 64M",
            shared: false,
            meaning: "latest events that each rank keeps for the timeline, 32 bytes each",
            tunable: false,
        },
        parse: |s, v| {
            s.timeline_events = within(bytes(v)?, 4 << 10, 64 << 20)? as usize;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_TIMELINE_CALLS",
            default: "coarse",
            unit: "choice",
            allowed: "coarse or all",
            shared: false,
            meaning:
                "MPI calls in the timeline; coarse: collectives, windows' synchronisation, files, communicators, and \
                      waits in all other calls; all: each send, receive, test, put and query, too",
            tunable: false,
        },
        parse: |s, v| {
            s.timeline_calls = match v {
                "coarse" => Calls::Coarse,
                "all" => Calls::All,
                _ => return Err("it is coarse or all".into()),
            };
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_DUMP_SIGNAL",
            default: "off",
            unit: "signal",
            allowed: "off, USR1, USR2, or a number from 1 to 64",
            shared: false,
            meaning: "signal that makes a rank write its queues, credits and pending work to stderr",
            tunable: false,
        },
        parse: |s, v| {
            s.dump_signal = signal(v)?;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_LOG",
            default: "warn",
            unit: "filter",
            allowed: "error, warn, info, debug, trace, or env_logger's syntax",
            shared: false,
            meaning: "messages that are logged to stderr; debug includes the choices of the library and their reasons",
            tunable: false,
        },
        parse: |s, v| {
            s.log = Some(text(v)?.to_string());
            Ok(())
        },
    },
];

/// All settings of the library, by the crate that they belong to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Settings of shared memory.
    pub host: HostSettings,
    /// Settings of links and their decorators.
    pub links: LinkSettings,
    /// Settings of the ring.
    pub ring: RingSettings,
    /// Thresholds of protocol selection.
    pub limits: Limits,
    /// Settings of messages and waiting.
    pub endpoint: EndpointSettings,
    /// The file of tuned thresholds.
    pub tuned: TunedFile,
}

impl From<Settings> for JoinSettings {
    fn from(settings: Settings) -> JoinSettings {
        let kernel_copies = settings.limits.single_copy != SingleCopy::Never;
        JoinSettings { host: settings.host, links: settings.links, ring: settings.ring, kernel_copies }
    }
}

/// Settings that were removed, each with the text that follows "is not a setting of ntbring" in the error.
const REMOVED: &[(&str, &str)] = &[(
    "NTBRING_PAPER_MODEL",
    " any more (the models of MPI-VMMC are a program of their own: `cargo xtask bench ablation`)",
)];

/// Former and present names of renamed settings.
const RENAMED: &[(&str, &str)] = &[
    ("NTBRING_SILENCE", "NTBRING_KEEPALIVE_TIMEOUT"),
    ("NTBRING_XFER_THREADS", "NTBRING_FORWARDER_THREADS"),
    ("NTBRING_BOTH_COPY", "NTBRING_SPLIT_COPY"),
];

/// The table of all settings.
pub static TABLE: LazyLock<Table<Settings>> = LazyLock::new(|| {
    Table::new()
        .with(ntbring_ring::settings::ROWS, |s: &mut Settings| &mut s.ring)
        .with(ntbring_zerocopy::table::ROWS, |s| &mut s.limits)
        .with(ntbring_settings::tuned::ROWS, |s| &mut s.tuned)
        .with(ROWS, |s| &mut s.endpoint)
        .with(ntbring_host::settings::ROWS, |s| &mut s.host)
        .with(ntbring_ntb::settings::ROWS, |s| &mut s.links)
        .renamed(RENAMED)
        .without(REMOVED)
});

impl Settings {
    /// Loads the settings of this process, with their origins.
    pub fn load() -> Result<Loaded<Settings>, SettingError> {
        Settings::load_from(environment())
    }

    /// Loads the settings from these variables, with their origins.
    pub fn load_from(vars: impl IntoIterator<Item = (String, String)>) -> Result<Loaded<Settings>, SettingError> {
        Loaded::from_vars(&TABLE, vars, |s: &Settings| (s.tuned.clone(), s.link_model()))
    }

    /// Parses the settings among these variables; a tuned file is not read.
    pub fn from_vars(vars: impl IntoIterator<Item = (String, String)>) -> Result<Settings, SettingError> {
        TABLE.from_vars(vars)
    }

    /// Returns the settings after `change`.
    pub fn with(mut self, change: impl FnOnce(&mut Settings)) -> Settings {
        change(&mut self);
        self
    }

    /// Returns the name of the link model, or "none".
    pub fn link_model(&self) -> String {
        self.links.model.map_or_else(|| "none".into(), |model| model.to_string())
    }
}

#[cfg(test)]
mod tests;
