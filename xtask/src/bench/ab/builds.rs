//! Makes an installation of each side, below `target/bench/ab`:
//!
//! | place | is |
//! |---|---|
//! | `mpi/KEY` | an installation whose C side has this key, as a tree that can be moved |
//! | `HASH-KEY`, `worktree-KEY`, `lib-DIGEST-KEY` | the same with the library of one side in it; unchanged files are hard links |
//! | `tree` | a work tree of git in which commits are built, one after the other, so that a build reuses the one before it |
//! | `logs`, `run` | logs of builds; the benchmarks and their output |

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use walkdir::WalkDir;

use super::c_side::{Key, Origin};
use super::check;
use super::git;
use super::pair::Pair;
use super::side::Side;
use crate::setup::stamp::{self, sha256, Digest};
use crate::setup::{self, library, placement, SetupArgs};
use crate::{install, paths, process, ui};

/// The sources of set-up, of which the first that exists is used. They decide if set-up can continue in the products of
/// another commit.
const SET_UP: [&str; 2] = ["xtask/src/setup", "xtask"];

/// Makes installations and keeps them for later comparisons.
pub struct Builds<'a> {
    dir: PathBuf,
    setup: &'a SetupArgs,
    /// Identity of MPICH's source, if the user gives one.
    source: String,
    present: OnceCell<Key>,
}

impl<'a> Builds<'a> {
    /// Returns a maker of installations in this directory.
    pub fn new(dir: &Path, setup: &'a SetupArgs) -> Result<Self> {
        fs::create_dir_all(dir.join("mpi")).with_context(|| format!("cannot create {}", dir.display()))?;
        let source = setup.mpich_src.as_deref().map_or_else(|| Ok(String::new()), identify)?;
        Ok(Self { dir: dir.to_path_buf(), setup, source, present: OnceCell::new() })
    }

    /// Makes the installations of both sides. A library needs the C side of another build, so the other side is made
    /// first.
    pub fn both(&self, sides: &Pair<Side>) -> Result<Pair<PathBuf>> {
        if sides.old == sides.new {
            let both = self.one(&sides.old, None)?;
            return Ok(Pair { old: both.clone(), new: both });
        }
        let is_library = |side: &Side| matches!(side, Side::Library(_));
        if is_library(&sides.old) {
            let new = self.one(&sides.new, None)?;
            return Ok(Pair { old: self.one(&sides.old, Some(&new))?, new });
        }
        let old = self.one(&sides.old, None)?;
        Ok(Pair { new: self.one(&sides.new, Some(&old))?, old })
    }

    fn one(&self, side: &Side, other: Option<&Path>) -> Result<PathBuf> {
        match side {
            Side::Worktree => self.of_worktree(),
            Side::Commit { hash, .. } => self.of_commit(hash),
            Side::Library(file) => self.of_library(file, other),
            Side::Installation(dir) => Ok(dir.clone()),
        }
        .with_context(|| format!("{side} cannot be measured"))
    }

    /// Installs the present tree, which is built in its usual target directory.
    fn of_worktree(&self) -> Result<PathBuf> {
        let key = self.present_key()?;
        let base = self.kept(key);
        if base.is_dir() {
            let log = self.log("worktree");
            paths::remove(&log)?;
            ui::step("build: the library of the present tree", || {
                process::check_logged(&mut library::build_command(&paths::root()), &log)
            })?;
        } else {
            self.keep_present(&base)?;
        }
        let place = self.dir.join(format!("worktree-{}", key.name()));
        paths::remove(&place)?;
        assemble(&base, &products(&paths::root()), &place)?;
        Ok(place)
    }

