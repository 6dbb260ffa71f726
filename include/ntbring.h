/*
 * ntbring.h: the C ABI between MPICH's netmod (C) and libntbring (Rust).
 *
 * It is the only contract between the two sides. Both are compiled from this
 * one file: the netmod includes it, and build.rs runs bindgen over it.
 *
 * Threads: every function that takes an endpoint must be called by one thread
 * at a time (MPICH's locks see to it), except ntbring_idle and ntbring_group_close, which
 * any thread may call at any time between ntbring_connect and ntbring_close. A process may
 * have several endpoints, each in a ring of its own with one of each other process;
 * different ones may be used by different threads at once.
 * No function blocks, except where it says so, or for the piece of a payload that a thread of the library is just
 * copying; each wait is bounded.
 */
#ifndef NTBRING_H_INCLUDED
#define NTBRING_H_INCLUDED

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised whenever anything in this file changes its meaning. */
#define NTBRING_ABI_VERSION 19

/* The most hosts of a ring. */
#define NTBRING_HOSTS_MAX 16

/* An upper limit for the size of an address, in bytes. */
#define NTBRING_ADDRESS_MAX 256

/* Return codes. Zero and above: success. Below zero: an error, whose text
 * ntbring_error_text returns. */
#define NTBRING_OK 0            /* done */
#define NTBRING_PENDING 1       /* not yet done */
#define NTBRING_NONE 0          /* ntbring_poll, ntbring_setting, ntbring_counter: nothing there */
#define NTBRING_SOME 1          /* ntbring_poll: *event is filled in; ntbring_setting, ntbring_counter: *variable is */
#define NTBRING_NO_GROUP 2      /* ntbring_group_open: its members have no free board in common */
#define NTBRING_BY_MESSAGES 3   /* ntbring_exchange, ntbring_exchanged: there is no exchange */
#define NTBRING_ERR_ARGUMENT (-1)       /* the caller broke the contract of this file */
#define NTBRING_ERR_SETTING (-2)        /* a bad NTBRING_* variable, or hosts that disagree */
#define NTBRING_ERR_RESOURCE (-3)       /* no memory, no space in /dev/shm, too small a window */
#define NTBRING_ERR_PEER (-4)   /* a peer died or does not answer */
#define NTBRING_ERR_PROTOCOL (-5)       /* a peer wrote what the protocol does not allow */
#define NTBRING_ERR_INTERNAL (-6)       /* a fault in libntbring; the text says where */

typedef struct ntbring_endpoint ntbring_endpoint_t;

/* The version this library was built with. Call it before anything else and
 * compare it with NTBRING_ABI_VERSION. */
uint32_t ntbring_abi_version(void);

/* The text of the calling thread's latest error: one line or more, never NULL,
 * valid until the thread's next call into this library. */
const char *ntbring_error_text(void);

/* What a process knows about its job before it opens an endpoint. */
typedef struct ntbring_job {
    int32_t rank;               /* of this process, 0 .. size-1 */
    int32_t size;               /* ranks in the job */
    int32_t hosts;              /* hosts in the ring, 1 .. NTBRING_HOSTS_MAX; they form the ring in order */
    const int32_t *host_of;     /* size entries: the host of each rank, 0 .. hosts-1 */
    int32_t vci;                /* which of this process's endpoints it is, for what is told to people */
    uint64_t charged;           /* a bit for each handler whose messages may have to be kept by the
                                 * receiver until they are asked for; in all ranks alike */
} ntbring_job_t;

/* Sizes that steer the caller's choices. Constant once connected. */
typedef struct ntbring_limits {
    uint64_t header_max;        /* largest hdr_size of a message, bytes */
    uint64_t packed_max;        /* no larger header + payload is taken by ntbring_send_now, bytes */
    uint64_t eager_max;         /* largest header + payload to be sent without an offer, bytes */
    uint64_t block_max;         /* largest block of a sharing, bytes; the same at all ranks */
} ntbring_limits_t;

/* Reads the settings, allocates what this process owns. The arrays in job are
 * not used after the return. */
