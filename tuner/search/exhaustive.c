/* SPDX-License-Identifier: Apache-2.0 */
/* The baselines that know nothing: every plan of a space in a fixed order ("exhaustive", the
 * papers' ES), and plans drawn from it without repeats ("random", their RW). */

#include "tuner/search/draw.h"
#include "tuner/search/search_private.h"

#define ALL_PLANS_MAX 5000.0     /* the default space is ALL up to so many plans, */
#define PLACES_PLANS_MAX 20000.0 /* else PLACES up to so many, else CUTS */
#define PLANS_MAX 10000000.0     /* more are not begun without trials_max */
#define RANDOM_TRIALS 500u       /* default; Shisha runs RW "for a longer period of time" */
#define DRAWS 1000u /* that find nothing new before the rest is taken in order: 0.7 % are left */

static enum tun_space space_of(const struct tun_problem *p, const struct tun_options *o)
{
    if (o && o->space != TUN_SPACE_DEFAULT) {
        return o->space;
    }
    if (tun_space_size(p, TUN_SPACE_ALL) <= ALL_PLANS_MAX) {
        return TUN_SPACE_ALL;
    }
    return tun_space_size(p, TUN_SPACE_PLACES) <= PLACES_PLANS_MAX ? TUN_SPACE_PLACES
                                                                   : TUN_SPACE_CUTS;
}

static double exhaustive_space(const struct tun_problem *p, const struct tun_options *o)
{
    return tun_space_size(p, space_of(p, o));
}

static int exhaustive_start(struct tun_search *s)
{
    enum tun_space space = space_of(&s->problem, &s->options);
    double size = tun_space_size(&s->problem, space);

    if (size > PLANS_MAX && s->options.trials_max == 0) {
        snprintf(s->reason, sizeof(s->reason),
                 "%.4g plans are more than %.0f; choose a smaller space or limit the trials", size,
                 PLANS_MAX);
        return -EINVAL;
    }
    tun_plans_init(s->state, &s->problem, space);
    return 0;
}

static int exhaustive_ask(struct tun_search *s, struct pl_plan *ret)
{
    return tun_plans_next(s->state, ret);
}

const struct tun_search_code tun_exhaustive_code = {
    .state_bytes = sizeof(struct tun_plans),
    .start = exhaustive_start,
    .ask = exhaustive_ask,
    .space = exhaustive_space,
};

struct random_state {
    struct tun_draw *draw; /* owned */
    struct tun_plans rest; /* the space in order, for when few plans are left */
};

static double random_space(const struct tun_problem *p, const struct tun_options *o)
{
    return tun_space_size(p, tun_papers_space(p, o));
}

static int random_start(struct tun_search *s)
{
    struct random_state *state = s->state;
    enum tun_space space = tun_papers_space(&s->problem, &s->options);

    s->options.trials_max = s->options.trials_max ? s->options.trials_max : RANDOM_TRIALS;
    tun_plans_init(&state->rest, &s->problem, space);
    return tun_draw_new(&s->problem, space, &state->draw);
}

static int random_ask(struct tun_search *s, struct pl_plan *ret)
{
    struct random_state *state = s->state;

    for (size_t i = 0; i < DRAWS; i++) {
        tun_draw_next(state->draw, &s->random, ret);
        if (tun_search_seen(s, ret) == SIZE_MAX) {
            return 0;
        }
    }
    while (tun_plans_next(&state->rest, ret) == 0) {
        if (tun_search_seen(s, ret) == SIZE_MAX) {
            return 0;
        }
    }
    return TUN_E_DONE;
}

static void random_stop(struct tun_search *s)
{
    struct random_state *state = s->state;

    state->draw = tun_draw_free(state->draw);
}

const struct tun_search_code tun_random_walk_code = {
    .state_bytes = sizeof(struct random_state),
    .start = random_start,
    .ask = random_ask,
    .stop = random_stop,
    .space = random_space,
};
