/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/int8cal/calibrate.h"

#include <math.h>

#include "base/base.h"
#include "kernels/common/nest.h"
#include "kernels/int8cal/runner.h"

#define CHANNELS_MAX 65536u

struct seen { /* of one tensor */
    float low, high;
    float limit; /* of the bins */
};

struct channel { /* of one that a product or a pool reads */
    float low, high;
    double sum, power;
};

/* What examples showed. */
struct record {
    struct seen *seen;        /* [tensor_count], owned, like all that follows */
    uint64_t *bins;           /* [tensor_count][KRN_KL_BINS]; NULL: by extremes */
    struct channel *channels; /* [channel_count] */
};

struct krn_calibrate {
    const struct mdl_model *m; /* borrowed */
    enum krn_calibrate_method method;
    struct krn_runner runner;
    size_t count;        /* examples */
    bool *answer;        /* [tensor_count]: the model's answer depends on it: never clipped */
    size_t *channels_at; /* [tensor_count]: index of its first channel, or MDL_NONE */
    bool *told;          /* [tensor_count]: recorded for this example */
    size_t channel_count;
    struct record known, draft; /* up to the previous example, and with this one */
};

static void record_deinit(struct record *r)
{
    free(r->seen);
    free(r->bins);
    free(r->channels);
}

struct krn_calibrate *krn_calibrate_free(struct krn_calibrate *c)
{
    if (!c) {
        return NULL;
    }
    krn_runner_deinit(&c->runner);
    free(c->answer);
    free(c->channels_at);
    free(c->told);
    record_deinit(&c->known);
    record_deinit(&c->draft);
    free(c);
    return NULL;
}

static void calibrate_freep(struct krn_calibrate **c)
{
    *c = krn_calibrate_free(*c);
}

static bool is_recorded(const struct mdl_model *m, size_t tensor)
{
    const struct mdl_tensor *t = &m->tensors[tensor];

    return t->dtype == MDL_F32 && t->name[0] && mdl_elements(t) > 0 &&
           m->storages[t->storage].home != MDL_HOME_CONST;
}

/* Return: whether there was memory; after find_channels() */
static bool record_init(const struct krn_calibrate *c, struct record *r)
{
    size_t n = c->m->tensor_count;
    bool bins = c->method == KRN_CALIBRATE_KL;

    r->seen = calloc(n + 1, sizeof(*r->seen));
    r->bins = bins ? calloc(n * KRN_KL_BINS + 1, sizeof(*r->bins)) : NULL;
    r->channels = calloc(c->channel_count + 1, sizeof(*r->channels));
    if (!r->seen || (bins && !r->bins) || !r->channels) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        r->seen[i] = (struct seen){.low = INFINITY, .high = -INFINITY};
    }
    for (size_t i = 0; i < c->channel_count; i++) {
        r->channels[i] = (struct channel){.low = INFINITY, .high = -INFINITY};
    }
    return true;
}

static void record_copy(const struct krn_calibrate *c, struct record *to, const struct record *from)
{
    size_t n = c->m->tensor_count;

    memcpy(to->seen, from->seen, n * sizeof(*to->seen));
    memcpy(to->channels, from->channels, c->channel_count * sizeof(*to->channels));
    if (to->bins) {
        memcpy(to->bins, from->bins, n * KRN_KL_BINS * sizeof(*to->bins));
    }
}

static bool is_pool(const struct mdl_op *op)
{
    return op->kind == MDL_OP_MAX_POOL || op->kind == MDL_OP_AVG_POOL;
}

static bool is_product(const struct mdl_op *op)
{
    return op->kind == MDL_OP_CONV || op->kind == MDL_OP_CONV_TRANSPOSE ||
           op->kind == MDL_OP_GEMM || op->kind == MDL_OP_MATMUL;
}

