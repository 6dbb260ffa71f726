//! The directions of a ring.

/// Direction in a ring of hosts. Ports have numbers ([`PortIndex`](crate::PortIndex)); which of a host's ports leads in
/// which direction is determined by the ring. Here only those parts use it that concern both links of a host in a ring:
/// [`fault`](crate::fault), which names links by their place in the ring, and [`notice`](crate::notice).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Towards the previous host of the ring.
    Left = 0,
    /// Towards the next host of the ring.
    Right = 1,
}

impl Side {
    /// Both sides, left first.
    pub const BOTH: [Side; 2] = [Side::Left, Side::Right];

    /// Returns the other side.
    pub fn opposite(self) -> Side {
        match self {
            Side::Left => Side::Right,
            Side::Right => Side::Left,
        }
    }
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Side::Left => "left",
            Side::Right => "right",
        })
    }
}
