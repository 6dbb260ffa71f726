//! The table of protocol thresholds: message sizes at which the protocol changes, with their defaults. The defaults
//! were measured on an emulated ring of a machine with two cores; `ntbring tune` measures those of the present
//! machine or link.
//!
//! Thresholds may differ between ranks: a sender chooses the protocol, a receiver chooses the way of fetching
//! rendezvous payloads, and each side accepts the choice of the other.

use super::selection::{SingleCopy, SplitCopy, Thresholds, LONG_HEADER};
use ntbring_settings::parse::{bytes, within};
use ntbring_settings::{Row, Setting};

/// A threshold: a setting in bytes with its limits.
#[derive(Debug)]
pub struct Threshold {
    /// Description of the setting.
    pub setting: Setting,
    /// Smallest allowed number of bytes.
    pub least: u64,
    /// Largest allowed number of bytes.
    pub most: u64,
}

impl Threshold {
    fn parse(&self, text: &str) -> Result<u64, String> {
        within(bytes(text)?, self.least, self.most)
    }
}

/// Largest message for [`super::Protocol::Packed`].
pub const PACKED_MAX: Threshold = Threshold {
    setting: Setting {
        name: "NTBRING_PACKED_MAX",
        default: "16K",
        unit: "bytes",
        allowed: "0 to 4M",
        shared: false,
        meaning: "largest header + payload that is written as one entry; at most a quarter of a lane is used",
        tunable: true,
    },
    least: 0,
    most: 4 << 20,
};

/// Largest message for [`super::Protocol::Chunked`], limited by the size of MPICH's buffers for unexpected messages.
pub const EAGER_MAX: Threshold = Threshold {
    setting: Setting {
        name: "NTBRING_EAGER_MAX",
        default: "66K",
        unit: "bytes",
        allowed: "0 to 66K",
        shared: false,
        meaning: "largest header + payload that is sent eagerly, without rendezvous (64K of payload by default); \
                  messages without payload are always eager",
        tunable: true,
    },
    least: 0,
    most: 66 << 10,
};

/// Largest eager message where the kernel can copy; larger ones use [`super::Fetching::Single`].
pub const SINGLE_COPY: Threshold = Threshold {
    setting: Setting {
        name: "NTBRING_SINGLE_COPY",
        default: "auto:6K",
        unit: "bytes",
        allowed: "auto, auto:N, off, or N, with N from 0 to 64K",
        shared: false,
        meaning: "largest header + payload that the kernel does not copy straight from buffer to buffer, where \
                  it can; auto:N: unless lanes are found to be faster. For blocks of collectives, auto is at least 16K",
        tunable: true,
    },
    least: 0,
    most: 64 << 10,
};

/// Smallest payload for [`super::Fetching::Both`].
pub const SPLIT_COPY: Threshold = Threshold {
    setting: Setting {
        name: "NTBRING_SPLIT_COPY",
        default: "auto:64K",
        unit: "bytes",
        allowed: "auto, auto:N, off, or N, with N from 2 to 1G",
        shared: false,
        meaning:
            "smallest payload of a kernel copy of which each side copies a half (8 times as large if payloads are \
                  exchanged); auto:N: N, or off with more ranks than cores",
        tunable: true,
    },
    least: 2,
    most: 1 << 30,
};

/// All thresholds.
pub const TABLE: [&Threshold; 4] = [&PACKED_MAX, &EAGER_MAX, &SINGLE_COPY, &SPLIT_COPY];

