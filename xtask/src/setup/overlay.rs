//! Step 4: add ntbring's netmod and patches to MPICH's source.
//!
//! The overlaid tree is kept between calls and updated file by file: unchanged files keep their modification times, so
//! that make rebuilds only what depends on a change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

use anyhow::{bail, Context, Result};

use super::regenerate;
use super::source::{self, Pristine};
use super::stamp::{files_below, Digest, Stamp};
use crate::{paths, process, ui};

/// Directory of the netmod in MPICH's tree.
const NETMOD_PLACE: &str = "src/mpid/ch4/netmod/ntbring";

/// Folder of the patches that mend faults of MPICH.
const FIXES: &str = "fixes";

/// Folders of patches: calls to the netmod and its registration, faults of MPICH, mpiexec with its proxies.
const PATCH_FOLDERS: [&str; 3] = ["hooks", FIXES, "hydra"];

/// The overlaid tree.
pub struct Overlaid {
    /// Its top directory.
    pub dir: PathBuf,
    /// A digest that changes when MPICH must be configured anew.
    pub structure: String,
    /// A digest that changes when MPICH must be compiled anew.
    pub content: String,
}

/// Makes sure that the overlaid tree is up to date.
pub fn ensure(pristine: &Pristine) -> Result<Overlaid> {
    let netmod = netmod_dir();
    let files = files_below(&netmod).unwrap_or_default();
    if files.is_empty() {
        bail!("{} holds no netmod", paths::shown(&netmod));
    }
    let patches = patches()?;
    let dir = paths::mpich().join("src");
    let structure = structure(pristine, &files, &patches)?;
    let content = Digest::of("content", 1).text(&structure).files(&netmod, &files)?.finish();

    let stamp = Stamp::new("overlay");
    if !dir.is_dir() {
        stamp.clear()?;
    }
    stamp.unless_held(&structure, || rebuild(pristine, &patches, &dir))?;
    sync_files(&netmod, &files, &dir.join(NETMOD_PLACE))?;
    Ok(Overlaid { dir, structure, content })
}

/// Returns the digest of everything that the generated files depend on: the names of the files, the way they are built,
/// and the patches.
fn structure(pristine: &Pristine, files: &[PathBuf], patches: &[PathBuf]) -> Result<String> {
    let mut digest = Digest::of("overlay", 1).text(&pristine.id);
    for file in files {
        digest = digest.text(&file.to_string_lossy());
    }
    let build_files: Vec<PathBuf> = files
        .iter()
        .filter(|file| {
            file.extension().is_some_and(|extension| ["mk", "m4", "txt"].iter().any(|kind| extension == *kind))
        })
        .cloned()
        .collect();
    digest = digest.files(&netmod_dir(), &build_files)?;
    for file in files {
        // MPICH's table of error messages is generated from the messages that the code uses.
        let text = fs::read(netmod_dir().join(file))?;
        for line in String::from_utf8_lossy(&text).lines().filter(|line| line.contains("\"**")) {
            digest = digest.text(line);
        }
    }
    for patch in patches {
        digest = digest.file(patch)?;
    }
    Ok(digest.text(&regenerate::description()).finish())
}

fn rebuild(pristine: &Pristine, patches: &[PathBuf], dir: &Path) -> Result<()> {
    let fresh = dir.with_extension("new");
    ui::step("overlay: netmod and patches onto MPICH's source", || {
        source::copy_tree(&pristine.dir, &fresh)?;
        let netmod = netmod_dir();
        sync_files(&netmod, &files_below(&netmod)?, &fresh.join(NETMOD_PLACE))?;
        patches.iter().try_for_each(|patch| apply(patch, &fresh))
    })?;
    ui::step("regenerate: MPICH's configure and makefiles", || {
        regenerate::run(&fresh)?;
        if !dir.exists() {
            fs::rename(&fresh, dir)?;
            return Ok(());
        }
        sync_tree(&fresh, dir)?;
        paths::remove(&fresh)
    })
}

fn apply(patch: &Path, tree: &Path) -> Result<()> {
    let log = paths::logs().join("overlay.log");
    let mut command = Command::new("patch");
    command.current_dir(tree).args(["-p1", "--forward", "--batch", "--no-backup-if-mismatch", "-i"]).arg(patch);
    process::check_logged(&mut command, &log).with_context(|| format!("{} does not apply", paths::shown(patch)))
}

