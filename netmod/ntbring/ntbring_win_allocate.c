/* Copyright (C) the ntbring authors. See LICENSE in the ntbring repository. */

#include "mpidimpl.h"
#include "ntbring_impl.h"

/* Description of a rank's memory, which it sends to all others. */
typedef struct {
    ntbring_segment_address_t address;
    MPI_Aint size;
    int disp_unit;
    enum { WITHOUT_SEGMENT, WITH_SEGMENT, FAILED } state;
} card_t;

static int is_near(int rank, MPIR_Comm * comm)
{
    return ntbring_is_mappable(MPIDI_NTBRING_VCI(0).endpoint, MPIDI_NTBRING_dest(rank, comm));
}

static int is_served(int rank, MPIR_Comm * comm)
{
    return ntbring_is_served(MPIDI_NTBRING_VCI(0).endpoint, MPIDI_NTBRING_dest(rank, comm));
}

/* Returns the number of other ranks that access this process's memory without its help. */
static int count_company(MPIR_Comm * comm)
{
    int count = 0;
    for (int rank = 0; rank < comm->local_size; rank++) {
        if (rank != comm->rank && (is_near(rank, comm) > 0 || is_served(rank, comm) > 0)) {
            count++;
        }
    }
    return count;
}

/* Allocates the window's memory: in a segment if any other rank can use it, or at least its
 * lock. */
static int allocate_memory(MPIR_Comm * comm, MPIDI_NTBRING_target_t * own, card_t * card)
{
    int mpi_errno = MPI_SUCCESS;
    void *base = NULL;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    card->state = WITHOUT_SEGMENT;
    if (count_company(comm) > 0) {
        int rc = ntbring_segment_create(MPIDI_NTBRING_VCI(0).endpoint, MPL_MAX(own->size, 1),
                                        &own->segment, &base, &card->address);
        MPIR_ERR_CHKANDJUMP1(rc < 0, mpi_errno, MPI_ERR_NO_MEM, "**ntbring", "**ntbring %s",
                             ntbring_error_text());
        card->state = WITH_SEGMENT;
    } else if (own->size > 0) {
        base = MPL_malloc(own->size, MPL_MEM_RMA);
        MPIR_ERR_CHKANDJUMP1(!base, mpi_errno, MPI_ERR_NO_MEM, "**nomem", "**nomem %s",
                             "MPI_Win_allocate");
    }
    own->base = base;

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
  fn_fail:
    card->state = FAILED;
    goto fn_exit;
}

static void free_memory(MPIDI_NTBRING_target_t * targets, int rank, int size)
{
    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    for (int i = 0; i < size; i++) {
        if (targets[i].segment) {
            ntbring_segment_free(MPIDI_NTBRING_VCI(0).endpoint, targets[i].segment);
        }
    }
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    if (targets[rank].base && !targets[rank].segment) {
        MPL_free(targets[rank].base);
    }
    MPL_free(targets);
}

