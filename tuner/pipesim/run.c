/* SPDX-License-Identifier: Apache-2.0 */
/* One search from start to end on a simulated machine. */

#include "tuner/pipesim/run.h"
#include "tuner/solve/solve.h"

/* The truth as it is with its contention. */
static int contended(const struct psim_machine *m, struct tun_problem *ret)
{
    int error = tun_problem_copy(m->truth, ret);

    if (error) {
        return error;
    }
    for (size_t k = 0; k < ret->ep_count; k++) {
        for (size_t w = 1; w <= ret->eps[k].cores; w++) {
            for (size_t u = 0; u < ret->unit_count; u++) {
                tun_cell_at(&ret->costs, k, w, u)->ns *= m->slow[k];
            }
        }
    }
    ret->bounds.slack = 0;
    return 0;
}

/* Asks and tells to the end; @ret: what the search itself took and what its trials took. */
static int drive(struct tun_search *s, struct psim_machine *m, struct tun_sample *samples,
                 double *ret_own_ns, double *ret_trials_ns)
{
    struct pl_plan plan;
    struct tun_trial trial;
    double own = 0, spent = 0;
    int result;

    for (;;) {
        uint64_t at = base_now_ns();

        result = tun_search_ask(s, &plan);
        own += (double)(base_now_ns() - at);
        if (result) {
            break;
        }
        psim_trial(m, &plan, samples, &trial);
        spent += trial.spent_ns;
        at = base_now_ns();
        result = tun_search_tell(s, &trial);
        own += (double)(base_now_ns() - at);
        if (result) {
            break;
        }
    }
    *ret_own_ns += own;
    *ret_trials_ns += spent;
    return result == TUN_E_DONE ? 0 : result;
}

/* Takes what is left when a search is done. */
static int conclude(const struct tun_search *s, const struct tun_options *o,
                    const struct tun_problem *truth, struct psim_run *r)
{
    const struct tun_trial *best = tun_search_result(s);
    const struct tun_trial *log = tun_search_log(s, &r->count);
    const struct tun_algorithm *a = tun_search_algorithm(s);

    if (!best) {
        return -ENODATA;
    }
    r->log = malloc(r->count * sizeof(*r->log));
    if (!r->log) {
        return -ENOMEM;
    }
    memcpy(r->log, log, r->count * sizeof(*r->log));
    r->result = (size_t)(best - log);
    r->space = tun_algorithm_space(a, truth, o);
    r->explored = isfinite(r->space) && r->space > 0 ? (double)r->count / r->space : 0;
    return tun_eval(truth, &best->plan, &r->outcome) ? -ENODATA : 0;
}

static double figure(const struct tun_problem *p, const struct tun_outcome *o)
{
    return p->objective == TUN_LATENCY ? o->latency_ns
           : p->objective == TUN_POWER ? o->energy_nj
                                       : o->bottleneck_ns;
}

static int compare(const struct tun_problem *truth, struct psim_run *r)
{
    struct tun_solution *best = malloc(sizeof(*best));
    int error = best ? tun_solve(truth, best) : -ENOMEM;

    if (error == 0 || error == TUN_E_IMPOSSIBLE) {
        r->optimum = best->outcome;
        r->possible = error == 0;
        r->bottleneck_ns = r->outcome.bottleneck_ns;
        r->latency_ns = r->outcome.latency_ns;
        r->optimum_ns = best->outcome.bottleneck_ns;
        r->ratio = figure(truth, &r->outcome) / figure(truth, &r->optimum);
        error = 0;
    }
    free(best);
    return error;
}

static int search(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
                  struct psim_machine *m, const struct tun_problem *truth, char *ret_error,
                  struct psim_run *r)
{
    char why[TUN_ERROR_MAX] = "";
    size_t room = tun_core_count(truth) * truth->unit_count;
    struct tun_sample *samples = calloc(room, sizeof(*samples));
    struct tun_search *s = NULL;
    double own_ns = 0, trials_ns = 0;
    uint64_t at = base_now_ns();
    int error = samples ? tun_search_new(algorithm, p, o, why, &s) : -ENOMEM;

    own_ns += (double)(base_now_ns() - at);
    error = error ? error : drive(s, m, samples, &own_ns, &trials_ns);
    error = error ? error : conclude(s, o, truth, r);
    r->own_s = own_ns / (double)BASE_NS_PER_S;
    r->tuning_s = r->own_s + trials_ns / (double)BASE_NS_PER_S;
    if (error) {
        snprintf(ret_error, PSIM_ERROR_MAX, "%.60s: %.300s", algorithm,
                 why[0]              ? why
                 : error == -ENODATA ? "ended without a plan that runs"
                                     : strerror(-error));
    }
    tun_search_free(s);
    free(samples);
    return error;
}

int psim_run(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
             struct psim_machine *m, char ret_error[PSIM_ERROR_MAX], struct psim_run *ret)
{
    struct psim_run r = {0};
    struct tun_problem truth;
    int error;

    ret_error[0] = '\0';
    snprintf(r.algorithm, sizeof(r.algorithm), "%s", algorithm);
    error = contended(m, &truth);
    if (error == 0) {
        error = search(algorithm, p, o, m, &truth, ret_error, &r);
        error = error ? error : compare(&truth, &r);
        tun_problem_deinit(&truth);
    }
    if (error) {
        if (!ret_error[0]) {
            snprintf(ret_error, PSIM_ERROR_MAX, "%.60s: %s", algorithm, strerror(-error));
        }
        psim_run_deinit(&r);
        return error;
    }
    *ret = r;
    return 0;
}

void psim_run_deinit(struct psim_run *r)
{
    free(r->log);
    *r = (struct psim_run){0};
}