int ntbring_open(const ntbring_job_t * job, ntbring_endpoint_t ** endpoint);

/* Looks whether the memory that MPICH itself will share between the ranks of a
 * host can be had. To be called when all ranks of the job have called ntbring_open. */
int ntbring_check_space(ntbring_endpoint_t * endpoint);

/* Writes this process's address, at most NTBRING_ADDRESS_MAX bytes, and its
 * size. Before ntbring_connect: the address for that, of one size in all ranks.
 * After it: the address for ntbring_peer_add of any other process. */
int ntbring_address(ntbring_endpoint_t * endpoint, void *address, uint64_t * size);

/* Takes everybody's address: size entries, stride bytes apart, in rank order.
 * Joins the ring: shakes hands with both neighbours and starts forwarding.
 * Blocks until the neighbours have answered, or returns an error after a
 * set time. */
int ntbring_connect(ntbring_endpoint_t * endpoint, const void *addresses, uint64_t stride);

/* Writes the address of a peer for other processes' ntbring_peer_add, at most
 * NTBRING_ADDRESS_MAX bytes, and its size. */
int ntbring_peer_address(ntbring_endpoint_t * endpoint, int32_t peer, void *address,
                         uint64_t * size);

/* Adds a process outside the job as a peer, given the address that it has after
 * joining its own ring: messages can be sent to it from now on. Its number is the
 * job's size or above, and the same if it is added again; that of a process of
 * this job is its rank. NTBRING_PENDING: it has to poll first, try again. Both
 * processes must be on this machine and run by the same user; to receive from it
 * nothing has to be done but to poll. */
int ntbring_peer_add(ntbring_endpoint_t * endpoint, const void *address, uint64_t size,
                     int32_t * peer);

/* To be called when a peer outside the job is lost (NTBRING_EVENT_LOST) and the caller does not use
 * its number any more: ntbring_peer_add may give the number to another process. Without effect
 * for any other peer. */
int ntbring_peer_drop(ntbring_endpoint_t * endpoint, int32_t peer);

/* The most bytes of a greeting. */
#define NTBRING_GREETING_MAX 512

/* Before there is a communicator: a process that knows a peer's address and a tag asks
 * (ntbring_greet), and the peer's thread that waits for a question under this tag hears it
 * (ntbring_greeting), and answers (ntbring_greet); then whoever has asked hears the answer
 * (ntbring_greeting). What a call means follows from what its thread did before.
 * ntbring_greeting returns NTBRING_PENDING if nothing has come; poll in between.
 * ntbring_greeting_withdraw: who has asked does not wait any more. */
int ntbring_greet(ntbring_endpoint_t * endpoint, int32_t peer, uint32_t tag, const void *bytes,
                  uint64_t size);
int ntbring_greeting(ntbring_endpoint_t * endpoint, uint32_t tag, void *bytes, uint64_t size);
int ntbring_greeting_withdraw(ntbring_endpoint_t * endpoint, uint32_t tag);

int ntbring_limits(ntbring_endpoint_t * endpoint, ntbring_limits_t * limits);

/* Copies bytes [offset, offset + max) of a message's packed payload to dest, or
 * fewer, if an element of the datatype would be cut. Returns how many, or a
 * negative number when it cannot. Must not call back into this library. */
typedef int64_t(*ntbring_pack_fn) (void *cookie, uint64_t offset, void *dest, uint64_t max);

typedef struct ntbring_message {
    int32_t dest;               /* rank, or number of a peer that was added */
    uint16_t handler;           /* 0 .. 63, given to the receiver */
    const void *hdr;            /* copied before the return */
    uint64_t hdr_size;
    const void *data;           /* contiguous payload; ignored if pack is set */
    uint64_t data_size;
    ntbring_pack_fn pack;       /* NULL for contiguous payload */
    void *cookie;               /* given to pack and to NTBRING_EVENT_SENT */
} ntbring_message_t;

