/* SPDX-License-Identifier: Apache-2.0 */
/* A model on the daemon's cores, as the tuner sees it, and the plans that follow. */
#include <jansson.h>
#include <math.h>

#include "daemon/machine/machine.h"
#include "daemon/models/process_memory.h"
#include "daemon/plans/planner.h"
#include "daemon/plans/plans.h"
#include "daemon/plans/profile.h"
#include "model/op_bytes.h"
#include "pipeline/plan_move.h"
#include "tuner/adapt/decision_record.h"
#include "tuner/learn.h"

/* What a team spends on a frame outside its units, until a trial shows it: taking the frame off a
 * ring, passing it on with one wake, and fetching what another core wrote (docs/pipeline.md). */
#define HANDOFF_NS 5000.0
#define HANDOFF_NS_PER_BYTE 0.02

/* For EPs whose watts are neither measured nor configured: power grows faster than speed, and the
 * energy of the same work with its square root. An estimate that only ranks EPs. */
#define WATTS_EXPONENT 1.5

#define WAITED_MOST 0.95 /* more of the time counts as that */

/* The least sigma of cells that tun_fill() made of weights alone. */
#define UNCERTAIN_WEIGHT 0.45

struct dmn_goal dmn_goal_config(const struct dmn_config *config)
{
    return (struct dmn_goal){
        .objective = (enum tun_objective)dmn_config_int(config, DMN_KEY_PLANNER_OBJECTIVE),
        .fps = (double)dmn_config_int(config, DMN_KEY_PLANNER_FPS),
        .latency_ms = (double)dmn_config_int(config, DMN_KEY_PLANNER_LATENCY_MS)};
}

const struct tun_algorithm *dmn_planner_algorithm(const struct dmn_config *config)
{
    const struct tun_algorithm *a =
        tun_algorithm_find(dmn_config_string(config, DMN_KEY_PLANNER_ALGORITHM));

    return a ? a : &tun_exact; /* the key is checked when it is read */
}

bool dmn_planner_searches(const struct dmn_config *config)
{
    return dmn_planner_algorithm(config) != &tun_exact;
}

/* ---- a model on the daemon's cores, as the tuner sees it ---- */

/* What a unit moves for a frame: its weights as they are packed, on average of the kinds of cores
 * if these pack each its own, and the activations that its operators read and write.
 * @net: NULL: as the file has them */
static double unit_bytes(const struct mdl_model *model, const struct krn_net *net,
                         const struct mdl_unit *unit)
{
    size_t packed = net ? krn_net_ops_need_bytes(net, unit->first_op, unit->last_op) : 0;
    double bytes = base_max((double)unit->weight_bytes,
                            (double)packed / (double)(net ? krn_net_kinds(net) : 1));

    for (size_t i = unit->first_op; i <= unit->last_op; i++) {
        bytes += mdl_op_bytes(model, &model->ops[i], false);
    }
    return bytes;
}

static void describe_units(const struct mdl_model *model, const struct krn_net *net,
                           struct tun_problem *p)
{
    for (size_t u = 0; u < model->unit_count; u++) {
        const struct mdl_unit *unit = &model->units[u];
        struct tun_bench gemm = {0};

        dmn_unit_gemm(model, u, &gemm);
        p->units[u] = (struct tun_unit){
            .weight = base_max(unit->weight, 1.0),
            .in_bytes = u ? (double)model->units[u - 1].live_bytes : 0,
            .gemm_n = gemm.n,
            .gemm_k = gemm.k,
            .gemm_m = gemm.m,
            .layer = gemm.layer,
            .bytes = unit_bytes(model, net, unit),
        };
    }
}

static struct tun_ep describe_ep(const struct pl_ep *ep)
{
    struct tun_ep ret = {.cores = (uint16_t)ep->cpu_count,
                         .speed = ep->speed > 0 ? base_min(ep->speed, 1.0) : 1,
                         .bandwidth = 1};

    snprintf(ret.name, sizeof(ret.name), "%s", ep->name);
    return ret;
}

double dmn_planner_ep_watts(const struct dmn_machine *on, size_t ep, bool *ret_measured)
{
    const struct dmn_config *config = dmn_machine_config(on);
    const char *name = on->eps.eps[ep].name;
    double watts = dmn_sensors_watts(on, ep);

    *ret_measured = watts > 0;
    for (size_t i = 0; i < config->ep_count && !*ret_measured; i++) {
        if (strlen(config->eps[i].name) == pl_ep_base(name) &&
            strncmp(config->eps[i].name, name, pl_ep_base(name)) == 0) {
            watts = config->eps[i].watts;
        }
    }
    return watts;
}

