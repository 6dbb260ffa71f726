//! The table of settings: name, default, range, meaning, and how each is parsed.

use super::parse::{bytes, number, path, signal, text, within};
use super::{reliability, BothCopy, PaperModel, Settings, SingleCopy, TunedFile};
use crate::ring::crew::THREADS_MAX;
use crate::zerocopy::table::{Threshold, BOTH_COPY, DEFAULTS, EAGER_MAX, PACKED_MAX, SINGLE_COPY};
use ntbring_ntb::fault::Faults;
use ntbring_ntb::timing::Model;
use std::time::Duration;

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
    pub(super) parse: fn(&mut Settings, &str) -> Result<(), String>,
}

macro_rules! setting {
    ($name:expr, $default:expr, $unit:literal, $allowed:expr, $shared:literal, $meaning:expr, $parse:expr) => {
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

/// A threshold of `src/zerocopy`.
macro_rules! threshold {
    ($of:ident, $parse:expr) => {
        setting!($of.name, $of.default, "bytes", $of.allowed, false, $of.meaning, $parse)
    };
}

fn threads(text: &str) -> Result<usize, String> {
    match number(text)? as usize {
        n if n > THREADS_MAX => Err(format!(
            "more than {THREADS_MAX} would have nothing to do: what is forwarded is urgent or bulk, to the left or to the right"
        )),
        n => Ok(within(n as u64, 1, THREADS_MAX as u64)? as usize),
    }
}

fn sized(of: &Threshold, text: &str) -> Result<u64, String> {
    within(bytes(text)?, of.least, of.most)
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
            "size of each incoming window, which is divided into boards and lanes; auto: 1M to 4M, the fewer hosts and the larger NTBRING_SHM_DIR the more; 8M under a link model; more if there are many ranks, or lanes for bulk",
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
            "auto",
            "bytes",
            "auto, or 64 to 4M",
            true,
            "largest piece of a message that is sent in pieces; at most a quarter of a lane is used; auto: 16K, between neighbours in coherent memory 32K to 128K, the more the more there is to be sent",
            |s, v| {
                s.chunk = match v {
                    "auto" => None,
                    _ => Some(within(bytes(v)?, 64, 4 << 20)? as usize),
                };
                Ok(())
            }
        ),
        threshold!(PACKED_MAX, |s, v| {
            s.packed_max = sized(&PACKED_MAX, v)? as usize;
            Ok(())
        }),
        threshold!(EAGER_MAX, |s, v| {
            s.eager_max = sized(&EAGER_MAX, v)? as usize;
            Ok(())
        }),
        threshold!(SINGLE_COPY, |s, v| {
            s.single_copy = match (v, v.strip_prefix("auto:")) {
                ("auto", _) => DEFAULTS.single_copy,
                ("off", _) => SingleCopy::Never,
                (_, Some(size)) => SingleCopy::Auto(sized(&SINGLE_COPY, size)? as usize),
                _ => SingleCopy::Above(sized(&SINGLE_COPY, v)? as usize),
            };
            Ok(())
        }),
        threshold!(BOTH_COPY, |s, v| {
            s.both_copy = match (v, v.strip_prefix("auto:")) {
                ("auto", _) => DEFAULTS.both_copy,
                ("off", _) => BothCopy::Never,
                (_, Some(size)) => BothCopy::Auto(sized(&BOTH_COPY, size)?),
                _ => BothCopy::From(sized(&BOTH_COPY, v)?),
            };
            Ok(())
        }),
        setting!(
            "NTBRING_TUNED",
            "auto",
            "file",
            "auto, off, or a path",
            false,
            "what `ntbring tune` has measured: thresholds that the environment does not set come from there; \
             auto: $XDG_CONFIG_HOME/ntbring/tuned.json or ~/.config/ntbring/tuned.json, if it is there",
            |s, v| {
                s.tuned = match v {
                    "auto" => TunedFile::Auto,
                    "off" => TunedFile::Off,
                    _ => TunedFile::At(text(v)?.into()),
                };
                Ok(())
            }
        ),
        setting!(
            "NTBRING_UNEXPECTED",
            "64M",
            "bytes",
            "off, or 1M to 1024G",
            false,
            "memory of a rank for messages that it has not asked for, in equal shares for all others, at least 512K each; \
             who has used its share waits; off: as much as there is",
            |s, v| {
                s.unexpected = if v == "off" { None } else { Some(within(bytes(v)?, 1 << 20, 1 << 40)?) };
                Ok(())
            }
        ),
        setting!(
            "NTBRING_LOCAL_LANE",
            "64K",
            "bytes",
            "4K to 2M",
            false,
            "size of each lane between two ranks of one host (used when MPICH has no shared-memory module), and from its forwarder to a rank",
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
            "2000",
            "yields",
            "0 to 1000000",
            false,
            "yields of a waiting rank before it sleeps until its doorbell rings",
            |s, v| {
                s.yields = within(number(v)?, 0, 1_000_000)? as u32;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_OVERLAP",
            "auto",
            "switch",
            "auto, on or off",
            false,
            "whether large payloads that a receive was found for go on while their rank computes, by a thread of the lowest priority; \
             auto: on if there are as many cores as ranks",
            |s, v| {
                s.overlap = match v {
                    "auto" => None,
                    "on" => Some(true),
                    "off" => Some(false),
                    _ => return Err("it is a switch".into()),
                };
                Ok(())
            }
        ),
        setting!(
            "NTBRING_XFER_THREADS",
            "auto",
            "threads",
            "auto, or 1 to 4",
            false,
            "threads that forward at this host what is in transit; auto: 1, or more if there are clearly more cores than ranks \
             (docs/tuning.md)",
            |s, v| {
                s.xfer_threads = match v {
                    "auto" => None,
                    _ => Some(threads(v)?),
                };
                Ok(())
            }
        ),
        setting!(
            "NTBRING_LINK_MODEL",
            "none",
            "model",
            "none, gen3x8, pex8733, pex8749, or values such as bandwidth=6G,latency=900ns,doorbell=2us,register=1us,transfer=1M \
             (a name may stand before them; what is left out is as in gen3x8)",
            true,
            "gives every link the bandwidth, latency, doorbell and register cost of a real one (docs/link-model.md)",
            |s, v| {
                s.link_model = Model::parse(v)?;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_PAPER_MODEL",
            "5",
            "model",
            "1, 1-packed, 2, 3, 4, or 5",
            true,
            "leaves out mechanisms for an experiment (docs/experiments.md): 1 all of them, 2 all but queue management, \
             3 zero-copy send, 4 zero-copy receive, 5 none",
            |s, v| {
                s.paper_model = PaperModel::parse(v)?;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_RELIABILITY",
            "off",
            "level",
            "off, detect, or retry",
            true,
            "what is done about packets that a link loses or damages: off nothing (PCIe links check themselves), \
             detect ends the job with an error, retry sends them again",
            |s, v| {
                s.reliability = reliability::parse(v)?;
                Ok(())
            }
        ),
        setting!(
            "NTBRING_FAULT",
            "none",
            "faults",
            "none, command, or values such as flip=1e-6,drop=1e-5,double=0.01,delay=0.01:50us,bell=0.1,stuck=0+4,\
             down=every:1s:for:200ms,link=0-1,from=join,patience=30s,seed=1",
            true,
            "injects faults into what hosts send to each other (docs/faults.md; for tests): bits flipped, writes lost, doubled \
             or delayed, rings lost, links down; command: only what is commanded",
            |s, v| {
                s.fault = Faults::parse(v)?;
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
