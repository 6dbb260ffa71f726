/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_PROGRESS_H_INCLUDED
#define NTBRING_PROGRESS_H_INCLUDED

#include "ntbring_impl.h"

MPL_STATIC_INLINE_PREFIX int MPIDI_NM_progress(int vci, int blocking)
{
    MPIDI_NTBRING_UNUSED(blocking);
    return MPIDI_NTBRING_progress(vci);
}

#endif /* NTBRING_PROGRESS_H_INCLUDED */
