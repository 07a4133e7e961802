/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/learn_at_once.h"

#include "base/base.h"

#define NEWEST 0.25 /* what a trial's gain counts against the one known */
#define SIGMA 0.1   /* of a prediction made of another number of frames, at least */

static bool usable(const struct tun_problem *p, const struct tun_sample *s)
{
    return tun_sample_shared(s) && isfinite(s->frames) && s->ep < p->ep_count && s->width >= 1 &&
           s->width <= p->eps[s->ep].cores && s->unit < p->unit_count && tun_positive(s->ns) &&
           tun_cell_known(tun_cell_at(&p->costs, s->ep, s->width, s->unit));
}

static bool trusted(const struct tun_cell *c)
{
    return c->source >= TUN_SAVED;
}

/* How much slower than the table the teams of the shape of @of are at units that gain nothing. */
static double common_ratio(const struct tun_problem *p, const struct tun_trial *t,
                           const struct tun_sample *of)
{
    double seen = 0, table = 0;

    for (size_t i = 0; i < t->sample_count; i++) {
        const struct tun_sample *s = &t->samples[i];
        const struct tun_cell *c;

        if (!usable(p, s) || s->ep != of->ep || s->width != of->width ||
            tun_at_once_gains(tun_at_once_at(p, s->ep, s->unit))) {
            continue;
        }
        c = tun_cell_at(&p->costs, s->ep, s->width, s->unit);
        if (trusted(c)) {
            seen += s->ns;
            table += c->ns;
        }
    }
    return table > 0 ? seen / table : 1;
}

static void correct_gain(struct tun_at_once *a, double frames, double seen)
{
    double known = tun_at_once_factor(a, frames);
    double by = 1 + NEWEST * ((1 - seen) / (1 - known) - 1);

    by = base_max(0.5, base_min(2.0, by));
    for (size_t i = 0; i < TUN_AT_ONCE; i++) {
        a->factor[i] = 1 - by * (1 - (a->factor[i] > 0 ? a->factor[i] : 1));
    }
    a->measured = true;
    tun_at_once_settle(a);
}

void tun_learn_at_once(struct tun_problem *p, const struct tun_trial *t)
{
    for (size_t i = 0; i < t->sample_count; i++) {
        const struct tun_sample *s = &t->samples[i];
        const struct tun_at_once *a;
        struct tun_cell *c;

        if (!usable(p, s)) {
            continue;
        }
        a = tun_at_once_at(p, s->ep, s->unit);
        c = tun_cell_at(&p->costs, s->ep, s->width, s->unit);
        if (!trusted(c)) {
            c->ns = s->ns / tun_at_once_factor(a, s->frames);
            c->sigma = base_max(s->sigma, SIGMA);
            c->source = TUN_PREDICTED;
        } else if (tun_at_once_gains(a)) {
            correct_gain(&p->at_once[s->ep * p->unit_count + s->unit], s->frames,
                         s->ns / (c->ns * common_ratio(p, t, s)));
        }
    }
}
