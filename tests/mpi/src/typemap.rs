//! Datatypes together with their type maps, as the MPI standard defines them.

use std::os::raw::c_int;

use mpi::ffi;
use mpi::traits::*;

use crate::raw::ok;

/// A committed datatype and its type map. The datatype is freed with it.
pub struct Typed {
    /// MPI's handle.
    pub handle: ffi::MPI_Datatype,
    /// Its construction, for messages.
    pub name: String,
    /// Its data in order: displacement and length of each part, in bytes.
    pub map: Vec<(isize, usize)>,
    /// Lower and upper bound; a type without data has none unless it was resized.
    pub bounds: Option<(isize, isize)>,
    /// The alignment to which the upper bound of a struct is rounded up.
    align: isize,
    is_ours: bool,
}

/// A block of elements: its displacement and number of elements.
pub type Block = (isize, usize);

fn ints<T: TryInto<c_int>>(values: impl IntoIterator<Item = T>) -> Vec<c_int> {
    values.into_iter().map(|value| value.try_into().unwrap_or_else(|_| panic!("a number too large for an int"))).collect()
}

fn union(one: Option<(isize, isize)>, two: Option<(isize, isize)>) -> Option<(isize, isize)> {
    match (one, two) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        _ => one.or(two),
    }
}

impl Typed {
    fn basic(handle: ffi::MPI_Datatype, name: &str, size: usize) -> Self {
        let bounds = Some((0, size as isize));
        Self { handle, name: name.into(), map: vec![(0, size)], bounds, align: size as isize, is_ours: false }
    }

    /// Returns MPI_BYTE.
    pub fn byte() -> Self {
        Self::basic(crate::raw::byte(), "byte", 1)
    }

    /// Returns MPI_INT.
    pub fn int() -> Self {
        Self::basic(i32::equivalent_datatype().as_raw(), "int", 4)
    }

    /// Returns MPI_DOUBLE.
    pub fn double() -> Self {
        Self::basic(f64::equivalent_datatype().as_raw(), "double", 8)
    }

    /// Commits the type that `make` constructs of the blocks of this type.
    fn made(&self, name: String, blocks: &[Block], make: impl FnOnce(*mut ffi::MPI_Datatype) -> c_int) -> Self {
        let mut new = Self { handle: self.handle, name, map: Vec::new(), bounds: None, align: self.align, is_ours: true };
        for &block in blocks {
            new.append(self, block);
            new.widen(self, block);
        }
        new.commit(make)
    }

    fn commit(mut self, make: impl FnOnce(*mut ffi::MPI_Datatype) -> c_int) -> Self {
        ok(make(&mut self.handle), &self.name);
        // SAFETY: the call has created an uncommitted datatype.
        ok(unsafe { ffi::MPI_Type_commit(&mut self.handle) }, "MPI_Type_commit");
        self
    }

    fn append(&mut self, of: &Self, (at, count): Block) {
        for i in 0..count as isize {
            let shift = at + i * of.extent();
            self.map.extend(of.map.iter().map(|(place, len)| (place + shift, *len)));
        }
    }

    fn widen(&mut self, of: &Self, (at, count): Block) {
        for i in 0..count as isize {
            let shift = at + i * of.extent();
            self.bounds = union(self.bounds, of.bounds.map(|(lb, ub)| (lb + shift, ub + shift)));
        }
    }

    /// Returns the same type with these bounds. Without data, an extent of 0 at 0 means no bounds.
    fn within(mut self, lb: isize, ub: isize) -> Self {
        self.bounds = Some((lb, ub)).filter(|&bounds| self.size() > 0 || bounds != (0, 0));
        self
    }

    /// Returns the number of bytes of data.
    pub fn size(&self) -> usize {
        self.map.iter().map(|(_, len)| len).sum()
    }

    /// Returns the distance of its elements in bytes.
    pub fn extent(&self) -> isize {
        self.bounds.map_or(0, |(lb, ub)| ub - lb)
    }