static bool find_channels(struct krn_calibrate *c)
{
    const struct mdl_model *m = c->m;

    c->channels_at = malloc((m->tensor_count + 1) * sizeof(*c->channels_at));
    for (size_t t = 0; c->channels_at && t < m->tensor_count; t++) {
        c->channels_at[t] = MDL_NONE;
    }
    for (size_t i = 0; c->channels_at && i < m->op_count; i++) {
        size_t t = m->ops[i].in[0];

        if ((is_product(&m->ops[i]) || is_pool(&m->ops[i])) && c->channels_at[t] == MDL_NONE &&
            is_recorded(m, t) && m->tensors[t].rank >= 2 && m->tensors[t].dim[1] <= CHANNELS_MAX) {
            c->channels_at[t] = c->channel_count;
            c->channel_count += m->tensors[t].dim[1];
        }
    }
    c->told = calloc(m->tensor_count + 1, sizeof(*c->told));
    return c->channels_at && c->told;
}

/* Marks values from the outputs back to the products that they come from: large numbers decide the
 * class there, so they must not be clipped. */
static bool mark_answer(struct krn_calibrate *c)
{
    const struct mdl_model *m = c->m;

    c->answer = calloc(m->tensor_count + 1, sizeof(*c->answer));
    if (!c->answer) {
        return false;
    }
    for (size_t i = 0; i < m->output_count; i++) {
        c->answer[m->outputs[i].tensor] = true;
    }
    for (size_t i = m->op_count; i-- > 0;) {
        const struct mdl_op *op = &m->ops[i];
        bool answers = false;

        for (size_t k = 0; k < MDL_OP_OUT_MAX; k++) {
            for (size_t t = 0; op->out[k] != MDL_NONE && t < m->tensor_count && !answers; t++) {
                answers = c->answer[t] && m->tensors[t].storage == m->tensors[op->out[k]].storage;
            }
        }
        for (size_t k = 0; answers && !is_product(op) && k < MDL_OP_IN_MAX; k++) {
            if (op->in[k] != MDL_NONE) {
                c->answer[op->in[k]] = true;
            }
        }
        for (size_t k = 0; answers && k < MDL_OP_OUT_MAX; k++) {
            if (op->out[k] != MDL_NONE) {
                c->answer[op->out[k]] = true;
            }
        }
    }
    return true;
}

int krn_calibrate_new(const struct mdl_model *m, enum krn_calibrate_method method,
                      char ret_error[MDL_ERROR_MAX], struct krn_calibrate **ret)
{
    base_cleanup(calibrate_freep) struct krn_calibrate *c = calloc(1, sizeof(*c));
    int r;

    if (!c) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    c->m = m;
    c->method = method;
    r = krn_runner_init(&c->runner, m, NULL, ret_error);
    if (r < 0) {
        return r;
    }
    if (!find_channels(c) || !mark_answer(c) || !record_init(c, &c->known) ||
        !record_init(c, &c->draft)) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    *ret = base_take(c);
    return 0;
}

struct scan {
    const float *x;
    ptrdiff_t step;
    struct seen *to;
    bool finite;
    uint64_t *bins;
};

static void scan_extremes(void *arg, const ptrdiff_t *at, size_t n)
{
    struct scan *s = arg;
    float low = s->to->low, high = s->to->high, nought = 0;

    for (size_t i = 0; i < n; i++) {
        float v = s->x[at[0] + (ptrdiff_t)i * s->step];

        low = v < low ? v : low;
        high = v > high ? v : high;
        nought += v * 0.0f; /* NaN if any number is NaN or infinite */
    }
    s->finite &= nought == 0;
    s->to->low = low;
    s->to->high = high;
}

static void scan_bins(void *arg, const ptrdiff_t *at, size_t n)
{
    struct scan *s = arg;
    float factor = (float)KRN_KL_BINS / s->to->limit;

    for (size_t i = 0; i < n; i++) {
        float v = fabsf(s->x[at[0] + (ptrdiff_t)i * s->step]);
        size_t bin = (size_t)(v * factor);

        s->bins[base_min(bin, (size_t)KRN_KL_BINS - 1)] += v > 0; /* 0 costs nothing */
    }
}

