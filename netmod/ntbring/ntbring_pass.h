/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_PASS_H_INCLUDED
#define NTBRING_PASS_H_INCLUDED

/* Collectives in which blocks are passed on from neighbour to neighbour. A failure is recorded,
 * and the collective continues, since other ranks take part in it. */

#include "ntbring_impl.h"

/* Size in bytes of the segments in which large vectors are passed on, so that all hosts copy at
 * once (pipelining). */
#define MPIDI_NTBRING_SEGMENT_SZ 65536
/* Number of segments in transit in each direction. */
#define MPIDI_NTBRING_SEGMENTS_UNDER_WAY 4

/* Number of hops from a rank to the farthest rank in each direction, when each direction covers
 * half of the ring. */
#define MPIDI_NTBRING_HOPS_RIGHT(size) ((size) / 2)
#define MPIDI_NTBRING_HOPS_LEFT(size) (((size) - 1) / 2)

/* The position of a rank on the two routes from a root: its neighbour towards the root and its
 * neighbours away from it. */
typedef struct {
    bool is_root;
    int nearer;
    int further[2], num_further;
} MPIDI_NTBRING_way_t;

/* State of a collective at one rank. */
typedef struct {
    MPIR_Comm *comm;
    int tag;
    MPIR_Errflag_t *errflag;
    int mpi_errno_ret;
} MPIDI_NTBRING_pass_t;

MPIDI_NTBRING_way_t MPIDI_NTBRING_way_from(int root, MPIR_Comm * comm);
void MPIDI_NTBRING_pass_note(MPIDI_NTBRING_pass_t * pass, int mpi_errno);
void MPIDI_NTBRING_pass_receive(MPIDI_NTBRING_pass_t * pass, void *buf, MPI_Aint count,
                                MPI_Datatype datatype, int from, MPIR_Request ** req);
void MPIDI_NTBRING_pass_send(MPIDI_NTBRING_pass_t * pass, const void *buf, MPI_Aint count,
                             MPI_Datatype datatype, int to, MPIR_Request ** req);
/* Waits for the end of a send or receive. With `bytes`, a received message must have that size. */
void MPIDI_NTBRING_pass_finish(MPIDI_NTBRING_pass_t * pass, MPIR_Request * req);
void MPIDI_NTBRING_pass_finish_all_of(MPIDI_NTBRING_pass_t * pass, MPIR_Request * req, MPI_Aint bytes);
int MPIDI_NTBRING_pass_outcome(const MPIDI_NTBRING_pass_t * pass);

#endif /* NTBRING_PASS_H_INCLUDED */
