//! What a link costs: pure numbers. State, bytes and the time in; arrival out.

use std::fmt;

/// Time that a link's accounts are kept in: sixteenths of a nanosecond, so that the smallest
/// packets do not vanish in rounding.
pub const TICKS_PER_NS: u64 = 16;

/// The most bytes that one PCIe write packet carries.
pub const PAYLOAD_MAX: u64 = 256;
/// What each packet takes on the wire beside its payload: framing, sequence number, header with a
/// 64-bit address, checksum.
pub const PACKET_OVERHEAD: u64 = 24;

/// Fraction bits of the price of a byte.
const FRACTION: u32 = 16;

/// What a link costs.
///
/// The bandwidth is what long transfers reach. Their packets are full, so the packets' overhead is
/// in that figure; a smaller packet is charged for the share of it that it takes in addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// Bytes a second, of long transfers in one direction.
    pub bandwidth: u64,
    /// From the moment at which the last byte is on the link to that at which it is in the
    /// neighbour's memory, ns.
    pub latency: u64,
    /// From the arrival of a ring to that at which the waiter it wakes could run, ns.
    pub doorbell: u64,
    /// What a caller waits for a register, ns.
    pub register: u64,
    /// The most bytes of one transfer; None: any number.
    pub transfer: Option<u64>,
}

/// The links that have names. docs/link-model.md says where the numbers come from.
pub const NAMED: [(&str, Model); 3] = [
    ("gen3x8", Model { bandwidth: 6_000_000_000, latency: 600, doorbell: 2_000, register: 800, transfer: None }),
    ("pex8733", Model { bandwidth: 3_500_000_000, latency: 740, doorbell: 2_000, register: 800, transfer: None }),
    ("pex8749", Model { bandwidth: 2_600_000_000, latency: 740, doorbell: 2_000, register: 800, transfer: None }),
];

impl Model {
    /// The model of that name or with those values; None for `none`. The error says what is wrong.
    ///
    /// `gen3x8`, `bandwidth=6G,latency=900ns`, or a name and what differs: `pex8733,doorbell=5us`.
    /// What is not said is as in `gen3x8`.
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

    /// A number that differs for different models (by all that matters) and is never 0: for telling
    /// whether two hosts have the same.
    pub fn digest(&self) -> u16 {
        let mut sum = 0xcbf2_9ce4_8422_2325u64;
        for value in [self.bandwidth, self.latency, self.doorbell, self.register].into_iter().chain(self.transfer) {
            for byte in value.to_le_bytes() {
                sum = (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
            }
        }
        ((sum ^ sum >> 16 ^ sum >> 32 ^ sum >> 48) as u16).max(1)
    }

    /// What a digest stands for, in words; 0 is no model.
    pub fn name_of(digest: u16) -> String {
        match NAMED.iter().find(|(_, model)| model.digest() == digest) {
            Some((name, _)) => name.to_string(),
            None if digest == 0 => "none".into(),
            None => format!("custom values (digest {digest:04x})"),
        }
    }

    /// The time that a transfer of `bytes` takes over one link, ns.
    pub fn transfer_ns(&self, bytes: u64) -> u64 {
        self.latency + bytes * 1_000_000_000 / self.bandwidth.max(1)
    }

    /// The price list of this model.
    pub fn prices(&self) -> Prices {
        let per_second = u128::from(TICKS_PER_NS) * 1_000_000_000;
        let byte = (per_second << FRACTION).div_ceil(u128::from(self.bandwidth)) as u64;
        // A full packet costs what its payload does; of that, this is for one byte on the wire.
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

/// A model, made ready for reckoning.
#[derive(Clone, Copy, Debug)]
pub struct Prices {
    byte: u64,
    wire_byte: u64,
    latency: u64,
}

impl Prices {
    /// How long a write of `bytes` keeps the link busy, ticks. Rounded up.
    #[inline]
    pub fn cost(&self, bytes: usize) -> u64 {
        let (full, rest) = (bytes as u64 / PAYLOAD_MAX, bytes as u64 % PAYLOAD_MAX);
        let rest = if rest == 0 { 0 } else { (rest + PACKET_OVERHEAD) * self.wire_byte };
        (full * PAYLOAD_MAX * self.byte + rest).div_ceil(1 << FRACTION)
    }

    /// A link that is free from `free_at` on is given a write of `bytes` at `now` (ticks): from when
    /// on it is free again.
    #[inline]
    pub fn reserve(&self, free_at: u64, now: u64, bytes: usize) -> u64 {
        free_at.max(now) + self.cost(bytes)
    }

    /// When what ends on the link at `end` (ticks) is in the neighbour's memory, ns.
    #[inline]
    pub fn arrival(&self, end: u64) -> u64 {
        (end + self.latency).div_ceil(TICKS_PER_NS)
    }
}

/// A decimal number with an optional suffix, scaled and rounded.
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
