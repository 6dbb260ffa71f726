/*
 * ntbring.h: the C ABI between MPICH's netmod (C) and libntbring (Rust).
 *
 * It is the only contract between the two sides. Both are compiled from this
 * one file: the netmod includes it, and build.rs runs bindgen over it.
 *
 * Threads: a function that takes an endpoint must not be called by two threads
 * at the same time for the same endpoint (MPICH's locks ensure it). Exceptions
 * are ntbring_idle, ntbring_rest and ntbring_group_close, which any thread may call at any time
 * between ntbring_connect and ntbring_close. A process may have several endpoints.
 * Each of them belongs to a ring of its own, with one endpoint of each other
 * process, and different endpoints may be used by different threads at once.
 *
 * No function blocks unless its description says so, except that a call may wait
 * while a thread of the library copies the present chunk of a payload. The time of
 * each wait is bounded.
 */
#ifndef NTBRING_H_INCLUDED
#define NTBRING_H_INCLUDED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this file, which is raised whenever the meaning of anything in it changes. */
#define NTBRING_ABI_VERSION 28

/* Largest number of hosts of a ring. */
#define NTBRING_HOSTS_MAX 64

/* An upper limit for the size of an address, in bytes. */
#define NTBRING_ADDRESS_MAX 256

/* Return codes. Zero and above: success. Below zero: an error, whose text
 * ntbring_error_text returns. */
#define NTBRING_OK 0            /* done */
#define NTBRING_PENDING 1       /* not yet done */
#define NTBRING_NONE 0          /* ntbring_poll, ntbring_setting, ntbring_counter,
                                 * ntbring_writer_open: nothing there;
                                 * ntbring_schedule_next: the collective is complete */
#define NTBRING_SOME 1          /* ntbring_poll: *event is filled in; ntbring_setting,
                                 * ntbring_counter: *variable is filled in;
                                 * ntbring_schedule_next: *step is filled in;
                                 * ntbring_writer_open: *writer is one */
#define NTBRING_NO_GROUP 2      /* ntbring_group_open: no mailbox is free at all members */
#define NTBRING_BY_MESSAGES 3   /* ntbring_schedule_begin: messages between all ranks are faster */
#define NTBRING_ERR_ARGUMENT (-1)       /* the caller broke the contract of this file */
#define NTBRING_ERR_SETTING (-2)        /* a bad NTBRING_* variable, or hosts that disagree */
#define NTBRING_ERR_RESOURCE (-3)       /* no memory, no space in /dev/shm, too small a window */
#define NTBRING_ERR_PEER (-4)   /* a peer died or does not answer */
#define NTBRING_ERR_PROTOCOL (-5)       /* a peer wrote what the protocol does not allow */
#define NTBRING_ERR_INTERNAL (-6)       /* a defect of libntbring; the text says where */

typedef struct ntbring_endpoint ntbring_endpoint_t;

/* Returns the version of this file with which the library was built. The caller must call it before
 * any other function and compare the result with NTBRING_ABI_VERSION. */
uint32_t ntbring_abi_version(void);

/* Returns the text of the calling thread's latest error: one line or more, never NULL,
 * valid until the thread's next call into this library. */
const char *ntbring_error_text(void);

/* Receives that no message has matched yet. */
typedef struct ntbring_receives {
    uint64_t count;             /* number of receives */
    uint64_t bytes;             /* sum of the sizes of their buffers */
} ntbring_receives_t;

/* The caller's queues of receives and of messages, which tools show. */
typedef struct ntbring_queues {
    int32_t peers;              /* number of peers */
    ntbring_receives_t *receives;       /* peers + 1 entries: for each peer the receives of its
                                         * messages, then those of messages of any peer */
    uint64_t unexpected;        /* messages that no receive has matched yet */
    uint64_t unexpected_bytes;  /* bytes of them that the caller keeps */
} ntbring_queues_t;

/* Adds the caller's queues to *queues, whose numbers are 0 before. It is called in ntbring_poll, when
 * a tool asks for them, and must not call this library. */
typedef void (*ntbring_queues_fn) (void *cookie, ntbring_queues_t * queues);

/* Properties of a job that a process knows before it opens an endpoint. */
typedef struct ntbring_job {
    int32_t rank;               /* rank of this process, 0 .. size-1 */
    int32_t size;               /* number of ranks in the job */
    int32_t hosts;              /* number of hosts, 1 .. NTBRING_HOSTS_MAX, which form the ring in
                                 * order */
    const int32_t *host_of;     /* size entries: the host of each rank, 0 .. hosts-1 */
    int32_t vci;                /* number of this endpoint in the process, shown to the user */
    uint64_t charged;           /* a bit for each handler whose messages are matched with receives,
                                 * and are stored by the receiver as unexpected messages until
                                 * then; the same in all ranks */
    ntbring_queues_fn queues;   /* NULL: the caller has no queues */
    void *queues_cookie;        /* passed to queues */
} ntbring_job_t;

/* Sizes on which the caller's choice of a function depends. They are constant once the endpoint
 * is connected. */
typedef struct ntbring_limits {
    uint64_t header_max;        /* largest hdr_size of a message, bytes */
    uint64_t packed_max;        /* largest header + payload that is one entry of a lane, bytes */
    uint64_t eager_max;         /* largest header + payload to be sent without an offer, bytes */
    uint64_t block_max;         /* largest block of a small allgather, bytes; the same at all
                                 * ranks */
} ntbring_limits_t;

/* Opens an endpoint: reads the settings and allocates the memory that this process owns. The arrays
 * in job are not used after the return. */
int ntbring_open(const ntbring_job_t * job, ntbring_endpoint_t ** endpoint);

/* Checks that there is enough space for the memory that MPICH itself shares between the ranks of a
 * host. It must be called after all ranks of the job have called ntbring_open. */
