/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One plan for all models, kept up to date.
 *
 * While several models serve here and one of them has a rate, or one alone with a deadline, their
 * plans come from one mix (daemon/plans/mix.h). It is solved again, as queued work, when models
 * come, go or wish something else, when EPs change, when costs clearly do, and when a model's
 * watch asks for a decision: the watch is told what a search tells it that ends where it began.
 * docs/several.md says what users see of it.
 */

#include "daemon/adapt/adapter_private.h"
#include "daemon/plans/mix.h"
#include "daemon/service/log.h"

#define REST_NS (BASE_NS_PER_S / 2) /* between two mixes */
#define ROOM 1.1                    /* times what is wished: more is worth nothing */
#define MOVED 0.05                  /* log of a factor on costs: what is promised changes as much */

/* Why a mix is to be solved. */
struct reason {
    enum dmn_cause cause;
    char text[192];
    bool must; /* the plans are not those of a mix of these models, wishes and cores */
};

struct dmn_together_job {
    struct dmn_job work;
    struct dmn_adapt *adapt;
    struct dmn_mix *mix; /* owned */
    struct reason why;
    uint64_t began_ns;
    int error;
};

static void mix_free(struct dmn_mix *x)
{
    if (x) {
        dmn_mix_deinit(x);
        free(x);
    }
}

static void job_free(struct dmn_together_job *j)
{
    if (j) {
        mix_free(j->mix);
        free(j);
    }
}

/* ---- whether there is to be one plan ---- */

static bool serves_here(const struct dmn_model *m)
{
    return !pl_asleep(m->pipe) && !m->elsewhere && !m->board[0];
}

/* Return: models are planned together: several, of which one has a rate, or one with a deadline. */
static bool wanted(const struct dmn_adapt *adapt)
{
    size_t count = 0;
    bool any = false, due = false;

    for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (!serves_here(m)) {
            return false;
        }
        any |= m->wishes.rate > 0;
        due |= m->wishes.deadline_ms > 0;
        count++;
    }
    return any && (count > 1 || due) && count <= TUN_MIX_MAX &&
           !dmn_planner_searches(dmn_machine_config(adapt->machine));
}

/* Return: nothing else changes plans. */
static bool is_free(const struct dmn_adapt *adapt)
{
    for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (!dmn_adapt_free_to_act(m) || !m->adapt || m->adapt->job || m->adapt->search) {
            return false;
        }
    }
    return adapt->models->models && !adapt->change && LIST_EMPTY(&adapt->models->arrivals) &&
           !adapt->models->stopping;
}

/* ---- whether it is to be solved again ---- */

static const struct dmn_mixed *mixed(const struct dmn_mix *x, const struct dmn_model *m)
{
    for (size_t i = 0; i < x->count; i++) {
        if (x->models[i].loaded_ns == m->loaded_ns && strcmp(x->models[i].name, m->name) == 0) {
            return &x->models[i];
        }
    }
    return NULL;
}

/* Return: other models, wishes or EPs than @x is for; @ret: a sentence. */
static bool is_other(const struct dmn_adapt *adapt, const struct dmn_mix *x, char *ret,
                     size_t bytes)
{
    for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
        const struct dmn_mixed *was = mixed(x, m);

        if (!was || !dmn_wishes_equal(&was->wishes, &m->wishes) ||
            was->pinned != dmn_origin_pinned(m->origin)) {
            snprintf(ret, bytes, "%s %s", m->name,
                     !was                                          ? "came"
                     : was->pinned != dmn_origin_pinned(m->origin) ? "is planned otherwise"
                                                                   : "wishes something else");
            return true;
        }
    }
    for (size_t i = 0; i < x->count; i++) {
        if (!dmn_model_loaded(adapt->models, x->models[i].name, x->models[i].loaded_ns)) {
            snprintf(ret, bytes, "%s went", x->models[i].name);
            return true;
        }
    }
    return false;
}

/* Return: an EP costs a model otherwise than when it was planned. */
static bool costs_moved(const struct dmn_model *m, const struct dmn_mixed *was)
{
    base_cleanup(tun_problem_deinit) struct tun_problem slowed = TUN_PROBLEM_NULL;
    const struct tun_problem *p = &m->planning->problem;
    bool moved = false;

    if (m->adapt->corrected || m->adapt->alarmed) {
        return false;
    }
    p = dmn_adapt_costs(m, &slowed) == 1 ? &slowed : p;
    for (size_t k = 0; k < p->ep_count; k++) {
        moved |= fabs(tun_cost_level(p, k) - was->level[k]) > MOVED;
    }
    return moved;
}

