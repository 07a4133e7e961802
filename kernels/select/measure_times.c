/* SPDX-License-Identifier: Apache-2.0 */
/* What a measurement runs on; times made of its samples, and joined with times from before. */

#include <pthread.h>
#include <sched.h>

#include "base/base.h"
#include "base/leaves/load_work.h"
#include "kernels/select/measure_private.h"

#define RESTLESS_SHARE 0.05 /* of a time: its least uncertainty on a restless machine */

static uint8_t *buffer(struct krn_measurement *r, const struct mdl_io *io)
{
    return r->buffers[r->buffer_count++] =
               aligned_alloc(64, base_align_up(base_max(io->bytes, (size_t)1), 64));
}

/* Values of a normalised image; indices and truths are zero. */
static void fill_input(const struct mdl_tensor *t, uint8_t *at, size_t bytes)
{
    uint32_t state = 12345;

    memset(at, 0, bytes);
    for (size_t i = 0; t->dtype == MDL_F32 && i < bytes / sizeof(float); i++) {
        float x;

        state = state * 1664525u + 1013904223u;
        x = (float)(state >> 8) / 8388608.0f - 1.0f;
        memcpy(at + i * sizeof(x), &x, sizeof(x));
    }
    for (size_t i = 0; t->dtype == MDL_U8 && i < bytes; i++) {
        state = state * 1664525u + 1013904223u;
        at[i] = (uint8_t)(state >> 24);
    }
}

static int make_frame(struct krn_measurement *r)
{
    const struct mdl_model *m = r->m;
    size_t arena = base_align_up(base_max(m->arena_bytes, (size_t)64), 64);

    r->arena = aligned_alloc(64, arena);
    r->saved = aligned_alloc(64, arena);
    r->copies = calloc(m->storage_count + 1, sizeof(*r->copies));
    r->buffers = calloc(2 * (m->input_count + m->output_count) + 1, sizeof(*r->buffers));
    if (!r->arena || !r->saved || !r->copies || !r->buffers) {
        return -ENOMEM;
    }
    memset(r->arena, 0, arena);
    for (size_t i = 0; i < m->input_count; i++) {
        uint8_t *at = buffer(r, &m->inputs[i]);

        if (!at) {
            return -ENOMEM;
        }
        fill_input(&m->tensors[m->inputs[i].tensor], at, m->inputs[i].bytes);
    }
    for (size_t i = 0; i < m->output_count; i++) {
        if (!buffer(r, &m->outputs[i])) {
            return -ENOMEM;
        }
    }
    r->mem = (struct krn_mem){.arena = r->arena,
                              .inputs = (const void *const *)r->buffers,
                              .outputs = (void *const *)&r->buffers[m->input_count]};
    return 0;
}

struct thread {
    struct krn_measurement *r;
    int cpu;
    const _Atomic bool *stop;
    void (*measure)(struct krn_measurement *r);
};

static void *measuring_main(void *arg)
{
    const struct thread *t = arg;

    (void)mdl_progress_by(t->r->progress);
    (void)mdl_stop_by(t->stop);
    if (t->cpu >= 0) {
        cpu_set_t set;

        CPU_ZERO(&set);
        CPU_SET((size_t)t->cpu, &set);
        (void)sched_setaffinity(0, sizeof(set), &set); /* else on any core */
    }
    t->r->error = make_frame(t->r);
    if (t->r->error == 0) {
        t->measure(t->r);
    }
    return NULL;
}

int krn_measure_on(struct krn_measurement *r, int cpu, const _Atomic bool *stop,
                   void (*measure)(struct krn_measurement *r))
{
    struct thread t = {r, cpu, stop, measure};
    pthread_t thread;
    int e;

    r->progress = mdl_progress_by(NULL);
    (void)mdl_progress_by(r->progress);
    e = pthread_create(&thread, NULL, measuring_main, &t);
    if (e == 0) {
        pthread_join(thread, NULL);
    }
    return e ? -e : r->error;
}

