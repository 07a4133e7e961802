/* SPDX-License-Identifier: Apache-2.0 */
#include "base.h"
#include "kernels/select/measure_private.h"

#define FEW 3u /* samples that identify a hopeless primitive ... */
#define HOPELESS 2.0
#define SOME 8u /* ... and one that will not win */
#define BEHIND 1.15

double krn_stat_median(const struct krn_stat *s)
{
    double sorted[KRN_MEASURE_FRAMES];

    for (size_t i = 0; i < s->count; i++) {
        size_t at = i;

        for (; at > 0 && sorted[at - 1] > s->samples[i]; at--) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = s->samples[i];
    }
    return s->count ? (sorted[(s->count - 1) / 2] + sorted[s->count / 2]) / 2 : 0;
}

static double least(const struct krn_stat *s)
{
    double x = s->samples[0];

    for (size_t i = 1; i < s->count; i++) {
        x = base_min(x, s->samples[i]);
    }
    return x;
}

struct krn_candidate *krn_measure_fastest(const struct krn_measurement *r, size_t op)
{
    struct krn_candidate *best = NULL;

    for (size_t i = 0; i < r->ops[op].count; i++) {
        struct krn_candidate *c = &r->candidates[r->ops[op].first + i];

        if (!c->unable && !c->bound.primitive->fused && r->stats[c->stat].count &&
            (!best ||
             krn_stat_median(&r->stats[c->stat]) < krn_stat_median(&r->stats[best->stat]))) {
            best = c;
        }
    }
    return best;
}

void krn_measure_judge(struct krn_measurement *r, size_t op, struct krn_candidate *c)
{
    const struct krn_candidate *best = krn_measure_fastest(r, op), *next;
    struct krn_stat *s = &r->stats[c->stat];
    double rival, rival_least;

    if (!best || s->count < FEW || best == c) {
        return;
    }
    rival = krn_stat_median(&r->stats[best->stat]);
    rival_least = least(&r->stats[best->stat]);
    if (c->bound.primitive->fused) {
        next = krn_measure_fastest(r, op + 1);
        if (!next) {
            return;
        }
        rival += krn_stat_median(&r->stats[next->stat]);
        rival_least += least(&r->stats[next->stat]);
    }
    s->dropped |=
        least(s) > HOPELESS * rival_least ||
        (s->count >= SOME && krn_stat_median(s) > BEHIND * rival && least(s) > rival_least);
}

bool krn_measure_is_done(const struct krn_measurement *r, const struct krn_candidate *c)
{
    const struct krn_stat *s = &r->stats[c->stat];

    return c->unable || s->dropped || s->count >= r->frames;
}
