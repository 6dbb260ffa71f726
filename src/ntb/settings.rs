//! The settings of links: device, shortcuts, link model, faults and other decorators of ports.

use crate::fault::Faults;
use crate::timing::Model;
use crate::Shortcuts;
use ntbring_settings::parse::{number, path};
use ntbring_settings::{Row, Setting};
use std::fmt;
use std::path::PathBuf;

/// The kind of adapters that a job uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// Emulated adapters, between processes of one machine.
    #[default]
    Emulated,
    /// Emulated adapters, between hosts that have nothing in common but this directory, such as containers.
    Shared(PathBuf),
    /// Loopback adapters, between threads of one process, for tests.
    Loopback,
    /// PCI adapters, which the agent with this socket owns.
    Pci(PathBuf),
}

/// The socket of a host's agent, unless another one is named.
pub const AGENT_SOCKET: &str = "/run/ntbring/agent.sock";

impl Device {
    fn parse(text: &str) -> Result<Device, String> {
        match text.split_once(':').unwrap_or((text, "")) {
            ("emu", "") if text == "emu" => Ok(Device::Emulated),
            ("loopback", "") if text == "loopback" => Ok(Device::Loopback),
            ("emu", dir) if dir.starts_with('/') => Ok(Device::Shared(dir.into())),
            ("emu", dir) => Err(format!("{dir:?} is no absolute path of a directory")),
            ("pci", "") if text == "pci" => Ok(Device::Pci(AGENT_SOCKET.into())),
            ("pci", socket) if socket.starts_with('/') => Ok(Device::Pci(socket.into())),
            ("pci", socket) => Err(format!("{socket:?} is no absolute path of a socket")),
            _ => Err("unknown".into()),
        }
    }

    /// Returns the code of the kind, without the directory or the names of adapters.
    pub fn kind(&self) -> u8 {
        match self {
            Device::Emulated => 0,
            Device::Shared(_) => 1,
            Device::Loopback => 2,
            Device::Pci(_) => 3,
        }
    }

    /// Returns the form of the setting's value for the kind with a code.
    pub fn kind_name(kind: u8) -> &'static str {
        ["emu", "emu:DIR", "loopback", "pci"].get(usize::from(kind)).unwrap_or(&"an unknown kind of device")
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Device::Emulated => f.write_str("emu"),
            Device::Shared(dir) => write!(f, "emu:{}", dir.display()),
            Device::Loopback => f.write_str("loopback"),
            Device::Pci(socket) => write!(f, "pci:{}", socket.display()),
        }
    }
}

/// Settings of links.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSettings {
    /// The kind of adapters.
    pub device: Device,
    /// The shortcuts between hosts that may be used if the device grants them.
    pub shortcuts: Shortcuts,
    /// True if processes do not write memory of neighbours that they cannot map, even where the device permits it.
    pub no_direct_stores: bool,
    /// The link model that every cable follows; None: cables have the cost of memory accesses.
    pub model: Option<Model>,
    /// Faults to inject, for tests; None: no faults.
    pub faults: Option<Faults>,
    /// Seed of the reordering if windows are to be weakly ordered; None: they are not.
    pub weak: Option<u64>,
    /// File that records accesses to the ports; the rank is appended to its name. None: no record.
    pub trace: Option<PathBuf>,
}

/// Rows of these settings for the table of all settings.
pub const ROWS: &[Row<LinkSettings>] = &[
    Row {
        setting: Setting {
            name: "NTBRING_DEVICE",
            default: "emu",
            unit: "device",
            allowed: "emu, emu:DIR, loopback, or pci:ADAPTERS",
            shared: true,
            meaning: "adapters that join the hosts: emu, emulated between processes of one machine; emu:DIR, between \
                 containers that share the directory DIR of a memory file system and nothing else; loopback, between \
                 threads of one process (for tests); pci, real ones that the agent ntbringd of each host owns; \
                 pci:SOCKET, of the agent with that socket. Only the kind must be the same on all hosts: the paths DIR \
                 and SOCKET may differ",
            tunable: false,
        },
        parse: |s, v| {
            s.device = Device::parse(v)?;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_SHORTCUTS",
            default: "all",
            unit: "names",
            allowed: "all, none, or some of kernel-copies, segments, windows, processes and lanes, joined by +",
            shared: true,
            meaning: "faster paths that hosts on one machine use beside their links: kernel-copies, copies between \
                 processes by the kernel; segments, mapping of window memory of neighbour hosts; windows, reading of \
                 data that other hosts have written into the windows of neighbour hosts; processes, watching of \
                 processes of other hosts (else each host has a monitor process); lanes, lanes to ranks of hosts that are \
                 not neighbours, past the hosts between; none: hosts behave as separate \
                 machines",
            tunable: false,
        },
        parse: |s, v| {
            s.shortcuts = Shortcuts::parse(v)?;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_DIRECT_STORES",
            default: "on",
            unit: "on or off",
            allowed: "on or off",
            shared: false,
            meaning: "OpenSHMEM: puts into memory of neighbour hosts that cannot be mapped, but that the adapter can \
                 write, are stores; off: requests to its host, as for hosts further away",
            tunable: false,
        },
        parse: |s, v| {
            s.no_direct_stores = match v {
                "on" => false,
                "off" => true,
                _ => return Err("is neither on nor off".into()),
            };
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_LINK_MODEL",
            default: "none",
            unit: "model",
            allowed: "none, gen3x8, pex8733, pex8749, or values such as \
                 bandwidth=6G,latency=900ns,doorbell=2us,register=1us,transfer=1M (a name may stand before them; \
                 other values are those of gen3x8)",
            shared: true,
            meaning: "gives every link the bandwidth, latency, doorbell and register cost of a real one \
                 (docs/link-model.md)",
            tunable: false,
        },
        parse: |s, v| {
            s.model = Model::parse(v)?;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_FAULT",
            default: "none",
            unit: "faults",
            allowed:
                "none, command, or values such as flip=1e-6,drop=1e-5,double=0.01,delay=0.01:50us,bell=0.1,stuck=0+4,\
                 down=every:1s:for:200ms,link=0-1,from=join,timeout=30s,seed=1",
            shared: false,
            meaning:
                "injects faults into the writes between hosts (docs/faults.md; for tests): bits flipped, writes lost, \
                 doubled or delayed, doorbells lost, links down; command: only those of `ntbring link`; each host injects \
                 its own faults into its outgoing writes",
            tunable: false,
        },
        parse: |s, v| {
            s.faults = Faults::parse(v)?;
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_WEAK",
            default: "off",
            unit: "seed",
            allowed: "off, or a number",
            shared: false,
            meaning: "makes the windows weakly ordered: writes between fences arrive in any order and in parts (for \
                 tests; slow)",
            tunable: false,
        },
        parse: |s, v| {
            s.weak = if v == "off" { None } else { Some(number(v)?) };
            Ok(())
        },
    },
    Row {
        setting: Setting {
            name: "NTBRING_TRACE",
            default: "off",
            unit: "file",
            allowed: "off, or a path",
            shared: false,
            meaning: "records every write through the ports (window, fence, scratchpad, doorbell) in FILE.RANK, one JSON \
                 object per line; FILE is the value, and of VCIs but the first FILE.vciN. Reads and kernel copies are \
                 not recorded; existing files are replaced (for tests; slow)",
            tunable: false,
        },
        parse: |s, v| {
            s.trace = path(v)?;
            Ok(())
        },
    },
];
