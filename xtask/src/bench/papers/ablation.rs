//! `bench ablation`: the five models of MPI-VMMC (KAIST 2000), bandwidth by size.

use anyhow::Result;

use super::Column;
use crate::bench::figures::{median, number, size, Figures};
use crate::bench::report::plot::{self, Series};
use crate::bench::tables::{factor, Table};

const TEST: &str = "bandwidth";
const RANKS: usize = 2;

/// Below this the paper's figure for queue management holds.
const SMALL: u64 = 1000;

/// What the models are run on.
pub struct Link {
    /// For titles.
    pub name: &'static str,
    /// For the names of files.
    pub short: &'static str,
    /// The models; the first six are those of [`MODELS`].
    pub columns: &'static [Column],
}

const MODELS: [&str; 6] = ["1", "1-packed", "2", "3", "4", "5"];

// Everything in one entry that fits half an entry of the lane between hosts: the lane to oneself must not be smaller.
const LANE: (&str, &str) = ("NTBRING_LOCAL_LANE", "1M");
const WINDOW: (&str, &str) = ("NTBRING_WINDOW", "1M");
const PIECES: (&str, &str) = ("NTBRING_CHUNK", "16K");
const STREAMED: (&str, &str) = ("NTBRING_SINGLE_COPY", "off");
const MODEL: &str = "NTBRING_PAPER_MODEL";
const GEN3X8: (&str, &str) = ("NTBRING_LINK_MODEL", "gen3x8");

const WHAT: [&str; 7] = [
    "model 1: none of the mechanisms",
    "model 1 with header and payload in one message: differs from 2 by queue management alone",
    "model 2: queue management",
    "model 3: queue management, zero-copy receive",
    "model 4: queue management, zero-copy send",
    "model 5: all, selected by size, without copies by the kernel",
    "as users get it: model 5, with copies by the kernel where they can be",
];

macro_rules! columns {
    ($suffix:literal, [$($more:expr),*]) => {
        [
            column(concat!("paper-1", $suffix), 0, &[LANE, WINDOW, PIECES, STREAMED, $($more,)* (MODEL, MODELS[0])]),
            column(concat!("paper-1p", $suffix), 1, &[LANE, WINDOW, PIECES, STREAMED, $($more,)* (MODEL, MODELS[1])]),
            column(concat!("paper-2", $suffix), 2, &[LANE, WINDOW, PIECES, STREAMED, $($more,)* (MODEL, MODELS[2])]),
            column(concat!("paper-3", $suffix), 3, &[LANE, WINDOW, PIECES, STREAMED, $($more,)* (MODEL, MODELS[3])]),
            column(concat!("paper-4", $suffix), 4, &[LANE, WINDOW, PIECES, STREAMED, $($more,)* (MODEL, MODELS[4])]),
            column(concat!("paper-5", $suffix), 5, &[LANE, WINDOW, PIECES, STREAMED, $($more,)* (MODEL, MODELS[5])]),
        ]
    };
}

const fn column(name: &'static str, model: usize, env: &'static [(&'static str, &'static str)]) -> Column {
    Column { name, head: MODELS[model], env, what: WHAT[model] }
}

const MODELLED: [Column; 6] = columns!("-gen3x8", [GEN3X8]);
const EMULATED: [Column; 7] = {
    let [a, b, c, d, e, f] = columns!("", []);
    [a, b, c, d, e, f, Column { name: "paper-default", head: "default", env: &[], what: WHAT[6] }]
};

/// On what the models are run. Copies by the kernel are never made on a modelled link, so there production is model 5.
pub const LINKS: [Link; 2] = [
    Link { name: "emulated NTB", short: "emulated", columns: &EMULATED },
    Link { name: "link model gen3x8", short: "gen3x8", columns: &MODELLED },
];

/// The contestants that [`queue_management`] compares.
pub const MODELS_2_AND_1: [&str; 2] = [MODELLED[2].name, MODELLED[0].name];

/// What queue management is worth under gen3x8: the median over small sizes.
pub fn queue_management(figures: &Figures) -> Option<f64> {
    LINKS[1].middle(figures, "1")
}

impl Link {
    fn value(&self, figures: &Figures, column: usize, bytes: u64) -> Option<f64> {
        figures.median(TEST, RANKS, bytes, self.columns[column].name)
    }

