/* SPDX-License-Identifier: Apache-2.0 */
#include "governor/bandwidth.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/base.h"

#define PARTS 8u
#define CHUNK ((size_t)16384) /* elements between two looks at the clock */
#define ELEMENT_BYTES (3 * sizeof(double))

struct streams {
    size_t count, elements; /* elements: of each array */
    uint64_t part_ns;
    _Atomic size_t waiting;   /* threads that have not mapped their arrays; writers: they */
    _Atomic uint64_t from_ns; /* when all begin; 0: not yet, UINT64_MAX: never. writer: the last */
    _Atomic bool failed;      /* a thread has no memory; writers: they */
};

struct stream {
    struct streams *all;
    pthread_t thread;
    double moved[PARTS]; /* bytes in each part of the time */
};

base_optimize("O3") static void triad(double *restrict a, const double *restrict b,
                                      const double *restrict c, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        a[i] = b[i] + 3.0 * c[i];
    }
}

/* Until the last part is over; what lies over the border of two parts counts for both by time. */
static void run(struct stream *s, double *arrays)
{
    const struct streams *all = s->all;
    size_t n = all->elements, at = 0;
    uint64_t from = atomic_load(&all->from_ns), before = base_now_ns();

    while (before < from + PARTS * all->part_ns) {
        size_t count = base_min(CHUNK, n - at), part;
        uint64_t now;

        triad(arrays + at, arrays + n + at, arrays + 2 * n + at, count);
        at = at + count == n ? 0 : at + count;
        now = base_now_ns();
        part = before < from ? PARTS : (before - from) / all->part_ns;
        for (size_t i = part; i < PARTS && now > from + i * all->part_ns; i++) {
            uint64_t first = base_max(before, from + i * all->part_ns);
            uint64_t last = base_min(now, from + (i + 1) * all->part_ns);

            s->moved[i] +=
                (double)(count * ELEMENT_BYTES) * (double)(last - first) / (double)(now - before);
        }
        before = now;
    }
}

static void *stream(void *arg)
{
    struct stream *s = arg;
    struct streams *all = s->all;
    size_t n = all->elements, bytes = 3 * n * sizeof(double);
    /* not by malloc(), which would keep as much of other blocks from then on */
    double *arrays = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    for (size_t i = 0; arrays != MAP_FAILED && i < 3 * n; i++) {
        arrays[i] = (double)(i % 7);
    }
    if (arrays == MAP_FAILED) {
        atomic_store(&all->failed, true);
    }
    if (atomic_fetch_sub(&all->waiting, 1) == 1) {
        atomic_store(&all->from_ns, base_now_ns());
    }
    while (atomic_load(&all->from_ns) == 0) {
        sched_yield();
    }
    if (!atomic_load(&all->failed)) {
        run(s, arrays);
    }
    if (arrays != MAP_FAILED) {
        munmap(arrays, bytes);
    }
    return NULL;
}

/* Return: how many threads run. */
static size_t start(struct streams *all, struct stream *list, const uint16_t *cpus)
{
    size_t started = 0;

    while (started < all->count) {
        cpu_set_t set;

        list[started].all = all;
        if (pthread_create(&list[started].thread, NULL, stream, &list[started]) != 0) {
            break;
        }
        CPU_ZERO(&set);
        CPU_SET(cpus[started], &set);
        pthread_setaffinity_np(list[started++].thread, sizeof(set), &set);
    }
    return started;
}

int gov_bandwidth_measure(const uint16_t *cpus, size_t count, size_t bytes, unsigned ms,
                          double *ret_bytes_per_ns)
{
    struct streams all = {.count = count,
                          .elements = bytes / ELEMENT_BYTES,
                          .part_ns = ms * BASE_NS_PER_MS / PARTS,
                          .waiting = count};
    base_autofree struct stream *list = calloc(base_max(count, (size_t)1), sizeof(*list));
    double best = 0;
    size_t started;

    if (count == 0 || all.elements == 0 || all.part_ns == 0) {
        return -EINVAL;
    }
    if (!list) {
        return -ENOMEM;
    }
    started = start(&all, list, cpus);
    if (started < count) {
        atomic_store(&all.failed, true);
        atomic_store(&all.from_ns, UINT64_MAX);
    }
    for (size_t i = 0; i < started; i++) {
        pthread_join(list[i].thread, NULL);
    }
    if (atomic_load(&all.failed)) {
        return started < count ? -EAGAIN : -ENOMEM;
    }
    for (size_t part = 0; part < PARTS; part++) {
        double moved = 0;

        for (size_t i = 0; i < count; i++) {
            moved += list[i].moved[part];
        }
        best = base_max(best, moved);
    }
    *ret_bytes_per_ns = best / (double)all.part_ns;
    return 0;
}
