/* SPDX-License-Identifier: Apache-2.0 */
/* Shisha, Algorithm 2. Where the paper says nothing:
 *
 * - FEPs are the cores of the fastest EP, and of EPs described as equally fast with as much
 *   memory bandwidth; every other core is an SEP, however many EPs there are.
 * - nFEP is the FEP stage fewest stages away, the one before on equal distance. nlFEP is the FEP
 *   stage that takes "least time to execute" its units (section 6.4), as measured; then the nearer
 *   one, then the one before. Neither may be the slowest stage itself.
 * - Where the slowest stage is the only one on an FEP, the nearest stage that takes less time is
 *   meant ("moving layers from one pipeline stage to an adjacent lighter stage", section 4.2).
 * - A target that is no neighbour gets a unit by moving every border between by one: units stay in
 *   order and the stages between keep their number of units.
 * - A stage keeps at least one unit. A slowest stage of one unit has nothing to give: that ends the
 *   search, since places never change in Algorithm 2.
 * - A worse configuration is not taken back, as printed. The paper then returns `conf`, the one it
 *   ran last; what serves here is the best one measured.
 * - A configuration that comes back is run again, as printed: moves in a circle cost trials until
 *   alpha ends them.
 * - A plan that could not be run counts as one without gain, and the next move goes by the stage
 *   times of the one before it; before anything was measured, by weights and speeds. */

#include "tuner/search/draw.h"
#include "tuner/search/search_private.h"

struct group {
    double weight;
    uint16_t units;
};

static size_t lighter_neighbour(const struct group *groups, size_t count, size_t at)
{
    bool left = at > 0 && (at + 1 == count || groups[at - 1].weight <= groups[at + 1].weight);

    return left ? at - 1 : at + 1;
}

/* Lines 3 to 8: merges @count groups until @stages are left. */
static void merge_groups(struct group *groups, size_t count, size_t stages)
{
    for (; count > stages; count--) {
        size_t lightest = 0, first;

        for (size_t i = 1; i < count; i++) {
            if (groups[i].weight < groups[lightest].weight) {
                lightest = i;
            }
        }
        first = base_min(lightest, lighter_neighbour(groups, count, lightest));
        groups[first].weight += groups[first + 1].weight;
        groups[first].units = (uint16_t)(groups[first].units + groups[first + 1].units);
        memmove(&groups[first + 1], &groups[first + 2], (count - first - 2) * sizeof(*groups));
    }
}

/* Does stage @a come before @b in the order in which fast places are given out? */
static bool ranks_before(const struct group *a, const struct group *b, bool by_layers)
{
    if (by_layers && a->units != b->units) {
        return a->units < b->units;
    }
    return a->weight > b->weight;
}

/* Line 9: the stages in the order in which they get places, the fastest place first. */
static void rank_stages(const struct group *groups, size_t stages, unsigned heuristic,
                        struct tun_random *random, size_t *ret_order)
{
    for (size_t s = 0; s < stages; s++) {
        size_t at = s;

        while (heuristic <= 4 && at > 0 &&
               ranks_before(&groups[s], &groups[ret_order[at - 1]], heuristic <= 2)) {
            ret_order[at] = ret_order[at - 1];
            at--;
        }
        ret_order[at] = s;
    }
    for (size_t s = stages; heuristic > 4 && s > 1; s--) {
        size_t other = tun_random_below(random, s), swap = ret_order[s - 1];

        ret_order[s - 1] = ret_order[other];
        ret_order[other] = swap;
    }
}

int tun_shisha_seed(const struct tun_problem *p, unsigned heuristic, struct tun_random *random,
                    struct tun_pipeline *ret)
{
    struct group groups[TUN_UNIT_MAX];
    struct tun_place places[PL_STAGE_MAX];
    size_t order[PL_STAGE_MAX], stages;

    if (heuristic < 1 || heuristic > 6) {
        return -EINVAL;
    }
    stages = tun_core_places(p, places, tun_stages_max(p));
    for (size_t u = 0; u < p->unit_count; u++) {
        groups[u] = (struct group){.weight = p->units[u].weight, .units = 1};
    }
    merge_groups(groups, p->unit_count, stages);
    rank_stages(groups, stages, heuristic, random, order);
    ret->stage_count = stages;
    for (size_t i = 0; i < stages; i++) {
        ret->layers[i] = groups[i].units;
        ret->places[order[i]] = places[i];
    }
    return 0;
}

