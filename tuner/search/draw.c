/* SPDX-License-Identifier: Apache-2.0 */
/* Plans are counted, and drawn alike by walking the sums backwards. EPs are added one by one: of n
 * stages, t have teams already; the new EP has teams in the n - t others and in some of the t. To
 * draw, EPs are taken from the last to the first: how many stages are left to those before and how
 * many of them share; the cores that this EP's stages take, one stage after the other; then how
 * those cores divide into teams, a partition of them. */
#include "tuner/search/draw.h"

#define TRIES 200u /* draws past the limits of a plan before tun_slots() decides */

struct ep_ways {
    size_t cores;
    double *power; /* [stages_max + 1][cores + 1]: m stages take exactly n cores; borrowed */
    double ways[PL_STAGE_MAX + 1];  /* m stages, n or fewer cores */
    double count[PL_STAGE_MAX + 1]; /* n stages have teams of the EPs before this one */
};

struct tun_draw {
    const struct tun_problem *problem; /* borrowed */
    bool cuts_only, one_team, single_cores;
    size_t stages_min, stages_max;
    struct ep_ways eps[PL_EP_MAX];
    double choose[PL_STAGE_MAX + 1][PL_STAGE_MAX + 1];
    double lengths[PL_STAGE_MAX + 1]; /* plans of n stages, over 2^exponent */
    int exponent;
    double partitions[PL_CPU_MAX + 1][PL_CPU_MAX + 1]; /* of n into parts of at most w */
    double power[];
};

/* An index of @weight with that probability; they sum up to more than 0. */
static size_t pick(struct tun_random *r, const double *weight, size_t count)
{
    double sum = 0, at;
    size_t last = 0;

    for (size_t i = 0; i < count; i++) {
        sum += weight[i];
    }
    at = tun_random_unit(r) * sum;
    for (size_t i = 0; i < count; i++) {
        if (weight[i] > 0) {
            last = i;
            if (at < weight[i]) {
                break;
            }
        }
        at -= weight[i];
    }
    return last;
}

/* Largest entry below 1, since the counts of large machines pass a double. Return: the exponent of
 * the power of two that was taken out. */
static int normalise(double *x, size_t count)
{
    double max = 0;
    int exponent;

    for (size_t i = 0; i < count; i++) {
        max = base_max(max, x[i]);
    }
    frexp(max, &exponent);
    for (size_t i = 0; i < count; i++) {
        x[i] = ldexp(x[i], -exponent);
    }
    return exponent;
}

static void count_partitions(struct tun_draw *d)
{
    for (size_t w = 0; w <= PL_CPU_MAX; w++) {
        d->partitions[0][w] = 1;
    }
    for (size_t n = 1; n <= PL_CPU_MAX; n++) {
        for (size_t w = 1; w <= PL_CPU_MAX; w++) {
            d->partitions[n][w] = d->partitions[n][w - 1] + (w <= n ? d->partitions[n - w][w] : 0);
        }
    }
}

/* Ways to run one stage on exactly @n >= 1 cores of an EP. */
static double stage_ways(const struct tun_draw *d, size_t n)
{
    return d->single_cores ? n == 1 : d->one_team ? 1 : d->partitions[n][n];
}

static void count_ep(const struct tun_draw *d, struct ep_ways *k)
{
    size_t row = k->cores + 1;

    k->power[0] = 1;
    for (size_t m = 0; m <= d->stages_max; m++) {
        for (size_t n = 0; n < row; n++) {
            for (size_t i = 1; m > 0 && i <= n; i++) {
                k->power[m * row + n] += k->power[(m - 1) * row + n - i] * stage_ways(d, i);
            }
            k->ways[m] += k->power[m * row + n];
        }
    }
}

/* Ways in which @t of @n stages are left to the EPs before and @both of them share with @k. */
static double split_ways(const struct tun_draw *d, const struct ep_ways *k, size_t n, size_t t,
                         size_t both)
{
    return k->count[t] * k->ways[n - t + both] * d->choose[n][t] * d->choose[t][both];
}

static size_t both_max(const struct tun_draw *d, size_t t)
{
    return d->one_team ? 0 : t;
}

