/* SPDX-License-Identifier: Apache-2.0 */
/* Times made of samples, and joined with times from before. */

#include "base/base.h"
#include "kernels/nchw.h"
#include "kernels/select/measure_private.h"

#define RESTLESS_SHARE 0.05 /* of a time: its least uncertainty on a restless machine */

static void add_time(const struct krn_measurement *r, size_t op, const struct krn_candidate *c,
                     struct krn_times *t)
{
    const struct krn_stat *s = &r->stats[c->stat];
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
            const struct krn_candidate *c = &r->candidates[r->ops[op].first + i];

            if (!c->unable && (r->stats[c->stat].runs || r->ops[op].still)) {
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

double krn_times_disturbed(const struct krn_times *t)
{
    double all = 0, disturbed = 0;

    for (size_t i = 0; i < t->count; i++) {
        all += (double)(t->times[i].samples + t->times[i].disturbed);
        disturbed += (double)t->times[i].disturbed;
    }
    return all > 0 ? disturbed / all : 0;
}
