/* For programs that include it from here. Generated from the table in shmem/api: change it there. */
#ifndef NTBRING_MPP_SHMEMX_H
#define NTBRING_MPP_SHMEMX_H

#include "../shmemx.h"

#endif
