/* SPDX-License-Identifier: Apache-2.0 */
/* Shisha, Algorithm 2. Where the paper says nothing:
 *
 * - N, the number of places, is bounds.stages_max: with as many as clusters each cluster is an EP
 *   of the paper, with as many as cores each core. Where it is not given, there are seeds of a core
 *   each, of half as many places, and so on down to one.
 * - Which heuristic is best is not known before ("it does not cause much work to test different
 *   choices"). Where none is given, each seed by H3 has a mirror image: its places in the opposite
 *   order, since weights do not tell which end of a network slow cores are bad at.
 * - All seeds run first. Algorithm 2 then begins at each, the best first, each time with a gamma
 *   and a throughput of its own; there a configuration that ran before ends it.
 * - FEPs are the places of the fastest EP, and of EPs described as equally fast with as much
 *   memory bandwidth; every other one is an SEP, however many EPs there are.
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
 * - With N and heuristic given, a configuration that comes back is run again, as printed: moves in
 *   a circle cost trials until alpha ends them.
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

int tun_shisha_seed(const struct tun_problem *p, unsigned heuristic, size_t places,
                    struct tun_random *random, struct tun_pipeline *ret)
{
    struct group groups[TUN_UNIT_MAX];
    struct tun_place list[PL_STAGE_MAX];
    size_t order[PL_STAGE_MAX], stages = base_min(places, tun_stages_max(p));

    if (heuristic < 1 || heuristic > 6 || places > PL_STAGE_MAX || tun_slots(p, places, list)) {
        return -EINVAL;
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        groups[u] = (struct group){.weight = p->units[u].weight, .units = 1};
    }
    merge_groups(groups, p->unit_count, stages);
    rank_stages(groups, stages, heuristic, random, order);
    ret->stage_count = stages;
    for (size_t i = 0; i < stages; i++) {
        ret->layers[i] = groups[i].units;
        ret->places[order[i]] = list[i];
    }
    return 0;
}

struct at { /* a configuration and its stages' times, as far as known */
    struct tun_pipeline conf;
    double ns[PL_STAGE_MAX];
};

/* Numbers of places from PL_STAGE_MAX down by halves, each with two assignments. */
#define START_MAX 14u

struct start { /* a seed that was asked for */
    struct at at;
    double ns; /* its bottleneck; INFINITY: it did not run, or its turn is over */
};

struct state {
    struct at here;
    struct start starts[START_MAX];
    size_t start_count;
    size_t places;       /* N of the next seed; 0: all seeds were asked for */
    bool mirrored;       /* the next seed is a mirror image */
    bool walking;        /* Algorithm 2 goes on from here */
    bool walked;         /* it did so before */
    double best_ns;      /* the least bottleneck of this walk; INFINITY: nothing ran yet */
    unsigned gamma;      /* of this walk */
    bool fep[PL_EP_MAX]; /* is the EP a fast one? */
};

/* Stage times before anything was measured: weight over speed. */
static void guess_times(const struct tun_problem *p, struct at *at)
{
    size_t u = 0;

    for (size_t s = 0; s < at->conf.stage_count; s++) {
        const struct tun_place *place = &at->conf.places[s];
        double weight = 0;

        for (size_t end = u + at->conf.layers[s]; u < end; u++) {
            weight += p->units[u].weight;
        }
        at->ns[s] = weight / (p->eps[place->ep].speed * place->width);
    }
}

/* Cuts the units at random into as many stages as there are. */
static void draw_layers(const struct tun_problem *p, struct tun_random *random,
                        struct tun_pipeline *ret)
{
    size_t s = 0, first = 0;

    for (size_t u = 1; u < p->unit_count; u++) {
        if (tun_random_below(random, p->unit_count - u) < ret->stage_count - 1 - s) {
            ret->layers[s++] = (uint16_t)(u - first);
            first = u;
        }
    }
    ret->layers[s] = (uint16_t)(p->unit_count - first);
}

/* What the paper takes as given, N and the assignment of EPs, was given: one seed, as printed. */
static bool is_printed(const struct tun_search *s)
{
    return s->problem.bounds.stages_max && s->options.heuristic;
}

static void mirror(struct tun_pipeline *c)
{
    for (size_t a = 0, b = c->stage_count - 1; a < b; a++, b--) {
        struct tun_place place = c->places[a];

        c->places[a] = c->places[b];
        c->places[b] = place;
    }
}

