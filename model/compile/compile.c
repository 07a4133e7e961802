/* SPDX-License-Identifier: Apache-2.0 */
#include "model/compile/compile.h"

#include "base/shown_text.h"
#include "model/compile/passes.h"
#include "model/ir/rows.h"
#include "model/lower/lower.h"
#include "model/quant/quant.h"

#define WEIGHT_BYTES_MAX ((size_t)4 << 30)
#define ARENA_BYTES_MAX ((size_t)2 << 30)

/* Budget of constant folding, in bytes and in elements: enough for any shape arithmetic, plus a few
 * times the file's bytes. A small file cannot ask for more. */
#define FOLD_BYTES ((size_t)64 << 20)
#define FOLD_WORK ((double)(1u << 27))
#define FOLD_PER_BYTE 4u

/* Dimensions of a model input: as in the file. An open batch is 1; any other open dimension is
 * refused (the graph already includes a sidecar's size). */
static int input_dims(struct mdl_ir *ir, size_t i, size_t *ret_dim)
{
    const struct mdl_gvalue *in = &ir->g->inputs[i];

    if (!in->typed) {
        return mdl_fail(ir->error, -EOPNOTSUPP,
                        "input %s has no type or shape; declare both when the model is exported",
                        in->name);
    }
    if (in->rank > MDL_RANK_MAX) {
        return mdl_fail(ir->error, -E2BIG, "input %s has rank %zu; at most %u is supported",
                        in->name, in->rank, MDL_RANK_MAX);
    }
    for (size_t k = 0; k < in->rank; k++) {
        if (in->dim[k] >= 0) {
            ret_dim[k] = (size_t)in->dim[k];
        } else if (k == 0) {
            ret_dim[k] = 1;
        } else {
            return mdl_fail(ir->error, -EOPNOTSUPP,
                            "input %s: dimension %zu is open; give its size in the sidecar",
                            in->name, k);
        }
    }
    return 0;
}

static void make_inputs(struct mdl_ir *ir)
{
    ir->inputs = mdl_ir_alloc(ir, ir->g->input_count, sizeof(*ir->inputs));
    for (size_t i = 0; i < ir->g->input_count; i++) {
        const struct mdl_gvalue *in = &ir->g->inputs[i];
        size_t dim[MDL_RANK_MAX];
        struct mdl_ir_value *v;
        const struct mdl_reason why = {.kind = MDL_REASON_INPUT, .code = input_dims(ir, i, dim)};

        if (why.code == -EOPNOTSUPP) {
            mdl_ir_reason(ir, &why, NULL, in->name);
            continue; /* others may be refused, too */
        }
        if (why.code < 0) {
            mdl_ir_leave(ir, why.code);
        }
        ir->inputs[i] = mdl_ir_value_new(ir, in->dtype, in->rank, dim);
        v = &ir->values[ir->inputs[i]];
        v->name = in->name;
        v->named = true;
        v->narrow = in->narrow;
        v->input = i;
    }
}

static void make_outputs(struct mdl_ir *ir)
{
    ir->outputs = mdl_ir_alloc(ir, ir->g->output_count, sizeof(*ir->outputs));
    for (size_t i = 0; i < ir->g->output_count; i++) {
        const struct mdl_gvalue *out = &ir->g->outputs[i];
        const struct mdl_ir_name *n = mdl_ir_find(ir, out->name);
        size_t v = n->value;

        if (v == MDL_NONE && n->input != MDL_NONE) {
            v = ir->inputs[n->input];
        } else if (v == MDL_NONE && n->initializer != MDL_NONE) {
            const struct mdl_gtensor *t = &ir->g->initializers[n->initializer];

            v = mdl_ir_const_new(ir, t->dtype, t->rank, t->dim, t->data, t->in_file);
        }
        if (v == MDL_NONE) {
            mdl_ir_refuse(
                ir, -EOPNOTSUPP,
                "model output \"%s\" is an optional output of its operator that is not supported",
                out->name);
        }
        if (ir->values[v].sequence) {
            mdl_ir_refuse(ir, -EOPNOTSUPP,
                          "model output \"%s\" is a sequence; only tensors are supported",
                          out->name);
        }
        ir->values[v].output = true;
        ir->outputs[i] = v;
    }
}

