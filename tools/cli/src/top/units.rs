//! Numbers as short text.

/// Formats a number with three digits and a decimal prefix: `1.23 G`.
pub fn short(value: f64) -> String {
    const PREFIXES: [&str; 5] = ["", "k", "M", "G", "T"];
    let (mut value, mut prefix) = (value, 0);
    // 999.5 would be rounded to four digits.
    while value >= 999.5 && prefix + 1 < PREFIXES.len() {
        (value, prefix) = (value / 1000.0, prefix + 1);
    }
    let digits = match value {
        v if prefix == 0 && v == v.round() => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", PREFIXES[prefix]).trim_end().to_string()
}

/// Formats a number of bytes, or of bytes per second with `per` = "/s".
pub fn bytes(value: f64, per: &str) -> String {
    let number = short(value);
    let space = if number.contains(' ') { "" } else { " " };
    format!("{number}{space}B{per}")
}

/// Formats a rate, `-` if it is unknown.
pub fn rate(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".into(), show)
}

/// Formats a time as hours, minutes and seconds.
pub fn clock(seconds: f64) -> String {
    let seconds = seconds as u64;
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Formats an age in seconds.
pub fn age(seconds: f64) -> String {
    match seconds {
        s if s < 99.95 => format!("{s:.1} s"),
        s => clock(s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let shown = [0.0, 5.0, 0.5, 999.0, 999.7, 1000.0, 12_345.0, 123_456.0, 999_600.0, 6e9, 1e15].map(short);
        let wanted = ["0", "5", "0.50", "999", "1.00 k", "1.00 k", "12.3 k", "123 k", "1.00 M", "6.00 G", "1000 T"];
        assert_eq!(shown, wanted);
        assert_eq!((bytes(6e9, "/s"), bytes(5.0, "")), ("6.00 GB/s".into(), "5 B".into()));
    }

    #[test]
    fn times_are_readable() {
        assert_eq!((clock(3723.9), age(3.12), age(100.0)), ("1:02:03".into(), "3.1 s".into(), "0:01:40".into()));
    }
}
