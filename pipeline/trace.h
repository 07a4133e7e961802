/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/trace.h - a trace: for each team that is traced a ring of records, one a frame
 *
 * pl_trace_attach() (pipeline.h) gives every team of a pipeline a ring, also those of plans that
 * follow, until pl_trace_detach(). A ring outlives its team until it was read empty. All memory is
 * there before a team writes to it, and there is a limit for all rings together: a team that finds
 * no room in it is not traced, and counted.
 *
 * Threads: the loop thread, for all of it; a team writes its own ring. The loop takes a ring away
 * by a hand-shake: it clears pl_team.trace, then looks whether the team is writing (pl_team.
 * tracing); the team sets `tracing`, then looks at `trace` again. Both have a full fence between
 * the two, so at least one sees the other.
 */
#pragma once

#include <stdatomic.h>

#include "base/base.h"
#include "base/trace_record.h"
#include "pipeline/plan.h"

/*
 * ---- a ring of records (base/trace_record.h) from one thread to one reader ----
 *
 * Its memory is fixed. The writer never waits: a record that finds no room is lost and counted. A
 * record becomes visible as a whole, by the store of tail.
 *
 * Two free-running 32-bit indices count words, masked by a power of two, as in pipeline/ring.h. The
 * writer stores the words of a record before it stores tail with release; the reader loads tail
 * with acquire. The reader stores head with release after it has copied a record; the writer loads
 * head with acquire before it writes there again.
 */
#define PL_TRACE_RING_BYTES_MIN 4096u
#define PL_TRACE_RING_BYTES_MAX (16u << 20)

struct pl_trace_ring {
    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic uint32_t tail; /* writer: the writer */
    _Atomic uint64_t lost;                                 /* writer: the writer; records */
    uint32_t at, head_seen;                                /* writer's own */
    bool gap; /* writer's own: set with each loss; the writer clears it */
    _Alignas(BASE_CACHE_LINE_BYTES) _Atomic uint32_t head; /* writer: the reader */
    _Alignas(BASE_CACHE_LINE_BYTES) uint32_t *words;       /* owned; never changes */
    uint32_t mask;
};

/** pl_trace_ring_init() - makes a ring of @bytes, a power of two in the limits above; its pages are
 * there afterwards. Return: 0, -EINVAL, -ENOMEM. */
int pl_trace_ring_init(struct pl_trace_ring *r, size_t bytes);
/** pl_trace_ring_deinit() - frees the words. Accepts a zeroed ring. */
void pl_trace_ring_deinit(struct pl_trace_ring *r);

/** pl_trace_begin() - begins a record of @words words, its first included. Return: true: exactly
 * these words must be put and then ended; false: no room, it is counted as lost. Threads: the
 * writer. */
static inline bool pl_trace_begin(struct pl_trace_ring *r, enum trace_kind kind, uint32_t words)
{
    uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

    if (words > r->mask + 1 - (tail - r->head_seen)) {
        r->head_seen = atomic_load_explicit(&r->head, memory_order_acquire);
        if (words > r->mask + 1 - (tail - r->head_seen)) {
            atomic_store_explicit(&r->lost,
                                  atomic_load_explicit(&r->lost, memory_order_relaxed) + 1,
                                  memory_order_relaxed);
            r->gap = true;
            return false;
        }
    }
    r->words[tail & r->mask] = trace_head(kind, words);
    r->at = tail + 1;
    return true;
}
/** pl_trace_put() - the record's next word. */
static inline void pl_trace_put(struct pl_trace_ring *r, uint32_t word)
{
    r->words[r->at++ & r->mask] = word;
}
/** pl_trace_put64() - the record's next two words. */
static inline void pl_trace_put64(struct pl_trace_ring *r, uint64_t value)
{
    pl_trace_put(r, (uint32_t)value);
    pl_trace_put(r, (uint32_t)(value >> 32));
}
/** pl_trace_end() - the record is complete. */
static inline void pl_trace_end(struct pl_trace_ring *r)
{
    atomic_store_explicit(&r->tail, r->at, memory_order_release);
}

/** pl_trace_read() - takes as many whole records as fit. @to: room for @room words. Return: words
 * taken; 0: the ring is empty, or its next record does not fit. Threads: the reader. */
size_t pl_trace_read(struct pl_trace_ring *r, uint32_t *to, size_t room);
/** pl_trace_waiting() - Return: words to read. Threads: the reader. */
static inline size_t pl_trace_waiting(const struct pl_trace_ring *r)
{
    return atomic_load_explicit(&r->tail, memory_order_acquire) -
           atomic_load_explicit(&r->head, memory_order_relaxed);
}
/** pl_trace_next_words() - Return: words of the next record; 0: the ring is empty. Threads: the
 * reader. */
static inline size_t pl_trace_next_words(const struct pl_trace_ring *r)
{
    return pl_trace_waiting(r) > 0
               ? trace_words_of(
                     r->words[atomic_load_explicit(&r->head, memory_order_relaxed) & r->mask])
               : 0;
}
/** pl_trace_lost() - Return: records that found no room. Threads: any. */
static inline uint64_t pl_trace_lost(const struct pl_trace_ring *r)
{
    return atomic_load_explicit(&r->lost, memory_order_relaxed);
}

/* ---- a trace ---- */

/* A traced team, as it was when its plan began. */
struct pl_trace_team {
    uint32_t track;    /* number of its ring in this trace, from 1 */
    uint32_t pipeline; /* as pl_trace_attach() was told */
    uint32_t epoch;
    uint16_t stage, width, replica, first_unit, last_unit;
    uint16_t cpus[PL_CPU_MAX];
    char ep[PL_EP_NAME_MAX + 1];
};

struct pl_trace_entry {
    struct pl_trace_entry *next;
    struct pl_trace_team team;
    struct pl_trace_ring ring;
    bool ended;     /* no team writes to it any more */
    bool announced; /* the reader's own */
};

struct pl_trace {
    size_t ring_bytes, limit_bytes;
    size_t bytes;                   /* of all rings now */
    size_t most_bytes;              /* so far */
    uint32_t tracks;                /* rings made so far */
    uint64_t lost;                  /* records of rings that are freed */
    uint64_t untraced;              /* teams for which there was no room */
    struct pl_trace_entry *entries; /* owned, newest first */
};

/** pl_trace_new() - a trace without rings. @ring_bytes: of each ring. Return: 0, -EINVAL,
 * -ENOMEM. */
int pl_trace_new(size_t ring_bytes, size_t limit_bytes, struct pl_trace **ret);
/** pl_trace_free() - frees all rings; no pipeline is attached. Accepts NULL. Return: NULL. */
struct pl_trace *pl_trace_free(struct pl_trace *t);
/** pl_trace_trim() - frees the rings that have ended and are read empty. */
void pl_trace_trim(struct pl_trace *t);
/** pl_trace_lost_all() - Return: records that found no room, over all rings. */
uint64_t pl_trace_lost_all(const struct pl_trace *t);
/** pl_trace_add() - a ring for @team, whose track is set here. Return: borrowed; NULL: there is no
 * room for one, which is counted. */
struct pl_trace_entry *pl_trace_add(struct pl_trace *t, const struct pl_trace_team *team);
