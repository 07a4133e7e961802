/* SPDX-License-Identifier: Apache-2.0 */
/* model_dump FILE [--no-fusion]: a compiled model, for the eyes of those who work on it. */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "kernels/kernels.h"
#include "model/model.h"
#include "tests/kernels/op_names.h"

static const char *const homes[] = {"arena", "input", "output", "const"};

static void print_tensor(const struct mdl_model *m, size_t t)
{
    const struct mdl_tensor *x;
    const struct mdl_storage *s;

    if (t == MDL_NONE) {
        printf("-");
        return;
    }
    x = &m->tensors[t];
    s = &m->storages[x->storage];
    printf("#%zu %s [", t, mdl_dtype_name(x->dtype));
    for (size_t i = 0; i < x->rank; i++) {
        printf("%s%zu", i ? "," : "", x->dim[i]);
    }
    printf("] (");
    for (size_t i = 0; i < x->rank; i++) {
        printf("%s%td", i ? "," : "", x->stride[i]);
    }
    printf(") %s s%zu", homes[s->home], x->storage);
    if (s->home == MDL_HOME_ARENA) {
        printf("@%zu", s->offset);
    }
    if (x->offset) {
        printf("+%zu", x->offset);
    }
}

static void print_op(const struct mdl_model *m, size_t k)
{
    const struct mdl_op *op = &m->ops[k];

    printf("  %3zu %s \"%s\"", k, mdl_op_kind_name(op->kind), op->name);
    if (op->kind == MDL_OP_BINARY) {
        printf(" %s", binary_name(op->attr.binary));
    }
    if (op->act != MDL_ACT_NONE) {
        printf(" act %s(%g, %g)", act_name(op->act), (double)op->act_a, (double)op->act_b);
    }
    printf("%s%s\n", op->scale ? " scale" : "", op->shift ? " shift" : "");
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        if (op->in[i] != MDL_NONE) {
            printf("        in  ");
            print_tensor(m, op->in[i]);
            printf("\n");
        }
    }
    if (op->residual != MDL_RESIDUAL_NONE) {
        printf("        %s act + ", op->residual == MDL_RESIDUAL_BEFORE_ACT ? "before" : "after");
        print_tensor(m, op->residual_in);
        printf("\n");
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        if (op->out[i] != MDL_NONE) {
            printf("        out ");
            print_tensor(m, op->out[i]);
            printf("\n");
        }
    }
}

static void print_io(const struct mdl_model *m, const char *what, const struct mdl_io *io)
{
    printf("%s %s: ", what, io->name);
    print_tensor(m, io->tensor);
    printf(", %zu bytes", io->bytes);
    if (io->entry_op != MDL_NONE) {
        printf(", entry op %zu", io->entry_op);
    }
    if (io->rows_output) {
        printf(", valid rows along dim %zu in output %zu", io->rows_dim, io->rows_output - 1);
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    struct mdl_load_options options = {.name = "dump", .const_eval = krn_const_eval};
    char error[MDL_ERROR_MAX];
    struct mdl_model *m;
    bool brief = false;
    uint64_t t0 = base_now_ns();

    if (argc < 2) {
        fprintf(stderr, "usage: model_dump FILE [--no-fusion] [--brief]\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        options.no_fusion |= strcmp(argv[i], "--no-fusion") == 0;
        brief |= strcmp(argv[i], "--brief") == 0;
    }
    if (mdl_load(argv[1], &options, error, &m) < 0) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    printf("%s: %zu ops in %zu units, %.3g multiply-accumulates, weights %.1f MB, loaded in %.1f "
           "ms\n",
           argv[1], m->op_count, m->unit_count, m->macs, (double)m->weight_bytes / 1e6,
           (double)(base_now_ns() - t0) / 1e6);
    printf("arena %.2f MB of %.2f MB that all values take: %.1f %%\n", (double)m->arena_bytes / 1e6,
           (double)m->tensor_bytes / 1e6,
           m->tensor_bytes ? 100.0 * (double)m->arena_bytes / (double)m->tensor_bytes : 0.0);
    for (size_t i = 0; i < m->input_count; i++) {
        print_io(m, "input", &m->inputs[i]);
    }
    for (size_t i = 0; i < m->output_count; i++) {
        print_io(m, "output", &m->outputs[i]);
    }
    for (size_t i = 0; i < m->unit_count; i++) {
        const struct mdl_unit *u = &m->units[i];

        printf("unit %zu \"%s\" ops %zu-%zu heavy %zu weight %.4g macs %.4g weights %zu live %zu\n",
               i, u->name, u->first_op, u->last_op, u->heavy_op, u->weight, u->macs,
               u->weight_bytes, u->live_bytes);
        for (size_t k = u->first_op; k <= u->last_op && !brief; k++) {
            print_op(m, k);
        }
    }
    mdl_free(m);
    return 0;
}
