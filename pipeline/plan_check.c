/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a plan can run. */

#include "base/base.h"
#include "pipeline/plan.h"
#include "pipeline/plan_why.h"

int pl_refuse(const struct pl_why *why, const char *format, ...)
{
    if (why->text && why->bytes > 0) {
        va_list args;

        va_start(args, format);
        vsnprintf(why->text, why->bytes, format, args);
        va_end(args);
    }
    return -EINVAL;
}

/* Return: how much of its name is the prefix of another board. */
static size_t board_bytes(const struct pl_ep *ep)
{
    const char *colon = memchr(ep->name, ':', strnlen(ep->name, PL_EP_NAME_MAX));

    return colon ? (size_t)(colon - ep->name) + 1 : 0;
}

/* The cores of other EPs in the teams of a group. */
static int check_also(const struct pl_group *g, size_t stage, const struct pl_ep_set *eps,
                      const struct pl_why *why)
{
    for (size_t i = 0; i < PL_ALSO_MAX; i++) {
        const struct pl_also *a = &g->also[i];

        if (a->width == 0 && a->ep == 0) {
            continue;
        }
        if (a->ep >= eps->count || a->width == 0 || (i > 0 && g->also[i - 1].width == 0)) {
            return pl_refuse(why, "stage %zu: a team names cores of no execution place", stage);
        }
        if (pl_group_on(g, a->ep) != a->width) {
            return pl_refuse(why, "stage %zu: a team names %.*s twice", stage, (int)PL_EP_NAME_MAX,
                             eps->eps[a->ep].name);
        }
        if (board_bytes(&eps->eps[a->ep]) != board_bytes(&eps->eps[g->ep]) ||
            memcmp(eps->eps[a->ep].name, eps->eps[g->ep].name, board_bytes(&eps->eps[g->ep])) !=
                0) {
            return pl_refuse(why, "stage %zu: a team has cores of one board only", stage);
        }
        if (a->width > eps->eps[a->ep].cpu_count) {
            return pl_refuse(why, "stage %zu: width %u, but %.*s has %zu cores", stage, a->width,
                             (int)PL_EP_NAME_MAX, eps->eps[a->ep].name, eps->eps[a->ep].cpu_count);
        }
    }
    if (pl_group_spans(g) && pl_group_width(g) > PL_SPAN_MAX) {
        return pl_refuse(why,
                         "stage %zu: a team over several execution places has %zu cores, not up to "
                         "%u",
                         stage, pl_group_width(g), PL_SPAN_MAX);
    }
    return 0;
}

static int check_stage(const struct pl_plan *p, size_t stage, const struct pl_ep_set *eps,
                       const struct pl_why *why, size_t *teams)
{
    const struct pl_stage_plan *s = &p->stages[stage];

    if (s->group_count == 0 || s->group_count > PL_GROUP_MAX) {
        return pl_refuse(why, "stage %zu has %u groups of teams, not 1 to %u", stage,
                         s->group_count, PL_GROUP_MAX);
    }
    for (size_t i = 0; i < s->group_count; i++) {
        const struct pl_group *g = &s->groups[i];

        if (g->ep >= eps->count) {
            return pl_refuse(why, "stage %zu names execution place %u of %zu", stage, g->ep,
                             eps->count);
        }
        if (g->width == 0 || g->count == 0) {
            return pl_refuse(why, "stage %zu has a %s of 0", stage,
                             g->width == 0 ? "width" : "number of teams");
        }
        if (g->width > eps->eps[g->ep].cpu_count) {
            return pl_refuse(why, "stage %zu: width %u, but %.*s has %zu cores", stage, g->width,
                             (int)PL_EP_NAME_MAX, eps->eps[g->ep].name, eps->eps[g->ep].cpu_count);
        }
        if (g->more >= PL_BATCH_MAX) {
            return pl_refuse(why, "stage %zu: a team takes 1 to %u frames at once, not %zu", stage,
                             PL_BATCH_MAX, pl_group_batch(g));
        }
        if (check_also(g, stage, eps, why) < 0) {
            return -EINVAL;
        }
        *teams += g->count;
        if (*teams > PL_TEAM_MAX) {
            return pl_refuse(why, "more than %u teams", PL_TEAM_MAX);
        }
    }
    return 0;
}

static int check_routes(const struct pl_plan *p, size_t shares, const struct pl_why *why)
{
    size_t routes = pl_plan_routes(p);

    if (routes > PL_ROUTE_MAX) {
        return pl_refuse(why, "a plan has at most %u routes", PL_ROUTE_MAX);
    }
    for (size_t i = 0; i < p->stage_count && routes > 1; i++) {
        if (p->stages[i].first_unit == 0 && p->stages[i].share == 0) {
            return pl_refuse(why, "the route of stage %zu has no part of the frames", i);
        }
    }
    if (routes > 1 ? shares != PL_SHARE_ALL : shares > 0) {
        return pl_refuse(why,
                         routes > 1 ? "the routes' parts add up to %zu.%zu %%, not to 100"
                                    : "the only route has all frames, not %zu.%zu %%",
                         shares / 10, shares % 10);
    }
    return 0;
}

int pl_plan_check(const struct pl_plan *p, const struct pl_ep_set *eps, size_t unit_count,
                  char *ret_error, size_t error_bytes)
{
    const struct pl_why why = {ret_error, error_bytes};
    size_t next = 0, teams = 0, shares = 0;

    if (eps->count > PL_EP_MAX) {
        return pl_refuse(&why, "more than %u execution places", PL_EP_MAX);
    }
    if (p->stage_count == 0 || p->stage_count > PL_STAGE_MAX) {
        return pl_refuse(&why, "a plan has 1 to %u stages, not %zu", PL_STAGE_MAX, p->stage_count);
    }
    for (size_t i = 0; i < p->stage_count; i++) {
        const struct pl_stage_plan *s = &p->stages[i];
        int r;

        if (i > 0 && next == unit_count) {
            next = 0; /* another route */
        }
        shares += s->share;
        if (s->share > 0 && s->first_unit > 0) {
            return pl_refuse(&why, "stage %zu has a part of the frames, but begins no route", i);
        }
        if (s->first_unit != next) {
            return pl_refuse(&why, "stage %zu begins at unit %u, not at unit %zu", i, s->first_unit,
                             next);
        }
        if (s->last_unit < s->first_unit) {
            return pl_refuse(&why, "stage %zu ends at unit %u, before it begins", i, s->last_unit);
        }
        if (s->last_unit >= unit_count) {
            return pl_refuse(&why, "stage %zu ends at unit %u, but the last unit is %zd", i,
                             s->last_unit, (ssize_t)unit_count - 1);
        }
        r = check_stage(p, i, eps, &why, &teams);
        if (r < 0) {
            return r;
        }
        next = (size_t)s->last_unit + 1;
    }
    if (next != unit_count) {
        return pl_refuse(&why, "units %zu to %zu are in no stage", next, unit_count - 1);
    }
    return check_routes(p, shares, &why);
}
