/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

#define MPIDI_NTBRING_TOOL_CATEGORY "NTBRING"

/* Reads a counter. MPI_T's own lock does not protect the endpoints, whose locks are taken here. */
static void get_count(void *addr, void *obj_handle, int count, void *buf)
{
    MPIDI_NTBRING_UNUSED(obj_handle);
    MPIDI_NTBRING_UNUSED(count);

    uint32_t index = (uintptr_t) addr;
    uint64_t sum = 0, value = 0;
    ntbring_count(NULL, index, &sum);
    /* the locks do not exist any more once the endpoints are closed */
    if (MPIDI_NTBRING_VCI(0).endpoint) {
        MPID_THREAD_CS_ENTER(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
        for (int vci = 0; vci < MPIDI_global.n_vcis; vci++) {
            MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(vci).lock);
            if (ntbring_count(MPIDI_NTBRING_VCI(vci).endpoint, index, &value) == NTBRING_OK) {
                sum += value;
            }
            MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(vci).lock);
        }
        MPID_THREAD_CS_EXIT(GLOBAL, MPIR_THREAD_GLOBAL_ALLFUNC_MUTEX);
    }
    *(uint64_t *) buf = sum;
}

void MPIDI_NTBRING_tool_register(void)
{
    static bool registered = false;
    ntbring_variable_t variable;

    /* MPICH initializes MPI_T once for each process, too */
    if (registered) {
        return;
    }
    registered = true;

    MPIR_T_THREAD_CS_ENTER();
    for (uint32_t i = 0;
         ntbring_setting(MPIDI_NTBRING_VCI(0).endpoint, i, &variable) == NTBRING_SOME; i++) {
        MPIR_T_cvar_value_t value = {.str = variable.value };
        MPIR_T_CVAR_REGISTER_impl(MPI_CHAR, variable.name, NULL, strlen(variable.value) + 1,
                                  MPI_T_ENUM_NULL, MPI_T_VERBOSITY_USER_BASIC,
                                  MPI_T_BIND_NO_OBJECT, MPI_T_SCOPE_CONSTANT, NULL, NULL, value,
                                  MPIDI_NTBRING_TOOL_CATEGORY, variable.meaning);
    }
    for (uint32_t i = 0; ntbring_counter(i, &variable) == NTBRING_SOME; i++) {
        MPIR_T_PVAR_REGISTER_impl(MPI_T_PVAR_CLASS_COUNTER, MPI_UNSIGNED_LONG_LONG, variable.name,
                                  (void *) (uintptr_t) i, 1, MPI_T_ENUM_NULL,
                                  MPI_T_VERBOSITY_USER_DETAIL, MPI_T_BIND_NO_OBJECT,
                                  MPIR_T_PVAR_FLAG_READONLY | MPIR_T_PVAR_FLAG_CONTINUOUS,
                                  get_count, NULL, MPIDI_NTBRING_TOOL_CATEGORY,
                                  variable.meaning);
    }
    MPIR_T_cat_add_desc(MPIDI_NTBRING_TOOL_CATEGORY,
                        "settings and counters of the ring's transport");
    MPIR_T_THREAD_CS_EXIT();
}

/* Describes a VCI's queues. It is called by ntbring_poll, so with the VCI's lock. */
void MPIDI_NTBRING_tool_queues(void *cookie, ntbring_queues_t * queues)
{
    int vci = (uintptr_t) cookie;
    MPIR_Request *rreq;

    DL_FOREACH(MPIDI_global.per_vci[vci].posted_list, rreq) {
#ifndef MPIDI_CH4_DIRECT_NETMOD
        /* the second request, for shared memory, of a receive from any source */
        if (MPIDI_REQUEST_ANYSOURCE_PARTNER(rreq) && MPIDI_REQUEST(rreq, is_local)) {
            continue;
        }
#endif
        int rank = MPIDIG_REQUEST(rreq, u.recv.source);
        int32_t peer = queues->peers;
        if (rank != MPI_ANY_SOURCE) {
            peer = MPIDI_NTBRING_dest(rank, rreq->comm);
        }
        if (peer >= 0 && peer <= queues->peers) {
            size_t size;
            MPIDI_Datatype_check_size(MPIDIG_REQUEST(rreq, datatype), MPIDIG_REQUEST(rreq, count),
                                      size);
            queues->receives[peer].count++;
            queues->receives[peer].bytes += size;
        }
    }
    DL_FOREACH(MPIDI_global.per_vci[vci].unexp_list, rreq) {
        queues->unexpected++;
        /* the payload of a rendezvous is still at its sender */
        if (!(MPIDIG_REQUEST(rreq, req->status) & MPIDIG_REQ_RTS)) {
            queues->unexpected_bytes += MPIDIG_REQUEST(rreq, count);
        }
    }
}