int ntbring_check_space(ntbring_endpoint_t * endpoint);

/* Writes this process's address, at most NTBRING_ADDRESS_MAX bytes, and its size. Before
 * ntbring_connect it is the address for that function, whose size is the same in all ranks. After
 * ntbring_connect it is the address with which any other process calls ntbring_peer_add. */
int ntbring_address(ntbring_endpoint_t * endpoint, void *address, uint64_t * size);

/* Joins the ring: performs the handshake with both neighbours and starts forwarding. addresses
 * holds the addresses of all ranks: size entries, stride bytes apart, in rank order.
 * Blocks until the neighbours have answered, or returns an error after a configured time. */
int ntbring_connect(ntbring_endpoint_t * endpoint, const void *addresses, uint64_t stride);

/* Writes the address of a peer, with which other processes call ntbring_peer_add, at most
 * NTBRING_ADDRESS_MAX bytes, and its size. */
int ntbring_peer_address(ntbring_endpoint_t * endpoint, int32_t peer, void *address,
                         uint64_t * size);

/* Adds a process outside the job as a peer, so that messages can be sent to it. address is the
 * address that the process has after it has joined its own ring. The number of the peer is the
 * job's size or above, and stays the same if the process is added again; the number of a process of
 * this job is its rank. NTBRING_PENDING: the caller must poll and then try again. Both processes
 * must be on this machine and run by the same user. To receive from the process, only polling is
 * needed. */
int ntbring_peer_add(ntbring_endpoint_t * endpoint, const void *address, uint64_t size,
                     int32_t * peer);

/* Releases the number of a peer outside the job that is lost (NTBRING_EVENT_LOST), when the caller
 * does not use the number any more: ntbring_peer_add may assign it to another process. It has no
 * effect for any other peer. */
int ntbring_peer_drop(ntbring_endpoint_t * endpoint, int32_t peer);

/* Largest size of a connection message in bytes. */
#define NTBRING_DPM_MAX 512

/* Connection messages connect two processes of different jobs (MPI_Comm_connect and
 * MPI_Comm_accept) before they have a communicator. A process that knows a peer's address and a
 * tag sends a request with ntbring_dpm_send. A thread of the peer that waits for requests under
 * this tag receives it with ntbring_dpm_receive and replies with ntbring_dpm_send. The first
 * process then receives the reply with ntbring_dpm_receive. The meaning of a call follows from
 * the earlier calls of its thread. ntbring_dpm_receive returns NTBRING_PENDING if nothing has
 * arrived; the caller polls in between. ntbring_dpm_withdraw: the process that sent a request
 * stops waiting for the reply. */
int ntbring_dpm_send(ntbring_endpoint_t * endpoint, int32_t peer, uint32_t tag, const void *bytes,
                     uint64_t size);
int ntbring_dpm_receive(ntbring_endpoint_t * endpoint, uint32_t tag, void *bytes, uint64_t size);
int ntbring_dpm_withdraw(ntbring_endpoint_t * endpoint, uint32_t tag);

/* Writes the sizes that hold for this endpoint, which must be connected. */
int ntbring_limits(ntbring_endpoint_t * endpoint, ntbring_limits_t * limits);

/* Copies bytes [offset, offset + max) of a message's packed payload to dest, or
 * fewer, if an element of the datatype would be cut. Returns the number of bytes copied, or a
 * negative number on failure. It must not call back into this library. */
typedef int64_t(*ntbring_pack_fn) (void *cookie, uint64_t offset, void *dest, uint64_t max);

typedef struct ntbring_message {
    int32_t dest;               /* rank, or number of a peer that was added */
    uint16_t handler;           /* 0 .. 63, passed to the receiver */
    const void *hdr;            /* copied before the return */
    uint64_t hdr_size;
    const void *data;           /* contiguous payload; ignored if pack is set */
    uint64_t data_size;
    ntbring_pack_fn pack;       /* NULL for contiguous payload */
    void *cookie;               /* passed to pack and returned in NTBRING_EVENT_SENT */
} ntbring_message_t;

/* Sends a message. NTBRING_OK: the library does not need the caller's memory any more (always
 * returned for messages without payload and cookie). NTBRING_PENDING: the payload must stay valid
 * until the NTBRING_EVENT_SENT with its cookie. Messages to one destination are delivered in the
 * order of the calls, except that messages of other handlers may overtake those of charged ones,
 * which wait for credit while the receiver stores too many unexpected messages of this sender. */
int ntbring_send(ntbring_endpoint_t * endpoint, const ntbring_message_t * message);

/* Sends a message with contiguous payload as a whole, or not at all. Its header consists of two
 * words, of which the receiver gets `hdr` first. They are passed by value: a load that differs in
 * size from the store before it (failed store-to-load forwarding) would have to wait until all
 * earlier stores have left the processor's store buffer.
 * NTBRING_OK: the library does not need the caller's memory any more. NTBRING_PENDING: there is no
 * room for all of the message now, and ntbring_send would queue it; or it is larger than
 * ntbring_eager_max, and should be offered. */
int ntbring_send_now(ntbring_endpoint_t * endpoint, int32_t dest, uint16_t handler,
                     uint64_t hdr, uint64_t hdr_more, const void *data, uint64_t data_size);

/* Returns the largest header + payload to be sent to this destination without an offer, bytes. */
uint64_t ntbring_eager_max(ntbring_endpoint_t * endpoint, int32_t dest);

/* Starts a rendezvous: sends a message's header (RTS), and keeps its payload, which must not be
 * empty, until the receiver has fetched it, which NTBRING_EVENT_TAKEN reports with its cookie.
 * Returns NTBRING_PENDING, unless it fails. */
