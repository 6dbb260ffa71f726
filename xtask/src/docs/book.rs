//! The pages as mdBook takes them: all below one folder, with links that fit.
//!
//! On a code host README.md and CHANGELOG.md are beside the folder `docs`. In the book all pages are in one folder, so
//! the links between them differ, and files to which pages refer are copied.

use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use super::pages::{Page, Pages, SUMMARY};
use crate::paths;

const CONFIGURATION: &str = include_str!("book.toml");
const STYLE: &str = include_str!("style.css");

/// Writes the book's sources into a new folder.
pub fn write(pages: &Pages, folder: &Path) -> Result<()> {
    paths::remove(folder)?;
    put(&folder.join("book.toml"), CONFIGURATION.as_bytes())?;
    put(&folder.join("style.css"), STYLE.as_bytes())?;
    let source = folder.join("src");
    for (path, page) in pages.iter() {
        put(&source.join(place(path)), rewritten(path, page).as_bytes())?;
        for (target, _) in page.links.iter().filter_map(|link| link.target(path)) {
            if pages.get(&target).is_none() {
                let file = pages.root.join(&target);
                let bytes = fs::read(&file).with_context(|| format!("cannot read {}", file.display()))?;
                put(&source.join(place(&target)), &bytes)?;
            }
        }
    }
    Ok(())
}

/// Returns the place in the book of a file of the repository.
fn place(path: &Path) -> &Path {
    path.strip_prefix("docs").unwrap_or(path)
}

/// Returns a page's text with the links that hold in the book.
fn rewritten(path: &Path, page: &Page) -> String {
    let mut text = page.text.clone();
    // From the end, so that the places of the other links stay valid.
    for link in page.links.iter().rev() {
        if let Some((target, anchor)) = link.target(path) {
            let anchor = anchor.map_or_else(String::new, |anchor| format!("#{anchor}"));
            // The book shows its contents beside every page, so links to them lead to the first one.
            let target = if target == Path::new(SUMMARY) { PathBuf::from("README.md") } else { target };
            let file = if target == path { String::new() } else { relative(place(path), place(&target)) };
            text.replace_range(link.place.clone(), &(file + &anchor));
        }
    }
    text
}

/// Returns the path from a file to another one.
fn relative(from: &Path, to: &Path) -> String {
    let folder: Vec<Component> = from.parent().unwrap_or(from).components().collect();
    let parts: Vec<Component> = to.components().collect();
    let common = folder.iter().zip(&parts).take_while(|(a, b)| a == b).count();
    let up = folder[common..].iter().map(|_| Component::ParentDir);
    up.chain(parts[common..].iter().copied()).collect::<PathBuf>().display().to_string()
}

fn put(file: &Path, bytes: &[u8]) -> Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    fs::write(file, bytes).with_context(|| format!("cannot write {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &str, text: &str) -> String {
        rewritten(Path::new(path), &Page::parse(text.into()))
    }

    #[test]
    fn links_fit_the_places_in_the_book() {
        assert_eq!(text("README.md", "[a](docs/a.md#b) [c](CHANGELOG.md)"), "[a](a.md#b) [c](CHANGELOG.md)");
        assert_eq!(text("docs/a.md", "[a](../README.md) [b](#c)"), "[a](README.md) [b](#c)");
        assert_eq!(text("docs/reference/s.md", "[a](../a.md) [r](../../README.md)"), "[a](../a.md) [r](../README.md)");
        assert_eq!(text("docs/a.md", "[x](../examples/x.c)"), "[x](examples/x.c)");
        assert_eq!(text("docs/a.md", "[contents](SUMMARY.md)"), "[contents](README.md)");
        assert_eq!(text("docs/a.md", "[x](https://example.org/)"), "[x](https://example.org/)");
    }

    #[test]
    fn the_book_holds_pages_and_what_they_refer_to() {
        let dir = tempfile::tempdir().unwrap();
        let (root, book) = (dir.path().join("root"), dir.path().join("book"));
        put(&root.join("README.md"), b"[a](docs/a.md)").unwrap();
        put(&root.join("CHANGELOG.md"), b"").unwrap();
        put(&root.join("docs/a.md"), b"![p](plots/p.svg)").unwrap();
        put(&root.join("docs/plots/p.svg"), b"<svg/>").unwrap();
        put(&root.join("docs/plots/q.svg"), b"<svg/>").unwrap();
        write(&Pages::load(&root).unwrap(), &book).unwrap();
        assert_eq!(fs::read_to_string(book.join("src/README.md")).unwrap(), "[a](a.md)");
        assert!(book.join("src/plots/p.svg").is_file() && !book.join("src/plots/q.svg").exists());
        assert!(book.join("book.toml").is_file());
    }
}
