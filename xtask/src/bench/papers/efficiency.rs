//! `bench efficiency`: the part of the raw window's bandwidth that MPI reaches.

use crate::bench::figures::{number, size, Figures, RAW_WINDOW};
use crate::bench::tables::Table;

const TEST: &str = "bandwidth";
const RANKS: usize = 2;

/// One way of running ntbring.
pub struct Column {
    /// Name of the contestant.
    pub name: &'static str,
    /// Head of its column.
    pub head: &'static str,
    /// Environment variables that are set for it.
    pub env: &'static [(&'static str, &'static str)],
    /// Description for the legend.
    pub what: &'static str,
}

/// The limit of the emulated NTB, measured by `benches/machine/limits.c`.
pub const RAW: &str = "raw_bandwidth";

const MODEL: &str = "NTBRING_LINK_MODEL";

/// The ways of running ntbring, in the order of the table.
pub const COLUMNS: &[Column] = &[
    Column {
        name: "eff-streamed",
        head: "emulated, single copy off",
        env: &[("NTBRING_SINGLE_COPY", "off")],
        what: "emulated NTB, without copies by the kernel: through the window as the raw window is",
    },
    Column { name: "eff-default", head: "emulated, default", env: &[], what: "emulated NTB, as users get it" },
    Column { name: "eff-gen3x8", head: "gen3x8", env: &[(MODEL, "gen3x8")], what: "link model gen3x8" },
    Column { name: "eff-pex8733", head: "pex8733", env: &[(MODEL, "pex8733")], what: "link model pex8733" },
    Column { name: "eff-pex8749", head: "pex8749", env: &[(MODEL, "pex8749")], what: "link model pex8749" },
];

/// Bandwidth of the link under the model gen3x8, in MB/s (docs/link-model.md).
pub const GEN3X8: f64 = 6000.0;

/// Link bandwidths under all models, in MB/s.
const OF_MODELS: [(&str, f64); 3] = [("eff-gen3x8", GEN3X8), ("eff-pex8733", 3500.0), ("eff-pex8749", 2600.0)];

/// Returns the raw window's bandwidth for a column: the model's figure, or the measured one.
fn raw(figures: &Figures, column: &Column, bytes: u64) -> Option<f64> {
    match OF_MODELS.iter().find(|(name, _)| *name == column.name) {
        Some((_, figure)) => Some(*figure),
        None => figures.median(RAW, RANKS, bytes, RAW_WINDOW),
    }
}

/// Returns the table; None if there are no figures.
pub fn table(figures: &Figures) -> Option<Table> {
    let columns: Vec<&Column> = COLUMNS.iter().filter(|column| figures.has(TEST, RANKS, column.name)).collect();
    if columns.is_empty() {
        return None;
    }
    let value = |column: &Column, bytes| figures.median(TEST, RANKS, bytes, column.name);
    let mut header = vec!["size".to_string(), "raw window".to_string()];
    header.extend(columns.iter().map(|column| column.head.to_string()));
    let known = |bytes: &u64| columns.iter().any(|column| value(column, *bytes).is_some());
    let mut rows: Vec<Vec<String>> = Vec::new();
    for bytes in figures.sizes(TEST, RANKS).into_iter().filter(known) {
        let measured = figures.median(RAW, RANKS, bytes, RAW_WINDOW);
        let mut row = vec![size(bytes), measured.map_or("-".to_string(), number)];
        row.extend(columns.iter().map(|column| match (value(column, bytes), raw(figures, column, bytes)) {
            (Some(value), Some(raw)) => format!("{} ({:.1} %)", number(value), 100.0 * value / raw),
            (Some(value), None) => number(value),
            _ => "-".to_string(),
        }));
        rows.push(row);
    }
    let of = |column: &&Column| match OF_MODELS.iter().find(|(name, _)| *name == column.name) {
        Some((_, figure)) => format!("{} (model)", number(*figure)),
        None => "measured".to_string(),
    };
    let mut last = vec!["100 % is".to_string(), String::new()];
    last.extend(columns.iter().map(of));
    rows.push(last);
    let title = "bandwidth of MPI, MB/s, and its share of the raw window".to_string();
    Some(Table { title, header, rows })
}

/// The results that the papers report.
pub const PAPERS: &str =
    "paper 1 (MPI-VMMC): 95 % (90.7 of 95.7 MB/s); paper 3 (OpenSHMEM over an NTB ring): 80-85 %, \
                          by its own figures 75-83 % (4500-5000 of 6000 MB/s)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_right_whole() {
        let mut figures = Figures::default();
        let mut add = |mpi: &str, test: &str, value: f64| {
            let line = format!("{{\"test\":\"{test}\",\"bytes\":65536,\"value\":{value},\"unit\":\"MB/s\"}}");
            figures.add(mpi, 2, &line);
        };
        add("eff-streamed", TEST, 9000.0);
        add("eff-gen3x8", TEST, 5700.0);
        assert_eq!(table(&figures).unwrap().rows[0], ["64 KiB", "-", "9000", "5700 (95.0 %)"]);
        let line = "{\"test\":\"raw_bandwidth\",\"bytes\":65536,\"value\":10000,\"unit\":\"MB/s\"}";
        figures.add(RAW_WINDOW, 2, line);
        let table = table(&figures).unwrap();
        assert_eq!(table.header, ["size", "raw window", "emulated, single copy off", "gen3x8"]);
        assert_eq!(table.rows[0], ["64 KiB", "10000", "9000 (90.0 %)", "5700 (95.0 %)"]);
        assert_eq!(table.rows[1], ["100 % is", "", "measured", "6000 (model)"]);
        assert!(super::table(&Figures::default()).is_none());
    }
}
