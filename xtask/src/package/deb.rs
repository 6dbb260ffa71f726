//! Debian packages: `ntbring` to run programs, `ntbring-dev` to build them.
//!
//! The tree is in `/usr/lib/ntbring`. Names that every MPI has (`mpicc`, `mpiexec`, `libmpi.so`) are alternatives, as
//! Debian's own MPIs do it, with a lower priority than theirs.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use walkdir::WalkDir;

use super::tree::{is_elf, module, Tree, MODULE};
use super::{alternatives, SUMMARY, VERSION};
use crate::setup::packages;
use crate::{paths, process};

/// Directory in which the tree is installed, below the root of the system.
pub const HOME: &str = "usr/lib/ntbring";
/// Programs that only builds need.
const DEVELOPMENT: [&str; 12] = [
    "mpicc", "mpicxx", "mpic++", "mpif77", "mpif90", "mpifort", "oshcc", "oshc++", "oshCC", "oshcxx", "oshfort",
    "mpiCC",
];

/// Links from a directory on everybody's path into the tree.
const RUNTIME_LINKS: [(&str, &str); 5] = [
    ("usr/bin/ntbring", "bin/ntbring"),
    ("usr/share/bash-completion/completions/ntbring", "share/bash-completion/completions/ntbring"),
    ("usr/share/zsh/vendor-completions/_ntbring", "share/zsh/site-functions/_ntbring"),
    ("usr/share/fish/vendor_completions.d/ntbring.fish", "share/fish/vendor_completions.d/ntbring.fish"),
    ("usr/share/modules/modulefiles/mpi/ntbring", MODULE),
];

/// Writes both packages.
pub fn make(tree: &Tree, to: &Path) -> Result<Vec<PathBuf>> {
    packages::install(&["dpkg-dev", "patchelf"])?;
    let (run, build) = (to.join("deb-ntbring"), to.join("deb-ntbring-dev"));
    for dir in [&run, &build] {
        paths::remove(dir)?;
    }
    for name in tree.files()? {
        let dir = if is_development(&name) { &build } else { &run };
        place(&tree.root.join(&name), &dir.join(HOME).join(&name))?;
        let page = name.parent().is_some_and(|dir| dir == Path::new("share/man/man1"));
        let file = name.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        if page && file.starts_with("ntbring") {
            link_to(&run.join(format!("usr/share/man/man1/{file}.gz")), &format!("share/man/man1/{file}.gz"))?;
        }
    }
    paths::remove(&run.join(HOME).join(MODULE))?;
    write(&run.join(HOME).join(MODULE), &module(&format!("/{HOME}")))?;
    for (link, target) in RUNTIME_LINKS {
        link_to(&run.join(link), target)?;
    }
    for (dir, package) in [(&run, "ntbring"), (&build, "ntbring-dev")] {
        link_to(&dir.join("usr/share/doc").join(package), "share/doc/ntbring")?;
    }
    let depends = libraries(tree, to)?;
    let packages = [
        (run, "ntbring", depends, alternatives::of_run(&tree.root), "Libraries, launchers and the tool ntbring."),
        (
            build,
            "ntbring-dev",
            format!("ntbring (= {VERSION}), gcc, libc6-dev"),
            alternatives::of_build(&tree.root),
            "Compiler wrappers and headers. C++ and Fortran need g++ and gfortran.",
        ),
    ];
    let mut made = Vec::new();
    for (dir, name, depends, groups, text) in packages {
        settle(&dir.join(HOME))?;
        let file = to.join(format!("{name}_{VERSION}_{}.deb", architecture()));
        write(&dir.join("DEBIAN/control"), &control(name, &depends, text, size(&dir)?))?;
        script(&dir.join("DEBIAN/postinst"), &alternatives::install(&groups))?;
        script(&dir.join("DEBIAN/prerm"), &alternatives::remove(&groups))?;
        let mut build = Command::new("dpkg-deb");
        logged(build.args(["--build", "--root-owner-group"]).arg(&dir).arg(&file))?;
        paths::remove(&dir)?;
        made.push(file);
    }
    Ok(made)
}

/// Runs a command whose output goes to the log of packages.
fn logged(command: &mut Command) -> Result<()> {
    process::check_logged(command, &paths::logs().join("package.log"))
}

