/* SPDX-License-Identifier: Apache-2.0 */
/* NSGA-II over plans, as the hierarchical DSE searches them (its section 4), on live trials.
 *
 * A place is an EP with all its cores, in the order of the problem's EPs: over several boards the
 * paper's CPUs and GPUs. Objectives: over several boards the paper's three (bottleneck, largest
 * memory and largest energy of a board), on one board bottleneck, latency and energy. Level 1 of a
 * stage judges by the cost table, level 2 by trials.
 *
 * Readings: the paper maps layers freely (NE). A plan may come back to a board, whose visits then
 * share its cores; but within a visit it is a chain of stages and gives no core out twice, as each
 * belongs to one team. So a mapping that comes back to a place while it is on one board misses a
 * bound by as much as it does so, as one does that misses a bound on time, memory or energy, and is
 * not tried. A plan that was measured is not run again: what it showed is looked up. */

#include "tuner/eval_boards.h"
#include "tuner/learn.h"
#include "tuner/search/search_private.h"
#include "tuner/search/staged.h"

#define TRIALS 2000u
#define FAILED 1e3 /* what a plan that could not be run misses the bounds by */

struct state {
    struct tun_staged *staged; /* owned */
    uint16_t *places;          /* [unit_count], owned: a mapping being decoded */
    size_t stage;              /* of staged, at the last question */
    size_t best;               /* log index of the best of this stage, SIZE_MAX */
};

/* The mapping as a plan. Return: how often it comes back to a place within one visit of a board, or
 * has a stage too many. */
static size_t make_plan(const struct tun_problem *p, const uint16_t *places, struct pl_plan *ret)
{
    size_t most = p->bounds.stages_max ? p->bounds.stages_max : PL_STAGE_MAX, again = 0;
    bool used[PL_EP_MAX] = {false};

    ret->stage_count = 0;
    for (size_t u = 0; u < p->unit_count; u++) {
        struct pl_stage_plan *stage;

        if (u > 0 && places[u] == places[u - 1]) {
            if (again == 0) {
                ret->stages[ret->stage_count - 1].last_unit = (uint16_t)u;
            }
            continue;
        }
        if (u > 0 && p->eps[places[u]].board != p->eps[places[u - 1]].board) {
            memset(used, 0, sizeof(used));
        }
        again += used[places[u]] || ret->stage_count == base_min(most, (size_t)PL_STAGE_MAX);
        used[places[u]] = true;
        if (again == 0) {
            stage = &ret->stages[ret->stage_count++];
            *stage = (struct pl_stage_plan){
                .first_unit = (uint16_t)u,
                .last_unit = (uint16_t)u,
                .group_count = 1,
                .groups = {{.ep = places[u], .width = p->eps[places[u]].cores, .count = 1}}};
        }
    }
    return again;
}

/* By how much the plan misses the memory of boards. */
static double over_memory(const struct tun_problem *p, const struct pl_plan *plan, double *ret_most)
{
    double bytes[TUN_BOARD_MAX], missed = 0;

    tun_plan_memory(p, plan, bytes);
    *ret_most = 0;
    for (size_t b = 0; b < p->boards.count; b++) {
        double limit = p->boards.boards[b].memory_bytes;

        *ret_most = base_max(*ret_most, bytes[b]);
        missed += limit > 0 ? base_max(0.0, bytes[b] / limit - 1) : 0;
    }
    return missed;
}

static void judge(const struct tun_problem *p, const struct pl_plan *plan,
                  const struct tun_outcome *o, struct tun_fitness *ret)
{
    *ret = (struct tun_fitness){.objective = {o->bottleneck_ns, o->latency_ns, o->energy_nj},
                                .missed = tun_missed(p, o)};
    if (p->boards.count > 1) {
        ret->missed += over_memory(p, plan, &ret->objective[1]);
        ret->objective[2] = o->most_energy_nj;
    }
}