int ntbring_offer(ntbring_endpoint_t * endpoint, const ntbring_message_t * message);

/* Takes back the message that was sent or offered with this cookie, if nothing of it has left. With
 * a nonzero dropped it takes back an offer that its receiver has discarded. NTBRING_SOME: the
 * library does not need the caller's memory any more, and no event for the message will follow.
 * NTBRING_NONE: it is too late, or there is no such offer. */
int ntbring_withdraw(ntbring_endpoint_t * endpoint, int32_t dest, void *cookie, int32_t dropped);

/* An offer (RTS) as its receiver sees it. It may be copied. */
typedef struct ntbring_offer {
    int32_t src;                /* rank, or number of the peer, that made it */
    uint32_t id;
    uint64_t address;
    uint64_t total;             /* size of the payload */
} ntbring_offer_t;

/* Fetches the first size bytes of an offered payload (CTS). It may be called once for each offer.
 * With a buffer, they are written to it. NTBRING_OK: they have arrived. NTBRING_PENDING: they will
 * have arrived at the NTBRING_EVENT_FETCHED with this cookie, until which the buffer must stay
 * valid. Without a buffer, they are passed in NTBRING_EVENT_CHUNKs with this cookie. */
int ntbring_accept(ntbring_endpoint_t * endpoint, const ntbring_offer_t * offer, void *buffer,
                   uint64_t size, void *cookie);

/* Kinds of events that ntbring_poll returns. */
#define NTBRING_EVENT_MESSAGE 1 /* a whole message: hdr, data */
#define NTBRING_EVENT_BEGIN 2   /* a message whose payload follows: hdr, total */
#define NTBRING_EVENT_CHUNK 3   /* a chunk of a payload: cookie, data, last */
#define NTBRING_EVENT_SENT 4    /* a pending message's payload may be reused: cookie, handler */
#define NTBRING_EVENT_OFFER 5   /* a message whose payload may be fetched: hdr, offer, total */
#define NTBRING_EVENT_FETCHED 6 /* a payload is in its buffer: cookie */
#define NTBRING_EVENT_TAKEN 7   /* an offered payload may be reused: cookie */
#define NTBRING_EVENT_REMOTE 8  /* an operation of ntbring_remote has ended: cookie */
#define NTBRING_EVENT_STALLED 9 /* a sender holds messages back until earlier ones are discharged:
                                 * src; call ntbring_allow_more if a receive or probe waits for
                                 * one of them */
#define NTBRING_EVENT_LOST 10   /* a rank or peer has died or is permanently unreachable, or a peer
                                 * has left: src, last; ntbring_error_text returns the reason.
                                 * Operations with it that are pending or are begun later never
                                 * complete and have no event. Once peers are lost, the event of
                                 * one of them is repeated about every second */

typedef struct ntbring_event {
    uint32_t kind;              /* NTBRING_EVENT_* */
    int32_t src;                /* rank, or number of the peer, that sent it; INT32_MIN: none */
    uint16_t handler;
    uint32_t last;              /* CHUNK: nonzero in the last chunk; LOST: nonzero if the peer has
                                 * left in an orderly way */
    void *hdr;                  /* 8-byte aligned */
    uint64_t hdr_size;
    void *data;                 /* MESSAGE, CHUNK; any alignment. BEGIN: the caller may set it
                                 * before ntbring_release if the payload goes to one contiguous
                                 * buffer, which must stay valid until the payload is complete:
                                 * there is then one FETCHED with the cookie instead of CHUNKs */
    uint64_t data_size;         /* BEGIN: size of that buffer; the rest of the payload is dropped */
    uint64_t total;             /* BEGIN, OFFER: size of the whole payload; MESSAGE: data_size */
    void *cookie;               /* BEGIN: the caller sets it before ntbring_release; CHUNK, SENT,
                                 * FETCHED, TAKEN, REMOTE: as given by the caller */
    ntbring_offer_t offer;      /* OFFER */
    uint64_t charge;            /* MESSAGE, BEGIN, OFFER: amount that the sender was charged for an
                                 * unexpected message; if the caller stores the message, it sets
                                 * this to 0 before ntbring_release and calls ntbring_discharge
                                 * later */
    uint64_t token[4];          /* belongs to the library */
    uint32_t more;              /* nonzero if the next event is available: poll again soon */
} ntbring_event_t;

/* Looks for one event and sends pending data. hdr and data stay valid until
 * ntbring_release, which must follow every NTBRING_SOME, in any order. Both may
 * be called while other events are not released yet. */
int ntbring_poll(ntbring_endpoint_t * endpoint, ntbring_event_t * event);
int ntbring_release(ntbring_endpoint_t * endpoint, ntbring_event_t * event);

/* Gives the charge of an unexpected message that is not stored any more back to its sender. */
int ntbring_discharge(ntbring_endpoint_t * endpoint, int32_t src, uint64_t charge);

/* Tells that a receive or probe waits for a message of that sender (negative: of any sender) and
 * that none of the messages that have arrived matches. A stalled sender is then allowed to send
 * more than its share, with a warning. delayed: it is allowed only after some time. */
int ntbring_allow_more(ntbring_endpoint_t * endpoint, int32_t src, int32_t delayed);

/* Window memory. A segment is memory of one rank that other ranks can map, so that they read and
 * write it directly: the ranks of its host, and those of neighbouring hosts whose ports are
 * cache-coherent. For all other ranks, the rank's host performs operations on it
 * (ntbring_remote). A segment has a lock for operations that must be atomic with respect to each
 * other, and a second lock for MPI_Win_lock, which the library itself does not use. */
typedef struct ntbring_segment ntbring_segment_t;

/* The address of a segment, which other ranks need to open it. Its words belong to the library. */
typedef struct ntbring_segment_address {
    uint64_t words[4];
} ntbring_segment_address_t;

