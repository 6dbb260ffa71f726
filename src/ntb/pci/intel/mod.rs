//! NTB functions of Intel Xeon processors.
//!
//! | file | holds |
//! |---|---|
//! | `link_status` | the link status register |
//! | `xeon` | the parts that all generations share |
//! | `skx` | gen3: Skylake, Cascade Lake, Cooper Lake |
//! | `icx` | gen4 and gen5: Ice Lake, Sapphire Rapids, Granite Rapids |

mod icx;
mod link_status;
mod skx;
mod xeon;

pub use icx::icx;
pub use skx::skx;
