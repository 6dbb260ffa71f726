/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_REQUEST_H_INCLUDED
#define NTBRING_REQUEST_H_INCLUDED

#include "ntbring_impl.h"

MPL_STATIC_INLINE_PREFIX void MPIDI_NM_am_request_init(MPIR_Request * req)
{
    MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM(req);
    am->datatype = MPI_DATATYPE_NULL;
    /* only an unexpected message makes a request while it is handed up */
    am->src = MPIDI_NTBRING_global.arriving_src;
    am->charge = MPIDI_NTBRING_global.arriving_charge;
    MPIDI_NTBRING_global.arriving_charge = 0;
}

MPL_STATIC_INLINE_PREFIX void MPIDI_NM_am_request_finalize(MPIR_Request * req)
{
    MPIDI_NTBRING_UNUSED(req);
}

#endif /* NTBRING_REQUEST_H_INCLUDED */