/* Returns 1 if this rank can map the segments of that rank (a rank can map its own), 0 if not.
 * The relation is symmetric. */
int ntbring_is_mappable(ntbring_endpoint_t * endpoint, int32_t rank);

/* Allocates a segment of size bytes, which must not be 0. It is zeroed and page-aligned.
 * All of its memory is reserved, or the call fails with NTBRING_ERR_RESOURCE. */
int ntbring_segment_create(ntbring_endpoint_t * endpoint, uint64_t size,
                           ntbring_segment_t ** segment, void **base,
                           ntbring_segment_address_t * address);

/* Maps the segment of a rank for which ntbring_is_mappable returns 1. */
int ntbring_segment_open(ntbring_endpoint_t * endpoint, int32_t rank,
                         const ntbring_segment_address_t * address,
                         ntbring_segment_t ** segment, void **base);

/* Allocates a segment of size bytes of which only the first `backed` bytes are reserved. The others
 * must not be accessed, by any rank, before ntbring_segment_grow has reserved them. It must not be
 * sealed. Its base is a multiple of 2 MiB. */
int ntbring_segment_create_growing(ntbring_endpoint_t * endpoint, uint64_t size, uint64_t backed,
                                   ntbring_segment_t ** segment, void **base,
                                   ntbring_segment_address_t * address);

/* Reserves len bytes at `from` of a segment that this rank has created, or fails with
 * NTBRING_ERR_RESOURCE. Bytes that are reserved already keep their contents. */
int ntbring_segment_grow(ntbring_segment_t * segment, uint64_t from, uint64_t len);

/* Replaces this process's memory at an address by a segment that this rank has created and not
 * sealed: copies its contents into the segment, and maps the segment there. The first `whole` bytes
 * are copied as a whole; the rest must be private memory without a file, of which only pages that
 * were written are copied. The address and the size
 * of the segment must be multiples of the page size, and no other thread may access the memory
 * during the call. The memory stays mapped when the segment is freed. */
int ntbring_segment_take_place_of(ntbring_segment_t * segment, void *address, uint64_t whole);

/* The bell of a segment. Threads of any process that wait until bytes of the segment change sleep on
 * it. A rank that changes bytes of a mapped segment looks at the number of sleepers afterwards, and
 * rings if it is not 0; hosts do so for the operations that they perform. */

/* Writes the address of the number of sleepers, which is valid until the segment is freed. Returns 1
 * if a rank must execute a full memory barrier between its change and its look at it, and 0 if a
 * compiler barrier suffices. */
int ntbring_segment_sleepers(ntbring_segment_t * segment, const uint32_t ** sleepers);

/* Wakes all sleepers. */
int ntbring_segment_ring(ntbring_segment_t * segment);

/* Returns a value other than 0 if a thread shall not sleep. It must not call back into this
 * library. */
typedef int32_t(*ntbring_is_over_fn) (void *cookie);

/* Sleeps until the bell rings, at most about max_us microseconds. is_over is called once this thread
 * counts as a sleeper. Any thread may call it. */
int ntbring_segment_sleep(ntbring_segment_t * segment, uint32_t max_us, ntbring_is_over_fn is_over,
                          void *cookie);

/* Prevents other processes from opening this segment from now on. To be called when all ranks that
 * need it have opened it. */
int ntbring_segment_seal(ntbring_segment_t * segment);

/* Takes a segment's lock, for a few accesses without any other call before the unlock.
 * Blocks while another rank holds it; fails if that rank has died while holding it. */
int ntbring_segment_lock(ntbring_endpoint_t * endpoint, ntbring_segment_t * segment);
int ntbring_segment_unlock(ntbring_segment_t * segment);

/* Tries to take a segment's second lock, exclusive (alone) or shared: NTBRING_OK, or
 * NTBRING_PENDING if it is not free for that. A caller that wants it exclusively must repeat the
 * call until it has the lock. */
int ntbring_segment_acquire(ntbring_endpoint_t * endpoint, ntbring_segment_t * segment,
                            int32_t alone);
int ntbring_segment_release(ntbring_segment_t * segment, int32_t alone);

/* Unmaps a segment. Its memory exists until all other ranks have unmapped it, too. The owner must
 * ensure that no rank will request an operation on it any more (ntbring_remote). */
int ntbring_segment_free(ntbring_endpoint_t * endpoint, ntbring_segment_t * segment);

/* Writing to segments of ranks on neighbouring hosts that this rank cannot map, but whose memory its
 * host's adapter can write: stores through the link's window. Nothing is ever read across the link. */
typedef struct ntbring_writer ntbring_writer_t;

/* Returns 1 if this rank may open writers to the segments of that rank, 0 if not. */
int ntbring_is_writable(ntbring_endpoint_t * endpoint, int32_t rank);

/* Opens a writer to a segment of a rank for which ntbring_is_writable returns 1: NTBRING_SOME, or
 * NTBRING_NONE if that rank's adapter does not reach the segment, so that operations on it must be
 * requests (ntbring_remote). */
int ntbring_writer_open(ntbring_endpoint_t * endpoint, int32_t rank,
                        const ntbring_segment_address_t * address, ntbring_writer_t ** writer);

/* Returns the number of bytes at the start of the segment that the writer can write. */
uint64_t ntbring_writer_reach(const ntbring_writer_t * writer);

/* Writes size bytes at an offset of the segment, which must be reserved there. The data may be reused
 * when it returns. Aligned elements of 1, 2, 4 and 8 bytes are written by one store if size is theirs.
 * Writes to one host, and operations on its segments (ntbring_remote) that begin later, become visible
 * there in order. An operation that began earlier may follow. Any thread may call it. */
