//! Derived datatypes: vectors, indexed blocks, structs with holes and of odd sizes, each sent to receivers that use
//! another layout of the same elements; from a few elements up to several MB, so that the boundaries of chunks and
//! slots split elements.

use mpi::datatype::{MutView, SystemDatatype, UncommittedUserDatatype, UserDatatype, View};
use mpi::ffi;
use mpi::traits::*;
use mpi::{Address, Count};
use ntbring_mpi_tests::{filled, raw, Job};

/// Fill byte of a receive buffer, which bytes between elements must keep.
const HOLE: u8 = 0xa5;

/// A datatype and its meaning in bytes: offsets and lengths within an element, and the distance of elements.
struct Layout {
    name: &'static str,
    datatype: UserDatatype,
    segments: Vec<(usize, usize)>,
    extent: usize,
}

impl Layout {
    /// Returns a struct of the given elements: (offset, length, type).
    fn new(name: &'static str, extent: usize, elements: &[(usize, SystemDatatype)]) -> Self {
        let lengths = vec![1; elements.len()];
        let places: Vec<Address> = elements.iter().map(|(place, _)| *place as Address).collect();
        let types: Vec<SystemDatatype> = elements.iter().map(|(_, t)| *t).collect();
        let natural = UncommittedUserDatatype::structured(&lengths, &places, &types);
        let segments = elements.iter().map(|(place, t)| (*place, size_of(t))).collect();
        Self { name, datatype: resized(&natural, extent), segments, extent }
    }

    /// Returns the bytes of the elements of `buf`, in the order of the datatype.
    fn packed(&self, buf: &[u8], count: usize) -> Vec<u8> {
        let places = (0..count).flat_map(|i| self.segments.iter().map(move |(place, len)| (i * self.extent + place, *len)));
        places.flat_map(|(start, len)| &buf[start..start + len]).copied().collect()
    }

    /// Returns the expected receive buffer after `packed` has arrived in it.
    fn unpacked(&self, packed: &[u8], count: usize) -> Vec<u8> {
        let mut buf = vec![HOLE; self.extent * count];
        let mut from = packed;
        for i in 0..count {
            for (place, len) in &self.segments {
                let (bytes, rest) = from.split_at(*len);
                buf[i * self.extent + place..][..*len].copy_from_slice(bytes);
                from = rest;
            }
        }
        buf
    }
}

fn size_of(datatype: &SystemDatatype) -> usize {
    let mut size = 0;
    // SAFETY: the datatype is predefined, and `size` is valid for writes.
    raw::ok(unsafe { ffi::MPI_Type_size(datatype.as_raw(), &mut size) }, "MPI_Type_size");
    size as usize
}

/// Returns a type of the same elements, `extent` bytes apart.
fn resized(datatype: &UncommittedUserDatatype, extent: usize) -> UserDatatype {
    // SAFETY: reading the constant is safe: the C side initializes it at load time. The call overwrites the handle.
    let mut new = unsafe { ffi::RSMPI_DATATYPE_NULL };
    // SAFETY: the datatype is valid, and `new` is valid for writes.
    raw::ok(unsafe { ffi::MPI_Type_create_resized(datatype.as_raw(), 0, extent as Address, &mut new) }, "MPI_Type_create_resized");
    // SAFETY: the datatype is new and uncommitted, and this is its only owner.
    unsafe { UncommittedUserDatatype::from_raw(new) }.commit()
}

/// Sends `count` elements with one layout `shift` ahead, and receives as many with another layout from behind.
fn transfer(job: &Job, out: &Layout, into: &Layout, count: usize, shift: i32, late: bool) {
    let (to, from) = (job.ahead(shift), job.ahead(-shift));
    let source = filled(job.rank, to, 1, out.extent * count);
    let mut target = vec![HOLE; into.extent * count];
    {
        // SAFETY: both buffers cover the extent of `count` elements of their datatype.
        let (sent, mut received) = unsafe {
            (
                View::with_count_and_datatype(&source[..], count as Count, &out.datatype),
                MutView::with_count_and_datatype(&mut target[..], count as Count, &into.datatype),
            )
        };
        let (to, from) = (job.world.process_at_rank(to), job.world.process_at_rank(from));
        mpi::request::scope(|scope| {
            if late {
                // The message, or its RTS, arrives before its receive is posted.
                let sending = to.immediate_send(scope, &sent);
                from.probe();
                from.receive_into(&mut received);
                sending.wait();
            } else {
                let receiving = from.immediate_receive_into(scope, &mut received);
                to.send(&sent);
                receiving.wait();
            }
        });
    }
    let expected = into.unpacked(&out.packed(&filled(from, job.rank, 1, out.extent * count), count), count);
    let wrong = target.iter().zip(&expected).position(|(a, b)| a != b);
    assert_eq!(wrong, None, "first wrong byte of {count} elements from {from}, sent as {} and received as {}", out.name, into.name);
}

