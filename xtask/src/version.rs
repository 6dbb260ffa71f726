//! Which ntbring this is.

use std::process::Command;

use crate::{paths, process};

/// The commit that is checked out, and whether anything was changed since; None where there is no git.
pub fn commit() -> Option<String> {
    let git = |args: &[&str]| process::first_line(Command::new("git").arg("-C").arg(paths::root()).args(args));
    let hash = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/conformance*"]).is_some();
    Some(if changed { format!("{hash} with changes") } else { hash })
}
