/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_REQUEST_H_INCLUDED
#define NTBRING_REQUEST_H_INCLUDED

#include "ntbring_impl.h"

MPL_STATIC_INLINE_PREFIX void MPIDI_NM_am_request_init(MPIR_Request * req)
{
    MPIDI_NTBRING_am_request_t *am = MPIDI_NTBRING_AM(req);
    am->datatype = MPI_DATATYPE_NULL;
    am->is_leaving = false;
    am->is_cancelling = false;
    /* while a message is passed up, requests are created only for it, including unexpected
     * messages */
    MPIDI_NTBRING_vci_t *vci = &MPIDI_NTBRING_VCI(MPIDI_NTBRING_REQUEST_VCI(req));
    am->peer = vci->arriving_src;
    am->charge = vci->arriving_charge;
    vci->arriving_charge = 0;
}

MPL_STATIC_INLINE_PREFIX void MPIDI_NM_am_request_finalize(MPIR_Request * req)
{
    MPIDI_NTBRING_UNUSED(req);
}

#endif /* NTBRING_REQUEST_H_INCLUDED */
