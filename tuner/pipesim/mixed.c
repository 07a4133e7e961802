/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/mixed.h"

#include "tuner/json/mix_json.h"
#include "tuner/pipesim/seats_sim.h"
#include "tuner/solve/solve.h"

#define EPISODE 1000u /* frames of a run that is hard on deadlines */

void psim_mixed_deinit(struct psim_mixed *x)
{
    tun_promise_deinit(&x->plan);
    for (size_t i = 0; i < x->count; i++) {
        psim_case_deinit(&x->cases[i]);
        free(x->cut_most[i]);
    }
}

static const char *name_of(const struct psim_mixed *x, size_t model)
{
    return x->cases[model].network.name;
}

/* ---- the plan ---- */

/* What each model's own best plan reaches if all take turns on all cores. */
static double in_turns(const struct psim_mixed *x)
{
    double ns = 0;

    for (size_t i = 0; i < x->count; i++) {
        struct tun_solution s;

        if (tun_solve(x->wishes[i].p, &s) != 0) {
            return 0;
        }
        ns += x->wishes[i].rate * s.outcome.bottleneck_ns;
    }
    return (double)BASE_NS_PER_S / ns;
}

static void route_text(const struct tun_problem *p, const struct tun_route *r, char *text,
                       size_t size)
{
    size_t first = 0;

    *text = '\0';
    for (size_t s = 0; s < r->stages; s++) {
        base_append(text, size, "%s%zu-%u@%s", s ? "|" : "", first, r->last[s],
                    p->eps[r->ep[s]].name);
        if (r->width > 1) {
            base_append(text, size, "x%u", r->width);
        }
        first = r->last[s] + 1u;
    }
}

static json_t *models_json(const struct psim_mixed *x)
{
    json_t *models = json_array();

    for (size_t i = 0, m = 0; m < x->count; m++) {
        const struct tun_wish *w = &x->wishes[m];
        json_t *routes = json_array(), *model;

        for (; i < x->plan.mix.count && x->plan.mix.dealt[i].model == m; i++) {
            char text[512];

            route_text(w->p, &x->plan.mix.dealt[i].route, text, sizeof(text));
            json_array_append_new(
                routes, json_pack("{s:s,s:f}", "route", text, "share", x->plan.mix.dealt[i].share));
        }
        model = json_pack("{s:s,s:f,s:f,s:f,s:i,s:o}", "model", name_of(x, m), "wished", w->rate,
                          "given", x->plan.mix.given[m] * w->rate, "weight", w->weight, "class",
                          (int)w->class, "routes", routes);
        if (w->deadline_ns > 0) {
            json_object_set_new(model, "deadline_ms", json_real(w->deadline_ns / BASE_NS_PER_MS));
        }
        json_array_append_new(models, model);
    }
    return models;
}

static json_t *plan_json(const struct psim_mixed *x, bool fell_back)
{
    static const char *const OBJECTIVES[] = {"fair", "energy", "soonest", "weighted"};
    const struct tun_problem *first = x->wishes[0].p;
    const struct tun_mix *mix = &x->plan.mix;
    json_t *kinds = json_array();

    for (size_t k = 0; k < first->ep_count; k++) {
        json_array_append_new(kinds, json_pack("{s:s,s:i,s:f,s:f}", "kind", first->eps[k].name,
                                               "cores", (int)first->eps[k].cores, "busy",
                                               mix->busy[k], "limits", mix->limits[k]));
    }
    return json_pack("{s:s,s:b,s:f,s:f,s:f,s:f,s:f,s:o,s:o}", "objective",
                     OBJECTIVES[mix->objective], "fell_back", fell_back, "of_wishes", mix->lambda,
                     "value", mix->value, "bound", mix->bound, "of_bound", tun_mix_of_bound(mix),
                     "in_turns", in_turns(x), "models", models_json(x), "kinds", kinds);
}

/* ---- deadlines ---- */

static bool any_deadline(const struct psim_mixed *x)
{
    bool any = false;

    for (size_t m = 0; m < x->count; m++) {
        any = any || x->wishes[m].deadline_ns > 0;
    }
    return any;
}

static json_t *answer_json(const struct psim_mixed *x)
{
    const struct tun_answer *a = &x->plan.answer;
    json_t *v = json_pack("{s:b,s:f}", "admitted", a->refusal == TUN_ADMITTED, "load", a->load);
    const struct tun_problem *p = x->wishes[0].p;
    size_t ep, seat = a->seat;
    char name[64], core[80], text[TUN_REFUSAL_TEXT_MAX];

    if (a->refusal == TUN_ADMITTED) {
        return v;
    }
    ep = tun_seat_ep(p, &seat);
    snprintf(name, sizeof(name), "%s %zu", p->eps[ep].name, seat + 1);
    snprintf(core, sizeof(core), "core %s", name);
    tun_refusal_text(a, core, name_of(x, a->late), name_of(x, a->model), text);
    json_object_update_new(
        v, json_pack("{s:s,s:s,s:s,s:s,s:s}", "why", tun_refusal_name(a->refusal), "seat", name,
                     "late", name_of(x, a->late), "model", name_of(x, a->model), "text", text));
    if (a->refusal == TUN_TOO_LONG_A_UNIT) {
        json_object_set_new(v, "unit", json_integer((json_int_t)a->unit));
    }
    return v;
}

