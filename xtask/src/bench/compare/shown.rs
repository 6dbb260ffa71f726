//! Formats a comparison as a table.

use crate::bench::compare::entry::Entry;
use crate::bench::figures::number;
use crate::bench::tables::factor;
use crate::ui;

/// The heads of the columns of [`cells`].
pub const HEADER: [&str; 11] =
    ["measure", "ours", "best peer", "ratio", "to reach", "reached", "limit", "of limit", "runs", "spread", "cores"];

/// Formats an entry as a row of a table.
pub fn cells(entry: &Entry) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_string());
    let value = |value: Option<f64>| or_dash(value.map(|value| format!("{} {}", number(value), entry.unit)));
    let sign = if entry.better == "lower" { "<=" } else { ">=" };
    let percent = |value: Option<f64>| or_dash(value.map(|value| format!("{:.0}%", 100.0 * value)));
    let timed_out = |whose: usize| match entry.timed_out {
        Some(tests) if tests[whose] > 0 => format!(", {} timed out", tests[whose]),
        _ => String::new(),
    };
    let peer = entry.peer.as_ref().map_or(String::new(), |peer| format!("{} ({peer})", timed_out(1)));
    let of_limit = entry.of_limit_to_reach.map_or(String::new(), |limit| format!(", {sign} {limit:.1} of limit"));
    let runs = |whose: usize| or_dash(entry.runs[whose].map(|runs| runs.to_string()));
    vec![
        entry.name.clone(),
        format!("{}{}", value(entry.ours), timed_out(0)),
        format!("{}{peer}", value(entry.best_peer)),
        or_dash(entry.ratio.map(factor)),
        or_dash(entry.to_reach.map(|ratio| format!("{sign} {ratio:.2}{of_limit}"))),
        or_dash(entry.reached.map(|reached| if reached { "yes" } else { "NO" }.to_string())),
        // The limit of a suite is its target ratio, which another column shows already.
        value(entry.limit.filter(|_| entry.timed_out.is_none())),
        or_dash(entry.of_limit.map(factor)),
        format!("{}/{}", runs(0), runs(1)),
        format!("{} {}", percent(entry.spread[0]), percent(entry.spread[1])),
        or_dash(entry.cores_us.map(|us| format!("{} us", number(us)))),
    ]
}

/// Formats the table for the terminal.
pub fn table(entries: &[Entry]) -> String {
    let rows: Vec<Vec<String>> = entries.iter().map(cells).collect();
    let reached = entries.iter().filter(|entry| entry.reached == Some(true)).count();
    let known = entries.iter().filter(|entry| entry.reached.is_some()).count();
    format!("{}\n{reached} of {known} reached", ui::table(&HEADER, &rows))
}

/// Returns for each shape of collectives how many of its measures are reached.
pub fn summary(entries: &[Entry]) -> Vec<String> {
    let mut shapes: Vec<&String> = Vec::new();
    for shape in entries.iter().filter_map(|entry| entry.shape.as_ref()) {
        if !shapes.contains(&shape) {
            shapes.push(shape);
        }
    }
    let line = |shape: &String| {
        let of_shape = || entries.iter().filter(|entry| entry.shape.as_ref() == Some(shape));
        let reached = of_shape().filter(|entry| entry.reached == Some(true)).count();
        let known = of_shape().filter(|entry| entry.reached.is_some()).count();
        format!("collectives, {shape}: {reached} of {known} reached")
    };
    shapes.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_are_summed_up_by_shape() {
        let entry = |shape: &str, reached| Entry { shape: Some(shape.to_string()), reached, ..Entry::default() };
        let mut entries = vec![entry("a", Some(true)), entry("b", Some(false)), entry("a", Some(false))];
        entries.extend([entry("a", None), Entry { reached: Some(true), ..Entry::default() }]);
        assert_eq!(summary(&entries), ["collectives, a: 1 of 2 reached", "collectives, b: 0 of 1 reached"]);
    }
}
