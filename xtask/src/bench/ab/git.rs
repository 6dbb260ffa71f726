//! Commits of the repository, the content of the present tree, and a work tree to build commits in.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{paths, process, setup};

/// An empty name for a path that a tree does not have.
const ABSENT: &str = "";

fn git(args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(paths::root()).args(args);
    command
}

/// The full hash of the commit that a text names.
pub fn commit(text: &str) -> Option<String> {
    let named = format!("{text}^{{commit}}");
    process::first_line(&mut git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &named]))
}

/// The short hash and the subject of a commit.
pub fn title(hash: &str) -> Result<String> {
    Ok(process::output(&mut git(&["log", "-1", "--format=%h %s", hash]))?.trim().to_string())
}

/// The present content of the repository as a tree of git: with changes that are not committed and with new files, without
/// ignored ones. The index of the user is left alone; `index` is a file for another one.
pub fn present_tree(index: &Path) -> Result<String> {
    let with_index = |args: &[&str]| {
        let mut command = git(args);
        process::output(command.env("GIT_INDEX_FILE", index))
    };
    setup::remove(index)?;
    with_index(&["read-tree", "HEAD"])?;
    with_index(&["add", "--all", "."])?;
    Ok(with_index(&["write-tree"])?.trim().to_string())
}

/// The object that a commit or tree has at a path; empty if there is none.
pub fn object(tree: &str, path: &str) -> String {
    let named = format!("{tree}:{path}");
    process::first_line(&mut git(&["rev-parse", "--verify", "--quiet", &named])).unwrap_or_else(|| ABSENT.to_string())
}

/// Makes the work tree `dir` hold a commit. Ignored files, such as those of an earlier build, stay.
pub fn check_out(hash: &str, dir: &Path, log: &Path) -> Result<()> {
    let place = dir.to_str().context("the path of the repository must be text")?;
    let unhooked = ["-c", "core.hooksPath=/dev/null"];
    if is_work_tree(dir) {
        let in_tree = |args: &[&str]| {
            let mut command = Command::new("git");
            process::check_logged(command.arg("-C").arg(dir).args(unhooked).args(args), log)
        };
        in_tree(&["checkout", "--quiet", "--force", "--detach", hash])?;
        return in_tree(&["clean", "-fdq"]);
    }
    setup::remove(dir)?;
    process::check_logged(&mut git(&["worktree", "prune"]), log)?;
    let mut add = git(&unhooked);
    process::check_logged(add.args(["worktree", "add", "--force", "--detach", place, hash]), log)
}

/// Without its administrative file git would take the work tree for a part of the repository around it.
fn is_work_tree(dir: &Path) -> bool {
    let top = process::first_line(Command::new("git").arg("-C").arg(dir).args(["rev-parse", "--show-toplevel"]));
    let real = |path: &Path| fs::canonicalize(path).ok();
    top.is_some_and(|top| real(Path::new(&top)) == real(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_compared_by_path() {
        let Some(head) = commit("HEAD") else { return };
        assert_eq!(head.len(), 40);
        assert!(title(&head).unwrap().starts_with(&head[..7]));
        assert_eq!(object(&head, "include"), object("HEAD", "include"));
        assert_ne!(object(&head, "include"), object(&head, "netmod"));
        assert_eq!(object(&head, "no-such-directory"), ABSENT);
        let dir = tempfile::tempdir().unwrap();
        let tree = present_tree(&dir.path().join("index")).unwrap();
        assert!(!object(&tree, "xtask/src/bench/ab/git.rs").is_empty());
        assert_eq!(object(&tree, "target"), ABSENT);
    }

    #[test]
    fn a_directory_within_a_repository_is_no_work_tree() {
        assert!(!is_work_tree(&paths::root().join("xtask")));
        assert!(!is_work_tree(Path::new("/no/such/directory")));
    }
}
