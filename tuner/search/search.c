/* SPDX-License-Identifier: Apache-2.0 */
/* What all searches share: the registry, the copy of the problem, the log of trials. */
#include "tuner/search/search.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "tuner/search/search_private.h"

static const struct tun_algorithm *const ALGORITHMS[] = {
    &tun_exact,
    &tun_shisha,
    &tun_pipe_search,
    &tun_pipe_search_database,
    &tun_pipe_it,
    &tun_exhaustive,
    &tun_random_walk,
    &tun_hill_climbing,
    &tun_hill_climbing_seeded,
    &tun_annealing,
    &tun_annealing_seeded,
};

const struct tun_algorithm *const *tun_algorithms(size_t *ret_count)
{
    *ret_count = base_array_count(ALGORITHMS);
    return ALGORITHMS;
}

const struct tun_algorithm *tun_algorithm_find(const char *name)
{
    for (size_t i = 0; i < base_array_count(ALGORITHMS); i++) {
        if (strcmp(ALGORITHMS[i]->name, name) == 0) {
            return ALGORITHMS[i];
        }
    }
    return NULL;
}

static const struct tun_algorithm *known(const char *name, char *ret_error)
{
    const struct tun_algorithm *a = tun_algorithm_find(name);
    size_t used;

    if (!a) {
        used =
            (size_t)snprintf(ret_error, TUN_ERROR_MAX, "no algorithm \"%.40s\"; there are", name);
        for (size_t i = 0; i < base_array_count(ALGORITHMS) && used < TUN_ERROR_MAX; i++) {
            used += (size_t)snprintf(ret_error + used, TUN_ERROR_MAX - used, "%s %s", i ? "," : "",
                                     ALGORITHMS[i]->name);
        }
    }
    return a;
}

int tun_search_new(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
                   char ret_error[TUN_ERROR_MAX], struct tun_search **ret)
{
    struct tun_search *s;
    int error;

    ret_error[0] = '\0';
    s = calloc(1, sizeof(*s));
    if (!s) {
        return -ENOMEM;
    }
    s->algorithm = known(algorithm, ret_error);
    if (!s->algorithm) {
        free(s);
        return -EINVAL;
    }
    error = tun_problem_copy(p, &s->problem);
    s->options = o ? *o : (struct tun_options){0};
    s->options.alpha = s->options.alpha ? s->options.alpha : 10;
    s->options.heuristic = s->options.heuristic ? s->options.heuristic : 3;
    s->options.top = s->options.top ? s->options.top : 5;
    s->random.state = s->options.seed;
    s->state = error ? NULL : calloc(1, base_max(s->algorithm->state_bytes, (size_t)1));
    if (!error) {
        error = s->state ? s->algorithm->start(s) : -ENOMEM;
    }
    if (error) {
        snprintf(ret_error, TUN_ERROR_MAX, "%.30s cannot plan this: %.200s", algorithm,
                 s->reason[0] ? s->reason : strerror(-error));
        tun_search_free(s);
        return error;
    }
    *ret = s;
    return 0;
}

struct tun_search *tun_search_free(struct tun_search *s)
{
    if (s) {
        if (s->state && s->algorithm->stop) {
            s->algorithm->stop(s);
        }
        free(s->state);
        free(s->log);
        tun_problem_deinit(&s->problem);
        free(s);
    }
    return NULL;
}

int tun_search_ask(struct tun_search *s, struct pl_plan *ret)
{
    int result;

    if (s->done || (s->options.trials_max && s->count >= s->options.trials_max)) {
        s->done = true;
        return TUN_E_DONE;
    }
    result = s->algorithm->ask(s, ret);
    s->done = result != 0;
    return result;
}

int tun_search_tell(struct tun_search *s, const struct tun_trial *t)
{
    struct tun_outcome predicted;

    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 16;
        struct tun_trial *log = realloc(s->log, room * sizeof(*log));

        if (!log) {
            return -ENOMEM;
        }
        s->log = log;
        s->room = room;
    }
    s->log[s->count] = *t;
    s->log[s->count].samples = NULL;
    s->log[s->count].sample_count = 0;
    if (tun_eval(&s->problem, &t->plan, &predicted) == 0) {
        s->log[s->count].predicted_ns = predicted.bottleneck_ns;
    }
    s->count++;
    s->algorithm->tell(s, t);
    return 0;
}

size_t tun_search_best(const struct tun_search *s)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < s->count; i++) {
        const struct tun_trial *t = &s->log[i];

        if (!t->failed && !t->stopped &&
            (best == SIZE_MAX || tun_better(&s->problem, &t->measured, &s->log[best].measured))) {
            best = i;
        }
    }
    return best;
}

const struct tun_trial *tun_search_result(const struct tun_search *s)
{
    size_t index = s->count == 0          ? SIZE_MAX
                   : s->algorithm->result ? s->algorithm->result(s)
                                          : tun_search_best(s);

    return index == SIZE_MAX ? NULL : &s->log[index];
}

const struct tun_trial *tun_search_log(const struct tun_search *s, size_t *ret_count)
{
    *ret_count = s->count;
    return s->log;
}

const struct tun_problem *tun_search_problem(const struct tun_search *s)
{
    return &s->problem;
}

const struct tun_algorithm *tun_search_algorithm(const struct tun_search *s)
{
    return s->algorithm;
}