    fn of_commit(&self, hash: &str) -> Result<PathBuf> {
        let key = Key::of_tree(hash, self.setup.profile, &self.source);
        let short = &hash[..12];
        let place = self.dir.join(format!("{short}-{}", key.name()));
        if place.is_dir() {
            return Ok(place);
        }
        let (base, tree, log) = (self.kept(&key), self.dir.join("tree"), self.log(short));
        paths::remove(&log)?;
        let origin = Origin::of(&key, self.present_key()?, base.is_dir());
        if origin == Origin::Present {
            self.keep_present(&base)?;
        }
        git::check_out(hash, &tree, &log)?;
        if origin == Origin::Built {
            self.set_up(hash, &tree, &log)?;
            install::copy_movable(&tree.join("target/mpich").join(self.setup.profile.to_string()), &base)?;
        } else {
            ui::step(&format!("build: the library of {short}"), || {
                process::check_logged(&mut library::build_command(&tree), &log)
            })?;
        }
        assemble(&base, &products(&tree), &place)?;
        Ok(place)
    }

    /// Installs the library into the first installation whose C side has its ABI version.
    fn of_library(&self, file: &Path, other: Option<&Path>) -> Result<PathBuf> {
        let version = check::abi_of_library(file, &self.dir)?;
        let fits = |base: &Path| check::abi_of_c_side(base) == Some(version);
        let place = |base: &Path| -> Result<PathBuf> {
            let base = Digest::of("base", 1).text(&base.to_string_lossy()).finish();
            Ok(self.dir.join(format!("lib-{}-{}", &sha256(file)?[..12], &base[..12])))
        };
        let (base, place) = match other.filter(|other| fits(other)) {
            Some(other) => (other.to_path_buf(), place(other)?),
            None => {
                let base = self.base_of_version(version, fits)?;
                let place = place(&base)?;
                (base, place)
            }
        };
        if place.is_dir() {
            return Ok(place);
        }
        let files = [(file.to_path_buf(), "lib/libntbring.so")];
        if base.starts_with(&self.dir) {
            assemble(&base, &files, &place)?;
            return Ok(place);
        }
        // An installation of the user may contain its absolute path.
        let movable = place.with_extension("base");
        install::copy_movable(&base, &movable)?;
        assemble(&movable, &files, &place)?;
        paths::remove(&movable)?;
        Ok(place)
    }

    /// Returns another C side of that ABI version: that of the present tree, or one that was kept.
    fn base_of_version(&self, version: u32, fits: impl Fn(&Path) -> bool) -> Result<PathBuf> {
        let present = check::abi_of_header(&paths::root().join("include/ntbring.h"));
        if present == Some(version) {
            let base = self.kept(self.present_key()?);
            if !base.is_dir() {
                self.keep_present(&base)?;
            }
            return Ok(base);
        }
        let entries = fs::read_dir(self.dir.join("mpi"))?.flatten().map(|entry| entry.path());
        entries.into_iter().find(|base| fits(base)).with_context(|| {
            let of_tree = present.map_or("unknown".to_string(), |version| version.to_string());
            format!(
                "its ABI version is {version}, that of the present tree is {of_tree}, and neither the other side nor an \
                 earlier comparison has a C side of version {version}: give its commit or an installation instead"
            )
        })
    }

    /// Sets up the present tree and keeps a copy of the result.
    fn keep_present(&self, base: &Path) -> Result<()> {
        let installed = setup::ensure(self.setup)?;
        install::copy_movable(installed.mpi.prefix(), base)
    }

