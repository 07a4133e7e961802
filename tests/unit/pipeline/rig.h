/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/pipeline/rig.h - a loop thread in miniature: wakes up like libuv's async handle, holds
 * frames' buffers, checks every answer
 */
#pragma once

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base.h"
#include "pipeline/fence.h"
#include "pipeline/pipeline.h"
#include "tests/harness.h"
#include "tests/unit/pipeline/tiny_net.h"

#define RIG_FRAMES 256u

/* A wake-up that coalesces: a relaxed look at the flag, then the exchange, as uv_async_send(). */
struct rig_wake {
    _Atomic int pending;
    sem_t sem;
};
static void rig_notify(void *arg)
{
    struct rig_wake *w = arg;

    if (atomic_load_explicit(&w->pending, memory_order_relaxed) == 0 &&
        atomic_exchange(&w->pending, 1) == 0) {
        sem_post(&w->sem);
    }
}
/* False after two minutes without a wake-up: one was lost. */
static bool rig_wait(struct rig_wake *w)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 120;
    while (sem_timedwait(&w->sem, &until) != 0) {
        if (errno != EINTR) {
            return false;
        }
    }
    atomic_store_explicit(&w->pending, 0, memory_order_relaxed);
    pl_fence();
    return true;
}

struct rig_job {
    float *out;
    bool image, cancelled_before, cancelled, expired_before;
    uint64_t tag;
};

struct rig {
    struct tiny_net *net;
    struct rig_wake wake;
    struct pl_pipeline *p;
    struct rig_job jobs[RIG_FRAMES]; /* in flight: tag % RIG_FRAMES */
    struct pl_frame *frames[RIG_FRAMES];
    uint64_t sent, got, ok;
    uint32_t epoch;
    bool wrong;
};

static void rig_init(struct rig *r, struct tiny_net *net)
{
    memset(r, 0, sizeof(*r));
    r->net = net;
    sem_init(&r->wake.sem, 0, 0);
    for (size_t i = 0; i < RIG_FRAMES; i++) {
        r->jobs[i].out = calloc(net->elements, sizeof(float));
    }
}

static void rig_deinit(struct rig *r)
{
    r->p = pl_free(r->p);
    for (size_t i = 0; i < RIG_FRAMES; i++) {
        free(r->jobs[i].out);
    }
    sem_destroy(&r->wake.sem);
}

static struct pl_options rig_options(struct rig *r)
{
    return (struct pl_options){.notify = rig_notify, .notify_arg = &r->wake, .spin_ns = 20000};
}

/* The CPUs this process may use, as one EP, or one EP each (then "little" is called slower). */
static void rig_eps(struct pl_ep_set *eps, bool split)
{
    cpu_set_t set;

    memset(eps, 0, sizeof(*eps));
    sched_getaffinity(0, sizeof(set), &set);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set)) {
            struct pl_ep *ep = &eps->eps[split && eps->eps[0].cpu_count > 0 ? 1 : 0];

            if (ep->cpu_count < PL_CPU_MAX) {
                ep->cpus[ep->cpu_count++] = (uint16_t)cpu;
            }
        }
    }
    snprintf(eps->eps[0].name, PL_EP_NAME_MAX, "big");
    eps->eps[0].speed = 1;
    eps->count = 1;
    if (split) {
        snprintf(eps->eps[1].name, PL_EP_NAME_MAX, "little");
        eps->eps[1].speed = 0.5;
        if (eps->eps[1].cpu_count == 0) { /* one CPU: both kinds share it */
            eps->eps[1].cpus[0] = eps->eps[0].cpus[0];
            eps->eps[1].cpu_count = 1;
        }
        eps->count = 2;
    }
}

/* What may be asked of a frame. */
enum { RIG_CANCELLED = 1, RIG_EXPIRED = 2, RIG_DEADLINE = 4, RIG_IMAGE = 8 };

