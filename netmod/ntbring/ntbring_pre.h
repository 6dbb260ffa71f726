/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_PRE_H_INCLUDED
#define NTBRING_PRE_H_INCLUDED

/* Larger than any basic datatype, so that an element which a chunk boundary cuts fits. */
#define MPIDI_NTBRING_CARRY_SZ 48

typedef struct {
    /* what a pending send still has to pack */
    const void *buffer;
    MPI_Aint count;
    MPI_Datatype datatype;      /* MPI_DATATYPE_NULL if no reference is held */
    uint16_t handler_id;
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
} MPIDI_NTBRING_comm_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_dt_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_op_t;

struct ntbring_segment;

/* A window's memory at one rank, as this process sees it. */
typedef struct {
    char *base;                 /* NULL if this process cannot reach it */
    MPI_Aint size;
    struct ntbring_segment *segment;    /* NULL if nobody else can reach it */
    int disp_unit;
} MPIDI_NTBRING_target_t;

typedef struct {
    MPIDI_NTBRING_target_t *targets;    /* one a rank; NULL if all operations are messages */
} MPIDI_NTBRING_win_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_addr_t;

typedef struct {
    int dummy;
} MPIDI_NTBRING_part_t;

#endif /* NTBRING_PRE_H_INCLUDED */