/* Sends a message. NTBRING_OK: nothing of the caller's is needed any more (always
 * so for messages without payload and cookie). NTBRING_PENDING: the payload must stay
 * until the NTBRING_EVENT_SENT with its cookie. Messages to one destination are
 * delivered in the order of the calls, those that are charged in the order of theirs:
 * they wait while the receiver keeps too many that it was not asked for. */
int ntbring_send(ntbring_endpoint_t * endpoint, const ntbring_message_t * message);

/* Sends a small message with contiguous payload, at once or not at all. Its header is two words, of
 * which the receiver gets `hdr` first: by value, since what is read in other pieces than it was
 * written in waits until all that was written before has left the processor.
 * NTBRING_OK: nothing of the caller's is needed any more. NTBRING_PENDING: there
 * is no room for it now, and ntbring_send would queue it; or it is larger than
 * ntbring_eager_max, and should be offered. */
int ntbring_send_now(ntbring_endpoint_t * endpoint, int32_t dest, uint16_t handler,
                     uint64_t hdr, uint64_t hdr_more, const void *data, uint64_t data_size);

/* The largest header + payload to be sent to this destination without an offer, bytes. */
uint64_t ntbring_eager_max(ntbring_endpoint_t * endpoint, int32_t dest);

/* Sends a message's header, and keeps its payload, which must not be empty, until
 * the receiver has fetched it: then there is an NTBRING_EVENT_TAKEN with its cookie.
 * Always returns NTBRING_PENDING, if it does not fail. */
int ntbring_offer(ntbring_endpoint_t * endpoint, const ntbring_message_t * message);

/* Takes back what was sent or offered with this cookie, as long as nothing of it has left; dropped: an offer that
 * the receiver has forgotten. NTBRING_SOME: nothing of the caller's is needed any more, and no event will tell
 * of it. NTBRING_NONE: it is too late, or there is no such offer. */
int ntbring_withdraw(ntbring_endpoint_t * endpoint, int32_t dest, void *cookie, int32_t dropped);

/* An offer as its receiver sees it. It may be copied. */
typedef struct ntbring_offer {
    int32_t src;                /* rank, or number of a peer, that made it */
    uint32_t id;
    uint64_t address;
    uint64_t total;             /* size of the payload */
} ntbring_offer_t;

/* Fetches the first size bytes of an offered payload, once. With a buffer they
 * go there. NTBRING_OK: they are there. NTBRING_PENDING: they are when there is an
 * NTBRING_EVENT_FETCHED with this cookie, and the buffer must stay until then.
 * Without a buffer there are NTBRING_EVENT_CHUNKs with this cookie. */
int ntbring_accept(ntbring_endpoint_t * endpoint, const ntbring_offer_t * offer, void *buffer,
                   uint64_t size, void *cookie);

/* What ntbring_poll found. */
#define NTBRING_EVENT_MESSAGE 1 /* a whole message: hdr, data */
#define NTBRING_EVENT_BEGIN 2   /* a message whose payload follows: hdr, total */
#define NTBRING_EVENT_CHUNK 3   /* a piece of a payload: cookie, data, last */
#define NTBRING_EVENT_SENT 4    /* a pending message's payload may be reused: cookie, handler */
#define NTBRING_EVENT_OFFER 5   /* a message whose payload may be fetched: hdr, offer, total */
#define NTBRING_EVENT_FETCHED 6 /* a payload is in its buffer: cookie */
#define NTBRING_EVENT_TAKEN 7   /* an offered payload may be reused: cookie */
#define NTBRING_EVENT_REMOTE 8  /* an operation of ntbring_remote has ended: cookie */
#define NTBRING_EVENT_STALLED 9 /* a sender holds messages until earlier ones are discharged: src;
                                 * ntbring_allow_more if somebody waits for one of them */
#define NTBRING_EVENT_LOST 10   /* a rank or peer has died or cannot be reached any more, or a peer has
                                 * left: src, last; ntbring_error_text says why. What is pending with it
                                 * stays so for ever, as does what is sent to it from now on, and there is
                                 * no event for that. If peers are lost, that
                                 * of one of them is repeated every second or so */