void krn_measure_deinit(struct krn_measurement *r)
{
    for (size_t i = 0; r->candidates && i < r->candidate_count; i++) {
        krn_bound_release(&r->candidates[i].bound);
    }
    for (size_t i = 0; r->copies && i < r->m->storage_count; i++) {
        free(r->copies[i]);
    }
    for (size_t i = 0; r->buffers && i < r->buffer_count; i++) {
        free(r->buffers[i]);
    }
    free(r->copies);
    free(r->buffers);
    free(r->arena);
    free(r->saved);
    free(r->scratch);
    free(r->ops);
    free(r->candidates);
    free(r->stats);
}

static void add_time(const struct krn_measurement *r, size_t op, const struct krn_candidate *c,
                     struct krn_times *t)
{
    const struct krn_stat *s = c->stat;
    bool still = r->ops[op].still;
    struct krn_figure f =
        still ? (struct krn_figure){.ns = r->ops[op].still_ns} : krn_stat_figure(s);

    t->times[t->count++] = (struct krn_time){.op = op,
                                             .primitive = c->bound.primitive,
                                             .ns = f.ns,
                                             .samples = s->count,
                                             .bytes = c->bytes,
                                             .sigma_ns = f.sigma_ns,
                                             .disturbed = s->disturbed_count};
}

/* Who took the core from so many samples read memory beside the others, too. */
static void doubt_restless(struct krn_times *t)
{
    if (krn_times_disturbed(t) < KRN_MEASURE_RESTLESS) {
        return;
    }
    for (size_t i = 0; i < t->count; i++) {
        t->times[i].sigma_ns = base_max(t->times[i].sigma_ns, RESTLESS_SHARE * t->times[i].ns);
    }
}

int krn_measure_results(const struct krn_measurement *r, struct krn_times *ret)
{
    struct krn_times t = {.op_count = r->m->op_count};

    t.times = calloc(r->candidate_count + 1, sizeof(*t.times));
    t.layouts = calloc(t.op_count + 1, sizeof(*t.layouts));
    if (!t.times || !t.layouts) {
        krn_times_deinit(&t);
        return -ENOMEM;
    }
    for (size_t op = 0; op < r->m->op_count; op++) {
        const struct krn_op_candidates *shapes = &r->ops[r->ops[op].same];
        size_t alone = 0;

        t.layouts[op] =
            (struct krn_layout_time){krn_stat_median(&shapes->takes),
                                     krn_stat_median(&shapes->gives), krn_nchw_may_stay(r->m, op)};
        for (size_t i = 0; i < r->ops[op].count; i++) {
            const struct krn_candidate *c = &r->ops[op].of[i];

            if (!c->unable && (c->stat->runs || r->ops[op].still)) {
                add_time(r, op, c, &t);
                alone += !c->bound.primitive->fused;
            }
        }
        if (alone == 0) {
            krn_times_deinit(&t);
            return -EOPNOTSUPP;
        }
    }
    doubt_restless(&t);
    t.took_ns = base_now_ns() - r->start_ns;
    *ret = t;
    return 0;
}

const struct krn_time *krn_times_of(const struct krn_times *t, size_t op,
                                    const struct krn_primitive *p)
{
    for (size_t i = 0; i < t->count; i++) {
        if (t->times[i].op == op && t->times[i].primitive == p) {
            return &t->times[i];
        }
    }
    return NULL;
}

void krn_times_deinit(struct krn_times *t)
{
    free(t->times);
    free(t->layouts);
    *t = KRN_TIMES_NULL;
}

/* @room: for more times */
static int copy(const struct krn_times *t, size_t room, struct krn_times *ret)
{
    struct krn_times c = *t;

    c.times = calloc(t->count + room + 1, sizeof(*c.times));
    c.layouts = t->layouts ? calloc(t->op_count + 1, sizeof(*c.layouts)) : NULL;
    if (!c.times || (t->layouts && !c.layouts)) {
        krn_times_deinit(&c);
        return -ENOMEM;
    }
    if (t->count) {
        memcpy(c.times, t->times, t->count * sizeof(*c.times));
    }
    if (t->layouts) {
        memcpy(c.layouts, t->layouts, t->op_count * sizeof(*c.layouts));
    }
    *ret = c;
    return 0;
}

