/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/interleavings/memory_model.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/interleavings/explore.h"

#define OBJECTS 1024u
#define KEPT 4u      /* stores of an object that can still be read */
#define STALE_MAX 3u /* times in a row that a thread reads an old store: all are seen in time */
#define SHADOWS (1u << 17) /* of four bytes each */

struct view {
    uint32_t clock[EX_THREADS]; /* of each thread: its time that happened before */
    uint32_t seen[OBJECTS];     /* of each object: number of the oldest store that may be read */
};

struct store {
    uint64_t value;
    struct view carried;
};

struct object {
    const void *p;
    size_t bytes;
    uint32_t newest; /* its number; the first is 0 */
    uint8_t stale[EX_THREADS];
    struct store *stores; /* KEPT of them, by number % KEPT */
};

struct shadow {
    uintptr_t key; /* address / 4; 0: free */
    uint32_t run;
    uint32_t written_at, read_at[EX_THREADS];
    uint8_t written_by;
};

static struct {
    struct view now[EX_THREADS], released[EX_THREADS], read[EX_THREADS], fences;
    struct object objects[OBJECTS];
    size_t count;
    struct shadow shadows[SHADOWS];
    size_t shadow_count;
    uint32_t run;
} m;

static void join(struct view *into, const struct view *from)
{
    for (size_t i = 0; i < EX_THREADS; i++) {
        into->clock[i] = base_max(into->clock[i], from->clock[i]);
    }
    for (size_t i = 0; i < m.count; i++) {
        into->seen[i] = base_max(into->seen[i], from->seen[i]);
    }
}

void mm_reset(void)
{
    struct store *stores[OBJECTS];

    for (size_t i = 0; i < OBJECTS; i++) {
        stores[i] = m.objects[i].stores;
    }
    memset(m.now, 0, sizeof(m.now));
    memset(m.released, 0, sizeof(m.released));
    memset(m.read, 0, sizeof(m.read));
    memset(&m.fences, 0, sizeof(m.fences));
    memset(m.objects, 0, sizeof(m.objects));
    for (size_t i = 0; i < OBJECTS; i++) {
        m.objects[i].stores = stores[i];
    }
    m.count = 0;
    m.run++;
    m.shadow_count = 0;
    m.now[0].clock[0] = 1;
}

static bool is_release(int order)
{
    return order == memory_order_release || order == memory_order_acq_rel ||
           order == memory_order_seq_cst;
}

static bool is_acquire(int order)
{
    return order == memory_order_acquire || order == memory_order_consume ||
           order == memory_order_acq_rel || order == memory_order_seq_cst;
}

static struct view *my(struct view *views)
{
    return &views[ex_self()];
}

static void tick(void)
{
    my(m.now)->clock[ex_self()]++;
}

/* ---- plain accesses ---- */

/* Return: NULL if nobody has accessed it, unless @make. */
static struct shadow *shadow_of(uintptr_t key, bool make)
{
    size_t at = (size_t)((key * 0x9e3779b97f4a7c15u) >> 47);

    for (;; at = (at + 1) % SHADOWS) {
        struct shadow *s = &m.shadows[at];

        if (s->run == m.run && s->key == key) {
            return s;
        }
        if (s->run != m.run) {
            if (!make) {
                return NULL;
            }
            if (++m.shadow_count > SHADOWS / 2) {
                ex_fail("a run touches too much memory to watch");
            }
            *s = (struct shadow){.key = key, .run = m.run};
            return s;
        }
    }
}

void mm_plain(const void *p, size_t bytes, bool write)
{
    uintptr_t first = (uintptr_t)p / 4, last = ((uintptr_t)p + bytes - 1) / 4;
    const struct view *v = my(m.now);

    for (uintptr_t key = first; key <= last; key++) {
        struct shadow *s = shadow_of(key, true);

        if (s->written_at > v->clock[s->written_by]) {
            ex_fail("threads %u and %zu race at %p: a write, and a %s", s->written_by, ex_self(), p,
                    write ? "write" : "read");
        }
        for (size_t i = 0; write && i < EX_THREADS; i++) {
            if (s->read_at[i] > v->clock[i]) {
                ex_fail("threads %zu and %zu race at %p: a read, and a write", i, ex_self(), p);
            }
        }
        if (write) {
            s->written_at = v->clock[ex_self()];
            s->written_by = (uint8_t)ex_self();
        } else {
            s->read_at[ex_self()] = v->clock[ex_self()];
        }
    }
}

void mm_forget(const void *p, size_t bytes)
{
    uintptr_t from = (uintptr_t)p, to = from + bytes;

    for (size_t i = 0; i < m.count; i++) {
        if ((uintptr_t)m.objects[i].p >= from && (uintptr_t)m.objects[i].p < to) {
            m.objects[i].p = NULL;
        }
    }
    if (bytes / 4 > SHADOWS) {
        for (size_t i = 0; i < SHADOWS; i++) {
            struct shadow *s = &m.shadows[i];

            if (s->key >= from / 4 && s->key < to / 4) {
                s->written_at = 0;
                memset(s->read_at, 0, sizeof(s->read_at));
            }
        }
        return;
    }
    for (uintptr_t key = from / 4; key < to / 4; key++) {
        struct shadow *s = shadow_of(key, false);

        if (s != NULL) {
            s->written_at = 0;
            memset(s->read_at, 0, sizeof(s->read_at));
        }
    }
}

