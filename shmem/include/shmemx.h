/* Extensions of OpenSHMEM. Generated from the table in shmem/api: change it there. */
#ifndef NTBRING_SHMEMX_H
#define NTBRING_SHMEMX_H

#include "shmem.h"

#ifdef __cplusplus
extern "C" {
#endif

/* State of the symmetric heap in bytes; each pointer may be null */
void shmemx_heap_info(size_t *reserved, size_t *backed, size_t *used, size_t *largest_free);

#ifdef __cplusplus
}
#endif

#endif
