//! How much memory a rank takes.

/// Resident memory of this process, shared mappings left out, in bytes.
pub fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has /proc");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("it says how much memory is ours");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("a number of KiB") * 1024
}
