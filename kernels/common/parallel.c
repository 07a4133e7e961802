/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/parallel.h"

#include "kernels/common/uneven.h"

/* Of the calling thread, a team's leader: the thread pool's flags after the next krn_parallel(). */
static _Thread_local uint32_t pool_flags;

void krn_parallel_yield(bool yield)
{
    pool_flags = yield ? PTHREADPOOL_FLAG_YIELD_WORKERS : 0;
}

/* Of the calling thread, which runs parts alone. */
static _Thread_local struct krn_between between;

struct krn_between krn_parallel_between(struct krn_between b)
{
    struct krn_between before = between;

    between = b;
    return before;
}

static void run_alone(size_t parts, void (*fn)(void *arg, size_t part), void *arg)
{
    for (size_t i = 0; i < parts; i++) {
        if (__builtin_expect(between.fn != NULL, 0)) {
            between.fn(between.arg);
        }
        fn(arg, i);
    }
}

/*
 * The pool orders the caller before the parts and the parts before its return, but Debian's
 * libpthreadpool is not instrumented, so ThreadSanitizer cannot see that. Under it, these
 * annotations tell it; otherwise this is a plain call.
 */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

struct told {
    void (*fn)(void *arg, size_t part);
    void *arg;
};

static void run_told(void *arg, size_t part)
{
    struct told *t = arg;

    __tsan_acquire(t);
    t->fn(t->arg, part);
    __tsan_release(t);
}

static void pool_run(pthreadpool_t pool, size_t parts, void (*fn)(void *arg, size_t part),
                     void *arg)
{
    struct told t = {fn, arg};

    __tsan_release(&t);
    pthreadpool_parallelize_1d(pool, run_told, &t, parts, pool_flags);
    __tsan_acquire(&t);
}
#else
static void pool_run(pthreadpool_t pool, size_t parts, void (*fn)(void *arg, size_t part),
                     void *arg)
{
    pthreadpool_parallelize_1d(pool, fn, arg, parts, pool_flags);
}
#endif

void krn_parallel(pthreadpool_t pool, size_t parts, void (*fn)(void *arg, size_t part), void *arg)
{
    struct krn_uneven *team = krn_uneven_team();

    if (pool == NULL || parts <= 1) {
        run_alone(parts, fn, arg);
        return;
    }
    if (team) {
        struct krn_uneven_job job;

        if (krn_uneven_begin(team, parts, fn, arg, &job)) {
            pool_run(pool, team->members, krn_uneven_member, &job);
        } else {
            krn_uneven_member(&job, 0);
        }
        krn_uneven_end(&job);
        return;
    }
    pool_run(pool, parts, fn, arg);
}

struct krn_range krn_share(size_t n, size_t step, size_t part, size_t parts)
{
    size_t steps = n / step + (n % step != 0);
    size_t each = steps / parts, extra = steps % parts;
    size_t first = part * each + base_min(part, extra);
    size_t count = each + (part < extra);

    return (struct krn_range){
        .begin = base_min(first * step, n),
        .end = base_min((first + count) * step, n),
    };
}

bool krn_by_panels(size_t tiles, size_t panels, size_t width)
{
    if (krn_uneven_members(width) < width) { /* the shares of unequal members need small steps */
        return tiles < 2 * width && panels > tiles;
    }
    return tiles < 4 * width && panels >= width;
}

size_t krn_parts_end(size_t part, size_t parts)
{
    size_t end = krn_uneven_take(part, parts);

    return end ? end : part + 1;
}

struct krn_range krn_share_run(size_t n, size_t step, size_t part, size_t parts)
{
    size_t steps = n / step + (n % step != 0), end = krn_uneven_take(part, parts);

    if (end == 0) {
        return krn_share(n, step, part, parts);
    }
    part = (steps * part + parts / 2) / parts;
    end = (steps * end + parts / 2) / parts;
    krn_uneven_is((double)(end - part) / (double)base_max(steps, (size_t)1));
    return (struct krn_range){
        .begin = base_min(part * step, n),
        .end = base_min(end * step, n),
    };
}