/// Makes the content of `to` equal to that of `from`, changing only files that differ.
fn sync_tree(from: &Path, to: &Path) -> Result<()> {
    let wanted = files_below(from)?;
    let keep: BTreeSet<&PathBuf> = wanted.iter().collect();
    for file in files_below(to)? {
        if !keep.contains(&file) {
            paths::remove(&to.join(file))?;
        }
    }
    sync_files(from, &wanted, to)
}

/// Copies some files of `from` to `to`, changing only those that differ. A changed file gets the present time as its
/// modification time, even if its new content is older: make rebuilds by that time.
fn sync_files(from: &Path, files: &[PathBuf], to: &Path) -> Result<()> {
    for file in files {
        let (source, dest) = (from.join(file), to.join(file));
        if same(&source, &dest)? {
            continue;
        }
        if let Some(parent) = dest.parent() {
            fs::create_dir_all(parent)?;
        }
        paths::remove(&dest)?;
        copy(&source, &dest).with_context(|| format!("cannot copy {}", source.display()))?;
    }
    Ok(())
}

fn same(one: &Path, two: &Path) -> Result<bool> {
    let (Ok(a), Ok(b)) = (fs::symlink_metadata(one), fs::symlink_metadata(two)) else {
        return Ok(false);
    };
    if a.file_type() != b.file_type() {
        return Ok(false);
    }
    if a.is_symlink() {
        return Ok(fs::read_link(one)? == fs::read_link(two)?);
    }
    Ok(a.len() == b.len() && a.permissions().mode() == b.permissions().mode() && fs::read(one)? == fs::read(two)?)
}

fn copy(source: &Path, dest: &Path) -> Result<()> {
    if source.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(source)?, dest)?;
        return Ok(());
    }
    let temporary = dest.with_file_name(".xtask.tmp");
    fs::copy(source, &temporary)?;
    fs::File::options().append(true).open(&temporary)?.set_modified(SystemTime::now())?;
    fs::rename(&temporary, dest)?;
    Ok(())
}

fn netmod_dir() -> PathBuf {
    paths::root().join("netmod/ntbring")
}

fn patches() -> Result<Vec<PathBuf>> {
    patches_below(&paths::root().join("mpich-patches").join(source::VERSION))
}

/// Lists the patches of all folders in the order of their numbers, in which they are applied.
fn patches_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut numbered = BTreeMap::new();
    for file in files_below(dir)? {
        if file.extension().is_none_or(|extension| extension != "patch") {
            continue;
        }
        let patch = dir.join(&file);
        let Some(folder) = PATCH_FOLDERS.iter().find(|folder| file.parent() == Some(Path::new(folder))) else {
            bail!("{} is in none of the folders {}", paths::shown(&patch), PATCH_FOLDERS.join(", "));
        };
        let number = patch_number(&patch)?;
        check_header(&patch, folder)?;
        if let Some(other) = numbered.insert(number, patch.clone()) {
            bail!("{} and {} have the same number", paths::shown(&other), paths::shown(&patch));
        }
    }
    Ok(numbered.into_values().collect())
}

/// Returns the number with which the name of a patch begins.
fn patch_number(patch: &Path) -> Result<u32> {
    let name = patch.file_name().unwrap_or_default().to_string_lossy();
    let number = name.split_once('-').and_then(|(number, _)| number.parse().ok());
    number.with_context(|| format!("the name of {} must be NUMBER-NAME.patch", paths::shown(patch)))
}

