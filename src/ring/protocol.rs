//! Numbers of the protocol between hosts: its version, and the doorbells of threads and ranks.

use ntbring_ntb::DOORBELLS;

/// Version of the protocol between hosts: handshake, layout of windows, packets.
pub const PROTOCOL_VERSION: u16 = 29;

/// Maximum number of forwarder threads of a host; more would have no traffic of their own.
pub const THREADS_MAX: usize = 4;

/// Doorbell number of a host's first forwarder thread. The host's other forwarder threads have the next numbers
/// ([`crate::thread_split::thread_of`]).
pub const FORWARDER_DOORBELL: usize = 0;

/// Returns the doorbell number of a rank, given its index among the ranks of its host. Ranks beyond the twelfth share
/// doorbells.
pub fn rank_doorbell(local: usize) -> usize {
    THREADS_MAX + local % (DOORBELLS - THREADS_MAX)
}
