/* SPDX-License-Identifier: Apache-2.0 */

#include "tuner/pipesim/run.h"
#include "tuner/memory.h"
#include "tuner/search/cuts.h"
#include "tuner/search/draw.h"
#include "tuner/solve/solve.h"
#include "tuner/span.h"

/* ---- a trial ---- */

#define NOISE_LEAST 0.1 /* no mean comes out below a tenth of the truth */
#define CELL_LEAST 0.05 /* a wrong cost is at least so much of the true one */

/* The plan's samples so far; what is sampled once is not measured again. */
struct bench {
    struct psim_machine *m;
    struct tun_sample *samples;
    size_t count;
    struct tun_slowed slowed; /* by each other, if they are */
    bool shared;
};

/* @stretch: of the time that the unit spends on memory. */
static double measure(struct bench *b, const struct pl_group *g, double stretch, size_t unit)
{
    const struct psim_machine *m = b->m;
    double frames = (double)pl_group_batch(g);
    double one = pl_group_spans(g)
                     ? tun_span_ns(m->truth, g, unit)
                     : tun_cell_at(&m->truth->costs, g->ep, g->width, unit)->ns +
                           (stretch - 1) * tun_memory_ns(m->truth, g->ep, g->width, unit);
    double ns =
        one * m->slow[g->ep] * tun_at_once_factor(tun_at_once_at(m->truth, g->ep, unit), frames);

    if (m->noise > 0) {
        ns *= base_max(NOISE_LEAST, 1 + m->noise * tun_random_normal(&b->m->random));
    }
    b->samples[b->count++] = (struct tun_sample){.ep = g->ep,
                                                 .width = g->width,
                                                 .unit = (uint32_t)unit,
                                                 .ns = ns,
                                                 .sigma = m->noise,
                                                 .frames = frames};
    memcpy(b->samples[b->count - 1].also, g->also, sizeof(g->also));
    return ns;
}

/* An earlier group of the stage of the same shape, which has the same figures. */
static size_t same_shape(const struct pl_stage_plan *stage, size_t group)
{
    for (size_t g = 0; g < group; g++) {
        if (stage->groups[g].ep == stage->groups[group].ep &&
            stage->groups[g].width == stage->groups[group].width &&
            stage->groups[g].more == stage->groups[group].more &&
            pl_group_width(&stage->groups[g]) == pl_group_width(&stage->groups[group])) {
            return g;
        }
    }
    return group;
}

static double team_ns(struct bench *b, const struct pl_stage_plan *stage,
                      const struct pl_group *group, double stretch)
{
    const struct tun_problem *p = b->m->truth;
    double ns = tun_handoff_ns(p, stage->first_unit);

    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        ns += measure(b, group, stretch, u);
    }
    return ns;
}

/* The formulas of tuner/eval.h, on measured figures. */
static void run_stage(struct bench *b, const struct pl_stage_plan *stage, size_t s,
                      struct tun_outcome *o)
{
    double rate = 0, slowest = 0, core_watts = 0;

    for (size_t g = 0; g < stage->group_count; g++) {
        const struct pl_group *group = &stage->groups[g];
        size_t same = same_shape(stage, g);

        o->team_ns[s][g] = same < g
                               ? o->team_ns[s][same]
                               : team_ns(b, stage, group, b->shared ? b->slowed.stretch[s][g] : 1);
        rate += group->count / o->team_ns[s][g];
        slowest =
            base_max(slowest, tun_latency_of(b->m->truth, pl_group_batch(group), o->team_ns[s][g]));
        core_watts += group->count * tun_group_watts(b->m->truth, group);
    }
    o->stage_ns[s] = 1 / rate;
    o->bottleneck_ns = base_max(o->bottleneck_ns, o->stage_ns[s]);
    o->latency_ns += slowest;
    o->energy_nj += core_watts / rate;
}

struct psim_machine psim_machine(const struct tun_problem *truth, uint64_t seed)
{
    struct psim_machine m = {.truth = truth, .random.state = seed};

    for (size_t k = 0; k < PL_EP_MAX; k++) {
        m.slow[k] = 1;
    }
    return m;
}

void psim_err(struct tun_problem *p, double sigma, struct tun_random *random)
{
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t u = 0; u < p->unit_count; u++) {
            double factor = base_max(CELL_LEAST, 1 + sigma * tun_random_normal(random));

            for (size_t w = 1; w <= p->eps[k].cores; w++) {
                struct tun_cell *cell = tun_cell_at(&p->costs, k, w, u);

                cell->ns *= factor;
                cell->sigma = sigma;
                cell->source = TUN_PREDICTED;
            }
        }
    }
}

void psim_trial(struct psim_machine *m, const struct pl_plan *plan, struct tun_sample *samples,
                struct tun_trial *ret)
{
    struct bench b = {.m = m, .samples = samples};
    struct tun_outcome truth;

    *ret = (struct tun_trial){.plan = *plan, .frames = m->frames ? m->frames : 10};
    if (!tun_fits(m->truth, plan) || tun_eval(m->truth, plan, &truth) != 0) {
        ret->failed = true;
        ret->frames = 0;
        return;
    }
    b.shared = tun_memory_slowed(m->truth, plan, &b.slowed);
    ret->measured.stage_count = plan->stage_count;
    for (size_t s = 0; s < plan->stage_count; s++) {
        run_stage(&b, &plan->stages[s], s, &ret->measured);
    }
    ret->samples = samples;
    ret->sample_count = b.count;
    ret->spent_ns = ret->measured.latency_ns + (double)ret->frames * ret->measured.bottleneck_ns;
}

/* ---- a search ---- */

