/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the present plan and routes over boards, in sentences with figures; computes fronts. */

#include "base/base.h"
#include "daemon/boards/route_fill.h"
#include "daemon/control/json.h"
#include "tuner/json/record_json.h"

#define RUNNERS_UP 5u
#define NEARLY 0.0005 /* smaller relative differences count as none */

/* fps, bottleneck_ms, latency_ms; null where unknown. */
static json_t *times_json(double bottleneck_ns, double latency_ns)
{
    return json_pack("{s:o, s:o, s:o}", "fps",
                     dmn_json_positive(bottleneck_ns > 0 ? 1e9 / bottleneck_ns : 0),
                     "bottleneck_ms", dmn_json_positive(bottleneck_ns * 1e-6), "latency_ms",
                     dmn_json_positive(latency_ns * 1e-6));
}

static json_t *outcome_json(const struct tun_outcome *o)
{
    return times_json(o->bottleneck_ns, o->latency_ns);
}

int dmn_front_json(const struct tun_problem *p, size_t max, bool energy, json_t **ret)
{
    base_autofree struct tun_solution *front = calloc(max, sizeof(*front));
    json_t *list;
    size_t count;
    int error = front ? tun_front(p, max, front, &count) : -ENOMEM;

    if (error < 0) {
        return error;
    }
    list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *entry = outcome_json(&front[i].outcome);

        json_object_set_new(entry, "plan", tun_plan_json(p, &front[i].plan));
        if (energy) {
            json_object_set_new(entry, "energy_mj",
                                dmn_json_positive(front[i].outcome.energy_nj * 1e-6));
        }
        json_array_append_new(list, entry);
    }
    *ret = list;
    return 0;
}

static size_t slowest_stage(const struct tun_outcome *o)
{
    size_t slowest = 0;

    for (size_t s = 1; s < o->stage_count; s++) {
        slowest = o->stage_ns[s] > o->stage_ns[slowest] ? s : slowest;
    }
    return slowest;
}

static const char *ep_name(const void *problem, size_t ep)
{
    const struct tun_problem *p = problem;

    return p->eps[ep].name;
}

/* The teams of one stage, written as in plans. */
static json_t *teams_json(const struct tun_problem *p, const struct pl_stage_plan *stage)
{
    char text[512] = "";

    for (size_t g = 0; g < stage->group_count; g++) {
        char team[PL_GROUP_TEXT_MAX];

        pl_group_format(&stage->groups[g], ep_name, p, team);
        base_append(text, sizeof(text), "%s%s", g ? "+" : "", team);
    }
    return json_string(text);
}

static json_t *stages_json(const struct dmn_explain *e)
{
    const struct tun_outcome *measured = &e->trial.measured;
    const struct pl_plan *plan = &e->trial.plan;
    size_t bottleneck = slowest_stage(e->trial.failed ? &e->expected : measured);
    json_t *list = json_array();

    for (size_t s = 0; s < plan->stage_count; s++) {
        double is = e->trial.failed ? 0 : measured->stage_ns[s], was = e->expected.stage_ns[s];
        json_t *entry =
            json_pack("{s:o, s:o, s:o, s:o, s:o, s:f, s:b}", "units",
                      json_sprintf("%u-%u", plan->stages[s].first_unit, plan->stages[s].last_unit),
                      "teams", teams_json(&e->problem, &plan->stages[s]), "predicted_ms",
                      dmn_json_positive(was * 1e-6), "measured_ms", dmn_json_positive(is * 1e-6),
                      "ratio", is > 0 && was > 0 ? json_real(is / was) : json_null(), "busy",
                      e->busy[s], "bottleneck", s == bottleneck);

        json_array_append_new(list, entry);
    }
    return list;
}

#define BY_HOW_MUCH_BYTES 64

/* Writes "3.1 % more" for a figure that is more or less by the ratio @x. */
static void by_how_much(double x, const char *what, char ret[BY_HOW_MUCH_BYTES])
{
    if (fabs(x - 1) < NEARLY) {
        snprintf(ret, BY_HOW_MUCH_BYTES, "the same %s", what);
    } else {
        snprintf(ret, BY_HOW_MUCH_BYTES, "%.1f %% %s %s", fabs(x - 1) * 100,
                 x > 1 ? "more" : "less", what);
    }
}

