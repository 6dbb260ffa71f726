//! `bench report`: one self-contained page.

pub mod plot;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::bench::compare;
use crate::bench::figures::MACHINE;
use crate::bench::papers::{self, ablation, efficiency};
use crate::bench::stored::Stored;
use crate::bench::suites;
use crate::bench::tables::{limit_of, limit_value, Table};

/// Least number of sizes for which a plot is drawn.
const LEAST_SIZES: usize = 3;

const STYLE: &str = "body{font:15px/1.45 sans-serif;max-width:64em;margin:2em auto;padding:0 1em;color:#222}\
table{border-collapse:collapse;margin:.5em 0 1.5em}td,th{padding:.15em .7em;text-align:right;border-bottom:1px solid #ddd;\
white-space:nowrap}td:first-child,th:first-child{text-align:left}table.text td{text-align:left;white-space:normal;\
word-break:break-word;vertical-align:top}.warning{color:#a00;font-weight:bold}svg{max-width:100%;height:auto}\
.wide{overflow-x:auto}";

/// Writes the page.
pub fn write(stored: &Stored, file: &Path) -> Result<()> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    fs::write(file, page(stored)?).with_context(|| format!("cannot write {}", file.display()))
}

fn page(stored: &Stored) -> Result<String> {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    page += &format!("<title>ntbring: benchmarks</title><style>{STYLE}</style></head><body>\n");
    page += "<h1>ntbring: benchmarks</h1>\n";
    let effort = if stored.quick { ", with little effort (--quick)" } else { "" };
    page += &format!(
        "<p>Medians of {} rounds{effort}. Printed by <code>cargo xtask bench report</code>.</p>\n",
        stored.rounds
    );
    for warning in &stored.machine.warnings {
        page += &format!("<p class=\"warning\">{}</p>\n", escaped(warning));
    }
    for note in &stored.notes {
        page += &format!("<p>{}</p>\n", escaped(note));
    }
    page += "<h2>The machine</h2>\n";
    page += &texts(&stored.machine.lines);
    page += "<h2>The MPIs</h2>\n";
    page += &mpis(stored);
    page += &comparison(stored);
    page += &experiments(stored)?;
    page += "<h2>Plots</h2>\n";
    for (_, svg) in plots(stored)? {
        page += &format!("<div>{svg}</div>\n");
    }
    page += "<h2>Tables</h2>\n<p>In brackets: how many times better than it the first column is.</p>\n";
    for table in stored.tables() {
        page += &format!("<h3>{}</h3>\n{}", escaped(&table.title), html(&table));
    }
    page += "</body></html>\n";
    Ok(page)
}

fn mpis(stored: &Stored) -> String {
    let line = |name: &str, value: String| (name.to_string(), value);
    let mut page = String::new();
    for mpi in stored.compared() {
        let mut lines = vec![line("version", mpi.version.clone())];
        lines.push(line("run as", format!("{} {}", mpi.env.join(" "), mpi.command).trim().to_string()));
        if !mpi.configure.is_empty() {
            lines.push(line("configured with", mpi.configure.clone()));
        }
        page += &format!("<h3>{}: {}</h3>\n{}", escaped(&mpi.name), escaped(&mpi.what), texts(&lines));
    }
    page
}

/// Returns the measures of `bench compare` that have figures.
fn comparison(stored: &Stored) -> String {
    let mut entries = compare::evaluate(stored, None);
    entries.extend(suites::entries(&stored.figures, None));
    let rows: Vec<Vec<String>> = entries.iter().filter(|entry| entry.is_known()).map(compare::cells).collect();
    let header = compare::HEADER.map(str::to_string).to_vec();
    format!("<h2>Compared with the best</h2>\n{}", html(&Table { title: String::new(), header, rows }))
}

/// Returns the experiments of the papers that have figures.
fn experiments(stored: &Stored) -> Result<String> {
    let mut page = String::new();
    for (_, svg) in ablation::plots(&stored.figures)? {
        page += &format!("<div>{svg}</div>\n");
    }
    let tables = ablation::tables(&stored.figures).into_iter().chain(efficiency::table(&stored.figures));
    for table in tables {
        page += &format!("<h3>{}</h3>\n{}", escaped(&table.title), html(&table));
    }
    if page.is_empty() {
        return Ok(page);
    }
    let of_experiments = stored.mpis.iter().filter(|mpi| papers::is_of_experiment(&mpi.name));
    let columns: Vec<_> = of_experiments.map(|mpi| (format!("{} {}", mpi.env.join(" "), mpi.command), mpi)).collect();
    let lines: Vec<_> = columns.into_iter().map(|(command, mpi)| (mpi.what.clone(), command)).collect();
    Ok(format!("<h2>The papers' experiments</h2>\n{page}<p>{}</p>\n{}", escaped(efficiency::PAPERS), texts(&lines)))
}

