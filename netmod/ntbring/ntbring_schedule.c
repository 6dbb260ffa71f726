/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

/* Collectives with one rank on each host in which ranks pass on data from neighbour to neighbour.
 * The library decides which steps a rank takes (ntbring_schedule_next); they are carried out here.
 * A failure is recorded, and the collective continues, since other ranks take part in it. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* A buffer as steps see it: elements of `count` items of a datatype, `stride` bytes apart. */
typedef struct {
    char *base;
    MPI_Aint stride;
    MPI_Aint count;
    MPI_Datatype datatype;
} buffer_t;

/* State of a collective at one rank. */
typedef struct {
    buffer_t buffers[3];        /* NTBRING_INPUT, NTBRING_OUTPUT, NTBRING_SCRATCH */
    MPI_Aint element_sz;        /* bytes */
    MPI_Op op;
    MPIR_Comm *comm;
    int tag;
    MPIR_Errflag_t *errflag;
    int mpi_errno_ret;
} ring_t;

int MPIDI_NTBRING_begin(int kind, MPI_Aint elements, MPI_Aint element_sz, int root, bool in_place,
                        MPIR_Comm * comm, ntbring_schedule_t * schedule)
{
    ntbring_collective_t collective = {
        .kind = kind,
        .ranks = comm->local_size,
        .rank = comm->rank,
        .root = root,
        .elements = elements,
        .element_size = element_sz,
        .in_place = in_place
    };
    int rc = ntbring_schedule_begin(&collective, schedule);
    MPIR_Assert(rc >= 0);
    return rc;
}

static void note(ring_t * ring, int mpi_errno)
{
    if (mpi_errno) {
        MPIDI_NTBRING_note_error(mpi_errno, ring->errflag);
        MPIR_ERR_SET(mpi_errno, *ring->errflag, "**fail");
        MPIR_ERR_ADD(ring->mpi_errno_ret, mpi_errno);
    }
}

/* Waits for the end of a send or receive. A received message must have a certain size. */
static int finish(ring_t * ring, MPIR_Request * req, bool is_sized, MPI_Aint bytes)
{
    int mpi_errno = MPIC_Wait(req, ring->errflag);

    if (mpi_errno == MPI_SUCCESS) {
        mpi_errno = req->status.MPI_ERROR;
    }
    if (mpi_errno == MPI_SUCCESS && is_sized && MPIR_STATUS_GET_COUNT(req->status) != bytes) {
        MPIR_ERR_SET2(mpi_errno, MPI_ERR_OTHER, "**collective_size_mismatch",
                      "**collective_size_mismatch %d %d", (int) MPIR_STATUS_GET_COUNT(req->status),
                      (int) bytes);
    }
    MPIR_Request_free(req);
    return mpi_errno;
}

static int take_step(ring_t * ring, const ntbring_step_t * step, MPIR_Request ** req)
{
    int mpi_errno = MPI_SUCCESS;
    const buffer_t *from = &ring->buffers[step->from], *to = &ring->buffers[step->to];
    char *from_addr = from->base + step->from_offset * from->stride;
    char *to_addr = to->base + step->to_offset * to->stride;
    MPI_Aint from_count = step->count * from->count, to_count = step->count * to->count;

    switch (step->action) {
        case NTBRING_STEP_SEND:
            mpi_errno = MPIC_Isend(from_addr, from_count, from->datatype, step->peer, ring->tag,
                                   ring->comm, req, ring->errflag);
            *req = mpi_errno ? NULL : *req;
            break;
        case NTBRING_STEP_RECEIVE:
            mpi_errno = MPIC_Irecv(to_addr, to_count, to->datatype, step->peer, ring->tag,
                                   ring->comm, req);
            *req = mpi_errno ? NULL : *req;
            break;
        case NTBRING_STEP_SENT:
        case NTBRING_STEP_RECEIVED:
            if (*req) {
                mpi_errno = finish(ring, *req, step->action == NTBRING_STEP_RECEIVED,
                                   step->count * ring->element_sz);
                *req = NULL;
            }
            break;
        case NTBRING_STEP_COPY:
            mpi_errno = MPIR_Localcopy(from_addr, from_count, from->datatype, to_addr, to_count,
                                       to->datatype);
            break;
        case NTBRING_STEP_REDUCE:
            mpi_errno = MPIR_Reduce_local(from_addr, to_addr, to_count, to->datatype, ring->op);
            break;
    }
    return mpi_errno;
}

/* Takes all steps of this rank. A rank that only knows of another rank's failure must return an
 * error, too, since its result may be wrong. */
