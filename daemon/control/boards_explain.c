/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/boards_explain.h"

#include "base/base.h"
#include "daemon/boards/route_fill.h"

static json_t *positive(double x, double scale)
{
    return x > 0 && isfinite(x) ? json_real(x * scale) : json_null();
}

/* ---- the front ---- */

static json_t *point_json(const struct dmn_spread_query *q, const struct dmn_spread_front *f,
                          size_t i)
{
    const struct tun_outcome *o = &f->solution[i].outcome;
    char plan[PL_PLAN_TEXT_MAX], route[DMN_ROUTE_TEXT_MAX];

    if (dmn_spread_front_texts(f, i, &q->report, plan, route) < 0) {
        return NULL;
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "plan", plan, "route",
                     route[0] ? json_string(route) : json_null(), "fps",
                     positive(1 / o->bottleneck_ns, 1e9), "bottleneck_ms",
                     positive(o->bottleneck_ns, 1e-6), "latency_ms", positive(o->latency_ns, 1e-6),
                     "most_memory_bytes", positive(o->most_memory_bytes, 1), "most_energy_mj",
                     positive(o->most_energy_nj, 1e-6));
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

/* ---- explain ---- */

static json_t *figures_json(const struct dmn_figures *f, const char *limit)
{
    return f->possible
               ? json_pack("{s:o, s:o, s:o, s:o}", "fps", positive(1 / f->bottleneck_ns, 1e9),
                           "bottleneck_ms", positive(f->bottleneck_ns, 1e-6), "latency_ms",
                           positive(f->latency_ns, 1e-6), "limit",
                           limit && *limit ? json_string(limit) : json_null())
               : json_null();
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
    json_t *best = figures_json(&e->best.figures, e->best.limit);
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
    json_t *hops = json_object_get(route, "hops"), *hop;
    int r = e ? dmn_spread_explain(q, e) : -ENOMEM;
    size_t i;

    if (r < 0) {
        return r;
    }
    json_array_foreach(hops, i, hop)
    {
        json_object_set_new(hop, "predicted_ms",
                            i < BRD_HOPS_MAX ? positive(e->present.hop_ns[i], 1e-6) : json_null());
    }
    json_object_set_new(route, "predicted", figures_json(&e->present.figures, e->present.limit));
    json_object_set_new(route, "best", best_json(q, e));
    json_object_set_new(route, "alone", figures_json(&e->answer.alone, NULL));
    json_object_set_new(route, "verdict", verdict_json(q, e, fixed));
    json_object_set_new(route, "left_out", left_out_json(q, e));
    json_object_set_new(route, "input_bytes", json_real(q->here.boards.input_bytes));
    json_object_set_new(route, "guessed_links", json_integer((json_int_t)e->guessed_links));
    return 0;
}
