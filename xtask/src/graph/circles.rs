//! Circles among the files of a crate: files that refer to each other by `use` or by paths, directly or through others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use syn::visit::Visit;

/// A module that is a file of its own, or stands inside another's file.
#[derive(Default)]
struct Module {
    file: PathBuf,
    children: BTreeSet<String>,
    /// Names of items that the file defines.
    items: BTreeSet<String>,
    /// Names that `use` brings in, with their full paths.
    imports: BTreeMap<String, Vec<String>>,
    /// Paths of modules all of whose names are brought in.
    globs: Vec<Vec<String>>,
    /// Every other path that the module mentions.
    paths: Vec<Vec<String>>,
}

/// All modules of a crate, by their path from its root.
type Modules = BTreeMap<Vec<String>, Module>;

/// Files that all refer to each other, directly or through others: each with those that it refers to directly.
pub type Circle = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// Returns the circles of a crate. `root` is the file with which the crate begins. References of tests do not count.
pub fn circles(root: &Path) -> Result<Vec<Circle>> {
    let mut modules = Modules::new();
    let folder = root.parent().context("a crate's first file lies in a folder")?;
    load(root, folder, Vec::new(), &mut modules)?;
    let mut references = DiGraphMap::<&Path, ()>::new();
    for (path, module) in &modules {
        let mentioned = module.imports.values().chain(&module.globs).chain(&module.paths);
        for file in mentioned.filter_map(|mentioned| resolve(&modules, path, mentioned, 0)) {
            if file != module.file {
                references.add_edge(&module.file, file, ());
            }
        }
    }
    let found = tarjan_scc(&references).into_iter().filter(|component| component.len() > 1);
    let circle = found.map(|component| {
        let inside = |file: &&Path| component.contains(file);
        let referred = |file: &&Path| references.neighbors(file).filter(inside).map(Path::to_owned).collect();
        component.iter().map(|file| (file.to_path_buf(), referred(file))).collect()
    });
    Ok(circle.collect())
}

/// Reads the module `path` from `file`, and those below it, whose files are in `folder`.
fn load(file: &Path, folder: &Path, path: Vec<String>, modules: &mut Modules) -> Result<()> {
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let parsed = syn::parse_file(&text).with_context(|| format!("cannot parse {}", file.display()))?;
    take(&parsed.items, file, folder, path, modules)
}

/// Takes the items of a module into account.
fn take(items: &[syn::Item], file: &Path, folder: &Path, path: Vec<String>, modules: &mut Modules) -> Result<()> {
    let mut module = Module { file: file.to_owned(), ..Module::default() };
    for item in items.iter().filter(|item| !is_for_tests(item)) {
        match item {
            syn::Item::Mod(child) => {
                let name = child.ident.to_string();
                let (below, inside) = ([path.clone(), vec![name.clone()]].concat(), folder.join(&name));
                match &child.content {
                    Some((_, items)) => take(items, file, &inside, below, modules)?,
                    None => {
                        let file = file_of(child, folder);
                        // Modules of a file that is named by its path, or `mod.rs`, lie beside it.
                        let inside = match file.parent() {
                            Some(beside) if file != inside.with_extension("rs") => beside,
                            _ => &inside,
                        };
                        load(&file, inside, below, modules)?;
                    }
                }
                module.children.insert(name);
            }
            syn::Item::Use(used) => import(&used.tree, Vec::new(), &mut module),
            other => {
                module.items.extend(name_of(other));
                Paths(&mut module.paths).visit_item(other);
            }
        }
    }
    modules.insert(path, module);
    Ok(())
}

/// Returns the file of a module without a body.
fn file_of(child: &syn::ItemMod, folder: &Path) -> PathBuf {
    let own = folder.join(child.ident.to_string()).with_extension("rs");
    let given = child.attrs.iter().find_map(|attribute| match &attribute.meta {
        syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) => Some(folder.join(text.value())),
            _ => None,
        },
        _ => None,
    });
    given.unwrap_or(if own.exists() { own } else { folder.join(child.ident.to_string()).join("mod.rs") })
}

/// Returns true for items that only tests have.
fn is_for_tests(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && is_test(&list.tokens.to_string()),
        _ => false,
    })
}

/// Returns true for conditions such as `test` and `all(test, not(loom))`.
fn is_test(condition: &str) -> bool {
    ["test", "all (test", "all(test"].iter().any(|start| condition.starts_with(start))
}

