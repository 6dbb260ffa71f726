/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_TYPES_H_INCLUDED
#define NTBRING_TYPES_H_INCLUDED

#include <ntbring.h>

/* A handler that MPIDIG does not know: a message that is not synchronous, in one piece. */
#define MPIDI_NTBRING_SEND_SHORT (MPIDI_AM_HANDLERS_MAX - 1)

/* Others: MPI_Cancel of a send asks for its message to be forgotten, and the answer. */
#define MPIDI_NTBRING_CANCEL (MPIDI_AM_HANDLERS_MAX - 2)
#define MPIDI_NTBRING_CANCELLED (MPIDI_AM_HANDLERS_MAX - 3)

/* No peer. Not -1: MPID_Startall reads a persistent collective's rank, which it does not have, from what a
 * request's memory held before, and takes that for MPI_PROC_NULL. */
#define MPIDI_NTBRING_NOBODY INT32_MIN

/* An entry of MPIDIG's rndv_cbs that nobody uses. */
#define MPIDI_NTBRING_RNDV MPIDIG_RNDV_STATIC_MAX

/* What MPIDI_NTBRING_SEND_SHORT needs of MPIDIG_hdr_t: with 40 bytes of payload it is one line. */
typedef struct {
    uint64_t envelope;          /* source rank, tag in the upper half */
    uint64_t context;           /* error bits, context id in the upper half */
} MPIDI_NTBRING_short_hdr_t;

#define MPIDI_NTBRING_SHORT_WORD(low, high) ((uint32_t) (low) | (uint64_t) (uint32_t) (high) << 32)
#define MPIDI_NTBRING_SHORT_LOW(word) ((int32_t) (uint32_t) (word))
#define MPIDI_NTBRING_SHORT_HIGH(word) ((int32_t) (uint32_t) ((word) >> 32))

/* Of MPIDI_NTBRING_CANCEL, and of the answer: whether it was done, and whether it was a synchronous send. */
typedef struct {
    MPIR_Request *sreq;
    bool is_forgotten;
    bool is_sync;
} MPIDI_NTBRING_cancel_hdr_t;

/* Each VCI is an endpoint in a ring of its own. One-sided communication, small collectives and
 * processes of other jobs are all with VCI 0. */
typedef struct {
    ntbring_endpoint_t *endpoint;       /* NULL before init_world and after finalize */
    uint32_t spins;             /* calls of MPIDI_NTBRING_idle that have nothing to do */
    uint32_t shm_polls;         /* of shared memory, left out since the latest */
    int idle_count;             /* others of MPIDI_NTBRING_idle since progress was made */
    int idle_progress_count;    /* ch4's progress_count at the latest of them */
    int32_t arriving_src;       /* of the message that is being handed up */
    uint64_t arriving_charge;   /* 0 once somebody keeps it */
    uint32_t fruitless;         /* polls, once ranks are lost */
    char pad[MPL_CACHELINE_SIZE];       /* between what different threads use */
} MPIDI_NTBRING_vci_t;

typedef struct {
    MPIDI_NTBRING_vci_t vci[MPIDI_CH4_MAX_VCIS];
    ntbring_limits_t limits;
    uint32_t idle_max_us;       /* longest sleep in MPIDI_NTBRING_idle */
    int idle_polls;             /* calls of MPIDI_NTBRING_idle that may not sleep after progress */
    uint32_t shm_rest;          /* polls of shared memory that are left out while spinning */
    unsigned flushes;           /* flushes of windows */
    volatile bool has_lost;     /* processes have died, or left */
    volatile bool has_lost_ranks;       /* of this job, too */
} MPIDI_NTBRING_global_t;

extern MPIDI_NTBRING_global_t MPIDI_NTBRING_global;

#define MPIDI_NTBRING_VCI(i_) (MPIDI_NTBRING_global.vci[i_])

#endif /* NTBRING_TYPES_H_INCLUDED */
