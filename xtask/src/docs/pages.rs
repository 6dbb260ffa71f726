//! The pages of the documentation: README.md, CHANGELOG.md, and everything in `docs`.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use walkdir::WalkDir;

/// Pages at the repository's root.
const AT_ROOT: [&str; 2] = ["README.md", "CHANGELOG.md"];

/// The table of contents.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// All pages, by their paths from the repository's root.
pub struct Pages {
    /// The repository.
    pub root: PathBuf,
    pages: BTreeMap<PathBuf, Page>,
}

/// A page.
pub struct Page {
    /// Its text, in Markdown.
    pub text: String,
    /// The anchors of its headings.
    pub anchors: Vec<String>,
    /// Its links and images, in the order of the text.
    pub links: Vec<Link>,
}

/// A link, or an image.
#[derive(Debug, PartialEq, Eq)]
pub struct Link {
    /// Place of the destination in the page's text, in bytes.
    pub place: Range<usize>,
    /// The destination as it is written.
    pub destination: String,
}

impl Pages {
    /// Reads all pages of a repository.
    pub fn load(root: &Path) -> Result<Pages> {
        let mut pages = BTreeMap::new();
        let at_root = AT_ROOT.iter().map(|name| Ok(root.join(name)));
        let in_docs = WalkDir::new(root.join("docs")).into_iter().map(|entry| Ok(entry?.into_path()));
        for path in at_root.chain(in_docs) {
            let path: PathBuf = path.map_err(|error: walkdir::Error| error).context("cannot list docs")?;
            if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
                pages.insert(path.strip_prefix(root)?.to_path_buf(), Page::parse(text));
            }
        }
        Ok(Pages { root: root.to_path_buf(), pages })
    }

    /// Returns all pages with their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&Path, &Page)> {
        self.pages.iter().map(|(path, page)| (path.as_path(), page))
    }

    /// Returns the page with this path.
    pub fn get(&self, path: &Path) -> Option<&Page> {
        self.pages.get(path)
    }
}

impl Page {
    /// Finds headings and links in a text.
    pub fn parse(text: String) -> Page {
        let (mut anchors, mut links) = (Vec::new(), Vec::new());
        let mut heading: Option<String> = None;
        for (event, place) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => anchors.extend(heading.take().map(|title| anchor(&title, &anchors))),
                Event::Text(part) | Event::Code(part) => {
                    if let Some(title) = &mut heading {
                        title.push_str(&part);
                    }
                }
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    // A link without this form (`<https://...>`) leads out of the documentation.
                    let end = text[place.clone()].rfind(&format!("]({dest_url}"));
                    links.extend(end.map(|end| {
                        let start = place.start + end + 2;
                        Link { place: start..start + dest_url.len(), destination: dest_url.into_string() }
                    }));
                }
                _ => {}
            }
        }
        Page { text, anchors, links }
    }
}

impl Link {
    /// Returns the path from the repository's root, for a link of the page at `from`, and the anchor; None if the link
    /// leads out of the repository.
    pub fn target(&self, from: &Path) -> Option<(PathBuf, Option<&str>)> {
        if self.destination.contains("://") || self.destination.starts_with("mailto:") {
            return None;
        }
        let (path, anchor) = match self.destination.split_once('#') {
            Some((path, anchor)) => (path, Some(anchor)),
            None => (self.destination.as_str(), None),
        };
        if path.is_empty() {
            return Some((from.to_path_buf(), anchor));
        }
        Some((normal(&from.with_file_name(path)), anchor))
    }
}

/// Returns a path without `..`.
fn normal(path: &Path) -> PathBuf {
    let mut parts: Vec<Component> = Vec::new();
    for part in path.components() {
        match part {
            Component::ParentDir if matches!(parts.last(), Some(Component::Normal(_))) => drop(parts.pop()),
            Component::CurDir => {}
            _ => parts.push(part),
        }
    }
    parts.iter().collect()
}

/// Returns a heading's anchor, as code hosts and mdBook make it: small letters, digits, `-` and `_`, and a hyphen for
/// each space. A title that was there before gets a number.
fn anchor(title: &str, before: &[String]) -> String {
    let letters = title.trim().chars().filter_map(|letter| match letter {
        ' ' => Some('-'),
        _ if letter.is_alphanumeric() || letter == '-' || letter == '_' => Some(letter),
        _ => None,
    });
    let plain: String = letters.flat_map(char::to_lowercase).collect();
    if !before.contains(&plain) {
        return plain;
    }
    let mut numbered = (1..).map(|number| format!("{plain}-{number}"));
    numbered.find(|name| !before.contains(name)).unwrap_or(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_have_the_anchors_of_code_hosts() {
        let text = "# The `x`'s use, in C++\n\n    # no heading\n\n## A_b - c\n\n## A_b - c\n";
        assert_eq!(Page::parse(text.into()).anchors, ["the-xs-use-in-c", "a_b---c", "a_b---c-1"]);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "See [`a`](b.md#c), `[x](y.md)` and ![an image](d/e.svg).\n\n    [x](y.md)\n\n| [f](g) |\n|---|\n";
        let page = Page::parse(text.into());
        let found: Vec<&str> = page.links.iter().map(|link| &page.text[link.place.clone()]).collect();
        assert_eq!(found, ["b.md#c", "d/e.svg", "g"]);
    }

    #[test]
    fn targets_are_paths_from_the_root() {
        let target = |destination: &str| {
            let link = Link { place: 0..0, destination: destination.into() };
            link.target(Path::new("docs/a.md")).map(|(path, anchor)| (path, anchor.map(String::from)))
        };
        assert_eq!(target("b/c.md#d"), Some(("docs/b/c.md".into(), Some("d".into()))));
        assert_eq!(target("../README.md"), Some(("README.md".into(), None)));
        assert_eq!(target("#e"), Some(("docs/a.md".into(), Some("e".into()))));
        assert_eq!(target("https://example.org/a.md"), None);
        assert_eq!(target("../../out"), Some(("../out".into(), None)));
    }
}
