/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/agree.h"

#include <math.h>
#include <string.h>

#include "base.h"

/* One network by one choice, with a frame's memory. */
struct side {
    struct krn_net *net;
    uint8_t *arena, *scratch, **outputs;
};

static uint8_t *memory(size_t bytes)
{
    return aligned_alloc(64, base_align_up(base_max(bytes, (size_t)64), 64));
}

static void side_deinit(struct side *s, const struct mdl_model *m)
{
    krn_net_free(s->net);
    free(s->arena);
    free(s->scratch);
    for (size_t i = 0; s->outputs && i < m->output_count; i++) {
        free(s->outputs[i]);
    }
    free(s->outputs);
}

static int side_init(struct side *s, const struct mdl_model *m, const struct krn_choice *c)
{
    char error[MDL_ERROR_MAX];
    size_t scratch = 0;
    int r = krn_net_new_chosen(m, c, 1, error, &s->net);

    r = r < 0 ? r : krn_net_join(s->net, 0, 0, m->op_count - 1, 1, &scratch);
    if (r < 0) {
        return r;
    }
    s->arena = memory(m->arena_bytes);
    s->scratch = memory(scratch);
    s->outputs = calloc(m->output_count, sizeof(*s->outputs));
    for (size_t i = 0; s->outputs && i < m->output_count; i++) {
        s->outputs[i] = memory(m->outputs[i].bytes);
        r = s->outputs[i] ? r : -ENOMEM;
    }
    return s->arena && s->scratch && s->outputs ? r : -ENOMEM;
}

static void run(struct side *s, const struct mdl_model *m, const void *input)
{
    struct krn_mem mem = {
        .arena = s->arena, .inputs = &input, .outputs = (void *const *)s->outputs};
    struct krn_exec exec = {.width = 1, .scratch = s->scratch};

    krn_net_run_ops(s->net, 0, m->op_count - 1, &mem, &exec);
}

static size_t top(const float *y, size_t count)
{
    size_t best = 0;

    for (size_t i = 1; i < count; i++) {
        if (y[i] > y[best] || (isnan(y[best]) && !isnan(y[i]))) {
            best = i;
        }
    }
    return best;
}

static bool agree(const struct mdl_model *m, const uint8_t *a, const uint8_t *b)
{
    size_t bytes = m->outputs[0].bytes;

    if (m->tensors[m->outputs[0].tensor].dtype != MDL_F32) {
        return memcmp(a, b, bytes) == 0;
    }
    return top((const float *)a, bytes / sizeof(float)) ==
           top((const float *)b, bytes / sizeof(float));
}

int krn_agreement(const struct mdl_model *m, const struct krn_choice *a, const struct krn_choice *b,
                  const void *const *inputs, size_t count, double *ret)
{
    struct side x = {0}, y = {0};
    size_t same = 0;
    int r;

    if (count == 0 || m->input_count != 1 || m->output_count == 0 || m->op_count == 0) {
        return -EINVAL;
    }
    r = side_init(&x, m, a);
    r = r < 0 ? r : side_init(&y, m, b);
    for (size_t i = 0; r == 0 && i < count; i++) {
        run(&x, m, inputs[i]);
        run(&y, m, inputs[i]);
        same += agree(m, x.outputs[0], y.outputs[0]);
    }
    side_deinit(&x, m);
    side_deinit(&y, m);
    if (r == 0) {
        *ret = (double)same / (double)count;
    }
    return r;
}
