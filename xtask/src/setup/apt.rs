//! Fetches a source package with apt, without changing the system's own package lists.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, Context, Result};

use crate::{process, ui};

/// The Debian release whose source package is wanted.
const SUITE: &str = "bookworm";

/// The file of Debian's signing keys.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// A package source that is configured on this system.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Source {
    uri: String,
    suites: Vec<String>,
    signed_by: Option<String>,
}

/// Downloads the files of a source package into `dir`, from the package sources of this system.
pub fn download(package: &str, version: &str, dir: &Path, log: &Path) -> Result<()> {
    let sources = candidates(configured()?);
    if sources.is_empty() {
        bail!("no package source of Debian is configured on this system");
    }
    for source in &sources {
        if try_one(source, package, version, dir, log)? {
            return Ok(());
        }
    }
    Err(ui::error_with_log(format!("none of the configured package sources gave {package} {version}"), log))
}

fn try_one(source: &Source, package: &str, version: &str, dir: &Path, log: &Path) -> Result<bool> {
    let private = dir.join("apt");
    let lists = private.join("lists");
    fs::create_dir_all(lists.join("partial"))?;
    fs::create_dir_all(private.join("cache/archives/partial"))?;
    let list = private.join("sources.list");
    fs::write(&list, line(source))?;

    let apt = || {
        let mut command = Command::new("apt-get");
        command
            .current_dir(dir)
            .env("LC_ALL", "C.UTF-8")
            .args(["-q", "-o"])
            .arg(format!("Dir::Etc::SourceList={}", list.display()))
            .args(["-o", "Dir::Etc::SourceParts=/dev/null", "-o"])
            .arg(format!("Dir::State::Lists={}", lists.display()))
            .arg("-o")
            .arg(format!("Dir::Cache={}", private.join("cache").display()))
            .args(["-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=3"]);
        command
    };
    let updated = process::run_logged(apt().arg("update"), log, None)?;
    if !updated.success() {
        return Ok(false);
    }
    let mut fetch = apt();
    fetch.args(["source", "--download-only"]).arg(format!("{package}={version}"));
    Ok(process::run_logged(&mut fetch, log, None)?.success())
}

/// Returns the line of a `sources.list` for the binary packages of a release, from the first package source of this
/// system.
pub fn binary_line(suite: &str) -> Result<String> {
    let sources = candidates(configured()?);
    let source = sources.first().context("no package source of Debian is configured on this system")?;
    Ok(format!("deb {}{} {suite} main\n", options(source), source.uri))
}

/// Returns the address of Debian's packages, of whichever release, from the package sources of this system.
pub fn mirror() -> Result<String> {
    let sources = candidates(configured()?);
    // Others than Debian have packages for it, too.
    let of_debian = sources.iter().find(|source| source.uri.trim_end_matches('/').ends_with("/debian"));
    let source = of_debian.or(sources.first()).context("no package source of Debian is configured on this system")?;
    Ok(source.uri.clone())
}

fn line(source: &Source) -> String {
    format!("deb-src {}{} {SUITE} main\n", options(source), source.uri)
}

fn options(source: &Source) -> String {
    let keyring = source.signed_by.clone().or_else(|| Path::new(KEYRING).exists().then(|| KEYRING.to_string()));
    keyring.map_or(String::new(), |file| format!("[signed-by={file}] "))
}

/// Returns the sources to ask, the likeliest first: those of a whole release before those that hold only updates.
fn candidates(sources: Vec<Source>) -> Vec<Source> {
    let (whole, partial): (Vec<_>, Vec<_>) =
        sources.into_iter().partition(|source| source.suites.iter().any(|suite| !suite.contains(['-', '/'])));
    let mut ordered: Vec<Source> = Vec::new();
    for source in whole.into_iter().chain(partial) {
        if !ordered.iter().any(|other| other.uri == source.uri) {
            ordered.push(source);
        }
    }
    ordered
}

/// Returns the sources of the system's sources.list and sources.list.d.
fn configured() -> Result<Vec<Source>> {
    let text = process::output(Command::new("apt-config").args([
        "shell",
        "LIST",
        "Dir::Etc::sourcelist/f",
        "PARTS",
        "Dir::Etc::sourceparts/d",
    ]))
    .context("apt is needed to fetch MPICH's source")?;
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("='")?.strip_suffix('\'')).map(PathBuf::from)
    };
    let mut files: Vec<PathBuf> = value("LIST").into_iter().collect();
    if let Some(Ok(entries)) = value("PARTS").map(fs::read_dir) {
        let mut parts: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        parts.sort();
        files.extend(parts);
    }
    let mut sources = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => sources.extend(text.lines().filter_map(one_line)),
            Some("sources") => sources.extend(stanzas(&text)),
            _ => {}
        }
    }
    Ok(sources)
}

