/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include <mpidimpl.h>
#include "ntbring_impl.h"

MPIDI_NTBRING_global_t MPIDI_NTBRING_global;

/* Where MPI functions store their names; the process manager reads the record that init puts there */
static char unread_call[NTBRING_PMI_CALL_SIZE];
char *MPIR_last_call = unread_call;

/* The calls of MPI functions in the timeline */
bool MPIR_timeline_is_on = false;

uint64_t MPIR_Timeline_begin(const char *function, uint8_t * skips)
{
    return ntbring_timeline_begin(function, skips);
}

void MPIR_Timeline_end(const char *function, uint64_t begin)
{
    ntbring_timeline_end(function, begin);
}
