//! The version of ntbring that is tested.

use std::process::Command;

use crate::{paths, process};

/// Returns the commit that is checked out, and says if there are uncommitted changes; None without git.
pub fn commit() -> Option<String> {
    let git = |args: &[&str]| process::first_line(Command::new("git").arg("-C").arg(paths::root()).args(args));
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/conformance*"]).is_some();
    Some(if changed { format!("{hash} with changes") } else { hash })
}