/// Rows of the thresholds for the table of settings.
pub const ROWS: &[Row<Limits>] = &[
    Row {
        setting: PACKED_MAX.setting,
        parse: |s, v| {
            s.packed_max = PACKED_MAX.parse(v)? as usize;
            Ok(())
        },
    },
    Row {
        setting: EAGER_MAX.setting,
        parse: |s, v| {
            s.eager_max = EAGER_MAX.parse(v)? as usize;
            Ok(())
        },
    },
    Row {
        setting: SINGLE_COPY.setting,
        parse: |s, v| {
            s.single_copy = match (v, v.strip_prefix("auto:")) {
                ("auto", _) => DEFAULTS.single_copy,
                ("off", _) => SingleCopy::Never,
                (_, Some(size)) => SingleCopy::Auto(SINGLE_COPY.parse(size)? as usize),
                _ => SingleCopy::Above(SINGLE_COPY.parse(v)? as usize),
            };
            Ok(())
        },
    },
    Row {
        setting: SPLIT_COPY.setting,
        parse: |s, v| {
            s.split_copy = match (v, v.strip_prefix("auto:")) {
                ("auto", _) => DEFAULTS.split_copy,
                ("off", _) => SplitCopy::Never,
                (_, Some(size)) => SplitCopy::Auto(SPLIT_COPY.parse(size)?),
                _ => SplitCopy::From(SPLIT_COPY.parse(v)?),
            };
            Ok(())
        },
    },
];

/// Numeric values of the defaults above.
pub const DEFAULTS: Limits = Limits {
    packed_max: 16 << 10,
    eager_max: 66 << 10,
    single_copy: SingleCopy::Auto(6 << 10),
    split_copy: SplitCopy::Auto(64 << 10),
};

/// Values of the thresholds in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Value of [`PACKED_MAX`].
    pub packed_max: usize,
    /// Value of [`EAGER_MAX`].
    pub eager_max: usize,
    /// Value of [`SINGLE_COPY`].
    pub single_copy: SingleCopy,
    /// Value of [`SPLIT_COPY`].
    pub split_copy: SplitCopy,
}

impl Default for Limits {
    fn default() -> Self {
        DEFAULTS
    }
}

impl Thresholds {
    /// Computes the thresholds of a job. `oversubscribed` is true if it has more ranks than cores. Its lanes take at
    /// most `packed_limit` bytes of header and payload in one entry.
    pub fn new(limits: Limits, oversubscribed: bool, packed_limit: usize) -> Thresholds {
        // A message without payload cannot use rendezvous.
        let eager_max = limits.eager_max.max(LONG_HEADER);
        Thresholds {
            packed_max: limits.packed_max.min(packed_limit),
            eager_max,
            near_eager_max: limits.single_copy.least().map_or(eager_max, |bytes| bytes.max(LONG_HEADER)),
            single_copy: limits.single_copy,
            split_min: match limits.split_copy {
                // With more ranks than cores, the other side should use its core for other work.
                SplitCopy::Auto(bytes) => (!oversubscribed).then_some(bytes),
                SplitCopy::From(bytes) => Some(bytes),
                SplitCopy::Never => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_fitted_to_the_job() {
        let t = Thresholds::new(DEFAULTS, false, 100_000);
        assert_eq!((t.packed_max, t.eager_max, t.near_eager_max, t.split_min), (16384, 67584, 6144, Some(65536)));
        assert!(t.single_copy.is_tuned());
        assert_eq!(Thresholds::new(DEFAULTS, true, 100_000).split_min, None);
        assert_eq!(Thresholds::new(DEFAULTS, true, 1000).packed_max, 1000);
        let always = Limits { split_copy: SplitCopy::From(2), single_copy: SingleCopy::Never, ..DEFAULTS };
        let t = Thresholds::new(always, true, 100_000);
        assert_eq!((t.split_min, t.near_eager_max, t.single_copy.is_tuned()), (Some(2), t.eager_max, false));
    }

    #[test]
    fn nothing_without_payload_is_offered() {
        let none =
            Limits { packed_max: 0, eager_max: 0, single_copy: SingleCopy::Above(0), split_copy: SplitCopy::Never };
        let t = Thresholds::new(none, false, 100_000);
        assert_eq!((t.packed_max, t.eager_max(false), t.eager_max(true)), (0, LONG_HEADER, LONG_HEADER));
    }
}
