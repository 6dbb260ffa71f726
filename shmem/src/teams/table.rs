//! The teams of a PE, by handle.

use super::Group;
use crate::handles::Team;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

/// Handles of created teams are above this.
const FIRST: usize = 3;

/// The teams of a PE.
#[derive(Default)]
pub struct Teams {
    world: OnceLock<Arc<Group>>,
    shared: OnceLock<Arc<Group>>,
    created: RwLock<Vec<Option<Arc<Group>>>>,
    /// Active sets that have been used: first PE, logarithm of the stride, number of PEs.
    active: Mutex<HashMap<(usize, u32, usize), Arc<Group>>>,
}

impl Teams {
    /// Adds the teams that always exist.
    pub fn begin(&self, world: Group, shared: Group) {
        let _ = (self.world.set(Arc::new(world)), self.shared.set(Arc::new(shared)));
    }

    /// Returns the team of all PEs. Panics before [`Teams::begin`].
    #[inline]
    pub fn world(&self) -> &Arc<Group> {
        self.world.get().expect("the world has a team")
    }

    /// Returns the team of PEs that share memory with this one; None before [`Teams::begin`].
    pub fn shared(&self) -> Option<&Arc<Group>> {
        self.shared.get()
    }

    /// Returns the team with a handle; None if there is none.
    pub fn get(&self, team: Team) -> Option<Arc<Group>> {
        match team {
            Team::INVALID => None,
            Team::WORLD => self.world.get().cloned(),
            Team::SHARED => self.shared.get().cloned(),
            Team(handle) => {
                let created = self.created.read().unwrap_or_else(PoisonError::into_inner);
                created.get(handle - FIRST).cloned().flatten()
            }
        }
    }

    /// Adds a team and returns its handle.
    pub fn add(&self, group: Group) -> Team {
        let mut created = self.created.write().unwrap_or_else(PoisonError::into_inner);
        let index = created.iter().position(Option::is_none).unwrap_or_else(|| {
            created.push(None);
            created.len() - 1
        });
        created[index] = Some(Arc::new(group));
        Team(index + FIRST)
    }

    /// Removes a team.
    pub fn remove(&self, team: Team) {
        let mut created = self.created.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = team.0.checked_sub(FIRST).and_then(|index| created.get_mut(index)) {
            *entry = None;
        }
    }

    /// Returns the group of an active set, which `make` makes at its first use.
    pub fn active(&self, set: (usize, u32, usize), make: impl FnOnce() -> Group) -> Arc<Group> {
        if let Some(group) = self.active.lock().unwrap_or_else(PoisonError::into_inner).get(&set) {
            return group.clone();
        }
        let group = Arc::new(make());
        self.active.lock().unwrap_or_else(PoisonError::into_inner).insert(set, group.clone());
        group
    }
}
