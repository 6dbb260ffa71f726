/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_TYPES_H_INCLUDED
#define NTBRING_TYPES_H_INCLUDED

#include <ntbring.h>

/* A handler that MPIDIG does not have: a message that is not synchronous and has left as a whole, so
 * that its sender has no request. */
#define MPIDI_NTBRING_SEND_SHORT (MPIDI_AM_HANDLERS_MAX - 1)

/* Further handlers: a request to discard the message of a cancelled send, and the reply. */
#define MPIDI_NTBRING_CANCEL (MPIDI_AM_HANDLERS_MAX - 2)
#define MPIDI_NTBRING_CANCELLED (MPIDI_AM_HANDLERS_MAX - 3)

/* The number of no peer. It is not -1: for a persistent collective, which has no rank,
 * MPID_Startall reads this field from stale memory of the request, and would take -1 for
 * MPI_PROC_NULL. */
#define MPIDI_NTBRING_NOBODY INT32_MIN

/* An entry of MPIDIG's rndv_cbs that is not used otherwise. */
#define MPIDI_NTBRING_RNDV MPIDIG_RNDV_STATIC_MAX

/* The part of MPIDIG_hdr_t that MPIDI_NTBRING_SEND_SHORT needs: with 40 bytes of payload the
 * message fits in one cache line. */
typedef struct {
    uint64_t envelope;          /* source rank; tag in the upper half */
    uint64_t context;           /* error bits; context id in the upper half */
} MPIDI_NTBRING_short_hdr_t;

#define MPIDI_NTBRING_SHORT_WORD(low, high) ((uint32_t) (low) | (uint64_t) (uint32_t) (high) << 32)
#define MPIDI_NTBRING_SHORT_LOW(word) ((int32_t) (uint32_t) (word))
#define MPIDI_NTBRING_SHORT_HIGH(word) ((int32_t) (uint32_t) ((word) >> 32))

/* Header of MPIDI_NTBRING_CANCEL and of the reply, which tells if the message was discarded and
 * if it was a synchronous send. */
typedef struct {
    MPIR_Request *sreq;
    bool is_forgotten;
    bool is_sync;
} MPIDI_NTBRING_cancel_hdr_t;

/* State of a VCI. Each VCI is an endpoint in a ring of its own. One-sided communication, small
 * collectives and processes of other jobs use VCI 0 only. */
typedef struct {
    ntbring_endpoint_t *endpoint;       /* NULL before init_world and after finalize */
    uint32_t spins;             /* calls of MPIDI_NTBRING_idle that return at once */
    uint32_t shm_polls;         /* polls of shared memory skipped since the latest one */
    int idle_count;             /* other calls of it since the latest progress */
    int idle_progress_count;    /* ch4's progress_count at the latest of these */
    int32_t arriving_src;       /* source of the message that is being passed up */
    uint64_t arriving_charge;   /* its charge; 0 once a request stores it */
    uint32_t fruitless;         /* polls without an event since ranks are lost */
    char pad[MPL_CACHELINE_SIZE];       /* keeps data of different threads apart */
} MPIDI_NTBRING_vci_t;

typedef struct {
    MPIDI_NTBRING_vci_t vci[MPIDI_CH4_MAX_VCIS];
    ntbring_limits_t limits;
    uint32_t idle_max_us;       /* longest sleep in MPIDI_NTBRING_idle */
    int idle_polls;             /* calls of it without a sleep after progress */
    uint32_t shm_rest;          /* polls of shared memory to skip while spinning */
    unsigned flushes;           /* flushes of windows */
    volatile bool has_lost;     /* processes have died or left */
    volatile bool has_lost_ranks;       /* some of them belong to this job */
} MPIDI_NTBRING_global_t;

extern MPIDI_NTBRING_global_t MPIDI_NTBRING_global;

#define MPIDI_NTBRING_VCI(i_) (MPIDI_NTBRING_global.vci[i_])

#endif /* NTBRING_TYPES_H_INCLUDED */
