/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/ring.h"

#include <linux/futex.h>
#include <sys/syscall.h>

#include "pipeline/fence.h"

int pl_ring_init(struct pl_ring *r, size_t capacity)
{
    const uint32_t first = UINT32_MAX - 7;
    size_t slots = 1;

    if (capacity == 0 || capacity > (1u << 30)) {
        return -EINVAL;
    }
    while (slots < capacity) {
        slots *= 2;
    }
    r->slots = calloc(slots, sizeof(r->slots[0]));
    if (r->slots == NULL) {
        return -ENOMEM;
    }
    r->mask = (uint32_t)slots - 1;
    atomic_init(&r->tail, first);
    atomic_init(&r->head, first);
    atomic_init(&r->closed, false);
    r->head_seen = first;
    r->tail_seen = first;
    return 0;
}

void pl_ring_deinit(struct pl_ring *r)
{
    free(r->slots);
    r->slots = NULL;
}

/* ---- waiting ---- */

void pl_futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *most)
{
    (void)syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, most, NULL, 0);
}

void pl_wake_signal(struct pl_wake *w)
{
    pl_fence();
    if (atomic_load_explicit(&w->sleeping, memory_order_relaxed) != 0 &&
        atomic_exchange_explicit(&w->sleeping, 0, memory_order_acq_rel) != 0) {
        pl_futex(&w->sleeping, FUTEX_WAKE, INT_MAX, NULL);
    }
}

void pl_wake_prepare(struct pl_wake *w)
{
    atomic_store_explicit(&w->sleeping, 1, memory_order_relaxed);
    pl_fence();
}

void pl_wake_cancel(struct pl_wake *w)
{
    atomic_store_explicit(&w->sleeping, 0, memory_order_relaxed);
}

static void wait_for(struct pl_wake *w, const struct timespec *most)
{
    if (atomic_load_explicit(&w->sleeping, memory_order_acquire) != 0) {
        pl_futex(&w->sleeping, FUTEX_WAIT, 1, most);
    }
    /* after a spurious return the word may still be 1 */
    atomic_store_explicit(&w->sleeping, 0, memory_order_relaxed);
}

void pl_wake_wait(struct pl_wake *w)
{
    wait_for(w, NULL);
}

void pl_wake_wait_ns(struct pl_wake *w, uint64_t most_ns)
{
    wait_for(w, &(struct timespec){.tv_sec = (time_t)(most_ns / BASE_NS_PER_S),
                                   .tv_nsec = (long)(most_ns % BASE_NS_PER_S)});
}
