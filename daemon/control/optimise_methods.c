/* SPDX-License-Identifier: Apache-2.0 */
/* Optimise: measures a model's primitives again, and serves it with the best choice. */

#include "base/base.h"
#include "daemon/control/swap_call.h"

struct optimise {
    struct dmn_swap_call swap; /* without examples: no bound on accuracy */
    bool front;                /* only report the front */
};

static json_t *chosen_json(const struct krn_chosen *c)
{
    return json_pack("{s:f, s:I, s:I}", "ms", c->ns / 1e6, "packed_bytes",
                     (json_int_t)c->packed_bytes, "inexact", (json_int_t)c->inexact);
}

static json_t *kinds_json(const struct dmn_choose *c)
{
    json_t *list = json_array();

    for (size_t k = 0; c->chosen && k < c->kind_count; k++) {
        json_t *entry = chosen_json(&c->of[c->kinds[k].same]);

        json_object_set_new(entry, "may_lose",
                            json_real(krn_chosen_doubt(&c->of[c->kinds[k].same])));
        json_object_set_new(entry, "ep", json_string(c->kinds[k].name));
        json_object_set_new(entry, "states",
                            json_integer((json_int_t)c->of[c->kinds[k].same].states));
        json_array_append_new(list, entry);
    }
    return list;
}

static json_t *front_json(const struct dmn_choose *c)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->front_count; i++) {
        json_array_append_new(list, chosen_json(&c->front[i]));
    }
    return list;
}

static void reply(struct dmn_hot_swap *r)
{
    const struct dmn_choose *c = &r->load->choose;
    const struct optimise *o = r->of;

    dmn_call_reply(o->swap.call,
                   json_pack("{s:{s:s, s:s, s:s, s:f, s:o, s:s, s:o, s:o}}", "choice", "model",
                             r->load->name, "algorithm", krn_path_name(c->options.path.algorithm),
                             "objective", c->options.objective == KRN_MEMORY ? "memory" : "latency",
                             "took_ms", (double)c->took_ns / 1e6, "agreement",
                             c->examples ? json_real(c->agreement) : json_null(), "note", c->note,
                             "kinds", kinds_json(c), "front", front_json(c)),
                   false);
}

static bool loaded(struct dmn_hot_swap *r)
{
    const struct optimise *o = r->of;

    if (!r->load->choose.chosen) {
        dmn_call_error(o->swap.call, "LoadFailed", "why", r->load->choose.note);
        return false;
    }
    if (o->front) {
        reply(r);
        return false;
    }
    return true;
}

static void end(struct dmn_hot_swap *r)
{
    struct optimise *o = r->of;

    dmn_examples_free(o->swap.examples);
    free(o);
}

static bool take_number(struct dmn_call *c, const char *key, double least, double most, double *ret)
{
    const json_t *value = json_object_get(c->parameters, key);

    if (!json_is_number(value)) {
        return true;
    }
    if (!(json_number_value(value) >= least && json_number_value(value) <= most)) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", key);
        return false;
    }
    *ret = json_number_value(value);
    return true;
}

static bool take_options(struct dmn_call *c, struct dmn_choose *choose)
{
    const char *algorithm = json_string_value(json_object_get(c->parameters, "algorithm"));
    const char *objective = json_string_value(json_object_get(c->parameters, "objective"));
    struct krn_choose_options *o = &choose->options;
    bool judged = json_is_array(json_object_get(c->parameters, "examples"));
    double agreement = 0.99, ms = choose->ms ? choose->ms : 4000, mib = 0, episodes = 0, seed = 1;

    if (algorithm && !krn_path_find(algorithm, &o->path.algorithm)) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", "algorithm");
        return false;
    }
    if (objective && strcmp(objective, "memory") != 0 && strcmp(objective, "latency") != 0) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", "objective");
        return false;
    }
    if (!take_number(c, "ms", 1, 600000, &ms) || !take_number(c, "agreement", 0, 1, &agreement) ||
        !take_number(c, "packed_mib", 0.001, 1e6, &mib) ||
        !take_number(c, "episodes", 1, 1e6, &episodes) || !take_number(c, "seed", 1, 9e15, &seed)) {
        return false;
    }
    o->objective = objective && strcmp(objective, "memory") == 0 ? KRN_MEMORY : KRN_LATENCY;
    o->exact = !judged && !json_is_true(json_object_get(c->parameters, "inexact"));
    o->packed_bytes_max = (size_t)(mib * 1048576);
    o->path.episodes = (size_t)episodes;
    o->path.seed = (uint64_t)seed;
    choose->agreement_min = agreement;
    choose->ms = (unsigned)ms;
    choose->anew = true;
    return true;
}

void dmn_method_optimise(struct dmn_call *c)
{
    struct dmn_model *m = dmn_call_model(c, "model");
    struct dmn_hot_swap *r;
    struct optimise *o;

    if (!m) {
        return;
    }
    if (m->kernels[0]) {
        dmn_call_error(c, "Busy", "why", "the configuration names the model's primitives");
        return;
    }
    r = dmn_swap_call_new(c, m, DMN_CAUSE_OPTIMISE, sizeof(*o));
    if (!r) {
        return;
    }
    o = r->of;
    r->loaded = loaded;
    r->serves = reply;
    r->end = end;
    o->front = json_is_true(json_object_get(c->parameters, "pareto"));
    r->load->choose.wants_front = o->front;
    if (!take_options(c, &r->load->choose)) {
        dmn_hot_swap_free(r);
        return;
    }
    if (json_is_array(json_object_get(c->parameters, "examples"))) {
        o->swap.examples = dmn_examples_take(c);
        if (!o->swap.examples) {
            dmn_hot_swap_free(r);
            return;
        }
        r->load->choose.examples = &o->swap.examples->set;
    }
    dmn_hot_swap_begin(r);
}
