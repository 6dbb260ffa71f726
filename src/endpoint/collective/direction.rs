//! The two directions in which blocks travel.

use ntbring_ntb::Side;

/// The directions; true stands for rightward. Arrays with one element for each direction have this order.
pub const RIGHTWARD: [bool; 2] = [false, true];

/// Returns the side on which blocks leave a host.
pub fn leaving(rightward: bool) -> Side {
    match rightward {
        true => Side::Right,
        false => Side::Left,
    }
}
