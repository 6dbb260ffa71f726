/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_TYPES_H_INCLUDED
#define NTBRING_TYPES_H_INCLUDED

#include <ntbring.h>

typedef struct {
    ntbring_endpoint_t *endpoint;       /* NULL before init_world and after finalize */
    ntbring_limits_t limits;
    uint32_t idle_max_us;       /* longest sleep in MPIDI_NTBRING_idle */
    int idle_polls;             /* calls of MPIDI_NTBRING_idle that may not sleep after progress */
    int idle_count;             /* such calls since progress was made */
    int idle_progress_count;    /* ch4's progress_count at the latest of them */
} MPIDI_NTBRING_global_t;

extern MPIDI_NTBRING_global_t MPIDI_NTBRING_global;

#endif /* NTBRING_TYPES_H_INCLUDED */