void dmn_planner_watts(const struct dmn_machine *on, struct tun_problem *p)
{
    double sum = 0;
    size_t count = 0;
    bool measured;

    for (size_t e = 0; e < p->ep_count && p->ep_count == on->eps.count; e++) {
        p->eps[e].watts = dmn_planner_ep_watts(on, e, &measured);
        if (p->eps[e].watts > 0) {
            sum += p->eps[e].watts / pow(p->eps[e].speed, WATTS_EXPONENT);
            count++;
        }
    }
    for (size_t e = 0; e < p->ep_count; e++) {
        if (p->eps[e].watts <= 0) { /* as much more or less than the others as its speed says */
            p->eps[e].watts =
                (count ? sum / (double)count : 1) * pow(p->eps[e].speed, WATTS_EXPONENT);
        }
    }
}

/* Sets units and EPs; every cost is unknown. Return: 0, -EINVAL, -ENOMEM. */
static int describe(const struct dmn_machine *on, const struct dmn_load *l, struct tun_problem *ret)
{
    const struct mdl_model *model = l->model;
    struct tun_ep eps[PL_EP_MAX];
    size_t cores = 0;
    int error;

    for (size_t e = 0; e < on->eps.count; e++) {
        eps[e] = describe_ep(&on->eps.eps[e]);
        cores += eps[e].cores;
    }
    if (cores > PL_CPU_MAX) {
        return -EINVAL;
    }
    error = tun_problem_init(ret, model->unit_count, eps, on->eps.count);
    if (!error) {
        dmn_planner_watts(on, ret);
        ret->handoff_ns = HANDOFF_NS;
        ret->handoff_ns_per_byte = HANDOFF_NS_PER_BYTE;
        ret->batch_wait_ns =
            (double)dmn_config_int(dmn_machine_config(on), DMN_KEY_BATCH_WAIT_US) * 1e3;
        ret->bounds.batch_max =
            dmn_memory_batch(dmn_memory_free(), model->arena_bytes, cores, PL_BATCH_MAX);
        describe_units(model, l->net, ret);
    }
    return error;
}

static void apply_goal(struct tun_problem *p, const struct dmn_config *config,
                       const struct dmn_goal *goal)
{
    p->objective = goal->objective;
    p->bounds.period_max_ns = goal->fps > 0 ? 1e9 / goal->fps : 0;
    p->bounds.latency_max_ns = base_max(goal->latency_ms, 0.0) * 1e6;
    p->bounds.stages_max = (size_t)dmn_config_int(config, DMN_KEY_PLANNER_STAGES_MAX);
    p->bounds.spans = p->ep_count > 1;
}

bool dmn_planner_guessed(const struct tun_cell *c)
{
    return c->source < TUN_SAVED && c->sigma >= UNCERTAIN_WEIGHT;
}

void dmn_planner_guess(struct tun_problem *p)
{
    size_t guesses = 0;

    for (size_t i = 0; i < tun_cell_count(&p->costs); i++) {
        if (dmn_planner_guessed(&p->costs.cells[i])) {
            p->costs.cells[i] = (struct tun_cell){.ns = -1};
            guesses++;
        }
    }
    if (guesses) {
        tun_fill(p);
    }
}

int dmn_planner_problem(const struct dmn_model *m, const struct dmn_goal *goal,
                        struct tun_problem *ret)
{
    const struct dmn_config *config = dmn_machine_config(m->planning->of->machine);
    struct dmn_goal configured = dmn_goal_config(config);
    int error;

    goal = goal ? goal : &configured;
    if (goal->objective == TUN_POWER && goal->fps <= 0) {
        return -EINVAL;
    }
    error = tun_problem_copy(&m->planning->problem, ret);
    if (!error) {
        dmn_planner_watts(m->planning->of->machine, ret);
        dmn_planner_guess(ret);
        apply_goal(ret, config, goal);
    }
    return error;
}

void dmn_planner_beside(const struct dmn_model *m, struct tun_problem *p)
{
    double waited = dmn_sensors_now(m->planning->of->machine)->psi_cpu.some_avg10 / 100;

    if (!gov_known(waited)) {
        return;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 2; w <= p->eps[k].cores; w++) {
            double factor = tun_share_factor(1 / (1 - base_min(waited, WAITED_MOST)), 1, w - 1);

            for (size_t u = 0; u < p->unit_count; u++) {
                tun_cell_at(&p->costs, k, w, u)->ns *= factor;
            }
        }
    }
}

/* Enters what the cores stream, or has the load measure it where it measured primitives. */
static void ask_streams(struct dmn_plans *plans, struct dmn_load *l)
{
    struct dmn_profile *profile = plans->profile;

    dmn_streams_enter(&profile->streams, &l->planning->problem);
    if (l->choose.measured && !(profile->streams.machine > 0) && !profile->streaming) {
        l->planning->streams = calloc(1, sizeof(*l->planning->streams));
        profile->streaming = l->planning->streams != NULL;
    }
    if (l->planning->streams) {
        l->planning->streams->on = *dmn_machine_whole(plans->machine);
    }
}