static json_t *compared(const struct tun_outcome *other, const struct tun_outcome *now)
{
    char fps[BY_HOW_MUCH_BYTES], latency[BY_HOW_MUCH_BYTES];

    by_how_much(now->bottleneck_ns / other->bottleneck_ns, "throughput", fps);
    by_how_much(other->latency_ns / now->latency_ns, "latency", latency);
    return json_sprintf("By the table it has %s and %s.", fps, latency);
}

static json_t *runners_up_json(const struct dmn_explain *e, const struct tun_solution *top,
                               size_t count, const struct tun_outcome *now)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        if (pl_plan_equal(&top[i].plan, &e->trial.plan)) {
            continue;
        }
        json_array_append_new(
            list,
            json_pack("{s:o, s:o, s:o, s:f, s:o}", "plan", tun_plan_json(&e->problem, &top[i].plan),
                      "fps", dmn_json_positive(1 / top[i].outcome.bottleneck_ns * 1e9),
                      "latency_ms", dmn_json_positive(top[i].outcome.latency_ns * 1e-6), "gain",
                      now->bottleneck_ns / top[i].outcome.bottleneck_ns - 1, "why",
                      compared(&top[i].outcome, now)));
    }
    return list;
}

/* Why the plan leaves cores of an EP unused. @fastest: the plan with the least bottleneck. */
static json_t *why_not_more(const struct dmn_explain *e, size_t ep,
                            const struct tun_solution *fastest, const struct tun_outcome *now)
{
    const char *name = e->problem.eps[ep].name;
    size_t used = pl_plan_cores(&e->trial.plan, ep), total = e->problem.eps[ep].cores;
    size_t then = pl_plan_cores(&fastest->plan, ep);
    double gain = now->bottleneck_ns / fastest->outcome.bottleneck_ns - 1;
    double longer = fastest->outcome.latency_ns / now->latency_ns - 1;

    if (used > total) {
        return json_sprintf("Teams share cores: the plan asks for more of %s than there are.",
                            name);
    }
    if (used == total) {
        return json_sprintf("All cores of %s are used.", name);
    }
    if (then <= used || gain < NEARLY) {
        return json_sprintf("A further core of %s would gain less than its hand-off costs: no "
                            "plan with more of them is faster.",
                            name);
    }
    if (longer > NEARLY) {
        return json_sprintf("The fastest plan uses %zu cores of %s; it would have %.1f %% more "
                            "throughput and %.1f %% more latency.",
                            then, name, gain * 100, longer * 100);
    }
    return json_sprintf("The fastest plan by the table uses %zu cores of %s and has %.1f %% more "
                        "throughput; a retune would try it.",
                        then, name, gain * 100);
}

static json_t *cores_json(const struct dmn_explain *e, const struct tun_solution *fastest,
                          const struct tun_outcome *now, const double *limits)
{
    json_t *list = json_array();

    for (size_t k = 0; k < e->problem.ep_count; k++) {
        json_array_append_new(list,
                              json_pack("{s:s, s:I, s:i, s:f, s:o}", "ep", e->problem.eps[k].name,
                                        "used", (json_int_t)pl_plan_cores(&e->trial.plan, k),
                                        "total", (int)e->problem.eps[k].cores, "limits", limits[k],
                                        "why", why_not_more(e, k, fastest, now)));
    }
    return list;
}

void dmn_costs_count(const struct tun_problem *p, size_t ret[DMN_SOURCE_COUNT])
{
    memset(ret, 0, DMN_SOURCE_COUNT * sizeof(*ret));
    for (size_t i = 0; i < tun_cell_count(&p->costs); i++) {
        ret[p->costs.cells[i].source]++;
    }
}

static json_t *table_json(const struct tun_problem *p)
{
    size_t count[DMN_SOURCE_COUNT];

    dmn_costs_count(p, count);
    return json_pack("{s:I, s:I, s:I}", "measured", (json_int_t)count[TUN_MEASURED], "saved",
                     (json_int_t)count[TUN_SAVED], "predicted", (json_int_t)count[TUN_PREDICTED]);
}

