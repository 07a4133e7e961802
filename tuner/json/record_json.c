/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/json/record_json.h"

#include "base/json_text.h"
#include "tuner/json/costs_json.h"

#define LIMIT 1e15 /* of any figure; tun_record_check() knows the ranges */

static const char *const events[] = {"hotplug",   "cpuset",  "power", "button",
                                     "input",     "probe",   "parts", "governor",
                                     "frequency", "thermal", "costs"};

static const struct tun_field BOUNDS[] = {
    TUN_FIELD(struct tun_bounds, period_max_ns, .most = LIMIT),
    TUN_FIELD(struct tun_bounds, latency_max_ns, .most = LIMIT),
    TUN_FIELD(struct tun_bounds, stages_max, TUN_COUNT, .most = PL_STAGE_MAX),
    TUN_FIELD(struct tun_bounds, batch_max, TUN_COUNT, .most = PL_BATCH_MAX),
    {"one_kind_stages", offsetof(struct tun_bounds, one_ep_stages), TUN_FLAG},
    TUN_FIELD(struct tun_bounds, slack, .most = 10),
    TUN_FIELD(struct tun_bounds, spans, TUN_FLAG, .optional = true),
    {0}};
static const struct tun_field EP[] = {
    TUN_FIELD(struct tun_ep_now, cores, TUN_SHORT, .most = PL_CPU_MAX),
    TUN_FIELD(struct tun_ep_now, khz_table, .most = 1e9),
    TUN_FIELD(struct tun_ep_now, khz, .most = 1e9),
    TUN_FIELD(struct tun_ep_now, khz_before, .most = 1e9),
    TUN_FIELD(struct tun_ep_now, governor_changed, TUN_FLAG),
    TUN_FIELD(struct tun_ep_now, limit_changed, TUN_FLAG),
    TUN_FIELD(struct tun_ep_now, thermal, TUN_FLAG),
    TUN_FIELD(struct tun_ep_now, contended, TUN_FLAG),
    {0}};
static const struct tun_field TEAM[] = {
    TUN_FIELD(struct tun_team_now, stage, TUN_SHORT, .most = PL_STAGE_MAX),
    TUN_FIELD(struct tun_team_now, group, TUN_SHORT, .most = PL_GROUP_MAX),
    TUN_FIELD(struct tun_team_now, level, .least = -20, .most = 20),
    TUN_FIELD(struct tun_team_now, sigma, .most = 20),
    TUN_FIELD(struct tun_team_now, waiting, .least = -1, .most = 1, .null = NAN),
    TUN_FIELD(struct tun_team_now, firm, TUN_FLAG),
    TUN_FIELD(struct tun_team_now, light, TUN_FLAG),
    {0}};
static const struct tun_field RECORD[] = {
    {"throttled", offsetof(struct tun_record, felt.throttled), .most = 1},
    {"pressure", offsetof(struct tun_record, felt.pressure), .most = 1},
    TUN_FIELD(struct tun_record, measured_ns, .most = LIMIT),
    TUN_FIELD(struct tun_record, gain_min, .most = 10),
    TUN_FIELD(struct tun_record, gain_urgent, .most = 10),
    TUN_FIELD(struct tun_record, cooldown_left_s, .most = LIMIT),
    TUN_FIELD(struct tun_record, budget_left, .most = LIMIT),
    TUN_FIELD(struct tun_record, search, TUN_FLAG),
    {0}};
static const struct tun_field DECIDED[] = {
    TUN_FIELD(struct tun_decision, replan, TUN_FLAG),
    TUN_FIELD(struct tun_decision, gain, .least = -1, .most = LIMIT, .null = INFINITY),
    {0}};

static json_t *numbers(const double *v, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, json_text_number(v[i]));
    }
    return list;
}

json_t *tun_plan_json(const struct tun_problem *p, const struct pl_plan *plan)
{
    char text[PL_PLAN_TEXT_MAX];

    return tun_plan_text(p, plan, text) < 0 ? json_null() : json_string(text);
}

static json_t *events_json(unsigned bits)
{
    json_t *list = json_array();

    for (size_t i = 0; i < base_array_count(events); i++) {
        if (bits & (1u << i)) {
            json_array_append_new(list, json_string(events[i]));
        }
    }
    return list;
}

json_t *tun_decided_json(const struct tun_problem *p, const struct tun_decision *d)
{
    return json_pack("{s:b, s:s, s:s, s:o, s:o}", "replan", d->replan, "cause",
                     tun_cause_name(d->cause), "hold", tun_hold_names[d->hold], "plan",
                     d->replan ? tun_plan_json(p, &d->plan) : json_null(), "gain",
                     json_text_number(d->gain));
}

json_t *tun_record_json(const struct tun_record *r, const struct tun_decision *d, const char *model,
                        bool sources)
{
    const struct tun_problem *p = &r->problem;
    json_t *slow = json_object(), *root;

    for (size_t k = 0; k < p->ep_count; k++) {
        json_object_set_new(slow, p->eps[k].name,
                            numbers(&r->slow[k * p->unit_count], p->unit_count));
    }
    root = json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "problem",
                     tun_problem_json(p, model, sources, NULL, NULL), "objective",
                     tun_objective_names[p->objective], "bounds",
                     tun_fields_add(json_object(), BOUNDS, &p->bounds), "plan",
                     tun_plan_json(p, &r->plan), "home",
                     r->home.stage_count > 0 ? tun_plan_json(p, &r->home) : json_null(), "beta",
                     numbers(r->beta, p->unit_count), "slow", slow, "now",
                     tun_rows_json(EP, r->eps, p->ep_count, sizeof(*r->eps)), "teams",
                     tun_rows_json(TEAM, r->teams, r->team_count, sizeof(*r->teams)), "events",
                     events_json(r->events));
    if (root) {
        tun_fields_add(root, RECORD, r);
        json_object_set_new(root, "decided", tun_decided_json(p, d));
    }
    return root;
}

