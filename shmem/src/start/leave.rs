//! Leaving the ring.

use super::job::{barrier, check};
use crate::abi::*;
use crate::reach::GROUP;
#[cfg(not(test))]
use crate::regions::register_fork_handlers;
use crate::world;

/// Leaves the job, all of whose PEs do.
pub fn leave() {
    let Some(mut world) = world::end() else { return };
    let endpoint = loop {
        let (endpoint, guard) = world.pes.link.endpoint();
        // SAFETY: the endpoint is connected, and no other thread uses it meanwhile.
        let rc = unsafe { ntbring_flush(endpoint) };
        drop(guard);
        check("messages cannot be delivered", rc);
        if rc == NTBRING_OK as i32 {
            break endpoint;
        }
        world.pes.link.poll();
        world.pes.link.idle(1000);
    };
    // No PE accesses the memory of another one any more.
    barrier();
    world.pes.link.end_polling();
    // SAFETY: no other thread uses the endpoint any more; no PE begins a collective any more. A group that does not exist is ignored.
    check("the ring cannot be left", unsafe { ntbring_group_close(endpoint, GROUP) });
    for peer in &mut world.pes.peers {
        peer.writers = Default::default();
        // The globals of this PE stay mapped in their place, from which the program uses them.
        // SAFETY: as above; nothing uses the mappings any more.
        peer.mapped.iter_mut().filter_map(Option::take).for_each(|segment| unsafe { segment.free(endpoint) });
    }
    // SAFETY: as above; all PEs have come here.
    check("the ring cannot be left", unsafe { ntbring_linger(endpoint) });
    barrier();
    // SAFETY: as above.
    check("the ring cannot be left", unsafe { ntbring_close(endpoint) });
    // SAFETY: the session was opened once for this job.
    check("the process manager cannot be left", unsafe { ntbring_pmi_close() });
}

/// Keeps the session with the process manager open until the process ends: the library may be initialised again, also
/// after MPI has used the session. Called when the library is loaded.
#[cfg(not(test))]
extern "C" fn keep() {
    // SAFETY: the function takes no arguments.
    unsafe { ntbring_pmi_keep() };
    // Handlers of `fork` that are registered first run last before it, and first in the child.
    register_fork_handlers();
}

/// The loader calls this function. Unit tests have no process manager, and not the real libntbring.
#[used]
#[cfg(not(test))]
#[link_section = ".init_array"]
static KEEP: extern "C" fn() = keep;
