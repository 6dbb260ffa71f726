//! The environment variables that child processes inherit.

use std::env;
use std::path::Path;

use crate::paths;

/// Removes the variables that `cargo run` has set in this process for its own purposes.
///
/// The important one is `LD_LIBRARY_PATH`: cargo prepends `target/debug`, which may hold a debug build of
/// `libntbring.so` that would be found before the installed one. The other variables would make nested calls of cargo
/// rebuild what is up to date.
///
/// Must be called before any thread is started.
pub fn clean() {
    let foreign: Vec<String> =
        env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| is_of_cargo_run(name)).collect();
    for name in foreign {
        env::remove_var(name);
    }
    if let Some(kept) = env::var_os("LD_LIBRARY_PATH")
        .map(|list| env::split_paths(&list).filter(|dir| !is_build_directory(dir)).collect::<Vec<_>>())
    {
        match env::join_paths(&kept) {
            Ok(list) if !kept.is_empty() => env::set_var("LD_LIBRARY_PATH", list),
            _ => env::remove_var("LD_LIBRARY_PATH"),
        }
    }
}

/// Makes tests and measurements independent of this user's tuning file, unless the caller names one.
///
/// Must be called before any thread is started.
pub fn ignore_tuned() {
    if env::var_os("NTBRING_TUNED").is_none() {
        env::set_var("NTBRING_TUNED", "off");
    }
}

/// Turns off AddressSanitizer's leak report (profile `asan`), since MPICH, its launcher and its tests leave much memory
/// unfreed until their processes end.
///
/// Must be called before any thread is started.
pub fn forgive_leaks() {
    if env::var_os("ASAN_OPTIONS").is_none() {
        env::set_var("ASAN_OPTIONS", "detect_leaks=0");
    }
}

fn is_of_cargo_run(name: &str) -> bool {
    name.starts_with("CARGO_PKG_")
        || [
            "CARGO",
            "CARGO_BIN_NAME",
            "CARGO_CRATE_NAME",
            "CARGO_MANIFEST_DIR",
            "CARGO_MANIFEST_PATH",
            "CARGO_PRIMARY_PACKAGE",
            "CARGO_TARGET_DIR",
            "OUT_DIR",
        ]
        .contains(&name)
}

fn is_build_directory(dir: &Path) -> bool {
    let custom = env::var_os("CARGO_TARGET_DIR").is_some_and(|target| dir.starts_with(target));
    custom
        || dir.starts_with(paths::target())
        || dir.components().any(|part| {
            part.as_os_str() == "rustlib" || part.as_os_str() == ".rustup" || part.as_os_str() == "toolchains"
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn build_directories_are_told_from_a_users_own() {
        assert!(is_build_directory(&paths::target().join("debug/deps")));
        assert!(is_build_directory(Path::new("/x/toolchains/stable/lib")));
        assert!(!is_build_directory(Path::new("/opt/site/lib")));
    }

    #[test]
    fn settings_of_the_user_are_kept() {
        assert!(is_of_cargo_run("CARGO_PKG_NAME"));
        assert!(!is_of_cargo_run("CARGO_HOME"));
        assert!(!is_of_cargo_run("CARGO_NET_OFFLINE"));
    }
}
