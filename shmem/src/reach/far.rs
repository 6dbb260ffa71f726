//! Operations on memory of PEs that is not mapped: requests to their hosts.

use super::link::request;
use super::operation::Operation;
use super::{AtomicOp, Mode, Pes, Word};
use crate::abi::*;
use crate::handles::Ctx;
use crate::symmetric::{Peer, Place};
use std::ptr;
use std::sync::Arc;

/// Writes `len` bytes to a place of a PE.
///
/// # Safety
/// As for [`super::put`].
#[cold]
#[inline(never)]
pub unsafe fn put(pes: &Pes, ctx: Ctx, peer: &Peer, to: Place, source: *const u8, len: usize, mode: Mode) {
    let operation = Operation::new([peer.open_requests(), pes.pending.of(ctx)], [0; 3]);
    let mut request = request(peer.pe, &peer.addresses[to.memory as usize], to.at, len);
    request.action = NTBRING_REMOTE_PUT as u8;
    request.data = source.cast();
    request.reports_sent = u8::from(mode == Mode::Blocking);
    // SAFETY: the source stays valid as the caller guarantees; in blocking mode this function waits until it is not
    // needed any more.
    unsafe { pes.link.begin(request, &operation) };
    if mode == Mode::Blocking {
        pes.link.wait(|| operation.is_sent());
    }
}

/// Reads `len` bytes from a place of a PE.
///
/// # Safety
/// As for [`super::get`].
#[cold]
#[inline(never)]
pub unsafe fn get(pes: &Pes, ctx: Ctx, peer: &Peer, from: Place, dest: *mut u8, len: usize, mode: Mode) {
    let pending = match mode {
        Mode::Blocking => ptr::null(),
        Mode::NonBlocking => pes.pending.of(ctx),
    };
    let operation = Operation::new([peer.open_requests(), pending], [0; 3]);
    let mut request = request(peer.pe, &peer.addresses[from.memory as usize], from.at, len);
    request.action = NTBRING_REMOTE_GET as u8;
    request.result = dest.cast();
    // SAFETY: the destination stays valid as the caller guarantees; in blocking mode this function waits for the end.
    unsafe { pes.link.begin(request, &operation) };
    if mode == Mode::Blocking {
        pes.link.wait(|| operation.is_done());
    }
}

/// Returns the request of an atomic operation, whose operands are the first words of `operation`, and its result the
/// last.
pub(super) fn atomic<W: Word>(
    peer: &Peer,
    at: Place,
    op: Option<AtomicOp>,
    operation: &Arc<Operation>,
) -> ntbring_remote_t {
    let mut request = request(peer.pe, &peer.addresses[at.memory as usize], at.at, W::SIZE);
    request.action = if op.is_some() { NTBRING_REMOTE_ATOMIC } else { NTBRING_REMOTE_ATOMIC_SWAP } as u8;
    request.op = match op {
        Some(AtomicOp::Add) => NTBRING_OP_SUM,
        Some(AtomicOp::And) => NTBRING_OP_BAND,
        Some(AtomicOp::Or) => NTBRING_OP_BOR,
        Some(AtomicOp::Xor) => NTBRING_OP_BXOR,
        Some(AtomicOp::Swap) => NTBRING_OP_REPLACE,
        Some(AtomicOp::Fetch) => NTBRING_OP_NO_OP,
        None => 0,
    } as u8;
    if op.is_some() {
        request.type_ = if W::SIZE == 4 { NTBRING_TYPE_UINT32 } else { NTBRING_TYPE_UINT64 } as u8;
    }
    request.data = operation.operands().cast();
    request.result = operation.result().cast();
    request
}

/// Packs the operands of a compare-and-swap.
fn pair<W: Word>(expected: W, new: W) -> [u64; 3] {
    match W::SIZE {
        4 => [expected.bits() | new.bits() << 32, 0, 0],
        _ => [expected.bits(), new.bits(), 0],
    }
}

fn result<W: Word>(operation: &Operation) -> W {
    // SAFETY: the operation is complete, so its result was written, and nothing writes it any more.
    let bits = unsafe { operation.result().read_volatile() };
    W::from_bits(if W::SIZE == 4 { bits & 0xffff_ffff } else { bits })
}

/// Performs an atomic operation and returns the previous value.
#[cold]
#[inline(never)]
pub fn fetch<W: Word>(pes: &Pes, _ctx: Ctx, peer: &Peer, at: Place, op: AtomicOp, operand: W) -> W {
    let operation = Operation::new([peer.open_requests(), ptr::null()], [operand.bits(), 0, 0]);
    // SAFETY: operands and result lie in the operation, which lives until its end.
    unsafe { pes.link.begin(atomic::<W>(peer, at, Some(op), &operation), &operation) };
    pes.link.wait(|| operation.is_done());
    result(&operation)
}

/// Performs an atomic operation, which is complete after the next quiet.
#[cold]
#[inline(never)]
pub fn operate<W: Word>(pes: &Pes, ctx: Ctx, peer: &Peer, at: Place, op: AtomicOp, operand: W) {
    let operation = Operation::new([peer.open_requests(), pes.pending.of(ctx)], [operand.bits(), 0, 0]);
    // SAFETY: as above.
    unsafe { pes.link.begin(atomic::<W>(peer, at, Some(op), &operation), &operation) };
}

/// Compare-and-swap.
#[cold]
#[inline(never)]
pub fn compare_swap<W: Word>(pes: &Pes, _ctx: Ctx, peer: &Peer, at: Place, expected: W, new: W) -> W {
    let operation = Operation::new([peer.open_requests(), ptr::null()], pair(expected, new));
    // SAFETY: as above.
    unsafe { pes.link.begin(atomic::<W>(peer, at, None, &operation), &operation) };
    pes.link.wait(|| operation.is_done());
    result(&operation)
}

/// Performs an atomic operation that stores the previous value at `to` by the next quiet.
///
/// # Safety
/// `to` must be writable until then.
pub unsafe fn fetch_later<W: Word>(
    pes: &Pes,
    ctx: Ctx,
    peer: &Peer,
    at: Place,
    (op, operand): (AtomicOp, W),
    to: *mut W,
) {
    let operation = Operation::new([peer.open_requests(), pes.pending.of(ctx)], [operand.bits(), 0, 0]);
    let request = ntbring_remote_t { result: to.cast(), ..atomic::<W>(peer, at, Some(op), &operation) };
    // SAFETY: the operands lie in the operation; the caller guarantees the result.
    unsafe { pes.link.begin(request, &operation) };
}

/// Compare-and-swap that stores the previous value at `to` by the next quiet.
///
/// # Safety
/// As for [`fetch_later`].
pub unsafe fn compare_swap_later<W: Word>(
    pes: &Pes,
    ctx: Ctx,
    peer: &Peer,
    at: Place,
    (expected, new): (W, W),
    to: *mut W,
) {
    let operation = Operation::new([peer.open_requests(), pes.pending.of(ctx)], pair(expected, new));
    let request = ntbring_remote_t { result: to.cast(), ..atomic::<W>(peer, at, None, &operation) };
    // SAFETY: as above.
    unsafe { pes.link.begin(request, &operation) };
}
