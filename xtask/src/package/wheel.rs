//! A Python wheel, which installs into the directories of a Python environment: `bin`, `lib`, `include`, `share`.
//!
//! Wheels have no symbolic links. A library is there under the name by which programs load it; the names by which it is
//! linked are scripts for the linker; other links are copies.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use sha2::{Digest, Sha256};
use zip::write::SimpleFileOptions;

use super::tree::Tree;
use super::{needs, SUMMARY, VERSION};
use crate::paths;

/// Parts of the tree that a wheel has not: thousands of pages about MPI that are on the web, and a module file for what
/// activating an environment does.
const LEFT_OUT: [&str; 3] = ["share/man/man3", "share/doc/mpich", "share/modulefiles"];

/// Content of a file of the wheel.
enum Content {
    /// This file's contents.
    File(PathBuf),
    Text(String),
}

/// Writes the wheel and returns its path.
pub fn make(tree: &Tree, to: &Path) -> Result<PathBuf> {
    let (major, minor) = needs::glibc(tree)?;
    let tag = format!("py3-none-manylinux_{major}_{minor}_{}", std::env::consts::ARCH);
    let file = to.join(format!("ntbring-{VERSION}-{tag}.whl"));
    remove_earlier(to)?;
    let mut wheel = Wheel::create(&file)?;
    for (name, content) in contents(tree)? {
        wheel.add(&format!("ntbring-{VERSION}.data/data/{name}"), content)?;
    }
    let info = format!("ntbring-{VERSION}.dist-info");
    wheel.add(&format!("{info}/METADATA"), Content::Text(metadata()))?;
    let description =
        format!("Wheel-Version: 1.0\nGenerator: cargo xtask package\nRoot-Is-Purelib: false\nTag: {tag}\n");
    wheel.add(&format!("{info}/WHEEL"), Content::Text(description))?;
    wheel.add(&format!("{info}/licenses/LICENSE"), Content::File(tree.root.join("share/doc/ntbring/LICENSE")))?;
    wheel.finish(&format!("{info}/RECORD"))?;
    Ok(file)
}

/// Removes earlier wheels, which may have another tag: pip is to find one.
fn remove_earlier(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let file = entry?.path();
        if file.extension().is_some_and(|extension| extension == "whl") {
            paths::remove(&file)?;
        }
    }
    Ok(())
}

fn metadata() -> String {
    format!(
        "Metadata-Version: 2.1\nName: ntbring\nVersion: {VERSION}\nSummary: {SUMMARY}\nLicense: MIT\n\
         Requires-Python: >=3.6\nDescription-Content-Type: text/plain\n\n\
         Libraries, compiler wrappers and launchers of MPI and OpenSHMEM.\n\n    \
         pip install mpi4py\n    mpiexec -n 4 python -m mpi4py.bench ringtest\n    ntbring run -H 4 -n 8 ./prog\n"
    )
}

/// Returns the files of the tree as a wheel has them, by name.
fn contents(tree: &Tree) -> Result<BTreeMap<String, Content>> {
    let mut contents = BTreeMap::new();
    for name in tree.files()?.into_iter().filter(|name| !LEFT_OUT.iter().any(|part| name.starts_with(part))) {
        let path = tree.root.join(&name);
        let text = name.to_str().context("a name is not UTF-8")?.to_string();
        if !path.is_symlink() {
            // Libraries with a version are there under the shorter name, too.
            if !is_versioned(&text) {
                contents.insert(text, Content::File(path));
            }
            continue;
        }
        let real = fs::canonicalize(&path).with_context(|| format!("{} leads nowhere", path.display()))?;
        let content = match linked_name(&text) {
            Some(stem) => Content::Text(format!("INPUT({})\n", loaded_name(tree, &stem, &real)?)),
            None => Content::File(real),
        };
        contents.insert(text, content);
    }
    Ok(contents)
}

/// True for `lib/libmpi.so.12.2.2`.
fn is_versioned(name: &str) -> bool {
    name.split_once(".so.").is_some_and(|(_, version)| version.contains('.'))
}

/// Returns `libmpi.so` for `lib/libmpi.so`; None for other files.
fn linked_name(name: &str) -> Option<String> {
    name.strip_prefix("lib/").filter(|name| name.ends_with(".so")).map(str::to_string)
}

