//! The processes that are connected to the agent: how many a user has, and which of them have ended.

use ntbring_host::Watch;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The most connections of one user.
pub const CONNECTIONS_MAX: usize = 1024;

/// The processes that are connected.
#[derive(Default)]
pub struct Clients(Mutex<State>);

#[derive(Default)]
struct State {
    /// Number of connections of each user.
    counts: HashMap<u32, usize>,
    /// The processes that can be watched.
    watches: Vec<Weak<Watch>>,
}

/// A connected process. It is dropped when all that the process was given has been taken back.
pub struct Client {
    clients: Arc<Clients>,
    user: u32,
    _watch: Option<Arc<Watch>>,
}

impl Clients {
    /// Counts a connection of a process of this user; None if the user has [`CONNECTIONS_MAX`] already.
    pub fn admit(self: &Arc<Self>, user: u32, process: i32) -> Option<Client> {
        // A process of another namespace has no id here; its end is seen when its connection ends.
        let watch = Watch::new([(0, process.unsigned_abs())]).ok().map(Arc::new);
        let mut state = self.state();
        let count = state.counts.entry(user).or_default();
        if *count >= CONNECTIONS_MAX {
            return None;
        }
        *count += 1;
        state.watches.retain(|watch| watch.strong_count() > 0);
        state.watches.extend(watch.as_ref().map(Arc::downgrade));
        Some(Client { clients: self.clone(), user, _watch: watch })
    }

    /// Returns true if a process has ended and still has what it was given: its connection ends when the monitor of its
    /// host, which has a copy of the socket, has ended as well.
    pub fn is_one_ending(&self) -> bool {
        let watches: Vec<Arc<Watch>> = self.state().watches.iter().filter_map(Weak::upgrade).collect();
        watches.iter().any(|watch| !watch.dead().is_empty())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let mut state = self.clients.state();
        if let Some(count) = state.counts.get_mut(&self.user) {
            *count -= 1;
            if *count == 0 {
                state.counts.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_process_that_has_ended_is_ending_until_it_is_dismissed() {
        let clients = Arc::new(Clients::default());
        let mut process = Command::new("sleep").arg("60").spawn().unwrap();
        let own = clients.admit(1, std::process::id() as i32).unwrap();
        let other = clients.admit(1, process.id() as i32).unwrap();
        assert!(!clients.is_one_ending());
        process.kill().unwrap();
        process.wait().unwrap();
        assert!(clients.is_one_ending());
        drop(other);
        assert!(!clients.is_one_ending());
        drop(own);
        assert!(clients.state().counts.is_empty());
    }

    #[test]
    fn the_connections_of_a_user_are_limited() {
        let clients = Arc::new(Clients::default());
        // No process has this id, so none is watched.
        let mut all: Vec<Client> = (0..CONNECTIONS_MAX).map(|_| clients.admit(1, i32::MAX).unwrap()).collect();
        assert!(clients.admit(1, i32::MAX).is_none() && clients.admit(2, i32::MAX).is_some());
        all.pop();
        assert!(clients.admit(1, i32::MAX).is_some() && !clients.is_one_ending());
    }
}