int ntbring_writer_write(ntbring_writer_t * writer, uint64_t offset, const void *data, uint64_t size);

/* Returns 1 if the link has been up since this rank joined, 0 if writes may have been lost. A write is
 * visible if an operation on a segment of that rank was begun after it and has ended, and this returns
 * 1 then. */
int ntbring_writer_is_intact(const ntbring_writer_t * writer);

/* Closes a writer; NULL is allowed. */
int ntbring_writer_free(ntbring_writer_t * writer);

/* Returns 1 if that rank's host performs operations on its segments for this rank, 0 if not. It
 * does if the rank belongs to this job and its segments cannot be mapped. */
int ntbring_is_served(ntbring_endpoint_t * endpoint, int32_t rank);

/* Operations on size bytes of a segment. */
#define NTBRING_REMOTE_PUT 0    /* writes data */
#define NTBRING_REMOTE_GET 1    /* reads into result */
#define NTBRING_REMOTE_ACCUMULATE 2     /* accumulates data with op: numbers of one type */
#define NTBRING_REMOTE_FETCH 3  /* the same, and copies the old content to result */
#define NTBRING_REMOTE_SWAP 4   /* compare-and-swap: data has 2 * size bytes; if the content equals
                                 * the first half, it becomes the second; copies the old content
                                 * to result; at most 16 bytes */
#define NTBRING_REMOTE_ACQUIRE 5        /* takes the second lock, waiting for it
                                         * (ntbring_segment_acquire); op: 1 exclusive, 0 shared */
#define NTBRING_REMOTE_RELEASE 6        /* ntbring_segment_release; op: 1 exclusive, 0 shared */
#define NTBRING_REMOTE_ATOMIC 7 /* as FETCH, on one aligned integer of 4 or 8 bytes; op: SUM, BAND,
                                 * BOR, BXOR, REPLACE, NO_OP */
#define NTBRING_REMOTE_ATOMIC_SWAP 8    /* as SWAP, on one aligned integer of 4 or 8 bytes */

#define NTBRING_OP_SUM 0
#define NTBRING_OP_PROD 1
#define NTBRING_OP_MAX 2
#define NTBRING_OP_MIN 3
#define NTBRING_OP_LAND 4
#define NTBRING_OP_LOR 5
#define NTBRING_OP_LXOR 6
#define NTBRING_OP_BAND 7
#define NTBRING_OP_BOR 8
#define NTBRING_OP_BXOR 9
#define NTBRING_OP_REPLACE 10
#define NTBRING_OP_NO_OP 11     /* FETCH with it has no data */

/* Types of numbers and the operations that they allow. Bytes: REPLACE, NO_OP and bitwise
 * operations; integers: all; floating point: all but bitwise; complex: SUM, PROD, REPLACE, NO_OP.
 * */
#define NTBRING_TYPE_BYTES 0    /* elements of up to 96 bytes whose size divides 96 are not torn */
#define NTBRING_TYPE_INT8 1
#define NTBRING_TYPE_UINT8 2
#define NTBRING_TYPE_INT16 3
#define NTBRING_TYPE_UINT16 4
#define NTBRING_TYPE_INT32 5
#define NTBRING_TYPE_UINT32 6
#define NTBRING_TYPE_INT64 7
#define NTBRING_TYPE_UINT64 8
#define NTBRING_TYPE_FLOAT 9
#define NTBRING_TYPE_DOUBLE 10
#define NTBRING_TYPE_COMPLEX 11 /* two floats */
#define NTBRING_TYPE_DOUBLE_COMPLEX 12  /* two doubles */

typedef struct ntbring_remote {
    int32_t dest;               /* rank that owns the segment */
    uint8_t action;             /* NTBRING_REMOTE_* */
    uint8_t op;                 /* NTBRING_OP_* */
    uint8_t type;               /* NTBRING_TYPE_* */
    uint8_t reports_sent;       /* nonzero: if ntbring_remote returns NTBRING_PENDING, an
                                 * NTBRING_EVENT_SENT with the cookie follows when data may be
                                 * reused, before the NTBRING_EVENT_REMOTE */
    ntbring_segment_address_t segment;
    uint64_t offset;            /* bytes */
    uint64_t size;              /* bytes; 0 for ACQUIRE and RELEASE */
    const void *data;           /* data and result must stay valid until the events */
    void *result;
    void *cookie;               /* returned in NTBRING_EVENT_REMOTE */
} ntbring_remote_t;

/* Returns 1 if hosts can perform an operation on numbers of a type, and 0 otherwise. */
int ntbring_can_compute(uint8_t op, uint8_t type);

/* Begins an operation on a segment of a rank that is served. An NTBRING_EVENT_REMOTE follows when the
 * operation is complete, which does not depend on that rank's progress. NTBRING_OK: data may be
 * reused. ACCUMULATE, FETCH and SWAP take the segment's lock, and those to one rank are performed in
 * the order of the calls. PUT, GET, ATOMIC and ATOMIC_SWAP to one rank are performed in the order of
 * the calls, too; ATOMIC and ATOMIC_SWAP are atomic with respect to each other and to atomic
 * instructions of processors. If the operation fails, ntbring_poll returns an error before the
 * event. */
int ntbring_remote(ntbring_endpoint_t * endpoint, const ntbring_remote_t * remote);

/* Small collectives. A group has one rank on each host of the ring. In a small allgather each
 * member contributes a block, all of the same size, and gets the blocks of all members. */
/* Largest size in bytes, on any ring, of a block of a small allgather, and of all its blocks
 * together. */
#define NTBRING_BLOCK_MAX 2040
#define NTBRING_BLOCKS_MAX 8192

/* Writes the mailboxes that this rank offers for a group: a bit for each free one, or 0 while an
 * earlier offer is open. The ranks that want to open a group combine their offers by bitwise AND,
 * and then all call ntbring_group_open, with all = 0 if the combination has failed. */
