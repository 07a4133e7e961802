/* SPDX-License-Identifier: Apache-2.0 */
/* How a team takes frames: it waits, and for company. */
#include "pipeline/team.h"

#include <sched.h>

#include "pipeline/frame_pool.h"

/* Polls between two clock reads while spinning. */
#define SPIN_BATCH 32u

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Return: the oldest frame of all rings, so that frames of several producers stay nearly in order.
 * @ret_from: the ring where it is. */
static struct pl_frame *peek_oldest(struct pl_team *t, size_t *ret_from)
{
    struct pl_frame *best = NULL;

    for (size_t i = 0; i < t->input_count; i++) {
        struct pl_frame *f = pl_ring_peek(t->inputs[i]);

        if (f != NULL && (best == NULL || f->number < best->number)) {
            best = f;
            *ret_from = i;
        }
    }
    return best;
}

static struct pl_frame *take_oldest(struct pl_team *t)
{
    size_t from;

    return peek_oldest(t, &from) != NULL ? pl_ring_pop(t->inputs[from]) : NULL;
}

static bool must_end(struct pl_team *t)
{
    if (atomic_load_explicit(&t->common->abort, memory_order_relaxed)) {
        return true;
    }
    for (size_t i = 0; i < t->input_count; i++) {
        if (!pl_ring_dry(t->inputs[i])) {
            return false;
        }
    }
    return true;
}

static bool anything(struct pl_team *t)
{
    for (size_t i = 0; i < t->input_count; i++) {
        if (pl_ring_peek(t->inputs[i]) != NULL) {
            return true;
        }
    }
    return must_end(t);
}

static bool spin(struct pl_team *t)
{
    uint64_t end;

    if (t->common->options.spin_ns == 0) {
        return false;
    }
    /* the thread that the last hand-off woke (the loop, or a client) may need this core */
    sched_yield();
    end = base_now_ns() + t->common->options.spin_ns;
    do {
        for (unsigned i = 0; i < SPIN_BATCH; i++) {
            if (anything(t)) {
                return true;
            }
            relax();
        }
    } while (base_now_ns() < end);
    return false;
}

/* The next frame, or NULL when the team has to end. */
static struct pl_frame *take(struct pl_team *t)
{
    for (;;) {
        size_t from;
        const struct pl_frame *f = peek_oldest(t, &from);
        bool taken;

        if (f != NULL && !atomic_load_explicit(&t->common->abort, memory_order_relaxed) &&
            pl_team_sit(t, f)) {
            return take_oldest(t); /* an older one may have come */
        }
        if (must_end(t)) {
            return NULL;
        }
        taken = pl_team_rise(t);
        if (!taken && spin(t)) {
            continue;
        }
        pl_members_rest(&t->members);
        pl_wake_prepare(&t->wake);
        if (anything(t)) {
            pl_wake_cancel(&t->wake);
            continue;
        }
        t->slept = true;
        pl_wake_wait(&t->wake);
    }
}

/* Whether another frame may join: none of those held may miss its deadline for it. Before a time is
 * measured, none with a deadline has company. @ret_until_ns: how long they can wait for one. */
static bool may_join(const struct pl_team *t, const struct pl_held *h, uint64_t now_ns,
                     uint64_t *ret_until_ns)
{
    double all_ns = pl_clocks_service_ns(&t->clocks) * (double)(h->count + 1);
    uint64_t until = h->frames[0]->private->given_ns + t->common->options.batch_wait_ns;

    for (size_t i = 0; i < h->count; i++) {
        uint64_t deadline = h->frames[i]->deadline_ns;

        if (deadline == 0) {
            continue;
        }
        if (all_ns <= 0 || deadline < now_ns || (double)(deadline - now_ns) < all_ns) {
            return false;
        }
        until = base_min(until, deadline - (uint64_t)all_ns);
    }
    *ret_until_ns = until;
    return true;
}

/* Sleeps until there may be a frame, or until @until_ns. */
static void wait_for_company(struct pl_team *t, uint64_t now_ns, uint64_t until_ns)
{
    pl_wake_prepare(&t->wake);
    if (anything(t)) {
        pl_wake_cancel(&t->wake);
    } else {
        pl_wake_wait_ns(&t->wake, until_ns - now_ns);
    }
}

/* Takes more frames to the first one: those that are there, and those that come in time. */
static void take_company(struct pl_team *t, struct pl_held *h)
{
    while (h->count < t->batch) {
        uint64_t now = base_now_ns(), until;
        struct pl_frame *f;

        if (!may_join(t, h, now, &until)) {
            return;
        }
        f = take_oldest(t);
        if (f != NULL) {
            h->frames[h->count++] = f;
        } else if (t->common->options.batch_wait_ns == 0 || now >= until || must_end(t)) {
            return;
        } else {
            wait_for_company(t, now, until);
        }
    }
}

bool pl_team_take(struct pl_team *t, struct pl_held *ret)
{
    ret->frames[0] = take(t);
    ret->count = 1;
    if (ret->frames[0] == NULL) {
        return false;
    }
    if (t->batch > 1) {
        take_company(t, ret);
    }
    return true;
}
