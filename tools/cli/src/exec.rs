//! `ntbring exec`: runs programs that were linked with another build of MPICH on this installation.

use clap::Args;
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// File name, or name of a link, of every MPICH library of this ABI.
const LIBRARY: &str = "libmpi.so.12";

#[derive(Args)]
pub struct ExecArgs {
    /// Command to run, e.g. `ntbring exec -- mpiexec -launcher fork -hosts h0,h1 -n 2 ./program`
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Replaces this process by the command, with this tool's installation first in the search paths.
pub fn run(args: &ExecArgs) -> Result<(), Box<dyn Error>> {
    let prefix = prefix(&std::env::current_exe()?)?;
    let (program, rest) = args.command.split_first().ok_or("there is no command")?;
    let error = Command::new(program)
        .args(rest)
        .env("PATH", before(prefix.join("bin"), "PATH")?)
        .env("LD_LIBRARY_PATH", before(prefix.join("lib"), "LD_LIBRARY_PATH")?)
        .exec();
    Err(format!("cannot run {}: {error}", program.to_string_lossy()).into())
}

/// Returns the installation to which a tool at this path belongs.
pub fn prefix(tool: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let prefix = tool.parent().and_then(Path::parent).filter(|p| p.join("lib").join(LIBRARY).exists());
    let prefix = prefix.ok_or_else(|| {
        format!("{} belongs to no installation: there is no lib/{LIBRARY} beside its bin", tool.display())
    })?;
    Ok(prefix.to_path_buf())
}

/// Returns the list of directories in `variable`, with `dir` in front.
fn before(dir: PathBuf, variable: &str) -> Result<OsString, Box<dyn Error>> {
    let old = std::env::var_os(variable).filter(|old| !old.is_empty());
    let rest = old.iter().flat_map(std::env::split_paths);
    Ok(std::env::join_paths(std::iter::once(dir).chain(rest))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_installed_tool_has_a_prefix() {
        let dir = tempfile::tempdir().unwrap();
        let tool = dir.path().join("bin/ntbring");
        assert!(prefix(&tool).unwrap_err().to_string().contains("belongs to no installation"));
        std::fs::create_dir_all(dir.path().join("lib")).unwrap();
        std::fs::write(dir.path().join("lib").join(LIBRARY), "").unwrap();
        assert_eq!(prefix(&tool).unwrap(), dir.path());
    }

    #[test]
    fn what_was_there_comes_after() {
        let list = before(PathBuf::from("/x/bin"), "PATH").unwrap();
        let dirs: Vec<PathBuf> = std::env::split_paths(&list).collect();
        assert_eq!(dirs[0], PathBuf::from("/x/bin"));
        assert!(dirs.len() > 1);
        assert_eq!(before(PathBuf::from("/x"), "NTBRING_NO_SUCH_LIST").unwrap(), "/x");
    }
}
