//! Transfers of large data between two PEs that both take part: the sender offers, the receiver fetches.

use super::operation::Operation;
use std::collections::VecDeque;
use std::ptr;
use std::sync::Arc;

/// A transfer, as one of its ends sees it.
pub struct Transfer {
    /// The operation; None while the receiver waits for the offer.
    pub(super) operation: Option<Arc<Operation>>,
    /// The sender and the tag of the offer, of the receiver.
    pub(super) key: (i32, u64),
    /// Where the data go, at the receiver.
    pub(super) to: *mut u8,
    pub(super) len: usize,
}

/// The transfers of a collective, by their numbers.
#[derive(Default)]
pub struct Transfers {
    pub(super) begun: Vec<Option<Transfer>>,
    /// Numbers of those that await an offer, in the order in which they began: offers of one sender are for them in this
    /// order.
    pub(super) awaited: VecDeque<usize>,
}

impl Transfers {
    /// Adds a transfer under a number that no other one has that has not ended.
    pub fn add(&mut self, number: usize, transfer: Transfer) {
        if transfer.is_awaited() {
            self.awaited.push_back(number);
        }
        self.begun.resize_with(self.begun.len().max(number + 1), || None);
        self.begun[number] = Some(transfer);
    }
}

impl Transfer {
    /// Returns the transfer of `len` bytes that a PE offers, or will offer, under a tag.
    pub fn awaited(from: usize, tag: u64, to: *mut u8, len: usize) -> Transfer {
        Transfer { operation: None, key: (from as i32, tag), to, len }
    }

    /// Returns the transfer of an offer.
    pub(super) fn offered(operation: Arc<Operation>) -> Transfer {
        Transfer { operation: Some(operation), key: (-1, 0), to: ptr::null_mut(), len: 0 }
    }

    /// Returns true if it awaits an offer.
    pub(super) fn is_awaited(&self) -> bool {
        self.operation.is_none()
    }

    /// Returns true if it has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.operation.as_ref().is_some_and(|operation| operation.is_done())
    }
}
