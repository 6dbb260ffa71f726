/* sync.h - the beginning of a benchmark over OpenSHMEM; sync.c also has what engine.h asks of a program. */
#ifndef BENCH_SHMEM_SYNC_H
#define BENCH_SHMEM_SYNC_H

#include "engine.h"

#define PES_MOST 64

/* Initialises OpenSHMEM and reads the options. */
void begin(int argc, char **argv);

#endif
