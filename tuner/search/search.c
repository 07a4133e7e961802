/* SPDX-License-Identifier: Apache-2.0 */
/* What all searches share: the registry, the copy of the problem, the log of trials. */

#include "tuner/search/search_private.h"

#define ROW(id, name_, reads_costs_, what_)                                                        \
    const struct tun_algorithm id = {                                                              \
        .name = name_, .what = what_, .reads_costs = reads_costs_, .code = &id##_code};
#define POINTER(id, name_, reads_costs_, what_) &id,
TUN_SEARCHES(ROW, ROW)
static const struct tun_algorithm *const ALGORITHMS[] = {TUN_SEARCHES(POINTER, POINTER)};

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

bool tun_encoding_find(const char *name, enum tun_encoding *ret)
{
    static const char *const names[] = {[TUN_ENCODING_SPE] = "spe", [TUN_ENCODING_NE] = "ne"};

    for (size_t i = 0; i < base_array_count(names); i++) {
        if (strcmp(names[i], name) == 0) {
            *ret = (enum tun_encoding)i;
            return true;
        }
    }
    return false;
}

double tun_algorithm_space(const struct tun_algorithm *a, const struct tun_problem *p,
                           const struct tun_options *o)
{
    static const struct tun_options none;

    return a->code->space ? a->code->space(p, o ? o : &none) : INFINITY;
}

int tun_search_new(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
                   char ret_error[TUN_ERROR_MAX], struct tun_search **ret)
{
    const struct tun_algorithm *a = tun_algorithm_find(algorithm);
    struct tun_search *s;
    int error;

    ret_error[0] = '\0';
    if (!a) {
        snprintf(ret_error, TUN_ERROR_MAX, "no algorithm \"%.40s\"; there are " TUN_SEARCH_NAMES,
                 algorithm);
        return -EINVAL;
    }
    s = calloc(1, sizeof(*s));
    if (!s) {
        return -ENOMEM;
    }
    s->algorithm = a;
    error = tun_problem_copy(p, &s->problem);
    s->options = o ? *o : (struct tun_options){0};
    s->options.alpha = s->options.alpha ? s->options.alpha : 10;
    s->options.top = s->options.top ? s->options.top : 5;
    s->random.state = s->options.seed;
    s->state = error ? NULL : calloc(1, base_max(a->code->state_bytes, (size_t)1));
    if (!error) {
        error = s->state ? a->code->start(s) : -ENOMEM;
    }
    s->options.from = NULL;
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
        if (s->state && s->algorithm->code->stop) {
            s->algorithm->code->stop(s);
        }
        free(s->state);
        free(s->log);
        free(s->slots);
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
    result = tun_seen_reserve(s);
    result = result ? result : s->algorithm->code->ask(s, ret);
    s->done = result != 0;
    return result;
}

int tun_search_tell(struct tun_search *s, const struct tun_trial *t)
{
    struct tun_outcome predicted;

    if (!base_room(&s->log, sizeof(*s->log), s->count, &s->room)) {
        return -ENOMEM;
    }
    s->log[s->count] = *t;
    s->log[s->count].samples = NULL;
    s->log[s->count].sample_count = 0;
    if (tun_eval(&s->problem, &t->plan, &predicted) == 0) {
        s->log[s->count].predicted_ns = predicted.bottleneck_ns;
    }
    tun_seen_add(s, s->count++);
    s->done |= tun_trial_ran(t) && t->measured.bottleneck_ns <= s->options.enough_ns;
    if (s->algorithm->code->tell) {
        s->algorithm->code->tell(s, t);
    }
    return 0;
}

/* The best measured trial (tun_better) that ran to its end, SIZE_MAX for none. */
static size_t best_of(const struct tun_search *s)
{
    size_t best = SIZE_MAX;

    for (size_t i = 0; i < s->count; i++) {
        best = tun_search_gains(s, &s->log[i], best) ? i : best;
    }
    return best;
}

const struct tun_trial *tun_search_result(const struct tun_search *s)
{
    size_t index = s->count == 0                ? SIZE_MAX
                   : s->algorithm->code->result ? s->algorithm->code->result(s)
                                                : best_of(s);

    return index == SIZE_MAX ? NULL : &s->log[index];
}

const struct tun_trial *tun_search_log(const struct tun_search *s, size_t *ret_count)
{
    *ret_count = s->count;
    return s->log;
}

const struct tun_algorithm *tun_search_algorithm(const struct tun_search *s)
{
    return s->algorithm;
}
