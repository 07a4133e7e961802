/* SPDX-License-Identifier: Apache-2.0 */
/* What a record says has changed: the cause, in the order of tuner/adapt/decide.h, and the factors
 * on costs that follow from the teams' levels. */

#include "base/base.h"
#include "tuner/adapt/decide.h"

#define THROTTLED 0.1 /* share of the cgroup's periods that says that its quota is felt */
#define PRESSED 0.25  /* share of the time in which tasks waited; above it, others are in the way */
#define WAITED 0.25   /* share of a change that has to be waiting to be called contention */
#define AGREE 0.08    /* teams of an EP whose levels differ by less are slow as one */
#define SNAP 0.03     /* a factor nearer to 1 than this is 1 */
#define SLOWED 0.05   /* log of a factor that is more than an error of the table */
#define FELL 0.08     /* log by which an EP has to be faster to be free again */

/* ---- a team ---- */

static const struct pl_group *group_of(const struct tun_record *r, const struct tun_team_now *t)
{
    return &r->plan.stages[t->stage].groups[t->group];
}

static bool says_nothing(const struct tun_team_now *t)
{
    return t->light && t->level < 0;
}

/* ---- the cause ---- */

static const struct {
    const char *name;
    bool felt;
} causes[TUN_CAUSE_COUNT] = {
    [TUN_CAUSE_NONE] = {"none", false},
    [TUN_CAUSE_GOVERNOR] = {"governor", false},
    [TUN_CAUSE_FREQUENCY] = {"frequency", false},
    [TUN_CAUSE_THERMAL] = {"thermal", false},
    [TUN_CAUSE_CONTENTION] = {"contention", true},
    [TUN_CAUSE_HOTPLUG] = {"hotplug", false},
    [TUN_CAUSE_CPUSET] = {"cpuset", false},
    [TUN_CAUSE_THROUGHPUT] = {"throughput", true},
    [TUN_CAUSE_GPIO] = {"gpio", false},
    [TUN_CAUSE_MEASURED] = {"measured", false},
};

const char *tun_cause_name(enum tun_cause cause)
{
    return causes[(unsigned)cause < TUN_CAUSE_COUNT ? cause : TUN_CAUSE_NONE].name;
}

bool tun_cause_felt(enum tun_cause cause)
{
    return (unsigned)cause < TUN_CAUSE_COUNT && causes[cause].felt;
}

static bool cores_moved(const struct tun_record *r, size_t *ret_ep)
{
    for (size_t k = 0; k < r->problem.ep_count; k++) {
        if (r->eps[k].cores != r->problem.eps[k].cores) {
            *ret_ep = k;
            return true;
        }
    }
    return false;
}

static enum tun_cause clock_cause(const struct tun_record *r, size_t *ret_ep)
{
    double most = 0;

    for (size_t k = 0; k < r->problem.ep_count; k++) {
        const struct tun_ep_now *n = &r->eps[k];

        if (tun_clock_moved(n->khz, n->khz_before) && fabs(log(n->khz / n->khz_before)) > most) {
            most = fabs(log(n->khz / n->khz_before));
            *ret_ep = k;
        }
    }
    if (most == 0) {
        return TUN_CAUSE_NONE;
    }
    if (r->eps[*ret_ep].thermal) {
        return TUN_CAUSE_THERMAL;
    }
    return r->eps[*ret_ep].governor_changed ? TUN_CAUSE_GOVERNOR : TUN_CAUSE_FREQUENCY;
}

/* Was a team kept from its cores. Service s, CPU share c: the share of a change by exp(level) that
 * is waiting is (rise of 1 - c) / (1 - exp(-level)) at first order. */
static bool contended(const struct tun_record *r, const struct tun_team_now *t, bool *ret_quota)
{
    *ret_quota = r->felt.throttled > THROTTLED;
    return *ret_quota || (isfinite(t->waiting) ? t->waiting > WAITED * (1 - exp(-t->level))
                                               : r->felt.pressure > PRESSED);
}

