//! Settings: environment variables `NTBRING_*`, parsed in one place.
//!
//! Each crate describes its own settings as a struct and rows ([`Row`]), one a variable. The library that uses them all
//! joins these rows in a [`Table`] of its composite struct: see `ntbring_endpoint::Settings`. The table knows names,
//! defaults, allowed values and help, suggests a name for an unknown one, and reports the origin of every value. The
//! former name of a renamed setting is accepted with a warning ([`Table::renamed`]).
//!
//! | module | holds |
//! |---|---|
//! | `table` | rows, the table, errors |
//! | `load` | values and their origin: environment, tuned file, default |
//! | [`tuned`] | the file in which `ntbring tune` keeps measured thresholds |
//! | [`parse`] | numbers, sizes, paths and signals as users write them |

mod load;
pub mod parse;
mod table;
#[cfg(test)]
mod tests;
pub mod tuned;

pub use load::{Loaded, Origin};
pub use table::{environment, Row, Setting, SettingError, Table};
pub use tuned::TunedFile;