json_t *dmn_explain_json(const struct dmn_explain *e)
{
    base_autofree struct tun_solution *top = calloc(RUNNERS_UP + 1, sizeof(*top));
    base_autofree struct tun_solution *fastest = calloc(1, sizeof(*fastest));
    base_autofree struct tun_outcome *now = calloc(1, sizeof(*now));
    struct tun_problem any; /* borrows */
    size_t count = 0;
    double bound, limits[PL_EP_MAX];

    if (!top || !fastest || !now || tun_eval(&e->problem, &e->trial.plan, now) != 0) {
        return NULL;
    }
    any = e->problem;
    any.objective = TUN_THROUGHPUT;
    any.bounds = (struct tun_bounds){.stages_max = e->problem.bounds.stages_max};
    if (tun_solve(&any, fastest) < 0 ||
        tun_solve_top(&e->problem, RUNNERS_UP + 1, top, &count) < 0) {
        return NULL;
    }
    bound = tun_bound_limits(&e->problem, limits);
    return json_pack("{s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "plan",
                     tun_plan_json(&e->problem, &e->trial.plan), "algorithm", e->algorithm,
                     "objective", tun_objective_names[e->problem.objective], "predicted",
                     outcome_json(e->expects ? &e->expected : &(struct tun_outcome){0}), "now",
                     outcome_json(now), "measured",
                     outcome_json(e->trial.failed ? &(struct tun_outcome){0} : &e->trial.measured),
                     "measured_at", e->measured_at[0] ? json_string(e->measured_at) : json_null(),
                     "stages", stages_json(e), "runners_up", runners_up_json(e, top, count, now),
                     "bound_fps", dmn_json_positive(bound > 0 ? 1 / bound * 1e9 : 0), "cores",
                     cores_json(e, fastest, now, limits), "table", table_json(&e->problem));
}

/* ---- over boards: the front ---- */

static json_t *point_json(const struct dmn_spread_query *q, const struct dmn_spread_front *f,
                          size_t i)
{
    const struct tun_outcome *o = &f->solution[i].outcome;
    char plan[PL_PLAN_TEXT_MAX], route[DMN_ROUTE_TEXT_MAX];
    json_t *point;

    if (dmn_spread_front_texts(f, i, &q->report, plan, route) < 0) {
        return NULL;
    }
    point = outcome_json(o);
    json_object_update_new(
        point, json_pack("{s:s, s:o, s:o, s:o}", "plan", plan, "route",
                         route[0] ? json_string(route) : json_null(), "most_memory_bytes",
                         dmn_json_positive(o->most_memory_bytes), "most_energy_mj",
                         dmn_json_positive(o->most_energy_nj * 1e-6)));
    return point;
}

int dmn_boards_front_json(const struct dmn_spread_query *q, size_t max, bool watts, json_t **ret)
{
    struct dmn_spread_front f;
    int r = dmn_spread_front(q, max, &f);
    json_t *list;

    if (r < 0) {
        return r;
    }
    list = json_array();
    for (size_t i = 0; i < f.count && r == 0; i++) {
        r = json_array_append_new(list, point_json(q, &f, i)) ? -ENOMEM : 0;
    }
    *ret = json_pack("{s:o, s:b, s:b}", "front", list, "exact", f.exact, "watts_known", watts);
    dmn_spread_front_deinit(&f);
    if (r < 0) {
        json_decref(*ret);
    }
    return *ret ? r : -ENOMEM;
}

/* ---- over boards: explain ---- */

static json_t *figures_json(const struct dmn_figures *f, const char *limit)
{
    json_t *figures = f->possible ? times_json(f->bottleneck_ns, f->latency_ns) : json_null();

    json_object_set_new(figures, "limit", limit && *limit ? json_string(limit) : json_null());
    return figures;
}

/* By how many percent @a is better than @b in what the model is served for. */
static double gain(const struct tun_problem *p, const struct dmn_figures *a,
                   const struct dmn_figures *b)
{
    double x = a->bottleneck_ns, y = b->bottleneck_ns;

    if (p->objective == TUN_LATENCY) {
        x = a->latency_ns;
        y = b->latency_ns;
    } else if (p->objective == TUN_POWER) {
        x = a->energy_nj;
        y = b->energy_nj;
    }
    return x > 0 ? (y / x - 1) * 100 : 0;
}

