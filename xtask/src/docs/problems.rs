//! Links without a target, and pages that the table of contents lacks.

use std::path::Path;

use super::pages::{Link, Pages, SUMMARY};

/// Returns a line for each link without a target, and for each page that the table of contents does not list once.
pub fn of_pages(pages: &Pages) -> Vec<String> {
    let mut found = Vec::new();
    for (path, page) in pages.iter() {
        let named = |problem: String| format!("{}: {problem}", path.display());
        found.extend(page.links.iter().filter_map(|link| of_link(pages, path, link)).map(named));
    }
    found.extend(pages.iter().filter_map(|(path, _)| of_contents(pages, path)));
    found
}

fn of_link(pages: &Pages, from: &Path, link: &Link) -> Option<String> {
    let (path, anchor) = link.target(from)?;
    let written = &link.destination;
    if !pages.root.join(&path).is_file() {
        return Some(format!("{written}: there is no file {}", path.display()));
    }
    let (anchor, page) = (anchor?, pages.get(&path));
    match page.is_some_and(|page| page.anchors.iter().any(|one| one == anchor)) {
        true => None,
        false => Some(format!("{written}: {} has no heading with the anchor {anchor}", path.display())),
    }
}

fn of_contents(pages: &Pages, path: &Path) -> Option<String> {
    let summary = Path::new(SUMMARY);
    let contents = pages.get(summary)?;
    let links = contents.links.iter().filter_map(|link| link.target(summary));
    let count = links.filter(|(target, _)| target == path).count();
    match (path == summary, count) {
        (true, 0) | (false, 1) => None,
        (true, _) => Some(format!("{SUMMARY} lists itself")),
        (false, 0) => Some(format!("{SUMMARY} does not list {}", path.display())),
        (false, _) => Some(format!("{SUMMARY} lists {} {count} times", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;
    use std::fs;
    use walkdir::{DirEntry, WalkDir};

    #[test]
    fn every_link_of_the_documentation_has_a_target() {
        let problems = of_pages(&Pages::load(&paths::root()).unwrap());
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }

    #[test]
    fn every_page_that_the_sources_mention_exists() {
        let root = paths::root();
        let extensions = ["rs", "c", "h", "toml", "service", "py", "sh"];
        let folders = ["src", "tools", "xtask", "benches", "tests", "fuzz", "shmem", "netmod", "examples", "include"];
        // The tests in this folder make pages of their own.
        let own = root.join("xtask/src/docs");
        let hidden = |name: &str| name == "target" || name.starts_with('.');
        let files = folders.iter().flat_map(|folder| {
            let all = WalkDir::new(root.join(folder)).into_iter();
            let seen = |entry: &DirEntry| entry.path() != own && !entry.file_name().to_str().is_some_and(hidden);
            all.filter_entry(seen).flatten().collect::<Vec<_>>()
        });
        let mut missing = Vec::new();
        for file in files.filter(|file| file.path().extension().is_some_and(|e| extensions.iter().any(|x| e == *x))) {
            let text = fs::read_to_string(file.path()).unwrap();
            for (at, _) in text.match_indices("docs/") {
                let letter = |c: char| c.is_ascii_alphanumeric() || "/-_.".contains(c);
                let name = text[at..].split(|c| !letter(c)).next().unwrap().trim_end_matches('.');
                if name.ends_with(".md") && !root.join(name).is_file() {
                    missing.push(format!("{}: {name}", file.path().display()));
                }
            }
        }
        assert!(missing.is_empty(), "{}", missing.join("\n"));
    }

    /// Makes a repository with these files and returns its problems.
    fn of(files: &[(&str, &str)]) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("docs")).unwrap();
        for (name, text) in [("README.md", "# R\n"), ("CHANGELOG.md", "# C\n")].iter().chain(files) {
            fs::write(dir.path().join(name), text).unwrap();
        }
        of_pages(&Pages::load(dir.path()).unwrap())
    }

    const ALL: &str = "[r](../README.md) [c](../CHANGELOG.md) [a](a.md)\n";

    #[test]
    fn files_and_anchors_must_be_there() {
        let page =
            "# A\n\n## One\n\n[x](#one) [x](#two) [x](b.md) [x](../README.md#r) [x](../README.md#s) [x](plots)\n";
        let found = of(&[(SUMMARY, ALL), ("docs/a.md", page)]);
        assert_eq!(found.len(), 4, "{found:#?}");
        let texts = ["no heading with the anchor two", "no file docs/b.md", "README.md has no", "no file docs/plots"];
        texts.iter().zip(&found).for_each(|(text, line)| assert!(line.contains(text), "{line}"));
    }

    #[test]
    fn the_table_of_contents_lists_every_page_once() {
        let missing = of(&[(SUMMARY, ALL), ("docs/a.md", "# A\n"), ("docs/b.md", "# B\n")]);
        assert_eq!(missing, ["docs/SUMMARY.md does not list docs/b.md"]);
        let twice = of(&[(SUMMARY, &ALL.repeat(2)), ("docs/a.md", "# A\n")]);
        assert_eq!(twice.len(), 3, "{twice:#?}");
        assert!(of(&[(SUMMARY, ALL), ("docs/a.md", "# A\n")]).is_empty());
    }
}