/* Adds tensor @t to the draft. Return: false for NaN or infinity. */
static bool record_tensor(struct krn_calibrate *c, size_t t, const struct krn_mem *mem)
{
    const struct mdl_tensor *tensor = &c->m->tensors[t];
    struct scan s = {.to = &c->draft.seen[t], .finite = true};
    struct krn_nest nest;
    float most;

    if (!is_recorded(c->m, t) ||
        !krn_nest_of((const struct mdl_tensor *const[]){tensor}, 1, &nest)) {
        return true;
    }
    s.x = krn_tensor_ptr(c->m, t, mem);
    s.step = krn_nest_inner(&nest, 0);
    krn_nest_run(&nest, 0, 1, scan_extremes, &s);
    if (!s.finite) {
        return false;
    }
    most = base_max(-s.to->low, s.to->high);
    if (c->method == KRN_CALIBRATE_KL && most > 0) {
        s.bins = c->draft.bins + t * KRN_KL_BINS;
        krn_kl_widen(s.bins, &s.to->limit, most);
        krn_nest_run(&nest, 0, 1, scan_bins, &s);
    }
    return true;
}

struct channel_scan {
    const float *x;
    ptrdiff_t step, channel_step;
    size_t count;
    struct channel *to;
};

static void scan_channels(void *arg, const ptrdiff_t *at, size_t n)
{
    const struct channel_scan *s = arg;

    for (size_t i = 0; i < n; i++) {
        const float *x = s->x + at[0] + (ptrdiff_t)i * s->step;

        for (size_t k = 0; k < s->count; k++) {
            float v = x[(ptrdiff_t)k * s->channel_step];

            s->to[k].low = v < s->to[k].low ? v : s->to[k].low;
            s->to[k].high = v > s->to[k].high ? v : s->to[k].high;
            s->to[k].sum += (double)v;
            s->to[k].power += (double)v * (double)v;
        }
    }
}

/* Adds the channels of tensor @t, already computed, to the draft. */
static void record_channels(struct krn_calibrate *c, size_t t, const struct krn_mem *mem)
{
    struct mdl_tensor one = c->m->tensors[t]; /* its first channel */
    struct channel_scan s = {.x = krn_tensor_ptr(c->m, t, mem),
                             .channel_step = one.stride[1],
                             .count = one.dim[1],
                             .to = c->draft.channels + c->channels_at[t]};
    struct krn_nest nest;

    one.dim[1] = 1;
    if (krn_nest_of((const struct mdl_tensor *const[]){&one}, 1, &nest)) {
        s.step = krn_nest_inner(&nest, 0);
        krn_nest_run(&nest, 0, 1, scan_channels, &s);
    }
}

static int run(struct krn_calibrate *c, const struct krn_mem *mem, char *error)
{
    const struct mdl_model *m = c->m;
    struct krn_exec exec = {.width = 1, .scratch = c->runner.scratch};
    bool finite;

    record_copy(c, &c->draft, &c->known);
    finite = record_tensor(c, m->inputs[0].tensor, mem);
    if (!finite) {
        snprintf(error, MDL_ERROR_MAX, "the input holds NaN or infinity");
        return -EINVAL;
    }
    memset(c->told, 0, m->tensor_count * sizeof(*c->told));
    for (size_t i = 0; i < m->op_count; i++) {
        size_t x = m->ops[i].in[0];

        if (x != MDL_NONE && c->channels_at[x] != MDL_NONE && !c->told[x]) {
            c->told[x] = true;
            record_channels(c, x, mem);
        }
        krn_net_run_ops(c->runner.net, i, i, mem, &exec);
        for (size_t k = 0; k < MDL_OP_OUT_MAX; k++) {
            finite &= m->ops[i].out[k] == MDL_NONE || record_tensor(c, m->ops[i].out[k], mem);
        }
        if (!finite) {
            snprintf(error, MDL_ERROR_MAX, "'%.200s' gives NaN or infinity for this input",
                     m->ops[i].name);
            return -EINVAL;
        }
    }
    record_copy(c, &c->known, &c->draft);
    c->count++;
    return 0;
}

