//! Small collectives of all PEs through libntbring's mailboxes, which hosts pass on round the ring.

use super::Link;
use crate::abi::*;
use crate::fail;

/// Number of the group of all PEs.
pub const GROUP: u32 = 1;

/// Looks for blocks between two polls.
const LOOKS: u32 = 64;

impl Link {
    /// Returns true if blocks of `len` bytes of `n` PEs fit the mailboxes.
    pub fn has_mailboxes(&self, n: usize, len: usize) -> bool {
        self.block_max > 0 && len <= self.block_max && n * len <= NTBRING_BLOCKS_MAX as usize
    }

    /// Exchanges blocks of `len` bytes among all PEs, which all call it. Returns the blocks in the order of PEs.
    ///
    /// # Safety
    /// The block must be readable.
    pub unsafe fn allgather(&self, n: usize, block: *const u8, len: usize) -> Vec<u8> {
        let mut blocks = vec![0u8; n * len];
        // SAFETY: the endpoint is connected and locked; the block has that many bytes.
        if unsafe { ntbring_allgather(self.endpoint().0, GROUP, block.cast(), len as u64) } < 0 {
            fail::ring("a collective has failed");
        }
        loop {
            let (endpoint, guard) = self.endpoint();
            let (to, size) = (blocks.as_mut_ptr().cast(), blocks.len() as u64);
            // SAFETY: as above; there is room for all blocks.
            let rc = unsafe { ntbring_allgather_wait(endpoint, GROUP, to, size, LOOKS) };
            drop(guard);
            match rc {
                rc if rc < 0 => fail::ring("a collective has failed"),
                rc if rc == NTBRING_OK as i32 => return blocks,
                _ => {}
            }
            if !self.poll() {
                self.idle_long();
            }
        }
    }
}
