//! `cargo xtask docs`: builds the documentation as a site with search, by mdBook.
//!
//! | file | holds |
//! |---|---|
//! | `pages` | all pages, their headings and links |
//! | `problems` | links without a target, and pages that `docs/SUMMARY.md` lacks |
//! | `book` | the pages as mdBook takes them, README.md and CHANGELOG.md among them |
//! | `mdbook` | the tool itself, which is installed at its first use |
//! | `site` | the links of the finished site |

mod book;
mod mdbook;
mod pages;
mod problems;
mod site;

use std::fs;
use std::process::Command;

use anyhow::{bail, Context, Result};
use clap::Args;

use self::pages::Pages;
use crate::{paths, process, ui};

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct DocsArgs {
    /// Write the pages of docs/reference first, from the tables of settings and counters in the code
    #[arg(long)]
    reference: bool,

    /// Fail if mdBook warns of something, or if a link of the site leads nowhere
    #[arg(long)]
    check: bool,

    /// Open the site in a browser
    #[arg(long)]
    open: bool,
}

/// Builds the site in target/docs.
pub fn run(args: &DocsArgs) -> Result<()> {
    if args.reference {
        ui::step("docs/reference, from the tables in the code", write_reference)?;
    }
    let pages = Pages::load(&paths::root())?;
    let problems = problems::of_pages(&pages);
    if !problems.is_empty() {
        bail!("the pages have links that lead nowhere:\n  {}", problems.join("\n  "));
    }
    let mdbook = mdbook::provide()?;
    let (source, target) = (paths::target().join("docs-source"), paths::target().join("docs"));
    book::write(&pages, &source)?;
    paths::remove(&target)?;
    let log = paths::logs().with_file_name("docs.log");
    let mut command = Command::new(mdbook);
    command.arg("build").arg(&source).arg("--dest-dir").arg(&target);
    if args.open {
        command.arg("--open");
    }
    // All but the table of contents.
    let name = format!("{} pages, with search", pages.iter().count() - 1);
    let outcome = ui::step(&name, || process::run_captured(&mut command, &log, None))?;
    if !outcome.success() {
        return Err(ui::error_with_log(format!("mdbook: {}", outcome.describe()), &log));
    }
    if args.check {
        check(&fs::read_to_string(&log)?, &site::problems(&target)?)?;
    }
    println!("the site is in {}", paths::shown(&target.join("index.html")));
    Ok(())
}

/// Fails if mdBook's log has a warning, or if there are links of the site that lead nowhere.
fn check(log: &str, problems: &[String]) -> Result<()> {
    let warnings = log.lines().filter(|line| ["[WARN]", "[ERROR]"].iter().any(|level| line.contains(level)));
    let all: Vec<&str> = warnings.chain(problems.iter().map(String::as_str)).collect();
    if !all.is_empty() {
        bail!("the site has faults:\n  {}", all.join("\n  "));
    }
    Ok(())
}

/// Writes the pages that are made of tables in the code; the tool `ntbring` prints them.
fn write_reference() -> Result<()> {
    for page in ["settings", "counters"] {
        let mut describe = Command::new("cargo");
        describe.args(["run", "--quiet", "--package", "ntbring-cli", "--", "describe", page]);
        let text = process::output(describe.current_dir(paths::root()))?;
        let file = paths::root().join("docs/reference").join(page).with_extension("md");
        fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_and_dead_links_are_faults() {
        assert!(check("2026-01-01 [INFO] (mdbook::book): Book building has started\n", &[]).is_ok());
        assert!(check("2026-01-01 [WARN] (mdbook::x): strange\n", &[]).unwrap_err().to_string().contains("strange"));
        assert!(check("", &["a.html: no b.html".to_string()]).is_err());
    }
}
