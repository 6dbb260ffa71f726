//! The links of the finished site. Its pages are what mdBook writes, so a search for attributes finds them all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use walkdir::WalkDir;

/// Pages that mdBook adds, with links that hold elsewhere: relative to the server's root, or in a frame.
const ADDED: [&str; 2] = ["404.html", "toc.html"];

/// Returns a line for each link in the folder's pages that leads to no file, or to no place of its page.
pub fn problems(folder: &Path) -> Result<Vec<String>> {
    let mut pages: BTreeMap<PathBuf, String> = BTreeMap::new();
    for entry in WalkDir::new(folder) {
        let path = entry.context("cannot list the site")?.into_path();
        let added = path.file_name().is_some_and(|name| ADDED.iter().any(|one| name == *one));
        if path.extension().is_some_and(|extension| extension == "html") && !added {
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            pages.insert(path, text);
        }
    }
    let mut found = Vec::new();
    for (path, text) in &pages {
        for link in values(text, "href").chain(values(text, "src")) {
            if let Some(problem) = problem(&pages, path, link) {
                let page = path.strip_prefix(folder).unwrap_or(path).display();
                found.push(format!("{page}: {link}: {problem}"));
            }
        }
    }
    Ok(found)
}

/// Returns the values of an attribute.
fn values<'a>(text: &'a str, attribute: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {attribute}=\"");
    let length = start.len();
    let places: Vec<usize> = text.match_indices(&start).map(|(at, _)| at + length).collect();
    places.into_iter().filter_map(|at| text[at..].split('"').next())
}

fn problem(pages: &BTreeMap<PathBuf, String>, from: &Path, link: &str) -> Option<&'static str> {
    if link.contains("://") || link.starts_with("data:") {
        return None;
    }
    let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
    let file = if file.is_empty() { from.to_path_buf() } else { from.with_file_name(file) };
    let Ok(file) = file.canonicalize() else { return Some("there is no such file") };
    if anchor.is_empty() {
        return None;
    }
    let page = pages.iter().find(|(path, _)| path.canonicalize().is_ok_and(|path| path == file));
    match page.is_some_and(|(_, text)| values(text, "id").any(|id| id == anchor)) {
        true => None,
        false => Some("there is no such place in the page"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let page = r##"<h1 id="one"></h1><a href="#one"></a><a href="b/c.html#two"></a><img src="no.svg">
            <a href="b/c.html#three"></a><a href="https://example.org/no"></a><a class="x" href="d.html"></a>"##;
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("a.html"), page).unwrap();
        fs::write(dir.path().join("b/c.html"), r##"<h1 id="two"></h1><a href="../a.html#one"></a>"##).unwrap();
        let mut found = problems(dir.path()).unwrap();
        found.sort();
        let starts = ["a.html: b/c.html#three: there is no such place", "a.html: d.html", "a.html: no.svg"];
        assert_eq!(found.len(), 3, "{found:#?}");
        found.iter().zip(starts).for_each(|(line, start)| assert!(line.starts_with(start), "{line}"));
    }
}
