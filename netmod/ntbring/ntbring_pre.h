/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_PRE_H_INCLUDED
#define NTBRING_PRE_H_INCLUDED

#include <ntbring.h>

/* Larger than any basic datatype, so that an element which a chunk boundary cuts fits. */
#define MPIDI_NTBRING_CARRY_SZ 48

typedef struct {
    /* what a pending send still has to pack */
    const void *buffer;
    MPI_Aint count;
    MPI_Datatype datatype;      /* MPI_DATATYPE_NULL if no reference is held */
    uint16_t handler_id;
    bool is_leaving;            /* an NTBRING_EVENT_SENT is to come */
    bool is_cancelling;         /* its receiver is to be asked, or has to answer */
    int32_t peer;               /* where it goes, or an unexpected message comes from */
    uint64_t charge;            /* of an unexpected message */
    /* what a chunked receive could not unpack yet */
    uint8_t mismatch;
    uint8_t carry_sz;
    char carry[MPIDI_NTBRING_CARRY_SZ];
} MPIDI_NTBRING_am_request_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_request_t;

typedef struct {
    bool is_ring;               /* one rank a host, in the order of the hosts, all of them */
    bool has_group;             /* collectives go by ntbring_share and ntbring_exchange */
    bool no_exchange;           /* its group has been found to have no exchanges */
    uint32_t without_group;     /* those that found none */
} MPIDI_NTBRING_comm_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_dt_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_op_t;

/* A window's memory at one rank, as this process sees it. */
typedef struct {
    char *base;                 /* NULL if this process cannot reach it */
    MPI_Aint size;
    ntbring_segment_t *segment; /* NULL if nobody else can reach it */
    int disp_unit;
    bool served;                /* its host works on it for this process */
    enum { MPIDI_NTBRING_FREE, MPIDI_NTBRING_TOGETHER, MPIDI_NTBRING_ALONE } held;      /* by this process */
    volatile int accs;          /* accumulates that its host has not answered */
    ntbring_segment_address_t address;
} MPIDI_NTBRING_target_t;

typedef struct {
    MPIDI_NTBRING_target_t *targets;    /* one a rank; NULL if all operations are messages */
    bool has_guests;            /* processes of other jobs have a part of it */
    bool has_locks;             /* MPI_Win_lock works on the targets' segments */
    volatile int locking;       /* locks and unlocks that hosts have not answered */
} MPIDI_NTBRING_win_t;

typedef struct {
    int32_t peer;               /* of processes outside MPI_COMM_WORLD */
} MPIDI_NTBRING_addr_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_part_t;

#endif /* NTBRING_PRE_H_INCLUDED */