/* ---- atomic objects ---- */

static uint64_t in_memory(const void *p, size_t bytes)
{
    uint64_t value = 0;

    memcpy(&value, p, bytes); /* little-endian, like all that piped runs on */
    return value;
}

static struct store *store_at(const struct object *o, uint32_t number)
{
    return &o->stores[number % KEPT];
}

static struct object *object_new(const void *p, size_t bytes)
{
    struct object *o = &m.objects[m.count];

    if (m.count == OBJECTS) {
        ex_fail("more than %u atomic objects", OBJECTS);
    }
    if (o->stores == NULL) {
        o->stores = calloc(KEPT, sizeof(o->stores[0]));
        if (o->stores == NULL) {
            abort();
        }
    }
    o->p = p;
    o->bytes = bytes;
    o->newest = 0;
    memset(o->stale, 0, sizeof(o->stale));
    o->stores[0] = (struct store){.value = in_memory(p, bytes)};
    m.count++;
    return o;
}

/* The object at @p, made at its first access. One that was set by plain code since then, before it
 * was published, begins anew. */
static struct object *object_of(const void *p, size_t bytes)
{
    for (size_t i = 0; i < m.count; i++) {
        struct object *o = &m.objects[i];

        if (o->p == p) {
            if (o->bytes == bytes && store_at(o, o->newest)->value == in_memory(p, bytes)) {
                return o;
            }
            o->p = NULL;
            break;
        }
    }
    return object_new(p, bytes);
}

static size_t index_of(const struct object *o)
{
    return (size_t)(o - m.objects);
}

/* The number of the store that this load reads. */
static uint32_t read_number(struct object *o)
{
    uint32_t oldest = my(m.now)->seen[index_of(o)], number;
    uint8_t *stale = &o->stale[ex_self()];

    if (o->newest >= KEPT) {
        oldest = base_max(oldest, o->newest - (KEPT - 1));
    }
    if (*stale == STALE_MAX) {
        oldest = o->newest;
    }
    number = o->newest - (uint32_t)ex_choose(o->newest - oldest + 1);
    *stale = number == o->newest ? 0 : *stale + 1;
    return number;
}

static void take(const struct object *o, uint32_t number, int order)
{
    struct view *now = my(m.now);
    const struct store *s = store_at(o, number);

    now->seen[index_of(o)] = base_max(now->seen[index_of(o)], number);
    join(is_acquire(order) ? now : my(m.read), &s->carried);
}

uint64_t mm_load(const void *p, size_t bytes, int order)
{
    struct object *o = object_of(p, bytes);
    uint32_t number;

    if (order == memory_order_seq_cst) {
        mm_fence(order);
    }
    number = read_number(o);
    take(o, number, order);
    return store_at(o, number)->value;
}

static void put(struct object *o, uint64_t value, int order, const struct view *before)
{
    struct store *s = store_at(o, ++o->newest);
    struct view *now = my(m.now);

    now->seen[index_of(o)] = o->newest;
    s->value = value;
    s->carried = is_release(order) ? *now : *my(m.released);
    s->carried.seen[index_of(o)] = o->newest;
    if (before != NULL) {
        join(&s->carried, before);
    }
    /* the object's address is its own: the caller gave it without const */
    memcpy((void *)(uintptr_t)o->p, &value, o->bytes);
    if (is_release(order)) {
        tick();
    }
}

void mm_store(void *p, size_t bytes, uint64_t value, int order)
{
    struct object *o = object_of(p, bytes);

    put(o, value, order, NULL);
    if (order == memory_order_seq_cst) {
        mm_fence(order);
    }
}

uint64_t mm_newest(const void *p, size_t bytes, int order)
{
    struct object *o = object_of(p, bytes);

    if (order == memory_order_seq_cst) {
        mm_fence(order);
    }
    take(o, o->newest, order);
    return store_at(o, o->newest)->value;
}

void mm_store_after(void *p, size_t bytes, uint64_t value, int order)
{
    struct object *o = object_of(p, bytes);
    const struct view before = store_at(o, o->newest)->carried;

    put(o, value, order, &before);
    if (order == memory_order_seq_cst) {
        mm_fence(order);
    }
}

void mm_fence(int order)
{
    struct view *now = my(m.now);

    if (is_acquire(order)) {
        join(now, my(m.read));
    }
    if (order == memory_order_seq_cst) {
        join(now, &m.fences);
        m.fences = *now;
    }
    if (is_release(order)) {
        *my(m.released) = *now;
        tick();
    }
}

/* ---- threads, and the kernel's objects ---- */

void mm_release_all(void)
{
    *my(m.released) = *my(m.now);
    tick();
}

void mm_acquire_of(size_t thread)
{
    join(my(m.now), &m.released[thread]);
}

void mm_start(size_t thread)
{
    m.now[thread] = *my(m.now);
    memset(&m.released[thread], 0, sizeof(m.released[thread]));
    memset(&m.read[thread], 0, sizeof(m.read[thread]));
    m.now[thread].clock[thread] = 1;
    tick();
}

void mm_publish(const void *on)
{
    struct object *o = object_of(on, 1);

    mm_store_after((void *)(uintptr_t)on, 1, store_at(o, o->newest)->value, memory_order_release);
}

void mm_receive(const void *on)
{
    (void)mm_newest(on, 1, memory_order_acquire);
}
