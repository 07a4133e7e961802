/* SPDX-License-Identifier: Apache-2.0 */
/* Hill climbing and simulated annealing, the rivals of Shisha's paper (HC, SA; HC_s and SA_s from
 * its seed). The papers give neither neighbours nor temperatures: neighbours are those of
 * tuner/search/places.h, temperatures see below. A plan that was measured is not run again: what it
 * showed is looked up. */

#include "tuner/search/draw.h"
#include "tuner/search/search_private.h"

#define TRIALS 1000u

/* Annealing. Temperatures are shares of the first plan's figure, so that they mean the same on
 * every machine: a plan worse by t of it is taken with exp(-t / temperature). At first one worse by
 * a fifth is taken with 1/e; at the end one worse by a hundredth, the least that trials tell apart,
 * with exp(-10). In between it cools geometrically over as many proposals as there may be trials.
 */
#define HOT 0.2
#define COLD 0.001
/* It is over as well after 10 alpha proposals in a row of which none was taken: alpha alone stops
 * it in the middle, where most neighbours are worse and a few good ones are left. */
#define STAGNATION 10u

struct state {
    struct tun_draw *draw;     /* owned */
    bool wide, seeded, placed; /* placed: here is a plan that ran */
    struct tun_pipeline here, next;
    struct tun_outcome at_here;
    struct tun_move moves[TUN_MOVE_MAX]; /* of here; hill climbing: in the order of trying */
    size_t move_count, move_next;
    double scale, temperature, cooling; /* annealing */
    unsigned long idle;                 /* proposals since one was taken */
};

/* PLACES or PIPELINES; of ALL its pipelines. */
static enum tun_space space_of(const struct tun_problem *p, const struct tun_options *o)
{
    enum tun_space space = tun_papers_space(p, o);

    return space == TUN_SPACE_ALL ? TUN_SPACE_PIPELINES : space;
}

static double space(const struct tun_problem *p, const struct tun_options *o)
{
    return tun_space_size(p, space_of(p, o));
}

static void from_plan(const struct pl_plan *plan, struct tun_pipeline *ret)
{
    ret->stage_count = plan->stage_count;
    for (size_t i = 0; i < plan->stage_count; i++) {
        const struct pl_stage_plan *stage = &plan->stages[i];

        ret->layers[i] = (uint16_t)(stage->last_unit - stage->first_unit + 1);
        ret->places[i] =
            (struct tun_place){.ep = stage->groups[0].ep, .width = stage->groups[0].width};
    }
}

/* Return: the plan is one of the space, so its neighbours can be walked to. */
static bool in_space(const struct tun_problem *p, bool wide, const struct pl_plan *plan)
{
    bool in = plan->stage_count > 0 && tun_fits(p, plan);

    for (size_t i = 0; in && i < plan->stage_count; i++) {
        const struct pl_stage_plan *s = &plan->stages[i];
        const struct pl_group *g = &s->groups[0];

        in = s->group_count == 1 && g->count == 1 && pl_group_batch(g) == 1 &&
             (wide || g->width == 1);
    }
    return in;
}

static int start_walk(struct tun_search *s, bool seeded)
{
    struct state *state = s->state;
    const struct pl_plan *from = seeded ? NULL : s->options.from;
    unsigned heuristic = tun_heuristic_of(s);
    size_t places;

    seeded |= from != NULL;
    if (s->options.space == TUN_SPACE_CUTS) {
        snprintf(s->reason, sizeof(s->reason),
                 "it moves places as well as cuts; its spaces are places and pipelines");
        return -EINVAL;
    }
    state->wide = space_of(&s->problem, &s->options) == TUN_SPACE_PIPELINES;
    places = state->wide ? tun_places_max(&s->problem)
                         : base_min(tun_core_count(&s->problem), (size_t)PL_STAGE_MAX);
    if (from && in_space(&s->problem, state->wide, from)) {
        from_plan(from, &state->next);
    } else if (seeded &&
               tun_shisha_seed(&s->problem, heuristic, places, &s->random, &state->next)) {
        snprintf(s->reason, sizeof(s->reason),
                 "the heuristics of Shisha's seed are 1 to 6, there is no %u", heuristic);
        return -EINVAL;
    }
    s->options.trials_max = s->options.trials_max ? s->options.trials_max : TRIALS;
    state->seeded = seeded;
    state->temperature = HOT;
    state->cooling = pow(COLD / HOT, 1 / (double)s->options.trials_max);
    return tun_draw_new(&s->problem, space_of(&s->problem, &s->options), &state->draw);
}

static int start(struct tun_search *s)
{
    return start_walk(s, false);
}

static int start_seeded(struct tun_search *s)
{
    return start_walk(s, true);
}

