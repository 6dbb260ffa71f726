//! C types that Rust does not have.

/// `long double`, as its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(16))]
pub struct LongDouble(pub [u8; 16]);

/// `float _Complex`: real and imaginary part.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct ComplexF32(pub f32, pub f32);

/// `double _Complex`: real and imaginary part.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct ComplexF64(pub f64, pub f64);

/// An element of 128 bits of any type and alignment.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Bits128(pub [u8; 16]);
