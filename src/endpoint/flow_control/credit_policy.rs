//! Messages that are charged to their sender's credit, and what they cost.

/// Cost in bytes of a message beside its payload: about the memory that MPICH needs for an unexpected message.
const KEEPING: u64 = 2048;

/// Smallest share of one sender in bytes: several times the highest cost of a message sent without rendezvous.
const SHARE_MIN: u64 = 512 << 10;

/// The messages that are charged, and the credit of one sender at a receiver.
#[derive(Clone, Copy, Debug)]
pub struct CreditPolicy {
    /// One bit for each handler: set if its messages are charged.
    handlers: u64,
    /// Share of one sender in bytes.
    pub share: u64,
}

impl CreditPolicy {
    /// Divides `total` bytes among all other ranks of the job. None: the share is unlimited.
    pub fn new(total: Option<u64>, ranks: usize) -> CreditPolicy {
        let senders = ranks.saturating_sub(1).max(1) as u64;
        let share = total.map_or(u64::MAX / 4, |total| (total / senders).max(SHARE_MIN));
        CreditPolicy { handlers: 0, share }
    }

    /// Sets the handlers whose messages are charged; one bit for each.
    pub fn charge(&mut self, handlers: u64) {
        self.handlers = handlers;
    }

    /// Returns the cost of a message with `payload` bytes; 0 if its handler is not charged.
    #[inline(always)]
    pub fn cost(&self, handler: u16, payload: u64) -> u64 {
        if self.handlers >> (handler & 63) & 1 == 0 {
            0
        } else {
            KEEPING + payload
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_equal_but_never_too_small() {
        assert_eq!(CreditPolicy::new(Some(64 << 20), 5).share, 16 << 20);
        assert_eq!(CreditPolicy::new(Some(1 << 20), 100).share, SHARE_MIN);
        assert_eq!(CreditPolicy::new(Some(1 << 20), 1).share, 1 << 20);
        let all = CreditPolicy { handlers: 1 << 3, ..CreditPolicy::new(None, 4) };
        assert_eq!((all.cost(3, 10), all.cost(2, 10), all.cost(0, 0)), (KEEPING + 10, 0, 0));
    }
}