static int run(ring_t * ring, ntbring_schedule_t * schedule)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Request *reqs[NTBRING_REQUESTS_MAX] = { NULL };
    MPI_Aint scratch_sz = schedule->scratch * ring->element_sz;
    ntbring_step_t step;
    MPIR_CHKLMEM_DECL(1);

    if (scratch_sz > 0) {
        MPIR_CHKLMEM_MALLOC(ring->buffers[NTBRING_SCRATCH].base, char *, scratch_sz, mpi_errno,
                            "temporary elements", MPL_MEM_BUFFER);
    }
    while (ntbring_schedule_next(schedule, &step) == NTBRING_SOME) {
        note(ring, take_step(ring, &step, &reqs[step.request]));
    }
    mpi_errno = ring->mpi_errno_ret ? ring->mpi_errno_ret :
        MPIDI_NTBRING_failed_before(*ring->errflag);

  fn_exit:
    MPIR_CHKLMEM_FREEALL();
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_ring_bcast(void *buffer, MPI_Aint count, MPI_Datatype datatype, int root,
                             MPIR_Comm * comm, MPIR_Errflag_t * errflag,
                             ntbring_schedule_t * schedule)
{
    int mpi_errno = MPI_SUCCESS;
    MPI_Aint type_size, total;
    bool is_packed = false;
    void *bytes = NULL;

    MPIR_Datatype_get_size_macro(datatype, type_size);
    total = count * type_size;
    mpi_errno = MPIDI_NTBRING_find_blocks(buffer, datatype, total, &is_packed, &bytes);
    MPIR_ERR_CHECK(mpi_errno);
    ring_t ring = {
        .buffers = {[NTBRING_OUTPUT] = {bytes, 1, 1, MPI_BYTE}},
        .element_sz = 1,
        .comm = comm,
        .tag = MPIR_BCAST_TAG,
        .errflag = errflag
    };
    if (is_packed && comm->rank == root) {
        note(&ring, MPIR_Localcopy(buffer, count, datatype, bytes, total, MPI_BYTE));
    }
    mpi_errno = run(&ring, schedule);
    MPIR_ERR_CHECK(mpi_errno);
    if (is_packed && comm->rank != root) {
        mpi_errno = MPIR_Localcopy(bytes, total, MPI_BYTE, buffer, count, datatype);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    if (is_packed) {
        MPL_free(bytes);
    }
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_ring_reduce(const void *sendbuf, void *recvbuf, MPI_Datatype datatype, MPI_Op op,
                              int tag, MPIR_Comm * comm, MPIR_Errflag_t * errflag,
                              ntbring_schedule_t * schedule)
{
    MPI_Aint width = MPIR_Datatype_get_basic_size(datatype);
    char *input = sendbuf == MPI_IN_PLACE ? recvbuf : (char *) sendbuf;
    ring_t ring = {
        .buffers = {
            [NTBRING_INPUT] = {input, width, 1, datatype},
            [NTBRING_OUTPUT] = {recvbuf, width, 1, datatype},
            [NTBRING_SCRATCH] = {NULL, width, 1, datatype}
        },
        .element_sz = width,
        .op = op,
        .comm = comm,
        .tag = tag,
        .errflag = errflag
    };
    return run(&ring, schedule);
}

/* An allgather or alltoall, whose elements are whole blocks. */
int MPIDI_NTBRING_ring_blocks(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                              void *recvbuf, MPI_Aint recvcount, MPI_Datatype recvtype, int tag,
                              MPIR_Comm * comm, MPIR_Errflag_t * errflag,
                              ntbring_schedule_t * schedule)
{
    MPI_Aint send_extent = 0, recv_extent, type_size, block_sz;

    if (sendbuf != MPI_IN_PLACE) {
        MPIR_Datatype_get_extent_macro(sendtype, send_extent);
    }
    MPIR_Datatype_get_extent_macro(recvtype, recv_extent);
    MPIR_Datatype_get_size_macro(recvtype, type_size);
    block_sz = recvcount * type_size;
    ring_t ring = {
        .buffers = {
            [NTBRING_INPUT] = {(char *) sendbuf, sendcount * send_extent, sendcount, sendtype},
            [NTBRING_OUTPUT] = {recvbuf, recvcount * recv_extent, recvcount, recvtype},
            [NTBRING_SCRATCH] = {NULL, block_sz, block_sz, MPI_BYTE}
        },
        .element_sz = block_sz,
        .comm = comm,
        .tag = tag,
        .errflag = errflag
    };
    return run(&ring, schedule);
}
