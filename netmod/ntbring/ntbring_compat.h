/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#ifndef NTBRING_COMPAT_H_INCLUDED
#define NTBRING_COMPAT_H_INCLUDED

/* Adaptations to MPICH's version. This file is for 4.0.x. */

#define MPIDI_NTBRING_AM(req_) (&MPIDIG_REQUEST(req_, netmod_am.ntbring))
#define MPIDI_NTBRING_COMM(comm_) (&(comm_)->dev.ch4.netmod.ntbring)
#define MPIDI_NTBRING_ASYNC(req_) (&MPIDIG_REQUEST(req_, req->recv_async))

/* MPL_UNREFERENCED_ARG expands to nothing and does not suppress the warning. */
#define MPIDI_NTBRING_UNUSED(arg_) ((void) (arg_))

#define MPIDI_NTBRING_PROGRESS_COUNT(vci_) \
    MPL_atomic_relaxed_load_int(&MPIDI_VCI(vci_).progress_count)
#define MPIDI_NTBRING_MADE_PROGRESS(vci_) \
    MPL_atomic_fetch_add_int(&MPIDI_VCI(vci_).progress_count, 1)

/* The VCI that a request belongs to, and the VCI of a message. */
#if MPIDI_CH4_MAX_VCIS == 1
#define MPIDI_NTBRING_REQUEST_VCI(req_) 0
#define MPIDI_NTBRING_SEND_VCI(rank_, tag_, comm_) 0
#define MPIDI_NTBRING_RECV_VCI(rank_, tag_, comm_) 0
#else
#define MPIDI_NTBRING_REQUEST_VCI(req_) MPIDI_Request_get_vci(req_)
#define MPIDI_NTBRING_SEND_VCI(rank_, tag_, comm_) \
    (MPIDI_get_vci(DST_VCI_FROM_SENDER, comm_, (comm_)->rank, rank_, tag_) % MPIDI_global.n_vcis)
#define MPIDI_NTBRING_RECV_VCI(rank_, tag_, comm_) \
    (MPIDI_get_vci(DST_VCI_FROM_RECVER, comm_, rank_, (comm_)->rank, tag_) % MPIDI_global.n_vcis)
#endif

/* Makes the next poll of this thread poll all VCIs. */
#if MPIDI_CH4_MAX_VCIS == 1
#define MPIDI_NTBRING_POLL_ALL() do {} while (0)
#else
#define MPIDI_NTBRING_POLL_ALL() (global_vci_poll_count |= MPIDI_CH4_PROG_POLL_MASK)
#endif

/* A full barrier. MPL_atomic_read_write_barrier does not prevent loads from overtaking stores. */
#define MPIDI_NTBRING_FULL_BARRIER() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#endif /* NTBRING_COMPAT_H_INCLUDED */