int ntbring_group_offer(ntbring_endpoint_t * endpoint, uint32_t * offer);

/* Opens a group. id: any number that no other open group of this rank has.
 * ranks: one for each host, in the order of the hosts. mine: this rank's offer.
 * all: the combination of all offers. */
int ntbring_group_open(ntbring_endpoint_t * endpoint, uint32_t id, const int32_t * ranks,
                       uint32_t mine, uint32_t all);

/* Closes a group in which no member will start an operation any more, at the latest with the next
 * ntbring_group_offer. A group that is not open is ignored. */
int ntbring_group_close(ntbring_endpoint_t * endpoint, uint32_t id);

/* Begins a small allgather with a block of at most limits.block_max bytes. The group's previous one
 * must have ended. The block is copied before the return. NULL with a size other than 0 means that
 * this rank has failed and has no block: the allgather will fail at all members. */
int ntbring_allgather(ntbring_endpoint_t * endpoint, uint32_t id, const void *block, uint64_t size);

/* Waits for the end of a small allgather. It checks for blocks about `looks` times and may yield
 * the core in between. NTBRING_PENDING: blocks are still missing, and the caller must poll before
 * the next call. NTBRING_OK: it has ended, and `blocks` holds all blocks, in the order of ranks. */
int ntbring_allgather_wait(ntbring_endpoint_t * endpoint, uint32_t id, void *blocks, uint64_t size,
                           uint32_t looks);

/* Large collectives of a communicator with one rank on each host, in the order of hosts. The
 * library chooses between methods; one of them is a schedule, in which ranks pass on data from
 * neighbour to neighbour. The library returns the steps of this rank, and the caller carries them
 * out with messages of its own. These functions need no endpoint, and any thread may call them. */

/* Kinds of collectives. */
#define NTBRING_BCAST 0         /* the root's output becomes the output of all ranks */
#define NTBRING_REDUCE 1        /* reductions combine elements one by one, in any order of ranks */
#define NTBRING_ALLREDUCE 2
#define NTBRING_ALLGATHER 3
#define NTBRING_ALLTOALL 4

typedef struct ntbring_collective {
    int32_t kind;
    int32_t ranks;              /* number of ranks, at most NTBRING_HOSTS_MAX */
    int32_t rank;               /* this rank */
    int32_t root;               /* BCAST, REDUCE; 0 otherwise */
    uint64_t elements;          /* elements of a vector, or of one rank's block */
    uint64_t element_size;      /* size of an element in bytes; the same at all ranks */
    int32_t in_place;           /* nonzero if this rank's input lies in its output */
} ntbring_collective_t;

typedef struct ntbring_schedule {
    uint64_t scratch;           /* number of elements of temporary memory that the steps use */
    uint64_t state[16];         /* belongs to the library */
} ntbring_schedule_t;

/* Buffers of the caller that steps name. */
#define NTBRING_INPUT 0         /* this rank's contribution; in place, it is the output */
#define NTBRING_OUTPUT 1
#define NTBRING_SCRATCH 2       /* the temporary memory */

/* Actions of steps. A send or receive begins with a request that is not in use, and uses it until
 * it has been waited for. Messages between two ranks are matched in their order. */
#define NTBRING_STEP_SEND 0     /* begins to send: peer, from, count, request */
#define NTBRING_STEP_RECEIVE 1  /* begins to receive: peer, to, count, request */
#define NTBRING_STEP_SENT 2     /* waits for the end of a send: request */
#define NTBRING_STEP_RECEIVED 3 /* waits for the end of a receive of exactly count elements:
                                 * request */
#define NTBRING_STEP_COPY 4     /* copies: from, to, count */
#define NTBRING_STEP_REDUCE 5   /* combines elements with those at another place, which get the
                                 * results: from, to, count */

/* Number of requests that a schedule uses at most. */
#define NTBRING_REQUESTS_MAX (4 * NTBRING_HOSTS_MAX)

typedef struct ntbring_step {
    uint32_t action;            /* NTBRING_STEP_* */
    int32_t peer;               /* rank */
    uint32_t request;           /* 0 .. NTBRING_REQUESTS_MAX-1 */
    uint32_t from;              /* buffers: NTBRING_INPUT and so on */
    uint32_t to;
    uint64_t from_offset;       /* positions in the buffers, in elements */
    uint64_t to_offset;
    uint64_t count;             /* number of elements */
} ntbring_step_t;

/* Chooses the method for a collective whose blocks are larger than those of an allgather; all ranks
 * choose the same. NTBRING_OK: a schedule, which is filled in. NTBRING_BY_MESSAGES: there is no
 * schedule. */
int ntbring_schedule_begin(const ntbring_collective_t * collective, ntbring_schedule_t * schedule);

/* Writes the next step, which the caller carries out before the next call, or returns NTBRING_NONE
 * after the last. */
int ntbring_schedule_next(ntbring_schedule_t * schedule, ntbring_step_t * step);

/* Collectives through shared buffers: every member of a communicator has a buffer that all members
 * map. That is possible among the ranks of one host, and among all ranks if all hosts are on one
 * machine. */
typedef struct ntbring_shared ntbring_shared_t;

/* Most members of a group. */
#define NTBRING_SHARED_MAX 64

/* The description of a member's buffer, with which others open it. All zero: it has none. */
typedef struct ntbring_shared_card {
    ntbring_segment_address_t address;
    uint64_t grain;             /* bytes that members post at a time */
    uint64_t kernel_copies;     /* when the kernel copies blocks: as the library understands it */
} ntbring_shared_card_t;

/* Returns 1 if buffers can be shared with `rank`, else 0. */
int ntbring_can_share(ntbring_endpoint_t * endpoint, int32_t rank);