static json_t *verdict_json(const struct dmn_spread_query *q, const struct dmn_explained *e,
                            bool fixed)
{
    const struct dmn_spread_answer *a = &e->answer;
    const char *for_what = q->here.objective == TUN_LATENCY ? "latency"
                           : q->here.objective == TUN_POWER ? "energy"
                                                            : "throughput";
    double more = gain(&q->here, &a->best, &a->present);

    switch (e->verdict) {
    case DMN_VERDICT_NONE:
        return json_sprintf("There is no route: %s.", a->limit);
    case DMN_VERDICT_SERVES:
        return json_sprintf("The present route is the best one by the table.");
    case DMN_VERDICT_BETTER:
        if (q->hop_count == 0 || !a->present.possible) {
            more = gain(&q->here, &a->best, &a->alone);
        }
        return json_sprintf(
            "By the table the best route is %.1f %% better in %s than %s. %s", more, for_what,
            q->hop_count > 0 && a->present.possible ? "the present one" : "this board alone",
            fixed ? "It is not taken, because the present way to serve was set; "
                    "pipectl plan auto gives planning back."
                  : "It is taken when a route is sought again: when boards, links "
                    "or costs change, some seconds after the last change, and if "
                    "the gain lasts.");
    case DMN_VERDICT_ALONE_BETTER:
        return json_sprintf("By the table this board alone is %.1f %% better in %s than the "
                            "present route.%s",
                            gain(&q->here, &a->alone, &a->present), for_what,
                            fixed ? " The route stays, because it was set." : "");
    case DMN_VERDICT_LITTLE:
        return a->best.possible
                   ? json_sprintf("The best route by the table would gain %.1f %% in %s; less than "
                                  "%.0f %% are not worth %s.",
                                  more, for_what,
                                  (e->moves ? DMN_DECIDE_MOVE_GAIN : DMN_DECIDE_GAIN) * 100,
                                  e->moves ? "loading other segments" : "a change")
                   : json_sprintf("There is no other route: %s.", a->limit);
    default:
        return json_sprintf("The best route by the table would gain %.1f %% in %s over this board "
                            "alone; less than %.0f %% are not worth it.",
                            gain(&q->here, &a->best, &a->alone), for_what, DMN_DECIDE_GAIN * 100);
    }
}

static json_t *best_json(const struct dmn_spread_query *q, const struct dmn_explained *e)
{
    json_t *best = figures_json(&e->answer.best, e->answer.best.limit);
    char route[DMN_ROUTE_TEXT_MAX];

    if (json_is_object(best)) {
        dmn_hops_text(e->answer.hop, e->answer.hop_count, &q->report, route);
        json_object_set_new(best, "route", json_string(route));
        json_object_set_new(best, "plan", json_string(e->answer.text));
    }
    return best;
}

static json_t *left_out_json(const struct dmn_spread_query *q, const struct dmn_explained *e)
{
    json_t *list = json_array();

    for (size_t i = 0; i < e->left_count; i++) {
        json_array_append_new(list, json_pack("{s:s, s:s}", "name",
                                              dmn_board_name(&q->report, e->left[i].print), "why",
                                              e->left[i].why));
    }
    return list;
}

int dmn_boards_explain_json(const struct dmn_spread_query *q, bool fixed, json_t *route)
{
    base_autofree struct dmn_explained *e = calloc(1, sizeof(*e));
    int r = e ? dmn_spread_explain(q, e) : -ENOMEM;

    if (r < 0) {
        return r;
    }
    json_text_each(json_object_get(route, "hops"), i, hop) {
        json_object_set_new(hop, "predicted_ms",
                            i < BRD_HOPS_MAX ? dmn_json_positive(e->answer.present.hop_ns[i] * 1e-6)
                                             : json_null());
    }
    json_object_update_new(
        route,
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:f, s:I}", "predicted",
                  figures_json(&e->answer.present, e->answer.present.limit), "best",
                  best_json(q, e), "alone", figures_json(&e->answer.alone, NULL), "verdict",
                  verdict_json(q, e, fixed), "left_out", left_out_json(q, e), "input_bytes",
                  q->here.boards.input_bytes, "guessed_links", (json_int_t)e->guessed_links));
    return 0;
}