/* Return: false if there was no frame or no room. */
static bool rig_submit(struct rig *r, unsigned flags)
{
    struct pl_frame *f = pl_frame_get(r->p);
    struct rig_job *j = &r->jobs[r->sent % RIG_FRAMES];

    if (f == NULL) {
        return false;
    }
    j->tag = r->sent;
    j->image = (flags & RIG_IMAGE) != 0 && r->net->image != NULL;
    j->cancelled = j->cancelled_before = (flags & RIG_CANCELLED) != 0;
    j->expired_before = (flags & RIG_EXPIRED) != 0;
    j->out[0] = 12345; /* clipped to 2: no answer */
    f->tag = r->sent;
    f->owner = j;
    f->inputs[0] = r->net->inputs[r->sent % TINY_INPUTS];
    f->outputs[0] = j->out;
    if (j->image) {
        f->inputs[0] = NULL;
        f->has_image = true;
        f->image = (struct krn_image){KRN_PIX_RGB24, (uint32_t)r->net->image_side,
                                      (uint32_t)r->net->image_side,
                                      (uint32_t)r->net->image_side * 3, r->net->image};
    }
    f->deadline_ns = j->expired_before ? 1 : flags & RIG_DEADLINE ? base_now_ns() + 200000 : 0;
    atomic_store_explicit(&f->cancel, j->cancelled_before, memory_order_relaxed);
    if (pl_submit(r->p, f) == PL_E_FULL) {
        pl_frame_put(r->p, f);
        return false;
    }
    r->frames[r->sent % RIG_FRAMES] = f;
    r->sent++;
    return true;
}

#define RIG_WRONG(...)                                                                             \
    do {                                                                                           \
        fprintf(stderr, "frame %llu: ", (unsigned long long)f->tag);                               \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        r->wrong = true;                                                                           \
    } while (0)

static void rig_check(struct rig *r, struct pl_frame *f)
{
    struct rig_job *j = f->owner;
    const float *want = j->image ? r->net->image_answer : r->net->answers[f->tag % TINY_INPUTS];

    if (f->tag != r->got || j->tag != f->tag) {
        RIG_WRONG("out of order, %llu is next", (unsigned long long)r->got);
    }
    if (f->epoch < r->epoch) {
        RIG_WRONG("epoch %u after %u", f->epoch, r->epoch);
    }
    r->epoch = f->epoch;
    switch (f->status) {
    case PL_FRAME_OK:
        if (j->cancelled_before || j->expired_before) {
            RIG_WRONG("computed though cancelled or expired");
        }
        if (memcmp(j->out, want, r->net->elements * sizeof(float)) != 0) {
            RIG_WRONG("another answer than one team gives");
        }
        if (!(f->admitted_ns <= f->started_ns && f->started_ns <= f->done_ns)) {
            RIG_WRONG("times run backwards");
        }
        r->ok++;
        break;
    case PL_FRAME_CANCELLED:
        if (!j->cancelled) {
            RIG_WRONG("cancelled by nobody");
        }
        break;
    case PL_FRAME_EXPIRED:
        if (f->deadline_ns == 0 || f->done_ns < f->deadline_ns) {
            RIG_WRONG("expired without reason");
        }
        break;
    }
    if ((j->cancelled_before || j->expired_before) && j->out[0] != 12345) {
        RIG_WRONG("touched the output of a frame that was not to be computed");
    }
}

/* Return: false if none is finished. */
static bool rig_collect(struct rig *r)
{
    struct pl_frame *f = pl_collect(r->p);

    if (f == NULL) {
        return false;
    }
    rig_check(r, f);
    r->got++;
    pl_frame_put(r->p, f);
    return true;
}

static inline void rig_cancel_any(struct rig *r)
{
    if (r->sent > r->got) {
        uint64_t tag = r->got + t_random() % (r->sent - r->got);

        r->jobs[tag % RIG_FRAMES].cancelled = true;
        atomic_store_explicit(&r->frames[tag % RIG_FRAMES]->cancel, true, memory_order_relaxed);
    }
}

/* Collects all that is in flight; false if a wake-up was lost. */
static bool rig_drain(struct rig *r)
{
    for (;;) {
        while (rig_collect(r)) {
        }
        pl_reap(r->p);
        if (r->got == r->sent && !pl_switching(r->p)) {
            return true;
        }
        if (!rig_wait(&r->wake)) {
            fprintf(stderr, "no wake-up: %llu sent, %llu got\n", (unsigned long long)r->sent,
                    (unsigned long long)r->got);
            return false;
        }
    }
}