static int check_cards(const card_t * cards, int size)
{
    int mpi_errno = MPI_SUCCESS;

    for (int i = 0; i < size; i++) {
        MPIR_ERR_CHKANDJUMP1(cards[i].state == FAILED, mpi_errno, MPI_ERR_NO_MEM,
                             "**ntbring_window", "**ntbring_window %d", i);
    }

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

static int open_segments(const card_t * cards, MPIDI_NTBRING_target_t * targets, MPIR_Comm * comm)
{
    int mpi_errno = MPI_SUCCESS;

    MPID_THREAD_CS_ENTER(VCI, MPIDI_VCI(0).lock);
    for (int i = 0; i < comm->local_size; i++) {
        targets[i].size = cards[i].size;
        targets[i].disp_unit = cards[i].disp_unit;
        targets[i].address = cards[i].address;
        targets[i].served = cards[i].state == WITH_SEGMENT && is_served(i, comm) > 0;
        if (i != comm->rank && cards[i].state == WITH_SEGMENT && is_near(i, comm) > 0) {
            void *base = NULL;
            int rc = ntbring_segment_open(MPIDI_NTBRING_VCI(0).endpoint,
                                          MPIDI_NTBRING_dest(i, comm), &cards[i].address,
                                          &targets[i].segment, &base);
            MPIDI_NTBRING_CHKRC(rc);
            targets[i].base = base;
        }
    }

  fn_exit:
    MPID_THREAD_CS_EXIT(VCI, MPIDI_VCI(0).lock);
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

#ifndef MPIDI_CH4_DIRECT_NETMOD
/* Lets the shared-memory module perform puts and gets between ranks of this host. */
static int share_in_host(MPIR_Win * win)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Comm *comm = win->comm_ptr;
    const MPIDI_NTBRING_target_t *targets = win->dev.netmod.ntbring.targets;

    if (!comm->node_comm || MPIDIG_WIN(win, shared_table)) {
        goto fn_exit;
    }
    MPIDIG_win_shared_info_t *table =
        MPL_calloc(comm->node_comm->local_size, sizeof(*table), MPL_MEM_RMA);
    MPIR_ERR_CHKANDJUMP(!table, mpi_errno, MPI_ERR_NO_MEM, "**nomem");
    MPIDIG_WIN(win, shared_table) = table;
    for (int i = 0; i < comm->local_size; i++) {
        if (comm->intranode_table[i] >= 0) {
            MPIDIG_win_shared_info_t *entry = &table[comm->intranode_table[i]];
            entry->size = targets[i].size;
            entry->disp_unit = targets[i].disp_unit;
            entry->shm_base_addr = targets[i].base;
            entry->ipc_mapped_device = -1;
        }
    }

    /* the hook checks for a mapping, but a real one in mmap_addr would be unmapped at the end */
    MPIDIG_WIN(win, mmap_addr) = table;
    mpi_errno = MPIDI_SHM_mpi_win_allocate_hook(win);
    MPIDIG_WIN(win, mmap_addr) = NULL;
    MPIR_ERR_CHECK(mpi_errno);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}
#endif

/* Turns a window of MPI_Win_create into one of MPI_Win_allocate. */
static int adopt(MPIR_Win * win, MPIR_Info * info, MPIDI_NTBRING_target_t * targets)
{
    int mpi_errno = MPI_SUCCESS;
    char value[MPI_MAX_INFO_VAL + 1];
    int company, flag = 0;

    MPIDI_NTBRING_CALL_LOCKED(company, count_company(win->comm_ptr));
    win->create_flavor = MPI_WIN_FLAVOR_ALLOCATE;
    win->dev.netmod.ntbring.targets = targets;
    win->dev.netmod.ntbring.has_locks = company == win->comm_ptr->local_size - 1;
    win->dev.netmod.ntbring.locking = 0;
    MPIDI_WIN(win, winattr) |= MPIDI_WINATTR_NM_REACHABLE;
    if (info) {
        mpi_errno = MPIR_Info_get_impl(info, "alloc_shm", MPI_MAX_INFO_VAL, value, &flag);
        MPIR_ERR_CHECK(mpi_errno);
    }
    if (!flag) {
        MPIDIG_WIN(win, info_args).alloc_shm = 1;
    }
    /* accumulates must all use the same mechanism, which is not the shared-memory module's */
    MPIDI_WIN(win, winattr) |= MPIDI_WINATTR_ACCU_NO_SHM;

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

/* Exchanges the outcome: the call is collective, so all ranks must learn of a failure before
 * they continue. */
static int agree(MPIR_Comm * comm, int own_errno)
{
    int mpi_errno = MPI_SUCCESS;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int bad = own_errno == MPI_SUCCESS ? -1 : comm->rank, worst = -1;

    mpi_errno = MPIR_Allreduce(&bad, &worst, 1, MPI_INT, MPI_MAX, comm, &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = own_errno;
    MPIR_ERR_CHECK(mpi_errno);
    MPIR_ERR_CHKANDJUMP1(worst >= 0, mpi_errno, MPI_ERR_OTHER, "**ntbring_window",
                         "**ntbring_window %d", worst);

  fn_exit:
    return mpi_errno;
  fn_fail:
    goto fn_exit;
}

int MPIDI_NTBRING_win_allocate(MPI_Aint size, int disp_unit, MPIR_Info * info, MPIR_Comm * comm,
                               void **base, MPIR_Win ** win_p)
{
    int mpi_errno = MPI_SUCCESS, alloc_errno;
    MPIR_Errflag_t errflag = MPIR_ERR_NONE;
    int ranks = comm->local_size;
    MPIDI_NTBRING_target_t *targets = NULL;
    card_t *cards = NULL;
    MPIR_Win *win = NULL;
    bool adopted = false;
    MPIR_FUNC_ENTER;

    targets = MPL_calloc(ranks, sizeof(*targets), MPL_MEM_RMA);
    cards = MPL_calloc(ranks, sizeof(*cards), MPL_MEM_RMA);
    MPIR_ERR_CHKANDJUMP(!targets || !cards, mpi_errno, MPI_ERR_NO_MEM, "**nomem");

    MPIDI_NTBRING_target_t *own = &targets[comm->rank];
    card_t *card = &cards[comm->rank];
    own->size = card->size = size;
    own->disp_unit = card->disp_unit = disp_unit;
    alloc_errno = allocate_memory(comm, own, card);
    mpi_errno = MPIR_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, cards, sizeof(*cards), MPI_BYTE,
                               comm, &errflag);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = alloc_errno;
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = check_cards(cards, ranks);
    MPIR_ERR_CHECK(mpi_errno);

    mpi_errno = MPIDIG_mpi_win_create(own->base, size, disp_unit, info, comm, &win);
    MPIR_ERR_CHECK(mpi_errno);
    adopted = true;
    mpi_errno = adopt(win, info, targets);
    MPIR_ERR_CHECK(mpi_errno);
    mpi_errno = agree(win->comm_ptr, open_segments(cards, targets, win->comm_ptr));
    MPIR_ERR_CHECK(mpi_errno);
    if (own->segment) {
        ntbring_segment_seal(own->segment);
    }
#ifndef MPIDI_CH4_DIRECT_NETMOD
    mpi_errno = share_in_host(win);
    MPIR_ERR_CHECK(mpi_errno);
#endif
    /* no message may arrive at a window that is not ready */
    mpi_errno = MPIR_Barrier(win->comm_ptr, &errflag);
    MPIR_ERR_CHECK(mpi_errno);

    *base = own->base;
    *win_p = win;

  fn_exit:
    MPL_free(cards);
    MPIR_FUNC_EXIT;
    return mpi_errno;
  fn_fail:
    if (adopted) {
        MPIDIG_mpi_win_free(&win);
    } else if (targets) {
        free_memory(targets, comm->rank, ranks);
    }
    goto fn_exit;
}

/* Called before MPIDIG frees the window, which after an error may not have reached the netmod's
 * hooks. */
void MPIDI_NTBRING_win_release(MPIR_Win * win)
{
    if (MPIDI_WIN(win, winattr) & MPIDI_WINATTR_NM_REACHABLE) {
        free_memory(win->dev.netmod.ntbring.targets, win->comm_ptr->rank,
                    win->comm_ptr->local_size);
        win->dev.netmod.ntbring.targets = NULL;
        win->dev.netmod.ntbring.has_locks = false;
        win->base = NULL;
        MPL_free(MPIDIG_WIN(win, shared_table));
        MPIDIG_WIN(win, shared_table) = NULL;
    }
}
