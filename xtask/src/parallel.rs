//! Running many tests, several at once.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;

use anyhow::Result;

/// Returns the number of processors that this process may use; 1 if that is unknown.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Calls `run` with each item and its index, for `jobs` items at once; an item that is `alone` runs beside no other. No
/// further items are begun after an error. Returns the results in the order of the items, or the first error.
pub fn run_all<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    alone: impl Fn(&T) -> bool + Sync,
    run: impl Fn(usize, &T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (next, together, results) = (AtomicUsize::new(0), RwLock::new(()), Mutex::new(Vec::new()));
    let work = || loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(index) else { break };
        let result = if alone(item) {
            let _guard = together.write().unwrap_or_else(PoisonError::into_inner);
            run(index, item)
        } else {
            let _guard = together.read().unwrap_or_else(PoisonError::into_inner);
            run(index, item)
        };
        if result.is_err() {
            next.store(items.len(), Ordering::Relaxed);
        }
        results.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
    };
    thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(work);
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;

    #[test]
    fn results_are_in_order_and_some_items_run_alone() {
        let running = AtomicUsize::new(0);
        let items: Vec<usize> = (0..50).collect();
        let run = |index: usize, item: &usize| {
            let others = running.fetch_add(1, Ordering::SeqCst);
            thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            assert!(!item.is_multiple_of(5) || others == 0, "item {item} is not alone");
            Ok(index + item)
        };
        let results = run_all(&items, 4, |item| item % 5 == 0, run).unwrap();
        assert_eq!(results, items.iter().map(|item| 2 * item).collect::<Vec<_>>());
    }

    #[test]
    fn an_error_ends_it() {
        let begun = AtomicUsize::new(0);
        let run = |_: usize, item: &usize| {
            begun.fetch_add(1, Ordering::SeqCst);
            if *item == 3 {
                bail!("the third")
            } else {
                Ok(())
            }
        };
        let error = run_all(&(0..100).collect::<Vec<_>>(), 1, |_| false, run).unwrap_err();
        assert_eq!((error.to_string().as_str(), begun.into_inner()), ("the third", 4));
    }
}
