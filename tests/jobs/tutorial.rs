//! The tutorial (docs/tutorial.md): its programs compile, and its commands print what it says.
//!
//! A block of the kind `c hello.c` is a file. A block of the kind `console` has commands, each behind `$ `, and their
//! output. Blocks of other kinds are not run. Measured numbers and the order of lines may differ.

use crate::harness::mpiexec;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the fenced blocks of a page: kind and text of each.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let (mut blocks, mut open) = (Vec::new(), None);
    for line in page.lines() {
        open = match (open.take(), line.strip_prefix("```")) {
            (None, kind) => kind.map(|kind| (kind, String::new())),
            (Some((kind, text)), None) => Some((kind, text + line + "\n")),
            (Some(block), Some(_)) => {
                blocks.push(block);
                None
            }
        };
    }
    blocks
}

/// Returns the lines of an output in an order of their own, with `#` for each number that was measured: with two digits
/// behind the point (`#.##` in the page), or of four and more digits.
fn comparable(output: &str) -> Vec<String> {
    let measured = |word: &str| match word.split_once('.') {
        Some((_, digits)) => word == "#.##" || digits.len() == 2 && word.parse::<f64>().is_ok(),
        None => word.len() >= 4 && word.parse::<u64>().is_ok(),
    };
    let word = |word: &str| if measured(word) { "#".to_string() } else { word.to_string() };
    let mut lines: Vec<String> =
        output.lines().map(|line| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ")).collect();
    lines.sort();
    lines
}

/// Runs a command in a directory, with the installation that was built first in the path. Returns its standard output.
fn output(command: &str, dir: &Path) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let done = Command::new("timeout")
        .args(["120", "sh", "-c", command])
        .current_dir(dir)
        .env_remove("LD_LIBRARY_PATH")
        .env("PATH", format!("{}:{path}", mpiexec().parent().unwrap().display()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{command}: {}\n{text}{}", done.status, String::from_utf8_lossy(&done.stderr));
    text
}

#[test]
#[ignore = "needs cargo xtask setup"]
fn the_commands_of_the_tutorial_print_what_it_says() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md")).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut commands = 0;
    for (kind, text) in blocks(&page) {
        match kind.split_once(' ') {
            Some((_, file)) => fs::write(dir.path().join(file), &text).unwrap(),
            None if kind == "console" => {
                for part in text.split("$ ").skip(1) {
                    let (command, expected) = part.split_once('\n').unwrap();
                    assert_eq!(comparable(&output(command, dir.path())), comparable(expected), "{command}");
                    commands += 1;
                }
            }
            None => {}
        }
    }
    assert!(commands > 5, "the tutorial has {commands} commands");
}
