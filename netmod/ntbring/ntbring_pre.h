/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_PRE_H_INCLUDED
#define NTBRING_PRE_H_INCLUDED

#include <ntbring.h>

/* Size of the buffer for an element that is split between chunks; larger than any basic
 * datatype. */
#define MPIDI_NTBRING_CARRY_SZ 48

typedef struct {
    /* payload of a pending send that is still to be packed */
    const void *buffer;
    MPI_Aint count;
    MPI_Datatype datatype;      /* MPI_DATATYPE_NULL if no reference is held */
    uint16_t handler_id;
    bool is_leaving;            /* an NTBRING_EVENT_SENT will follow */
    bool is_cancelling;         /* the receiver will be asked to discard it, or must reply */
    int32_t peer;               /* destination, or source of an unexpected message */
    uint64_t charge;            /* bytes charged for an unexpected message */
    /* state of a receive in chunks: data that could not be unpacked yet */
    uint8_t mismatch;
    uint8_t carry_sz;
    char carry[MPIDI_NTBRING_CARRY_SZ];
} MPIDI_NTBRING_am_request_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_request_t;

typedef struct {
    bool is_ring;               /* one rank on each host, in the order of hosts */
    bool has_group;             /* collectives use ntbring_allgather */
    uint32_t without_group;     /* number of collectives that found no group */
    bool may_share;             /* its ranks can share buffers */
    int shared_worth;           /* what its collectives without shared buffers were worth */
    ntbring_shared_t *shared;   /* NULL: no shared buffers yet */
} MPIDI_NTBRING_comm_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_dt_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_op_t;

/* A window's memory at one rank, as seen by this process. */
typedef struct {
    char *base;                 /* NULL if this process does not map it */
    MPI_Aint size;
    ntbring_segment_t *segment; /* NULL if no other rank can access it */
    int disp_unit;
    bool served;                /* its host performs operations on it for this one */
    /* the window lock that this process holds */
    enum { MPIDI_NTBRING_FREE, MPIDI_NTBRING_TOGETHER, MPIDI_NTBRING_ALONE } held;
    volatile int accs;          /* accumulates that its host has not completed */
    ntbring_segment_address_t address;
} MPIDI_NTBRING_target_t;

typedef struct {
    MPIDI_NTBRING_target_t *targets;    /* one for each rank; NULL if messages are used */
    bool has_external_peers;            /* processes of other jobs contribute memory */
    bool has_locks;             /* MPI_Win_lock uses the locks of segments */
    volatile int locking;       /* locks and unlocks that hosts have not completed */
} MPIDI_NTBRING_win_t;

typedef struct {
    int32_t peer;               /* number of a process outside MPI_COMM_WORLD */
} MPIDI_NTBRING_addr_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_part_t;

#endif /* NTBRING_PRE_H_INCLUDED */