static void count_all(struct tun_draw *d)
{
    size_t max = d->stages_max, units = d->problem->unit_count;
    double next[PL_STAGE_MAX + 1] = {1};

    count_partitions(d);
    for (size_t n = 0; n <= max; n++) {
        for (size_t t = 0; t <= n; t++) {
            d->choose[n][t] = tun_binomial(n, t);
        }
    }
    for (size_t i = 0; i < d->problem->ep_count; i++) {
        struct ep_ways *k = &d->eps[i];

        count_ep(d, k);
        memcpy(k->count, next, sizeof(next));
        for (size_t n = 0; n <= max; n++) {
            next[n] = 0;
            for (size_t t = 0; t <= n; t++) {
                for (size_t both = 0; both <= both_max(d, t); both++) {
                    next[n] += split_ways(d, k, n, t, both);
                }
            }
        }
        d->exponent += normalise(next, max + 1);
    }
    for (size_t n = d->stages_min; n <= max; n++) {
        d->lengths[n] = tun_binomial(units - 1, n - 1) * (d->cuts_only ? 1 : next[n]);
    }
}

int tun_draw_new(const struct tun_problem *p, enum tun_space space, struct tun_draw **ret)
{
    struct tun_plans limits;
    struct tun_draw *d;
    size_t room = 0;

    tun_plans_init(&limits, p, space);
    for (size_t k = 0; k < p->ep_count; k++) {
        room += (limits.stages_max + 1) * ((size_t)p->eps[k].cores + 1);
    }
    d = calloc(1, sizeof(*d) + room * sizeof(double));
    if (!d) {
        return -ENOMEM;
    }
    d->problem = p;
    d->cuts_only = limits.cuts_only;
    d->one_team = limits.group_max == 1;
    d->single_cores = limits.width_max == 1;
    d->stages_min = limits.stages_min;
    d->stages_max = limits.stages_max;
    room = 0;
    for (size_t k = 0; k < p->ep_count; k++) {
        d->eps[k].cores = p->eps[k].cores;
        d->eps[k].power = d->power + room;
        room += (limits.stages_max + 1) * ((size_t)p->eps[k].cores + 1);
    }
    count_all(d);
    *ret = d;
    return 0;
}

struct tun_draw *tun_draw_free(struct tun_draw *d)
{
    free(d);
    return NULL;
}

double tun_space_size(const struct tun_problem *p, enum tun_space space)
{
    struct tun_draw *d;
    double size = 0;

    if (tun_draw_new(p, space, &d) < 0) {
        return INFINITY;
    }
    for (size_t n = 0; n <= d->stages_max; n++) {
        size += d->lengths[n];
    }
    size = ldexp(size, d->cuts_only ? 0 : d->exponent);
    tun_draw_free(d);
    return size;
}

/* @ret gets @wanted of 0..count-1 in rising order, any such subset as likely. */
static void subset(struct tun_random *r, size_t count, size_t wanted, size_t *ret)
{
    size_t found = 0;

    for (size_t i = 0; i < count && found < wanted; i++) {
        if (tun_random_below(r, count - i) < wanted - found) {
            ret[found++] = i;
        }
    }
}

/* Keeps the groups of a stage by EP, then width. Return: false when there is no room. */
static bool add_team(struct pl_stage_plan *s, size_t ep, size_t width)
{
    size_t at = s->group_count;

    for (size_t g = 0; g < s->group_count; g++) {
        if (s->groups[g].ep == ep && s->groups[g].width == width) {
            s->groups[g].count++;
            return true;
        }
    }
    if (s->group_count == TUN_GROUP_MAX) {
        return false;
    }
    while (at > 0 && (s->groups[at - 1].ep > ep ||
                      (s->groups[at - 1].ep == ep && s->groups[at - 1].width > width))) {
        s->groups[at] = s->groups[at - 1];
        at--;
    }
    s->groups[at] = (struct pl_group){.ep = (uint16_t)ep, .width = (uint16_t)width, .count = 1};
    s->group_count++;
    return true;
}

/* Divides @cores of an EP into teams for one stage. */
static bool draw_teams(const struct tun_draw *d, struct tun_random *r, size_t ep, size_t cores,
                       struct pl_stage_plan *s)
{
    size_t width = cores;

    if (d->one_team) {
        return add_team(s, ep, cores);
    }
    while (cores > 0) {
        width = base_min(width, cores);
        if (tun_random_unit(r) * d->partitions[cores][width] < d->partitions[cores][width - 1]) {
            width--;
        } else if (add_team(s, ep, width)) {
            cores -= width;
        } else {
            return false;
        }
    }
    return true;
}