static json_t *model_of(json_t *v, size_t m)
{
    return json_array_get(json_object_get(v, "models"), m);
}

static void bounds_json(const struct psim_mixed *x, json_t *v)
{
    const double *bound_ns = x->plan.answer.bound_ns;

    for (size_t m = 0; m < x->count; m++) {
        if (bound_ns[m] > 0) {
            json_object_set_new(model_of(v, m), "bound_ms",
                                json_real(bound_ns[m] / BASE_NS_PER_MS));
        }
    }
}

/* ---- the simulation ---- */

/* All models as fast as they can. Return: 0 or -errno. */
static int backlog(const struct psim_mixed *x, const struct psim_options *o, json_t *v)
{
    struct psim_seats run = {.wishes = x->wishes,
                             .lanes = &x->plan.lanes,
                             .models = x->count,
                             .window = PSIM_WINDOW_MAX,
                             .arrivals = PSIM_BACKLOG,
                             .frames = o->simulate};
    struct psim_seen seen = {0};
    double least = INFINITY;
    int r;

    for (size_t m = 0; m < x->count; m++) {
        run.times[m] = 1;
        run.order[m] = m;
        run.weight[m] = x->plan.mix.given[m] * x->wishes[m].rate;
    }
    r = psim_seats_run(&run, &seen);
    for (size_t m = 0; m < x->count; m++) {
        double reached = (double)seen.done_then[m] / (seen.ns / (double)BASE_NS_PER_S),
               given = x->plan.mix.given[m] * x->wishes[m].rate;

        json_object_set_new(model_of(v, m), "reached", json_real(seen.ns > 0 ? reached : 0));
        least = given > 0 ? base_min(least, reached / given) : least;
    }
    json_object_set_new(v, "reached", json_real(isfinite(least) ? least : 0));
    return r;
}

/* All models at the rates that they wish, in runs that are hard on deadlines. */
static int deadlines(const struct psim_mixed *x, const struct psim_options *o, json_t *v)
{
    struct psim_seen seen = {0};
    uint64_t random = o->seed, late = 0, done = 0;
    int r = 0;

    for (uint64_t sent = 0; r == 0 && sent < o->simulate; sent += EPISODE) {
        struct psim_seats run = {.wishes = x->wishes,
                                 .lanes = &x->plan.lanes,
                                 .models = x->count,
                                 .floor = o->floor,
                                 .frames = base_min(o->simulate - sent, (uint64_t)EPISODE)};

        psim_seats_draw(&random, &run);
        r = psim_seats_run(&run, &seen);
    }
    for (size_t m = 0; m < x->count; m++) {
        json_t *model = model_of(v, m);

        late += seen.late[m];
        done += x->wishes[m].deadline_ns > 0 ? seen.done[m] : 0;
        json_object_set_new(model, "worst_ms", json_real(seen.worst_ns[m] / BASE_NS_PER_MS));
        json_object_set_new(model, "late", json_integer((json_int_t)seen.late[m]));
    }
    json_object_set_new(v, "due", json_integer((json_int_t)done));
    json_object_set_new(v, "late", json_integer((json_int_t)late));
    return r;
}

int psim_mixed_json(struct psim_mixed *x, const struct psim_options *o, json_t **ret)
{
    enum tun_share objective = (enum tun_share)o->objective;
    const char *names[TUN_MIX_MAX];
    json_t *v = NULL;
    int r = tun_promise_make(x->wishes, x->count, objective, o->changes, o->floor, &x->plan);

    for (size_t m = 0; m < x->count; m++) {
        names[m] = name_of(x, m);
    }
    if (r == 0) {
        v = plan_json(x, x->plan.mix.objective != objective);
    }
    if (r == 0 && o->front) {
        json_t *front = NULL;

        r = tun_mix_front_json(x->wishes, x->count, o->changes, &front);
        json_object_set_new(v, "front", front);
    }
    if (r == 0 && any_deadline(x)) {
        json_object_set_new(v, "admission", answer_json(x));
        json_object_set_new(v, "cut", tun_cuts_json(&x->plan, names, x->count));
        json_object_set_new(v, "wide", tun_wide_json(&x->plan, x->wishes, names, x->count));
        bounds_json(x, v);
    }
    if (r == 0 && o->simulate) {
        r = backlog(x, o, v);
    }
    if (r == 0 && o->simulate && any_deadline(x)) {
        r = deadlines(x, o, v);
    }
    if (r) {
        json_decref(v);
        return psim_fail("no plan: %s",
                         r == -EINVAL ? "this machine cannot be shared so" : strerror(-r));
    }
    *ret = v;
    return 0;
}