/* Level 1. @context: the search. */
static void judge_by_costs(void *context, const uint16_t *genes, struct tun_fitness *ret)
{
    struct tun_search *s = context;
    struct state *state = s->state;
    const struct tun_problem *p = &s->problem;
    struct tun_outcome outcome;
    struct pl_plan plan;
    size_t again;

    tun_encoding_decode(s->options.encoding, genes, p->unit_count, p->ep_count, state->places);
    again = make_plan(p, state->places, &plan);
    if (again > 0 || tun_eval(p, &plan, &outcome) != 0) {
        *ret = (struct tun_fitness){.missed = FAILED + (double)again};
    } else {
        judge(p, &plan, &outcome, ret);
    }
}

static double space(const struct tun_problem *p, const struct tun_options *o)
{
    return tun_encoding_space(o ? o->encoding : TUN_ENCODING_SPE, p->unit_count, p->ep_count);
}

static int start(struct tun_search *s)
{
    struct state *state = s->state;
    const struct tun_staged_options options = {
        .encoding = s->options.encoding,
        .units = s->problem.unit_count,
        .places = s->problem.ep_count,
        .stages = s->options.stages,
        .objective_count = 3,
        .questions_max = s->options.trials_max ? s->options.trials_max : TRIALS,
        .alpha = s->options.alpha,
        .model = s->options.stages == 1 ? NULL : judge_by_costs,
        .context = s};

    tun_fill(&s->problem);
    state->best = SIZE_MAX;
    state->places = calloc(s->problem.unit_count, sizeof(*state->places));
    return state->places ? tun_staged_new(&options, &state->staged) : -ENOMEM;
}

/* Tells the engine what a trial of the log showed. */
static void tell_engine(struct tun_search *s, size_t index, bool known)
{
    struct state *state = s->state;
    const struct tun_trial *t = &s->log[index];
    struct tun_fitness fitness = {.missed = FAILED};
    bool better = index != state->best && tun_search_gains(s, t, state->best);

    if (!t->failed && t->measured.bottleneck_ns > 0) {
        judge(&s->problem, &t->plan, &t->measured, &fitness);
    }
    state->best = better ? index : state->best;
    tun_staged_tell(state->staged, &fitness, better, known);
}

static int ask(struct tun_search *s, struct pl_plan *ret)
{
    struct state *state = s->state;

    for (;;) {
        const uint16_t *genes;
        size_t again, index;
        int result = tun_staged_ask(state->staged, &s->random, &genes);

        if (result) {
            return result == TUN_STAGED_DONE ? TUN_E_DONE : result;
        }
        if (tun_staged_stage(state->staged) != state->stage) {
            state->stage = tun_staged_stage(state->staged);
            state->best = SIZE_MAX;
        }
        tun_encoding_decode(s->options.encoding, genes, s->problem.unit_count, s->problem.ep_count,
                            state->places);
        again = make_plan(&s->problem, state->places, ret);
        if (again > 0 || !tun_fits(&s->problem, ret)) {
            double most, missed = again > 0 ? (double)again : over_memory(&s->problem, ret, &most);

            tun_staged_tell(state->staged, &(struct tun_fitness){.missed = FAILED + missed}, false,
                            true);
            continue;
        }
        index = tun_search_seen(s, ret);
        if (index == SIZE_MAX) {
            return 0;
        }
        tell_engine(s, index, true);
    }
}

static void tell(struct tun_search *s, const struct tun_trial *t)
{
    tun_learn(&s->problem, t);
    tun_fill(&s->problem);
    tell_engine(s, s->count - 1, false);
}

static void stop(struct tun_search *s)
{
    struct state *state = s->state;

    state->staged = tun_staged_free(state->staged);
    free(state->places);
}

const struct tun_search_code tun_nsga2_code = {
    .state_bytes = sizeof(struct state),
    .start = start,
    .ask = ask,
    .tell = tell,
    .stop = stop,
    .space = space,
};
