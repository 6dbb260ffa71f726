//! `bench ablation`: the five models of MPI-VMMC (KAIST 2000) by size, as `benches/papers` measures them.

use anyhow::Result;

use crate::bench::figures::{median, number, size, Figures};
use crate::bench::report::plot::{self, Series};
use crate::bench::tables::{factor, Table};

const BANDWIDTH: &str = "bandwidth";
const LATENCY: &str = "latency";
const RANKS: usize = 2;

/// Size in bytes below which the paper's figure for queue management holds.
const SMALL: u64 = 1000;

/// One model on one link.
pub struct Column {
    /// Name of the contestant.
    pub name: &'static str,
    /// Name of the model in the program and in the head of a table.
    pub model: &'static str,
    /// The link model.
    pub link: &'static str,
    /// Description for the legend.
    pub what: &'static str,
}

/// A link on which the models are run.
pub struct Link {
    /// Name for titles.
    pub name: &'static str,
    /// Name for files.
    pub short: &'static str,
    /// The models, in the order of [`MODELS`].
    pub columns: [Column; 6],
}

const MODELS: [&str; 6] = ["1", "1-packed", "2", "3", "4", "5"];

const WHAT: [&str; 6] = [
    "model 1: none of the mechanisms",
    "model 1 with header and payload in one message: differs from 2 by queue management alone",
    "model 2: queue management",
    "model 3: queue management, zero-copy receive",
    "model 4: queue management, zero-copy send",
    "model 5: all, selected by size",
];