/* Sets why the mix is to be solved again. Return: it is. */
static bool is_due(const struct dmn_adapt *adapt, uint64_t now_ns, struct reason *ret)
{
    const struct dmn_mix *x = adapt->plans->mix;
    const struct dmn_model *first = adapt->models->models, *one = first->next ? NULL : first;
    uint64_t rest_ns =
        (uint64_t)dmn_config_int(dmn_machine_config(adapt->machine), DMN_KEY_ADAPT_COOLDOWN_S) *
        BASE_NS_PER_S;

    ret->must = true;
    ret->cause = DMN_CAUSE_MODELS;
    if (!x) {
        snprintf(ret->text, sizeof(ret->text), "%s %s", one ? one->name : "models",
                 one ? "states its deadline" : "state their rates");
        return true;
    }
    if (is_other(adapt, x, ret->text, sizeof(ret->text))) {
        return true;
    }
    if (adapt->together.moved) {
        ret->cause = dmn_cause_of(adapt->together.moved);
        snprintf(ret->text, sizeof(ret->text), "%s", "other EPs than before");
        return true;
    }
    ret->must = false;
    if (now_ns - adapt->together.solved_ns < rest_ns) {
        return false;
    }
    for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (m->adapt->asks) {
            ret->cause = dmn_cause_of(m->adapt->asks);
            snprintf(ret->text, sizeof(ret->text), "%s", m->adapt->asks_why);
            return true;
        }
    }
    for (const struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (costs_moved(m, mixed(x, m))) {
            ret->cause = DMN_CAUSE_MEASURED;
            snprintf(ret->text, sizeof(ret->text), "%s was measured since", m->name);
            return true;
        }
    }
    return false;
}

/* ---- what it led to ---- */

/* What of its wishes each model has, as far as that is worth anything. */
static double worth(double lambda)
{
    return base_min(lambda, ROOM);
}

/* By how much the plans of @x are better than those that served. */
static double gain(const struct dmn_mix *x)
{
    const struct tun_mix *mix = &x->promise.mix;

    if (!(x->served_lambda > 0)) {
        return INFINITY;
    }
    return tun_least_cost(mix->objective) && x->served_lambda >= 1
               ? x->served_value / mix->value - 1
               : worth(mix->lambda) / worth(x->served_lambda) - 1;
}

/* Return: a deadline is wished, and all hold. */
static bool promises(const struct dmn_mix *x)
{
    bool any = false;

    for (size_t i = 0; i < x->count; i++) {
        any |= x->models[i].wishes.deadline_ms > 0;
    }
    return any && x->promise.answer.refusal == TUN_ADMITTED;
}

/* Return: routes that are too slow for a deadline are left, and none comes. */
static bool hurries(const struct dmn_mix *x)
{
    bool fewer = false, more = false;

    for (size_t i = 0; i < x->count; i++) {
        fewer |= x->models[i].served_lags && !x->models[i].lags;
        more |= x->models[i].lags && !x->models[i].served_lags;
    }
    return fewer && !more && worth(x->promise.mix.lambda) >= worth(x->served_lambda) * (1 - MOVED);
}

/* Return: the plans of the job are to serve. While an EP is split, only if that pays. */
static bool pays(struct dmn_adapt *adapt, const struct dmn_together_job *j)
{
    const struct dmn_config *config = dmn_machine_config(adapt->machine);
    double least = (double)dmn_config_int(config, DMN_KEY_ADAPT_GAIN) / 100;
    bool parts = adapt->split.count > 0 && adapt->together.moved != TUN_CAUSE_NONE;

    if (j->mix->apart || hurries(j->mix)) {
        return true;
    }
    if (parts && gain(j->mix) < TUN_PARTS && !promises(j->mix)) {
        adapt->together.parts_lost = true;
        return false;
    }
    return j->why.must || gain(j->mix) >= least || (promises(j->mix) && !j->mix->served_holds);
}

static void describe(const struct dmn_together_job *j, char *ret, size_t bytes)
{
    const struct tun_mix *mix = &j->mix->promise.mix;

    if (j->mix->apart) {
        snprintf(ret, bytes, "%s; each is planned for itself", j->why.text);
    } else {
        snprintf(ret, bytes,
                 "%s; one plan for %zu model%s gives %.2f of what is wished, %.1f %% of what these "
                 "cores could ever do",
                 j->why.text, j->mix->count, base_plural(j->mix->count), mix->lambda,
                 100 * tun_mix_of_bound(mix));
        if (j->mix->promise.cut_count > 0) {
            base_append(ret, bytes, "; %zu unit%s in pieces", j->mix->promise.cut_count,
                        base_plural(j->mix->promise.cut_count));
        }
    }
}

/* Return: @m is served by this already. */
static bool is_served(const struct dmn_model *m, const struct dmn_mixed *x)
{
    return pl_plan_equal(&x->plan, pl_current_plan(m->pipe)) &&
           memcmp(x->pieces, x->served_pieces, m->model->unit_count) == 0;
}

