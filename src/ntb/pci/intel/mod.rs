//! NTB functions of Intel Xeon processors.
//!
//! | file | holds |
//! |---|---|
//! | `link_status` | the link status register |
//! | `skx` | gen3: Skylake, Cascade Lake, Cooper Lake |

mod link_status;
mod skx;

pub use skx::Skx;