/* The team that moved most says what it was. */
static enum tun_cause level_cause(const struct tun_record *r, size_t *ret_ep, bool *ret_quota)
{
    const struct tun_team_now *most = NULL;
    const struct tun_ep_now *k;

    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        if (tun_team_moved(t) && (!most || t->firm > most->firm ||
                                  (t->firm == most->firm && fabs(t->level) > fabs(most->level)))) {
            most = t;
        }
    }
    if (!most) {
        return TUN_CAUSE_NONE;
    }
    *ret_ep = group_of(r, most)->ep;
    k = &r->eps[*ret_ep];
    if (most->level > 0 && contended(r, most, ret_quota)) {
        return TUN_CAUSE_CONTENTION;
    }
    if (k->thermal) {
        return TUN_CAUSE_THERMAL;
    }
    if (k->contended && most->level < 0) {
        return TUN_CAUSE_CONTENTION;
    }
    if (k->governor_changed) {
        return TUN_CAUSE_GOVERNOR;
    }
    return k->limit_changed ? TUN_CAUSE_FREQUENCY : TUN_CAUSE_THROUGHPUT;
}

enum tun_cause tun_attribute(const struct tun_record *r, size_t *ret_ep, bool *ret_quota)
{
    enum tun_cause cause;

    *ret_ep = SIZE_MAX;
    if ((r->events & TUN_EVENT_CPUSET) != 0) {
        cores_moved(r, ret_ep);
        return TUN_CAUSE_CPUSET;
    }
    if ((r->events & TUN_EVENT_HOTPLUG) != 0) {
        cores_moved(r, ret_ep);
        return TUN_CAUSE_HOTPLUG;
    }
    if ((r->events & TUN_EVENT_PARTS) != 0) {
        return TUN_CAUSE_CONTENTION;
    }
    if ((r->events & (TUN_EVENT_BUTTON | TUN_EVENT_POWER)) != 0) {
        return TUN_CAUSE_GPIO;
    }
    cause = clock_cause(r, ret_ep);
    if (cause == TUN_CAUSE_NONE) { /* what changed while nothing was watched */
        cause = r->events & TUN_EVENT_THERMAL     ? TUN_CAUSE_THERMAL
                : r->events & TUN_EVENT_GOVERNOR  ? TUN_CAUSE_GOVERNOR
                : r->events & TUN_EVENT_FREQUENCY ? TUN_CAUSE_FREQUENCY
                                                  : TUN_CAUSE_NONE;
    }
    cause = cause == TUN_CAUSE_NONE ? level_cause(r, ret_ep, ret_quota) : cause;
    if (cause != TUN_CAUSE_NONE) {
        return cause;
    }
    return r->events & TUN_EVENT_PROBE   ? TUN_CAUSE_CONTENTION
           : r->events & TUN_EVENT_COSTS ? TUN_CAUSE_MEASURED
                                         : TUN_CAUSE_THROUGHPUT;
}

/* ---- the factors ---- */

static bool counts(const struct tun_team_now *t)
{
    return tun_team_moved(t) && !says_nothing(t);
}

/* @errors: standard errors by which the level is taken nearer to 0. */
static double nearer(const struct tun_team_now *t, double errors)
{
    if (says_nothing(t)) {
        return 0;
    }
    return copysign(base_max(0.0, fabs(t->level) - errors * t->sigma), t->level);
}

/* The mean level of an EP's teams, weighted by cores. Return: do the teams agree. */
static bool ep_level(const struct tun_record *r, size_t ep, double errors, double *ret_level,
                     bool *ret_any)
{
    double sum = 0, cores = 0;
    bool agree = true;

    *ret_any = false;
    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];
        const struct pl_group *g = group_of(r, t);

        if (g->ep == ep && !pl_group_spans(g)) {
            sum += nearer(t, errors) * g->width * g->count;
            cores += g->width * g->count;
            *ret_any |= counts(t);
        }
    }
    *ret_level = cores > 0 ? sum / cores : 0;
    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        if (group_of(r, t)->ep == ep && !pl_group_spans(group_of(r, t))) {
            agree &=
                fabs(nearer(t, errors) - *ret_level) <= base_max(AGREE, TUN_CERTAIN * t->sigma);
        }
    }
    return agree;
}

