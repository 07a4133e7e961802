/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lib/blas_buffers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "kernels/lib/library_room.h"

#define BUFFERS_MAX 256u
#define ROOM_BYTES ((size_t)144 << 20) /* a buffer of OpenBLAS 0.3.21 on x86, and some more */

/* Not in its header. Without them, its calls take their buffers as they please. */
extern void *blas_memory_alloc(int of_main_thread) __attribute__((weak));
extern void blas_memory_free(void *buffer) __attribute__((weak));

static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER;
static void *buffers[BUFFERS_MAX]; /* by `growing` */
static _Atomic size_t have;        /* buffers; written by who holds `growing` */
static _Atomic size_t taken;       /* of them; written by every caller */

static bool try_take(void)
{
    size_t now = atomic_load_explicit(&taken, memory_order_relaxed);

    while (now < atomic_load_explicit(&have, memory_order_acquire)) {
        if (atomic_compare_exchange_weak_explicit(&taken, &now, now + 1, memory_order_acquire,
                                                  memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

/* All known buffers are taken, so that OpenBLAS makes another; or one was just returned, and that
 * is as good. Return: false: there is no memory for it. */
static bool add_one(void)
{
    size_t count = atomic_load_explicit(&have, memory_order_relaxed), i = 0;
    void *p;

    if (count == BUFFERS_MAX || krn_library_room(ROOM_BYTES) < 0) {
        return false;
    }
    p = blas_memory_alloc(0);
    while (i < count && buffers[i] != p) {
        i++;
    }
    blas_memory_free(p);
    if (i == count) {
        buffers[count] = p;
        atomic_store_explicit(&have, count + 1, memory_order_release);
    }
    return true;
}

static void grow(size_t count)
{
    void *held[BUFFERS_MAX];
    bool more = true;

    pthread_mutex_lock(&growing);
    while (more && atomic_load_explicit(&have, memory_order_relaxed) < count) {
        size_t n = 0;

        while (n < BUFFERS_MAX && try_take()) {
            held[n++] = blas_memory_alloc(0);
        }
        more = add_one();
        while (n > 0) {
            blas_memory_free(held[--n]);
            krn_blas_give();
        }
    }
    pthread_mutex_unlock(&growing);
}

int krn_blas_prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                     struct krn_prepared *p)
{
    if (!blas_memory_alloc || !blas_memory_free) {
        return 0;
    }
    grow(width);
    return atomic_load_explicit(&have, memory_order_relaxed) > 0 ? 0 : -ENOMEM;
}

void krn_blas_release(struct krn_prepared *p)
{
    *p = (struct krn_prepared){0};
}

void krn_blas_take(void)
{
    if (!blas_memory_alloc || !blas_memory_free) {
        return;
    }
    while (!try_take()) {
        size_t count = atomic_load_explicit(&have, memory_order_relaxed);

        grow(count + 1);
        if (atomic_load_explicit(&have, memory_order_relaxed) == count) {
            sched_yield(); /* no memory for another buffer: wait until one is returned */
        }
    }
}

void krn_blas_give(void)
{
    if (blas_memory_alloc && blas_memory_free) {
        atomic_fetch_sub_explicit(&taken, 1, memory_order_release);
    }
}
