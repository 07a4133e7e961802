/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/boards/border_judge.h"

#include "base/base.h"
#include "kernels/int8cal/runner.h"
#include "model/segment/segment.h"

struct judge {
    const struct mdl_model *m;
    enum brd_encoding encoding;
    struct krn_runner as_is, rounded; /* rounded: without a net */
    struct mdl_border *borders;       /* [unit_count], owned; [u]: in front of unit u */
    float *floats;                    /* [most elements of a tensor], owned, as the next */
    uint8_t *encoded;
    void *input;
};

static void judge_deinit(struct judge *j)
{
    krn_runner_deinit(&j->as_is);
    krn_runner_deinit(&j->rounded);
    for (size_t u = 0; j->borders && u < j->m->unit_count; u++) {
        mdl_border_deinit(&j->borders[u]);
    }
    free(j->borders);
    free(j->floats);
    free(j->encoded);
    free(j->input);
}

static size_t elements(const struct mdl_live *l)
{
    return l->bytes / mdl_dtype_bytes(l->dtype);
}

static void *memory(size_t bytes)
{
    return aligned_alloc(64, base_align_up(base_max(bytes, (size_t)1), 64));
}

/* Memory of another frame for the same net. Its units run one by one, so what would be fused over
 * two of them runs apart, and needs other scratch. */
static int rounded_init(struct judge *j)
{
    struct krn_runner *r = &j->rounded;
    bool all;

    r->m = j->m;
    r->arena = memory(j->m->arena_bytes);
    r->scratch = memory(krn_net_scratch_bytes(j->as_is.net, 1));
    r->outputs = calloc(j->m->output_count, sizeof(*r->outputs));
    all = r->arena && r->scratch && r->outputs;
    for (size_t i = 0; all && i < j->m->output_count; i++) {
        r->outputs[i] = memory(j->m->outputs[i].bytes);
        all = r->outputs[i] != NULL;
    }
    return all ? 0 : -ENOMEM;
}

static int judge_init(struct judge *j, char *error)
{
    const struct mdl_model *m = j->m;
    size_t most = 1;
    int r = krn_runner_init(&j->as_is, m, NULL, error);

    r = r < 0 ? r : rounded_init(j);
    j->borders = r < 0 ? NULL : calloc(m->unit_count, sizeof(*j->borders));
    if (r == 0 && !j->borders) {
        r = -ENOMEM;
    }
    for (size_t u = 1; r == 0 && u < m->unit_count; u++) {
        r = mdl_border(m, u, &j->borders[u]);
        for (size_t i = 0; r == 0 && i < j->borders[u].count; i++) {
            most = base_max(most, elements(&j->borders[u].live[i]));
        }
    }
    if (r < 0) {
        return r;
    }
    j->floats = malloc(most * sizeof(*j->floats));
    j->encoded = malloc(most * sizeof(*j->floats));
    j->input = memory(m->inputs[0].bytes);
    return j->floats && j->encoded && j->input ? 0 : -ENOMEM;
}

/* Where element 0 of @l lies in the frame of the rounded run; NULL: not to be written. */
static uint8_t *place(const struct judge *j, const struct mdl_live *l)
{
    const struct mdl_storage *s = &j->m->storages[l->storage];

    switch (s->home) {
    case MDL_HOME_ARENA:
        return j->rounded.arena + s->offset + l->offset;
    case MDL_HOME_OUTPUT:
        return j->rounded.outputs[s->index] + l->offset;
    default: /* an input goes to later hops as it is */
        return NULL;
    }
}

/* Copies all elements of @l between its place and @floats. */
static void copy(const struct mdl_live *l, uint8_t *at, float *floats, bool out)
{
    size_t count = elements(l), index[MDL_RANK_MAX] = {0};
    ptrdiff_t offset = 0;

    for (size_t i = 0; i < count; i++) {
        size_t d = l->rank;

        if (out) {
            memcpy(&floats[i], at + 4 * offset, 4);
        } else {
            memcpy(at + 4 * offset, &floats[i], 4);
        }
        while (d-- > 0) {
            offset += l->stride[d];
            if (++index[d] < l->dim[d]) {
                break;
            }
            offset -= l->stride[d] * (ptrdiff_t)l->dim[d];
            index[d] = 0;
        }
    }
}

static void round_border(struct judge *j, const struct mdl_border *b)
{
    for (size_t i = 0; i < b->count; i++) {
        const struct mdl_live *l = &b->live[i];
        uint8_t *at = l->dtype == MDL_F32 ? place(j, l) : NULL;
        int32_t zero;
        float scale;

        if (at) {
            copy(l, at, j->floats, true);
            brd_encode(j->encoding, j->floats, elements(l), j->encoded, &scale, &zero);
            brd_decode(j->encoding, j->encoded, elements(l), scale, zero, j->floats);
            copy(l, at, j->floats, false);
        }
    }
}

static void run_rounded(struct judge *j)
{
    const void *input = j->input;
    struct krn_mem mem = {
        .arena = j->rounded.arena, .inputs = &input, .outputs = (void *const *)j->rounded.outputs};
    struct krn_exec exec = {.width = 1, .scratch = j->rounded.scratch};

    for (size_t u = 0; u < j->m->unit_count; u++) {
        if (u > 0) {
            round_border(j, &j->borders[u]);
        }
        krn_net_run_ops(j->as_is.net, j->m->units[u].first_op, j->m->units[u].last_op, &mem, &exec);
    }
}

static void judge_one(struct judge *j, struct dmn_border_verdict *ret)
{
    double error;

    krn_runner_run(&j->as_is, j->input);
    run_rounded(j);
    error = krn_answer_error(j->m, j->as_is.outputs[0], j->rounded.outputs[0]);
    ret->agreement += krn_answer_agrees(j->m, j->as_is.outputs[0], j->rounded.outputs[0]);
    ret->error_mean += error;
    ret->error_most = base_max(ret->error_most, error);
    ret->judged++;
}

int dmn_border_judge(const struct mdl_model *m, struct krn_examples *examples,
                     enum brd_encoding encoding, const _Atomic bool *stop,
                     char ret_error[MDL_ERROR_MAX], struct dmn_border_verdict *ret)
{
    struct judge j = {.m = m, .encoding = encoding};
    int r;

    *ret = (struct dmn_border_verdict){0};
    if (m->segment) {
        snprintf(ret_error, MDL_ERROR_MAX, "it is a segment; judge the whole model");
        return -EINVAL;
    }
    r = krn_examples_fit(examples, m, ret_error);
    if (r < 0) {
        return r;
    }
    snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
    r = judge_init(&j, ret_error);
    for (size_t i = 0; r == 0 && i < examples->count; i++) {
        if (*stop) {
            snprintf(ret_error, MDL_ERROR_MAX, "it was cancelled");
            r = -ECANCELED;
        } else if ((r = krn_example_input(examples, i, m, j.input, ret_error)) == 0) {
            judge_one(&j, ret);
        }
    }
    judge_deinit(&j);
    ret->agreement /= (double)base_max(ret->judged, (size_t)1);
    ret->error_mean /= (double)base_max(ret->judged, (size_t)1);
    return r;
}