    /// Runs the set-up of a commit in the work tree.
    fn set_up(&self, hash: &str, tree: &Path, log: &Path) -> Result<()> {
        let made = tree.join("target/mpich");
        let stamp = made.join("set-up-by");
        let id = SET_UP.map(|path| git::object(hash, path)).into_iter().find(|id| !id.is_empty()).unwrap_or_default();
        if !fs::read_to_string(&stamp).is_ok_and(|present| present == id) {
            paths::remove(&made)?;
        }
        self.offer_source(&made.join("download"))?;
        stamp::write_atomically(&stamp, id.as_bytes())?;
        let mut command = Command::new("cargo");
        command.current_dir(tree).args(["xtask", "setup", "--profile", &self.setup.profile.to_string()]);
        if let Some(source) = &self.setup.mpich_src {
            command.arg("--mpich-src").arg(std::path::absolute(source)?);
        }
        // The commit may not know the settings that are to be measured, or its final check may fail under them.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NTBRING_")) {
            command.env_remove(name);
        }
        ui::step(&format!("build: MPICH and library of {} (minutes)", &hash[..12]), || {
            process::check_logged(&mut command, log)
        })
    }

    /// Copies the source that was fetched for the present tree to where the set-up of a commit looks before it fetches.
    fn offer_source(&self, download: &Path) -> Result<()> {
        let fetched = fs::read_dir(paths::mpich().join("download")).into_iter().flatten().flatten();
        for file in fetched.map(|entry| entry.path()).filter(|path| path.is_file()) {
            let to = download.join(file.file_name().context("a file has a name")?);
            if !to.exists() {
                placement::install(&file, &to)?;
            }
        }
        Ok(())
    }

    fn present_key(&self) -> Result<&Key> {
        if let Some(key) = self.present.get() {
            return Ok(key);
        }
        let tree = git::present_tree(&self.dir.join("index"))?;
        Ok(self.present.get_or_init(|| Key::of_tree(&tree, self.setup.profile, &self.source)))
    }

    fn kept(&self, key: &Key) -> PathBuf {
        self.dir.join("mpi").join(key.name())
    }

    fn log(&self, name: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{name}.log"))
    }
}

/// Returns the identity of a source of MPICH.
fn identify(source: &Path) -> Result<String> {
    let source = source.canonicalize().with_context(|| format!("--mpich-src {}: not found", source.display()))?;
    match source.is_dir() {
        true => Ok(Digest::of("tree", 1).text(&source.to_string_lossy()).listing(&source)?.finish()),
        false => sha256(&source),
    }
}

/// Returns the products of a build of the library and their places in an installation.
fn products(tree: &Path) -> [(PathBuf, &'static str); 2] {
    library::PRODUCTS.map(|(file, to)| (tree.join("target/release").join(file), to))
}

/// Makes an installation like `base` but with these files. It appears at `place` only when it is complete.
fn assemble(base: &Path, files: &[(PathBuf, &str)], place: &Path) -> Result<()> {
    let temporary = place.with_extension("new");
    paths::remove(&temporary)?;
    link_tree(base, &temporary)?;
    for (file, to) in files {
        placement::install(file, &temporary.join(to))?;
    }
    fs::rename(&temporary, place).with_context(|| format!("cannot make {}", place.display()))
}

/// Copies a tree with hard links for files. A later replacement of one link does not change the other.
fn link_tree(from: &Path, to: &Path) -> Result<()> {
    for entry in WalkDir::new(from) {
        let entry = entry?;
        let target = to.join(entry.path().strip_prefix(from)?);
        let kind = entry.file_type();
        let made = if kind.is_dir() {
            fs::create_dir_all(&target)
        } else if kind.is_symlink() {
            fs::read_link(entry.path()).and_then(|link| std::os::unix::fs::symlink(link, &target))
        } else {
            fs::hard_link(entry.path(), &target).or_else(|_| fs::copy(entry.path(), &target).map(|_| ()))
        };
        made.with_context(|| format!("cannot copy {}", entry.path().display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installation_gets_the_library_and_leaves_the_kept_one_alone() {
        let dir = tempfile::tempdir().unwrap();
        let [base, tree, place] = ["base", "tree", "place"].map(|name| dir.path().join(name));
        for (file, text) in [
            (base.join("lib/libntbring.so"), "old"),
            (base.join("bin/ntbring"), "old"),
            (base.join("bin/mpicc"), "wrapper"),
            (tree.join("target/release/libntbring.so"), "new"),
            (tree.join("target/release/ntbring"), "new"),
        ] {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        std::os::unix::fs::symlink("libntbring.so", base.join("lib/link")).unwrap();
        assemble(&base, &products(&tree), &place).unwrap();
        let read = |file: PathBuf| fs::read_to_string(file).unwrap();
        assert_eq!(read(place.join("bin/mpicc")), "wrapper");
        assert_eq!(read(place.join("lib/link")), "new");
        assert_eq!(read(base.join("lib/libntbring.so")), "old");
        assert!(assemble(&base, &products(&base), &dir.path().join("other")).is_err());
        assert!(!dir.path().join("other").exists());
    }
}
