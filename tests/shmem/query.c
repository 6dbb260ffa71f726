/* Questions about PEs, addresses and the library. */
#include "check.h"

static int global;
static const int constant = 3;

int main(int argc, char **argv) {
    shmem_init();
    int me = shmem_my_pe(), pes = shmem_n_pes(), local = argc, major = 0, minor = 0;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_info_get_version(&major, &minor);
    CHECK_EQ(major, SHMEM_MAJOR_VERSION);
    CHECK_EQ(minor, SHMEM_MINOR_VERSION);
    shmem_info_get_name(name);
    CHECK(strcmp(name, SHMEM_VENDOR_STRING) == 0);
    for (int pe = -2; pe < pes + 2; pe++) {
        int exists = pe >= 0 && pe < pes;
        CHECK_EQ(shmem_pe_accessible(pe), exists);
        CHECK_EQ(shmem_addr_accessible(&global, pe), exists);
        CHECK_EQ(shmem_addr_accessible(&local, pe), 0);
        CHECK_EQ(shmem_addr_accessible(NULL, pe), 0);
    }
    char *heap = shmem_malloc(10), *own = malloc(10);
    CHECK_EQ(shmem_addr_accessible(heap, pes - 1), 1);
    CHECK_EQ(shmem_addr_accessible(own, me), 0);
    CHECK_EQ(shmem_addr_accessible(&constant, me), 0);
    shmem_pcontrol(1);
    shmem_pcontrol(0, 3, "more");
    CHECK(argc < 2 || strcmp(argv[1], "x") == 0);
    passed("query");
    shmem_finalize();
    return 0;
}
