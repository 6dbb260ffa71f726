//! The settings of the ring: windows, lanes, forwarders, reliability.

use crate::ports::RingPorts;
use crate::protocol::THREADS_MAX;
use ntbring_host::HostSettings;
use ntbring_ntb::LinkSettings;
use ntbring_queue::Reliability;
use ntbring_settings::parse::{bytes, number, within};
use ntbring_settings::{Row, Setting};
use std::time::Duration;

/// Settings of the ring.
#[derive(Clone, Debug, PartialEq)]
pub struct RingSettings {
    /// The ports of this host that lead to its left and its right neighbour.
    pub ports: RingPorts,
    /// Bytes of each incoming window; None: chosen by [`crate::layout::WindowLayout`].
    pub window: Option<u64>,
    /// Largest chunk of a message that is sent in chunks, bytes; None: chosen by its size.
    pub chunk: Option<usize>,
    /// Bytes of each lane between ranks of one host.
    pub local_lane: u64,
    /// Longest wait for neighbours when joining the ring.
    pub connect_timeout: Duration,
    /// Time without a keep-alive of a host after which its ranks count as lost.
    pub keepalive_timeout: Duration,
    /// Forwarder threads of this host; None: chosen from the cores.
    pub forwarder_threads: Option<usize>,
    /// Treatment of packets that links lose or damage.
    pub reliability: Reliability,
}

impl Default for RingSettings {
    fn default() -> Self {
        RingSettings {
            ports: RingPorts::default(),
            window: None,
            chunk: None,
            local_lane: 64 << 10,
            connect_timeout: Duration::from_secs(60),
            keepalive_timeout: Duration::from_secs(60),
            forwarder_threads: None,
            reliability: Reliability::Off,
        }
    }
}

/// All settings that joining a ring needs, by the crate that they belong to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JoinSettings {
    /// Shared memory.
    pub host: HostSettings,
    /// Links and their decorators.
    pub links: LinkSettings,
    /// The ring itself.
    pub ring: RingSettings,
    /// Allows kernel copies of payloads between processes for which the kernel permits them.
    pub kernel_copies: bool,
}

fn threads(text: &str) -> Result<usize, String> {
    match number(text)? as usize {
        n if n > THREADS_MAX => Err(format!(
            "more than {THREADS_MAX} would have nothing to do: packets are urgent or bulk, to the left or to the right"
        )),
        n => Ok(within(n as u64, 1, THREADS_MAX as u64)? as usize),
    }
}

/// Table of the ring's settings.
pub const ROWS: &[Row<RingSettings>] = &[
    Row {
        setting: Setting {
            name: "NTBRING_PORTS",
            default: "0,1",
            unit: "ports",
            allowed: "two different numbers from 0 to 3, joined by a comma",
            shared: false,
            meaning: "ports of this host that lead to its left and to its right neighbour in the ring, the left one \
                 first; all ranks of a host need the same",
            tunable: false,
        },
        parse: |s, v| {
            s.ports = RingPorts::parse(v)?;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_WINDOW",
            default: "auto",
            unit: "bytes",
            allowed: "auto, or 64K to 1G",
            shared: true,
            meaning: "size of each incoming window, which is divided into mailboxes and lanes; auto: 1M to \
                  4M, more with fewer hosts and a larger NTBRING_SHM_DIR; 8M under a link model; more \
                  with many ranks, or bulk lanes",
            tunable: false,
        },
        parse: |s, v| {
            s.window = match v {
                "auto" => None,
                _ => Some(within(bytes(v)?, 64 << 10, 1 << 30)?.next_multiple_of(4096)),
            };
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_CHUNK",
            default: "auto",
            unit: "bytes",
            allowed: "auto, or 64 to 4M",
            shared: true,
            meaning:
                "largest chunk of a message that is sent in chunks; at most a quarter of a lane is used; auto: 16K, \
                 between neighbours in coherent memory 32K to 128K, more for larger messages",
            tunable: false,
        },
        parse: |s, v| {
            s.chunk = match v {
                "auto" => None,
                _ => Some(within(bytes(v)?, 64, 4 << 20)? as usize),
            };
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_LOCAL_LANE",
            default: "64K",
            unit: "bytes",
            allowed: "4K to 2M",
            shared: false,
            meaning:
                "size of each lane between two ranks of one host (used when MPICH has no shared-memory module), and \
                 from its forwarder to a rank; also of lanes past hosts (the shortcut lanes), if both ranks have the \
                 same value",
            tunable: false,
        },
        parse: |s, v| {
            s.local_lane = within(bytes(v)?, 4 << 10, 2 << 20)?;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_CONNECT_TIMEOUT",
            default: "60",
            unit: "seconds",
            allowed: "1 to 86400",
            shared: false,
            meaning: "longest wait for the neighbours when joining the ring",
            tunable: false,
        },
        parse: |s, v| {
            s.connect_timeout = Duration::from_secs(within(number(v)?, 1, 86400)?);
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_KEEPALIVE_TIMEOUT",
            default: "60",
            unit: "seconds",
            allowed: "3 to 86400",
            shared: true,
            meaning:
                "time without a keep-alive of a host after which its ranks count as lost; there is a warning after 2 \
                 s. Only where hosts cannot watch each other's processes (NTBRING_SHORTCUTS)",
            tunable: false,
        },
        parse: |s, v| {
            s.keepalive_timeout = Duration::from_secs(within(number(v)?, 3, 86400)?);
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_FORWARDER_THREADS",
            default: "auto",
            unit: "threads",
            allowed: "auto, or 1 to 4",
            shared: false,
            meaning: "threads that forward transit traffic at this host; auto: 1, or more if there are \
                 clearly more cores than ranks (docs/tuning.md)",
            tunable: false,
        },
        parse: |s, v| {
            s.forwarder_threads = if v == "auto" { None } else { Some(threads(v)?) };
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_RELIABILITY",
            default: "off",
            unit: "level",
            allowed: "off, detect, or retry",
            shared: true,
            meaning: "treatment of packets that a link loses or damages: off, none (PCIe links check \
                 themselves); detect, ends the job with an error; retry, retransmits them",
            tunable: false,
        },
        parse: |s, v| {
            s.reliability = Reliability::parse(v)?;
            Ok(())
        },
    },
];
