/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pipe-search (Soomro, Abduljabbar, Castrillon, Pericas: "An online guided tuning approach to run
 * CNN pipelines on edge devices", CF '21), algorithms 1 and 2.
 *
 * S[p] is the list of configurations of p stages by rising CV, p = 2..C; its first is p's seed.
 * S_min starts as the seed that ran best, so the seeds of every p run before anything else (section
 * 4.4). Phase one then walks each S[p] from its seed until alpha configurations in a row were no
 * gain (gamma); phase two walks on in the list that S_min is of, in the same way. As printed,
 * a configuration is no gain if T_s > T_s[S_min]: an equal one is taken and sets gamma to 0. The
 * seed that is S_min itself is no "better performance than S_min" and counts as one of "the top
 * alpha configurations", so that without any gain there are as many trials as eq. 5 says: alpha for
 * each stage count, and alpha for phase two.
 *
 * Where the print leaves a choice: gamma starts from 0 for each p (otherwise only the first p would
 * be walked, against the text: "for each PS_count value we test the top alpha configurations").
 * No configuration runs twice: where a walk meets its seed, the measurement there is counts, and
 * phase two goes on behind what phase one tried. Better and worse are the problem's (tun_better()),
 * which is T_s for its objective throughput. A trial that was stopped or failed is no gain.
 *
 * At most alpha steps follow each start of a walk and each reset of gamma: the C - 1 walks of phase
 * one and that of phase two are at most alpha * (C + resets) trials.
 */

#include "tuner/search/cuts.h"
#include "tuner/search/draw.h"
#include "tuner/search/search_private.h"

enum phase { PHASE_SEEDS, PHASE_EACH, PHASE_BEST };

struct list {         /* S[p] of the database */
    uint16_t *layers; /* owned, [count][p] */
    size_t count, next;
};

struct pipe_search {
    size_t least, most;    /* stage counts: 2..C, or the one there is */
    struct tun_cuts *cuts; /* owned; NULL with a database */
    struct list lists[PL_STAGE_MAX + 1];
    enum phase phase;
    size_t p;      /* stage count at hand */
    size_t gamma;  /* no gains in a row */
    size_t lowest; /* S_min: index in the log, SIZE_MAX: none yet */
};

/* The next configuration of p stages. Return: 0, TUN_E_DONE, -ENOMEM. */
static int next_layers(struct pipe_search *state, size_t p, uint16_t *ret)
{
    struct list *l = &state->lists[p];

    if (state->cuts) {
        return tun_cuts_next(state->cuts, p, ret);
    }
    if (l->next == l->count) {
        return TUN_E_DONE;
    }
    memcpy(ret, &l->layers[l->next++ * p], p * sizeof(*ret));
    return 0;
}

static int next_plan(struct tun_search *s, size_t p, struct pl_plan *ret)
{
    struct tun_pipeline pipeline = {.stage_count = p};
    int error = next_layers(s->state, p, pipeline.layers);

    if (!error) {
        error = tun_slots(&s->problem, p, pipeline.places);
    }
    if (!error) {
        tun_pipeline_plan(&pipeline, ret);
    }
    return error;
}

static void set_stage_counts(struct tun_search *s)
{
    struct pipe_search *state = s->state;

    state->most = tun_stages_max(&s->problem);
    state->least = base_min(state->most, (size_t)2);
    state->p = state->least;
    state->lowest = SIZE_MAX;
}

/* The shape being right, only weights can be refused. */
static int explain(struct tun_search *s, int error)
{
    if (error == -EINVAL) {
        snprintf(s->reason, sizeof(s->reason), "a unit's weight is negative or not finite");
    }
    return error;
}

static int start(struct tun_search *s)
{
    struct pipe_search *state = s->state;
    base_autofree double *weight = tun_cut_weights(&s->problem, s->options.no_hints);

    set_stage_counts(s);
    return weight
               ? explain(s, tun_cuts_new(weight, s->problem.unit_count, state->most, &state->cuts))
               : -ENOMEM;
}

/* Algorithm 1: all configurations of every stage count, before the first trial. */
static int start_database(struct tun_search *s)
{
    struct pipe_search *state = s->state;
    base_autofree double *weight = tun_cut_weights(&s->problem, s->options.no_hints);
    int error = weight ? 0 : -ENOMEM;
    double ways;

    set_stage_counts(s);
    ways = tun_cut_count(s->problem.unit_count, state->least, state->most);
    if (ways > TUN_DATABASE_MAX) {
        snprintf(s->reason, sizeof(s->reason),
                 "a list of all %.3g configurations is too long to keep; pipe-search needs none",
                 ways);
        return -EINVAL;
    }
    for (size_t p = state->least; !error && p <= state->most; p++) {
        struct list *l = &state->lists[p];

        error =
            explain(s, tun_cuts_sorted(weight, s->problem.unit_count, p, &l->layers, &l->count));
    }
    return error;
}

/* Lines 8 to 13 and 23 to 28 for the trial at @index of the log. */
static void judge(struct tun_search *s, size_t index)
{
    struct pipe_search *state = s->state;
    const struct tun_trial *t = &s->log[index];

    if (t->failed || t->stopped ||
        (state->lowest != SIZE_MAX &&
         tun_better(&s->problem, &s->log[state->lowest].measured, &t->measured))) {
        state->gamma++;
    } else {
        state->lowest = index;
        state->gamma = 0;
    }
}

/* The walk of p's list begins with its seed, which was trial p - least. */
static void walk(struct tun_search *s, size_t p)
{
    struct pipe_search *state = s->state;

    state->p = p;
    state->gamma = 0;
    if (p - state->least == state->lowest) {
        state->gamma++;
    } else {
        judge(s, p - state->least);
    }
}

/* The list at hand has ended or its gamma has reached alpha. Return: false when all is done. */
static bool next_walk(struct tun_search *s)
{
    struct pipe_search *state = s->state;

    if (state->phase == PHASE_EACH && state->p < state->most) {
        walk(s, state->p + 1);
        return true;
    }
    if (state->phase == PHASE_BEST || state->lowest == SIZE_MAX) {
        return false;
    }
    state->phase = PHASE_BEST;
    state->p = s->log[state->lowest].plan.stage_count;
    state->gamma = 0;
    return true;
}

static int ask(struct tun_search *s, struct pl_plan *ret)
{
    struct pipe_search *state = s->state;

    if (state->phase == PHASE_SEEDS) {
        if (state->p <= state->most) {
            return next_plan(s, state->p, ret);
        }
        state->phase = PHASE_EACH;
        walk(s, state->least);
    }
    do {
        int result = state->gamma < s->options.alpha ? next_plan(s, state->p, ret) : TUN_E_DONE;

        if (result != TUN_E_DONE) {
            return result;
        }
    } while (next_walk(s));
    return TUN_E_DONE;
}

static void tell(struct tun_search *s, const struct tun_trial *t)
{
    struct pipe_search *state = s->state;
    size_t index = s->count - 1;

    if (state->phase != PHASE_SEEDS) {
        judge(s, index);
        return;
    }
    if (tun_search_gains(s, t, state->lowest)) {
        state->lowest = index;
    }
    state->p++;
}

static void stop(struct tun_search *s)
{
    struct pipe_search *state = s->state;

    state->cuts = tun_cuts_free(state->cuts);
    for (size_t p = 0; p <= PL_STAGE_MAX; p++) {
        free(state->lists[p].layers);
    }
}

static double space(const struct tun_problem *p, const struct tun_options *o)
{
    return tun_space_size(p, TUN_SPACE_CUTS);
}

#define PIPE_SEARCH(name, start_)                                                                  \
    const struct tun_search_code tun_##name##_code = {.state_bytes = sizeof(struct pipe_search),   \
                                                      .start = start_,                             \
                                                      .ask = ask,                                  \
                                                      .tell = tell,                                \
                                                      .stop = stop,                                \
                                                      .space = space};
PIPE_SEARCH(pipe_search, start)
PIPE_SEARCH(pipe_search_database, start_database)