/* ---- outputs of a length that depends on the data ---- */

static bool taken(const struct mdl_graph *g, const char *name)
{
    for (size_t i = 0; i < g->output_count; i++) {
        if (strcmp(g->outputs[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* "NAME.rows", with a number where an output has that name. */
static const char *name_of(struct mdl_ir *ir, const struct mdl_graph *g, const char *output)
{
    char name[MDL_NAME_MAX];
    size_t fits = shown_fit(output, sizeof(name) - 20);

    for (unsigned n = 1;; n++) {
        snprintf(name, sizeof(name), n == 1 ? "%.*s.rows" : "%.*s.rows%u", (int)fits, output, n);
        if (!taken(g, name)) {
            return mdl_ir_memdup(ir, name, strlen(name) + 1);
        }
    }
}

/* Return: the output that gives the value @rows, or MDL_NONE. */
static size_t find(const struct mdl_ir *ir, size_t count, size_t rows)
{
    for (size_t i = 0; i < count; i++) {
        if (ir->outputs[i] == rows) {
            return i;
        }
    }
    return MDL_NONE;
}

static void add_count(struct mdl_ir *ir, struct mdl_graph *g, size_t of, size_t rows)
{
    struct mdl_gvalue *out = &g->outputs[g->output_count];

    *out = (struct mdl_gvalue){.name = name_of(ir, g, g->outputs[of].name)};
    ir->outputs[g->output_count++] = rows;
    ir->values[rows].output = true;
}

static void count_output(struct mdl_ir *ir, struct mdl_graph *g, size_t i)
{
    struct mdl_ir_value v = ir->values[ir->outputs[i]];
    size_t at = find(ir, g->output_count, v.rows), padded = mdl_rows_fill(ir, ir->outputs[i], 0);

    if (at == MDL_NONE) {
        at = g->output_count;
        add_count(ir, g, i, v.rows);
    }
    ir->values[padded].output = true;
    ir->values[padded].name = v.name;
    ir->outputs[i] = padded;
    ir->output_rows[i] = at + 1;
    ir->output_rows_dim[i] = v.rows_dim;
}

/* Outputs whose length depends on the data are padded with zeros, and the count is one more output.
 */
static void count_rows(struct mdl_ir *ir)
{
    struct mdl_graph *g = mdl_ir_memdup(ir, ir->g, sizeof(*ir->g));
    size_t count = ir->g->output_count;
    size_t *outputs = mdl_ir_alloc(ir, 2 * count, sizeof(*outputs));

    ir->output_rows = mdl_ir_alloc(ir, 2 * count, sizeof(*ir->output_rows));
    ir->output_rows_dim = mdl_ir_alloc(ir, 2 * count, sizeof(*ir->output_rows_dim));
    g->outputs = mdl_ir_alloc(ir, 2 * count, sizeof(*g->outputs));
    memcpy(g->outputs, ir->g->outputs, count * sizeof(*g->outputs));
    memcpy(outputs, ir->outputs, count * sizeof(*outputs));
    ir->outputs = outputs;
    ir->node = NULL;
    for (size_t i = 0; i < count; i++) {
        if (ir->values[outputs[i]].rows != MDL_NONE) {
            count_output(ir, g, i);
        }
    }
    ir->g = g;
}

/* ---- the whole ---- */

static void check_sizes(struct mdl_ir *ir)
{
    size_t total = 0, max = ir->options->weight_bytes_max;

    for (size_t i = 0; i < ir->g->initializer_count; i++) {
        if (!base_add(total, ir->g->initializers[i].bytes, &total) || total > max) {
            mdl_ir_refuse(ir, -E2BIG, "the weights are larger than %zu bytes", max);
        }
    }
    if (ir->g->input_count > MDL_IR_INPUTS_MAX) {
        mdl_ir_refuse(ir, -E2BIG, "the model has more than %u inputs", MDL_IR_INPUTS_MAX);
    }
    if (ir->g->output_count == 0) {
        mdl_ir_refuse(ir, -EBADMSG, "the model has no output");
    }
}

/* Then no shape is known, and no node can be looked at. */
static bool inputs_refused(const struct mdl_ir *ir)
{
    for (size_t i = 0; i < ir->reasons->count; i++) {
        if (ir->reasons->list[i].kind == MDL_REASON_INPUT) {
            return true;
        }
    }
    return false;
}

static void compile(struct mdl_ir *ir)
{
    check_sizes(ir);
    mdl_ir_sort(ir);
    mdl_lower_check(ir);
    make_inputs(ir);
    for (size_t i = 0; !inputs_refused(ir) && i < ir->order_count; i++) {
        mdl_ir_called_off(ir);
        mdl_lower_node(ir, ir->order[i]);
    }
    mdl_ir_refuse_all(ir);
    make_outputs(ir);
    count_rows(ir);
    mdl_ir_drop_dead(ir);
    if (!ir->options->no_fusion) {
        mdl_quant_sink(ir);
        mdl_ir_called_off(ir);
        mdl_fuse(ir);
        mdl_ir_called_off(ir);
        mdl_quant_plan(ir);
        mdl_quant_fuse(ir);
        mdl_ir_drop_dead(ir);
    }
    mdl_ir_called_off(ir);
    mdl_layout(ir);
    mdl_emit(ir, mdl_memory(ir));
}

/* Return: 0, or what @what leaves with. */
static int try(struct mdl_ir *ir, void (*what)(struct mdl_ir *ir))
{
    jmp_buf here;

    ir->leave = &here;
    if (setjmp(here) == 0) {
        what(ir);
    }
    return ir->failure;
}

/* The same with memory, and a list of reasons where the caller wants none. */
static int run(struct mdl_ir *ir, void (*what)(struct mdl_ir *ir))
{
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_reasons own = {0};
    int r;

    if (mdl_pool_new(SIZE_MAX / 4, &pool) < 0) {
        return mdl_fail(ir->error, -ENOMEM, "out of memory while compiling the model");
    }
    ir->pool = pool;
    ir->node_name = "";
    ir->reasons = ir->options->reasons ? ir->options->reasons : &own;
    r = try(ir, what);
    mdl_reasons_deinit(&own);
    return r;
}

int mdl_compile(const struct mdl_graph *g, const struct mdl_load_options *options,
                char ret_error[MDL_ERROR_MAX], struct mdl_model **ret)
{
    struct mdl_load_options given = options ? *options : (struct mdl_load_options){0};
    struct mdl_ir ir = {.g = g, .options = &given, .hooks = &mdl_rows_hooks, .error = ret_error};
    size_t bytes;
    int r;

    given.weight_bytes_max = given.weight_bytes_max ? given.weight_bytes_max : WEIGHT_BYTES_MAX;
    given.arena_bytes_max = given.arena_bytes_max ? given.arena_bytes_max : ARENA_BYTES_MAX;
    ir.value_bytes_max = base_max(given.weight_bytes_max, given.arena_bytes_max);
    ir.fold_work_left =
        FOLD_WORK + (double)FOLD_PER_BYTE * ((double)g->file_bytes + (double)g->data_bytes);
    ir.fold_bytes_left = given.weight_bytes_max;
    if (base_add(g->file_bytes, g->data_bytes, &bytes) &&
        bytes < (SIZE_MAX - FOLD_BYTES) / FOLD_PER_BYTE) {
        ir.fold_bytes_left = base_min(ir.fold_bytes_left, FOLD_BYTES + FOLD_PER_BYTE * bytes);
    }
    r = run(&ir, compile);
    if (r < 0) {
        mdl_free(ir.model);
        return r;
    }
    *ret = ir.model;
    return 0;
}

/* ir.failure: the code of the text that is in ir.error. */
static void refuse(struct mdl_ir *ir)
{
    const struct mdl_reason why = {.kind = MDL_REASON_INPUT, .code = ir->failure};

    mdl_ir_reason(ir, &why, NULL, "");
    mdl_ir_sort(ir);
    mdl_lower_check(ir);
    mdl_ir_refuse_all(ir);
}

int mdl_compile_refused(const struct mdl_graph *g, const struct mdl_load_options *options, int code,
                        char ret_error[MDL_ERROR_MAX])
{
    struct mdl_ir ir = {.g = g, .options = options, .error = ret_error, .failure = code};

    return run(&ir, refuse);
}
