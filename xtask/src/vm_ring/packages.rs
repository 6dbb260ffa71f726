//! Unpacks Debian's packages into a directory, without installing them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::setup::apt;
use crate::{paths, process, ui};

/// Packages that others depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependencies {
    /// None
    None,
    /// Those that this system has not installed, for programs that run beside its own
    Missing,
    /// All, for programs that run with libraries of their own
    All,
}

/// A package to be unpacked.
pub struct Request<'a> {
    /// Its name for the user.
    pub what: &'a str,
    /// The releases from which it may come.
    pub suites: &'a [&'a str],
    /// The release that is preferred to the others.
    pub prefer: Option<&'a str>,
    /// The packages; of a package without files, the one that it depends on first.
    pub packages: &'a [&'a str],
    /// Which of the packages that they depend on are needed, too.
    pub dependencies: Dependencies,
    /// The directory.
    pub to: &'a Path,
}

/// Unpacks a package unless that was done before.
pub fn fetch(request: &Request) -> Result<()> {
    let stamp = request.to.with_extension("fetched");
    if stamp.exists() {
        return Ok(());
    }
    let log = paths::target().join("vm/packages.log");
    ui::step(&format!("fetching {}", request.what), || unpack(request, &log))?;
    fs::write(&stamp, "").with_context(|| format!("cannot write {}", stamp.display()))
}

fn unpack(request: &Request, log: &Path) -> Result<()> {
    let private = request.to.with_extension("apt");
    paths::remove(&private)?;
    paths::remove(request.to)?;
    for place in ["lists/partial", "cache/archives/partial", "etc/apt.conf.d", "etc/preferences.d", "download"] {
        fs::create_dir_all(private.join(place))?;
    }
    fs::create_dir_all(request.to)?;
    let status = private.join("status");
    // If nothing counts as installed, all dependencies are fetched.
    match request.dependencies {
        Dependencies::Missing => fs::copy("/var/lib/dpkg/status", &status).map(drop)?,
        _ => fs::write(&status, "")?,
    }
    let at = private.display();
    let lines: Vec<String> = request.suites.iter().map(|suite| apt::binary_line(suite)).collect::<Result<_>>()?;
    fs::write(private.join("sources.list"), lines.concat())?;
    let configuration = format!(
        "Dir::State::Lists \"{at}/lists\"; Dir::State::status \"{at}/status\"; Dir::Cache \"{at}/cache\";\n\
         Dir::Etc::SourceList \"{at}/sources.list\"; Dir::Etc::SourceParts \"/dev/null\";\n\
         Dir::Etc::Parts \"{at}/etc/apt.conf.d\"; Dir::Etc::PreferencesParts \"{at}/etc/preferences.d\";\n\
         Acquire::Languages \"none\"; Acquire::Retries \"3\"; APT::Sandbox::User \"\";\n\
         APT::Install-Recommends \"false\"; Debug::NoLocking \"1\";\n"
    );
    let file = private.join("apt.conf");
    fs::write(&file, configuration)?;
    let apt = |program: &str| {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", &file).env("LC_ALL", "C.UTF-8").current_dir(private.join("download"));
        command
    };
    process::check_logged(apt("apt-get").args(["-q", "update"]), log)?;
    let archives = if request.dependencies != Dependencies::None {
        let mut install = apt("apt-get");
        install.args(["-q", "-y", "--download-only"]);
        if let Some(suite) = request.prefer {
            install.args(["-t", suite]);
        }
        process::check_logged(install.arg("install").args(request.packages), log)?;
        private.join("cache/archives")
    } else {
        let mut real = Vec::new();
        for package in request.packages {
            let depends = process::output(apt("apt-cache").args(["depends", package]))?;
            real.push(real_package(&depends).unwrap_or(package.to_string()));
        }
        process::check_logged(apt("apt-get").args(["-q", "download"]).args(real), log)?;
        private.join("download")
    };
    let mut count = 0;
    for entry in fs::read_dir(archives)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            process::check_logged(Command::new("dpkg-deb").arg("-x").arg(&path).arg(request.to), log)?;
            count += 1;
        }
    }
    if count == 0 && request.dependencies != Dependencies::Missing {
        bail!("apt has fetched no package for {}", request.what);
    }
    paths::remove(&private)
}

/// Returns the kernel that a package without files depends on, given what `apt-cache depends` has printed.
fn real_package(text: &str) -> Option<String> {
    let depends = text.lines().find_map(|line| line.trim().strip_prefix("Depends: "))?;
    depends.starts_with("linux-image-").then(|| depends.to_string())
}
