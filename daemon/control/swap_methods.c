/* SPDX-License-Identifier: Apache-2.0 */
/* Optimise and Quantise, and the hot swap that a call waits for.
 *
 * Optimise measures a model's primitives again, and serves it with the best choice. Quantise
 * calibrates an f32 model by examples on a work thread while it serves. If integers are faster and
 * the answers agree, the model is served on integers, now and after every later load, until that is
 * turned off or its file changes. */
#include "base/base.h"
#include "daemon/config/state_file.h"
#include "daemon/control/json.h"
#include "daemon/control/methods.h"
#include "daemon/models/hot_swap.h"
#include "daemon/models/loading.h"
#include "kernels/int8cal/quantise.h"

#define AGREEMENT 0.98
#define FRONT_PROPOSALS 12u

static void failed(struct dmn_hot_swap *r, const struct dmn_outcome *why)
{
    const struct dmn_swap_call *of = r->of;

    dmn_call_refuse(of->call, why);
}

static void end(struct dmn_hot_swap *r)
{
    const struct dmn_swap_call *of = r->of;

    dmn_examples_free(of->examples);
}

struct dmn_hot_swap *dmn_swap_call_new(struct dmn_call *c, struct dmn_model *m,
                                       enum dmn_cause cause, size_t bytes)
{
    struct dmn_outcome why;
    struct dmn_hot_swap *r = dmn_hot_swap_new(m, cause, &why);
    struct dmn_swap_call *of;

    if (!r) {
        dmn_call_refuse(c, &why);
        return NULL;
    }
    r->of = of = calloc(1, bytes);
    if (!of) {
        dmn_hot_swap_free(r);
        dmn_call_error(c, "LoadFailed", "out of memory");
        return NULL;
    }
    of->call = c;
    r->failed = failed;
    r->end = end;
    return r;
}

/* ---- Optimise ---- */

static json_t *chosen_json(const struct krn_chosen *c)
{
    return json_pack("{s:f, s:I, s:I}", "ms", c->ns / 1e6, "packed_bytes",
                     (json_int_t)c->packed_bytes, "inexact", (json_int_t)c->inexact);
}

