//! The cost model of a link: arithmetic without I/O. Its inputs are the link's state, a number of bytes and the time;
//! its output is the arrival time.

use std::fmt;

/// Ticks per nanosecond. A link's state is kept in ticks (1/16 ns), so that the cost of the smallest packets is not
/// lost in rounding.
pub const TICKS_PER_NS: u64 = 16;

/// Largest payload of one PCIe write packet, bytes.
pub const PAYLOAD_MAX: u64 = 256;
/// Overhead of a packet on the wire in addition to its payload, bytes: framing, sequence number, header with a
/// 64-bit address, checksum.
pub const PACKET_OVERHEAD: u64 = 24;

/// Number of fraction bits of the cost of a byte.
const FRACTION: u32 = 16;

/// Cost parameters of a link.
///
/// The bandwidth is that of long transfers. Their packets are full, so the figure includes the overhead of full
/// packets; a smaller packet is charged for its payload and its overhead on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Bandwidth of long transfers in one direction, bytes per second.
    pub bandwidth: u64,
    /// Time from the moment at which the last byte is on the link until it is in the neighbour's memory, ns.
    pub latency: u64,
    /// Time from the arrival of a ring until the waiter that it wakes can run, ns.
    pub doorbell: u64,
    /// Time of a register access, for which the caller waits, ns.
    pub register: u64,
    /// Largest transfer, bytes; None: unlimited.
    pub transfer: Option<u64>,
}

/// The named link models. docs/link-model.md gives the sources of the numbers.
pub const NAMED: [(&str, Model); 3] = [
    ("gen3x8", Model { bandwidth: 6_000_000_000, latency: 600, doorbell: 2_000, register: 800, transfer: None }),
    ("pex8733", Model { bandwidth: 3_500_000_000, latency: 740, doorbell: 2_000, register: 800, transfer: None }),
    ("pex8749", Model { bandwidth: 2_600_000_000, latency: 740, doorbell: 2_000, register: 800, transfer: None }),
];

impl Model {
    /// Parses the name of a model or a list of values. Returns None for `none`. The error text describes the problem.
    ///
    /// Examples: `gen3x8`, `bandwidth=6G,latency=900ns`, or a name followed by differing values:
    /// `pex8733,doorbell=5us`. Without a name, missing values are those of `gen3x8`.
    pub fn parse(text: &str) -> Result<Option<Model>, String> {
        if text == "none" {
            return Ok(None);
        }
        let mut model = NAMED[0].1;
        let mut said = [false; 5];
        for (i, item) in text.split(',').map(str::trim).enumerate() {
            let Some((key, value)) = item.split_once('=') else {
                match NAMED.iter().find(|(name, _)| *name == item) {
                    Some((_, named)) if i == 0 => model = *named,
                    Some(_) => return Err(format!("a name stands first, {item:?} does not")),
                    None => return Err(format!("{item:?} is neither the name of a link nor key=value")),
                }
                continue;
            };
            let mut limit = 0;
            let (place, field, number) = match key.trim() {
                "bandwidth" => (0, &mut model.bandwidth, rate(value)),
                "latency" => (1, &mut model.latency, duration(value)),
                "doorbell" => (2, &mut model.doorbell, duration(value)),
                "register" => (3, &mut model.register, duration(value)),
                "transfer" => (4, &mut limit, size(value)),
                other => {
                    return Err(format!("{other:?} is none of bandwidth, latency, doorbell, register, transfer"));
                }
            };
            if std::mem::replace(&mut said[place], true) {
                return Err(format!("{} is there twice", key.trim()));
            }
            *field = number.map_err(|problem| format!("{item:?}: {problem}"))?;
            model.transfer = if place == 4 { Some(limit) } else { model.transfer };
        }
        Ok(Some(model))
    }

