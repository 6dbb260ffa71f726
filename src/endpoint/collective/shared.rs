//! The groups with shared buffers of a rank. Their collectives do not use the endpoint; it only tells for whom they wait.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

/// A group, as long as its word exists.
struct SharedGroup {
    ranks: Vec<u32>,
    /// The position of the rank for which this rank waits, plus 1, or 0.
    waits_for: Weak<AtomicU32>,
}

/// All groups with shared buffers.
#[derive(Default)]
pub struct SharedGroups {
    /// Number of their collectives.
    pub calls: Arc<AtomicU64>,
    groups: Vec<SharedGroup>,
}

impl SharedGroups {
    /// Adds a group.
    pub fn push(&mut self, ranks: Vec<u32>, waits_for: &Arc<AtomicU32>) {
        self.groups.retain(|group| group.waits_for.strong_count() > 0);
        self.groups.push(SharedGroup { ranks, waits_for: Arc::downgrade(waits_for) });
    }

    /// Returns for each group in which this rank waits: the rank for which it waits, and the group's number of ranks.
    pub fn awaited(&self) -> impl Iterator<Item = (u32, usize)> + '_ {
        self.groups.iter().filter_map(|group| {
            let position = group.waits_for.upgrade()?.load(Ordering::Relaxed).checked_sub(1)?;
            Some((*group.ranks.get(position as usize)?, group.ranks.len()))
        })
    }

    /// Returns a line for each group in which this rank waits.
    pub fn describe(&self) -> Vec<String> {
        let line =
            |(rank, ranks)| format!("a collective of {ranks} ranks through shared buffers waits for rank {rank}");
        self.awaited().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_described_while_they_wait_and_exist() {
        let mut all = SharedGroups::default();
        let words = [Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(2))];
        words.iter().for_each(|word| all.push(vec![4, 7], word));
        assert_eq!(all.describe(), ["a collective of 2 ranks through shared buffers waits for rank 7"]);
        drop(words);
        assert!(all.describe().is_empty());
    }
}
