/* SPDX-License-Identifier: Apache-2.0 */
/* What the teams' levels say about the factors on costs. */

#include "tuner/adapt/levels.h"
#include "base/base.h"

#define AGREE 0.08  /* teams of an EP whose levels differ by less are slow as one */
#define SNAP 0.03   /* a factor nearer to 1 than this is 1 */
#define SLOWED 0.05 /* log of a factor that is more than an error of the table */
#define FELL 0.08   /* log by which an EP has to be faster to be free again */

static bool counts(const struct tun_team_now *t)
{
    return tun_team_moved(t) && !tun_says_nothing(t);
}

/* @errors: standard errors by which the level is taken nearer to 0. */
static double nearer(const struct tun_team_now *t, double errors)
{
    if (tun_says_nothing(t)) {
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
        const struct pl_group *g = tun_group_of(r, t);

        if (g->ep == ep) {
            sum += nearer(t, errors) * g->width * g->count;
            cores += g->width * g->count;
            *ret_any |= counts(t);
        }
    }
    *ret_level = cores > 0 ? sum / cores : 0;
    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        if (tun_group_of(r, t)->ep == ep) {
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

            if (tun_group_of(r, t)->ep == k && counts(t)) {
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
        const struct pl_group *g = tun_group_of(r, &r->teams[i]);

        for (size_t u = stage->first_unit; g->ep == ep && u <= stage->last_unit; u++) {
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

        if (tun_group_of(r, t)->ep == ep && tun_team_moved(t) && tun_says_nothing(t)) {
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