static size_t name_of(struct tun_reader *r, const char *where, const json_t *v,
                      const char *const *names, size_t count)
{
    for (size_t i = 0; json_is_string(v) && i < count; i++) {
        if (strcmp(json_string_value(v), names[i]) == 0) {
            return i;
        }
    }
    tun_wrong(r, where, "is not a known name");
    return 0;
}

static void read_plan(struct tun_reader *r, const char *where, const struct tun_problem *p,
                      const json_t *text, struct pl_plan *ret)
{
    struct pl_ep_set eps;
    char why[TUN_READER_ERROR_MAX];

    tun_eps(p, &eps);
    if (!json_is_string(text) ||
        pl_plan_parse(json_string_value(text), &eps, p->unit_count, why, sizeof(why), ret) < 0) {
        tun_wrong(r, where, "%s", json_is_string(text) ? why : "is not a plan");
    }
}

static void read_decided(struct tun_reader *r, const struct tun_problem *p, const json_t *json,
                         struct tun_decision *d)
{
    static const char *const keys[] = {"cause", "hold", "plan", NULL};
    const char *causes[TUN_CAUSE_COUNT];

    for (int i = 0; i < TUN_CAUSE_COUNT; i++) {
        causes[i] = tun_cause_name((enum tun_cause)i);
    }
    if (!tun_read_object(r, "decided", json, keys, DECIDED, d)) {
        return;
    }
    d->cause = (enum tun_cause)name_of(r, "decided.cause", json_object_get(json, "cause"), causes,
                                       TUN_CAUSE_COUNT);
    d->hold = (enum tun_hold)name_of(r, "decided.hold", json_object_get(json, "hold"),
                                     tun_hold_names, TUN_HOLD_COUNT);
    if (d->replan) {
        read_plan(r, "decided.plan", p, json_object_get(json, "plan"), &d->plan);
    }
}

static void read_lists(struct tun_reader *r, const json_t *json, struct tun_record *ret)
{
    const json_t *slow = json_object_get(json, "slow"), *happened = json_object_get(json, "events");
    size_t units = ret->problem.unit_count, eps = ret->problem.ep_count;
    const json_t *now = tun_read_list(r, json, "", "now", eps, eps);
    const json_t *teams = json_object_get(json, "teams");

    tun_read_numbers(r, json, "", "beta", units, ret->beta);
    for (size_t k = 0; k < eps; k++) {
        tun_read_numbers(r, slow, "slow", ret->problem.eps[k].name, units, &ret->slow[k * units]);
    }
    for (size_t k = 0; !r->error[0] && k < eps; k++) {
        tun_read_object(r, "now", json_array_get(now, k), NULL, EP, &ret->eps[k]);
    }
    for (size_t i = 0; !r->error[0] && i < ret->team_count; i++) {
        tun_read_object(r, "teams", json_array_get(teams, i), NULL, TEAM, &ret->teams[i]);
    }
    for (size_t i = 0; !r->error[0] && i < json_array_size(happened); i++) {
        ret->events |= 1u << name_of(r, "events", json_array_get(happened, i), events,
                                     base_array_count(events));
    }
}

static bool make_room(struct tun_reader *r, const json_t *json, struct tun_record *ret)
{
    const json_t *teams = tun_read_list(r, json, "", "teams", 0, PL_STAGE_MAX * PL_GROUP_MAX);
    size_t units = ret->problem.unit_count;

    if (!teams) {
        return false;
    }
    ret->team_count = json_array_size(teams);
    ret->teams = calloc(base_max(ret->team_count, (size_t)1), sizeof(*ret->teams));
    ret->beta = calloc(units, sizeof(*ret->beta));
    ret->slow = calloc(units * ret->problem.ep_count, sizeof(*ret->slow));
    if (!ret->teams || !ret->beta || !ret->slow) {
        tun_wrong(r, "", "out of memory");
        return false;
    }
    return true;
}

void tun_record_read(struct tun_reader *r, const json_t *json, struct tun_record *ret,
                     struct tun_decision *ret_decided)
{
    static const char *const keys[] = {"problem", "objective", "bounds",  "plan",
                                       "home",    "beta",      "slow",    "now",
                                       "teams",   "events",    "decided", NULL};

    *ret = TUN_RECORD_NULL;
    *ret_decided = TUN_DECISION_NULL;
    if (!tun_read_object(r, "", json, keys, RECORD, ret)) {
        return;
    }
    tun_problem_read(r, json_object_get(json, "problem"), &ret->problem);
    if (r->error[0] || !make_room(r, json, ret)) {
        return;
    }
    if (tun_objective_find(json_text_of(json, "objective"), &ret->problem.objective) < 0) {
        tun_wrong(r, "objective", "is not a known name");
    }
    tun_read_object(r, "bounds", json_object_get(json, "bounds"), NULL, BOUNDS,
                    &ret->problem.bounds);
    read_plan(r, "plan", &ret->problem, json_object_get(json, "plan"), &ret->plan);
    if (!json_is_null(json_object_get(json, "home"))) {
        read_plan(r, "home", &ret->problem, json_object_get(json, "home"), &ret->home);
    }
    read_lists(r, json, ret);
    read_decided(r, &ret->problem, json_object_get(json, "decided"), ret_decided);
}
