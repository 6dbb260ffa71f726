//! Step 1: install the packages of the system that the build needs.
//!
//! Packages have Debian's names here. Other systems of families that are known have a table of the names that differ;
//! there the command that installs what is missing is shown. On all other systems programs are looked for.

use std::collections::HashSet;
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{bail, Context, Result};

use super::profile::Profile;
use crate::{paths, process, ui};

/// Packages for all profiles: a compiler for MPICH and its suite, the tools that regenerate MPICH's build system after
/// the overlay, and libclang for bindgen.
const ALWAYS: &[&str] =
    &["gcc", "libc6-dev", "make", "perl", "python3", "autoconf", "automake", "m4", "patch", "xz-utils", "libclang-dev"];

/// Packages that `full` and `yaksa` add, for MPICH's C++ and Fortran bindings.
const FULL: &[&str] = &["g++", "gfortran"];

/// Packages that have another name elsewhere: in Debian, Fedora, openSUSE.
const NAMES: &[(&str, &str, &str)] = &[
    ("libc6-dev", "glibc-devel", "glibc-devel"),
    ("xz-utils", "xz", "xz"),
    ("libclang-dev", "clang-devel", "clang-devel"),
    ("g++", "gcc-c++", "gcc-c++"),
    ("gfortran", "gcc-gfortran", "gcc-fortran"),
    ("python3-dev", "python3-devel", "python3-devel"),
    ("python3-venv", "python3", "python3"),
];

/// Packages whose program has another name, or that have none.
const PROGRAMS: &[(&str, Option<&str>)] =
    &[("libc6-dev", None), ("libclang-dev", None), ("xz-utils", Some("xz")), ("binutils", Some("objdump"))];

/// A family of Linux distributions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Debian,
    Fedora,
    Suse,
}

impl Family {
    /// Returns the family of this system.
    fn of_this() -> Option<Self> {
        if on_path("dpkg-query") && on_path("apt-get") {
            return Some(Self::Debian);
        }
        Self::of(&fs::read_to_string("/etc/os-release").unwrap_or_default()).filter(|_| on_path("rpm"))
    }

    /// Returns the family that a file `os-release` names.
    fn of(os_release: &str) -> Option<Self> {
        let fields = os_release.lines().filter_map(|line| line.strip_prefix("ID=").or(line.strip_prefix("ID_LIKE=")));
        let mut words = fields.flat_map(|value| value.trim_matches('"').split(' '));
        words.find_map(|word| match word {
            "fedora" | "rhel" | "centos" => Some(Self::Fedora),
            "suse" | "opensuse" => Some(Self::Suse),
            _ => None,
        })
    }

