//! The families of chips that are modelled.

use crate::cable::Cable;
use crate::skx::Skx;

/// A family of modelled chips, in one of its modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "server", derive(clap::ValueEnum))]
pub enum Model {
    /// Intel gen3, back to back: Skylake, Cascade Lake, Cooper Lake.
    Skx,
}

impl Model {
    /// Returns a new cable between two functions, with windows of `window` bytes.
    pub fn cable(self, window: u64) -> Cable {
        match self {
            Model::Skx => Cable::new(Skx::new(window)),
        }
    }
}
