/* Prototypes and types as the specification has them, written by hand: a second declaration must not contradict. */
#include <shmem.h>

#ifdef __cplusplus
extern "C" {
#endif
int shmem_init_thread(int requested, int *provided);
void shmem_query_initialized(int *flag);
void *shmem_ptr(const void *dest, int pe);
void *shmem_team_ptr(shmem_team_t team, const void *dest, int pe);
void *shmem_realloc(void *ptr, size_t size);
void *shmem_malloc_with_hints(size_t size, long hints);
void shmem_info_get_name(char *name);
void shmem_float_iput(float *dest, const float *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);
void shmem_int64_ibput(int64_t *d, const int64_t *s, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t n, int pe);
void shmem_ctx_put128(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe);
void shmem_getmem_nbi(void *dest, const void *source, size_t nelems, int pe);
void shmem_ctx_iget8(shmem_ctx_t ctx, void *d, const void *s, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe);
long double shmem_ctx_longdouble_g(shmem_ctx_t ctx, const long double *source, int pe);
void shmem_schar_p(signed char *dest, signed char value, int pe);
void shmem_putmem_signal(void *d, const void *s, size_t n, uint64_t *sig, uint64_t signal, int op, int pe);
void shmem_ctx_put32_signal_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, uint64_t *sig_addr,
                                uint64_t signal, int sig_op, int pe);
uint64_t shmem_signal_fetch(const uint64_t *sig_addr);
uint64_t shmem_signal_wait_until(uint64_t *sig_addr, int cmp, uint64_t cmp_value);
void shmem_signal_add(uint64_t *sig_addr, uint64_t signal, int pe);
void shmem_ctx_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe);
double shmem_double_atomic_fetch(const double *source, int pe);
size_t shmem_ctx_size_atomic_compare_swap(shmem_ctx_t ctx, size_t *dest, size_t cond, size_t value, int pe);
void shmem_ptrdiff_atomic_inc(ptrdiff_t *dest, int pe);
void shmem_uint_atomic_fetch_nbi(unsigned int *fetch, const unsigned int *source, int pe);
void shmem_ctx_uint32_atomic_fetch_or_nbi(shmem_ctx_t ctx, uint32_t *fetch, uint32_t *dest, uint32_t value, int pe);
long long shmem_longlong_cswap(long long *dest, long long cond, long long value, int pe);
float shmem_float_fetch(const float *source, int pe);
void shmem_ushort_wait_until(unsigned short *ivar, int cmp, unsigned short cmp_value);
size_t shmem_int_wait_until_any(int *ivars, size_t nelems, const int *status, int cmp, int cmp_value);
size_t shmem_int_wait_until_some_vector(int *ivars, size_t nelems, size_t *indices, const int *status, int cmp,
                                        const int *cmp_values);
int shmem_long_test_all_vector(long *ivars, size_t nelems, const int *status, int cmp, const long *cmp_values);
void shmem_ctx_pe_quiet(shmem_ctx_t ctx, const int *target_pes, size_t npes);
int shmem_ctx_create(long options, shmem_ctx_t *ctx);
void shmem_ctx_session_start(shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long mask);
int shmem_team_split_strided(shmem_team_t parent_team, int start, int stride, int size,
                             const shmem_team_config_t *config, long config_mask, shmem_team_t *new_team);
int shmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask,
                        shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask,
                        shmem_team_t *yaxis_team);
int shmem_team_get_config(shmem_team_t team, long config_mask, shmem_team_config_t *config);
int shmem_char_broadcast(shmem_team_t team, char *dest, const char *source, size_t nelems, int PE_root);
int shmem_alltoallsmem(shmem_team_t team, void *d, const void *s, ptrdiff_t dst, ptrdiff_t sst, size_t nelems);
int shmem_uint8_xor_reduce(shmem_team_t team, uint8_t *dest, const uint8_t *source, size_t nreduce);
int shmem_double_sum_inscan(shmem_team_t team, double *dest, const double *source, size_t nelems);
void shmem_collect64(void *dest, const void *source, size_t nelems, int PE_start, int logPE_stride, int PE_size,
                     long *pSync);
void shmem_broadcast32(void *dest, const void *source, size_t nelems, int PE_root, int PE_start, int logPE_stride,
                       int PE_size, long *pSync);
void shmem_alltoalls32(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int PE_start,
                       int logPE_stride, int PE_size, long *pSync);
void shmem_short_and_to_all(short *dest, const short *source, int nreduce, int PE_start, int logPE_stride, int PE_size,
                            short *pWrk, long *pSync);
__extension__ void shmem_complexf_prod_to_all(float _Complex *dest, const float _Complex *source, int nreduce,
                                              int PE_start, int logPE_stride, int PE_size, float _Complex *pWrk,
                                              long *pSync);
void shmem_barrier(int PE_start, int logPE_stride, int PE_size, long *pSync);
int shmem_test_lock(long *lock);
void shmem_pcontrol(int level, ...);
void *shmemalign(size_t alignment, size_t size);
void start_pes(int npes);
int _num_pes(void);
#ifdef __cplusplus
}
#endif

static const shmem_ctx_t usable_in_initialisers = SHMEM_CTX_DEFAULT;
static const shmem_team_t teams[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID};
const void *const used[] = {&usable_in_initialisers, teams};
const char vendor[SHMEM_MAX_NAME_LEN] = SHMEM_VENDOR_STRING;
static long sync_of_old_programs[_SHMEM_REDUCE_SYNC_SIZE] = {_SHMEM_SYNC_VALUE};
long *const used_too = sync_of_old_programs;
