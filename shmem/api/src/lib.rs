//! The interface of OpenSHMEM 1.6 as one table, from which the C headers, the list of exported symbols and the
//! `extern "C"` functions of the library are generated.
//!
//! | module | contents |
//! |---|---|
//! | [`types`] | types in names of functions, and sets of them |
//! | [`constants`] | constants, for the library and for the header |
//! | [`family`], [`mod@functions`] | families of functions: rows of the table; the table |
//! | [`mod@function`] | functions, which families are expanded to |
//! | [`environment`] | environment variables of the library |
//! | `glue` | the Rust glue |
//! | `header`, `generic`, `cpp` | the headers; names for all types in C11 and in C++ |
//!
//! `cargo run -p ntbring-shmem-api --bin shmem-headers -- shmem/include` writes the headers.

pub mod constants;
mod cpp;
pub mod environment;
pub mod family;
pub mod function;
pub mod functions;
mod generic;
mod glue;
mod header;
pub mod types;
mod wrap;

pub use function::{functions, Function};
pub use glue::{exports, implementations};
pub use header::{headers, write_headers};

/// Names of all exported functions, sorted.
pub fn symbols() -> Vec<String> {
    let mut names: Vec<String> = functions().iter().flat_map(|f| [f.name.clone(), f.profiling_name()]).collect();
    names.sort();
    names
}
