/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/span.h"

#include "base/base.h"

#define NEWEST 0.5 /* what a sample counts against what was known */

static bool same_team(const struct pl_group *a, const struct pl_group *b)
{
    return a->ep == b->ep && a->width == b->width && memcmp(a->also, b->also, sizeof(a->also)) == 0;
}

/* Return: what was measured of the unit; 0: nothing. */
static double known(const struct tun_problem *p, const struct pl_group *group, size_t unit)
{
    for (size_t i = 0; i < p->span_count; i++) {
        if (same_team(&p->spans[i].team, group)) {
            return p->spans[i].factors[unit];
        }
    }
    return 0;
}

/* What perfect division would take; < 0: unknown. */
static double divided_ns(const struct tun_problem *p, const struct pl_group *group, size_t unit)
{
    double rate = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        size_t width = pl_group_on(group, k);

        if (width > 0) {
            double ns = tun_cell_at(&p->costs, k, width, unit)->ns;

            if (ns <= 0) {
                return -1;
            }
            rate += 1 / ns;
        }
    }
    return rate > 0 ? 1 / rate : -1;
}

double tun_span_ns(const struct tun_problem *p, const struct pl_group *group, size_t unit)
{
    double ns = divided_ns(p, group, unit), factor = known(p, group, unit);

    return ns * (factor > 0 ? factor : TUN_SPAN_LOSS);
}

/* The one of @group. Where there is no place for another team, the one that was learned first goes.
 * Return: NULL: without memory. */
static struct tun_span *span_of(struct tun_problem *p, const struct pl_group *group)
{
    double *factors;

    for (size_t i = 0; i < p->span_count; i++) {
        if (same_team(&p->spans[i].team, group)) {
            return &p->spans[i];
        }
    }
    factors = calloc(p->unit_count, sizeof(*factors));
    if (!factors) {
        return NULL;
    }
    if (p->span_count == TUN_SPAN_MAX) {
        free(p->spans[0].factors);
        memmove(&p->spans[0], &p->spans[1], (TUN_SPAN_MAX - 1) * sizeof(p->spans[0]));
        p->span_count--;
    }
    p->spans[p->span_count] = (struct tun_span){.team = *group, .factors = factors};
    return &p->spans[p->span_count++];
}

void tun_span_learn(struct tun_problem *p, const struct pl_group *group, size_t unit, double ns)
{
    struct tun_span *s;
    double ratio, *f;

    for (size_t k = 0; k < PL_ALSO_MAX; k++) {
        const struct pl_also *a = &group->also[k];

        if (a->ep >= p->ep_count || a->width > p->eps[a->ep].cores) {
            return;
        }
    }
    if (group->ep >= p->ep_count || group->width > p->eps[group->ep].cores ||
        unit >= p->unit_count) {
        return;
    }
    ratio = ns / divided_ns(p, group, unit);
    s = tun_positive(ratio) ? span_of(p, group) : NULL;
    if (s) {
        f = &s->factors[unit];
        *f = *f > 0 ? *f * pow(ratio / *f, NEWEST) : ratio;
    }
}

int tun_span_carry(const struct tun_problem *from, const size_t *eps, struct tun_problem *to)
{
    for (size_t i = 0; i < from->span_count; i++) {
        struct pl_group team = from->spans[i].team;
        struct tun_span *s;
        bool there = true;

        for (size_t k = 0; k < from->ep_count; k++) {
            there &= pl_group_on(&team, k) == 0 ||
                     (eps[k] < to->ep_count && pl_group_on(&team, k) <= to->eps[eps[k]].cores);
        }
        if (!there) {
            continue;
        }
        pl_group_rename(&team, eps);
        s = span_of(to, &team);
        if (!s) {
            return -ENOMEM;
        }
        memcpy(s->factors, from->spans[i].factors, to->unit_count * sizeof(*s->factors));
    }
    return 0;
}

int tun_span_scale(struct tun_problem *p, const struct pl_group *group, size_t first, size_t last,
                   double factor)
{
    struct tun_span *s = span_of(p, group);

    for (size_t u = first; s && u <= last; u++) {
        s->factors[u] = factor * (s->factors[u] > 0 ? s->factors[u] : TUN_SPAN_LOSS);
    }
    return s ? 0 : -ENOMEM;
}

double tun_group_watts(const struct tun_problem *p, const struct pl_group *group)
{
    double watts = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        watts += (double)pl_group_on(group, k) * tun_ep_watts(&p->eps[k]);
    }
    return watts;
}