struct state {
    struct tun_pipeline conf;
    double best_ns;          /* bottleneck of the best so far; 0: nothing ran yet */
    double ns[PL_STAGE_MAX]; /* the stages of conf, as far as known */
    bool fep[PL_EP_MAX];     /* is the EP a fast one? */
    unsigned gamma;
    bool begun;
};

/* Stage times before anything was measured: weight over speed. */
static void guess_times(const struct tun_problem *p, struct state *state)
{
    size_t u = 0;

    for (size_t s = 0; s < state->conf.stage_count; s++) {
        double weight = 0;

        for (size_t end = u + state->conf.layers[s]; u < end; u++) {
            weight += p->units[u].weight;
        }
        state->ns[s] = weight / p->eps[state->conf.places[s].ep].speed;
    }
}

static int start(struct tun_search *s)
{
    struct state *state = s->state;
    const struct tun_ep *eps = s->problem.eps;
    size_t rank[PL_EP_MAX];

    if (tun_shisha_seed(&s->problem, s->options.heuristic, &s->random, &state->conf)) {
        snprintf(s->reason, sizeof(s->reason), "its heuristics are 1 to 6, there is no %u",
                 s->options.heuristic);
        return -EINVAL;
    }
    tun_rank_eps(&s->problem, rank);
    for (size_t k = 0; k < s->problem.ep_count; k++) {
        state->fep[k] = k == rank[0] || (eps[k].speed == eps[rank[0]].speed &&
                                         eps[k].bandwidth == eps[rank[0]].bandwidth);
    }
    guess_times(&s->problem, state);
    return 0;
}

static size_t slowest_stage(const struct state *state)
{
    size_t slowest = 0;

    for (size_t s = 1; s < state->conf.stage_count; s++) {
        if (state->ns[s] > state->ns[slowest]) {
            slowest = s;
        }
    }
    return slowest;
}

static size_t distance(size_t a, size_t b)
{
    return a > b ? a - b : b - a;
}

/* Line 6. Return: the stage that gets a unit of @from, or @from if there is none. */
static size_t target_stage(const struct state *state, size_t from, bool lightest)
{
    const struct tun_pipeline *c = &state->conf;
    size_t best = from, nearest = from;

    for (size_t s = 0; s < c->stage_count; s++) {
        if (s == from) {
            continue;
        }
        if (state->ns[s] < state->ns[from] &&
            (nearest == from || distance(s, from) < distance(nearest, from))) {
            nearest = s;
        }
        if (!state->fep[c->places[s].ep]) {
            continue;
        }
        if (best == from || (lightest && state->ns[s] < state->ns[best]) ||
            ((!lightest || state->ns[s] == state->ns[best]) &&
             distance(s, from) < distance(best, from))) {
            best = s;
        }
    }
    return best != from ? best : nearest;
}

/* Takes in what the current configuration showed; lines 9 to 14. */
static void tell(struct tun_search *s, const struct tun_trial *t)
{
    struct state *state = s->state;
    const struct tun_outcome *o = &t->measured;
    bool ran = !t->failed && o->stage_count == state->conf.stage_count && o->bottleneck_ns > 0;

    if (ran) {
        memcpy(state->ns, o->stage_ns, o->stage_count * sizeof(*state->ns));
    }
    if (ran && !t->stopped && (state->best_ns == 0 || o->bottleneck_ns < state->best_ns)) {
        state->best_ns = o->bottleneck_ns;
        state->gamma = 0;
    } else {
        state->gamma++;
    }
}

static int ask(struct tun_search *s, struct pl_plan *ret)
{
    struct state *state = s->state;
    bool lightest = s->options.heuristic % 2 == 1;
    size_t from, to;

    if (!state->begun) {
        state->begun = true;
        tun_pipeline_plan(&state->conf, ret);
        return 0;
    }
    from = slowest_stage(state);
    to = target_stage(state, from, lightest);
    if (state->gamma >= s->options.alpha || to == from || state->conf.layers[from] == 1) {
        return TUN_E_DONE;
    }
    tun_move_unit(&state->conf, from, to);
    tun_pipeline_plan(&state->conf, ret);
    return 0;
}

static double space(const struct tun_problem *p, const struct tun_options *o)
{
    return tun_space_size(p, TUN_SPACE_PLACES);
}

const struct tun_search_code tun_shisha_code = {
    .state_bytes = sizeof(struct state),
    .start = start,
    .ask = ask,
    .tell = tell,
    .space = space,
};
