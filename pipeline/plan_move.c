/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/plan_move.h"

#include "base/base.h"

size_t pl_ep_common(const struct pl_ep *a, const struct pl_ep *b)
{
    size_t count = 0;

    for (size_t i = 0; i < a->cpu_count; i++) {
        for (size_t k = 0; k < b->cpu_count; k++) {
            count += a->cpus[i] == b->cpus[k];
        }
    }
    return count;
}

size_t pl_ep_like(const struct pl_ep_set *eps, const struct pl_ep *ep)
{
    size_t most = 0, match = SIZE_MAX;

    for (size_t e = 0; e < eps->count; e++) {
        size_t common = pl_ep_common(&eps->eps[e], ep);

        if (common > most) {
            most = common;
            match = e;
        }
    }
    return match;
}

size_t pl_ep_base(const char *name)
{
    return strcspn(name, ".");
}

/* Takes @cpu out of the EP that has it, unless it is its only one. Return: that EP, or NULL. */
static struct pl_ep *take_core(struct pl_ep_set *eps, uint16_t cpu)
{
    for (size_t e = 0; e < eps->count; e++) {
        struct pl_ep *ep = &eps->eps[e];

        for (size_t i = 0; i < ep->cpu_count && ep->cpu_count > 1; i++) {
            if (ep->cpus[i] == cpu) {
                memmove(&ep->cpus[i], &ep->cpus[i + 1],
                        (ep->cpu_count - i - 1) * sizeof(ep->cpus[0]));
                ep->cpu_count--;
                return ep;
            }
        }
    }
    return NULL;
}

int pl_eps_split(const struct pl_ep_set *whole, const uint16_t *cpus, size_t count,
                 struct pl_ep_set *ret)
{
    *ret = *whole;
    for (size_t i = 0; i < count; i++) {
        const struct pl_ep *of = take_core(ret, cpus[i]);
        struct pl_ep *part = &ret->eps[ret->count];
        char name[PL_EP_NAME_MAX];
        int used;

        if (!of) {
            continue;
        }
        if (ret->count == PL_EP_MAX) {
            return -ENOSPC;
        }
        memcpy(name, of->name, sizeof(name));
        *part = *of;
        used = snprintf(part->name, sizeof(part->name), "%.*s.%u", (int)pl_ep_base(name), name,
                        cpus[i]);
        if (used < 0 || (size_t)used >= sizeof(part->name)) {
            return -ENOSPC;
        }
        part->cpu_count = 1;
        part->cpus[0] = cpus[i];
        ret->count++;
    }
    return 0;
}

/* The only EP of @to that has cores of @ep; SIZE_MAX: none has any, or several have. */
static size_t only_ep(const struct pl_ep_set *to, const struct pl_ep *ep)
{
    size_t match = SIZE_MAX;

    for (size_t e = 0; e < to->count; e++) {
        if (pl_ep_common(&to->eps[e], ep) > 0) {
            if (match != SIZE_MAX) {
                return SIZE_MAX;
            }
            match = e;
        }
    }
    return match;
}

/* The EP of @to that has the cores of a team, which begin at the place @next of the cores of @ep;
 * SIZE_MAX: none has them all. */
static size_t ep_of_team(const struct pl_ep_set *to, const struct pl_ep *ep, size_t width,
                         size_t next)
{
    struct pl_ep team = {.cpu_count = base_min(width, (size_t)PL_CPU_MAX)};
    size_t match;

    for (size_t i = 0; i < team.cpu_count; i++) {
        team.cpus[i] = ep->cpus[(next + i) % ep->cpu_count];
    }
    match = pl_ep_like(to, &team);
    return match != SIZE_MAX && pl_ep_common(&team, &to->eps[match]) == team.cpu_count ? match
                                                                                       : SIZE_MAX;
}

/* Adds teams to a stage. Return: there was room. */
static bool add_teams(struct pl_stage_plan *stage, const struct pl_group *like, size_t ep,
                      size_t count)
{
    struct pl_group *g;

    for (size_t i = 0; i < stage->group_count; i++) {
        g = &stage->groups[i];
        if (g->ep == ep && g->width == like->width && g->more == like->more &&
            memcmp(g->also, like->also, sizeof(g->also)) == 0) {
            g->count = (uint16_t)(g->count + count);
            return true;
        }
    }
    if (stage->group_count == PL_GROUP_MAX) {
        return false;
    }
    g = &stage->groups[stage->group_count++];
    *g = *like;
    g->ep = (uint16_t)ep;
    g->count = (uint16_t)count;
    return true;
}

/* A team over several EPs moves where each of them is one EP again, and they are not the same. */
static bool move_also(struct pl_group *g, const struct pl_ep_set *from, const struct pl_ep_set *to)
{
    for (size_t i = 0; i < PL_ALSO_MAX && g->also[i].width > 0; i++) {
        size_t only = only_ep(to, &from->eps[g->also[i].ep]);

        if (only == SIZE_MAX) {
            return false;
        }
        g->also[i].ep = (uint8_t)only;
    }
    return true;
}

static bool move_group(const struct pl_group *g, const struct pl_ep_set *from,
                       const struct pl_ep_set *to, size_t *next, struct pl_stage_plan *ret)
{
    const struct pl_ep *ep = &from->eps[g->ep];
    size_t only = only_ep(to, ep), match;
    struct pl_group moved = *g;

    if (pl_group_spans(g)) {
        return only != SIZE_MAX && move_also(&moved, from, to) &&
               add_teams(ret, &moved, only, g->count);
    }
    if (only != SIZE_MAX) {
        return add_teams(ret, g, only, g->count);
    }
    for (size_t i = 0; i < g->count; i++, *next += g->width) {
        match = ep_of_team(to, ep, g->width, *next);
        if (match == SIZE_MAX || !add_teams(ret, g, match, 1)) {
            return false;
        }
    }
    return true;
}

/* Return: no EP of @to has to give more cores than it has, unless one of @from had to. */
static bool cores_suffice(const struct pl_plan *before, const struct pl_ep_set *from,
                          const struct pl_plan *after, const struct pl_ep_set *to)
{
    for (size_t e = 0; e < to->count; e++) {
        size_t old = pl_ep_like(from, &to->eps[e]);
        bool shared = old != SIZE_MAX && pl_plan_cores(before, old) > from->eps[old].cpu_count;

        if (!shared && pl_plan_cores(after, e) > to->eps[e].cpu_count) {
            return false;
        }
    }
    return true;
}

bool pl_plan_move(const struct pl_plan *plan, const struct pl_ep_set *from,
                  const struct pl_ep_set *to, size_t unit_count, struct pl_plan *ret)
{
    size_t next[PL_EP_MAX] = {0};
    char error[256];

    *ret = *plan;
    for (size_t s = 0; s < plan->stage_count; s++) {
        const struct pl_stage_plan *stage = &plan->stages[s];

        ret->stages[s].group_count = 0;
        for (size_t g = 0; g < stage->group_count; g++) {
            if (!move_group(&stage->groups[g], from, to, &next[stage->groups[g].ep],
                            &ret->stages[s])) {
                return false;
            }
        }
    }
    return pl_plan_check(ret, to, unit_count, error, sizeof(error)) == 0 &&
           cores_suffice(plan, from, ret, to);
}
