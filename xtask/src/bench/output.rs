//! Shows the results of each benchmark.

use std::fs;

use anyhow::{Context, Result};

use crate::bench::options::BenchArgs;
use crate::bench::stored::Stored;
use crate::bench::{compare, papers, report, suites};
use crate::paths;

fn keep_plot(name: &str, svg: &str) -> Result<()> {
    let file = paths::target().join(format!("bench/{name}.svg"));
    fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    println!("plot: {}", paths::shown(&file));
    Ok(())
}

/// Shows a table for each test, and writes plots.
pub fn show_tables(stored: &Stored) -> Result<()> {
    for table in stored.tables() {
        println!("{}\n", table.text());
    }
    println!("medians of {} rounds; in brackets: how many times better than it the first column is", stored.rounds);
    report::plots(stored)?.iter().try_for_each(|(name, svg)| keep_plot(name, svg))
}

/// Shows the experiment's tables, and writes plots.
pub fn show_ablation(stored: &Stored) -> Result<()> {
    for table in papers::ablation::tables(&stored.figures) {
        println!("{}\n", table.text());
    }
    println!("medians of {} rounds, the models in turn; docs/experiments.md says what the models do", stored.rounds);
    papers::ablation::plots(&stored.figures)?
        .iter()
        .try_for_each(|(link, svg)| keep_plot(&format!("ablation-{link}"), svg))
}

/// Shows the experiment's table.
pub fn show_efficiency(stored: &Stored) {
    if let Some(table) = papers::efficiency::table(&stored.figures) {
        println!("{}\n", table.text());
    }
    println!("medians of {} rounds; {}", stored.rounds, papers::efficiency::PAPERS);
}

/// Shows all measures as a table, those of collectives summed up, and everything as lines of JSON.
pub fn show_comparison(stored: &Stored, args: &BenchArgs) -> Result<()> {
    let only = args.only.as_deref();
    let mut entries = compare::evaluate(stored, only);
    entries.extend(suites::entries(&stored.figures, only));
    println!("{}", compare::table(&entries));
    compare::summary(&entries).iter().for_each(|line| println!("{line}"));
    println!(
        "medians of as many runs as the column says, ours/the peer's, of at least {} rounds; ratio: ours over the peer's; spread: of \
         these runs, ours and the peer's; cores: how far apart they were, as half the round trip of a cache line: only runs in that \
         state of the machine are compared; -: it was not the same for long enough, and all runs are\n",
        stored.rounds
    );
    println!("{}\n", stored.machine.identity());
    for entry in &entries {
        println!("{}", serde_json::to_string(entry)?);
    }
    if args.markdown {
        println!("\n{}", compare::markdown(&stored.machine.identity(), &entries));
    }
    Ok(())
}

/// Writes the page.
pub fn write_report(stored: &Stored) -> Result<()> {
    let file = paths::target().join("bench/report.html");
    report::write(stored, &file)?;
    println!("the report: {}", paths::shown(&file));
    Ok(())
}
