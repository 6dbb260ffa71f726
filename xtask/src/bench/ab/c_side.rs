//! The C side of a build: MPICH with the netmod. It takes minutes to build, so builds with the same C side share it.

use crate::setup::stamp::Digest;
use crate::setup::Profile;

use super::git;

/// Sources of the C side.
const SOURCES: [&str; 3] = ["netmod", "mpich-patches", "include"];

/// Files of set-up that determine the content of MPICH and the way it is built.
const RECIPE: [&str; 5] = [
    "xtask/src/setup/build.rs",
    "xtask/src/setup/configure.rs",
    "xtask/src/setup/overlay.rs",
    "xtask/src/setup/regenerate.rs",
    "xtask/src/setup/source.rs",
];

/// The path that is used instead of [`RECIPE`] where a commit lacks some of these files.
const WHOLE_RECIPE: &str = "xtask";

/// Identity of a C side, from its sources: installations with equal keys differ only in the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Returns the key of a commit or tree. `source` is the identity of MPICH's source, if the user gives one.
    pub fn of_tree(tree: &str, profile: Profile, source: &str) -> Self {
        Self::of(|path| git::object(tree, path), profile, source)
    }

    fn of(object: impl Fn(&str) -> String, profile: Profile, source: &str) -> Self {
        let mut paths = SOURCES.to_vec();
        match RECIPE.iter().any(|path| object(path).is_empty()) {
            true => paths.push(WHOLE_RECIPE),
            false => paths.extend(RECIPE),
        }
        let start = Digest::of("c-side", 1).text(&profile.to_string()).text(source);
        let digest = paths.iter().fold(start, |digest, path| digest.text(path).text(&object(path))).finish();
        Self(digest[..12].to_string())
    }

    /// Returns the key as the name of a directory.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// Origin of the C side of a build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The copy that an earlier comparison has kept: only the library is built.
    Kept,
    /// The set-up of the present tree, whose C side is the same: only the library is built, if set-up is up to date.
    Present,
    /// A set-up in the work tree of the commit.
    Built,
}

impl Origin {
    /// Returns the cheapest origin of a C side.
    pub fn of(wanted: &Key, present: &Key, kept: bool) -> Self {
        match (kept, wanted == present) {
            (true, _) => Self::Kept,
            (false, true) => Self::Present,
            (false, false) => Self::Built,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(changed: &[&str], profile: Profile, source: &str) -> Key {
        Key::of(|path| if changed.contains(&path) { "2".into() } else { "1".into() }, profile, source)
    }

    #[test]
    fn only_sources_of_the_c_side_count() {
        let base = key(&[], Profile::Full, "");
        assert_eq!(base.name().len(), 12);
        for unrelated in ["src", "xtask", "xtask/src/setup/smoke.rs", "benches"] {
            assert_eq!(key(&[unrelated], Profile::Full, ""), base, "{unrelated}");
        }
        for related in ["netmod", "mpich-patches", "include", "xtask/src/setup/configure.rs"] {
            assert_ne!(key(&[related], Profile::Full, ""), base, "{related}");
        }
        assert_ne!(key(&[], Profile::Quick, ""), base);
        assert_ne!(key(&[], Profile::Full, "a tree"), base);
    }

    #[test]
    fn another_layout_of_the_set_up_is_compared_as_a_whole() {
        let moved = |xtask: &str| {
            let object = |path: &str| match path {
                "xtask" => xtask.to_string(),
                path if path.starts_with("xtask/src/setup/") => String::new(),
                _ => "1".to_string(),
            };
            Key::of(object, Profile::Full, "")
        };
        assert_eq!(moved("1"), moved("1"));
        assert_ne!(moved("1"), moved("2"));
        assert_ne!(moved("1"), key(&[], Profile::Full, ""));
    }

    #[test]
    fn a_set_up_is_the_last_resort() {
        let (old, new) = (key(&["netmod"], Profile::Full, ""), key(&[], Profile::Full, ""));
        assert_eq!(Origin::of(&old, &new, true), Origin::Kept);
        assert_eq!(Origin::of(&new, &new, true), Origin::Kept);
        assert_eq!(Origin::of(&new, &new, false), Origin::Present);
        assert_eq!(Origin::of(&old, &new, false), Origin::Built);
    }
}
