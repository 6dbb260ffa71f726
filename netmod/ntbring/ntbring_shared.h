/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_SHARED_H_INCLUDED
#define NTBRING_SHARED_H_INCLUDED

#include "ntbring_impl.h"

/* State of a collective at one rank. */
typedef struct {
    MPIR_Comm *comm;
    MPI_Datatype datatype;
    MPI_Op op;
    int mpi_errno;              /* the first error */
    bool gives_up;
} MPIDI_NTBRING_shared_state_t;

/* Executes a collective. A rank that has failed before makes it fail where its data are needed. */
int MPIDI_NTBRING_shared_run(ntbring_shared_call_t * call, int failed,
                             MPIDI_NTBRING_shared_state_t * state, MPIR_Errflag_t * errflag);

#endif /* NTBRING_SHARED_H_INCLUDED */
