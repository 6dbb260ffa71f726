//! Operations on memory of PEs that can only be written: puts are stores through the link.
//!
//! Each store ends with a fence, and a request that begins later follows it on the same link. A request that has begun
//! earlier may be carried out later, so as long as there is one, puts are requests, too. All operations of a PE on
//! another one thus happen in the order of the calls, as they do on far PEs.

use super::link::request;
use super::operation::Operation;
use crate::abi::*;
use crate::fail;
use crate::world::{Memory, Peer, Place, World};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Largest put for whose sake a PE that sleeps is woken, bytes. PEs wait for words.
const WAKES_MAX: usize = 4096;

/// Stores `len` bytes at a place of a PE. Returns false if that is not possible, or not now.
///
/// # Safety
/// `source` must be readable for `len` bytes.
#[inline]
pub unsafe fn put(world: &World, peer: &Peer, to: Place, source: *const u8, len: usize) -> bool {
    let Some(writer) = peer.writer(to.memory).filter(|writer| writer.has(to.at, len)) else { return false };
    let is_preceded = peer.requests.load(Ordering::Acquire) != 0;
    if is_preceded || len <= WAKES_MAX && world.sleepers.is_asleep(world, peer.pe) {
        return false;
    }
    // SAFETY: the place lies in the segment (checked), and the caller guarantees the source.
    unsafe { writer.write(to.at, source, len) };
    // The library's own memory holds flags, for which its PEs wait.
    if to.memory != Memory::Control {
        peer.is_stored_to.store(true, Ordering::Release);
    }
    true
}

/// Waits until all stores have arrived. Ends the program if a link that they have crossed was down.
#[cold]
#[inline(never)]
pub fn quiet(world: &World) {
    // Another thread that finds no stores must wait for the end of the calls that have found them.
    let _turn = world.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    let mut asked: Vec<(&Peer, Arc<Operation>)> = Vec::new();
    for peer in world.written.iter().map(|&pe| &world.peers[pe]) {
        let has_stores = peer.is_stored_to.swap(false, Ordering::AcqRel);
        if has_stores && !asked.iter().any(|(other, _)| other.host == peer.host) {
            asked.push((peer, ask(world, peer)));
        }
    }
    for (peer, operation) in asked {
        world.link.wait(|| operation.is_done());
        if !peer.writer(Memory::Control).is_some_and(|writer| writer.is_intact()) {
            fail::fatal(format_args!("the link to PE {} was down: what was put there may be lost", peer.pe));
        }
    }
}

/// Begins a request that changes nothing. Its answer shows that all stores before it have arrived.
fn ask(world: &World, peer: &Peer) -> Arc<Operation> {
    let operation = Operation::new([peer.open_requests(), ptr::null()], [0; 3]);
    let mut request = request(peer.pe, &peer.addresses[Memory::Control as usize], 0, 8);
    request.action = NTBRING_REMOTE_GET as u8;
    request.result = operation.result().cast();
    // SAFETY: the result lies in the operation, which lives until its end.
    unsafe { world.link.begin(request, &operation) };
    operation
}
