//! Step 5: MPICH's generated files, made anew after our overlay.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::{paths, process};

/// What is run at the top of MPICH's tree, in order. Never `libtoolize` or `autogen.sh`:
/// they disturb the packages that MPICH brings along.
const COMMANDS: &[&[&str]] = &[
    &["python3", "maint/gen_ch4_api.py"],
    &["perl", "maint/gen_subcfg_m4"],
    &["aclocal", "-I", "confdb"],
    &["autoconf"],
    &["autoheader"],
    &["automake", "--add-missing", "--copy"],
    &["sh", "-c", ERROR_MESSAGES],
];

/// Collects the texts of all `errnames.txt`, ours among them, as MPICH's `autogen.sh` does.
/// (Its makefiles would do it too, but only in maintainer mode, which would also call
/// autotools whenever it sees fit.)
const ERROR_MESSAGES: &str = "\
    perl maint/extracterrmsgs -skip=src/util/multichannel/mpi.c $(cat maint/errmsgdirs) > defmsg.new && \
    test -s defmsg.new && mv defmsg.new src/mpi/errhan/defmsg.h";

/// The commands as one text, for the digest of the step.
pub fn description() -> String {
    format!("{COMMANDS:?}")
}

/// Runs them.
pub fn run(tree: &Path) -> Result<()> {
    let log = paths::logs().join("regenerate.log");
    for words in COMMANDS {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(tree);
        process::check_logged(&mut command, &log)?;
    }
    Ok(())
}
