/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/json/record_json.h"

#include "base/base.h"
#include "tuner/json/costs_json.h"

#define LIMIT 1e15 /* of any figure; tun_record_check() knows the ranges */

static const char *const events[] = {"hotplug",   "cpuset",  "power", "button",
                                     "input",     "probe",   "parts", "governor",
                                     "frequency", "thermal", "costs"};
static const char *const objectives[] = {"throughput", "latency", "power"};

/* JSON has no infinity and no NAN. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *numbers(const double *v, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, number(v[i]));
    }
    return list;
}

static json_t *plan_json(const struct tun_problem *p, const struct pl_plan *plan)
{
    char text[PL_PLAN_TEXT_MAX];
    struct pl_ep_set eps;

    tun_eps(p, &eps);
    return pl_plan_format(plan, &eps, text, sizeof(text)) < 0 ? json_null() : json_string(text);
}

static json_t *eps_json(const struct tun_record *r)
{
    json_t *list = json_array();

    for (size_t k = 0; k < r->problem.ep_count; k++) {
        const struct tun_ep_now *n = &r->eps[k];

        json_array_append_new(
            list, json_pack("{s:i,s:f,s:f,s:f,s:b,s:b,s:b,s:b}", "cores", (int)n->cores,
                            "khz_table", n->khz_table, "khz", n->khz, "khz_before", n->khz_before,
                            "governor_changed", n->governor_changed, "limit_changed",
                            n->limit_changed, "thermal", n->thermal, "contended", n->contended));
    }
    return list;
}

static json_t *teams_json(const struct tun_record *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        json_array_append_new(
            list, json_pack("{s:i,s:i,s:f,s:f,s:o,s:b,s:b}", "stage", (int)t->stage, "group",
                            (int)t->group, "level", t->level, "sigma", t->sigma, "waiting",
                            number(t->waiting), "firm", t->firm, "light", t->light));
    }
    return list;
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
                     tun_cause_name(d->cause), "hold", tun_hold_name(d->hold), "plan",
                     d->replan ? plan_json(p, &d->plan) : json_null(), "gain", number(d->gain));
}

json_t *tun_record_json(const struct tun_record *r, const struct tun_decision *d, const char *model,
                        bool sources)
{
    const struct tun_bounds *b = &r->problem.bounds;
    json_t *slow = json_object();

    for (size_t k = 0; k < r->problem.ep_count; k++) {
        json_object_set_new(slow, r->problem.eps[k].name,
                            numbers(&r->slow[k * r->problem.unit_count], r->problem.unit_count));
    }
    return json_pack(
        "{s:o, s:s, s:{s:f, s:f, s:I, s:I, s:b, s:f}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, "
        "s:f, "
        "s:f, s:f, s:f, s:f, s:b, s:o}",
        "problem", tun_problem_json(&r->problem, model, sources, NULL, NULL), "objective",
        objectives[r->problem.objective], "bounds", "period_max_ns", b->period_max_ns,
        "latency_max_ns", b->latency_max_ns, "stages_max", (json_int_t)b->stages_max, "batch_max",
        (json_int_t)b->batch_max, "one_kind_stages", b->one_ep_stages, "slack", b->slack, "plan",
        plan_json(&r->problem, &r->plan), "home",
        r->home.stage_count > 0 ? plan_json(&r->problem, &r->home) : json_null(), "beta",
        numbers(r->beta, r->problem.unit_count), "slow", slow, "now", eps_json(r), "teams",
        teams_json(r), "events", events_json(r->events), "throttled", r->felt.throttled, "pressure",
        r->felt.pressure, "measured_ns", r->measured_ns, "gain_min", r->gain_min, "gain_urgent",
        r->gain_urgent, "cooldown_left_s", r->cooldown_left_s, "budget_left", r->budget_left,
        "search", r->search, "decided", tun_decided_json(&r->problem, d));
}

/* A list of @count numbers. Return: owned, NULL with the error set. */
static bool read_reals(struct tun_reader *r, const char *where, const json_t *list, size_t count,
                       double *ret)
{
    if (!json_is_array(list) || json_array_size(list) != count) {
        tun_wrong(r, where, "is not a list of %zu numbers", count);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *v = json_array_get(list, i);

        if (!json_is_number(v)) {
            tun_wrong(r, where, "entry %zu is not a number", i);
            return false;
        }
        ret[i] = json_number_value(v);
    }
    return true;
}