typedef struct ntbring_event {
    uint32_t kind;              /* NTBRING_EVENT_* */
    int32_t src;                /* rank, or number of a peer, that sent it; INT32_MIN: nobody did */
    uint16_t handler;
    uint32_t last;              /* CHUNK: nonzero if no more follow; LOST: if it has left as it may */
    void *hdr;                  /* 8-byte aligned */
    uint64_t hdr_size;
    void *data;                 /* MESSAGE, CHUNK; any alignment. BEGIN: if the payload goes to one
                                 * place, set it before ntbring_release: it stays until there is a
                                 * FETCHED with the cookie, which replaces the CHUNKs, or there are
                                 * CHUNKs all the same */
    uint64_t data_size;         /* BEGIN: room there; what there is no room for is dropped */
    uint64_t total;             /* BEGIN, OFFER: size of the whole payload; MESSAGE: data_size */
    void *cookie;               /* BEGIN: set it before ntbring_release; CHUNK, SENT, FETCHED,
                                 * TAKEN, REMOTE: as given */
    ntbring_offer_t offer;      /* OFFER */
    uint64_t charge;            /* MESSAGE, BEGIN, OFFER: what the sender was charged; set it to 0
                                 * before ntbring_release if the message is kept, and call
                                 * ntbring_discharge later */
    uint64_t token[4];          /* belongs to the library */
    uint32_t more;              /* nonzero if the next one is there already: poll again soon */
} ntbring_event_t;

/* Looks for one event and sends what is pending. hdr and data stay valid until
 * ntbring_release, which must follow every NTBRING_SOME, in any order. Both may
 * be called while other events are not released yet. */
int ntbring_poll(ntbring_endpoint_t * endpoint, ntbring_event_t * event);
int ntbring_release(ntbring_endpoint_t * endpoint, ntbring_event_t * event);

/* A message that was kept is not any more. */
int ntbring_discharge(ntbring_endpoint_t * endpoint, int32_t src, uint64_t charge);

/* Somebody waits for a message of that sender (negative: of any), and what is here is not it.
 * If the sender is stalled it may send more than its share, with a warning. Patient: only after
 * a while. */
int ntbring_allow_more(ntbring_endpoint_t * endpoint, int32_t src, int32_t patient);

/* Window memory. A segment is memory of one rank that the ranks near it map, and then
 * read and write as their own: ranks of its host, and of hosts next to it whose ports
 * are coherent. Ranks of other hosts have its host work on it (ntbring_remote). It has a
 * lock, for operations that must be atomic with each other, and a second one, which the
 * library does not mind, for MPI_Win_lock. */
typedef struct ntbring_segment ntbring_segment_t;

/* Where others find a segment. Its words belong to the library. */
typedef struct ntbring_segment_address {
    uint64_t words[4];
} ntbring_segment_address_t;

/* 1 if that rank is near this one (which is near itself), 0 if not. Both see it alike. */
int ntbring_is_near(ntbring_endpoint_t * endpoint, int32_t rank);

/* Allocates a segment of size bytes, which must not be 0: zeros, aligned to a page.
 * All of them are there, or it fails with NTBRING_ERR_RESOURCE. */
int ntbring_segment_create(ntbring_endpoint_t * endpoint, uint64_t size,
                           ntbring_segment_t ** segment, void **base,
                           ntbring_segment_address_t * address);

/* Maps the segment of a rank that is near. */
int ntbring_segment_open(ntbring_endpoint_t * endpoint, int32_t rank,
                         const ntbring_segment_address_t * address,
                         ntbring_segment_t ** segment, void **base);

/* Tells that all who are to open this segment have done so: nobody can any more. */
int ntbring_segment_seal(ntbring_segment_t * segment);

/* Takes a segment's lock, for a few accesses without any call in between but the unlock.
 * Blocks while another rank has it; an error if that rank has died with it. */
int ntbring_segment_lock(ntbring_endpoint_t * endpoint, ntbring_segment_t * segment);
int ntbring_segment_unlock(ntbring_segment_t * segment);

