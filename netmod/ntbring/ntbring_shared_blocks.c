/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

/* Allgathers and alltoalls through shared buffers. */

#include "mpidimpl.h"
#include "ntbring_impl.h"
#include "ntbring_shared.h"

/* The blocks of a buffer, one for each rank. */
typedef struct {
    char *base;                 /* contiguous bytes */
    MPI_Aint size;
    ntbring_part_t *parts;      /* NULL: equal blocks, one behind the other */
    void *buf;                  /* the application's buffer, if it is packed */
    const MPI_Aint *counts, *displs;
    MPI_Aint count, extent, type_size;
    MPI_Datatype datatype;
} blocks_t;

static MPI_Aint count_of(const blocks_t * blocks, int rank)
{
    return blocks->counts ? blocks->counts[rank] : blocks->count;
}

static char *place_of(const blocks_t * blocks, int rank)
{
    MPI_Aint displ = blocks->displs ? blocks->displs[rank] : rank * blocks->count;
    return (char *) blocks->buf + displ * blocks->extent;
}

/* Describes the blocks of a buffer. Blocks that are not contiguous get a temporary buffer.
 * counts, displs: NULL if the blocks are equal. parts: room for an entry for each rank. */
static int describe(blocks_t * blocks, const void *buf, const MPI_Aint counts[],
                    const MPI_Aint displs[], MPI_Aint count, MPI_Datatype datatype, int size,
                    ntbring_part_t * parts)
{
    int mpi_errno = MPI_SUCCESS;
    int is_contig;
    MPI_Aint true_lb, true_extent, first = 0, end = 0;
    bool has_first = false;

    MPIR_Datatype_is_contig(datatype, &is_contig);
    MPIR_Datatype_get_extent_macro(datatype, blocks->extent);
    MPIR_Datatype_get_size_macro(datatype, blocks->type_size);
    MPIR_Type_get_true_extent_impl(datatype, &true_lb, &true_extent);
    blocks->buf = (void *) buf;
    blocks->counts = counts;
    blocks->displs = displs;
    blocks->count = count;
    blocks->datatype = datatype;
    blocks->parts = counts ? parts : NULL;
    /* the displacement of an empty block means nothing */
    for (int i = 0; counts && i < size; i++) {
        if (counts[i] > 0) {
            first = has_first ? MPL_MIN(first, displs[i]) : displs[i];
            has_first = true;
        }
    }
    blocks->base = (char *) buf + true_lb + first * blocks->extent;
    for (int i = 0; counts && i < size; i++) {
        parts[i].size = counts[i] * blocks->type_size;
        parts[i].offset = 0;
        if (parts[i].size > 0) {
            parts[i].offset = is_contig ? (displs[i] - first) * blocks->extent : end;
            end = MPL_MAX(end, (MPI_Aint) (parts[i].offset + parts[i].size));
        }
    }
    blocks->size = counts ? end : size * count * blocks->type_size;
    if (!is_contig) {
        blocks->base = MPL_malloc(MPL_MAX(blocks->size, 1), MPL_MEM_BUFFER);
        MPIR_ERR_CHKANDJUMP2(blocks->base == NULL, mpi_errno, MPI_ERR_OTHER, "**nomem2",
                             "**nomem2 %d %s", MPIDI_NTBRING_KIB(blocks->size),
                             "KiB of packed blocks");
    } else {
        blocks->buf = NULL;
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static MPI_Aint offset_of(const blocks_t * blocks, int rank)
{
    return blocks->parts ? (MPI_Aint) blocks->parts[rank].offset :
        rank * blocks->count * blocks->type_size;
}

/* Copies blocks first .. last - 1 between the application's buffer and the temporary one, if there
 * is one. */
static int pack(const blocks_t * blocks, int first, int last, bool unpacks)
{
    int mpi_errno = MPI_SUCCESS;

    for (int i = first; blocks->buf && i < last; i++) {
        MPI_Aint count = count_of(blocks, i), bytes = count * blocks->type_size;
        char *packed = blocks->base + offset_of(blocks, i);
        mpi_errno = unpacks ?
            MPIR_Localcopy(packed, bytes, MPI_BYTE, place_of(blocks, i), count, blocks->datatype) :
            MPIR_Localcopy(place_of(blocks, i), count, blocks->datatype, packed, bytes, MPI_BYTE);
        MPIR_ERR_CHECK(mpi_errno);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static void release(const blocks_t * blocks)
{
    if (blocks->buf) {
        MPL_free(blocks->base);
    }
}

/* counts, displs: NULL in MPI_Allgather. */
int MPIDI_NTBRING_shared_allgather(const void *sendbuf, MPI_Aint sendcount, MPI_Datatype sendtype,
                                   void *recvbuf, const MPI_Aint counts[],
                                   const MPI_Aint displs[], MPI_Aint recvcount,
                                   MPI_Datatype recvtype, MPIR_Comm * comm,
                                   MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS, failed, size = comm->local_size, rank = comm->rank;
    MPIDI_NTBRING_shared_state_t state = {.comm = comm };
    blocks_t mine = { 0 }, all = { 0 };
    ntbring_part_t parts[NTBRING_SHARED_MAX];

    failed = describe(&all, recvbuf, counts, displs, recvcount, recvtype, size, parts);
    if (!failed && sendbuf == MPI_IN_PLACE) {
        failed = pack(&all, rank, rank + 1, false);
        mine.base = all.base + offset_of(&all, rank);
        mine.size = count_of(&all, rank) * all.type_size;
    } else if (!failed) {
        failed = describe(&mine, sendbuf, NULL, NULL, sendcount, sendtype, 1, NULL);
        failed = failed ? failed : pack(&mine, 0, 1, false);
    }
    ntbring_shared_call_t call = {
        .kind = NTBRING_SHARED_ALLGATHER,
        .input = mine.base,
        .input_size = mine.size,
        .output = all.base,
        .output_size = all.size,
        .receives = all.parts
    };
    mpi_errno = MPIDI_NTBRING_shared_run(&call, failed, &state, errflag);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = pack(&all, 0, sendbuf == MPI_IN_PLACE ? rank : size, true);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = pack(&all, sendbuf == MPI_IN_PLACE ? rank + 1 : size, size, true);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    release(&mine);
    release(&all);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* sendcounts, sdispls, recvcounts, rdispls: NULL in MPI_Alltoall. */
int MPIDI_NTBRING_shared_alltoall(const void *sendbuf, const MPI_Aint sendcounts[],
                                  const MPI_Aint sdispls[], MPI_Aint sendcount,
                                  MPI_Datatype sendtype, void *recvbuf,
                                  const MPI_Aint recvcounts[], const MPI_Aint rdispls[],
                                  MPI_Aint recvcount, MPI_Datatype recvtype, MPIR_Comm * comm,
                                  MPIR_Errflag_t * errflag)
{
    int mpi_errno = MPI_SUCCESS, failed, size = comm->local_size;
    MPIDI_NTBRING_shared_state_t state = {.comm = comm };
    blocks_t sends = { 0 }, receives = { 0 };
    ntbring_part_t send_parts[NTBRING_SHARED_MAX], receive_parts[NTBRING_SHARED_MAX];

    failed = describe(&sends, sendbuf, sendcounts, sdispls, sendcount, sendtype, size, send_parts);
    failed = failed ? failed : pack(&sends, 0, size, false);
    failed = failed ? failed : describe(&receives, recvbuf, recvcounts, rdispls, recvcount,
                                        recvtype, size, receive_parts);
    ntbring_shared_call_t call = {
        .kind = NTBRING_SHARED_ALLTOALL,
        .input = sends.base,
        .input_size = sends.size,
        .output = receives.base,
        .output_size = receives.size,
        .sends = sends.parts,
        .receives = receives.parts
    };
    mpi_errno = MPIDI_NTBRING_shared_run(&call, failed, &state, errflag);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = pack(&receives, 0, size, true);
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    release(&sends);
    release(&receives);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