/* Goes to the next seed, whose turn has come. */
static void next_seed(struct tun_search *s)
{
    struct state *state = s->state;

    tun_shisha_seed(&s->problem, s->options.drawn_seed ? 5 : tun_heuristic_of(s), state->places,
                    &s->random, &state->here.conf);
    if (s->options.drawn_seed) {
        draw_layers(&s->problem, &s->random, &state->here.conf);
    }
    if (state->mirrored) {
        mirror(&state->here.conf);
    }
    guess_times(&s->problem, &state->here);
    state->mirrored = !state->mirrored && s->options.heuristic == 0;
    if (!state->mirrored) {
        state->places = s->problem.bounds.stages_max ? 0 : state->places / 2;
    }
}

static int start(struct tun_search *s)
{
    struct state *state = s->state;
    const struct tun_ep *eps = s->problem.eps;
    size_t rank[PL_EP_MAX];

    if (s->options.heuristic > 6) {
        snprintf(s->reason, sizeof(s->reason), "its heuristics are 1 to 6, there is no %u",
                 s->options.heuristic);
        return -EINVAL;
    }
    state->places = tun_places_max(&s->problem);
    tun_rank_eps(&s->problem, rank);
    for (size_t k = 0; k < s->problem.ep_count; k++) {
        state->fep[k] = k == rank[0] || (eps[k].speed == eps[rank[0]].speed &&
                                         eps[k].bandwidth == eps[rank[0]].bandwidth);
    }
    return 0;
}

static size_t slowest_stage(const struct at *at)
{
    size_t slowest = 0;

    for (size_t s = 1; s < at->conf.stage_count; s++) {
        if (at->ns[s] > at->ns[slowest]) {
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
    const struct tun_pipeline *c = &state->here.conf;
    const double *ns = state->here.ns;
    size_t best = from, nearest = from;

    for (size_t s = 0; s < c->stage_count; s++) {
        if (s == from) {
            continue;
        }
        if (ns[s] < ns[from] && (nearest == from || distance(s, from) < distance(nearest, from))) {
            nearest = s;
        }
        if (!state->fep[c->places[s].ep]) {
            continue;
        }
        if (best == from || (lightest && ns[s] < ns[best]) ||
            ((!lightest || ns[s] == ns[best]) && distance(s, from) < distance(best, from))) {
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
    bool ran = !t->failed && o->stage_count == state->here.conf.stage_count && o->bottleneck_ns > 0;
    double ns = ran && !t->stopped ? o->bottleneck_ns : INFINITY;

    if (ran) {
        memcpy(state->here.ns, o->stage_ns, o->stage_count * sizeof(*o->stage_ns));
    }
    if (!state->walking) {
        state->starts[state->start_count++] = (struct start){state->here, ns};
    } else if (ns < state->best_ns) {
        state->best_ns = ns;
        state->gamma = 0;
    } else {
        state->gamma++;
    }
}

/* Begins Algorithm 2 at the best seed that ran and has not had its turn; at the first one where
 * none ran. Return: false: there is none. */
static bool next_walk(struct tun_search *s)
{
    struct state *state = s->state;
    struct start *best = &state->starts[0];

    for (size_t i = 1; i < state->start_count; i++) {
        best = state->starts[i].ns < best->ns ? &state->starts[i] : best;
    }
    if (isinf(best->ns) && state->walked) {
        return false;
    }
    state->walking = state->walked = true;
    state->here = best->at;
    state->best_ns = best->ns;
    state->gamma = isinf(best->ns);
    best->ns = INFINITY;
    return true;
}

/* Lines 5 to 7. Return: false: Algorithm 2 is over. */
static bool move(struct tun_search *s, struct pl_plan *ret)
{
    struct state *state = s->state;
    struct tun_pipeline *conf = &state->here.conf;
    size_t from = slowest_stage(&state->here);
    size_t to = target_stage(state, from, tun_heuristic_of(s) % 2 == 1);

    if (state->gamma >= s->options.alpha || to == from || conf->layers[from] == 1) {
        return false;
    }
    tun_move_unit(conf, from, to);
    tun_pipeline_plan(conf, ret);
    return is_printed(s) || tun_search_seen(s, ret) == SIZE_MAX;
}

static int ask(struct tun_search *s, struct pl_plan *ret)
{
    struct state *state = s->state;

    while (state->places > 0) {
        next_seed(s);
        tun_pipeline_plan(&state->here.conf, ret);
        if (tun_search_seen(s, ret) == SIZE_MAX) {
            return 0;
        }
    }
    while (state->walking || next_walk(s)) {
        if (move(s, ret)) {
            return 0;
        }
        state->walking = false;
    }
    return TUN_E_DONE;
}

static double space(const struct tun_problem *p, const struct tun_options *o)
{
    return tun_space_size(p, tun_papers_space(p, NULL));
}

const struct tun_search_code tun_shisha_code = {
    .state_bytes = sizeof(struct state),
    .start = start,
    .ask = ask,
    .tell = tell,
    .space = space,
};
