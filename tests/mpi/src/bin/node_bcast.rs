//! Broadcasts of a derived datatype among all ranks: `node_bcast [ROUNDS]`. Ranks of one host pass them on in chunks
//! through MPICH's shared memory.

use mpi::datatype::{MutView, UserDatatype};
use mpi::traits::*;
use ntbring_mpi_tests::{arg, filled, verify, Job};

/// Number of elements of eight bytes, of which every second one is sent.
const ELEMENTS: usize = 1 << 20;

fn main() {
    let rounds: i32 = arg(1, 4);
    let job = Job::start("node_bcast");
    let every_second = UserDatatype::vector(ELEMENTS as i32, 1, 2, &u64::equivalent_datatype());
    for round in 0..rounds {
        let root = round % job.size;
        let expected = filled(root, 0, round, ELEMENTS * 8);
        let mut elements = vec![0u64; 2 * ELEMENTS];
        if job.rank == root {
            for (to, from) in elements.iter_mut().step_by(2).zip(expected.chunks_exact(8)) {
                *to = u64::from_ne_bytes(from.try_into().expect("eight bytes"));
            }
        }
        // SAFETY: the slice covers the extent of the datatype.
        let mut view = unsafe { MutView::with_count_and_datatype(&mut elements[..], 1, &every_second) };
        job.world.process_at_rank(root).broadcast_into(&mut view);
        let come: Vec<u8> = elements.iter().step_by(2).flat_map(|element| element.to_ne_bytes()).collect();
        verify(&come, root, 0, round);
        assert!(elements.iter().skip(1).step_by(2).all(|&element| element == 0), "what is between the elements was written");
    }
    drop(every_second);
    job.finish();
}
