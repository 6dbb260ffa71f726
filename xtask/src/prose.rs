//! `cargo xtask prose`: doc sentences that begin with a relative word used as a noun, such as "What has arrived".

use anyhow::{Context, Result};
use clap::Args;
use walkdir::WalkDir;

use crate::paths;

/// Words that begin such sentences.
const WORDS: &[&str] = &["What", "Who", "Whoever", "Whether", "How", "Where", "Whatever"];

/// Command-line options.
#[derive(Args, Clone, Debug)]
pub struct ProseArgs {
    /// Print the sentences, too
    #[arg(long)]
    list: bool,
}

/// Counts such sentences in each folder and prints the counts.
pub fn run(args: &ProseArgs) -> Result<()> {
    let mut total = 0;
    for folder in ["src", "tools", "xtask", "benches", "tests", "fuzz"] {
        let found = sentences(folder)?;
        total += found.len();
        println!("{folder:<8} {:>5}", found.len());
        if args.list {
            found.iter().for_each(|line| println!("    {line}"));
        }
    }
    println!("in all   {total:>5}");
    Ok(())
}

fn sentences(folder: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let root = paths::root();
    for entry in WalkDir::new(root.join(folder)).sort_by_file_name() {
        let entry = entry.with_context(|| format!("cannot read {folder}"))?;
        if entry.path().extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(entry.path())?;
            let name = entry.path().strip_prefix(&root).unwrap_or(entry.path()).display().to_string();
            let at = |(number, line): (usize, &str)| format!("{name}:{}: {}", number + 1, line.trim());
            found.extend(text.lines().enumerate().filter(|(_, line)| begins_so(line)).map(at));
        }
    }
    Ok(found)
}

/// Returns true if a line of documentation has a sentence that begins with one of the words.
fn begins_so(line: &str) -> bool {
    let line = line.trim_start();
    let Some(doc) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else { return false };
    doc.split(". ").any(|sentence| {
        let first = sentence.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
        WORDS.contains(&first) && !sentence.trim_end().ends_with('?')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_documentation_counts_and_only_the_first_word_of_a_sentence() {
        for line in ["/// What it holds.", "    //! Waits. Who waits sleeps.", "/// Whether it is open."] {
            assert!(begins_so(line), "{line}");
        }
        for line in ["// What it holds.", "/// The bytes that it holds, and where.", "/// What now?", "let what = 1;"] {
            assert!(!begins_so(line), "{line}");
        }
    }
}
