/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include <mpidimpl.h>
#include "ntbring_impl.h"

MPIDI_NTBRING_global_t MPIDI_NTBRING_global;

/* Where MPI functions store their names; the process manager reads the record that init puts there */
static char unread_call[NTBRING_PMI_CALL_SIZE];
char *MPIR_last_call = unread_call;