int krn_calibrate_tensor(struct krn_calibrate *c, const void *data, size_t bytes,
                         char ret_error[MDL_ERROR_MAX])
{
    const struct krn_mem mem = {
        .arena = c->runner.arena, .inputs = &data, .outputs = (void *const *)c->runner.outputs};

    if (bytes != c->m->inputs[0].bytes) {
        snprintf(ret_error, MDL_ERROR_MAX, "%zu bytes where the model's input has %zu", bytes,
                 c->m->inputs[0].bytes);
        return -EINVAL;
    }
    return run(c, &mem, ret_error);
}

static int add_range(const struct krn_calibrate *c, size_t t, bool clips,
                     struct mdl_calibration *out)
{
    struct seen s = c->known.seen[t];
    struct mdl_range *r = &out->ranges[out->range_count];

    if (!(s.low <= s.high)) {
        return 0; /* never written */
    }
    if (clips && s.limit > 0 && !c->answer[t]) {
        float limit = krn_kl_limit(c->known.bins + t * KRN_KL_BINS, s.limit);

        s.low = base_max(s.low, -limit);
        s.high = base_min(s.high, limit);
    }
    *r = (struct mdl_range){.name = strdup(c->m->tensors[t].name), .low = s.low, .high = s.high};
    if (!r->name) {
        return -ENOMEM;
    }
    out->range_count++;
    return 0;
}

static int add_channels(const struct krn_calibrate *c, size_t t, struct mdl_calibration *out)
{
    const struct channel *of = c->known.channels + c->channels_at[t];
    struct mdl_channels *to = &out->channels[out->channels_count];
    const struct mdl_tensor *x = &c->m->tensors[t];
    size_t n = x->dim[1];
    double each = (double)c->count * (double)mdl_elements(x) / (double)n;

    if (!(of->low <= of->high)) {
        return 0; /* never read */
    }
    out->channels_count++;
    *to = (struct mdl_channels){.name = strdup(x->name),
                                .count = n,
                                .low = malloc(n * sizeof(float)),
                                .high = malloc(n * sizeof(float)),
                                .mean = malloc(n * sizeof(float)),
                                .power = malloc(n * sizeof(float))};
    if (!to->name || !to->low || !to->high || !to->mean || !to->power) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        to->low[i] = of[i].low;
        to->high[i] = of[i].high;
        to->mean[i] = (float)(of[i].sum / each);
        to->power[i] = (float)base_min(of[i].power / each, 3e38);
    }
    return 0;
}

int krn_calibrate_finish(struct krn_calibrate *c, enum krn_calibrate_method method, bool symmetric,
                         size_t *ret_zeros, struct mdl_calibration **ret)
{
    struct mdl_calibration *out;
    int r = 0;

    if (c->count == 0) {
        return -ENOENT;
    }
    out = calloc(1, sizeof(*out));
    if (!out) {
        return -ENOMEM;
    }
    out->symmetric = symmetric;
    snprintf(out->hash, sizeof(out->hash), "%s", c->m->hash);
    out->ranges = calloc(c->m->tensor_count + 1, sizeof(*out->ranges));
    out->channels = calloc(c->m->tensor_count + 1, sizeof(*out->channels));
    r = out->ranges && out->channels ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < c->m->tensor_count; i++) {
        r = is_recorded(c->m, i) ? add_range(c, i, c->known.bins && method == KRN_CALIBRATE_KL, out)
                                 : 0;
        r = r == 0 && c->channels_at[i] != MDL_NONE ? add_channels(c, i, out) : r;
    }
    if (r < 0) {
        mdl_calibration_free(out);
        return r;
    }
    mdl_calibration_sort(out);
    *ret_zeros = 0;
    for (size_t i = 0; i < out->range_count; i++) {
        *ret_zeros += out->ranges[i].low == 0 && out->ranges[i].high == 0;
    }
    *ret = out;
    return 0;
}
