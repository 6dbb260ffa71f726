/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include <mpidimpl.h>
#include "ntbring_impl.h"

MPIDI_NTBRING_global_t MPIDI_NTBRING_global;
