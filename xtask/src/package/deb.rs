//! Debian packages: `ntbring` to run programs, `ntbring-dev` to build them.
//!
//! The tree is in `/usr/lib/ntbring`. Names that every MPI has (`mpicc`, `mpiexec`, `libmpi.so`) are alternatives, as
//! Debian's own MPIs do it, with a lower priority than theirs.

use std::fs;
use std::os::unix::fs::{symlink, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::tree::{is_elf, Tree};
use super::{SUMMARY, VERSION};
use crate::setup::packages;
use crate::{paths, process};

/// Where the tree is installed.
const HOME: &str = "usr/lib/ntbring";
/// Priority of the alternatives: below mpich's 40 and openmpi's 50.
const PRIORITY: u32 = 30;
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
    ("usr/share/modules/modulefiles/mpi/ntbring", "share/modulefiles/ntbring"),
];

const MODULE: &str = "#%Module1.0\nmodule-whatis \"ntbring: MPI and OpenSHMEM\"\nconflict mpi\n\
                      prepend-path PATH /usr/lib/ntbring/bin\nprepend-path LD_LIBRARY_PATH /usr/lib/ntbring/lib\n\
                      prepend-path PKG_CONFIG_PATH /usr/lib/ntbring/lib/pkgconfig\n\
                      prepend-path MANPATH /usr/lib/ntbring/share/man\n";

/// A group of alternatives: link, name, path of the first one, and of those that follow it.
type Group = ((&'static str, &'static str, &'static str), &'static [(&'static str, &'static str, &'static str)]);

const RUN: Group = (("/usr/bin/mpirun", "mpirun", "bin/mpirun"), &[("/usr/bin/mpiexec", "mpiexec", "bin/mpiexec")]);
const BUILD: Group = (
    ("/usr/bin/mpicc", "mpi", "bin/mpicc"),
    &[
        ("/usr/bin/mpic++", "mpic++", "bin/mpicxx"),
        ("/usr/bin/mpicxx", "mpicxx", "bin/mpicxx"),
        ("/usr/bin/mpiCC", "mpiCC", "bin/mpicxx"),
        ("/usr/bin/mpifort", "mpifort", "bin/mpifort"),
        ("/usr/bin/mpif77", "mpif77", "bin/mpif77"),
        ("/usr/bin/mpif90", "mpif90", "bin/mpif90"),
    ],
);

/// Writes both packages.
pub fn make(tree: &Tree, to: &Path) -> Result<Vec<PathBuf>> {
    packages::install(&["dpkg-dev"])?;
    let log = paths::logs().join("package.log");
    let (run, build) = (to.join("deb-ntbring"), to.join("deb-ntbring-dev"));
    for dir in [&run, &build] {
        paths::remove(dir)?;
    }
    for name in tree.files()? {
        let dir = if is_development(&name) { &build } else { &run };
        place(&tree.root.join(&name), &dir.join(HOME).join(&name))?;
    }
    write(&run.join(HOME).join("share/modulefiles/ntbring"), MODULE)?;
    for (link, target) in RUNTIME_LINKS {
        link_to(&run.join(link), target)?;
    }
    for (dir, package) in [(&run, "ntbring"), (&build, "ntbring-dev")] {
        link_to(&dir.join("usr/share/doc").join(package), "share/doc/ntbring")?;
    }
    let depends = libraries(tree, to)?;
    let packages = [
        (run, "ntbring", depends, RUN, "Libraries, launchers and the tool ntbring."),
        (
            build,
            "ntbring-dev",
            format!("ntbring (= {VERSION}), gcc, libc6-dev"),
            BUILD,
            "Compiler wrappers and headers. C++ and Fortran need g++ and gfortran.",
        ),
    ];
    let mut made = Vec::new();
    for (dir, name, depends, group, text) in packages {
        let file = to.join(format!("{name}_{VERSION}_{}.deb", architecture()));
        write(&dir.join("DEBIAN/control"), &control(name, &depends, text))?;
        script(&dir.join("DEBIAN/postinst"), &install(&group))?;
        script(&dir.join("DEBIAN/prerm"), &remove(&group))?;
        let mut build = Command::new("dpkg-deb");
        process::check_logged(build.args(["--build", "--root-owner-group"]).arg(&dir).arg(&file), &log)?;
        paths::remove(&dir)?;
        made.push(file);
    }
    Ok(made)
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

fn control(name: &str, depends: &str, text: &str) -> String {
    format!(
        "Package: {name}\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: the ntbring authors <ntbring@localhost>\n\
         Section: net\nPriority: optional\nDepends: {depends}\nDescription: {SUMMARY}\n {text}\n",
        architecture()
    )
}

fn install(group: &Group) -> String {
    let ((link, name, path), slaves) = group;
    let mut text = format!(
        "#!/bin/sh\nset -e\nif [ \"$1\" = configure ]; then\n    update-alternatives --install {link} {name} /{HOME}/{path} {PRIORITY}"
    );
    for (link, name, path) in *slaves {
        text += &format!(" \\\n        --slave {link} {name} /{HOME}/{path}");
    }
    text + "\nfi\n"
}

fn remove(group: &Group) -> String {
    let ((_, name, path), _) = group;
    format!(
        "#!/bin/sh\nset -e\nif [ \"$1\" = remove ] || [ \"$1\" = deconfigure ]; then\n    \
         update-alternatives --remove {name} /{HOME}/{path}\nfi\n"
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

    #[test]
    fn alternatives_come_and_go_together() {
        let (install, remove) = (install(&RUN), remove(&RUN));
        let line = "--install /usr/bin/mpirun mpirun /usr/lib/ntbring/bin/mpirun 30 \\\n        \
                    --slave /usr/bin/mpiexec mpiexec /usr/lib/ntbring/bin/mpiexec\n";
        assert!(install.contains(line), "{install}");
        assert!(remove.contains("--remove mpirun /usr/lib/ntbring/bin/mpirun"), "{remove}");
    }
}
