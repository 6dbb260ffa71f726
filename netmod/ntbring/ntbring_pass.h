/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_PASS_H_INCLUDED
#define NTBRING_PASS_H_INCLUDED

/* Blocks that are passed from neighbour to neighbour. What fails is noted, and the collective goes on:
 * others take part in it. */

#include "ntbring_impl.h"

/* Large vectors are passed on in segments, so that all hosts copy at once. */
#define MPIDI_NTBRING_SEGMENT_SZ 65536
/* Of these so many are under way in each direction. */
#define MPIDI_NTBRING_SEGMENTS_UNDER_WAY 4

/* Half of the way round there are this many hops to the right, the others are to the left. */
#define MPIDI_NTBRING_HOPS_RIGHT(size) ((size) / 2)
#define MPIDI_NTBRING_HOPS_LEFT(size) (((size) - 1) / 2)

/* A rank on the ways from a root to both sides: who is nearer to it, and who is further away. */
typedef struct {
    bool is_root;
    int nearer;
    int further[2], num_further;
} MPIDI_NTBRING_way_t;

/* A collective, as one rank goes through it. */
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
/* Waits for what was sent or is received; or for a message that has to be so many bytes. */
void MPIDI_NTBRING_pass_finish(MPIDI_NTBRING_pass_t * pass, MPIR_Request * req);
void MPIDI_NTBRING_pass_finish_all_of(MPIDI_NTBRING_pass_t * pass, MPIR_Request * req, MPI_Aint bytes);
int MPIDI_NTBRING_pass_outcome(const MPIDI_NTBRING_pass_t * pass);

#endif /* NTBRING_PASS_H_INCLUDED */
