/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_pass.h"

MPIDI_NTBRING_way_t MPIDI_NTBRING_way_from(int root, MPIR_Comm * comm)
{
    int size = comm->local_size, rank = comm->rank;
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int hops_right = (rank - root + size) % size, hops_left = (size - hops_right) % size;
    MPIDI_NTBRING_way_t way = { hops_right == 0, 0, {0, 0}, 0 };

    way.nearer = hops_right <= MPIDI_NTBRING_HOPS_RIGHT(size) ? left : right;
    if (hops_right < MPIDI_NTBRING_HOPS_RIGHT(size)) {
        way.further[way.num_further++] = right;
    }
    if (hops_left < MPIDI_NTBRING_HOPS_LEFT(size)) {
        way.further[way.num_further++] = left;
    }
    return way;
}

void MPIDI_NTBRING_pass_note(MPIDI_NTBRING_pass_t * pass, int mpi_errno)
{
    if (mpi_errno) {
        MPIDI_NTBRING_note_error(mpi_errno, pass->errflag);
        MPIR_ERR_SET(mpi_errno, *pass->errflag, "**fail");
        MPIR_ERR_ADD(pass->mpi_errno_ret, mpi_errno);
    }
}

void MPIDI_NTBRING_pass_receive(MPIDI_NTBRING_pass_t * pass, void *buf, MPI_Aint count,
                                MPI_Datatype datatype, int from, MPIR_Request ** req)
{
    int mpi_errno = MPIC_Irecv(buf, count, datatype, from, pass->tag, pass->comm, req);
    if (mpi_errno) {
        *req = NULL;
        MPIDI_NTBRING_pass_note(pass, mpi_errno);
    }
}

void MPIDI_NTBRING_pass_send(MPIDI_NTBRING_pass_t * pass, const void *buf, MPI_Aint count,
                             MPI_Datatype datatype, int to, MPIR_Request ** req)
{
    int mpi_errno = MPIC_Isend(buf, count, datatype, to, pass->tag, pass->comm, req, pass->errflag);
    if (mpi_errno) {
        *req = NULL;
        MPIDI_NTBRING_pass_note(pass, mpi_errno);
    }
}

static void finish(MPIDI_NTBRING_pass_t * pass, MPIR_Request * req, bool is_sized, MPI_Aint bytes)
{
    int mpi_errno = MPI_SUCCESS;

    if (req) {
        mpi_errno = MPIC_Wait(req, pass->errflag);
        if (mpi_errno == MPI_SUCCESS) {
            mpi_errno = req->status.MPI_ERROR;
        }
        if (mpi_errno == MPI_SUCCESS && is_sized) {
            MPI_Aint received = MPIR_STATUS_GET_COUNT(req->status);
            if (received != bytes) {
                MPIR_ERR_SET2(mpi_errno, MPI_ERR_OTHER, "**collective_size_mismatch",
                              "**collective_size_mismatch %d %d", (int) received, (int) bytes);
            }
        }
        MPIR_Request_free(req);
        MPIDI_NTBRING_pass_note(pass, mpi_errno);
    }
}

void MPIDI_NTBRING_pass_finish(MPIDI_NTBRING_pass_t * pass, MPIR_Request * req)
{
    finish(pass, req, false, 0);
}

void MPIDI_NTBRING_pass_finish_all_of(MPIDI_NTBRING_pass_t * pass, MPIR_Request * req, MPI_Aint bytes)
{
    finish(pass, req, true, bytes);
}

/* Returns the outcome at this rank. A rank that only knows of another rank's failure must return
 * an error, too, since its result may be wrong. */
int MPIDI_NTBRING_pass_outcome(const MPIDI_NTBRING_pass_t * pass)
{
    return pass->mpi_errno_ret ? pass->mpi_errno_ret : MPIDI_NTBRING_failed_before(*pass->errflag);
}
