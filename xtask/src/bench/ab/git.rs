//! Commits of the repository, the content of the present tree, and a git work tree in which commits are built.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{paths, process};

/// The object name of a path that a tree does not have: empty.
const ABSENT: &str = "";

fn git(args: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(paths::root()).args(args);
    command
}

/// Returns the full hash of the commit that a text names.
pub fn commit(text: &str) -> Option<String> {
    let named = format!("{text}^{{commit}}");
    process::first_line(&mut git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &named]))
}

/// Returns the short hash and the subject of a commit.
pub fn title(hash: &str) -> Result<String> {
    Ok(process::output(&mut git(&["log", "-1", "--format=%h %s", hash]))?.trim().to_string())
}

/// Returns the present content of the repository as a git tree, including uncommitted changes and new files but without
/// ignored files. The user's index is not changed; `index` is the file of a temporary index.
pub fn present_tree(index: &Path) -> Result<String> {
    let with_index = |args: &[&str]| {
        let mut command = git(args);
        process::output(command.env("GIT_INDEX_FILE", index))
    };
    paths::remove(index)?;
    with_index(&["read-tree", "HEAD"])?;
    with_index(&["add", "--all", "."])?;
    Ok(with_index(&["write-tree"])?.trim().to_string())
}

/// Returns the object that a commit or tree has at a path; empty if there is none.
pub fn object(tree: &str, path: &str) -> String {
    let named = format!("{tree}:{path}");
    process::first_line(&mut git(&["rev-parse", "--verify", "--quiet", &named])).unwrap_or_else(|| ABSENT.to_string())
}

/// Checks out a commit in the work tree `dir`. Ignored files, such as those of an earlier build, stay.
pub fn check_out(hash: &str, dir: &Path, log: &Path) -> Result<()> {
    let place = dir.to_str().context("the path of the repository must be valid UTF-8")?;
    let unhooked = ["-c", "core.hooksPath=/dev/null"];
    if is_work_tree(dir) {
        let in_tree = |args: &[&str]| {
            let mut command = Command::new("git");
            process::check_logged(command.arg("-C").arg(dir).args(unhooked).args(args), log)
        };
        in_tree(&["checkout", "--quiet", "--force", "--detach", hash])?;
        return in_tree(&["clean", "-fdq"]);
    }
    paths::remove(dir)?;
    process::check_logged(&mut git(&["worktree", "prune"]), log)?;
    let mut add = git(&unhooked);
    process::check_logged(add.args(["worktree", "add", "--force", "--detach", place, hash]), log)
}

/// Returns true if `dir` is a work tree. Without its administrative file git takes it for a part of the repository
/// around it.
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