/// Returns the plots of all tests with enough sizes, each with a name that is valid for a file.
pub fn plots(stored: &Stored) -> Result<Vec<(String, String)>> {
    let tests = stored.figures.tests().into_iter();
    let plots =
        tests.map(|(test, ranks)| Ok(plotted(stored, &test, ranks)?.map(|svg| (format!("{test}-{ranks}-ranks"), svg))));
    plots.filter_map(Result::transpose).collect()
}

fn plotted(stored: &Stored, test: &str, ranks: usize) -> Result<Option<String>> {
    let figures = &stored.figures;
    let sizes = figures.sizes(test, ranks);
    if sizes.iter().filter(|bytes| **bytes > 0).count() < LEAST_SIZES {
        return Ok(None);
    }
    let points = |value: &dyn Fn(u64) -> Option<f64>| -> Vec<(f64, f64)> {
        let positive = sizes.iter().filter(|bytes| **bytes > 0);
        positive.filter_map(|bytes| Some((*bytes as f64, value(*bytes).filter(|value| *value > 0.0)?))).collect()
    };
    let names = stored.compared().map(|mpi| mpi.name.as_str()).chain([MACHINE]);
    let mut series: Vec<plot::Series> =
        names.map(|name| plot::Series::of(name, points(&|bytes| figures.median(test, ranks, bytes, name)))).collect();
    let limit = |bytes| limit_of(test, bytes).and_then(|limit| limit_value(figures, &limit));
    series.push(plot::Series::of(plot::LIMIT, points(&limit)));
    series.retain(|series| !series.points.is_empty());
    if series.iter().all(|series| series.name == plot::LIMIT) {
        return Ok(None);
    }
    plot::svg(&format!("{test}, {ranks} ranks, {}", figures.unit(test)), figures.unit(test), &series).map(Some)
}

fn texts(lines: &[(String, String)]) -> String {
    let row =
        |(name, value): &(String, String)| format!("<tr><td>{}</td><td>{}</td></tr>\n", escaped(name), escaped(value));
    format!("<table class=\"text\">\n{}</table>\n", lines.iter().map(row).collect::<String>())
}

fn html(table: &Table) -> String {
    let cells = |tag: &str, cells: &[String]| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escaped(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = table.rows.iter().map(|row| cells("td", row)).collect();
    format!("<div class=\"wide\"><table>\n{}{rows}</table></div>\n", cells("th", &table.header))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::stored::tests::example;

    #[test]
    fn the_page_has_everything_and_needs_nothing() {
        let page = page(&example()).unwrap();
        for part in [
            "fast &amp; small",
            "an &lt;MPI&gt;",
            "not idle",
            "third: skipped",
            "<svg",
            "latency_8B",
            "--with-all",
            "A=1 mpiexec",
        ] {
            assert!(page.contains(part), "{part}");
        }
        // A test with a single size has a table but no plot. Measures without figures are omitted.
        assert_eq!(page.matches("<svg").count(), 1);
        assert!(page.contains("barrier, 2 ranks") && !page.contains("put_8B"));
        // The names of XML are no addresses that a browser follows.
        let page = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!page.contains("http") && !page.contains("<script") && !page.contains("src="));
        assert_eq!(page.matches("<table").count(), page.matches("</table>").count());
    }

    #[test]
    fn experiments_have_a_section_of_their_own() {
        let mut stored = example();
        let mut mpi = stored.mpis[0].clone();
        mpi.name = "paper-2".to_string();
        stored.mpis.push(mpi);
        assert!(!super::page(&stored).unwrap().contains("The papers"));
        for bytes in [8, 64, 4096] {
            let line = format!("{{\"test\":\"bandwidth\",\"bytes\":{bytes},\"value\":5.5,\"unit\":\"MB/s\"}}");
            stored.figures.add("paper-2", 2, &line);
        }
        let page = super::page(&stored).unwrap();
        assert!(page.contains("The papers") && page.contains("crossovers, emulated NTB"));
        assert_eq!(page.matches("<svg").count(), 2);
        assert!(!page.contains("bandwidth, 2 ranks"), "general tables have no column for it");
    }

    #[test]
    fn nothing_measured_is_still_a_page() {
        let mut stored = example();
        stored.figures = crate::bench::figures::Figures::default();
        stored.mpis.clear();
        assert!(page(&stored).unwrap().ends_with("</html>\n"));
    }
}