const fn columns(names: [&'static str; 6], link: &'static str) -> [Column; 6] {
    const fn column(name: &'static str, model: usize, link: &'static str) -> Column {
        Column { name, model: MODELS[model], link, what: WHAT[model] }
    }
    let [a, b, c, d, e, f] = names;
    [
        column(a, 0, link),
        column(b, 1, link),
        column(c, 2, link),
        column(d, 3, link),
        column(e, 4, link),
        column(f, 5, link),
    ]
}

const EMULATED: [&str; 6] = ["paper-1", "paper-1p", "paper-2", "paper-3", "paper-4", "paper-5"];
const GEN3X8: [&str; 6] =
    ["paper-1-gen3x8", "paper-1p-gen3x8", "paper-2-gen3x8", "paper-3-gen3x8", "paper-4-gen3x8", "paper-5-gen3x8"];
const PEX8733: [&str; 6] =
    ["paper-1-pex8733", "paper-1p-pex8733", "paper-2-pex8733", "paper-3-pex8733", "paper-4-pex8733", "paper-5-pex8733"];

/// The links on which the models are run.
pub const LINKS: &[Link] = &[
    Link { name: "emulated NTB", short: "emulated", columns: columns(EMULATED, "none") },
    Link { name: "link model gen3x8", short: "gen3x8", columns: columns(GEN3X8, "gen3x8") },
    Link { name: "link model pex8733", short: "pex8733", columns: columns(PEX8733, "pex8733") },
];

/// The contestants that [`queue_management`] compares.
pub const MODELS_2_AND_1: [&str; 2] = [GEN3X8[2], GEN3X8[0]];

/// Returns the effect of queue management under gen3x8: the median factor over small sizes.
pub fn queue_management(figures: &Figures) -> Option<f64> {
    LINKS[1].middle(figures, "1")
}

impl Link {
    fn value(&self, figures: &Figures, column: usize, bytes: u64) -> Option<f64> {
        figures.median(BANDWIDTH, RANKS, bytes, self.columns[column].name)
    }

    fn sizes_of(&self, figures: &Figures, test: &str) -> Vec<u64> {
        let value = |column: &Column, bytes| figures.median(test, RANKS, bytes, column.name);
        let known = |bytes: &u64| self.columns.iter().any(|column| value(column, *bytes).is_some());
        figures.sizes(test, RANKS).into_iter().filter(known).collect()
    }

    fn sizes(&self, figures: &Figures) -> Vec<u64> {
        self.sizes_of(figures, BANDWIDTH)
    }

    /// Returns a table of half the round trip of all models; None if it was not measured.
    fn latencies(&self, figures: &Figures) -> Option<Table> {
        let sizes = self.sizes_of(figures, LATENCY);
        let row = |bytes: &u64| {
            let value = |column: &Column| figures.median(LATENCY, RANKS, *bytes, column.name);
            let values = self.columns.iter().map(|column| value(column).map_or("-".to_string(), number));
            [vec![size(*bytes)], values.collect()].concat()
        };
        let header = std::iter::once("size").chain(MODELS).map(str::to_string).collect();
        let (title, rows) = (format!("latency of the models, {}, us", self.name), sizes.iter().map(row).collect());
        (!sizes.is_empty()).then_some(Table { title, header, rows })
    }

    /// Returns the bandwidth of one model over that of another.
    fn ratio(&self, figures: &Figures, model: &str, of: &str, bytes: u64) -> Option<f64> {
        let value = |model: &str| {
            let column = MODELS.iter().position(|name| *name == model)?;
            self.value(figures, column, bytes)
        };
        Some(value(model)? / value(of)?)
    }

    /// Returns a table of the bandwidths of all models, which marks the fastest of the paper's models.
    fn bandwidths(&self, figures: &Figures) -> Table {
        let mut header = vec!["size".to_string()];
        header.extend(self.columns.iter().map(|column| column.model.to_string()));
        header.push("fastest of 2, 3, 4".to_string());
        let row = |bytes: &u64| {
            let mut row = vec![size(*bytes)];
            let values: Vec<_> = (0..self.columns.len()).map(|column| self.value(figures, column, *bytes)).collect();
            row.extend(values.iter().map(|value| value.map_or("-".to_string(), number)));
            let candidates = (2..5).filter_map(|column| Some((MODELS[column], values[column]?)));
            let fastest = candidates.reduce(|best, next| if next.1 > best.1 { next } else { best });
            row.push(fastest.map_or("-", |(name, _)| name).to_string());
            row
        };
        let rows = self.sizes(figures).iter().map(row).collect();
        Table { title: format!("bandwidth of the models, {}, MB/s", self.name), header, rows }
    }

    /// Returns the median, over the small sizes, of the bandwidth of model 2 over that of another model.
    fn middle(&self, figures: &Figures, of: &str) -> Option<f64> {
        let sizes = self.sizes(figures).into_iter().filter(|bytes| *bytes < SMALL);
        let ratios: Vec<f64> = sizes.filter_map(|bytes| self.ratio(figures, "2", of, bytes)).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }

    /// Returns a table of the effect of queue management alone.
    fn queue_management(&self, figures: &Figures) -> Table {
        let sizes: Vec<u64> = self.sizes(figures).into_iter().filter(|bytes| *bytes < SMALL).collect();
        let mut rows = Vec::new();
        let shown = |ratio: Option<f64>| ratio.map_or("-".to_string(), |ratio| format!("{}x", factor(ratio)));
        for bytes in &sizes {
            let ratios = ["1", "1-packed"].map(|of| self.ratio(figures, "2", of, *bytes));
            rows.push(vec![size(*bytes), shown(ratios[0]), shown(ratios[1]), "3x".to_string()]);
        }
        let middles = ["1", "1-packed"].map(|of| shown(self.middle(figures, of)));
        rows.push([&["median".to_string()], &middles[..], &["3x".to_string()]].concat());
        let header = ["size", "2 over 1", "2 over 1-packed", "paper"].map(str::to_string).to_vec();
        Table { title: format!("queue management below {SMALL} B, {}", self.name), header, rows }
    }

    /// Returns a table of the sizes from which models are faster than the one that copies on both sides.
    fn crossovers(&self, figures: &Figures) -> Table {
        let sizes = self.sizes(figures);
        let row = |model: &str, what: &str, paper: &str| {
            let faster = |bytes: u64| self.ratio(figures, model, "2", bytes).map(|ratio| ratio > 1.0);
            let known: Vec<(u64, bool)> = sizes.iter().filter_map(|bytes| Some((*bytes, faster(*bytes)?))).collect();
            let (first, last) = crossover(&known);
            let shown = |bytes: Option<u64>| bytes.map_or("never".to_string(), size);
            vec![format!("{model}: {what}"), shown(first), shown(last), paper.to_string()]
        };
        let header = ["model", "faster than 2 first at", "and at all sizes from", "paper"].map(str::to_string).to_vec();
        let rows = vec![
            row("3", "zero-copy receive", "above 8 KB: no copy at the receiver"),
            row("4", "zero-copy send", "from 16 KB: no copy at the sender"),
            row("5", "selected by size", "<= 8 KB copy on both sides; 8-16 KB at the sender only; >= 16 KB on none"),
        ];
        Table { title: format!("crossovers, {}", self.name), header, rows }
    }

    /// Returns the plot; None if there are no figures.
    fn plot(&self, figures: &Figures) -> Result<Option<String>> {
        let sizes = self.sizes(figures);
        let points = |column| {
            let point = |bytes: &u64| Some((*bytes as f64, self.value(figures, column, *bytes)?));
            sizes.iter().filter_map(point).filter(|point| point.0 > 0.0 && point.1 > 0.0).collect::<Vec<_>>()
        };
        let mut series: Vec<Series> = Vec::new();
        for (column, one) in self.columns.iter().enumerate() {
            series.push(Series::of(one.model, points(column)));
        }
        series.retain(|series| !series.points.is_empty());
        if series.is_empty() {
            return Ok(None);
        }
        plot::svg(&format!("the models of MPI-VMMC, {}, MB/s", self.name), "MB/s", &series).map(Some)
    }
}

/// Returns the first size at which a model is faster, and the size from which on it is always faster.
fn crossover(known: &[(u64, bool)]) -> (Option<u64>, Option<u64>) {
    let first = known.iter().find(|(_, faster)| *faster).map(|(bytes, _)| *bytes);
    let always = known.iter().rev().take_while(|(_, faster)| *faster).last().map(|(bytes, _)| *bytes);
    (first, always)
}

/// Returns all tables for which there are figures.
pub fn tables(figures: &Figures) -> Vec<Table> {
    let of_link = |link: &Link| {
        let of_bandwidth = || [link.bandwidths(figures), link.queue_management(figures), link.crossovers(figures)];
        let known = (!link.sizes(figures).is_empty()).then(of_bandwidth);
        link.latencies(figures).into_iter().chain(known.into_iter().flatten()).collect::<Vec<_>>()
    };
    LINKS.iter().flat_map(of_link).collect()
}

/// Returns a plot for each link that has figures: its short name and the SVG.
pub fn plots(figures: &Figures) -> Result<Vec<(&'static str, String)>> {
    let plots = LINKS.iter().map(|link| Ok(link.plot(figures)?.map(|svg| (link.short, svg))));
    plots.filter_map(Result::transpose).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures() -> Figures {
        let mut figures = Figures::default();
        let mut add = |mpi: &str, values: [f64; 4]| {
            for (bytes, value) in [8u64, 512, 8192, 65536].into_iter().zip(values) {
                let line =
                    format!("{{\"test\":\"{BANDWIDTH}\",\"bytes\":{bytes},\"value\":{value},\"unit\":\"MB/s\"}}");
                figures.add(mpi, 2, &line);
            }
        };
        add("paper-1", [1.0, 10.0, 100.0, 1000.0]);
        add("paper-1p", [2.0, 20.0, 100.0, 1000.0]);
        add("paper-2", [4.0, 30.0, 200.0, 1000.0]);
        add("paper-3", [1.0, 31.0, 190.0, 1500.0]);
        add("paper-4", [1.0, 10.0, 250.0, 1200.0]);
        figures
    }

    #[test]
    fn each_column_is_its_model_on_its_link() {
        for link in LINKS {
            for (column, model) in link.columns.iter().zip(MODELS) {
                assert_eq!(column.model, model);
                assert_eq!(column.link == "none", link.short == "emulated");
                assert!(column.link == "none" || column.name.ends_with(column.link));
            }
        }
    }

    #[test]
    fn the_tables_compare_with_the_paper() {
        let tables = tables(&figures());
        assert_eq!(tables.len(), 3, "there are no figures of the link model");
        assert_eq!(tables[0].rows[2], ["8 KiB", "100", "100", "200", "190", "250", "-", "4"]);
        assert_eq!(tables[1].rows[0], ["8 B", "4.00x", "2.00x", "3x"]);
        assert_eq!(tables[1].rows.len(), 3, "8 KiB is not small");
        assert_eq!(tables[1].rows[2], ["median", "3.50x", "1.75x", "3x"]);
        assert_eq!(tables[2].rows[0][1..3], ["512 B", "64 KiB"]);
        assert_eq!(tables[2].rows[1][1..3], ["8 KiB", "8 KiB"]);
        assert_eq!(tables[2].rows[2][1..3], ["never", "never"]);
        let mut figures = figures();
        figures.add("paper-2", 2, &format!("{{\"test\":\"{LATENCY}\",\"bytes\":8,\"value\":0.5,\"unit\":\"us\"}}"));
        let tables = super::tables(&figures);
        assert_eq!((tables.len(), tables[0].title.as_str()), (4, "latency of the models, emulated NTB, us"));
        assert_eq!(tables[0].rows, [["8 B", "-", "-", "0.500", "-", "-", "-"]]);
    }

    #[test]
    fn crossovers_are_found() {
        assert_eq!(crossover(&[]), (None, None));
        assert_eq!(crossover(&[(1, true), (2, false), (4, true), (8, true)]), (Some(1), Some(4)));
        assert_eq!(crossover(&[(1, true), (2, false)]), (Some(1), None));
    }

    #[test]
    fn what_was_measured_is_plotted() {
        let plots = plots(&figures()).unwrap();
        assert_eq!(plots.len(), 1);
        assert!(plots[0].0 == "emulated" && plots[0].1.contains("1-packed"));
        assert!(super::plots(&Figures::default()).unwrap().is_empty());
    }
}
