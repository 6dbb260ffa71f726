//! The link status register, which all generations have.

use crate::chip::LinkStatus;

/// Bit of the link status register that is set while the link is up.
const LINK_ACTIVE: u16 = 1 << 13;

/// Decodes the link status register: generation in the bits 3:0, number of lanes in the bits 9:4.
pub(super) fn link_status(word: u16) -> LinkStatus {
    match word & LINK_ACTIVE {
        0 => LinkStatus::Down,
        _ => LinkStatus::Up { generation: (word & 0xf) as u8, width: (word >> 4 & 0x3f) as u8 },
    }
}