fn name_of(item: &syn::Item) -> Option<String> {
    let name = match item {
        syn::Item::Const(item) => &item.ident,
        syn::Item::Enum(item) => &item.ident,
        syn::Item::Fn(item) => &item.sig.ident,
        syn::Item::Static(item) => &item.ident,
        syn::Item::Struct(item) => &item.ident,
        syn::Item::Trait(item) => &item.ident,
        syn::Item::Type(item) => &item.ident,
        syn::Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Enters the names that a `use` brings in.
fn import(tree: &syn::UseTree, mut before: Vec<String>, module: &mut Module) {
    match tree {
        syn::UseTree::Path(path) => {
            before.push(path.ident.to_string());
            import(&path.tree, before, module);
        }
        syn::UseTree::Name(name) => {
            let name = name.ident.to_string();
            // `use a::{self}` brings in `a`.
            if name != "self" {
                before.push(name);
            }
            if let Some(last) = before.last().cloned() {
                module.imports.insert(last, before);
            }
        }
        syn::UseTree::Rename(renamed) => {
            before.push(renamed.ident.to_string());
            module.imports.insert(renamed.rename.to_string(), before);
        }
        syn::UseTree::Glob(_) => module.globs.push(before),
        syn::UseTree::Group(group) => {
            group.items.iter().for_each(|tree| import(tree, before.clone(), module));
        }
    }
}

/// Collects the paths of an item.
struct Paths<'a>(&'a mut Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths<'_> {
    /// `pub(super)` is not a reference.
    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }
}

/// Returns the file that defines the item at `path` as seen from the module `from`; None if it is of another crate, or
/// unknown. Names that a module only passes on lead to the file that defines them.
fn resolve<'a>(modules: &'a Modules, from: &[String], path: &[String], depth: usize) -> Option<&'a Path> {
    // Imports may lead round in a circle only in code that does not compile.
    if depth > 16 {
        return None;
    }
    let mut at = from.to_vec();
    for (i, segment) in path.iter().enumerate() {
        let rest = &path[i + 1..];
        match segment.as_str() {
            "crate" if i == 0 => at = Vec::new(),
            "self" if i == 0 => {}
            "super" => {
                at.pop()?;
            }
            name => {
                let module = modules.get(&at)?;
                if module.children.contains(name) {
                    at.push(name.to_owned());
                } else if module.items.contains(name) {
                    return Some(&module.file);
                } else if let Some(import) = module.imports.get(name) {
                    // A name that is imported under itself is of another crate.
                    let whole: Vec<String> = import.iter().chain(rest).cloned().collect();
                    let is_own = at == from && whole == path;
                    return if is_own { None } else { resolve(modules, &at, &whole, depth + 1) };
                } else {
                    let mut globs = module.globs.iter();
                    return globs.find_map(|glob| {
                        let whole: Vec<String> = glob.iter().chain(&path[i..]).cloned().collect();
                        if at == from && whole == path {
                            None
                        } else {
                            resolve(modules, &at, &whole, depth + 1)
                        }
                    });
                }
            }
        }
    }
    modules.get(&at).filter(|module| !module.items.is_empty()).map(|module| module.file.as_path())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a crate of these files, and returns its circles by file names.
    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        let found = circles(&folder.path().join("lib.rs")).unwrap();
        let name = |file: &PathBuf| file.strip_prefix(folder.path()).unwrap().display().to_string();
        found.iter().map(|circle| circle.keys().map(name).collect()).collect()
    }

    #[test]
    fn a_root_that_only_passes_names_on_is_in_no_circle() {
        let lib = "mod a; mod b; pub use a::A; pub use b::B;";
        let files = [("lib.rs", lib), ("a.rs", "pub struct A;"), ("b.rs", "use super::A; pub struct B(A);")];
        assert!(circles_of(&files).is_empty());
    }

    #[test]
    fn a_parent_whose_children_use_what_it_defines_is_in_a_circle_with_them() {
        let files = [("lib.rs", "mod a; pub struct P(a::A);"), ("a.rs", "pub struct A; fn f(_: &crate::P) {}")];
        assert_eq!(circles_of(&files), [["a.rs", "lib.rs"]]);
    }

    #[test]
    fn files_in_folders_and_paths_without_use_are_seen() {
        let a = "pub struct A; pub fn f() { crate::b::inner::g() }";
        let files = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", a),
            ("b/mod.rs", "pub mod inner;"),
            ("b/inner.rs", "use crate::a::{self, A as Other}; pub fn g() { a::f(); let _ = Other; }"),
        ];
        assert_eq!(circles_of(&files), [["a.rs", "b/inner.rs"]]);
    }

    #[test]
    fn tests_may_refer_to_everything() {
        let a = "pub struct A; #[cfg(test)] mod tests { use crate::b::B; }";
        let files = [("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "use crate::a::A; pub struct B(A);")];
        assert!(circles_of(&files).is_empty());
    }
}
