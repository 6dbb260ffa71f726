/*
 * window.h - the raw window: one process copies in, another copies out, with nothing but flags between them.
 *
 * A window is a circle of slots. A slot's flag has a cache line of its own, with which a message of at most INLINE_MOST bytes travels.
 * Here and not in a file of its own, so that it is inlined as it would be in anything that is fast.
 */
#ifndef BENCH_WINDOW_H
#define BENCH_WINDOW_H

#include <stdatomic.h>
#include <string.h>

#define LINE 64
#define INLINE_MOST (LINE - (long) sizeof(atomic_ulong))
#define WINDOW_MOST (4L << 20)          /* of the slots of one window */

struct slot {
    _Alignas(LINE) atomic_ulong full;       /* the number of the piece that it holds, from 1 */
    char small[INLINE_MOST];
    char large[];
};

/* One way. What one side writes is not in a line that the other writes. */
struct lane {
    _Alignas(LINE) atomic_ulong taken;      /* slots emptied so far; written by the receiver */
    _Alignas(LINE) char slots[WINDOW_MOST];
};

/* One side's private view of a lane. */
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
        long piece = bytes < end->chunk ? bytes : end->chunk;
        struct slot *slot = slot_of(end);
        while (end->count - end->known_taken == (unsigned long) end->depth)
            end->known_taken = atomic_load_explicit(&end->lane->taken, memory_order_acquire);
        memcpy(piece <= INLINE_MOST ? slot->small : slot->large, data, (size_t) piece);
        end->count++;
        atomic_store_explicit(&slot->full, end->count, memory_order_release);
        data += piece;
        bytes -= piece;
    } while (bytes > 0);
}

static inline void pull(struct end *end, char *data, long bytes)
{
    do {
        long piece = bytes < end->chunk ? bytes : end->chunk;
        struct slot *slot = slot_of(end);
        wait_for(&slot->full, end->count + 1);
        memcpy(data, piece <= INLINE_MOST ? slot->small : slot->large, (size_t) piece);
        end->count++;
        /* A quarter at a time: a flag a slot would cost small messages more than their copy. */
        if ((end->count & (unsigned long) (end->depth / 4 - 1)) == 0)
            atomic_store_explicit(&end->lane->taken, end->count, memory_order_release);
        data += piece;
        bytes -= piece;
    } while (bytes > 0);
}

#endif