/* Has @m served as @x says. What is known of slowed cores stays. */
static void serve(struct dmn_model *m, const struct dmn_mixed *x, const struct dmn_together_job *j)
{
    struct dmn_origin origin =
        j->mix->apart ? DMN_ORIGIN_EXACT : (struct dmn_origin){.from = DMN_FROM_MIX};
    char before[PL_PLAN_TEXT_MAX], detail[384];
    int error;

    if (is_served(m, x)) {
        m->origin = origin;
        return;
    }
    dmn_model_plan_text(m, before);
    error = pl_cut(m->pipe, x->pieces);
    error = error ? error
                  : dmn_plan_switch(
                        m, &(struct dmn_switch){
                               .plan = &x->plan, .origin = origin, .keep = true, .learn = true});
    if (error) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                        "model %s: cannot build its part of the plan for all models: %s", m->name,
                        strerror(-error));
        return;
    }
    dmn_adapt_carry_over(m, m);
    describe(j, detail, sizeof(detail));
    dmn_adapt_machine_told(m->adapt, (enum tun_cause)j->why.cause);
    dmn_adapt_await(m,
                    dmn_adapt_tell(m,
                                   (struct dmn_history_event){
                                       .cause = j->why.cause,
                                       .detail = detail,
                                       .origin = origin,
                                       .outcome = DMN_OUTCOME_SWITCHED,
                                       .plan_before = before,
                                       .fps_before = dmn_adapt_fps(m->adapt, 3),
                                       .predicted_gain = j->mix->apart ? 0 : gain(j->mix),
                                       .duration_ms = (double)(base_now_ns() - j->began_ns) / 1e6},
                                   NULL));
}

static void apply(struct dmn_adapt *adapt, const struct dmn_together_job *j)
{
    for (size_t i = 0; i < j->mix->count; i++) {
        const struct dmn_mixed *x = &j->mix->models[i];
        struct dmn_model *m = dmn_model_find(adapt->models, x->name);

        if (!x->pinned && x->plan.stage_count > 0) {
            serve(m, x, j);
        }
    }
}

/* ---- the job ---- */

static void run(struct dmn_job *work)
{
    struct dmn_together_job *j = base_container_of(work, struct dmn_together_job, work);

    j->error = dmn_mix_solve(j->mix);
}

static void drop(struct dmn_job *work)
{
    job_free(base_container_of(work, struct dmn_together_job, work));
}

/* Return: the models are those of the job, and nothing has changed their plans since. */
static bool as_taken(const struct dmn_adapt *adapt, const struct dmn_mix *x)
{
    char why[192];
    bool same = is_free(adapt) && !is_other(adapt, x, why, sizeof(why));

    for (size_t i = 0; same && i < x->count; i++) {
        const struct dmn_model *m = dmn_model_find(adapt->models, x->models[i].name);

        same = pl_plan_equal(pl_current_plan(m->pipe), &x->models[i].serving);
    }
    return same;
}

static void done(struct dmn_job *work)
{
    struct dmn_together_job *j = base_container_of(work, struct dmn_together_job, work);
    struct dmn_adapt *adapt = j->adapt;

    adapt->together.job = NULL;
    adapt->together.solved_ns = base_now_ns();
    if (j->error) {
        dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){0},
                        "no plan for all models: %s; each keeps its own", strerror(-j->error));
    }
    if (!j->error && as_taken(adapt, j->mix)) {
        bool better = pays(adapt, j);

        adapt->together.moved = TUN_CAUSE_NONE;
        for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
            m->adapt->asks = TUN_CAUSE_NONE;
        }
        mix_free(adapt->plans->mix);
        adapt->plans->mix = NULL;
        if (better) {
            apply(adapt, j);
        }
        adapt->plans->mix = j->mix->apart ? NULL : base_take(j->mix);
    }
    job_free(j);
}

static void begin(struct dmn_adapt *adapt, const struct reason *why, bool apart)
{
    struct dmn_together_job *j = calloc(1, sizeof(*j));

    if (!j || !(j->mix = calloc(1, sizeof(*j->mix))) ||
        dmn_mix_take(adapt->models, apart, j->mix) < 0) {
        adapt->together.solved_ns = base_now_ns();
        job_free(j);
        return;
    }
    j->work = (struct dmn_job){.run = run, .done = done, .drop = drop};
    j->adapt = adapt;
    j->why = *why;
    j->began_ns = base_now_ns();
    adapt->together.job = j;
    dmn_work_do(adapt->machine->beside, &j->work);
}

void dmn_together_step(struct dmn_adapt *adapt, uint64_t now_ns)
{
    struct reason why = {DMN_CAUSE_MODELS, "no rates of several models, nor a deadline of one",
                         true};
    bool apart = !wanted(adapt);

    if (!adapt->together.job && now_ns - adapt->together.solved_ns >= REST_NS && is_free(adapt) &&
        (apart ? adapt->plans->mix != NULL : is_due(adapt, now_ns, &why))) {
        begin(adapt, &why, apart);
    }
}

void dmn_together_leave(struct dmn_adapt *adapt)
{
    struct dmn_together_job *j = base_take(adapt->together.job);

    if (j) {
        dmn_job_leave(&j->work);
    }
    mix_free(base_take(adapt->plans->mix));
}
