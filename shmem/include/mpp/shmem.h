/* For programs that include it from here. Generated from the table in shmem/api: change it there. */
#ifndef NTBRING_MPP_SHMEM_H
#define NTBRING_MPP_SHMEM_H

#include "../shmem.h"

#endif
