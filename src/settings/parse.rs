//! Values of settings, in the notation of the environment. Each function returns the value, or the problem in words.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// Number of cores that an affinity mask has bits for.
const CORES: usize = 1024;

/// Parses a whole number.
pub fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "not a whole number".to_string())
}

/// Parses a number of bytes, with an optional suffix K, M or G.
pub fn bytes(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let n: u64 = digits.parse().map_err(|_| "not a number of bytes such as 65536, 64K or 1M".to_string())?;
    n.checked_mul(1 << shift).ok_or_else(|| "too large".to_string())
}

/// Parses a list of core numbers and ranges of them, such as `2,4-6`.
pub fn cores(text: &str) -> Result<BTreeSet<usize>, String> {
    let mut cores = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let ends: Result<Vec<usize>, _> = [first, last].iter().map(|end| end.parse()).collect();
        match ends.as_deref() {
            Ok(&[first, last]) if first <= last && last < CORES => cores.extend(first..=last),
            _ => return Err(format!("{part:?} is no core below {CORES}, and no range of cores")),
        }
    }
    Ok(cores)
}

/// Returns `n` if it lies between `least` and `most`.
pub fn within(n: u64, least: u64, most: u64) -> Result<u64, String> {
    match n {
        n if n < least => Err("too small".into()),
        n if n > most => Err("too large".into()),
        n => Ok(n),
    }
}

/// Returns the text if it is not empty.
pub fn text(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("empty".into());
    }
    Ok(text)
}

/// Parses a path, or `off` for None.
pub fn path(value: &str) -> Result<Option<PathBuf>, String> {
    Ok(if value == "off" { None } else { Some(text(value)?.into()) })
}

/// Parses a signal by name or number, or `off` for None.
pub fn signal(value: &str) -> Result<Option<i32>, String> {
    Ok(match value.trim_start_matches("SIG") {
        "off" => None,
        "USR1" => Some(libc::SIGUSR1),
        "USR2" => Some(libc::SIGUSR2),
        number => {
            let n = number.parse().map_err(|_| "not a signal".to_string())?;
            within(n, 1, 64)?;
            if n as i32 == libc::SIGKILL || n as i32 == libc::SIGSTOP {
                return Err("this signal cannot be caught".into());
            }
            Some(n as i32)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cores_are_numbers_and_ranges() {
        assert_eq!(cores("3"), Ok([3].into()));
        assert_eq!(cores("2,4-6,5"), Ok([2, 4, 5, 6].into()));
        for text in ["", "1,", "2-", "6-4", "-1", "one", "1024", "0-99999999999"] {
            assert!(cores(text).is_err(), "{text}");
        }
    }
}
