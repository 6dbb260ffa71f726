/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_PROGRESS_H_INCLUDED
#define NTBRING_PROGRESS_H_INCLUDED

#include "ntbring_impl.h"

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_progress(int vci, int blocking)
{
    MPIDI_NTBRING_UNUSED(blocking);
    return MPIDI_NTBRING_progress(vci);
}

/* Returns true if shared memory must be polled. A rank that is alone on its host receives only
 * messages to itself there, so it polls shared memory rarely while it spins. */
MPL_STATIC_INLINE_PREFIX bool MPIDI_NTBRING_shm_due(void)
{
    MPIDI_NTBRING_vci_t *self = &MPIDI_NTBRING_VCI(0);
    if (self->spins == 0 || self->shm_polls++ >= MPIDI_NTBRING_global.shm_rest) {
        self->shm_polls = 0;
        return true;
    }
    return false;
}

#endif /* NTBRING_PROGRESS_H_INCLUDED */
