//! The types of typed functions, and the sets of them that families of functions exist for.

/// A type that is part of function names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Type {
    /// As in function names: `shmem_{name}_put`.
    pub name: &'static str,
    /// As prototypes have it.
    pub c: &'static str,
    /// The C type without type definitions where `long` has 64 bits: names with the same one are the same C type.
    pub base: &'static str,
    /// As the Rust glue has it.
    pub rust: &'static str,
}

const fn row(name: &'static str, c: &'static str, base: &'static str, rust: &'static str) -> Type {
    Type { name, c, base, rust }
}

/// Name of the C type of `complexd`: `double _Complex`, without a warning in C++.
pub const COMPLEX_DOUBLE: &str = "shmem_impl_complexd";
/// Name of the C type of `complexf`: `float _Complex`, without a warning in C++.
pub const COMPLEX_FLOAT: &str = "shmem_impl_complexf";

/// All types. Where several are one C type, generic names choose the first one.
pub const TYPES: &[Type] = &[
    row("float", "float", "float", "f32"),
    row("double", "double", "double", "f64"),
    row("longdouble", "long double", "long double", "LongDouble"),
    row("complexd", COMPLEX_DOUBLE, COMPLEX_DOUBLE, "ComplexF64"),
    row("complexf", COMPLEX_FLOAT, COMPLEX_FLOAT, "ComplexF32"),
    row("char", "char", "char", "c_char"),
    row("schar", "signed char", "signed char", "i8"),
    row("short", "short", "short", "c_short"),
    row("int", "int", "int", "c_int"),
    row("long", "long", "long", "c_long"),
    row("longlong", "long long", "long long", "c_longlong"),
    row("uchar", "unsigned char", "unsigned char", "u8"),
    row("ushort", "unsigned short", "unsigned short", "c_ushort"),
    row("uint", "unsigned int", "unsigned int", "c_uint"),
    row("ulong", "unsigned long", "unsigned long", "c_ulong"),
    row("ulonglong", "unsigned long long", "unsigned long long", "c_ulonglong"),
    row("int8", "int8_t", "signed char", "i8"),
    row("int16", "int16_t", "short", "i16"),
    row("int32", "int32_t", "int", "i32"),
    row("int64", "int64_t", "long", "i64"),
    row("uint8", "uint8_t", "unsigned char", "u8"),
    row("uint16", "uint16_t", "unsigned short", "u16"),
    row("uint32", "uint32_t", "unsigned int", "u32"),
    row("uint64", "uint64_t", "unsigned long", "u64"),
    row("size", "size_t", "unsigned long", "usize"),
    row("ptrdiff", "ptrdiff_t", "long", "isize"),
];

/// Sizes in bits of functions like `shmem_put32`, with the Rust type that stands for such an element.
pub const SIZES: &[(u32, &str)] = &[(8, "u8"), (16, "u16"), (32, "u32"), (64, "u64"), (128, "Bits128")];

/// A set of types: the functions of a family exist for all of its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// Remote memory access and collectives.
    Rma,
    /// All atomics with arithmetic; waiting and testing.
    Standard,
    /// Atomics which only move values.
    Extended,
    /// Atomics on bits.
    Bitwise,
    /// `wait_until` and `test`, which have two deprecated types more than the others.
    Wait,
    /// Deprecated `shmem_TYPE_wait`.
    OldWait,
    /// Reductions on bits.
    ReduceBits,
    /// Reductions to the largest and to the smallest.
    ReduceOrder,
    /// Sums and products, and scans.
    ReduceArithmetic,
    /// Reductions on bits over active sets (deprecated).
    ActiveBits,
    /// Reductions to the largest and to the smallest over active sets (deprecated).
    ActiveOrder,
    /// Sums and products over active sets (deprecated).
    ActiveArithmetic,
    /// Deprecated names of atomics which only move values.
    OldExtended,
    /// Deprecated names of the other atomics.
    OldStandard,
}

impl Set {
    /// All sets.
    pub const ALL: &'static [Set] = &[
        Set::Rma,
        Set::Standard,
        Set::Extended,
        Set::Bitwise,
        Set::Wait,
        Set::OldWait,
        Set::ReduceBits,
        Set::ReduceOrder,
        Set::ReduceArithmetic,
        Set::ActiveBits,
        Set::ActiveOrder,
        Set::ActiveArithmetic,
        Set::OldExtended,
        Set::OldStandard,
    ];

    /// Names of the members, separated by spaces.
    const fn names(self) -> &'static str {
        match self {
            Set::Rma | Set::ReduceOrder => {
                "float double longdouble char schar short int long longlong uchar ushort uint ulong ulonglong \
                 int8 int16 int32 int64 uint8 uint16 uint32 uint64 size ptrdiff"
            }
            Set::Standard => "int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff",
            Set::Extended => {
                "float double int long longlong uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff"
            }
            Set::Bitwise => "uint ulong ulonglong int32 int64 uint32 uint64",
            Set::Wait => "short int long longlong ushort uint ulong ulonglong int32 int64 uint32 uint64 size ptrdiff",
            Set::OldWait | Set::ActiveBits => "short int long longlong",
            Set::ReduceBits => {
                "uchar ushort uint ulong ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size"
            }
            Set::ReduceArithmetic => {
                "float double longdouble complexd complexf char schar short int long longlong uchar ushort uint ulong \
                 ulonglong int8 int16 int32 int64 uint8 uint16 uint32 uint64 size ptrdiff"
            }
            Set::ActiveOrder => "float double longdouble short int long longlong",
            Set::ActiveArithmetic => "float double longdouble complexd complexf short int long longlong",
            Set::OldExtended => "float double int long longlong",
            Set::OldStandard => "int long longlong",
        }
    }

    /// The members, in the order of [`TYPES`].
    pub fn members(self) -> Vec<&'static Type> {
        let names: Vec<&str> = self.names().split_whitespace().collect();
        TYPES.iter().filter(|t| names.contains(&t.name)).collect()
    }

    /// The members without those which are the same C type as one before: what a generic name may choose from.
    pub fn distinct(self) -> Vec<&'static Type> {
        let mut chosen: Vec<&'static Type> = Vec::new();
        for member in self.members() {
            if !chosen.iter().any(|t| t.base == member.base) {
                chosen.push(member);
            }
        }
        chosen
    }
}