/* A plan to begin with: the seed or the given one once, then drawn ones until one can be run. */
static int ask_first(struct tun_search *s, struct pl_plan *ret)
{
    struct state *state = s->state;

    if (state->seeded) {
        state->seeded = false;
        tun_pipeline_plan(&state->next, ret);
        return 0;
    }
    for (size_t i = 0; i < s->options.alpha; i++) {
        tun_draw_next(state->draw, &s->random, ret);
        if (tun_search_seen(s, ret) == SIZE_MAX) {
            from_plan(ret, &state->next);
            return 0;
        }
    }
    return TUN_E_DONE;
}

/* Takes the plan just tried as the one to go on from. */
static void go(struct tun_search *s, const struct tun_trial *t)
{
    struct state *state = s->state;

    state->here = state->next;
    state->at_here = t->measured;
    state->placed = true;
    state->idle = 0;
    state->move_next = 0;
    state->move_count = tun_moves(&s->problem, &state->here, state->wide, state->moves);
}

/* First improvement, neighbours in random order; the end is a plan with no better neighbour. */
static int climb_ask(struct tun_search *s, struct pl_plan *ret)
{
    struct state *state = s->state;

    if (!state->placed) {
        return ask_first(s, ret);
    }
    while (state->move_next < state->move_count) {
        size_t at = state->move_next++;
        size_t other = at + tun_random_below(&s->random, state->move_count - at);
        struct tun_move move = state->moves[other];

        state->moves[other] = state->moves[at];
        tun_move_apply(&s->problem, &state->here, &move, &state->next);
        tun_pipeline_plan(&state->next, ret);
        /* What was measured before is no better than here: here only ever got better. */
        if (tun_search_seen(s, ret) == SIZE_MAX) {
            return 0;
        }
    }
    return TUN_E_DONE;
}

static void climb_tell(struct tun_search *s, const struct tun_trial *t)
{
    struct state *state = s->state;

    if (tun_trial_ran(t) &&
        (!state->placed || tun_better(&s->problem, &t->measured, &state->at_here))) {
        go(s, t);
    }
}

/* What annealing minimises: the objective's figure over the first plan's, and by how much the
 * bounds are missed, relatively. */
static double figure_of(const struct tun_problem *p, const struct tun_outcome *o)
{
    double figure = tun_figure(p, o);

    return figure > 0 ? figure : o->bottleneck_ns;
}

static double energy_of(const struct tun_search *s, const struct tun_outcome *o)
{
    const struct state *state = s->state;

    return figure_of(&s->problem, o) / state->scale + tun_missed(&s->problem, o);
}

/* Judges a proposal and cools. */
static void anneal(struct tun_search *s, const struct tun_trial *t)
{
    struct state *state = s->state;
    double worse =
        tun_trial_ran(t) ? energy_of(s, &t->measured) - energy_of(s, &state->at_here) : INFINITY;

    state->idle++;
    if (worse <= 0 || tun_random_unit(&s->random) < exp(-worse / state->temperature)) {
        go(s, t);
    }
    state->temperature *= state->cooling;
}

static int anneal_ask(struct tun_search *s, struct pl_plan *ret)
{
    struct state *state = s->state;

    if (!state->placed) {
        return ask_first(s, ret);
    }
    while (state->move_count > 0 && state->temperature > COLD &&
           state->idle < (unsigned long)STAGNATION * s->options.alpha) {
        size_t at = tun_random_below(&s->random, state->move_count), index;

        tun_move_apply(&s->problem, &state->here, &state->moves[at], &state->next);
        tun_pipeline_plan(&state->next, ret);
        index = tun_search_seen(s, ret);
        if (index == SIZE_MAX) {
            return 0;
        }
        anneal(s, &s->log[index]);
    }
    return TUN_E_DONE;
}

static void anneal_tell(struct tun_search *s, const struct tun_trial *t)
{
    struct state *state = s->state;

    if (state->placed) {
        anneal(s, t);
    } else if (tun_trial_ran(t)) {
        state->scale = figure_of(&s->problem, &t->measured);
        go(s, t);
    }
}

static void stop(struct tun_search *s)
{
    struct state *state = s->state;

    state->draw = tun_draw_free(state->draw);
}

#define WALK(name, start_, how)                                                                    \
    const struct tun_search_code tun_##name##_code = {.state_bytes = sizeof(struct state),         \
                                                      .start = start_,                             \
                                                      .ask = how##_ask,                            \
                                                      .tell = how##_tell,                          \
                                                      .stop = stop,                                \
                                                      .space = space};
WALK(hill_climbing, start, climb)
WALK(hill_climbing_seeded, start_seeded, climb)
WALK(annealing, start, anneal)
WALK(annealing_seeded, start_seeded, anneal)