/// Returns the name in `lib` by which the library that `linked` leads to is loaded.
fn loaded_name(tree: &Tree, linked: &str, real: &Path) -> Result<String> {
    let name = real.file_name().and_then(|name| name.to_str()).context("a name is not UTF-8")?;
    let short = match name.split_once(".so.") {
        Some((stem, version)) => format!("{stem}.so.{}", version.split('.').next().unwrap_or_default()),
        None => name.to_string(),
    };
    let found = tree.root.join("lib").join(&short).exists();
    found.then_some(short).with_context(|| format!("{linked} leads to {name}, which no program loads"))
}

/// A wheel that is being written.
struct Wheel {
    zip: zip::ZipWriter<File>,
    record: String,
}

impl Wheel {
    fn create(file: &Path) -> Result<Self> {
        let open = File::create(file).with_context(|| format!("cannot write {}", file.display()))?;
        Ok(Self { zip: zip::ZipWriter::new(open), record: String::new() })
    }

    fn add(&mut self, name: &str, content: Content) -> Result<()> {
        let (bytes, mode) = match content {
            Content::Text(text) => (text.into_bytes(), 0o644),
            Content::File(path) => {
                let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
                let mode = fs::metadata(&path)?.permissions().mode();
                (bytes, if mode & 0o100 == 0 { 0o644 } else { 0o755 })
            }
        };
        let hash = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(Sha256::digest(&bytes));
        self.record += &format!("{},sha256={hash},{}\n", quoted(name), bytes.len());
        self.write(name, &bytes, mode)
    }

    fn write(&mut self, name: &str, bytes: &[u8], mode: u32) -> Result<()> {
        let options = SimpleFileOptions::default().unix_permissions(mode);
        self.zip.start_file(name, options).with_context(|| format!("cannot add {name}"))?;
        self.zip.write_all(bytes).with_context(|| format!("cannot add {name}"))
    }

    fn finish(mut self, record: &str) -> Result<()> {
        let text = format!("{}{record},,\n", self.record);
        self.write(record, text.as_bytes(), 0o644)?;
        self.zip.finish().context("cannot finish the wheel")?;
        Ok(())
    }
}

/// Returns a name as a field of RECORD, which is CSV.
fn quoted(name: &str) -> String {
    match name.contains([',', '"']) {
        true => format!("\"{}\"", name.replace('"', "\"\"")),
        false => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_wheel_has_no_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for part in ["lib", "bin", "share/man/man3"] {
            fs::create_dir_all(root.join(part)).unwrap();
        }
        fs::write(root.join("share/man/man3/MPI_Send.3"), "page").unwrap();
        fs::write(root.join("lib/libmpi.so.12.2.2"), "library").unwrap();
        fs::write(root.join("lib/libntbring.so"), "other").unwrap();
        fs::write(root.join("bin/mpiexec.hydra"), "program").unwrap();
        symlink("libmpi.so.12.2.2", root.join("lib/libmpi.so.12")).unwrap();
        symlink("libmpi.so.12", root.join("lib/libmpi.so")).unwrap();
        symlink("libntbring.so", root.join("lib/libsma.so")).unwrap();
        symlink("mpiexec.hydra", root.join("bin/mpiexec")).unwrap();
        let tree = Tree { root: root.to_path_buf(), mpich: PathBuf::new() };
        let shown: Vec<String> = contents(&tree)
            .unwrap()
            .into_iter()
            .map(|(name, content)| match content {
                Content::Text(text) => format!("{name}: {text}"),
                Content::File(path) => format!("{name}: {}", fs::read_to_string(path).unwrap()),
            })
            .collect();
        let expected = [
            "bin/mpiexec: program",
            "bin/mpiexec.hydra: program",
            "lib/libmpi.so: INPUT(libmpi.so.12)\n",
            "lib/libmpi.so.12: library",
            "lib/libntbring.so: other",
            "lib/libsma.so: INPUT(libntbring.so)\n",
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn names_are_fields_of_csv() {
        assert_eq!([quoted("a/b"), quoted("a,\"b")], ["a/b", "\"a,\"\"b\""]);
    }
}