/* Takes a segment's second lock, alone or together with others, if it is free for that:
 * NTBRING_OK, or NTBRING_PENDING. Who wants it alone must go on asking. */
int ntbring_segment_hold(ntbring_endpoint_t * endpoint, ntbring_segment_t * segment, int32_t alone);
int ntbring_segment_let_go(ntbring_segment_t * segment, int32_t alone);

/* Unmaps a segment. The memory is there for others until they have done so, too. Its
 * owner must know that nobody will ask its host for anything any more. */
int ntbring_segment_free(ntbring_endpoint_t * endpoint, ntbring_segment_t * segment);

/* 1 if that rank's host works on its segments for this rank, 0 if not: it does if the rank
 * is of this job and not near. */
int ntbring_is_served(ntbring_endpoint_t * endpoint, int32_t rank);

/* What is done with size bytes of a segment. */
#define NTBRING_REMOTE_PUT 0    /* data is written */
#define NTBRING_REMOTE_GET 1    /* they are read to result */
#define NTBRING_REMOTE_ACCUMULATE 2     /* data is accumulated with op: numbers of one type */
#define NTBRING_REMOTE_FETCH 3  /* the same, and what was there goes to result */
#define NTBRING_REMOTE_SWAP 4   /* they become the second half of data (2 * size bytes) if they are
                                 * the first; what was there goes to result; at most 16 bytes */
#define NTBRING_REMOTE_HOLD 5   /* ntbring_segment_hold until it is had; op: 1 alone, 0 together */
#define NTBRING_REMOTE_LET_GO 6 /* ntbring_segment_let_go; op: 1 alone, 0 together */

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
#define NTBRING_OP_NO_OP 11     /* with FETCH there is no data */

/* Bytes have REPLACE, NO_OP and operations on bits; integers all; floating point numbers all but
 * those on bits; complex ones SUM, PROD, REPLACE, NO_OP. */
#define NTBRING_TYPE_BYTES 0    /* numbers of up to 96 bytes whose size divides 96 are not torn */
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
    int32_t dest;               /* rank whose segment it is */
    uint8_t action;             /* NTBRING_REMOTE_* */
    uint8_t op;                 /* NTBRING_OP_* */
    uint8_t type;               /* NTBRING_TYPE_* */
    ntbring_segment_address_t segment;
    uint64_t offset;            /* bytes */
    uint64_t size;              /* bytes; 0 for HOLD and LET_GO */
    const void *data;           /* both must stay until the event */
    void *result;
    void *cookie;               /* given to NTBRING_EVENT_REMOTE */
} ntbring_remote_t;

/* Begins an operation on a segment of a rank that is served: NTBRING_PENDING, and there
 * will be an NTBRING_EVENT_REMOTE when it is done, whatever the rank does. ACCUMULATE, FETCH
 * and SWAP take the segment's lock, and are done at one rank in the order of the calls. If
 * the operation fails, ntbring_poll says so before the event. */
int ntbring_remote(ntbring_endpoint_t * endpoint, const ntbring_remote_t * remote);

/* Small collectives. A group has one rank on each host of the ring. In a sharing each of
 * them gives a block, all of one size, and gets everybody's. */
/* The most bytes, in any ring, of a block, and of all blocks of a sharing together. */
#define NTBRING_BLOCK_MAX 2040
#define NTBRING_BLOCKS_MAX 8192

/* What this rank offers for a group: a bit for each board that is free, or 0 as long as another
 * offer is open. Those who want to open a group combine what they offer by bitwise AND, and then
 * all call ntbring_group_open, also if that has failed: with all = 0. */
int ntbring_group_offer(ntbring_endpoint_t * endpoint, uint32_t * offer);

/* Opens a group. id: any number that this rank uses for nothing else until it has closed it.
 * ranks: one for each host, in the order of the hosts. mine: what this rank has offered.
 * all: what all have. */
int ntbring_group_open(ntbring_endpoint_t * endpoint, uint32_t id, const int32_t * ranks,
                       uint32_t mine, uint32_t all);

