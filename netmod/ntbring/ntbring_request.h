/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_REQUEST_H_INCLUDED
#define NTBRING_REQUEST_H_INCLUDED

#include "ntbring_impl.h"

MPL_STATIC_INLINE_PREFIX void MPIDI_NM_am_request_init(MPIR_Request * req)
{
    MPIDI_NTBRING_AM(req)->datatype = MPI_DATATYPE_NULL;
}

MPL_STATIC_INLINE_PREFIX void MPIDI_NM_am_request_finalize(MPIR_Request * req)
{
    MPIDI_NTBRING_UNUSED(req);
}

#endif /* NTBRING_REQUEST_H_INCLUDED */
