/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"
#include "mpidu_bc.h"
#include <pthread.h>
#include <signal.h>

/* Longest sleep in us with shared memory: its peers ring no doorbell, and a rank is such a peer
 * of itself. */
#define MPIDI_NTBRING_IDLE_SHM_US 1000
#define MPIDI_NTBRING_IDLE_SHM_POLLS 200
#define MPIDI_NTBRING_SHM_REST 7
#define MPIDI_NTBRING_IDLE_US 100000
#define MPIDI_NTBRING_IDLE_BARRIER_US 1000

/* False if there are only sessions, which do not join a ring and have nothing to poll. */
static bool has_joined;

/* Numbers the hosts, which are the nodes with at least one rank, without gaps. */
static int number_hosts(int32_t * host_of)
{
    int hosts = 0;
    for (int node = 0; node < MPIR_Process.num_nodes; node++) {
        bool used = false;
        for (int i = 0; i < MPIR_Process.size; i++) {
            if (MPIR_Process.node_map[i] == node) {
                host_of[i] = hosts;
                used = true;
            }
        }
        hosts += used;
    }
    return hosts;
}

static int close_endpoints(void)
{
    int worst = NTBRING_OK;
    for (int vci = 0; vci < MPIDI_global.n_vcis; vci++) {
        int rc = ntbring_close(MPIDI_NTBRING_VCI(vci).endpoint);
        MPIDI_NTBRING_VCI(vci).endpoint = NULL;
        worst = MPL_MIN(worst, rc);
    }
    return worst;
}

static int open_endpoints(void)
{
    int mpi_errno = MPI_SUCCESS;

    int32_t *host_of = MPL_malloc(MPIR_Process.size * sizeof(int32_t), MPL_MEM_ADDRESS);
    MPIR_ERR_CHKANDJUMP(!host_of, mpi_errno, MPI_ERR_OTHER, "**nomem");

    ntbring_job_t job = {
        .rank = MPIR_Process.rank,
        .size = MPIR_Process.size,
        .hosts = number_hosts(host_of),
        .host_of = host_of,
        .charged = 1ULL << MPIDIG_SEND | 1ULL << MPIDI_NTBRING_SEND_SHORT,
        .queues = MPIDI_NTBRING_tool_queues,
    };
    for (; job.vci < MPIDI_global.n_vcis; job.vci++) {
        job.queues_cookie = (void *) (uintptr_t) job.vci;
        MPIDI_NTBRING_VCI(job.vci).arriving_src = MPIDI_NTBRING_NOBODY;
        int rc = ntbring_open(&job, &MPIDI_NTBRING_VCI(job.vci).endpoint);
        MPIDI_NTBRING_CHKRC(rc);
    }
    mpi_errno = MPIR_pmi_barrier();
    MPIR_ERR_CHECK(mpi_errno);
    int rc = ntbring_check_space(MPIDI_NTBRING_VCI(0).endpoint);
    MPIDI_NTBRING_CHKRC(rc);

  fn_exit:
    MPL_free(host_of);
    return mpi_errno;
  fn_fail:
    close_endpoints();
    goto fn_exit;
}