/* Teams of one EP for the @m stages listed. */
static bool draw_ep(const struct tun_draw *d, struct tun_random *r, size_t ep, const size_t *stages,
                    size_t m, struct pl_plan *plan)
{
    const struct ep_ways *k = &d->eps[ep];
    size_t row = k->cores + 1, cores = pick(r, k->power + m * row, row);

    for (; m > 0; m--) {
        double weight[PL_CPU_MAX + 1] = {0};
        size_t n;

        for (size_t i = 1; i <= cores; i++) {
            weight[i] = stage_ways(d, i) * k->power[(m - 1) * row + cores - i];
        }
        n = pick(r, weight, cores + 1);
        if (!draw_teams(d, r, ep, n, &plan->stages[stages[m - 1]])) {
            return false;
        }
        cores -= n;
    }
    return true;
}

/* How many of @n stages are left to the EPs before, and how many of those share. */
static void draw_split(const struct tun_draw *d, struct tun_random *r, size_t ep, size_t n,
                       size_t *ret_t, size_t *ret_both)
{
    double weight[PL_STAGE_MAX + 1], sum[PL_STAGE_MAX + 1] = {0};

    for (size_t t = 0; t <= n; t++) {
        for (size_t both = 0; both <= both_max(d, t); both++) {
            sum[t] += split_ways(d, &d->eps[ep], n, t, both);
        }
    }
    *ret_t = pick(r, sum, n + 1);
    for (size_t both = 0; both <= both_max(d, *ret_t); both++) {
        weight[both] = split_ways(d, &d->eps[ep], n, *ret_t, both);
    }
    *ret_both = pick(r, weight, both_max(d, *ret_t) + 1);
}

static bool draw_places(const struct tun_draw *d, struct tun_random *r, struct pl_plan *plan)
{
    size_t open[PL_STAGE_MAX], n = plan->stage_count;

    for (size_t s = 0; s < n; s++) {
        open[s] = s;
    }
    for (size_t ep = d->problem->ep_count; ep-- > 0;) {
        size_t mine[PL_STAGE_MAX], before[PL_STAGE_MAX], shared[PL_STAGE_MAX];
        size_t t, both, m = 0, next = 0;

        draw_split(d, r, ep, n, &t, &both);
        subset(r, n, t, before);
        subset(r, t, both, shared);
        for (size_t i = 0; i < n; i++) {
            if (next < t && before[next] == i) {
                next++;
            } else {
                mine[m++] = open[i];
            }
        }
        for (size_t i = 0; i < t; i++) {
            open[i] = open[before[i]];
        }
        for (size_t i = 0; i < both; i++) {
            mine[m++] = open[shared[i]];
        }
        n = t;
        if (!draw_ep(d, r, ep, mine, m, plan)) {
            return false;
        }
    }
    return pl_plan_teams(plan) <= PL_TEAM_MAX;
}

static void draw_cuts(const struct tun_draw *d, struct tun_random *r, struct pl_plan *ret)
{
    size_t units = d->problem->unit_count, cuts[PL_STAGE_MAX], first = 0;
    size_t stages = pick(r, d->lengths, d->stages_max + 1);

    *ret = (struct pl_plan){.stage_count = stages};
    subset(r, units - 1, stages - 1, cuts);
    cuts[stages - 1] = units - 1;
    for (size_t s = 0; s < stages; s++) {
        ret->stages[s].first_unit = (uint16_t)first;
        ret->stages[s].last_unit = (uint16_t)cuts[s];
        first = cuts[s] + 1;
    }
}

/* Shares the cores by stage count, as Pipe-search does. */
static void set_slots(const struct tun_draw *d, struct pl_plan *plan)
{
    struct tun_place places[PL_STAGE_MAX];

    tun_slots(d->problem, plan->stage_count, places);
    for (size_t s = 0; s < plan->stage_count; s++) {
        plan->stages[s].group_count = 0;
        add_team(&plan->stages[s], places[s].ep, places[s].width);
    }
}

void tun_draw_next(const struct tun_draw *d, struct tun_random *r, struct pl_plan *ret)
{
    for (size_t i = 0; i < TRIES; i++) {
        draw_cuts(d, r, ret);
        if (d->cuts_only) {
            break;
        }
        if (draw_places(d, r, ret)) {
            return;
        }
    }
    set_slots(d, ret);
}
