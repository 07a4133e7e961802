/* SPDX-License-Identifier: Apache-2.0 */
/* Quantise: calibrates an f32 model by examples on a work thread while it serves. If integers are
 * faster and the answers agree, the model is served on integers, now and after every later load,
 * until that is turned off or its file changes. */
#include <math.h>

#include "base/base.h"
#include "base/json_text.h"
#include "daemon/config/state_lock.h"
#include "daemon/control/kept_reply.h"
#include "daemon/control/swap_call.h"
#include "daemon/models/loading.h"
#include "kernels/int8cal/quantise.h"

#define AGREEMENT 0.98

struct quantise {
    struct dmn_swap_call swap; /* without examples: turn it off */
    struct krn_quantise_options options;
    int cpus[PL_EP_MAX];
    const char **keep;  /* owned list; names borrowed from `parameters` */
    json_t *parameters; /* our reference: it holds the names */
    bool wants_ranges;
    struct krn_quantised of; /* its calibration goes to the load */
};

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

static json_t *time_json(double ns)
{
    return ns > 0 ? json_real(ns / 1e6) : json_null();
}

static json_t *outcome(const struct dmn_hot_swap *r)
{
    const struct quantise *q = r->of;
    const struct krn_quantised *of = &q->of;
    const struct mdl_calibration *c = r->load->ranges;

    return json_pack(
        "{s:{s:s, s:b, s:o, s:s, s:I, s:I, s:b, s:I, s:o, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:I, "
        "s:I, s:o, s:o, s:f, s:s}, s:s}",
        "quantised", "model", r->load->name, "serves", c != NULL, "why",
        json_text_shown(r->error > 0 ? r->load->error : ""), "method",
        of->method == KRN_CALIBRATE_KL ? "kl" : "min-max", "calibrated", (json_int_t)of->calibrated,
        "judged", (json_int_t)of->judged, "held_out", of->held_out, "left_out",
        (json_int_t)q->swap.examples->set.left_out, "left_out_first",
        json_text_shown(q->swap.examples->set.note), "zeros", (json_int_t)of->zeros, "agreement",
        of->agreement, "bound", q->options.agreement_min, "error_mean",
        isfinite(of->error_mean) ? json_real(of->error_mean) : json_null(), "error_most",
        isfinite(of->error_most) ? json_real(of->error_most) : json_null(), "f32_ms",
        time_json(of->f32_ns), "int8_ms", time_json(of->int8_ns), "integers",
        (json_int_t)of->integers, "products", (json_int_t)of->products, "kept", kept_json(q, c),
        "ranges", q->wants_ranges && c ? mdl_calibration_json(c) : json_null(), "took_ms",
        (double)of->took_ns / 1e6, "note", "", "model", r->load->name);
}

static void keep_failed(struct dmn_call *c, int error)
{
    dmn_call_error(c, "LoadFailed", "why", dmn_state_why(error));
}

static bool loaded(struct dmn_hot_swap *r)
{
    if (r->error > 0) {
        struct quantise *q = r->of;

        dmn_call_reply(q->swap.call, outcome(r), false);
        return false;
    }
    return true;
}

static void serves(struct dmn_hot_swap *r)
{
    const struct quantise *q = r->of;
    json_t *reply = outcome(r);

    dmn_quantised_keep(
        r->models, r->load->name, r->load->ranges,
        dmn_kept_reply(q->swap.call, reply, json_object_get(reply, "quantised"), keep_failed));
}

static void end(struct dmn_hot_swap *r)
{
    struct quantise *q = r->of;

    krn_quantised_deinit(&q->of);
    dmn_examples_free(q->swap.examples);
    json_decref(q->parameters);
    free(q->keep);
    free(q);
}

/* ---- off ---- */

static bool off_loaded(struct dmn_hot_swap *r)
{
    return true;
}

static void off_serves(struct dmn_hot_swap *r)
{
    const struct quantise *q = r->of;

    dmn_quantised_keep(r->models, r->load->name, NULL,
                       dmn_kept_reply(q->swap.call,
                                      json_pack("{s:n, s:s}", "quantised", "model", r->load->name),
                                      NULL, keep_failed));
}

/* ---- the call ---- */

static bool number(struct dmn_call *c, const char *key, double least, double most, double *ret)
{
    const json_t *value = json_object_get(c->parameters, key);

    if (!json_is_number(value)) {
        return true;
    }
    *ret = json_number_value(value);
    return *ret >= least && *ret <= most;
}

/* Return: the invalid parameter, or NULL. */
static const char *take_options(struct dmn_call *c, const struct dmn_choose *choose,
                                struct quantise *q)
{
    const char *method = json_string_value(json_object_get(c->parameters, "method"));
    json_t *keep = json_object_get(c->parameters, "keep");
    double ms = choose->ms;

    if (method && strcmp(method, "min-max") != 0 && strcmp(method, "kl") != 0) {
        return "method";
    }
    q->options.either = !method;
    q->options.method =
        method && strcmp(method, "kl") == 0 ? KRN_CALIBRATE_KL : KRN_CALIBRATE_MINMAX;
    q->options.symmetric = json_is_true(json_object_get(c->parameters, "symmetric"));
    q->options.agreement_min = AGREEMENT;
    if (!number(c, "agreement", 0, 1, &q->options.agreement_min)) {
        return "agreement";
    }
    if (!number(c, "ms", 0, 600000, &ms)) {
        return "ms";
    }
    q->options.measure_ns = (uint64_t)ms * BASE_NS_PER_MS;
    q->keep = calloc(json_array_size(keep) + 1, sizeof(*q->keep));
    for (size_t i = 0; q->keep && i < json_array_size(keep); i++) {
        q->keep[i] = json_string_value(json_array_get(keep, i));
        if (!q->keep[i]) {
            return "keep";
        }
        q->options.keep_count++;
    }
    q->options.keep = q->keep;
    q->wants_ranges = json_is_true(json_object_get(c->parameters, "ranges"));
    return q->keep ? NULL : "keep";
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
    const char *wrong = take_options(c, &r->load->choose, q);

    if (wrong) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", wrong);
        return false;
    }
    take_cores(&r->load->choose, q);
    q->options.stop = &r->load->choose.stop;
    q->swap.examples = dmn_examples_take(c);
    return q->swap.examples != NULL;
}

void dmn_method_quantise(struct dmn_call *c)
{
    bool off = json_is_true(json_object_get(c->parameters, "off"));
    struct dmn_model *m = dmn_call_model(c, "model");
    struct dmn_hot_swap *r;
    struct quantise *q;

    if (!m) {
        return;
    }
    if (m->model->segment) {
        dmn_call_error(c, "LoadFailed", "why",
                       "a segment cannot be quantised by itself; quantise the whole model");
        return;
    }
    if (m->calibration[0]) {
        dmn_call_error(c, "Busy", "why", "the configuration names the model's calibration");
        return;
    }
    r = dmn_swap_call_new(c, m, DMN_CAUSE_QUANTISE, sizeof(*q));
    if (!r) {
        return;
    }
    r->load->as_is = off;
    r->loaded = off ? off_loaded : loaded;
    r->serves = off ? off_serves : serves;
    q = r->of;
    q->parameters = json_incref(c->parameters);
    r->prepare = off ? NULL : prepare;
    r->end = end;
    if (!off && !take(c, r, q)) {
        dmn_hot_swap_free(r);
        return;
    }
    dmn_hot_swap_begin(r);
}