/* Creates this rank's buffer for a group of `members` ranks, and describes it in *card. */
int ntbring_shared_create(ntbring_endpoint_t * endpoint, int32_t members,
                          ntbring_shared_t ** shared, ntbring_shared_card_t * card);

/* Opens the buffers of all members, of which this rank is number `me`. ranks, cards: of all
 * members. If it fails at one member, the group cannot be used. */
int ntbring_shared_open(ntbring_endpoint_t * endpoint, ntbring_shared_t * shared, int32_t me,
                        const int32_t * ranks, const ntbring_shared_card_t * cards);

/* Prevents that further processes open this rank's buffer. To be called when all members have
 * opened it. */
int ntbring_shared_seal(ntbring_shared_t * shared);

/* Destroys this rank's part of a group. Other members may still use theirs. NULL is ignored. */
int ntbring_shared_free(ntbring_shared_t * shared);

/* Wakes a rank that may sleep in a collective. */
int ntbring_wake(ntbring_endpoint_t * endpoint, int32_t rank);

/* To be called after a wait for something else than an event. Any thread may call it. */
int ntbring_found(ntbring_endpoint_t * endpoint);

/* Passes on what is on its way through this host, if there was anything lately; for a rank that waits
 * for something else than an event. NTBRING_SOME: there was something. */
int ntbring_relay(ntbring_endpoint_t * endpoint);

#define NTBRING_SHARED_BARRIER 0
#define NTBRING_SHARED_BCAST 1  /* output: the data, at the root, too */
#define NTBRING_SHARED_ALLGATHER 2      /* input: this member's block; output: receives */
#define NTBRING_SHARED_ALLTOALL 3       /* input: sends; output: receives */
#define NTBRING_SHARED_REDUCE 4 /* the root alone has an output */
#define NTBRING_SHARED_ALLREDUCE 5
#define NTBRING_SHARED_REDUCE_SCATTER 6 /* input: sends; output: this member's slice */
#define NTBRING_SHARED_SCAN 7
#define NTBRING_SHARED_EXSCAN 8
#define NTBRING_SHARED_FAIL 9   /* this member has failed: so will the collective at members that
                                 * need something of it; root: 1 because a process was lost, else
                                 * 0 */

/* A member's block in a buffer, in bytes. */
typedef struct ntbring_part {
    uint64_t offset;
    uint64_t size;
} ntbring_part_t;

/* Combines `count` elements: to = from (op) to. */
typedef void (*ntbring_fold_fn) (void *cookie, const void *from, void *to, uint64_t count);

/* Lets other work go on, and yields the core; it may sleep until ntbring_wake if may_sleep is not 0.
 * Returns 0 to give up the wait. */
typedef int (*ntbring_pass_time_fn) (void *cookie, int32_t may_sleep);

/* Called between two looks for another member (ntbring_relay): that member may wait for a message on
 * its way through this host. Returns 1 if there was one, else 0. */
typedef int (*ntbring_relay_fn) (void *cookie);

/* Wakes a member of the group (ntbring_wake). */
typedef void (*ntbring_wake_member_fn) (void *cookie, int32_t member);

/* Called after a wait in which pass_time was called (ntbring_found). */
typedef void (*ntbring_found_fn) (void *cookie);

typedef struct ntbring_shared_call {
    int32_t kind;               /* NTBRING_SHARED_* */
    int32_t root;
    const void *input;          /* may be the output in reductions and scans, and this member's
                                 * block of it in an allgather */
    uint64_t input_size;        /* bytes */
    void *output;
    uint64_t output_size;
    const ntbring_part_t *sends;        /* blocks of the input; NULL: equal ones */
    const ntbring_part_t *receives;     /* blocks of the output; NULL: equal ones */
    uint64_t element_size;      /* reductions: bytes */
    int32_t op;                 /* NTBRING_OP_*; -1: only fold knows it */
    int32_t type;               /* NTBRING_TYPE_* */
    ntbring_fold_fn fold;
    ntbring_pass_time_fn pass_time;
    ntbring_relay_fn relay;
    ntbring_wake_member_fn wake;
    ntbring_found_fn found;
    void *cookie;
} ntbring_shared_call_t;

/* Executes a collective, and returns when this member has its result. NTBRING_NONE: pass_time has
 * given up. NTBRING_ERR_PEER: another member has given up. NTBRING_ERR_ARGUMENT: another member has
 * called a collective of another size or has left this one, or the call is impossible. With any
 * result the collective has ended at this member, and the next one can be called. */
int ntbring_shared_run(ntbring_shared_t * shared, const ntbring_shared_call_t * call);

/* The process manager (mpiexec, srun). It gives a process one connection, of the protocol PMI-1,
 * which MPI and OpenSHMEM in the same process share. These functions need no endpoint, and any
 * thread may call them; those that ask the process manager wait for their turn and its answer. */

typedef struct ntbring_pmi_job {
    int32_t rank;               /* rank of this process, 0 .. size-1 */
    int32_t size;               /* number of ranks in the job */
    int32_t spawned;            /* 1 if MPI_Comm_spawn has started the job, else 0 */
    int32_t fd;                 /* the connection; -1: there is no process manager, and the job is
                                 * this process alone */
    int32_t kvsname_max;        /* the name of the key-value space has fewer bytes than this, */
    int32_t keylen_max;         /* a key fewer than this, */
    int32_t vallen_max;         /* and a value fewer than this */
} ntbring_pmi_job_t;

/* Opens the session with the process manager. The first call connects; later calls only count. */
int ntbring_pmi_open(ntbring_pmi_job_t * job);

/* Closes the session once. The last close tells the process manager that this process is done,
 * after which the session cannot be opened again. ntbring_pmi_keep puts that off. */
