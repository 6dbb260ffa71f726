//! Every size from 0 to 300 bytes, then the powers of two and the adjacent sizes up to 4 MiB, to all kinds of partners
//! and to the rank itself.

use ntbring_mpi_tests::{exchange, shifts, Job};

fn main() {
    let job = Job::start("sizes");
    let small = 0..=300;
    let large = (9..=22).flat_map(|bits| [(1 << bits) - 1, 1 << bits, (1 << bits) + 1]);
    let sizes: Vec<usize> = small.chain(large).collect();
    for shift in shifts(job.size) {
        for (tag, size) in sizes.iter().enumerate() {
            exchange(&job.world, shift, tag as i32, *size);
        }
    }
    job.finish();
}
