//! Step 5: regenerate MPICH's generated files after the overlay.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{paths, process};

/// The commands that are run at the top of MPICH's tree, in order. `libtoolize` and `autogen.sh` must never be run:
/// they disturb the packages that MPICH ships with.
const COMMANDS: &[&[&str]] = &[
    &["python3", "maint/gen_ch4_api.py"],
    &["perl", "maint/gen_subcfg_m4"],
    &["aclocal", "-I", "confdb"],
    &["autoconf"],
    &["autoheader"],
    &["automake", "--add-missing", "--copy"],
    &["sh", "-c", ERROR_MESSAGES],
];

/// Collects the texts of all `errnames.txt`, including the netmod's, as MPICH's `autogen.sh` does. (MPICH's makefiles
/// would do it only in maintainer mode, which would also call the autotools at any time.)
const ERROR_MESSAGES: &str = "\
    perl maint/extracterrmsgs -skip=src/util/multichannel/mpi.c $(cat maint/errmsgdirs) > defmsg.new && \
    test -s defmsg.new && mv defmsg.new src/mpi/errhan/defmsg.h";

/// Returns the commands as one text, for the digest of the step.
pub fn description() -> String {
    format!("{COMMANDS:?}")
}

/// Runs the commands.
pub fn run(tree: &Path) -> Result<()> {
    let log = paths::logs().join("regenerate.log");
    for words in COMMANDS {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(tree);
        process::check_logged(&mut command, &log)?;
    }
    Ok(())
}
