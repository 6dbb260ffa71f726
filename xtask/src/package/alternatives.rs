//! Debian's alternatives: names that every MPI has, of which the administrator of a system selects one MPI's.
//!
//! Names and groups are those of Debian's own MPIs, so that one selection replaces the other. An alternative is a link
//! in a directory of the system that leads, by `/etc/alternatives`, to a file of an MPI.

use std::env::consts::ARCH;
use std::path::Path;

use super::deb::HOME;

/// Priority of the alternatives: below mpich's 40 and openmpi's 50.
const PRIORITY: u32 = 30;

/// A name.
struct Name {
    link: String,
    /// The link's name in `/etc/alternatives`.
    name: String,
    /// The file below [`HOME`].
    file: String,
}

/// Names that are selected together. The group has the name of the first one.
pub struct Group(Vec<Name>);

/// Commands and their man pages.
const RUN: [(&str, &str); 2] = [("mpirun", "mpiexec"), ("mpiexec", "mpiexec")];
const BUILD: [(&str, &str); 7] = [
    ("mpicc", "mpicc"),
    ("mpic++", "mpicxx"),
    ("mpicxx", "mpicxx"),
    ("mpiCC", "mpicxx"),
    ("mpifort", "mpifort"),
    ("mpif77", "mpifort"),
    ("mpif90", "mpifort"),
];

/// Commands of OpenSHMEM, in two groups.
const SHMEM_RUN: [&str; 1] = ["oshrun"];
const SHMEM_BUILD: [&str; 4] = ["oshcc", "oshc++", "oshcxx", "oshCC"];

/// Links for the linker, and the files below `lib`.
const LIBRARIES: [(&str, &str); 7] = [
    ("libmpi.so", "libmpi.so"),
    ("libmpi++.so", "libmpicxx.so"),
    ("libmpicxx.so", "libmpicxx.so"),
    ("libmpifort.so", "libmpifort.so"),
    ("libmpif77.so", "libmpifort.so"),
    ("libmpif90.so", "libmpifort.so"),
    ("pkgconfig/mpi.pc", "pkgconfig/mpich.pc"),
];

/// Returns the groups of the package that runs programs: those whose files are in `tree`.
pub fn of_run(tree: &Path) -> Vec<Group> {
    present(tree, vec![commands("mpirun", &RUN), shmem(&SHMEM_RUN)])
}

/// Returns the groups of the package that builds programs: those whose files are in `tree`.
pub fn of_build(tree: &Path) -> Vec<Group> {
    present(tree, vec![commands("mpi", &BUILD), libraries(), shmem(&SHMEM_BUILD)])
}

fn commands(group: &str, commands: &[(&str, &str)]) -> Group {
    let mut names = Vec::new();
    for (command, _) in commands {
        // Two spellings of the C++ wrapper have no file of their own.
        let file = if *command == "mpiCC" { "mpicxx" } else { command };
        let name = if names.is_empty() { group } else { command };
        names.push(Name { link: format!("/usr/bin/{command}"), name: name.to_string(), file: format!("bin/{file}") });
    }
    for (command, page) in commands {
        let name = format!("{command}.1.gz");
        names.push(Name {
            link: format!("/usr/share/man/man1/{name}"),
            name,
            file: format!("share/man/man1/{page}.1.gz"),
        });
    }
    Group(names)
}

fn shmem(commands: &[&str]) -> Group {
    let name = |command: &&str| Name {
        link: format!("/usr/bin/{command}"),
        name: command.to_string(),
        file: format!("bin/{command}"),
    };
    Group(commands.iter().map(name).collect())
}

/// Headers, and the libraries for the linker: selected apart from the commands, for each architecture.
fn libraries() -> Group {
    let (all, last) = ("/usr/lib", format!("{ARCH}-linux-gnu"));
    let mut names = vec![Name {
        link: format!("/usr/include/{last}/mpi"),
        name: format!("mpi-{last}"),
        file: "include".to_string(),
    }];
    for (link, file) in LIBRARIES {
        let name = link.rsplit('/').next().unwrap_or(link);
        names.push(Name {
            link: format!("{all}/{last}/{link}"),
            name: format!("{name}-{last}"),
            file: format!("lib/{file}"),
        });
    }
    Group(names)
}

/// Drops names that have no file, and groups whose first name has none.
fn present(tree: &Path, groups: Vec<Group>) -> Vec<Group> {
    // The packages have man pages in compressed form.
    let there = |name: &Name| tree.join(name.file.trim_end_matches(".gz")).exists();
    let groups = groups.into_iter().filter(|group| group.0.first().is_some_and(there));
    groups.map(|group| Group(group.0.into_iter().filter(there).collect())).collect()
}

/// Returns the script that makes the alternatives when the package is installed.
pub fn install(groups: &[Group]) -> String {
    let mut text = "#!/bin/sh\nset -e\nif [ \"$1\" = configure ]; then\n".to_string();
    for Group(names) in groups {
        for (i, Name { link, name, file }) in names.iter().enumerate() {
            text += &match i {
                0 => format!("    update-alternatives --install {link} {name} /{HOME}/{file} {PRIORITY}"),
                _ => format!(" \\\n        --slave {link} {name} /{HOME}/{file}"),
            };
        }
        text += "\n";
    }
    text + "fi\n"
}

/// Returns the script that removes the alternatives with the package.
pub fn remove(groups: &[Group]) -> String {
    let mut text = "#!/bin/sh\nset -e\nif [ \"$1\" = remove ] || [ \"$1\" = deconfigure ]; then\n".to_string();
    for Name { name, file, .. } in groups.iter().filter_map(|group| group.0.first()) {
        text += &format!("    update-alternatives --remove {name} /{HOME}/{file}\n");
    }
    text + "fi\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn alternatives_come_and_go_together() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["bin/mpirun", "bin/mpiexec", "share/man/man1/mpiexec.1"] {
            fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            fs::write(dir.path().join(file), "").unwrap();
        }
        let groups = of_run(dir.path());
        let (install, remove) = (install(&groups), remove(&groups));
        let lines = "--install /usr/bin/mpirun mpirun /usr/lib/ntbring/bin/mpirun 30 \\\n        \
                     --slave /usr/bin/mpiexec mpiexec /usr/lib/ntbring/bin/mpiexec \\\n        \
                     --slave /usr/share/man/man1/mpirun.1.gz mpirun.1.gz /usr/lib/ntbring/share/man/man1/mpiexec.1.gz";
        assert!(install.contains(lines) && !install.contains("oshrun"), "{install}");
        assert!(remove.contains("--remove mpirun /usr/lib/ntbring/bin/mpirun"), "{remove}");
        assert!(of_build(dir.path()).is_empty());
    }

    #[test]
    fn libraries_have_debians_names() {
        let text = install(&[libraries()]);
        assert!(text.contains(&format!("--install /usr/include/{ARCH}-linux-gnu/mpi mpi-{ARCH}-linux-gnu ")), "{text}");
        assert!(
            text.contains(&format!(" /usr/lib/{ARCH}-linux-gnu/pkgconfig/mpi.pc mpi.pc-{ARCH}-linux-gnu ")),
            "{text}"
        );
    }
}
