/* SPDX-License-Identifier: Apache-2.0 */
/* A decision with all its inputs as JSON: enough to make it again without hardware. */
#include <math.h>
#include <stdio.h>

#include "base.h"
#include "daemon/adapt_private.h"

/* JSON has no infinity and no NAN. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *numbers(const double *x, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(list, number(x[i]));
    }
    return list;
}

static json_t *slow_json(const struct tun_problem *p, const double *slow)
{
    json_t *kinds = json_object();

    for (size_t k = 0; k < p->kind_count; k++) {
        json_object_set_new(kinds, p->kinds[k].name,
                            numbers(&slow[k * p->unit_count], p->unit_count));
    }
    return kinds;
}

static json_t *now_json(const struct tun_record *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->problem.kind_count; i++) {
        const struct tun_kind_now *k = &r->kinds[i];

        json_array_append_new(
            list, json_pack("{s:i, s:f, s:f, s:f, s:b, s:b, s:b, s:b}", "cores", (int)k->cores,
                            "khz_table", k->khz_table, "khz", k->khz, "khz_before", k->khz_before,
                            "governor_changed", k->governor_changed, "limit_changed",
                            k->limit_changed, "thermal", k->thermal, "contended", k->contended));
    }
    return list;
}

static json_t *teams_json(const struct tun_record *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < r->team_count; i++) {
        const struct tun_team_now *t = &r->teams[i];

        json_array_append_new(
            list, json_pack("{s:i, s:i, s:f, s:f, s:o, s:b, s:b}", "stage", (int)t->stage, "group",
                            (int)t->group, "level", t->level, "sigma", t->sigma, "waiting",
                            number(t->waiting), "firm", t->firm, "light", t->light));
    }
    return list;
}

static json_t *events_json(unsigned events)
{
    static const char *const names[] = {"hotplug", "cpuset", "power", "button", "input", "probe"};
    json_t *list = json_array();

    for (size_t i = 0; i < base_array_count(names); i++) {
        if (events >> i & 1) {
            json_array_append_new(list, json_string(names[i]));
        }
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

static json_t *decided_json(const struct tun_record *r, const struct tun_decision *d)
{
    return json_pack("{s:b, s:s, s:s, s:o, s:o}", "replan", d->replan, "cause",
                     tun_cause_name(d->cause), "hold", tun_hold_name(d->hold), "plan",
                     d->replan ? plan_json(&r->problem, &d->plan) : json_null(), "gain",
                     number(d->gain));
}

json_t *dmn_adapt_record_json(const struct tun_record *r, const struct tun_decision *d)
{
    const struct tun_bounds *b = &r->problem.bounds;

    return json_pack(
        "{s:o, s:s, s:{s:f, s:f, s:I, s:b, s:f}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:f, s:f, "
        "s:f, s:f, s:f, s:o}",
        "problem", dmn_problem_json(&r->problem, NULL, "decision"), "objective",
        dmn_objective_name(r->problem.objective), "bounds", "period_max_ns", b->period_max_ns,
        "latency_max_ns", b->latency_max_ns, "stages_max", (json_int_t)b->stages_max,
        "one_kind_stages", b->one_kind_stages, "slack", b->slack, "plan",
        plan_json(&r->problem, &r->plan), "home",
        r->home.stage_count > 0 ? plan_json(&r->problem, &r->home) : json_null(), "beta",
        numbers(r->beta, r->problem.unit_count), "slow", slow_json(&r->problem, r->slow), "now",
        now_json(r), "teams", teams_json(r), "events", events_json(r->events), "throttled",
        r->throttled, "pressure", r->pressure, "gain_min", r->gain_min, "gain_urgent",
        r->gain_urgent, "cooldown_left_s", r->cooldown_left_s, "budget_left", r->budget_left,
        "decided", decided_json(r, d));
}
