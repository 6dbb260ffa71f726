/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NETMOD_INLINE_H_INCLUDED
#define NETMOD_INLINE_H_INCLUDED

#include "netmod_am_fallback_part.h"

#include "ntbring_am.h"
#include "ntbring_coll.h"
#include "ntbring_probe.h"
#include "ntbring_proc.h"
#include "ntbring_progress.h"
#include "ntbring_recv.h"
#include "ntbring_request.h"
#include "ntbring_rma.h"
#include "ntbring_send.h"
#include "ntbring_sync.h"

/* Not-inlined ntbring netmod functions */
#include "ntbring_noinline.h"

#endif /* NETMOD_INLINE_H_INCLUDED */