/// Parses the one-line format: `deb [signed-by=FILE] URI SUITE COMPONENT...`
fn one_line(line: &str) -> Option<Source> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb-src").or_else(|| line.strip_prefix("deb"))?;
    if !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let rest = rest.trim_start();
    let (options, rest) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once(']')?,
        None => ("", rest),
    };
    let mut words = rest.split_whitespace();
    let (uri, suite) = (words.next()?, words.next()?);
    if uri.starts_with("cdrom:") || !words.any(|component| component == "main") {
        return None;
    }
    Some(Source {
        uri: uri.to_string(),
        suites: vec![suite.to_string()],
        signed_by: options.split_whitespace().find_map(|option| option.strip_prefix("signed-by=")).map(str::to_string),
    })
}

/// Parses the newer format: stanzas of `Field: value` lines.
fn stanzas(text: &str) -> Vec<Source> {
    let without_comments: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    without_comments.split(|line| line.trim().is_empty()).flat_map(stanza).collect()
}

fn stanza(lines: &[&str]) -> Vec<Source> {
    let field = |wanted: &str| {
        lines.iter().enumerate().find_map(|(index, line)| {
            let (name, value) = line.split_once(':')?;
            if !name.eq_ignore_ascii_case(wanted) {
                return None;
            }
            let mut value = value.trim().to_string();
            for more in lines[index + 1..].iter().take_while(|line| line.starts_with([' ', '\t'])) {
                value.push(' ');
                value.push_str(more.trim());
            }
            Some(value)
        })
    };
    let words = |name: &str| -> Vec<String> {
        field(name).unwrap_or_default().split_whitespace().map(str::to_string).collect()
    };
    let disabled = field("Enabled").is_some_and(|value| value.eq_ignore_ascii_case("no"));
    if disabled || !words("Components").iter().any(|component| component == "main") {
        return Vec::new();
    }
    // A key may also be contained in the stanza; Debian's own keyring is used then.
    let signed_by = field("Signed-By").filter(|value| value.starts_with('/') && !value.contains(' '));
    words("URIs").into_iter().map(|uri| Source { uri, suites: words("Suites"), signed_by: signed_by.clone() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_are_understood() {
        let old = one_line("deb [arch=amd64 signed-by=/k.gpg] file:/mirror bookworm main contrib # x").unwrap();
        assert_eq!(
            old,
            Source { uri: "file:/mirror".into(), suites: vec!["bookworm".into()], signed_by: Some("/k.gpg".into()) }
        );
        assert_eq!(one_line("# deb file:/mirror bookworm main"), None);
        assert_eq!(one_line("deb cdrom:[Debian]/ bookworm main"), None);
        assert_eq!(one_line("deb file:/other stable other"), None);

        let new = stanzas(
            "# comment\nTypes: deb\nURIs: file:/a file:/b\nSuites: bookworm bookworm-updates\n\
             Components: main\nSigned-By: /k.gpg\n\nTypes: deb\nEnabled: no\nURIs: file:/c\nComponents: main\n\n\
             Types: deb\nURIs:\n file:/d\nSuites: x-security\nComponents: contrib\n main\n",
        );
        let uris: Vec<_> = new.iter().map(|source| source.uri.as_str()).collect();
        assert_eq!(uris, ["file:/a", "file:/b", "file:/d"]);
        assert_eq!(new[0].signed_by.as_deref(), Some("/k.gpg"));
        assert_eq!(new[2].signed_by, None);
    }

    #[test]
    fn whole_releases_come_first_and_once() {
        let source = |uri: &str, suite: &str| Source { uri: uri.into(), suites: vec![suite.into()], signed_by: None };
        let ordered = candidates(vec![
            source("file:/s", "bookworm-security"),
            source("file:/m", "bookworm"),
            source("file:/m", "bookworm-updates"),
        ]);
        let uris: Vec<_> = ordered.iter().map(|source| source.uri.as_str()).collect();
        assert_eq!(uris, ["file:/m", "file:/s"]);
    }
}