static json_t *kinds_json(const struct dmn_choose *c)
{
    json_t *list = json_array();

    for (size_t k = 0; c->chosen && k < c->kind_count; k++) {
        const struct krn_chosen *of = &c->of[c->kinds[k].same];
        json_t *entry = chosen_json(of);

        json_object_update_new(entry,
                               json_pack("{s:f, s:s, s:I}", "may_lose", krn_chosen_doubt(of), "ep",
                                         c->kinds[k].name, "states", (json_int_t)of->states));
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

static void optimised(struct dmn_hot_swap *r)
{
    const struct dmn_choose *c = &r->load->choose;
    const struct dmn_swap_call *of = r->of;

    dmn_call_reply(of->call,
                   json_pack("{s:{s:s, s:s, s:s, s:f, s:o, s:s, s:o, s:o}}", "choice", "model",
                             r->load->name, "algorithm", krn_path_name(c->options.path.algorithm),
                             "objective", c->options.objective == KRN_MEMORY ? "memory" : "latency",
                             "took_ms", (double)c->took_ns / 1e6, "agreement",
                             c->examples ? json_real(c->agreement) : json_null(), "note", c->note,
                             "kinds", kinds_json(c), "front", front_json(c)),
                   false);
}

static bool optimise_loaded(struct dmn_hot_swap *r)
{
    const struct dmn_swap_call *of = r->of;

    if (!r->load->choose.chosen) {
        dmn_call_error(of->call, "LoadFailed", "%s", r->load->choose.note);
        return false;
    }
    if (r->load->choose.wants_front) {
        optimised(r);
        return false;
    }
    return true;
}

/* Return: true; false: the call was answered. */
static bool take_choice(struct dmn_call *c, struct dmn_choose *choose)
{
    const char *algorithm = dmn_call_text(c, "algorithm");
    const char *objective = dmn_call_text(c, "objective");
    struct krn_choose_options *o = &choose->options;
    bool judged = json_is_array(json_object_get(c->parameters, "examples"));
    double ms = choose->ms ? choose->ms : 4000, mib = 0, episodes = 0, seed = 1;

    if (algorithm && !krn_path_find(algorithm, &o->path.algorithm)) {
        return dmn_call_invalid(c, "algorithm");
    }
    if (objective && strcmp(objective, "memory") != 0 && strcmp(objective, "latency") != 0) {
        return dmn_call_invalid(c, "objective");
    }
    choose->agreement_min = 0.99;
    if (!dmn_call_number(c, "ms", 1, 600000, &ms) ||
        !dmn_call_number(c, "agreement", 0, 1, &choose->agreement_min) ||
        !dmn_call_number(c, "packed_mib", 0.001, 1e6, &mib) ||
        !dmn_call_number(c, "episodes", 1, 1e6, &episodes) ||
        !dmn_call_number(c, "seed", 1, 9e15, &seed)) {
        return false;
    }
    o->objective = objective && strcmp(objective, "memory") == 0 ? KRN_MEMORY : KRN_LATENCY;
    o->exact = !judged && !dmn_call_asks(c, "inexact");
    o->packed_bytes_max = (size_t)(mib * 1048576);
    o->path.episodes = (size_t)episodes;
    o->path.seed = (uint64_t)seed;
    choose->ms = (unsigned)ms;
    choose->anew = true;
    return true;
}

/* Without examples there is no bound on accuracy. Return: true; false: the call was answered. */
static bool take_judges(struct dmn_call *c, struct dmn_swap_call *of, struct dmn_choose *choose)
{
    if (!json_is_array(json_object_get(c->parameters, "examples"))) {
        return true;
    }
    of->examples = dmn_examples_take(c);
    choose->examples = of->examples ? &of->examples->set : NULL;
    return of->examples != NULL;
}

void dmn_method_optimise(struct dmn_call *c, struct dmn_model *m)
{
    struct dmn_hot_swap *r;

    if (m->kernels[0]) {
        dmn_call_error(c, "Busy", "the configuration names the model's primitives");
        return;
    }
    r = dmn_swap_call_new(c, m, DMN_CAUSE_OPTIMISE, sizeof(struct dmn_swap_call));
    if (!r) {
        return;
    }
    r->loaded = optimise_loaded;
    r->serves = optimised;
    r->load->choose.wants_front = dmn_call_asks(c, "pareto");
    if (take_choice(c, &r->load->choose) && take_judges(c, r->of, &r->load->choose)) {
        dmn_hot_swap_begin(r);
    } else {
        dmn_hot_swap_free(r);
    }
}

/* ---- Quantise ---- */

struct quantise {
    struct dmn_swap_call swap; /* without examples: turn it off */
    struct krn_quantise_options options;
    int cpus[PL_EP_MAX];
    const char **keep;  /* owned list; names borrowed from `parameters` */
    json_t *parameters; /* our reference: it holds the names */
    bool wants_ranges;
    double lost_max;         /* take the fastest of the front that loses no more; < 0: none of it */
    size_t taken;            /* of the front; SIZE_MAX: none */
    struct krn_quantised of; /* its calibration goes to the load */
};

/* Takes a point of the front. Return: as krn_quantise(). */
static int take_point(struct dmn_load *l, struct quantise *q)
{
    struct krn_choose_options *o = &l->choose.options;
    int r;

    if (q->lost_max < 0) {
        snprintf(l->error, sizeof(l->error), "it was only to be listed");
        return KRN_QUANTISE_E_USELESS;
    }
    q->taken = krn_quantised_within(&q->of, q->lost_max);
    if (q->taken == SIZE_MAX) {
        snprintf(l->error, sizeof(l->error),
                 "no choice of the front loses at most %.2f %% of the classes", 100 * q->lost_max);
        return KRN_QUANTISE_E_USELESS;
    }
    o->exact = !q->of.front[q->taken].inexact;
    o->packed_bytes_max = q->of.front[q->taken].packed_bytes_max;
    l->choose.anew = true;
    r = krn_quantised_take(&q->of, q->taken);
    l->as_is = !q->of.calibration;
    return r;
}

/* Work thread. */
static int prepare(struct dmn_hot_swap *r)
{
    struct dmn_load *l = r->load;
    struct quantise *q = r->of;
    struct mdl_load_options load = {.name = l->name,
                                    .weight_bytes_max = l->weight_bytes_max,
                                    .arena_bytes_max = l->arena_bytes_max,
                                    .const_eval = krn_const_eval};
    int error = krn_quantise(l->path, &load, &q->swap.examples->set, &q->options, l->error, &q->of);

    if (error == 0 && q->options.front_max) {
        error = take_point(l, q);
    }
    if (error == 0) {
        l->ranges = base_take(q->of.calibration);
    }
    return error;
}

static json_t *kept_json(const struct quantise *q, const struct mdl_calibration *c)
{
    json_t *list = json_array();

    for (size_t i = 0; c && i < c->keep_count; i++) {
        json_array_append_new(list, json_pack("{s:o, s:s}", "op", json_text_shown(c->keep[i]),
                                              "why", krn_kept_why_name(q->of.why[i])));
    }
    return list;
}

static json_t *points_json(const struct krn_quantised *of)
{
    json_t *list = json_array();

    for (size_t i = 0; i < of->front_count; i++) {
        const struct krn_precision *p = &of->front[i];

        json_array_append_new(
            list, json_pack("{s:f, s:I, s:I, s:f, s:f, s:o, s:I, s:I}", "ms", p->ns / 1e6,
                            "packed_bytes", (json_int_t)p->packed_bytes, "frame_bytes",
                            (json_int_t)p->arena_bytes, "agreement", p->agreement, "expected",
                            p->expected, "error", json_text_number(p->error), "integers",
                            (json_int_t)p->integers, "inexact", (json_int_t)p->inexact_ops));
    }
    return list;
}

static json_t *outcome(const struct dmn_hot_swap *r)
{
    const struct quantise *q = r->of;
    const struct krn_quantised *of = &q->of;
    const struct mdl_calibration *c = r->load->ranges;

    return json_pack(
        "{s:{s:s, s:b, s:o, s:s, s:I, s:I, s:b, s:I, s:o, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:I, "
        "s:I, s:o, s:o, s:f, s:s, s:o, s:o}, s:s}",
        "quantised", "model", r->load->name, "serves", r->error == 0, "why",
        json_text_shown(r->error > 0 ? r->load->error : ""), "method",
        of->method == KRN_CALIBRATE_KL ? "kl" : "min-max", "calibrated", (json_int_t)of->calibrated,
        "judged", (json_int_t)of->judged, "held_out", of->held_out, "left_out",
        (json_int_t)q->swap.examples->set.left_out, "left_out_first",
        json_text_shown(q->swap.examples->set.note), "zeros", (json_int_t)of->zeros, "agreement",
        of->agreement, "bound", q->options.agreement_min, "error_mean",
        json_text_number(of->error_mean), "error_most", json_text_number(of->error_most), "f32_ms",
        dmn_json_positive(of->f32_ns / 1e6), "int8_ms", dmn_json_positive(of->int8_ns / 1e6),
        "integers", (json_int_t)of->integers, "products", (json_int_t)of->products, "kept",
        kept_json(q, c), "ranges", q->wants_ranges && c ? mdl_calibration_json(c) : json_null(),
        "took_ms", (double)of->took_ns / 1e6, "note", "", "front", points_json(of), "taken",
        q->taken < of->front_count ? json_integer((json_int_t)q->taken) : json_null(), "model",
        r->load->name);
}

static void keep_failed(struct dmn_call *c, int error)
{
    dmn_call_error(c, "LoadFailed", "%s", dmn_state_why(error));
}

static bool quantise_loaded(struct dmn_hot_swap *r)
{
    if (r->error > 0) {
        struct quantise *q = r->of;

        dmn_call_reply(q->swap.call, outcome(r), false);
        return false;
    }
    return true;
}

static void quantised(struct dmn_hot_swap *r)
{
    const struct quantise *q = r->of;
    json_t *reply = outcome(r);

    dmn_quantised_keep(
        r->models, r->load->name, r->load->ranges,
        dmn_call_keep(q->swap.call, reply, json_object_get(reply, "quantised"), keep_failed));
}

static void quantise_end(struct dmn_hot_swap *r)
{
    struct quantise *q = r->of;

    krn_quantised_deinit(&q->of);
    json_decref(q->parameters);
    free(q->keep);
    end(r);
}

static void off_serves(struct dmn_hot_swap *r)
{
    const struct quantise *q = r->of;

    dmn_quantised_keep(r->models, r->load->name, NULL,
                       dmn_call_keep(q->swap.call,
                                     json_pack("{s:n, s:s}", "quantised", "model", r->load->name),
                                     NULL, keep_failed));
}

/* Return: true; false: the call was answered. */
static bool take_options(struct dmn_call *c, const struct dmn_choose *choose, struct quantise *q)
{
    const char *method = dmn_call_text(c, "method"), *search = dmn_call_text(c, "algorithm");
    json_t *keep = json_object_get(c->parameters, "keep");
    double ms = choose->ms;

    q->lost_max = -1;
    q->taken = SIZE_MAX;
    if (search && !krn_path_find(search, &q->options.front_search)) {
        return dmn_call_invalid(c, "algorithm");
    }
    if (method && strcmp(method, "min-max") != 0 && strcmp(method, "kl") != 0) {
        return dmn_call_invalid(c, "method");
    }
    q->options.either = !method;
    q->options.method =
        method && strcmp(method, "kl") == 0 ? KRN_CALIBRATE_KL : KRN_CALIBRATE_MINMAX;
    q->options.symmetric = dmn_call_asks(c, "symmetric");
    q->options.agreement_min = AGREEMENT;
    if (!dmn_call_number(c, "agreement", 0, 1, &q->options.agreement_min) ||
        !dmn_call_number(c, "at_most_lost", 0, 1, &q->lost_max) ||
        !dmn_call_number(c, "ms", 0, 600000, &ms)) {
        return false;
    }
    q->options.front_max = dmn_call_asks(c, "front") || q->lost_max >= 0 ? FRONT_PROPOSALS : 0;
    q->options.measure_ns = (uint64_t)ms * BASE_NS_PER_MS;
    q->keep = calloc(json_array_size(keep) + 1, sizeof(*q->keep));
    for (size_t i = 0; q->keep && i < json_array_size(keep); i++) {
        q->keep[i] = json_string_value(json_array_get(keep, i));
        if (!q->keep[i]) {
            return dmn_call_invalid(c, "keep");
        }
        q->options.keep_count++;
    }
    q->options.keep = q->keep;
    q->wants_ranges = dmn_call_asks(c, "ranges");
    return q->keep || dmn_call_invalid(c, "keep");
}

static void take_cores(const struct dmn_choose *choose, struct quantise *q)
{
    for (size_t k = 0; k < choose->kind_count; k++) {
        if (choose->kinds[k].same == k) {
            q->cpus[q->options.cpu_count++] = choose->kinds[k].cpu;
        }
    }
    q->options.cpus = q->cpus;
}

static bool take(struct dmn_call *c, struct dmn_hot_swap *r, struct quantise *q)
{
    if (!take_options(c, &r->load->choose, q)) {
        return false;
    }
    take_cores(&r->load->choose, q);
    q->options.stop = &r->load->choose.stop;
    q->swap.examples = dmn_examples_take(c);
    return q->swap.examples != NULL;
}

void dmn_method_quantise(struct dmn_call *c, struct dmn_model *m)
{
    bool off = dmn_call_asks(c, "off");
    struct dmn_hot_swap *r;
    struct quantise *q;

    if (m->model->segment) {
        dmn_call_error(c, "LoadFailed",
                       "a segment cannot be quantised by itself; quantise the whole model");
        return;
    }
    if (m->calibration[0]) {
        dmn_call_error(c, "Busy", "the configuration names the model's calibration");
        return;
    }
    r = dmn_swap_call_new(c, m, DMN_CAUSE_QUANTISE, sizeof(*q));
    if (!r) {
        return;
    }
    r->load->as_is = off;
    r->loaded = off ? NULL : quantise_loaded;
    r->serves = off ? off_serves : quantised;
    q = r->of;
    q->parameters = json_incref(c->parameters);
    r->prepare = off ? NULL : prepare;
    r->end = quantise_end;
    if (!off && !take(c, r, q)) {
        dmn_hot_swap_free(r);
        return;
    }
    dmn_hot_swap_begin(r);
}