static bool flag(struct tun_reader *r, const char *where, const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    if (!json_is_boolean(v)) {
        tun_wrong(r, where, "%s is neither true nor false", key);
    }
    return json_is_true(v);
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

static void read_bounds(struct tun_reader *r, const json_t *json, struct tun_bounds *b)
{
    static const char *const keys[] = {
        "period_max_ns",   "latency_max_ns", "stages_max", "batch_max",
        "one_kind_stages", "slack",          NULL};

    if (tun_read_keys(r, "bounds", json, keys)) {
        b->period_max_ns = tun_read_number(r, "bounds", json, "period_max_ns", 0, LIMIT);
        b->latency_max_ns = tun_read_number(r, "bounds", json, "latency_max_ns", 0, LIMIT);
        b->stages_max = (size_t)tun_read_number(r, "bounds", json, "stages_max", 0, PL_STAGE_MAX);
        b->batch_max = (size_t)tun_read_number(r, "bounds", json, "batch_max", 0, PL_BATCH_MAX);
        b->one_ep_stages = flag(r, "bounds", json, "one_kind_stages");
        b->slack = tun_read_number(r, "bounds", json, "slack", 0, 10);
    }
}

static void read_ep(struct tun_reader *r, const json_t *json, struct tun_ep_now *n)
{
    static const char *const keys[] = {"cores",      "khz_table",        "khz",
                                       "khz_before", "governor_changed", "limit_changed",
                                       "thermal",    "contended",        NULL};

    if (tun_read_keys(r, "now", json, keys)) {
        n->cores = (uint16_t)tun_read_number(r, "now", json, "cores", 0, PL_CPU_MAX);
        n->khz_table = tun_read_number(r, "now", json, "khz_table", 0, 1e9);
        n->khz = tun_read_number(r, "now", json, "khz", 0, 1e9);
        n->khz_before = tun_read_number(r, "now", json, "khz_before", 0, 1e9);
        n->governor_changed = flag(r, "now", json, "governor_changed");
        n->limit_changed = flag(r, "now", json, "limit_changed");
        n->thermal = flag(r, "now", json, "thermal");
        n->contended = flag(r, "now", json, "contended");
    }
}

static void read_team(struct tun_reader *r, const json_t *json, struct tun_team_now *t)
{
    static const char *const keys[] = {"stage",   "group", "level", "sigma",
                                       "waiting", "firm",  "light", NULL};

    if (tun_read_keys(r, "teams", json, keys)) {
        t->stage = (uint16_t)tun_read_number(r, "teams", json, "stage", 0, PL_STAGE_MAX);
        t->group = (uint16_t)tun_read_number(r, "teams", json, "group", 0, PL_GROUP_MAX);
        t->level = tun_read_number(r, "teams", json, "level", -20, 20);
        t->sigma = tun_read_number(r, "teams", json, "sigma", 0, 20);
        t->waiting = json_is_null(json_object_get(json, "waiting"))
                         ? NAN
                         : tun_read_number(r, "teams", json, "waiting", -1, 1);
        t->firm = flag(r, "teams", json, "firm");
        t->light = flag(r, "teams", json, "light");
    }
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
    static const char *const keys[] = {"replan", "cause", "hold", "plan", "gain", NULL};
    const char *causes[TUN_CAUSE_COUNT], *holds[TUN_HOLD_COUNT];

    for (int i = 0; i < TUN_CAUSE_COUNT; i++) {
        causes[i] = tun_cause_name((enum tun_cause)i);
    }
    for (int i = 0; i < TUN_HOLD_COUNT; i++) {
        holds[i] = tun_hold_name((enum tun_hold)i);
    }
    if (!tun_read_keys(r, "decided", json, keys)) {
        return;
    }
    d->replan = flag(r, "decided", json, "replan");
    d->cause = (enum tun_cause)name_of(r, "decided.cause", json_object_get(json, "cause"), causes,
                                       TUN_CAUSE_COUNT);
    d->hold = (enum tun_hold)name_of(r, "decided.hold", json_object_get(json, "hold"), holds,
                                     TUN_HOLD_COUNT);
    d->gain = json_is_null(json_object_get(json, "gain"))
                  ? INFINITY
                  : tun_read_number(r, "decided", json, "gain", -1, LIMIT);
    if (d->replan) {
        read_plan(r, "decided.plan", p, json_object_get(json, "plan"), &d->plan);
    }
}

static void read_lists(struct tun_reader *r, const json_t *json, struct tun_record *ret)
{
    const json_t *now = json_object_get(json, "now"), *teams = json_object_get(json, "teams");
    const json_t *slow = json_object_get(json, "slow"), *happened = json_object_get(json, "events");
    size_t units = ret->problem.unit_count, eps = ret->problem.ep_count;

    read_reals(r, "beta", json_object_get(json, "beta"), units, ret->beta);
    for (size_t k = 0; k < eps; k++) {
        read_reals(r, "slow", json_object_get(slow, ret->problem.eps[k].name), units,
                   &ret->slow[k * units]);
    }
    if (!json_is_array(now) || json_array_size(now) != eps) {
        tun_wrong(r, "now", "is not a list of %zu EPs", eps);
    }
    for (size_t k = 0; !r->error[0] && k < eps; k++) {
        read_ep(r, json_array_get(now, k), &ret->eps[k]);
    }
    for (size_t i = 0; !r->error[0] && i < ret->team_count; i++) {
        read_team(r, json_array_get(teams, i), &ret->teams[i]);
    }
    for (size_t i = 0; !r->error[0] && i < json_array_size(happened); i++) {
        ret->events |= 1u << name_of(r, "events", json_array_get(happened, i), events,
                                     base_array_count(events));
    }
}

static bool make_room(struct tun_reader *r, const json_t *json, struct tun_record *ret)
{
    const json_t *teams = json_object_get(json, "teams");
    size_t units = ret->problem.unit_count;

    if (!json_is_array(teams) || json_array_size(teams) > PL_STAGE_MAX * PL_GROUP_MAX) {
        tun_wrong(r, "teams", "is not a list of teams");
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
    static const char *const keys[] = {"problem",     "objective", "bounds",      "plan",
                                       "home",        "beta",      "slow",        "now",
                                       "teams",       "events",    "throttled",   "pressure",
                                       "measured_ns", "gain_min",  "gain_urgent", "cooldown_left_s",
                                       "budget_left", "search",    "decided",     NULL};

    *ret = TUN_RECORD_NULL;
    *ret_decided = TUN_DECISION_NULL;
    if (!tun_read_keys(r, "", json, keys)) {
        return;
    }
    tun_problem_read(r, json_object_get(json, "problem"), &ret->problem);
    if (r->error[0] || !make_room(r, json, ret)) {
        return;
    }
    ret->problem.objective =
        (enum tun_objective)name_of(r, "objective", json_object_get(json, "objective"), objectives,
                                    base_array_count(objectives));
    read_bounds(r, json_object_get(json, "bounds"), &ret->problem.bounds);
    read_plan(r, "plan", &ret->problem, json_object_get(json, "plan"), &ret->plan);
    if (!json_is_null(json_object_get(json, "home"))) {
        read_plan(r, "home", &ret->problem, json_object_get(json, "home"), &ret->home);
    }
    read_lists(r, json, ret);
    ret->felt.throttled = tun_read_number(r, "", json, "throttled", 0, 1);
    ret->felt.pressure = tun_read_number(r, "", json, "pressure", 0, 1);
    if (json_object_get(json, "measured_ns")) { /* records of earlier versions lack it */
        ret->measured_ns = tun_read_number(r, "", json, "measured_ns", 0, LIMIT);
    }
    ret->gain_min = tun_read_number(r, "", json, "gain_min", 0, 10);
    ret->gain_urgent = tun_read_number(r, "", json, "gain_urgent", 0, 10);
    ret->cooldown_left_s = tun_read_number(r, "", json, "cooldown_left_s", 0, LIMIT);
    ret->budget_left = tun_read_number(r, "", json, "budget_left", 0, LIMIT);
    ret->search = flag(r, "", json, "search");
    read_decided(r, &ret->problem, json_object_get(json, "decided"), ret_decided);
}