/* Closes a group that nobody will share in any more, at the latest with the next ntbring_group_offer;
 * one that is not open is ignored. */
int ntbring_group_close(ntbring_endpoint_t * endpoint, uint32_t id);

/* Begins a sharing of at most limits.block_max bytes; the group's sharing before must have
 * ended. The block is copied before the return. NULL, and a size other than 0: this rank has
 * failed and has none, and the sharing will fail for everybody. */
int ntbring_share(ntbring_endpoint_t * endpoint, uint32_t id, const void *block, uint64_t size);

/* NTBRING_PENDING: after so many looks not everybody's block is here; poll before the next
 * call. Between them the core may be given away. NTBRING_OK: the sharing has ended, and all
 * blocks, in the order of ranks, are copied to blocks. */
int ntbring_shared(ntbring_endpoint_t * endpoint, uint32_t id, void *blocks, uint64_t size,
                   uint32_t looks);

/* Begins an exchange in a group whose sharings have ended: each member has a block for each other one, in the order of
 * ranks, in from, and room for theirs in to; its own in both is not touched. All blocks have the same size. Until the
 * end the caller leaves from and to alone. NULL: this rank has failed, and the exchange will fail for everybody.
 * NTBRING_BY_MESSAGES: there are none in this group. */
int ntbring_exchange(ntbring_endpoint_t * endpoint, uint32_t id, const void *from, void *to,
                     uint64_t block_size);

/* NTBRING_PENDING: it goes on; as for ntbring_shared. NTBRING_OK: it has ended, and from and to are the caller's
 * again, as after an error. NTBRING_BY_MESSAGES: it turns out that there are none in this group. */
int ntbring_exchanged(ntbring_endpoint_t * endpoint, uint32_t id, uint32_t looks);

/* Leaves an exchange that goes on: from and to are the caller's again, and the group's sharings are over. May wait
 * for a neighbour who is just writing. */
int ntbring_exchange_leave(ntbring_endpoint_t * endpoint, uint32_t id);

/* A setting or a counter, for tools. name and meaning stay valid as long as the
 * process lives, value until the endpoint is closed. */
typedef struct ntbring_variable {
    const char *name;
    const char *meaning;
    const char *value;          /* of a setting, as it would be written; NULL of a counter */
} ntbring_variable_t;

/* The settings in use, and what is counted, numbered from 0. NTBRING_NONE beyond the last. */
int ntbring_setting(ntbring_endpoint_t * endpoint, uint32_t index, ntbring_variable_t * variable);
int ntbring_counter(uint32_t index, ntbring_variable_t * variable);

/* What a counter stands at. Without an endpoint: what it stands at for those of this process
 * that are closed, taken together. */
int ntbring_count(ntbring_endpoint_t * endpoint, uint32_t index, uint64_t * value);

/* To be called by a loop that waits and has found nothing: spins, yields or
 * sleeps, depending on how often it was called since the last event, until a
 * doorbell rings, but for at most about max_us microseconds. Never fails. Returns how often
 * the caller may look in vain before it has to call again. */
uint32_t ntbring_idle(ntbring_endpoint_t * endpoint, uint32_t max_us);

/* NTBRING_OK once all that was sent outlives this process, NTBRING_PENDING before that: others
 * may have to take it first, as late as they like. Poll in between. Nothing must be asked for
 * any more. */
int ntbring_flush(ntbring_endpoint_t * endpoint);

/* Nothing is called any more but ntbring_close, and that only after a barrier, in which nobody
 * polls: what others have not taken yet is looked after until then, where links lose messages.
 * Before ntbring_connect there is nothing to look after, and nothing to flush. */
int ntbring_linger(ntbring_endpoint_t * endpoint);

/* Leaves the ring: all ranks of the job must have come this far (the caller's
 * barrier sees to it). Writes the statistics, frees everything. */
int ntbring_close(ntbring_endpoint_t * endpoint);

#ifdef __cplusplus
}
#endif
#endif                          /* NTBRING_H_INCLUDED */
