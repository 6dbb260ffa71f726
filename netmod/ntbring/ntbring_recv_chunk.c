/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* Receives of payloads in chunks. MPIDIG_recv_copy_seg treats an element that is split by a
 * chunk boundary as a type mismatch. Here the first part of such an element is carried over to
 * the next chunk. */

void MPIDI_NTBRING_recv_begin(MPIR_Request * rreq)
{
    MPIDI_NTBRING_AM(rreq)->mismatch = 0;
    MPIDI_NTBRING_AM(rreq)->carry_sz = 0;
    MPIDIG_recv_setup(rreq);
}

/* Stores the address of the buffer for a payload in *room, and returns the number of bytes to
 * write there, if the buffer is contiguous and does not end within an element. Otherwise returns
 * 0, and the payload is received in chunks, which report the error. */
uint64_t MPIDI_NTBRING_recv_room(MPIR_Request * rreq, MPI_Aint data_sz, void **room)
{
    MPIDIG_rreq_async_t *async = MPIDI_NTBRING_ASYNC(rreq);
    if (async->recv_type == MPIDIG_RECV_CONTIG) {
        *room = rreq->status.MPI_ERROR ? NULL : async->iov_one.iov_base;
        return MPL_MIN(data_sz, (MPI_Aint) async->iov_one.iov_len);
    } else if (async->recv_type != MPIDIG_RECV_DATATYPE) {
        return 0;
    }

    int dt_contig;
    MPI_Aint size, room_sz, dt_true_lb;
    MPIR_Datatype_get_size_macro(MPIDIG_REQUEST(rreq, datatype), size);
    MPIDI_Datatype_check_contig_size_lb(MPIDIG_REQUEST(rreq, datatype),
                                        MPIDIG_REQUEST(rreq, count), dt_contig, room_sz,
                                        dt_true_lb);
    room_sz = MPL_MIN(room_sz, data_sz);
    if (!dt_contig || room_sz == 0 || room_sz % size) {
        return 0;
    }
    MPIR_STATUS_SET_COUNT(rreq->status, room_sz);
    *room = MPIR_get_contig_ptr(MPIDIG_REQUEST(rreq, buffer), dt_true_lb);
    return room_sz;
}

static MPI_Aint room_left(MPIR_Request * rreq)
{
    MPI_Aint size;
    MPIR_Datatype_get_size_macro(MPIDIG_REQUEST(rreq, datatype), size);
    return size * MPIDIG_REQUEST(rreq, count) - MPIDI_NTBRING_ASYNC(rreq)->offset;
}

/* Returns the number of bytes that were unpacked. */
static MPI_Aint unpack(MPIR_Request * rreq, const void *data, MPI_Aint data_sz)
{
    MPI_Aint actual = 0;
    data_sz = MPL_MIN(data_sz, room_left(rreq));
    if (data_sz > 0) {
        MPIR_Typerep_unpack(data, data_sz, MPIDIG_REQUEST(rreq, buffer),
                            MPIDIG_REQUEST(rreq, count), MPIDIG_REQUEST(rreq, datatype),
                            MPIDI_NTBRING_ASYNC(rreq)->offset, &actual);
        MPIDI_NTBRING_ASYNC(rreq)->offset += actual;
    }
    return actual;
}

void MPIDI_NTBRING_recv_chunk(MPIR_Request * rreq, void *data, MPI_Aint data_sz)
{
    if (MPIDI_NTBRING_ASYNC(rreq)->recv_type != MPIDIG_RECV_DATATYPE) {
        /* the last chunk tells if the payload is complete */
        MPIDIG_recv_copy_seg(data, data_sz, rreq);
        return;
    }

    MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM(rreq);
    char *pos = data;
    char *end = pos + data_sz;

    if (am->carry_sz > 0) {
        MPI_Aint added = MPL_MIN(end - pos, MPIDI_NTBRING_CARRY_SZ - am->carry_sz);
        memcpy(am->carry + am->carry_sz, pos, added);
        MPI_Aint used = unpack(rreq, am->carry, am->carry_sz + added);
        if (used > am->carry_sz) {
            pos += used - am->carry_sz;
            am->carry_sz = 0;
        } else {
            pos += added;
            am->carry_sz += added - used;
            memmove(am->carry, am->carry + used, am->carry_sz);
        }
    }
    if (pos < end && am->carry_sz == 0) {
        pos += unpack(rreq, pos, end - pos);
    }

    MPI_Aint left = end - pos;
    if (left > 0 && room_left(rreq) > 0) {
        if (left > MPIDI_NTBRING_CARRY_SZ - am->carry_sz) {
            am->mismatch = 1;
        } else {
            memcpy(am->carry + am->carry_sz, pos, left);
            am->carry_sz += left;
        }
    }
}

void MPIDI_NTBRING_recv_end(MPIR_Request * rreq)
{
    MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM(rreq);
    if (MPIDI_NTBRING_ASYNC(rreq)->recv_type != MPIDIG_RECV_DATATYPE) {
        return;
    }
    if (!rreq->status.MPI_ERROR && (am->mismatch || am->carry_sz > 0)) {
        rreq->status.MPI_ERROR =
            MPIR_Err_create_code(MPI_SUCCESS, MPIR_ERR_RECOVERABLE, __func__, __LINE__,
                                 MPI_ERR_TYPE, "**dtypemismatch", 0);
    }
    MPIR_STATUS_SET_COUNT(rreq->status, MPIDI_NTBRING_ASYNC(rreq)->offset);
}
