//! Environment variables. Those of the standard begin with `SHMEM_`; their old names begin with `SMA_`.

use thiserror::Error;

/// Size of the symmetric heap if the user gives none, bytes. Only what is allocated uses memory.
const HEAP: u64 = 1 << 30;

/// The variables, with their meanings, for `SHMEM_INFO`.
pub const VARIABLES: [(&str, &str); 5] = [
    (
        "SHMEM_SYMMETRIC_SIZE",
        "largest size of the symmetric heap: a number of bytes with an optional k, m, g or t [1g]",
    ),
    ("SHMEM_DEBUG", "any value: print messages for debugging, for instance if the symmetric heap is full"),
    ("SHMEM_INFO", "any value: print this list when the program starts"),
    ("SHMEM_VERSION", "any value: print the version of the library when the program starts"),
    ("SHMEM_GLOBALS", "off: global and static objects of the program are not symmetric [on]"),
];

/// A variable with an invalid value.
#[derive(Debug, Error, PartialEq)]
#[error("{name}={value}: {what}")]
pub struct BadSetting {
    name: &'static str,
    value: String,
    what: &'static str,
}

/// Values of the variables.
#[derive(Debug, PartialEq)]
pub struct Settings {
    /// Largest size of the symmetric heap, bytes.
    pub heap: u64,
    /// True if messages for debugging are to be printed.
    pub debug: bool,
    /// True if the variables are to be printed.
    pub info: bool,
    /// True if the version is to be printed.
    pub version: bool,
    /// True if global and static objects of the program are symmetric.
    pub globals: bool,
}

impl Settings {
    /// Reads the variables with `get`, which returns the value of one.
    pub fn load(get: impl Fn(&str) -> Option<String>) -> Result<Settings, BadSetting> {
        let standard = |name: &str| get(&format!("SHMEM_{name}")).or_else(|| get(&format!("SMA_{name}")));
        let heap = match standard("SYMMETRIC_SIZE") {
            None => HEAP,
            Some(value) => parse_size(&value).ok_or(BadSetting {
                name: "SHMEM_SYMMETRIC_SIZE",
                value,
                what: "give a size above 0 as a number of bytes, which k, m, g or t may follow (as in 512m)",
            })?,
        };
        let globals = match standard("GLOBALS").as_deref() {
            None | Some("on" | "1") => true,
            Some("off" | "0") => false,
            Some(value) => {
                let value = value.to_string();
                return Err(BadSetting { name: "SHMEM_GLOBALS", value, what: "give on or off" });
            }
        };
        let is_set = |name| standard(name).is_some();
        Ok(Settings { heap, debug: is_set("DEBUG"), info: is_set("INFO"), version: is_set("VERSION"), globals })
    }
}

/// Parses a size as the standard defines it: a decimal number, which may have a fraction, and an optional suffix whose
/// base is 1024; text after the suffix is ignored, and a fraction of a byte is rounded up.
fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    let exponent = match text[end..].chars().next().map(|c| c.to_ascii_lowercase()) {
        None => 0,
        Some('k') => 1,
        Some('m') => 2,
        Some('g') => 3,
        Some('t') => 4,
        Some(_) => return None,
    };
    let bytes = (number * 1024f64.powi(exponent)).ceil();
    (bytes >= 1.0 && bytes < (1u64 << 62) as f64).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_the_standard_says() {
        for (text, bytes) in [
            ("1", Some(1)),
            ("20m", Some(20 << 20)),
            (".5M", Some(1 << 19)),
            ("1.5k", Some(1536)),
            ("2Gigabytes", Some(2 << 30)),
            ("0.0001k", Some(1)),
            ("3t", Some(3 << 40)),
            ("0", None),
            ("", None),
            ("-1", None),
            ("1x", None),
            ("m", None),
            ("1.2.3k", None),
            ("9999999t", None),
        ] {
            assert_eq!(parse_size(text), bytes, "{text}");
        }
    }

    #[test]
    fn old_names_hold_unless_the_new_one_is_set() {
        let with = |set: &'static [(&str, &str)]| {
            Settings::load(|name| set.iter().find(|(n, _)| *n == name).map(|(_, v)| v.to_string()))
        };
        assert_eq!(with(&[]).unwrap().heap, HEAP);
        assert_eq!(with(&[("SMA_SYMMETRIC_SIZE", "1m")]).unwrap().heap, 1 << 20);
        assert_eq!(with(&[("SMA_SYMMETRIC_SIZE", "1m"), ("SHMEM_SYMMETRIC_SIZE", "2m")]).unwrap().heap, 2 << 20);
        assert!(with(&[("SMA_DEBUG", "")]).unwrap().debug);
        assert!(!with(&[("SHMEM_GLOBALS", "off")]).unwrap().globals);
        let error = with(&[("SHMEM_SYMMETRIC_SIZE", "big")]).unwrap_err().to_string();
        assert!(error.contains("SHMEM_SYMMETRIC_SIZE=big") && error.contains("512m"), "{error}");
        assert!(with(&[("SHMEM_GLOBALS", "maybe")]).is_err());
    }
}
