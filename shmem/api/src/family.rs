//! Families of functions: rows of the table, and how names are made from them.

use crate::types::Set;

/// Selection of the functions of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One, with exactly this name.
    Single,
    /// `shmem_{type}_{stem}{suffix}` for every type of the set.
    Typed(Set),
    /// `shmem_{stem}{bits}{suffix}` for each of these sizes in bits.
    Sized(&'static [u32]),
    /// `shmem_{stem}mem{suffix}`, of bytes.
    Mem,
}

/// Relation of a family to contexts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contexts {
    /// No context at all, or it is one of the ordinary arguments.
    None,
    /// The implementation takes a context, which is always the default one.
    Default,
    /// Every function also exists as `shmem_ctx_...`, with a context as first argument.
    Both,
}

/// A family of functions with the same arguments and the same implementation.
#[derive(Debug, Clone, Copy)]
pub struct Family {
    /// Its operation, as names have it before a size; the whole name for [`Kind::Single`].
    pub stem: &'static str,
    /// The part of names after a size.
    pub suffix: &'static str,
    /// The functions of the family.
    pub kinds: [Option<Kind>; 3],
    /// The contexts that they use.
    pub contexts: Contexts,
    /// C type of the result, with `T` for the type.
    pub result: &'static str,
    /// C parameters with `T` for the type; empty if there are none.
    pub parameters: &'static str,
    /// Rust path of the implementation in the library's crate.
    pub rust: &'static str,
    /// Marker type of the operation, for reductions.
    pub operation: Option<&'static str>,
    /// Name for all types in C11 and C++.
    pub generic: Option<&'static str>,
    /// True if the specification has deprecated it.
    pub deprecated: bool,
    /// True if the header leaves it out.
    pub hidden: bool,
}

/// Families under one heading of the header.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// The heading.
    pub heading: &'static str,
    /// The header: `shmem.h` or `shmemx.h`.
    pub header: &'static str,
    /// The families.
    pub families: &'static [Family],
}

impl Group {
    /// A group of functions of the specification.
    pub(crate) const fn new(heading: &'static str, families: &'static [Family]) -> Group {
        Group { heading, header: "shmem.h", families }
    }
}

impl Family {
    /// A family without functions yet.
    pub(crate) const fn new(
        stem: &'static str,
        result: &'static str,
        parameters: &'static str,
        rust: &'static str,
    ) -> Family {
        Family {
            stem,
            suffix: "",
            kinds: [None; 3],
            contexts: Contexts::None,
            result,
            parameters,
            rust,
            operation: None,
            generic: None,
            deprecated: false,
            hidden: false,
        }
    }

    /// One function, with exactly this name.
    pub(crate) const fn single(
        name: &'static str,
        result: &'static str,
        parameters: &'static str,
        rust: &'static str,
    ) -> Family {
        Family { kinds: [Some(Kind::Single), None, None], ..Family::new(name, result, parameters, rust) }
    }

    /// With this after the size in names.
    pub(crate) const fn suffix(self, suffix: &'static str) -> Family {
        Family { suffix, ..self }
    }

    /// Also for the types of `set`.
    pub(crate) const fn typed(self, set: Set) -> Family {
        Family { kinds: [Some(Kind::Typed(set)), self.kinds[1], self.kinds[2]], ..self }
    }

    /// Also for these sizes.
    pub(crate) const fn sized(self, bits: &'static [u32]) -> Family {
        Family { kinds: [self.kinds[0], Some(Kind::Sized(bits)), self.kinds[2]], ..self }
    }

    /// Also for bytes.
    pub(crate) const fn mem(self) -> Family {
        Family { kinds: [self.kinds[0], self.kinds[1], Some(Kind::Mem)], ..self }
    }

    /// With variants for contexts.
    pub(crate) const fn ctx(self) -> Family {
        Family { contexts: Contexts::Both, ..self }
    }

    /// With the default context, without variants.
    pub(crate) const fn default_ctx(self) -> Family {
        Family { contexts: Contexts::Default, ..self }
    }

    /// With a marker type of the operation.
    pub(crate) const fn operation(self, operation: &'static str) -> Family {
        Family { operation: Some(operation), ..self }
    }

    /// With a name for all types.
    pub(crate) const fn generic(self, generic: &'static str) -> Family {
        Family { generic: Some(generic), ..self }
    }

    /// Deprecated by the specification.
    pub(crate) const fn deprecated(self) -> Family {
        Family { deprecated: true, ..self }
    }

    /// Exported, but not in the header.
    pub(crate) const fn hidden(self) -> Family {
        Family { hidden: true, ..self }
    }

    /// The set of types of typed functions.
    pub fn set(&self) -> Option<Set> {
        self.kinds.iter().flatten().find_map(|kind| if let Kind::Typed(set) = kind { Some(*set) } else { None })
    }

    /// Name of the function without a context, for a type or size if there is one.
    pub(crate) fn name(&self, kind: Kind, of: &str) -> String {
        let (stem, suffix) = (self.stem, self.suffix);
        match kind {
            Kind::Single => stem.to_string(),
            Kind::Typed(_) => format!("shmem_{of}_{stem}{suffix}"),
            Kind::Sized(_) | Kind::Mem => format!("shmem_{stem}{of}{suffix}"),
        }
    }
}
