/* SPDX-License-Identifier: Apache-2.0 */
/* The EPs of a change, and what was known of the old ones. */

#include "base/base.h"
#include "daemon/adapt/cores.h"
#include "daemon/service/log.h"

/* Splits off what is to be split off, as far as its cores are there. */
static void split_eps(struct dmn_adapt_change *c)
{
    uint16_t cpus[DMN_SPLIT_MAX];

    c->whole = c->eps;
    for (size_t i = 0; i < c->split.count; i++) {
        cpus[i] = c->split.cores[i].cpu;
    }
    if (pl_eps_split(&c->whole, cpus, c->split.count, &c->eps) < 0) {
        c->eps = c->whole;
    }
    if (c->eps.count == c->whole.count) { /* nothing is left of it */
        c->whole.count = 0;
        c->split.count = 0;
    }
}

static bool same_eps(const struct pl_ep_set *a, const struct pl_ep_set *b)
{
    bool same = a->count == b->count;

    for (size_t e = 0; same && e < a->count; e++) {
        same = a->eps[e].cpu_count == b->eps[e].cpu_count &&
               strcmp(a->eps[e].name, b->eps[e].name) == 0 &&
               memcmp(a->eps[e].cpus, b->eps[e].cpus,
                      a->eps[e].cpu_count * sizeof(a->eps[e].cpus[0])) == 0;
    }
    return same;
}

bool dmn_eps_only_less(const struct pl_ep_set *old, const struct pl_ep_set *new)
{
    bool taken[PL_EP_MAX] = {false};

    for (size_t e = 0; e < new->count; e++) {
        size_t match = pl_ep_like(old, &new->eps[e]);

        if (match == SIZE_MAX || taken[match] ||
            pl_ep_common(&new->eps[e], &old->eps[match]) != new->eps[e].cpu_count) {
            return false;
        }
        taken[match] = true;
    }
    return true;
}

/* Parts of an EP are not profiled, and no primitives were measured on them. */
static bool better_known(const struct tun_cell *than, const struct tun_cell *cell)
{
    return than->ns > 0 && !dmn_planner_guessed(than) && dmn_planner_guessed(cell);
}

/* What several frames at once gain: measured figures, and those that are missing. */
static void carry_at_once(const struct tun_problem *from, size_t old, struct tun_problem *to,
                          size_t ep)
{
    struct tun_at_once *all = from->at_once ? tun_problem_at_once(to) : NULL;

    for (size_t u = 0; all && u < to->unit_count; u++) {
        const struct tun_at_once *was = tun_at_once_at(from, old, u);
        struct tun_at_once *is = &all[ep * to->unit_count + u];

        if (was->measured || !tun_at_once_gains(is)) {
            *is = *was;
        }
    }
}

void dmn_eps_carry(const struct tun_problem *from, const struct pl_ep_set *from_eps,
                   struct tun_problem *to, const struct pl_ep_set *to_eps)
{
    if (from->unit_count != to->unit_count || from->ep_count != from_eps->count) {
        return;
    }
    to->handoff_ns = from->handoff_ns;
    to->handoff_ns_per_byte = from->handoff_ns_per_byte;
    for (size_t k = 0; k < to->ep_count; k++) {
        size_t old = pl_ep_like(from_eps, &to_eps->eps[k]);
        size_t widths = old == SIZE_MAX ? 0 : base_min(from->eps[old].cores, to->eps[k].cores);

        if (old != SIZE_MAX) {
            carry_at_once(from, old, to, k);
        }
        for (size_t w = 1; w <= widths; w++) {
            for (size_t u = 0; u < to->unit_count; u++) {
                const struct tun_cell *cell = tun_cell_at(&from->costs, old, w, u);

                if (cell->source >= TUN_SAVED ||
                    better_known(cell, tun_cell_at(&to->costs, k, w, u))) {
                    *tun_cell_at(&to->costs, k, w, u) = *cell;
                }
            }
        }
    }
    dmn_planner_guess(to);
}

int dmn_change_find(struct dmn_adapt_change *c)
{
    char why[DMN_CONFIG_ERROR_MAX] = "out of memory";
    int error = -ENOMEM;

    if (c->topology || (c->topology = malloc(sizeof(*c->topology)))) {
        error = dmn_eps_find(c->adapt->machine, &c->usable, c->topology, why, &c->eps);
    }
    if (!error) {
        split_eps(c);
    } else {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0}, "%s: %s; plans stay as they are",
                        c->text, why);
    }
    return error;
}

bool dmn_eps_served(const struct dmn_adapt *adapt, const struct pl_ep_set *eps)
{
    bool same = same_eps(&adapt->machine->eps, eps);

    for (const struct dmn_model *m = adapt->models->models; m && same; m = m->next) {
        same = same_eps(pl_current_eps(m->pipe), eps);
    }
    return same;
}
