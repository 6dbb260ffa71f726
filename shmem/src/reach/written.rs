//! Operations on memory of PEs that can only be written: puts are stores through the link.
//!
//! Each store ends with a fence, and a request that begins later follows it on the same link. A request that has begun
//! earlier may be carried out later, so as long as there is one, puts are requests, too. All operations of a PE on
//! another one thus happen in the order of the calls, as they do on far PEs.

use super::far;
use super::link::request;
use super::operation::Operation;
use super::{AtomicOp, Pes};
use crate::abi::*;
use crate::fail;
use crate::handles::Ctx;
use crate::symmetric::{Memory, Peer, Place};
use std::ptr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Stores `len` bytes at a place of a PE. Returns false if that is not possible, or not now.
///
/// # Safety
/// `source` must be readable for `len` bytes.
#[inline]
pub unsafe fn put(pes: &Pes, peer: &Peer, to: Place, source: *const u8, len: usize) -> bool {
    let Some(writer) = peer.writer(to.memory).filter(|writer| writer.has(to.at, len)) else { return false };
    if peer.requests.load(Ordering::Acquire) != 0 {
        return false;
    }
    // SAFETY: the place lies in the segment (checked), and the caller guarantees the source.
    unsafe { writer.write(to.at, source, len) };
    // The library's own memory holds flags, for which its PEs wait.
    if to.memory != Memory::Control {
        peer.is_stored_to.store(true, Ordering::Release);
    }
    if pes.sleepers.is_to_be_woken(peer, to.memory) {
        wake(pes, peer, to.memory);
    }
    true
}

/// Wakes the threads of a PE that sleep until memory of a kind changes, by a request that changes nothing. Later stores may
/// overtake it. The default context waits for its answer.
#[cold]
#[inline(never)]
fn wake(pes: &Pes, peer: &Peer, memory: Memory) {
    let operation = Operation::new([ptr::null(), pes.pending.of(Ctx::DEFAULT)], [0; 3]);
    let at = Place { memory, at: 0 };
    // SAFETY: operands and result lie in the operation, which lives until its end.
    unsafe { pes.link.begin(far::atomic::<u64>(peer, at, Some(AtomicOp::Or), &operation), &operation) };
}

/// Waits until all stores have arrived. Ends the program if a link that they have crossed was down.
#[cold]
#[inline(never)]
pub fn quiet(pes: &Pes) {
    // Another thread that finds no stores must wait for the end of the calls that have found them.
    let _turn = pes.arrivals.lock().unwrap_or_else(PoisonError::into_inner);
    let peers = pes.written.iter().map(|&pe| &pes.peers[pe]);
    // All are found before the first question: its answer covers what was stored before.
    let stored: Vec<&Peer> = peers.filter(|peer| peer.is_stored_to.swap(false, Ordering::AcqRel)).collect();
    let mut asked: Vec<(&Peer, Arc<Operation>)> = Vec::new();
    for peer in stored {
        if !asked.iter().any(|(other, _)| other.host == peer.host) {
            asked.push((peer, ask(pes, peer)));
        }
    }
    for (peer, operation) in asked {
        pes.link.wait(|| operation.is_done());
        if !peer.writer(Memory::Control).is_some_and(|writer| writer.is_intact()) {
            fail::fatal(format_args!("the link to PE {} was down: what was put there may be lost", peer.pe));
        }
    }
}

/// Begins a request that changes nothing. Its answer shows that all stores before it have arrived.
fn ask(pes: &Pes, peer: &Peer) -> Arc<Operation> {
    let operation = Operation::new([peer.open_requests(), ptr::null()], [0; 3]);
    let mut request = request(peer.pe, &peer.addresses[Memory::Control as usize], 0, 8);
    request.action = NTBRING_REMOTE_GET as u8;
    request.result = operation.result().cast();
    // SAFETY: the result lies in the operation, which lives until its end.
    unsafe { pes.link.begin(request, &operation) };
    operation
}