int dmn_planner_prepare(struct dmn_plans *plans, const struct dmn_machine *on,
                        const struct dmn_config *config, struct dmn_load *l)
{
    struct dmn_goal goal = dmn_goal_config(config);
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    int error = -ENOMEM;
    bool found;

    l->planning = calloc(1, sizeof(*l->planning));
    if (plan && l->planning) {
        l->planning->of = plans;
        l->planning->start = dmn_config_int(config, DMN_KEY_PLANNER_START)
                                 ? dmn_planner_algorithm(config)
                                 : &tun_exact;
        l->planning->heuristic = (unsigned)dmn_config_int(config, DMN_KEY_PLANNER_HEURISTIC);
        error = describe(on, l, &l->planning->problem);
    }
    if (error) {
        snprintf(l->error, sizeof(l->error),
                 error == -ENOMEM ? "out of memory" : "there are more than %u cores to plan for",
                 PL_CPU_MAX);
        return error;
    }
    found = dmn_kept_load(on, l, plan) == 0;
    ask_streams(plans, l);
    dmn_profile_predict(plans, &l->planning->problem);
    dmn_choose_costs(&l->choose, l->model, &l->planning->problem);
    tun_fill(&l->planning->problem);
    apply_goal(&l->planning->problem, config, &goal);
    if (l->plan[0]) {
        l->origin = (struct dmn_origin){.from = DMN_FROM_CONFIG};
        found = true;
        error = dmn_eps_plan(on, l->plan, l->model->unit_count, l->error, sizeof(l->error), plan);
    }
    if (found && !error) {
        l->first = base_take(plan);
    }
    return error;
}

/* ---- plans that follow ---- */

/* The first plan that a search asks for: in the papers, the seed that it goes on from. Return: 0,
 * or it has none for this problem. */
static int seed(const struct dmn_planning *p, struct pl_plan *ret)
{
    static const struct pl_plan none; /* walks begin with Shisha's seed */
    struct tun_options o = {.seed = 1, .heuristic = p->heuristic, .from = &none};
    struct tun_search *s = NULL;
    char why[TUN_ERROR_MAX];
    int error = tun_search_new(p->start->name, &p->problem, &o, why, &s);

    error = error ? error : tun_search_ask(s, ret);
    tun_search_free(s);
    return error;
}

int dmn_planner_first(struct dmn_load *l)
{
    base_autofree struct tun_solution *best = calloc(1, sizeof(*best));
    base_autofree struct pl_plan *plan = calloc(1, sizeof(*plan));
    int error = -ENOMEM;

    if (l->planning->streams) {
        dmn_streams_measure(l->planning->streams);
        dmn_streams_enter(l->planning->streams, &l->planning->problem);
    }
    if (l->first) {
        return 0;
    }
    if (plan && l->planning->start != &tun_exact && seed(l->planning, plan) == 0) {
        l->origin = (struct dmn_origin){.from = DMN_FROM_SEARCH, .algorithm = l->planning->start};
        l->planning->start_due = true;
        l->first = base_take(plan);
        return 0;
    }
    if (best && plan) {
        error = tun_solve(&l->planning->problem, best);
    }
    if (error < 0) {
        snprintf(l->error, sizeof(l->error), "no plan found for %zu units: %s",
                 l->planning->problem.unit_count, strerror(-error));
        return error;
    }
    *plan = best->plan; /* for TUN_E_IMPOSSIBLE, too: then it is the fastest */
    l->origin = DMN_ORIGIN_EXACT;
    l->first = base_take(plan);
    return 0;
}

struct dmn_planning *dmn_planning_free(struct dmn_planning *p)
{
    if (p) {
        tun_problem_deinit(&p->problem);
        json_decref(p->kept);
        free(p->tried);
        free(p->streams);
        free(p);
    }
    return NULL;
}

void dmn_planner_deinit(struct dmn_model *m)
{
    dmn_refuse(&m->planning->switched, DMN_REFUSED_BUSY, "the daemon is stopping");
    dmn_planner_clocks_free(m);
    m->planning = dmn_planning_free(m->planning);
}

/* A figure made of the weight alone can rank plans; it cannot predict a time. */
static bool trusted(const struct tun_problem *p, const struct pl_stage_plan *stage,
                    const struct pl_group *group)
{
    for (size_t u = stage->first_unit; u <= stage->last_unit; u++) {
        for (size_t k = 0; k < p->ep_count; k++) {
            size_t width = pl_group_on(group, k);

            if (width > 0 && dmn_planner_guessed(tun_cell_at(&p->costs, k, width, u))) {
                return false;
            }
        }
    }
    return true;
}

bool dmn_planner_expect(const struct dmn_model *m, const struct pl_plan *plan,
                        struct tun_outcome *ret)
{
    bool all = true;

    if (tun_eval(&m->planning->problem, plan, ret) != 0) {
        *ret = (struct tun_outcome){0};
        return false;
    }
    for (size_t s = 0; s < plan->stage_count; s++) {
        for (size_t g = 0; g < plan->stages[s].group_count; g++) {
            if (!trusted(&m->planning->problem, &plan->stages[s], &plan->stages[s].groups[g])) {
                ret->team_ns[s][g] = ret->stage_ns[s] = 0;
                all = false;
            }
        }
    }
    return all;
}
