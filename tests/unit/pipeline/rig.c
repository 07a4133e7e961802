/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "pipeline/fence.h"
#include "tests/unit/pipeline/rig.h"

void rig_notify(void *arg)
{
    struct rig_wake *w = arg;

    if (atomic_load_explicit(&w->pending, memory_order_relaxed) == 0 &&
        atomic_exchange(&w->pending, 1) == 0) {
        sem_post(&w->sem);
    }
}

bool rig_wait(struct rig_wake *w)
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

void rig_init(struct rig *r, struct tiny_net *net)
{
    memset(r, 0, sizeof(*r));
    r->net = net;
    sem_init(&r->wake.sem, 0, 0);
    for (size_t i = 0; i < RIG_FRAMES; i++) {
        r->jobs[i].out = calloc(net->elements, sizeof(float));
    }
}

void rig_deinit(struct rig *r)
{
    r->p = pl_free(r->p);
    for (size_t i = 0; i < RIG_FRAMES; i++) {
        free(r->jobs[i].out);
    }
    sem_destroy(&r->wake.sem);
}

struct pl_options rig_options(struct rig *r)
{
    return (struct pl_options){.notify = rig_notify, .notify_arg = &r->wake, .spin_ns = 20000};
}

void rig_eps(struct pl_ep_set *eps, bool split)
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

struct pl_plan rig_plan(const char *text, const struct pl_ep_set *eps, size_t units)
{
    struct pl_plan p = {0};
    char error[160];

    if (pl_plan_parse(text, eps, units, error, sizeof(error), &p) != 0) {
        fprintf(stderr, "%s: %s\n", text, error);
        exit(1);
    }
    return p;
}

bool rig_submit(struct rig *r, unsigned flags)
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
    if (pl_submit(r->p, f) != 0) {
        pl_frame_put(r->p, f);
        return false;
    }
    r->frames[r->sent % RIG_FRAMES] = f;
    r->sent++;
    return true;
}

#define WRONG(...)                                                                                 \
    do {                                                                                           \
        fprintf(stderr, "frame %llu: ", (unsigned long long)f->tag);                               \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        r->wrong = true;                                                                           \
    } while (0)

static void check(struct rig *r, struct pl_frame *f)
{
    struct rig_job *j = f->owner;
    const float *want = j->image ? r->net->image_answer : r->net->answers[f->tag % TINY_INPUTS];

    if (f->tag != r->got || j->tag != f->tag) {
        WRONG("out of order, %llu is next", (unsigned long long)r->got);
    }
    if (f->epoch < r->epoch) {
        WRONG("epoch %u after %u", f->epoch, r->epoch);
    }
    r->epoch = f->epoch;
    switch (f->status) {
    case PL_FRAME_OK:
        if (j->cancelled_before || j->expired_before) {
            WRONG("computed though cancelled or expired");
        }
        if (memcmp(j->out, want, r->net->elements * sizeof(float)) != 0) {
            WRONG("another answer than one team gives");
        }
        if (!(f->admitted_ns <= f->started_ns && f->started_ns <= f->done_ns)) {
            WRONG("times run backwards");
        }
        r->ok++;
        break;
    case PL_FRAME_CANCELLED:
        if (!j->cancelled) {
            WRONG("cancelled by nobody");
        }
        break;
    case PL_FRAME_EXPIRED:
        if (f->deadline_ns == 0 || f->done_ns < f->deadline_ns) {
            WRONG("expired without reason");
        }
        break;
    }
    if ((j->cancelled_before || j->expired_before) && j->out[0] != 12345) {
        WRONG("touched the output of a frame that was not to be computed");
    }
}

bool rig_collect(struct rig *r)
{
    struct pl_frame *f = pl_collect(r->p);

    if (f == NULL) {
        return false;
    }
    check(r, f);
    r->got++;
    pl_frame_put(r->p, f);
    return true;
}

bool rig_drain(struct rig *r)
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

bool rig_stream(struct rig *r, uint64_t frames, unsigned flags)
{
    uint64_t until = r->sent + frames;

    while (r->sent < until) {
        while (r->sent < until && rig_submit(r, flags)) {
        }
        if (!rig_collect(r) && r->sent < until && !rig_wait(&r->wake)) {
            return false;
        }
    }
    return rig_drain(r) && !r->wrong;
}