static void scale(double *slow, size_t first, size_t last, double level)
{
    for (size_t u = first; u <= last; u++) {
        slow[u] = base_max(1e-6, base_min(1e6, slow[u] * exp(level)));
        if (fabs(log(slow[u])) < SNAP) {
            slow[u] = 1;
        }
    }
}

void tun_levels_correct(const struct tun_record *r, double errors, double *slow, double *ret_levels)
{
    size_t units = r->problem.unit_count;

    for (size_t k = 0; k < r->problem.ep_count; k++) {
        bool any, agree = ep_level(r, k, errors, &ret_levels[k], &any);

        if (any && agree) {
            scale(&slow[k * units], 0, units - 1, ret_levels[k]);
        }
        for (size_t i = 0; any && !agree && i < r->team_count; i++) {
            const struct tun_team_now *t = &r->teams[i];

            if (group_of(r, t)->ep == k && !pl_group_spans(group_of(r, t)) && counts(t)) {
                scale(&slow[k * units], r->plan.stages[t->stage].first_unit,
                      r->plan.stages[t->stage].last_unit, nearer(t, errors));
            }
        }
        ret_levels[k] = any ? ret_levels[k] : 0;
    }
}

/* Log of the factor that the EP's teams run at, by their own units. Return: it has teams. */
static bool team_factor(const struct tun_record *r, const double *slow, size_t ep, double *ret)
{
    double slowed = 0, free = 0;

    for (size_t i = 0; i < r->team_count; i++) {
        const struct pl_stage_plan *stage = &r->plan.stages[r->teams[i].stage];
        const struct pl_group *g = group_of(r, &r->teams[i]);

        for (size_t u = stage->first_unit;
             g->ep == ep && !pl_group_spans(g) && u <= stage->last_unit; u++) {
            double ns = tun_cell_at(&r->problem.costs, ep, g->width, u)->ns;

            free += ns;
            slowed += ns * slow[ep * r->problem.unit_count + u];
        }
    }
    *ret = free > 0 ? log(slowed / free) : 0;
    return free > 0;
}

/* What light teams of the EP show besides, at most 0. */
static double light_level(const struct tun_record *r, size_t ep)
{
    double least = 0;

    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        if (group_of(r, t)->ep == ep && tun_team_moved(t) && says_nothing(t)) {
            least = base_min(least, t->level);
        }
    }
    return least;
}

double tun_most_slowed(const struct tun_record *r, const double *slow, size_t ep)
{
    double most = 0;

    for (size_t u = 0; u < r->problem.unit_count; u++) {
        most = base_max(most, fabs(log(slow[ep * r->problem.unit_count + u])));
    }
    return most;
}

static void set_free(const struct tun_record *r, double *slow, size_t ep)
{
    for (size_t u = 0; u < r->problem.unit_count; u++) {
        slow[ep * r->problem.unit_count + u] = 1;
    }
}

/* Frees EPs whose interference has ended, see tuner/adapt/decide.h. Return: there was one. */
bool tun_levels_release(const struct tun_record *r, double *slow, bool *ret_tentative)
{
    bool any = (r->events & TUN_EVENT_PROBE) != 0, all = true;

    for (size_t k = 0; k < r->problem.ep_count; k++) {
        double before, now, light = light_level(r, k);

        if (!team_factor(r, r->slow, k, &before) || !team_factor(r, slow, k, &now)) {
            all &= tun_most_slowed(r, slow, k) <= TUN_FREE;
        } else if (tun_most_slowed(r, r->slow, k) > SLOWED && before - now - light > FELL &&
                   now + light <= TUN_FREE) {
            *ret_tentative |= light < 0;
            set_free(r, slow, k);
            any = true;
        } else {
            all &= fabs(now) <= TUN_FREE;
        }
    }
    for (size_t k = 0; any && all && k < r->problem.ep_count; k++) {
        set_free(r, slow, k);
    }
    return any;
}