/// Checks that a patch begins with the lines that describe it.
fn check_header(patch: &Path, folder: &str) -> Result<()> {
    let text = fs::read(patch).with_context(|| format!("cannot read {}", paths::shown(patch)))?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    let labels = ["What: ", "Why: ", "Mended in: "];
    let wanted = if folder == FIXES { &labels[..] } else { &labels[..2] };
    for (index, label) in wanted.iter().enumerate() {
        let content = lines.next().and_then(|line| line.strip_prefix(label)).unwrap_or_default();
        if content.trim().is_empty() {
            bail!("line {} of {} must be \"{label}...\"", index + 1, paths::shown(patch));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn only_what_differs_gets_a_new_time() {
        let from = tempfile::tempdir().unwrap();
        let to = tempfile::tempdir().unwrap();
        let old = SystemTime::now() - Duration::from_secs(1000);
        for dir in [from.path(), to.path()] {
            for name in ["same", "changed"] {
                let file = fs::File::create(dir.join(name)).unwrap();
                file.set_modified(old).unwrap();
            }
        }
        fs::write(from.path().join("changed"), "x").unwrap();
        let file = fs::File::options().append(true).open(from.path().join("changed")).unwrap();
        file.set_modified(old).unwrap();
        fs::create_dir(from.path().join("sub")).unwrap();
        fs::write(from.path().join("sub/new"), "y").unwrap();
        fs::write(to.path().join("gone"), "z").unwrap();

        sync_tree(from.path(), to.path()).unwrap();

        let time = |name: &str| fs::metadata(to.path().join(name)).unwrap().modified().unwrap();
        assert_eq!(time("same"), old);
        assert!(time("changed") > old + Duration::from_secs(900));
        assert_eq!(fs::read_to_string(to.path().join("sub/new")).unwrap(), "y");
        assert!(!to.path().join("gone").exists());
    }

    const HEADER: &str = "What: A change.\nWhy: A reason.\nMended in: not known\n";

    fn patch_tree(patches: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in patches {
            let file = dir.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        dir
    }

    fn refusal(patches: &[(&str, &str)]) -> String {
        patches_below(patch_tree(patches).path()).unwrap_err().to_string()
    }

    #[test]
    fn patches_of_all_folders_are_in_the_order_of_their_numbers() {
        let names = ["hydra/3-c.patch", "fixes/02-b.patch", "hooks/10-d.patch", "hooks/01-a.patch", "README.md"];
        let dir = patch_tree(&names.map(|name| (name, HEADER)));
        let found = patches_below(dir.path()).unwrap();
        let found: Vec<_> = found.iter().map(|patch| patch.strip_prefix(dir.path()).unwrap()).collect();
        let wanted = ["hooks/01-a.patch", "fixes/02-b.patch", "hydra/3-c.patch", "hooks/10-d.patch"];
        assert_eq!(found, wanted.map(Path::new));
    }

    #[test]
    fn two_patches_with_the_same_number_are_refused() {
        let text = refusal(&[("hooks/07-a.patch", HEADER), ("fixes/7-b.patch", HEADER)]);
        assert!(
            text.contains("fixes/7-b.patch and") && text.ends_with("hooks/07-a.patch have the same number"),
            "{text}"
        );
    }

    #[test]
    fn a_patch_without_a_description_is_refused() {
        let refused = [
            ("hooks/01-a.patch", "", "line 1 of", "\"What: ...\""),
            ("hooks/01-a.patch", "--- a/file\n+++ b/file\n", "line 1 of", "\"What: ...\""),
            ("hydra/01-a.patch", "What: A change.\n\nWhy: A reason.\n", "line 2 of", "\"Why: ...\""),
            ("hydra/01-a.patch", "What: A change.\nWhy: \n", "line 2 of", "\"Why: ...\""),
            ("fixes/01-a.patch", "What: A change.\nWhy: A reason.\n\n", "line 3 of", "\"Mended in: ...\""),
        ];
        for (name, content, line, label) in refused {
            let text = refusal(&[(name, content)]);
            assert!(text.starts_with(line) && text.contains(name) && text.ends_with(label), "{text}");
        }
        let dir = patch_tree(&[("hooks/01-a.patch", "What: A change.\nWhy: A reason.\n")]);
        assert_eq!(patches_below(dir.path()).unwrap().len(), 1);
    }

    #[test]
    fn a_patch_without_a_folder_or_number_is_refused() {
        assert!(refusal(&[("01-a.patch", HEADER)]).ends_with("is in none of the folders hooks, fixes, hydra"));
        assert!(refusal(&[("other/01-a.patch", HEADER)]).ends_with("is in none of the folders hooks, fixes, hydra"));
        assert!(refusal(&[("hooks/a.patch", HEADER)]).ends_with("must be NUMBER-NAME.patch"));
    }

    #[test]
    fn the_patches_of_this_repository_are_in_order() {
        assert!(!patches().unwrap().is_empty());
    }
}
