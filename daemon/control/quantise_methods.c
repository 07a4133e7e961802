/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantise: an f32 model is calibrated by examples on a work thread while it serves; where integers
 * pay and the answers agree it is served by them, now and after every load to come, until it is
 * turned off or its file is another.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/control/example_files.h"
#include "daemon/quantised.h"
#include "daemon/remake.h"
#include "kernels/int8cal/quantise.h"

#define AGREEMENT 0.98

struct quantise {
    struct dmn_examples *examples; /* owned; NULL: off */
    struct krn_quantise_options options;
    int cpus[PL_EP_MAX];
    const char **keep;  /* owned list, its names borrowed from the call's parameters */
    json_t *parameters; /* a reference of ours: the names live in it */
    bool wants_ranges;
    struct krn_quantised of; /* its calibration goes to the load */
};

/* Work thread. */
static int prepare(struct dmn_remake *r)
{
    struct dmn_load *l = r->load;
    struct quantise *q = r->of;
    struct mdl_load_options load = {.name = l->name,
                                    .weight_bytes_max = l->weight_bytes_max,
                                    .arena_bytes_max = l->arena_bytes_max,
                                    .const_eval = krn_const_eval};
    int error = krn_quantise(l->path, &load, &q->examples->set, &q->options, l->error, &q->of);

    if (error == 0) {
        l->ranges = base_take(q->of.calibration);
    }
    return error;
}

/* Names come from files; what is no UTF-8 must not cost the reply. */
static json_t *text_json(const char *text)
{
    json_t *s = json_string(text);

    return s ? s : json_string("(unprintable)");
}

static json_t *kept_json(const struct quantise *q, const struct mdl_calibration *c)
{
    json_t *list = json_array();

    for (size_t i = 0; c && i < c->keep_count; i++) {
        json_array_append_new(list, json_pack("{s:o, s:s}", "op", text_json(c->keep[i]), "why",
                                              krn_kept_why_name(q->of.why[i])));
    }
    return list;
}

static json_t *time_json(double ns)
{
    return ns > 0 ? json_real(ns / 1e6) : json_null();
}

static json_t *outcome(const struct dmn_remake *r, const char *note)
{
    const struct quantise *q = r->of;
    const struct krn_quantised *of = &q->of;
    const struct mdl_calibration *c = r->load->ranges;

    return json_pack(
        "{s:{s:s, s:b, s:o, s:s, s:I, s:I, s:b, s:I, s:o, s:I, s:f, s:f, s:o, s:o, s:o, s:o, s:I, "
        "s:I, s:o, s:o, s:f, s:s}, s:s}",
        "quantised", "model", r->load->name, "serves", c != NULL, "why",
        text_json(r->error > 0 ? r->load->error : ""), "method",
        of->method == KRN_CALIBRATE_KL ? "kl" : "min-max", "calibrated", (json_int_t)of->calibrated,
        "judged", (json_int_t)of->judged, "held_out", of->held_out, "left_out",
        (json_int_t)q->examples->set.left_out, "left_out_first", text_json(q->examples->set.note),
        "zeros", (json_int_t)of->zeros, "agreement", of->agreement, "bound",
        q->options.agreement_min, "error_mean",
        isfinite(of->error_mean) ? json_real(of->error_mean) : json_null(), "error_most",
        isfinite(of->error_most) ? json_real(of->error_most) : json_null(), "f32_ms",
        time_json(of->f32_ns), "int8_ms", time_json(of->int8_ns), "integers",
        (json_int_t)of->integers, "products", (json_int_t)of->products, "kept", kept_json(q, c),
        "ranges", q->wants_ranges && c ? mdl_calibration_json(c) : json_null(), "took_ms",
        (double)of->took_ns / 1e6, "note", note, "model", r->load->name);
}

static bool loaded(struct dmn_remake *r)
{
    if (r->error > 0) {
        dmn_remake_reply(r, outcome(r, ""));
        return false;
    }
    return true;
}

static void serves(struct dmn_remake *r)
{
    int error = dmn_quantised_keep(r->daemon, r->load->name, r->load->ranges);
    char note[256] = "";

    if (error) {
        snprintf(note, sizeof(note), "a restart forgets it: %s",
                 error == -ENOENT ? "there is no state folder" : strerror(-error));
    }
    dmn_remake_reply(r, outcome(r, note));
}

static void end(struct dmn_remake *r)
{
    struct quantise *q = r->of;

    krn_quantised_deinit(&q->of);
    dmn_examples_free(q->examples);
    json_decref(q->parameters);
    free(q->keep);
    free(q);
}

/* ---- off ---- */

static bool off_loaded(struct dmn_remake *r)
{
    return true;
}

static void off_serves(struct dmn_remake *r)
{
    int error = dmn_quantised_keep(r->daemon, r->load->name, NULL);

    if (error < 0 && error != -ENOENT) {
        dmn_remake_fail(r, "LoadFailed", strerror(-error));
    } else {
        dmn_remake_reply(r, json_pack("{s:n, s:s}", "quantised", "model", r->load->name));
    }
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

/* Return: the parameter that is wrong, or NULL. */
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

static bool take(struct dmn_call *c, struct dmn_remake *r, struct quantise *q)
{
    const char *wrong = take_options(c, &r->load->choose, q);

    if (wrong) {
        dmn_call_error(c, "org.varlink.service.InvalidParameter", "parameter", wrong);
        return false;
    }
    take_cores(&r->load->choose, q);
    q->options.stop = &r->load->choose.stop;
    q->examples = dmn_examples_take(c);
    return q->examples != NULL;
}

void dmn_method_quantise(struct dmn_call *c)
{
    bool off = json_is_true(json_object_get(c->parameters, "off"));
    struct dmn_model *m = dmn_call_model(c, "model");
    struct dmn_remake *r;
    struct quantise *q;

    if (!m) {
        return;
    }
    if (m->calibration[0]) {
        dmn_call_error(c, "Busy", "why", "the configuration names the model's calibration");
        return;
    }
    r = dmn_remake_new(c, m, "quantise");
    if (!r) {
        return;
    }
    r->load->as_is = off;
    r->loaded = off ? off_loaded : loaded;
    r->serves = off ? off_serves : serves;
    if (off) {
        dmn_remake_begin(r, c);
        return;
    }
    q = calloc(1, sizeof(*q));
    if (!q) {
        dmn_remake_free(r);
        dmn_call_error(c, "LoadFailed", "why", "out of memory");
        return;
    }
    q->parameters = json_incref(c->parameters);
    r->of = q;
    r->prepare = prepare;
    r->end = end;
    if (!take(c, r, q)) {
        dmn_remake_free(r);
        return;
    }
    dmn_remake_begin(r, c);
}