    /// Returns a 16-bit hash (folded FNV-1a) of the parameters, never 0, by which two hosts compare their models.
    /// Different models have different digests except for rare collisions.
    pub fn digest(&self) -> u16 {
        let mut sum = 0xcbf2_9ce4_8422_2325u64;
        for value in [self.bandwidth, self.latency, self.doorbell, self.register].into_iter().chain(self.transfer) {
            for byte in value.to_le_bytes() {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        ((sum ^ sum >> 16 ^ sum >> 32 ^ sum >> 48) as u16).max(1)
    }

    /// Returns the name of the model with this digest; `none` for 0, and a description for models without a name.
    pub fn name_of(digest: u16) -> String {
        match NAMED.iter().find(|(_, model)| model.digest() == digest) {
            Some((name, _)) => name.to_string(),
            None if digest == 0 => "none".into(),
            None => format!("custom values (digest {digest:04x})"),
        }
    }

    /// Returns the time that a transfer of `bytes` takes over one idle link, ns.
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        self.latency + bytes * 1_000_000_000 / self.bandwidth.max(1)
    }

    /// Returns the model's costs in ticks, for computing arrival times.
    pub fn prices(&self) -> Prices {
        let per_second = u128::from(TICKS_PER_NS) * 1_000_000_000;
        let byte = (per_second << FRACTION).div_ceil(u128::from(self.bandwidth)) as u64;
        // The cost of a full packet is that of its payload; this is the share of one byte on the wire.
        let wire_byte = (byte * PAYLOAD_MAX).div_ceil(PAYLOAD_MAX + PACKET_OVERHEAD);
        Prices { byte, wire_byte, latency: self.latency * TICKS_PER_NS }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Model { bandwidth, latency, doorbell, register, transfer } = self;
        if let Some((name, _)) = NAMED.iter().find(|(_, model)| model == self) {
            write!(f, "{name}: ")?;
        }
        let gigabytes = *bandwidth as f64 / 1e9;
        write!(f, "{gigabytes} GB/s, latency {latency} ns, doorbell {doorbell} ns, register {register} ns")?;
        transfer.map_or(Ok(()), |max| write!(f, ", transfers of at most {max} bytes"))
    }
}

/// Costs of a model, precomputed in ticks (`byte` and `wire_byte` with 16 fraction bits).
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    byte: u64,
    wire_byte: u64,
    latency: u64,
}

impl Prices {
    /// Returns the time that a write of `bytes` occupies the link, ticks, rounded up.
    #[inline]
    pub fn cost(&self, bytes: usize) -> u64 {
        let (full, rest) = (bytes as u64 / PAYLOAD_MAX, bytes as u64 % PAYLOAD_MAX);
        let rest = if rest == 0 { 0 } else { (rest + PACKET_OVERHEAD) * self.wire_byte };
        (full * PAYLOAD_MAX * self.byte + rest).div_ceil(1 << FRACTION)
    }

    /// Puts a write of `bytes` at the time `now` on a link that is free from `free_at` on. Returns the time from which
    /// the link is free again. All times are in ticks.
    #[inline]
    pub fn reserve(&self, free_at: u64, now: u64, bytes: usize) -> u64 {
        free_at.max(now) + self.cost(bytes)
    }

    /// Returns the time, ns, at which a write whose last byte is on the link at `end` (ticks) is in the neighbour's
    /// memory.
    #[inline]
    pub fn arrival(&self, end: u64) -> u64 {
        (end + self.latency).div_ceil(TICKS_PER_NS)
    }
}

/// Parses a decimal number with one of the unit suffixes `units`; returns it multiplied by the unit's scale and
/// rounded. A missing unit is an error, whose text shows `example`.
pub(crate) fn scaled(text: &str, units: &[(&str, f64)], example: &str) -> Result<f64, String> {
    let text = text.trim();
    let (digits, scale) = units
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
        .ok_or_else(|| format!("the unit is missing, as in {example}"))?;
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    match digits.parse::<f64>() {
        Ok(number) if plain => Ok((number * scale).round()),
        _ => Err(format!("{digits:?} is no number, as in {example}")),
    }
}

fn rate(text: &str) -> Result<u64, String> {
    let bytes = scaled(text, &[("G", 1e9), ("M", 1e6)], "6G or 800M")?;
    match bytes {
        b if b < 1e6 => Err("less than 1M bytes a second".into()),
        b if b > 1e12 => Err("more than 1000G bytes a second".into()),
        b => Ok(b as u64),
    }
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = scaled(text, &[("K", 1024.0), ("M", 1_048_576.0)], "64K or 1M")?;
    match bytes {
        b if b < 1024.0 => Err("less than 1K".into()),
        b if b > 1_073_741_824.0 => Err("more than 1024M".into()),
        b => Ok(b as u64),
    }
}

fn duration(text: &str) -> Result<u64, String> {
    let ns = scaled(text, &[("ns", 1.0), ("us", 1e3), ("ms", 1e6)], "900ns or 1.5us")?;
    if ns > 10e6 {
        return Err("more than 10ms".into());
    }
    Ok(ns as u64)
}

#[cfg(test)]
mod tests;
