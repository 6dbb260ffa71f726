//! The sizes, hosts and names of the figures of `bench shmem-paper`.

use super::rows::{Group, Placement, Program};

/// Name under which the figures of the raw link and of copies are stored.
pub const RAW: &str = "raw";
/// Name of the figures of puts and gets under the link model.
pub const UNDER_MODEL: &str = "shmem-gen3x8";
/// Name of the figures of the turn-around on scaled links.
pub const SCALED: &str = "shmem-scaled";
/// Numbers of transfer threads of a host, and the names of their figures.
pub const OF_THREADS: [(usize, &str); 3] = [(1, "shmem-1-thread"), (2, "shmem-2-threads"), (4, "shmem-4-threads")];

/// Numbers of hosts of the second experiment; the third one takes the first of them.
pub const HOSTS: [usize; 3] = [3, 4, 5];

/// Sizes of puts and gets: names and bytes.
pub const SIZES: [(&str, u64); 8] = [
    ("1KiB", 1 << 10),
    ("4KiB", 4 << 10),
    ("16KiB", 16 << 10),
    ("64KiB", 64 << 10),
    ("256KiB", 256 << 10),
    ("512KiB", 512 << 10),
    ("1MiB", 1 << 20),
    ("4MiB", 4 << 20),
];

/// Rows of the turn-around: names and bytes of a put.
pub const TURNS: [(&str, u64); 5] = [
    ("turn_4KiB", 4 << 10),
    ("turn_16KiB", 16 << 10),
    ("turn_64KiB", 64 << 10),
    ("turn_256KiB", 256 << 10),
    ("turn_1MiB", 1 << 20),
];

const ROWS: [&str; 16] = [
    "put_bw_1KiB",
    "put_bw_4KiB",
    "put_bw_16KiB",
    "put_bw_64KiB",
    "put_bw_256KiB",
    "put_bw_512KiB",
    "put_bw_1MiB",
    "put_bw_4MiB",
    "get_bw_1KiB",
    "get_bw_4KiB",
    "get_bw_16KiB",
    "get_bw_64KiB",
    "get_bw_256KiB",
    "get_bw_512KiB",
    "get_bw_1MiB",
    "get_bw_4MiB",
];

/// Returns the group of the turn-around on this many hosts.
pub fn ring(hosts: usize) -> Group {
    Group { program: Program::Ring, placement: Placement::Hosts(hosts), rows: TURNS.map(|(row, _)| row).to_vec() }
}

/// Returns the group of the turn-around when all of four hosts put to the opposite one, so that each host forwards.
pub fn opposite() -> Group {
    Group { placement: Placement::Opposite, ..ring(4) }
}

/// Returns the group of puts and gets.
pub fn pair() -> Group {
    Group { program: Program::Pair, placement: Placement::Hosts(2), rows: ROWS.to_vec() }
}
