/* SPDX-License-Identifier: Apache-2.0 */
/* Networks as a described machine sees them: arithmetic, bytes and borders of every unit. */

#include "base/base.h"
#include "model/op_bytes.h"
#include "tuner/pipesim/described.h"
#include "tuner/predict.h"

static bool is_conv(const struct mdl_op *op)
{
    return op->kind == MDL_OP_CONV || op->kind == MDL_OP_CONV_TRANSPOSE;
}

static bool is_fc(const struct mdl_op *op)
{
    return op->kind == MDL_OP_GEMM || op->kind == MDL_OP_MATMUL || op->kind == MDL_OP_ATTENTION ||
           op->kind == MDL_OP_RECURRENT;
}

static bool is_pool(const struct mdl_op *op)
{
    return op->kind == MDL_OP_MAX_POOL || op->kind == MDL_OP_AVG_POOL;
}

static const struct mdl_tensor *tensor_of(const struct mdl_model *m, size_t index)
{
    return index == MDL_NONE ? NULL : &m->tensors[index];
}

/* Bytes of the arena in use from operator @first on that operator @last still needs. */
static double live(const struct mdl_model *m, size_t first, size_t last)
{
    double bytes = 0;

    for (size_t i = 0; i < m->storage_count; i++) {
        const struct mdl_storage *s = &m->storages[i];

        if (s->home == MDL_HOME_ARENA && s->first_op <= first && s->last_op >= last) {
            bytes += (double)s->bytes;
        }
    }
    return bytes;
}

/* What a light operator computes: its window, or once, for each value it writes. */
static double light_work(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *y = tensor_of(m, op->out[0]);

    return (y ? (double)mdl_elements(y) : 0) *
           (is_pool(op) ? (double)mdl_window_taps(&op->attr.pool.window) : 1);
}

/* Pipe-search eq. 1 (H W C R S K of the input) and 2 (H W C F); a pool counts its input. */
static double layer_weight(const struct mdl_model *m, const struct mdl_op *op)
{
    const struct mdl_tensor *x = tensor_of(m, op->in[0]), *y = tensor_of(m, op->out[0]);

    if (is_conv(op)) {
        return (double)mdl_elements(x) * (double)mdl_window_taps(&op->attr.conv.window) *
               (double)y->dim[1] / (double)op->attr.conv.groups;
    }
    return is_fc(op) ? op->macs : is_pool(op) ? (double)mdl_elements(x) : 0;
}

static enum psim_layer layer_of(const struct mdl_model *m, const struct mdl_op *op)
{
    if (is_conv(op)) {
        size_t channels = m->tensors[op->in[0]].dim[1];

        return op->attr.conv.groups > 1 && op->attr.conv.groups == channels ? PSIM_DEPTHWISE
                                                                            : PSIM_CONV;
    }
    return is_fc(op) ? PSIM_FC : PSIM_OTHER;
}

/* The matrices of the heavy operator; left 0 where it has none. */
static void set_gemm(const struct mdl_model *m, const struct mdl_op *op, struct tun_unit *u)
{
    const struct mdl_tensor *x = tensor_of(m, op->in[0]), *y = tensor_of(m, op->out[0]);

    if (is_conv(op)) {
        const struct mdl_window *w = &op->attr.conv.window;
        /* a transposed convolution is a product over its input's pixels; outer dimensions of 3-D
         * ones count as more rows */
        const struct mdl_tensor *image = op->kind == MDL_OP_CONV ? y : x;
        size_t rows = 1, taps = 1, inner = w->rank - 1;

        for (size_t i = 0; i < inner; i++) {
            rows *= image->dim[2 + i];
            taps *= w->kernel[i];
        }
        tun_gemm_of_conv(rows, image->dim[2 + inner], taps, w->kernel[inner],
                         x->dim[1] / op->attr.conv.groups, y->dim[1], &u->gemm_n, &u->gemm_k,
                         &u->gemm_m);
        u->layer = tun_layer_of_conv(mdl_window_taps(w), mdl_window_strided(w),
                                     layer_of(m, op) == PSIM_DEPTHWISE);
    } else if (is_fc(op)) {
        u->gemm_m = y->rank > 0 ? (double)y->dim[y->rank - 1] : 1;
        u->gemm_n = (double)mdl_elements(y) / fmax(u->gemm_m, 1);
        u->gemm_k = op->macs / fmax(u->gemm_n * u->gemm_m, 1);
    }
}

/* @heavy: the operator that the unit is named after. */
static void set_unit(const struct mdl_model *m, size_t first, size_t last, size_t heavy,
                     struct psim_unit *u)
{
    const struct mdl_op *op = &m->ops[heavy];
    double light = 0;

    *u = (struct psim_unit){.layer = layer_of(m, op)};
    snprintf(u->name, sizeof(u->name), "%.63s", op->name ? op->name : "");
    for (size_t k = first; k <= last; k++) {
        u->macs += m->ops[k].macs;
        u->bytes += mdl_op_bytes(m, &m->ops[k], false) + mdl_op_bytes(m, &m->ops[k], true);
        u->of.weight += layer_weight(m, &m->ops[k]);
        light += light_work(m, &m->ops[k]);
        u->of.weight_bytes += mdl_op_bytes(m, &m->ops[k], true);
        u->of.arena_bytes = fmax(u->of.arena_bytes, live(m, k, k));
    }
    if (u->layer == PSIM_OTHER) {
        u->macs = light;
    }
    if (u->of.weight <= 0) {
        u->of.weight = fmax(light, 1);
    }
    u->of.in_bytes = first > 0 ? live(m, first - 1, first) : 0;
    set_gemm(m, op, &u->of);
}