/// Changes files below `home` as a fixed place permits and Debian wants: libraries look for others at their final path,
/// since the linker's names of libraries are links in another directory; man pages are compressed.
fn settle(home: &Path) -> Result<()> {
    let mut pages = Command::new("gzip");
    pages.args(["-9n", "--recursive"]).arg(home.join("share/man"));
    logged(&mut pages)?;
    for entry in WalkDir::new(home.join("lib")) {
        let entry = entry?;
        if entry.file_type().is_file() && is_elf(entry.path())? {
            logged(Command::new("patchelf").args(["--set-rpath", &format!("/{HOME}/lib")]).arg(entry.path()))?;
        }
    }
    Ok(())
}

/// Returns the size of all files of a package in KiB, each rounded up.
fn size(dir: &Path) -> Result<u64> {
    let mut sum = 0;
    for entry in WalkDir::new(dir) {
        sum += entry?.metadata()?.len().div_ceil(1024);
    }
    Ok(sum)
}

/// True for a file that only builds need.
fn is_development(name: &Path) -> bool {
    let file = name.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    let linked =
        name.starts_with("lib") && file.ends_with(".so") && !["libntbring.so", "libntbshmem.so"].contains(&file);
    let parts = ["include", "lib/pkgconfig", "lib/cmake", "share/man/man3", "share/doc/mpich"];
    linked || parts.iter().any(|part| name.starts_with(part)) || name.starts_with("bin") && DEVELOPMENT.contains(&file)
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Copies a file or a link.
fn place(from: &Path, to: &Path) -> Result<()> {
    parent(to)?;
    let done = match from.is_symlink() {
        true => fs::read_link(from).and_then(|target| symlink(target, to)),
        false => fs::copy(from, to).map(|_| ()),
    };
    done.with_context(|| format!("cannot copy {}", from.display()))
}

/// Makes a link to a file of the tree.
fn link_to(link: &Path, target: &str) -> Result<()> {
    parent(link)?;
    symlink(Path::new("/").join(HOME).join(target), link).with_context(|| format!("cannot make {}", link.display()))
}

fn parent(file: &Path) -> Result<()> {
    let dir = file.parent().unwrap_or(file);
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    parent(file)?;
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn script(file: &Path, text: &str) -> Result<()> {
    write(file, text)?;
    fs::set_permissions(file, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

/// Returns the packages with the libraries that the tree needs.
fn libraries(tree: &Tree, to: &Path) -> Result<String> {
    let dir = to.join("shlibdeps");
    write(&dir.join("debian/control"), "Source: ntbring\n\nPackage: ntbring\nArchitecture: any\n")?;
    let mut tool = Command::new("dpkg-shlibdeps");
    tool.current_dir(&dir).args(["-O", "--ignore-missing-info"]).arg(format!("-l{}", tree.root.join("lib").display()));
    for name in tree.files()? {
        let file = tree.root.join(&name);
        if !file.is_symlink() && is_elf(&file)? {
            tool.arg(format!("-e{}", file.display()));
        }
    }
    let text = process::output(&mut tool)?;
    paths::remove(&dir)?;
    let line = text.lines().find_map(|line| line.strip_prefix("shlibs:Depends="));
    Ok(line.context("dpkg-shlibdeps names no packages")?.to_string())
}

fn control(name: &str, depends: &str, text: &str, kib: u64) -> String {
    format!(
        "Package: {name}\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: the ntbring authors <ntbring@localhost>\n\
         Installed-Size: {kib}\nSection: net\nPriority: optional\nDepends: {depends}\n\
         Description: {SUMMARY}\n {text}\n",
        architecture()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_need_more_than_runs() {
        let both = ["bin/mpicc", "lib/libmpi.so", "include/mpi.h", "share/man/man3/MPI_Send.3", "lib/libsma.so"];
        assert!(both.iter().all(|name| is_development(Path::new(name))));
        let run = ["bin/mpiexec", "bin/ntbring", "lib/libmpi.so.12", "lib/libntbring.so", "share/man/man1/ntbring.1"];
        assert!(!run.iter().any(|name| is_development(Path::new(name))));
    }
}