int MPIDI_NTBRING_init_local(int *tag_bits)
{
    int mpi_errno = MPI_SUCCESS;

    int version = ntbring_abi_version();
    MPIR_ERR_CHKANDJUMP2(version != NTBRING_ABI_VERSION, mpi_errno, MPI_ERR_OTHER,
                         "**ntbring_version", "**ntbring_version %d %d", version,
                         NTBRING_ABI_VERSION);
    *tag_bits = MPIR_TAG_BITS_DEFAULT;
    MPIDIG_global.rndv_cbs[MPIDI_NTBRING_RNDV] = MPIDI_NTBRING_offer_matched;
    MPIDI_NTBRING_cancel_init();
    /* the timeline finds the tags of messages there */
    MPL_COMPILE_TIME_ASSERT(offsetof(MPIDIG_hdr_t, tag) == 4);
    MPL_COMPILE_TIME_ASSERT(MPIDI_NTBRING_SHORT_WORD(0, 1) == 1ULL << 32);
    char *record = ntbring_pmi_call_record();
    if (record)
        MPIR_last_call = record;

    /* before MPICH allocates any shared memory of its own */
    mpi_errno = open_endpoints();
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int connect_endpoints(void)
{
    int mpi_errno = MPI_SUCCESS;
    int n_vcis = MPIDI_global.n_vcis;

    /* MPICH has one address for each process, which consists of those of all VCIs */
    char addresses[MPID_MAX_BC_SIZE];
    uint64_t address_sz = 0;
    for (int vci = 0; vci < n_vcis; vci++) {
        char address[NTBRING_ADDRESS_MAX];
        int rc = ntbring_address(MPIDI_NTBRING_VCI(vci).endpoint, address, &address_sz);
        MPIDI_NTBRING_CHKRC(rc);
        MPIR_ERR_CHKANDJUMP2((vci + 1) * address_sz > sizeof(addresses), mpi_errno, MPI_ERR_OTHER,
                             "**ntbring_vcis", "**ntbring_vcis %d %d", n_vcis,
                             (int) (sizeof(addresses) / address_sz));
        memcpy(addresses + vci * address_sz, address, address_sz);
    }

    void *table;
    int table_stride = (int) (n_vcis * address_sz);     /* changed only if sizes may differ */
    mpi_errno = MPIDU_bc_table_create(MPIR_Process.rank, MPIR_Process.size, MPIR_Process.node_map,
                                      addresses, table_stride, TRUE, FALSE, &table,
                                      &table_stride);
    MPIR_ERR_CHECK(mpi_errno);

    for (int vci = 0; vci < n_vcis; vci++) {
        int rc = ntbring_connect(MPIDI_NTBRING_VCI(vci).endpoint,
                                 (char *) table + vci * address_sz, table_stride);
        MPIDI_NTBRING_CHKRC(rc);
    }
    mpi_errno = MPIDU_bc_table_destroy();
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_timeline_is_on = ntbring_timeline_is_on(MPIR_last_call) != 0;

    int rc = ntbring_limits(MPIDI_NTBRING_VCI(0).endpoint, &MPIDI_NTBRING_global.limits);
    MPIDI_NTBRING_CHKRC(rc);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_init_world(void)
{
    int mpi_errno = MPI_SUCCESS;

    mpi_errno = connect_endpoints();
    MPIR_ERR_CHECK(mpi_errno);
    has_joined = true;

    mpi_errno = MPIDI_NTBRING_lost_init();
    MPIR_ERR_CHECK(mpi_errno);
    MPIDI_NTBRING_tool_register();

    MPIDI_NTBRING_global.idle_max_us = MPIDI_NTBRING_IDLE_US;
    MPIDI_NTBRING_global.idle_polls = 0;
#ifndef MPIDI_CH4_DIRECT_NETMOD
    MPIDI_NTBRING_global.idle_polls = MPIDI_NTBRING_IDLE_SHM_POLLS;
    if (MPIR_Process.local_size > 1) {
        MPIDI_NTBRING_global.idle_max_us = MPIDI_NTBRING_IDLE_SHM_US;
    } else {
        MPIDI_NTBRING_global.shm_rest = MPIDI_NTBRING_SHM_REST;
    }
#endif

  fn_exit:
    return mpi_errno;
  fn_fail:
    close_endpoints();
    goto fn_exit;
}

int MPIDI_NTBRING_post_init(void)
{
    return MPI_SUCCESS;
}

static int flush(int vci)
{
    int mpi_errno = MPI_SUCCESS;

    while (true) {
        int rc = ntbring_flush(MPIDI_NTBRING_VCI(vci).endpoint);
        MPIDI_NTBRING_CHKRC(rc);
        if (rc == NTBRING_OK) {
            break;
        }
        mpi_errno = MPID_Progress_test(NULL);
        MPIR_ERR_CHECK(mpi_errno);
        MPIDI_NTBRING_idle(-1);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

typedef struct {
    int mpi_errno;
    MPL_atomic_int_t is_over;
} barrier_t;

static void *wait_for_all(void *arg)
{
    barrier_t *barrier = arg;
    barrier->mpi_errno = MPIR_pmi_barrier();
    MPL_atomic_release_store_int(&barrier->is_over, 1);
    return NULL;
}

/* Waits in a barrier until all ranks have flushed. Meanwhile this rank makes progress, since
 * others may send to it or need its answers. */
static int barrier_with_progress(void)
{
    int mpi_errno = MPI_SUCCESS;
    barrier_t barrier = {.is_over = MPL_ATOMIC_INT_T_INITIALIZER(0) };
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&thread, NULL, wait_for_all, &barrier);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc) {
        return MPIR_pmi_barrier();
    }
    /* no doorbell rings at the end of the barrier */
    MPIDI_NTBRING_global.idle_max_us =
        MPL_MIN(MPIDI_NTBRING_global.idle_max_us, MPIDI_NTBRING_IDLE_BARRIER_US);
    bool is_over = false;
    while (!is_over && mpi_errno == MPI_SUCCESS) {
        MPIDI_NTBRING_idle(-1);
        /* the last poll follows the end of the barrier, since another rank may have aborted
         * before it */
        is_over = MPL_atomic_acquire_load_int(&barrier.is_over);
        mpi_errno = MPID_Progress_test(NULL);
    }
    pthread_join(thread, NULL);
    return barrier.mpi_errno ? barrier.mpi_errno : mpi_errno;
}

int MPIDI_NTBRING_mpi_finalize_hook(void)
{
    int mpi_errno = MPI_SUCCESS;

    int flush_errno = MPI_SUCCESS;

    if (MPIDI_NTBRING_VCI(0).endpoint == NULL) {
        goto fn_exit;
    }

    for (int vci = 0; vci < MPIDI_global.n_vcis && flush_errno == MPI_SUCCESS; vci++) {
        flush_errno = flush(vci);
    }
    if (has_joined && flush_errno == MPI_SUCCESS) {
        flush_errno = barrier_with_progress();
    } else {
        mpi_errno = MPIR_pmi_barrier();
        MPIR_ERR_CHECK(mpi_errno);
    }
    int rc = NTBRING_OK;
    MPIR_timeline_is_on = false;
    for (int vci = 0; vci < MPIDI_global.n_vcis && rc >= 0; vci++) {
        rc = ntbring_linger(MPIDI_NTBRING_VCI(vci).endpoint);
    }
    MPIDI_NTBRING_CHKRC(rc);
    mpi_errno = MPIR_pmi_barrier();
    MPIR_ERR_CHECK(mpi_errno);

    rc = close_endpoints();
    has_joined = false;
    MPIDI_NTBRING_lost_finalize();
    MPIDI_NTBRING_CHKRC(rc);
    mpi_errno = flush_errno;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

void *MPIDI_NTBRING_mpi_alloc_mem(MPI_Aint size, MPIR_Info * info)
{
    return MPIDIG_mpi_alloc_mem(size, info);
}

int MPIDI_NTBRING_mpi_free_mem(void *ptr)
{
    return MPIDIG_mpi_free_mem(ptr);
}