/// Layouts of the same elements: an int and a double.
fn int_double() -> Vec<Layout> {
    let (int, double) = (i32::equivalent_datatype(), f64::equivalent_datatype());
    vec![
        Layout::new("12 packed bytes", 12, &[(0, int), (4, double)]),
        Layout::new("16 bytes with a hole", 16, &[(0, int), (8, double)]),
        Layout::new("the double first, 20 bytes apart", 20, &[(12, int), (0, double)]),
    ]
}

/// Layouts of five bytes and a 16-bit number: no size is a multiple of another.
fn odd() -> Vec<Layout> {
    let (byte, short) = (u8::equivalent_datatype(), i16::equivalent_datatype());
    let with = |places: [usize; 6]| {
        let types = [byte, byte, byte, byte, byte, short];
        places.into_iter().zip(types).collect::<Vec<_>>()
    };
    vec![
        Layout::new("7 packed bytes", 7, &with([0, 1, 2, 3, 4, 5])),
        Layout::new("scattered over 23 bytes", 23, &with([20, 1, 3, 17, 9, 12])),
    ]
}

/// Layouts of twelve 32-bit numbers: contiguous, a vector, irregular blocks.
fn numbers() -> Vec<Layout> {
    let int = i32::equivalent_datatype();
    let words = |blocks: &[(usize, usize)]| blocks.iter().map(|(place, len)| (place * 4, len * 4)).collect::<Vec<_>>();
    vec![
        Layout { name: "contiguous", datatype: UserDatatype::contiguous(12, &int), segments: words(&[(0, 12)]), extent: 48 },
        Layout {
            name: "a vector",
            datatype: resized(&UncommittedUserDatatype::vector(4, 3, 5, &int), 84),
            segments: words(&[(0, 3), (5, 3), (10, 3), (15, 3)]),
            extent: 84,
        },
        Layout {
            name: "indexed blocks",
            datatype: resized(&UncommittedUserDatatype::indexed(&[1, 7, 4], &[14, 1, 9], &int), 64),
            segments: words(&[(14, 1), (1, 7), (9, 4)]),
            extent: 64,
        },
    ]
}

/// The same with a datatype that rsmpi derives for a Rust struct.
#[derive(Clone, Copy, Debug, Equivalence, PartialEq)]
struct Particle {
    id: u16,
    place: [f64; 3],
    flags: (u8, bool),
}

fn derived(job: &Job, count: usize, shift: i32) {
    let particle =
        |rank: i32, i: usize| Particle { id: i as u16, place: [rank as f64, i as f64, 0.5], flags: (i as u8, i.is_multiple_of(3)) };
    let mine: Vec<Particle> = (0..count).map(|i| particle(job.rank, i)).collect();
    let (to, from) = (job.world.process_at_rank(job.ahead(shift)), job.world.process_at_rank(job.ahead(-shift)));
    let (got, _) = mpi::request::scope(|scope| {
        let sending = to.immediate_send(scope, &mine[..]);
        let got = from.receive_vec::<Particle>();
        sending.wait();
        got
    });
    assert_eq!(got.len(), count, "particles from {}", from.rank());
    assert!(got.iter().enumerate().all(|(i, p)| *p == particle(from.rank(), i)), "a particle from {} is wrong", from.rank());
}

/// One element of several MB: the datatype is large and the count is 1.
fn large_element(job: &Job) {
    let large = Layout {
        name: "one large vector",
        datatype: UserDatatype::vector(100_000, 7, 9, &i32::equivalent_datatype()),
        segments: (0..100_000).map(|i| (i * 36, 28)).collect(),
        extent: 100_000 * 36 - 8,
    };
    transfer(job, &large, &large, 1, 1, false);
    transfer(job, &large, &large, 1, job.size / 2, true);
}

fn main() {
    let job = Job::start("derived_types");
    let mut distances = vec![1, job.size / 2];
    distances.dedup();
    for shift in distances {
        for (layouts, counts) in [(int_double(), [1, 7, 1000, 30_000]), (odd(), [3, 10, 2000, 40_000]), (numbers(), [1, 5, 300, 9000])] {
            let mut late = false;
            for out in &layouts {
                for into in &layouts {
                    for count in counts {
                        transfer(&job, out, into, count, shift, late);
                        late = !late;
                    }
                    // Each count is used with early and with late receives.
                    late = !late;
                }
            }
            // Several MB once, from packed to scattered and back.
            let (first, last) = (&layouts[0], &layouts[layouts.len() - 1]);
            let many = (4 << 20) / first.extent + 1;
            transfer(&job, first, last, many, shift, false);
            transfer(&job, last, first, many, shift, true);
        }
        derived(&job, 1, shift);
        derived(&job, 50_000, shift);
    }
    large_element(&job);
    job.finish();
}