    /// Returns a package's name in this family.
    fn name(self, package: &'static str) -> &'static str {
        match (NAMES.iter().find(|(debian, ..)| *debian == package), self) {
            (Some((_, fedora, _)), Self::Fedora) => fedora,
            (Some((_, _, suse)), Self::Suse) => suse,
            _ => package,
        }
    }

    /// Returns the command that installs packages.
    fn install(self, packages: &[&str]) -> String {
        let packages = packages.join(" ");
        match self {
            Self::Debian => format!("apt-get update && apt-get install -y --no-install-recommends {packages}"),
            Self::Fedora => format!("dnf install -y {packages}"),
            Self::Suse => format!("zypper install -y {packages}"),
        }
    }

    /// Returns those of the packages that are not installed.
    fn missing(self, packages: &[&'static str]) -> Result<Vec<&'static str>> {
        let names: Vec<_> = packages.iter().map(|package| self.name(package)).collect();
        let installed = match self {
            Self::Debian => known_to_dpkg(&names)?,
            _ => names.iter().filter(|name| is_known_to_rpm(name)).map(ToString::to_string).collect(),
        };
        Ok(names.into_iter().filter(|name| !installed.contains(*name)).collect())
    }
}

/// Returns true on Debian and the systems that are derived from it.
pub fn is_debian() -> bool {
    Family::of_this() == Some(Family::Debian)
}

/// Makes sure that all packages of a profile are installed.
pub fn ensure(profile: Profile) -> Result<()> {
    let full = if profile.has_all_languages() { FULL } else { &[] };
    install(&[ALWAYS, full].concat())
}

/// Makes sure that packages are installed. As root, on Debian, installs the missing ones; others are shown the command.
pub fn install(packages: &[&'static str]) -> Result<()> {
    let Some(family) = Family::of_this() else {
        return check_programs(packages);
    };
    let missing = family.missing(packages)?;
    if missing.is_empty() {
        return Ok(());
    }
    let names = missing.join(" ");
    if family != Family::Debian || !rustix::process::geteuid().is_root() {
        bail!(
            "these packages are missing: {names}\n\nRun this as root, then call again:\n\n    {}\n",
            family.install(&missing)
        );
    }
    ui::step(&format!("packages: {names}"), || apply(&missing))
}

fn apply(missing: &[&str]) -> Result<()> {
    let log = paths::logs().join("packages.log");
    let install = || {
        let mut command = apt_get();
        command.args(["install", "-y", "--no-install-recommends"]).args(missing);
        command
    };
    // A system in use usually has package lists already; a fresh image does not.
    if process::run_logged(&mut install(), &log, None)?.success() {
        return Ok(());
    }
    process::check_logged(apt_get().arg("update"), &log)?;
    process::check_logged(&mut install(), &log)
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command
        .env("DEBIAN_FRONTEND", "noninteractive")
        // Another apt may be running: wait for its lock instead of failing.
        .args(["-o", "DPkg::Lock::Timeout=300"]);
    command
}

fn known_to_dpkg(packages: &[&str]) -> Result<HashSet<String>> {
    // dpkg-query's exit status is 1 when one of the packages is unknown: not an error here.
    let result = Command::new("dpkg-query")
        .args(["-W", "-f", "${Package} ${db:Status-Status}\n"])
        .args(packages)
        .output()
        .context("cannot run dpkg-query")?;
    Ok(String::from_utf8_lossy(&result.stdout)
        .lines()
        .filter_map(|line| line.strip_suffix(" installed"))
        .map(str::to_string)
        .collect())
}

fn is_known_to_rpm(package: &str) -> bool {
    let mut rpm = Command::new("rpm");
    rpm.args(["--query", "--quiet", "--whatprovides", package]).stdout(Stdio::null()).stderr(Stdio::null());
    rpm.status().is_ok_and(|status| status.success())
}

/// Checks for the needed programs on a system whose packages are not known. Nothing is installed there, but missing
/// programs are named.
fn check_programs(packages: &[&'static str]) -> Result<()> {
    let program = |package: &&'static str| -> Option<&'static str> {
        PROGRAMS.iter().find(|(name, _)| name == package).map_or(Some(*package), |(_, program)| *program)
    };
    let missing: Vec<_> = packages.iter().filter_map(program).filter(|program| !on_path(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    bail!("these programs are missing, and the names of this system's packages are not known: {}", missing.join(", "));
}

fn on_path(program: &str) -> bool {
    env::var_os("PATH").is_some_and(|path| env::split_paths(&path).any(|dir| dir.join(program).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_its_names() {
        let fedora = Family::of("NAME=\"Fedora Linux\"\nVERSION_ID=41\nID=fedora\n").unwrap();
        let rocky = Family::of("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n").unwrap();
        let leap = Family::of("ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"\n").unwrap();
        assert_eq!((fedora, rocky, leap), (Family::Fedora, Family::Fedora, Family::Suse));
        assert_eq!(Family::of("ID=arch\n"), None);
        let names = |family: Family| ["gcc", "gfortran", "xz-utils"].map(|package| family.name(package));
        assert_eq!(names(Family::Debian), ["gcc", "gfortran", "xz-utils"]);
        assert_eq!(names(fedora), ["gcc", "gcc-gfortran", "xz"]);
        assert_eq!(names(leap), ["gcc", "gcc-fortran", "xz"]);
        assert_eq!(leap.install(&["gcc", "xz"]), "zypper install -y gcc xz");
    }

    #[test]
    fn programs_are_looked_for_where_packages_are_unknown() {
        assert!(check_programs(&["libc6-dev"]).is_ok());
        let error = check_programs(&["no-such-program", "libclang-dev"]).unwrap_err().to_string();
        assert!(error.ends_with("not known: no-such-program"), "{error}");
    }
}