    fn sizes(&self, figures: &Figures) -> Vec<u64> {
        let known = |bytes: &u64| (0..self.columns.len()).any(|column| self.value(figures, column, *bytes).is_some());
        figures.sizes(TEST, RANKS).into_iter().filter(known).collect()
    }

    /// What one model reaches of what another does.
    fn ratio(&self, figures: &Figures, model: &str, of: &str, bytes: u64) -> Option<f64> {
        let value = |model: &str| {
            let column = MODELS.iter().position(|name| *name == model)?;
            self.value(figures, column, bytes)
        };
        Some(value(model)? / value(of)?)
    }

    /// Bandwidth of all models, and which of those of the paper is the fastest.
    fn bandwidths(&self, figures: &Figures) -> Table {
        let mut header = vec!["size".to_string()];
        header.extend(self.columns.iter().map(|column| column.head.to_string()));
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

    /// The median, over the small sizes, of what model 2 reaches of another.
    fn middle(&self, figures: &Figures, of: &str) -> Option<f64> {
        let sizes = self.sizes(figures).into_iter().filter(|bytes| *bytes < SMALL);
        let ratios: Vec<f64> = sizes.filter_map(|bytes| self.ratio(figures, "2", of, bytes)).collect();
        (!ratios.is_empty()).then(|| median(&ratios))
    }

    /// What queue management alone is worth.
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

    /// Where models overtake the one that copies on both sides.
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

    /// The plot, if there is anything to plot.
    fn plot(&self, figures: &Figures) -> Result<Option<String>> {
        let sizes = self.sizes(figures);
        let points = |column| {
            let point = |bytes: &u64| Some((*bytes as f64, self.value(figures, column, *bytes)?));
            sizes.iter().filter_map(point).filter(|point| point.0 > 0.0 && point.1 > 0.0).collect::<Vec<_>>()
        };
        let mut series: Vec<Series> = Vec::new();
        for (column, one) in self.columns.iter().enumerate() {
            series.push(Series::of(one.head, points(column)));
        }
        series.retain(|series| !series.points.is_empty());
        if series.is_empty() {
            return Ok(None);
        }
        plot::svg(&format!("the models of MPI-VMMC, {}, MB/s", self.name), "MB/s", &series).map(Some)
    }
}

/// The first size at which it is faster, and the size from which on it always is.
fn crossover(known: &[(u64, bool)]) -> (Option<u64>, Option<u64>) {
    let first = known.iter().find(|(_, faster)| *faster).map(|(bytes, _)| *bytes);
    let always = known.iter().rev().take_while(|(_, faster)| *faster).last().map(|(bytes, _)| *bytes);
    (first, always)
}

/// All tables of which there are figures.
pub fn tables(figures: &Figures) -> Vec<Table> {
    let links = LINKS.iter().filter(|link| !link.sizes(figures).is_empty());
    links
        .flat_map(|link| [link.bandwidths(figures), link.queue_management(figures), link.crossovers(figures)])
        .collect()
}

/// A plot for each link of which there are figures: short name and SVG.
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
                let line = format!("{{\"test\":\"{TEST}\",\"bytes\":{bytes},\"value\":{value},\"unit\":\"MB/s\"}}");
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
    fn each_model_sets_itself() {
        for link in &LINKS {
            for (column, model) in link.columns.iter().zip(MODELS) {
                assert_eq!(column.head, model);
                assert!(column.env.contains(&(MODEL, model)) && column.env.contains(&STREAMED));
                assert_eq!(column.env.contains(&GEN3X8), link.short == "gen3x8");
            }
        }
    }

    #[test]
    fn the_tables_compare_with_the_paper() {
        let tables = tables(&figures());
        assert_eq!(tables.len(), 3, "there are no figures of the link model");
        assert_eq!(tables[0].rows[2], ["8 KiB", "100", "100", "200", "190", "250", "-", "-", "4"]);
        assert_eq!(tables[1].rows[0], ["8 B", "4.00x", "2.00x", "3x"]);
        assert_eq!(tables[1].rows.len(), 3, "8 KiB is not small");
        assert_eq!(tables[1].rows[2], ["median", "3.50x", "1.75x", "3x"]);
        assert_eq!(tables[2].rows[0][1..3], ["512 B", "64 KiB"]);
        assert_eq!(tables[2].rows[1][1..3], ["8 KiB", "8 KiB"]);
        assert_eq!(tables[2].rows[2][1..3], ["never", "never"]);
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
