/*
 * window.h - the raw window: one process copies in, another copies out, with only flags between
 * them.
 *
 * A window is a ring buffer of slots. The flag of a slot has a cache line of its own, which also
 * holds the message if that has at most INLINE_MOST bytes. The functions are in a header so that
 * the compiler can inline them.
 */
#ifndef BENCH_WINDOW_H
#define BENCH_WINDOW_H

#include <stdatomic.h>
#include <string.h>

#define LINE 64
#define INLINE_MOST (LINE - (long) sizeof(atomic_ulong))
#define WINDOW_MOST (4L << 20)          /* bytes of the slots of one window */

struct slot {
    _Alignas(LINE) atomic_ulong full;       /* number of the chunk in the slot, from 1 */
    char small[INLINE_MOST];
    char large[];
};

/* One direction. The two sides write to different cache lines. */
struct lane {
    _Alignas(LINE) atomic_ulong taken;      /* slots emptied so far; written by the receiver */
    _Alignas(LINE) char slots[WINDOW_MOST];
};

/* One side's private state of a lane. */
struct end {
    struct lane *lane;
    long chunk, depth, stride;
    unsigned long count, known_taken;
};

static inline struct end end_of(struct lane *lane, long chunk, long depth)
{
    long large = chunk <= INLINE_MOST ? 0 : (chunk + LINE - 1) / LINE * LINE;

    return (struct end) {lane, chunk, depth, LINE + large, 0, 0};
}

static inline void wait_for(atomic_ulong *flag, unsigned long value)
{
    while (atomic_load_explicit(flag, memory_order_acquire) != value)
        ;
}

static inline struct slot *slot_of(const struct end *end)
{
    return (struct slot *) (end->lane->slots + (long) (end->count & (unsigned long) (end->depth - 1)) * end->stride);
}

static inline void push(struct end *end, const char *data, long bytes)
{
    do {
        long chunk = bytes < end->chunk ? bytes : end->chunk;
        struct slot *slot = slot_of(end);
        while (end->count - end->known_taken == (unsigned long) end->depth)
            end->known_taken = atomic_load_explicit(&end->lane->taken, memory_order_acquire);
        memcpy(chunk <= INLINE_MOST ? slot->small : slot->large, data, (size_t) chunk);
        end->count++;
        atomic_store_explicit(&slot->full, end->count, memory_order_release);
        data += chunk;
        bytes -= chunk;
    } while (bytes > 0);
}

static inline void pull(struct end *end, char *data, long bytes)
{
    do {
        long chunk = bytes < end->chunk ? bytes : end->chunk;
        struct slot *slot = slot_of(end);
        wait_for(&slot->full, end->count + 1);
        memcpy(data, chunk <= INLINE_MOST ? slot->small : slot->large, (size_t) chunk);
        end->count++;
        /* The count is published once for a quarter of the slots: a flag for each slot would
         * cost small messages more than their copy. */
        if ((end->count & (unsigned long) (end->depth / 4 - 1)) == 0)
            atomic_store_explicit(&end->lane->taken, end->count, memory_order_release);
        data += chunk;
        bytes -= chunk;
    } while (bytes > 0);
}

#endif