    /// Returns the displacements of all data bytes of `count` elements.
    pub fn places(&self, count: usize) -> impl Iterator<Item = isize> + '_ {
        let of =
            move |i: isize| self.map.iter().flat_map(move |&(at, len)| (0..len as isize).map(move |byte| at + i * self.extent() + byte));
        (0..count as isize).flat_map(of)
    }

    /// Constructs a type with MPI_Type_contiguous.
    pub fn contiguous(&self, count: usize) -> Self {
        let name = format!("contiguous({count}, {})", self.name);
        // SAFETY: the datatype is valid, and `new` is valid for writes.
        self.made(name, &[(0, count)], |new| unsafe { ffi::MPI_Type_contiguous(count as c_int, self.handle, new) })
    }

    /// Constructs a type with MPI_Type_vector, or with MPI_Type_create_hvector if the stride is `in_bytes`.
    pub fn vector(&self, count: usize, len: usize, stride: isize, in_bytes: bool) -> Self {
        let unit = if in_bytes { 1 } else { self.extent() };
        let blocks: Vec<Block> = (0..count as isize).map(|i| (i * stride * unit, len)).collect();
        let (n, len) = (count as c_int, len as c_int);
        self.made(format!("vector({count}, {len}, {stride}, {in_bytes}, {})", self.name), &blocks, |new| {
            // SAFETY: the datatype is valid, and `new` is valid for writes.
            unsafe {
                match in_bytes {
                    true => ffi::MPI_Type_create_hvector(n, len, stride as ffi::MPI_Aint, self.handle, new),
                    false => ffi::MPI_Type_vector(n, len, stride as c_int, self.handle, new),
                }
            }
        })
    }

    /// Constructs a type with MPI_Type_indexed, or with MPI_Type_create_hindexed if displacements are `in_bytes`.
    pub fn indexed(&self, blocks: &[Block], in_bytes: bool) -> Self {
        let unit = if in_bytes { 1 } else { self.extent() };
        let places: Vec<Block> = blocks.iter().map(|&(at, len)| (at * unit, len)).collect();
        let lens = ints(blocks.iter().map(|block| block.1));
        let (at, wide) =
            (ints(blocks.iter().map(|block| block.0)), blocks.iter().map(|block| block.0 as ffi::MPI_Aint).collect::<Vec<_>>());
        let n = blocks.len() as c_int;
        self.made(format!("indexed({blocks:?}, {in_bytes}, {})", self.name), &places, |new| {
            // SAFETY: the arrays have `n` numbers, the datatype is valid, and `new` is valid for writes.
            unsafe {
                match in_bytes {
                    true => ffi::MPI_Type_create_hindexed(n, lens.as_ptr(), wide.as_ptr(), self.handle, new),
                    false => ffi::MPI_Type_indexed(n, lens.as_ptr(), at.as_ptr(), self.handle, new),
                }
            }
        })
    }

    /// Constructs a type with MPI_Type_create_indexed_block, or with MPI_Type_create_hindexed_block if displacements
    /// are `in_bytes`.
    pub fn blocks(&self, at: &[isize], len: usize, in_bytes: bool) -> Self {
        let unit = if in_bytes { 1 } else { self.extent() };
        let places: Vec<Block> = at.iter().map(|at| (at * unit, len)).collect();
        let (narrow, wide) = (ints(at.iter().copied()), at.iter().map(|&at| at as ffi::MPI_Aint).collect::<Vec<_>>());
        let (n, len) = (at.len() as c_int, len as c_int);
        self.made(format!("blocks({at:?}, {len}, {in_bytes}, {})", self.name), &places, |new| {
            // SAFETY: the array has `n` numbers, the datatype is valid, and `new` is valid for writes.
            unsafe {
                match in_bytes {
                    true => ffi::MPI_Type_create_hindexed_block(n, len, wide.as_ptr(), self.handle, new),
                    false => ffi::MPI_Type_create_indexed_block(n, len, narrow.as_ptr(), self.handle, new),
                }
            }
        })
    }

    /// Constructs a type with MPI_Type_create_struct.
    pub fn structure(members: &[(Block, &Self)]) -> Self {
        let names: Vec<String> = members.iter().map(|((at, len), of)| format!("{len} at {at}: {}", of.name)).collect();
        let name = format!("struct[{}]", names.join("; "));
        let mut new = Self { handle: Self::int().handle, name, map: Vec::new(), bounds: None, align: 1, is_ours: true };
        members.iter().for_each(|(block, of)| new.append(of, *block));
        // Only members with data determine the padding, by their own alignment.
        let (full, empty): (Vec<_>, Vec<_>) = members.iter().partition(|(_, of)| of.size() > 0);
        full.iter().for_each(|(block, of)| new.widen(of, *block));
        let align = full.iter().map(|(_, of)| of.align).max().unwrap_or(1);
        new.bounds = new.bounds.map(|(lb, ub)| (lb, lb + (ub - lb + align - 1) / align * align));
        empty.iter().for_each(|(block, of)| new.widen(of, *block));
        new.align = align;
        let lens = ints(members.iter().map(|member| member.0 .1));
        let at: Vec<ffi::MPI_Aint> = members.iter().map(|member| member.0 .0 as ffi::MPI_Aint).collect();
        let of: Vec<ffi::MPI_Datatype> = members.iter().map(|member| member.1.handle).collect();
        new.commit(|new| {
            // SAFETY: the arrays have that many elements, the datatypes are valid, and `new` is valid for writes.
            unsafe { ffi::MPI_Type_create_struct(lens.len() as c_int, lens.as_ptr(), at.as_ptr(), of.as_ptr(), new) }
        })
    }

    /// Constructs a type with MPI_Type_create_resized.
    pub fn resized(&self, lb: isize, extent: isize) -> Self {
        let name = format!("resized({lb}, {extent}, {})", self.name);
        let new = self.made(name, &[(0, 1)], |new| {
            // SAFETY: the datatype is valid, and `new` is valid for writes.
            unsafe { ffi::MPI_Type_create_resized(self.handle, lb as ffi::MPI_Aint, extent as ffi::MPI_Aint, new) }
        });
        new.within(lb, lb + extent)
    }

    /// Constructs a type with MPI_Type_dup.
    pub fn dup(&self) -> Self {
        // SAFETY: the datatype is valid, and `new` is valid for writes.
        self.made(format!("dup({})", self.name), &[(0, 1)], |new| unsafe { ffi::MPI_Type_dup(self.handle, new) })
    }

    /// Constructs a type with MPI_Type_create_subarray of two dimensions in C's order: [rows, columns] of the array and
    /// of the part, and the position at which the part begins.
    pub fn subarray(&self, whole: [usize; 2], part: [usize; 2], first: [usize; 2]) -> Self {
        let extent = self.extent();
        let row = |i: usize| ((((first[0] + i) * whole[1] + first[1]) as isize) * extent, part[1]);
        let blocks: Vec<Block> = (0..part[0]).map(row).collect();
        let [a, b, c] = [whole, part, first].map(ints);
        let new = self.made(format!("subarray({whole:?}, {part:?}, {first:?}, {})", self.name), &blocks, |new| {
            let order = ffi::MPI_ORDER_C as c_int;
            // SAFETY: the arrays have two numbers, the datatype is valid, and `new` is valid for writes.
            unsafe { ffi::MPI_Type_create_subarray(2, a.as_ptr(), b.as_ptr(), c.as_ptr(), order, self.handle, new) }
        });
        new.within(0, (whole[0] * whole[1]) as isize * extent)
    }

    /// Constructs a type with MPI_Type_create_darray of one dimension, for rank `rank` of `ranks`: with block
    /// distribution if `cyclic` is None, otherwise cyclic with that many elements.
    pub fn darray(&self, ranks: usize, rank: usize, whole: usize, cyclic: Option<usize>) -> Self {
        let len = cyclic.unwrap_or(whole.div_ceil(ranks));
        let owner = |i: usize| i / len % ranks;
        let extent = self.extent();
        let blocks: Vec<Block> = (0..whole).filter(|&i| owner(i) == rank).map(|i| (i as isize * extent, 1)).collect();
        let kind = if cyclic.is_some() { ffi::MPI_DISTRIBUTE_CYCLIC } else { ffi::MPI_DISTRIBUTE_BLOCK } as c_int;
        let (size, len, ranks, rank) = (whole as c_int, len as c_int, ranks as c_int, rank as c_int);
        let new = self.made(format!("darray({ranks}, {rank}, {whole}, {cyclic:?}, {})", self.name), &blocks, |new| {
            let order = ffi::MPI_ORDER_C as c_int;
            // SAFETY: there is one dimension, so each array has one number; the datatype is valid, and `new` is valid
            // for writes.
            unsafe { ffi::MPI_Type_create_darray(ranks, rank, 1, &size, &kind, &len, &ranks, order, self.handle, new) }
        });
        new.within(0, whole as isize * extent)
    }
}

impl Drop for Typed {
    fn drop(&mut self) {
        if self.is_ours {
            // SAFETY: the datatype is valid and not used afterwards.
            ok(unsafe { ffi::MPI_Type_free(&mut self.handle) }, "MPI_Type_free");
        }
    }
}
