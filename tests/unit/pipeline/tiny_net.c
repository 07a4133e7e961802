/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/unit/pipeline/tiny_net.h"

static void *need(void *p)
{
    if (p == NULL) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    return p;
}

static uint64_t state = 1;
static float noise(void)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (float)((double)(state >> 11) * (2.0 / 9007199254740992.0) - 1.0);
}

static void fill_tensor(struct mdl_tensor *t, size_t storage, size_t c, size_t side, bool nhwc)
{
    *t = (struct mdl_tensor){
        .name = strdup("t"),
        .dtype = MDL_F32,
        .storage = storage,
        .rank = 4,
        .dim = {1, c, side, side},
    };
    t->stride[0] = (ptrdiff_t)(c * side * side);
    t->stride[1] = nhwc ? 1 : (ptrdiff_t)(side * side);
    t->stride[2] = (ptrdiff_t)(nhwc ? side * c : side);
    t->stride[3] = nhwc ? (ptrdiff_t)c : 1;
}

static void fill_weights(struct mdl_tensor *t, struct mdl_storage *s, size_t storage, size_t c)
{
    size_t count = 9 * c * c;
    float *w = need(malloc(count * sizeof(float)));

    for (size_t k = 0; k < count; k++) {
        w[k] = noise() / (float)c * 0.7f;
    }
    s->home = MDL_HOME_CONST;
    s->data = w;
    s->bytes = count * sizeof(float);
    *t = (struct mdl_tensor){
        .name = strdup("w"),
        .dtype = MDL_F32,
        .storage = storage,
        .rank = 4,
        .dim = {c, c, 3, 3},
        .stride = {(ptrdiff_t)(9 * c), 9, 3, 1},
    };
}

/* Tensors: 0 input, 1 output, 2 + k value k (0: entry, k: after convolution k - 1), then weights.
 */
static void build_tensors(struct mdl_model *m, size_t c, size_t side)
{
    size_t bytes = c * side * side * sizeof(float), slot = base_align_up(bytes, 64);

    m->arena_bytes = 3 * slot;
    for (size_t i = 0; i < m->tensor_count; i++) {
        struct mdl_storage *s = &m->storages[i];

        s->bytes = bytes;
        if (i < 2) {
            s->home = i == 0 ? MDL_HOME_INPUT : MDL_HOME_OUTPUT;
            fill_tensor(&m->tensors[i], i, c, side, false);
        } else if (i < 2 + m->unit_count + 1) {
            s->home = MDL_HOME_ARENA;
            s->offset = (i - 2) % 3 * slot;
            fill_tensor(&m->tensors[i], i, c, side, true);
        } else {
            fill_weights(&m->tensors[i], s, i, c);
        }
    }
    m->inputs[0] = (struct mdl_io){strdup("in"), 0, bytes, 0};
    m->outputs[0] = (struct mdl_io){strdup("out"), 1, bytes, MDL_NONE};
}

static void fill_conv(struct mdl_op *op, size_t conv, size_t units, size_t c)
{
    op->kind = MDL_OP_CONV;
    op->in[0] = 2 + conv;
    op->in[1] = 2 + units + 1 + conv;
    op->out[0] = 2 + conv + 1;
    op->channels = c;
    op->act = MDL_ACT_CLIP;
    op->act_a = -2;
    op->act_b = 2;
    op->attr.conv.groups = 1;
    op->attr.conv.window = (struct mdl_window){.rank = 2,
                                               .kernel = {3, 3},
                                               .stride = {1, 1},
                                               .dilation = {1, 1},
                                               .pad_begin = {1, 1},
                                               .pad_end = {1, 1}};
    if (conv > 0) {
        op->residual = MDL_RESIDUAL_BEFORE_ACT;
        op->residual_in = 2 + conv - 1;
    }
}

static void build_ops(struct mdl_model *m, size_t c)
{
    size_t units = m->unit_count;

    for (size_t i = 0; i < m->op_count; i++) {
        struct mdl_op *op = &m->ops[i];

        for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
            op->in[k] = MDL_NONE;
        }
        op->out[1] = op->residual_in = MDL_NONE;
        op->name = strdup("op");
        if (i == 0 || i == m->op_count - 1) {
            op->kind = MDL_OP_COPY;
            op->in[0] = i == 0 ? 0 : 2 + units;
            op->out[0] = i == 0 ? 2 : 1;
            continue;
        }
        fill_conv(op, i - 1, units, c);
        m->units[i - 1] = (struct mdl_unit){
            .name = strdup("unit"),
            .first_op = i == 1 ? 0 : i,
            .last_op = i == units ? i + 1 : i,
            .heavy_op = i,
            .weight = 1,
        };
    }
}

