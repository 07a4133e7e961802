/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "kernels/select/measure_private.h"

#define FEW 3u /* samples that identify a hopeless primitive ... */
#define HOPELESS 2.0
#define SOME 8u /* ... and one that will not win */
#define BEHIND 1.15
#define SIGMAS 2 /* that a verdict must leave room for, on both sides */

struct krn_figure krn_stat_figure(const struct krn_stat *s)
{
    return krn_figure_of(s->samples, s->count, s->disturbed,
                         base_min(s->disturbed_count, (size_t)KRN_MEASURE_FRAMES));
}

double krn_stat_median(const struct krn_stat *s)
{
    return krn_stat_figure(s).ns;
}

struct krn_candidate *krn_measure_fastest(const struct krn_measurement *r, size_t op)
{
    struct krn_candidate *best = NULL;

    for (size_t i = 0; i < r->ops[op].count; i++) {
        struct krn_candidate *c = &r->candidates[r->ops[op].first + i];

        if (!c->unable && !c->bound.primitive->fused && r->stats[c->stat].runs &&
            (!best ||
             krn_stat_median(&r->stats[c->stat]) < krn_stat_median(&r->stats[best->stat]))) {
            best = c;
        }
    }
    return best;
}

/* What @c has to beat, and how many clean samples that rests on; 0: nothing yet. */
static size_t rival_of(const struct krn_measurement *r, size_t op, const struct krn_candidate *c,
                       struct krn_figure *ret)
{
    size_t last = c->bound.primitive->fused ? op + 1 : op, least = SIZE_MAX;

    *ret = (struct krn_figure){0};
    for (size_t i = op; i <= last; i++) {
        const struct krn_candidate *best = krn_measure_fastest(r, i);
        struct krn_figure f;

        if (!best || best == c) {
            return 0;
        }
        f = krn_stat_figure(&r->stats[best->stat]);
        ret->ns += f.ns;
        ret->sigma_ns += f.sigma_ns;
        least = base_min(least, r->stats[best->stat].count);
    }
    return least;
}

void krn_measure_judge(struct krn_measurement *r, size_t op, struct krn_candidate *c)
{
    struct krn_stat *s = &r->stats[c->stat];
    struct krn_figure own = krn_stat_figure(s), rival;
    size_t count = base_min(s->count, rival_of(r, op, c, &rival));
    double least = own.ns - SIGMAS * own.sigma_ns, most = rival.ns + SIGMAS * rival.sigma_ns;

    s->dropped |= (count >= FEW && least > HOPELESS * most) ||
                  (count >= SOME && least > most && own.ns > BEHIND * rival.ns);
}

bool krn_measure_is_done(const struct krn_measurement *r, const struct krn_candidate *c)
{
    const struct krn_stat *s = &r->stats[c->stat];

    return c->unable || s->dropped || s->count >= r->frames ||
           s->runs >= KRN_MEASURE_PATIENCE * r->frames;
}
