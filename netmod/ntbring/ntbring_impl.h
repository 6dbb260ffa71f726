/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_IMPL_H_INCLUDED
#define NTBRING_IMPL_H_INCLUDED

#include <mpidimpl.h>
#include "mpidch4r.h"
#include "ch4_impl.h"
#include "ntbring_types.h"
#include "ntbring_compat.h"

#define MPIDI_NTBRING_CHKRC(rc_)                                        \
    MPIR_ERR_CHKANDJUMP1(unlikely((rc_) < 0), mpi_errno,                \
                         (rc_) == NTBRING_ERR_PEER ? MPIX_ERR_PROC_FAILED : MPI_ERR_OTHER, \
                         "**ntbring", "**ntbring %s", ntbring_error_text())

/* Calls a function with the lock of VCI 0 and stores its return code. */
#define MPIDI_NTBRING_CALL_LOCKED(rc_, call_)                           \
    do {                                                                \
        MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);                   \
        (rc_) = (call_);                                                \
        MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);                    \
    } while (0)

int MPIDI_NTBRING_progress(int vci);
void MPIDI_NTBRING_idle(int vci);
void MPIDI_NTBRING_tool_register(void);
void MPIDI_NTBRING_tool_queues(void *cookie, ntbring_queues_t * queues);
int64_t MPIDI_NTBRING_pack(void *cookie, uint64_t offset, void *dest, uint64_t max);

void MPIDI_NTBRING_recv_begin(MPIR_Request * rreq);
uint64_t MPIDI_NTBRING_recv_room(MPIR_Request * rreq, MPI_Aint data_sz, void **room);
void MPIDI_NTBRING_recv_chunk(MPIR_Request * rreq, void *data, MPI_Aint data_sz);
void MPIDI_NTBRING_recv_end(MPIR_Request * rreq);

int MPIDI_NTBRING_offer_taken(MPIR_Request * sreq);
int MPIDI_NTBRING_offer_matched(MPIR_Request * rreq);

void MPIDI_NTBRING_unexpected_unlink(MPIR_Request * req, int vci);

void MPIDI_NTBRING_cancel_init(void);
int MPIDI_NTBRING_cancel_send(MPIR_Request * sreq);
int MPIDI_NTBRING_cancel_left(MPIR_Request * sreq);

int MPIDI_NTBRING_lost_init(void);
void MPIDI_NTBRING_lost_finalize(void);
int MPIDI_NTBRING_handle_lost(int32_t peer, bool is_dead, const char *why, int vci);
void MPIDI_NTBRING_end_lost(int vci);
bool MPIDI_NTBRING_is_lost_external_peer(int32_t peer);
int MPIDI_NTBRING_forget_external_peers(bool(*is_used) (int32_t peer));
void MPIDI_NTBRING_lost_add_window(MPIR_Win * win);
void MPIDI_NTBRING_lost_remove_window(MPIR_Win * win);
int MPIDI_NTBRING_check_source(int source, MPIR_Comm * comm);

int MPIDI_NTBRING_select(MPIR_Comm * comm, bool is_flat);
bool MPIDI_NTBRING_may_share(MPIR_Comm * comm);
void MPIDI_NTBRING_close_shared(MPIR_Comm * comm);

int MPIDI_NTBRING_win_allocate(MPI_Aint size, int disp_unit, MPIR_Info * info, MPIR_Comm * comm,
                               void **base, MPIR_Win ** win_p);
void MPIDI_NTBRING_win_release(MPIR_Win * win);

void MPIDI_NTBRING_far_done(void *op);
int MPIDI_NTBRING_far_lock(MPIR_Win * win, int rank, int action, bool alone);

int MPIDI_NTBRING_win_lock(int lock_type, int rank, int assert, MPIR_Win * win);
int MPIDI_NTBRING_win_unlock(int rank, MPIR_Win * win);
int MPIDI_NTBRING_win_lock_all(int assert, MPIR_Win * win);
int MPIDI_NTBRING_win_unlock_all(MPIR_Win * win);

/* Releases the reference to the datatype of a payload that is packed, if there is one. */
MPL_STATIC_INLINE_PREFIX void MPIDI_NTBRING_release_datatype(MPIDI_NTBRING_am_request_t * am)
{
    if (am->datatype != MPI_DATATYPE_NULL) {
        MPIR_Datatype_release_if_not_builtin(am->datatype);
        am->datatype = MPI_DATATYPE_NULL;
    }
}

/* Bytes in KiB, for texts of errors. */
#define MPIDI_NTBRING_KIB(size_) ((int) ((size_) >> 10))

#define MPIDI_NTBRING_AV(av) ((av)->netmod.ntbring)

MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_peer(int avtid, int lpid)
{
    return likely(avtid == 0) ? lpid : MPIDI_NTBRING_AV(&MPIDIU_get_av(avtid, lpid)).peer;
}

MPL_STATIC_INLINE_PREFIX int MPIDI_NTBRING_dest(int rank, MPIR_Comm * comm)
{
    int avtid = 0, lpid = 0;
    MPIDIU_comm_rank_to_pid(comm, rank, &lpid, &avtid);
    return MPIDI_NTBRING_peer(avtid, lpid);
}

#endif /* NTBRING_IMPL_H_INCLUDED */