/* The truth as it is with its contention. */
static int contended(const struct psim_machine *m, struct tun_problem *ret)
{
    int error = tun_problem_copy(m->truth, ret);

    if (error) {
        return error;
    }
    for (size_t k = 0; k < ret->ep_count; k++) {
        for (size_t u = 0; u < ret->unit_count; u++) {
            tun_unit_scale(ret, k, u, m->slow[k]);
        }
    }
    ret->bounds.slack = 0;
    return 0;
}

/* Asks and tells to the end, and adds what the search itself took and what its trials took. */
static int drive(struct tun_search *s, struct psim_machine *m, struct tun_sample *samples,
                 double *ret_own_ns, double *ret_trials_ns)
{
    struct pl_plan plan;
    struct tun_trial trial;
    int result;

    for (;;) {
        uint64_t at = base_now_ns();

        result = tun_search_ask(s, &plan);
        *ret_own_ns += (double)(base_now_ns() - at);
        if (result) {
            break;
        }
        psim_trial(m, &plan, samples, &trial);
        *ret_trials_ns += trial.spent_ns;
        at = base_now_ns();
        result = tun_search_tell(s, &trial);
        *ret_own_ns += (double)(base_now_ns() - at);
        if (result) {
            break;
        }
    }
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

static int compare(const struct tun_problem *truth, struct psim_run *r)
{
    base_autofree struct tun_solution *best = malloc(sizeof(*best));
    int error = best ? tun_solve(truth, best) : -ENOMEM;

    if (error == 0 || error == TUN_E_IMPOSSIBLE) {
        r->optimum = best->outcome;
        r->possible = error == 0;
        r->bottleneck_ns = r->outcome.bottleneck_ns;
        r->latency_ns = r->outcome.latency_ns;
        r->optimum_ns = best->outcome.bottleneck_ns;
        r->ratio = tun_figure(truth, &r->outcome) / tun_figure(truth, &r->optimum);
        error = 0;
    }
    return error;
}

static int search(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
                  struct psim_machine *m, const struct tun_problem *truth, char *ret_error,
                  struct psim_run *r)
{
    char why[TUN_ERROR_MAX] = "";
    base_autofree struct tun_sample *samples =
        calloc(tun_core_count(truth) * truth->unit_count, sizeof(*samples));
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
    return error;
}

int psim_run(const char *algorithm, const struct tun_problem *p, const struct tun_options *o,
             struct psim_machine *m, char ret_error[PSIM_ERROR_MAX], struct psim_run *ret)
{
    struct psim_run r = {0};
    base_cleanup(tun_problem_deinit) struct tun_problem truth = TUN_PROBLEM_NULL;
    int error = contended(m, &truth);

    ret_error[0] = '\0';
    snprintf(r.algorithm, sizeof(r.algorithm), "%s", algorithm);
    error = error ? error : search(algorithm, p, o, m, &truth, ret_error, &r);
    error = error ? error : compare(&truth, &r);
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

/* ---- what searches are compared with ---- */

double psim_best(const struct tun_problem *p, enum tun_space space, struct pl_plan *ret)
{
    double best = INFINITY;
    struct tun_plans plans;
    struct pl_plan plan;

    tun_plans_init(&plans, p, space);
    while (tun_plans_next(&plans, &plan) == 0) {
        struct tun_outcome o;

        if (tun_eval(p, &plan, &o) == 0 && o.bottleneck_ns < best) {
            best = o.bottleneck_ns;
            if (ret) {
                *ret = plan;
            }
        }
    }
    return best;
}

static size_t layers_of(const struct pl_stage_plan *s)
{
    return s->last_unit - s->first_unit + 1u;
}

void psim_cut_text(const struct pl_plan *plan, char ret[PSIM_CUT_TEXT])
{
    ret[0] = '\0';
    for (size_t s = 0; s < plan->stage_count; s++) {
        base_append(ret, PSIM_CUT_TEXT, "%s%zu", s ? "," : "[", layers_of(&plan->stages[s]));
    }
    base_append(ret, PSIM_CUT_TEXT, "]");
}

/* Return: the cut of @plan is @layers. */
static bool is_cut(const struct pl_plan *plan, const uint16_t *layers)
{
    bool same = true;

    for (size_t s = 0; s < plan->stage_count; s++) {
        same &= layers_of(&plan->stages[s]) == layers[s];
    }
    return same;
}

/* CV^2 = stages sum(W^2) / sum(W)^2 - 1, with the population's deviation. */
static double cv_of(const struct pl_plan *plan, const double *weight)
{
    double sum = 0, squares = 0;

    for (size_t s = 0; s < plan->stage_count; s++) {
        double stage = 0;

        for (size_t u = plan->stages[s].first_unit; u <= plan->stages[s].last_unit; u++) {
            stage += weight[u];
        }
        sum += stage;
        squares += stage * stage;
    }
    return sqrt(base_max(0.0, (double)plan->stage_count * squares / (sum * sum) - 1));
}

size_t psim_rank(const struct tun_problem *p, const struct pl_plan *plan, double *ret_cv)
{
    base_autofree double *weight = tun_cut_weights(p, false);
    uint16_t layers[PL_STAGE_MAX];
    struct tun_cuts *cuts = NULL;
    size_t rank = 0;
    bool found = false;

    if (!weight || tun_cuts_new(weight, p->unit_count, plan->stage_count, &cuts)) {
        return 0;
    }
    if (ret_cv) {
        *ret_cv = cv_of(plan, weight);
    }
    while (!found && tun_cuts_next(cuts, plan->stage_count, layers) == 0) {
        rank++;
        found = is_cut(plan, layers);
    }
    tun_cuts_free(cuts);
    return found ? rank : 0;
}
