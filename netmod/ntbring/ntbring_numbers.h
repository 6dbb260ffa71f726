/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_NUMBERS_H_INCLUDED
#define NTBRING_NUMBERS_H_INCLUDED

#include <ntbring.h>

/* Returns the type of a predefined datatype's elements (NTBRING_TYPE_*); -1 if other hosts
 * cannot compute with them. */
int MPIDI_NTBRING_number_type(MPI_Datatype datatype);

/* Sets op and type of an accumulate. Returns false if other hosts cannot perform it. */
bool MPIDI_NTBRING_can_compute(MPI_Op mpi_op, MPI_Datatype datatype, ntbring_remote_t * remote);

#endif /* NTBRING_NUMBERS_H_INCLUDED */
