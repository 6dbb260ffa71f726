//! The teams of a PE, by handle.

use super::Introductions;
use crate::groups::{Area, Control, Group};
use crate::handles::Team;
use crate::reach::Pes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Handles of created teams are above this.
const FIRST: usize = 3;

/// First PE of an active set, logarithm of the stride, number of PEs.
type Set = (usize, u32, usize);

/// The teams of a PE.
pub struct Teams {
    /// Memory for the collectives of all groups.
    pub(super) control: Control,
    world: Arc<Group>,
    shared: Arc<Group>,
    created: RwLock<Vec<Option<Arc<Group>>>>,
    /// Active sets that have been used.
    active: Mutex<HashMap<Set, Arc<Group>>>,
    introductions: Introductions,
}

impl Teams {
    /// Creates the teams that always exist: that of all PEs, and that of the PEs whose memory all of them can map, which are
    /// those of this host, or all. Nothing is allocated in `control` yet, so their parts lie at the same places at all PEs.
    /// Panics if it has less than [`Teams::bytes`].
    pub fn new(pes: &Pes, control: Control) -> Teams {
        let part = || Area::allocate(pes, &control, pes.n()).expect("memory is reserved for it");
        let team = |members: Vec<usize>, part: usize| {
            let me = members.iter().position(|&pe| pe == pes.me).expect("this PE is in its own team");
            let area = Area::new(vec![part; members.len()], me);
            Arc::new(Group::new(members, me, 0, area))
        };
        let is_in = |pe: &usize| pes.all_near || pes.peers[*pe].host == pes.peers[pes.me].host;
        let (world, shared) =
            (team((0..pes.n()).collect(), part()), team((0..pes.n()).filter(is_in).collect(), part()));
        Teams {
            control,
            world,
            shared,
            created: RwLock::default(),
            active: Mutex::default(),
            introductions: Introductions::new(pes.n()),
        }
    }

    /// Returns the size of the memory for the teams that always exist, bytes.
    pub fn bytes(n: usize) -> usize {
        2 * Area::bytes(n)
    }

    /// Returns the team of all PEs.
    #[inline]
    pub fn world(&self) -> &Arc<Group> {
        &self.world
    }

    /// Returns the team of PEs that share memory with this one.
    pub fn shared(&self) -> &Arc<Group> {
        &self.shared
    }

    /// Returns the team with a handle; None if there is none.
    pub fn get(&self, team: Team) -> Option<Arc<Group>> {
        match team {
            Team::INVALID => None,
            Team::WORLD => Some(self.world.clone()),
            Team::SHARED => Some(self.shared.clone()),
            Team(handle) => {
                let created = self.created.read().unwrap_or_else(PoisonError::into_inner);
                created.get(handle - FIRST).cloned().flatten()
            }
        }
    }

    /// Adds a team and returns its handle.
    pub(super) fn add(&self, group: Group) -> Team {
        let mut created = self.created.write().unwrap_or_else(PoisonError::into_inner);
        let index = created.iter().position(Option::is_none).unwrap_or_else(|| {
            created.push(None);
            created.len() - 1
        });
        created[index] = Some(Arc::new(group));
        Team(index + FIRST)
    }

    /// Removes a created team, if there is one with this handle, and frees its memory.
    pub fn remove(&self, team: Team) {
        let mut created = self.created.write().unwrap_or_else(PoisonError::into_inner);
        let entry = team.0.checked_sub(FIRST).and_then(|index| created.get_mut(index));
        if let Some(group) = entry.and_then(Option::take) {
            group.area().free(&self.control);
        }
    }

    /// Returns the group of an active set, whose PEs introduce themselves to each other at its first use in the function
    /// `name`. This PE is number `me` of `members`.
    pub fn active(&self, pes: &Pes, name: &'static str, set: Set, members: Vec<usize>, me: usize) -> Arc<Group> {
        if let Some(group) = self.active.lock().unwrap_or_else(PoisonError::into_inner).get(&set) {
            return group.clone();
        }
        let group = Arc::new(self.introductions.introduce(pes, &self.control, name, set, members, me));
        self.active.lock().unwrap_or_else(PoisonError::into_inner).insert(set, group.clone());
        group
    }
}