static int take_units(const struct mdl_model *m, struct psim_network *n)
{
    n->units = calloc(m->unit_count, sizeof(*n->units));
    if (!n->units) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->unit_count; i++) {
        const struct mdl_unit *u = &m->units[i];

        set_unit(m, u->first_op, u->last_op, u->heavy_op, &n->units[i]);
        n->units[i].of.weight = u->weight;
    }
    n->unit_count = m->unit_count;
    return 0;
}

/* As the papers count; what lies between two layers goes with the one before it. */
static int take_layers(const struct mdl_model *m, struct psim_network *n)
{
    size_t first = 0, heavy = MDL_NONE;

    n->units = calloc(m->op_count, sizeof(*n->units));
    if (!n->units) {
        return -ENOMEM;
    }
    for (size_t k = 0; k < m->op_count; k++) {
        if (!is_conv(&m->ops[k]) && !is_fc(&m->ops[k]) && !is_pool(&m->ops[k])) {
            continue;
        }
        if (heavy != MDL_NONE) {
            set_unit(m, first, k - 1, heavy, &n->units[n->unit_count++]);
            first = k;
        }
        heavy = k;
    }
    set_unit(m, first, m->op_count - 1, heavy == MDL_NONE ? 0 : heavy, &n->units[n->unit_count++]);
    return 0;
}

/* One step of an operator's epilogue: reads and writes the result once. */
static void add_light(const struct mdl_model *m, size_t op, const char *what,
                      struct psim_network *n)
{
    const struct mdl_tensor *y = tensor_of(m, m->ops[op].out[0]);
    struct psim_unit *u = &n->units[n->unit_count++];

    *u = (struct psim_unit){.layer = PSIM_OTHER, .light = true, .of.arena_bytes = live(m, op, op)};
    snprintf(u->name, sizeof(u->name), "%.50s.%s", m->ops[op].name ? m->ops[op].name : "", what);
    u->macs = (double)mdl_elements(y);
    u->of.weight = u->macs;
    u->bytes = 2 * (double)(mdl_elements(y) * mdl_dtype_bytes(y->dtype));
    u->of.in_bytes = live(m, op, op + 1); /* the result, and what else lives on */
}

static int take_nodes(const struct mdl_model *m, struct psim_network *n)
{
    n->units = calloc(4 * m->op_count, sizeof(*n->units));
    if (!n->units) {
        return -ENOMEM;
    }
    for (size_t k = 0; k < m->op_count; k++) {
        const struct mdl_op *op = &m->ops[k];

        set_unit(m, k, k, k, &n->units[n->unit_count++]);
        if (op->scale && is_conv(op)) {
            add_light(m, k, "norm", n);
        }
        if (op->residual != MDL_RESIDUAL_NONE) {
            add_light(m, k, "add", n);
        }
        if (op->act != MDL_ACT_NONE) {
            add_light(m, k, "act", n);
        }
    }
    return 0;
}

/* The bytes of one frame's inputs, or of its answer. */
static double frame_bytes(const struct mdl_model *m, enum mdl_home home)
{
    double bytes = 0;

    for (size_t i = 0; i < m->storage_count; i++) {
        bytes += m->storages[i].home == home ? (double)m->storages[i].bytes : 0;
    }
    return bytes;
}

int psim_network_load(const char *name, enum psim_counted counted, char ret_error[PSIM_ERROR_MAX],
                      struct psim_network *ret)
{
    static int (*const take[])(const struct mdl_model *m, struct psim_network *n) = {
        [PSIM_UNITS] = take_units, [PSIM_LAYERS] = take_layers, [PSIM_NODES] = take_nodes};
    char path[PSIM_PATH_MAX], why[MDL_ERROR_MAX] = "";
    struct mdl_model *m = NULL;
    struct psim_network n = {0};
    int error;

    error = psim_find(&psim_networks, name, ret_error, path);
    if (error) {
        return error;
    }
    error = mdl_load(path, &(struct mdl_load_options){.no_weights = true}, why, &m);
    if (error) {
        snprintf(ret_error, PSIM_ERROR_MAX, "%.200s: %.300s", path,
                 why[0] ? why : strerror(-error));
        return error;
    }
    snprintf(n.name, sizeof(n.name), "%.63s", m->name ? m->name : name);
    n.input_bytes = frame_bytes(m, MDL_HOME_INPUT);
    n.output_bytes = frame_bytes(m, MDL_HOME_OUTPUT);
    error = take[counted](m, &n);
    mdl_free(m);
    if (error == 0 && n.unit_count > TUN_UNIT_MAX) {
        error = -E2BIG;
    }
    if (error) {
        snprintf(ret_error, PSIM_ERROR_MAX, "%.200s: %s", path, strerror(-error));
        psim_network_deinit(&n);
        return error;
    }
    *ret = n;
    return 0;
}

void psim_network_deinit(struct psim_network *n)
{
    free(n->units);
    *n = (struct psim_network){0};
}