static void build(struct tiny_net *t, size_t units, size_t c, size_t side)
{
    struct mdl_model *m = &t->model;

    m->name = strdup("tiny");
    m->op_count = units + 2;
    m->unit_count = units;
    m->tensor_count = m->storage_count = 2 + (units + 1) + units;
    m->input_count = m->output_count = 1;
    m->ops = need(calloc(m->op_count, sizeof(m->ops[0])));
    m->units = need(calloc(units, sizeof(m->units[0])));
    m->tensors = need(calloc(m->tensor_count, sizeof(m->tensors[0])));
    m->storages = need(calloc(m->storage_count, sizeof(m->storages[0])));
    m->inputs = need(calloc(1, sizeof(m->inputs[0])));
    m->outputs = need(calloc(1, sizeof(m->outputs[0])));
    m->preproc = (struct mdl_preproc){.mean = {128, 128, 128}, .std = {64, 64, 64}};
    build_tensors(m, c, side);
    build_ops(m, c);
}

static float *answer(struct tiny_net *t, const float *input)
{
    size_t scratch_bytes = krn_net_scratch_bytes(t->net, 1);
    base_autofree void *arena = need(aligned_alloc(64, t->model.arena_bytes));
    base_autofree void *scratch = need(aligned_alloc(64, base_max(scratch_bytes, (size_t)64)));
    struct krn_exec exec = {NULL, 1, scratch};
    float *out = need(calloc(t->elements, sizeof(float)));
    const void *inputs[1] = {input};
    void *outputs[1] = {out};
    struct krn_mem mem = {arena, inputs, outputs};

    if (input == NULL) {
        struct krn_image image = {KRN_PIX_RGB24, (uint32_t)t->image_side, (uint32_t)t->image_side,
                                  (uint32_t)t->image_side * 3, t->image};

        krn_preprocess(&image, &t->model.preproc, &t->model.tensors[2],
                       krn_tensor_ptr(&t->model, 2, &mem), &exec);
        krn_net_run_ops(t->net, 1, t->model.op_count - 1, &mem, &exec);
    } else {
        krn_net_run_ops(t->net, 0, t->model.op_count - 1, &mem, &exec);
    }
    return out;
}

void tiny_net_init(struct tiny_net *t, size_t units, size_t channels, size_t side)
{
    char error[MDL_ERROR_MAX];

    memset(t, 0, sizeof(*t));
    build(t, units, channels, side);
    t->elements = channels * side * side;
    /* the references share rows only: the same bits for every width */
    if (krn_net_new(&t->model, "__ref", error, &t->net) != 0) {
        fprintf(stderr, "krn_net_new: %s\n", error);
        exit(1);
    }
    for (size_t i = 0; i < TINY_INPUTS; i++) {
        t->inputs[i] = need(calloc(t->elements, sizeof(float)));
        for (size_t k = 0; k < t->elements; k++) {
            t->inputs[i][k] = noise();
        }
        t->answers[i] = answer(t, t->inputs[i]);
    }
    if (channels == 3) {
        t->image_side = side + 5;
        t->image = need(malloc(t->image_side * t->image_side * 3));
        for (size_t k = 0; k < t->image_side * t->image_side * 3; k++) {
            t->image[k] = (uint8_t)(int)(noise() * 127 + 128);
        }
        t->image_answer = answer(t, NULL);
    }
}

void tiny_net_deinit(struct tiny_net *t)
{
    struct mdl_model *m = &t->model;

    krn_net_free(t->net);
    for (size_t i = 0; i < TINY_INPUTS; i++) {
        free(t->inputs[i]);
        free(t->answers[i]);
    }
    free(t->image);
    free(t->image_answer);
    for (size_t i = 0; i < m->storage_count; i++) {
        free((void *)(uintptr_t)m->storages[i].data);
        free(m->tensors[i].name);
    }
    for (size_t i = 0; i < m->op_count; i++) {
        free(m->ops[i].name);
    }
    for (size_t i = 0; i < m->unit_count; i++) {
        free(m->units[i].name);
    }
    free(m->inputs[0].name);
    free(m->outputs[0].name);
    free(m->name);
    free(m->ops);
    free(m->units);
    free(m->tensors);
    free(m->storages);
    free(m->inputs);
    free(m->outputs);
    memset(t, 0, sizeof(*t));
}
