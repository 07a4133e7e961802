/* SPDX-License-Identifier: Apache-2.0 */
/* Outputs whose length depends on the data: padded with zeros, and the count as one more output. */

#include "base/shown_text.h"
#include "model/compile/passes.h"
#include "model/ir/rows.h"

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

void mdl_count_rows(struct mdl_ir *ir)
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