int krn_times_copy(const struct krn_times *t, struct krn_times *ret)
{
    return copy(t, 0, ret);
}

/* Adds @x where its op is or would be. */
static void join_time(struct krn_times *t, const struct krn_time *x)
{
    struct krn_figure f;
    size_t i = 0;

    while (i < t->count && t->times[i].op <= x->op &&
           !(t->times[i].op == x->op && t->times[i].primitive == x->primitive)) {
        i++;
    }
    if (i == t->count || t->times[i].op > x->op) {
        memmove(&t->times[i + 1], &t->times[i], (t->count++ - i) * sizeof(*x));
        t->times[i] = *x;
        return;
    }
    f = krn_figure_join((struct krn_figure){t->times[i].ns, t->times[i].sigma_ns},
                        (struct krn_figure){x->ns, x->sigma_ns});
    t->times[i].ns = f.ns;
    t->times[i].sigma_ns = f.sigma_ns;
    t->times[i].samples += x->samples;
    t->times[i].disturbed += x->disturbed;
}

int krn_times_join(struct krn_times *t, const struct krn_times *newer)
{
    struct krn_times sum;
    int r = copy(t, newer->count, &sum);

    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < newer->count; i++) {
        join_time(&sum, &newer->times[i]);
    }
    for (size_t op = 0; sum.layouts && newer->layouts && op < sum.op_count; op++) {
        const struct krn_layout_time *x = &newer->layouts[op];

        sum.layouts[op].in_ns = x->in_ns > 0 ? x->in_ns : sum.layouts[op].in_ns;
        sum.layouts[op].out_ns = x->out_ns > 0 ? x->out_ns : sum.layouts[op].out_ns;
    }
    sum.took_ns += newer->took_ns;
    krn_times_deinit(t);
    *t = sum;
    return 0;
}

/* Adds the times of op @at of @of for op @op of @m. Return: one runs it alone. */
static bool like(const struct krn_times *from, const struct mdl_model *of, size_t at,
                 const struct mdl_model *m, size_t op, struct krn_times *ret)
{
    bool next =
        op + 1 < m->op_count && at + 1 < of->op_count && krn_measure_same(m, op + 1, of, at + 1);
    bool alone = false;

    for (size_t i = 0; i < from->count; i++) {
        struct krn_time x = from->times[i];

        if (x.op == at && (!x.primitive->fused || next) && krn_usable(x.primitive, m, op)) {
            x.op = op;
            join_time(ret, &x);
            alone |= !x.primitive->fused;
        }
    }
    return alone;
}

int krn_times_like(const struct krn_times *from, const struct mdl_model *of,
                   const struct mdl_model *m, struct krn_times *ret, bool *wanted)
{
    struct krn_times t = {.op_count = m->op_count};

    t.times = calloc(m->op_count * KRN_MEASURE_CANDIDATES_MAX + 1, sizeof(*t.times));
    t.layouts = calloc(m->op_count + 1, sizeof(*t.layouts));
    if (!t.times || !t.layouts) {
        krn_times_deinit(&t);
        return -ENOMEM;
    }
    for (size_t op = 0; op < m->op_count; op++) {
        wanted[op] = true;
        for (size_t at = 0; at < of->op_count && wanted[op]; at++) {
            wanted[op] = !krn_measure_same(m, op, of, at) || !like(from, of, at, m, op, &t);
            if (!wanted[op] && from->layouts) {
                t.layouts[op] = from->layouts[at];
            }
        }
        t.layouts[op].may_stay = krn_nchw_may_stay(m, op);
    }
    *ret = t;
    return 0;
}

double krn_times_disturbed(const struct krn_times *t)
{
    double all = 0, disturbed = 0;

    for (size_t i = 0; i < t->count; i++) {
        all += (double)(t->times[i].samples + t->times[i].disturbed);
        disturbed += (double)t->times[i].disturbed;
    }
    return all > 0 ? disturbed / all : 0;
}