int ntbring_pmi_close(void);

/* From now on the process manager is told that this process is done only when the process ends (by
 * exit or a return from main) with a closed session, so that the session can be opened again after
 * the last close. A process that ends otherwise (by _exit or a signal) or with an open session is
 * taken for one that has failed, and the process manager ends the job. */
void ntbring_pmi_keep(void);

/* Publishes a value, which all processes can get after a barrier. Key and value must consist of
 * visible ASCII characters, and the key must have no '='. */
int ntbring_pmi_put(const char *key, const char *value);

/* Writes the value of a key, which ends with a zero byte. size: room in value. It is an error if
 * nobody has published the key. */
int ntbring_pmi_get(const char *key, char *value, uint64_t size);

/* Waits until all processes of the job are in this barrier, for any time. It does not matter which
 * user of the session calls it: MPICH's own barriers during its start and end are the same ones. */
int ntbring_pmi_barrier(void);

/* Asks the process manager to end the job with an exit code, even while another thread has the
 * turn. Returns only if there is no process manager, or if it has not ended this process within 10
 * seconds; the caller then ends the process. */
int ntbring_pmi_abort(int32_t code);

/* Writes the host of each rank (size entries), and the number of hosts. They are numbered as in
 * ntbring_job_t; MPICH's variables MPIR_CVAR_NOLOCAL and MPIR_CVAR_NUM_CLIQUES split them. */
int ntbring_pmi_hosts(int32_t * host_of, int32_t * hosts);

/* Takes and gives back the turn, for a client that asks its own questions on the connection. It
 * must write complete lines, and read the whole answer before it gives the turn back. The holder
 * must call no other function of this section but ntbring_pmi_abort. */
void ntbring_pmi_lock(void);
void ntbring_pmi_unlock(void);

/* Size in bytes of the record of a process's latest MPI call: a name and a zero byte. */
#define NTBRING_PMI_CALL_SIZE 64

/* Returns this process's record, zeroes at first, which stays valid until the process ends; NULL if
 * the process manager wants none. It reports the record's contents if the process fails. */
char *ntbring_pmi_call_record(void);

/* The calls of the application in the timeline (NTBRING_TIMELINE), which an endpoint can begin only in
 * ntbring_connect and end only in ntbring_linger or ntbring_close. ntbring_timeline_is_on returns 1 while
 * it is on; waits then have the name in latest, where the process stores the name of the function that
 * it has called last: at most NTBRING_PMI_CALL_SIZE bytes, valid until the process ends, or NULL.
 * While it is on, ntbring_timeline_begin is to be called when a function begins. It returns 0 if calls
 * of that function are not recorded, and then sets *skips to 1, if that is not NULL: it need not be
 * called for that function any more. Otherwise it returns a value for ntbring_timeline_end, to be called
 * when the function ends. function is its name and must never change. Of messages whose handler is
 * charged (ntbring_job_t), the timeline shows bytes 4 to 7 of the header as their tag. Any thread may
 * call the latter two functions at any time. */
int ntbring_timeline_is_on(const char *latest);
uint64_t ntbring_timeline_begin(const char *function, uint8_t *skips);
void ntbring_timeline_end(const char *function, uint64_t begin);

/* A setting or a counter, for tools. name and meaning stay valid until the process ends,
 * value until the endpoint is closed. */
typedef struct ntbring_variable {
    const char *name;
    const char *meaning;
    const char *value;          /* setting: its value, in the form in which a user writes it;
                                 * counter: NULL */
} ntbring_variable_t;

/* Return the settings in use, and the counters, numbered from 0. NTBRING_NONE beyond the last. */
int ntbring_setting(ntbring_endpoint_t * endpoint, uint32_t index, ntbring_variable_t * variable);
int ntbring_counter(uint32_t index, ntbring_variable_t * variable);

/* Writes the value of a counter. Without an endpoint: the value over all closed endpoints of this
 * process together. */
int ntbring_count(ntbring_endpoint_t * endpoint, uint32_t index, uint64_t * value);

/* Waits, for a loop that has found nothing to do: spins, yields or sleeps, depending on the number
 * of calls since the last event, until a doorbell rings, but at most for about max_us microseconds.
 * progress: nonzero if the caller has made progress without an event since its last call, so that
 * another wait begins. It never fails. Returns the number of polls without an event that the caller
 * may make before it has to call it again. */
uint32_t ntbring_idle(ntbring_endpoint_t * endpoint, uint32_t max_us, int32_t progress);

/* Tells that this process will not poll for a while (rests is 1), because it computes or sleeps
 * elsewhere, or that it polls again (0). Packets in transit and requests are then handled at once by
 * the threads of its host. Without the call they take over after about a millisecond. Any thread may
 * call it. */
int ntbring_rest(ntbring_endpoint_t * endpoint, int32_t rests);

/* Returns NTBRING_OK once all sent messages will be delivered even if this process ends, and
 * NTBRING_PENDING before: other processes may have to receive them first, which takes any time. The
 * caller polls in between. After the first call no receive may be posted and no operation begun. */
int ntbring_flush(ntbring_endpoint_t * endpoint);

/* After this call only ntbring_close is allowed, and that only after a barrier, during which no
 * rank polls. On links that lose messages, the library retransmits in the background until then
 * the messages that other ranks have not acknowledged. Before ntbring_connect there is nothing to
 * retransmit and nothing to flush. */
int ntbring_linger(ntbring_endpoint_t * endpoint);

/* Leaves the ring: all ranks of the job must have reached this point (the caller's
 * barrier ensures it). Writes the statistics and frees everything. */
int ntbring_close(ntbring_endpoint_t * endpoint);

#ifdef __cplusplus
}
#endif
#endif                          /* NTBRING_H_INCLUDED */
