/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_COMPAT_H_INCLUDED
#define NTBRING_COMPAT_H_INCLUDED

/* What depends on MPICH's version. This file fits 4.0.x. */

#define MPIDI_NTBRING_AM(req_) (&MPIDIG_REQUEST(req_, netmod_am.ntbring))
#define MPIDI_NTBRING_COMM(comm_) (&(comm_)->dev.ch4.netmod.ntbring)
#define MPIDI_NTBRING_ASYNC(req_) (&MPIDIG_REQUEST(req_, req->recv_async))

/* MPL_UNREFERENCED_ARG does nothing. */
#define MPIDI_NTBRING_UNUSED(arg_) ((void) (arg_))

#define MPIDI_NTBRING_PROGRESS_COUNT() \
    MPL_atomic_relaxed_load_int(&MPIDI_VCI(0).progress_count)

/* MPL_atomic_read_write_barrier lets loads overtake stores. */
#define MPIDI_NTBRING_FULL_BARRIER() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#endif /* NTBRING_COMPAT_H_INCLUDED */
