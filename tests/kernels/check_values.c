/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/check_values.h"

#include <math.h>

/* every case draws from one stream, seeded as tests/harness.h says */
static uint64_t next_random(void)
{
    static uint64_t state;
    static bool seeded;

    if (!seeded) {
        const char *seed = getenv("PIPED_TEST_SEED");

        state = seed ? strtoull(seed, NULL, 0) : 20260601;
        seeded = true;
    }
    return base_splitmix64(&state);
}

static float random_float(float scale)
{
    return scale * (float)((double)(next_random() >> 11) * (2.0 / 9007199254740992.0) - 1.0);
}

struct fill {
    uint8_t *data;
    float scale;
};

static void fill_one(void *arg, size_t at, size_t index)
{
    const struct fill *f = arg;
    float v = random_float(f->scale);

    memcpy(f->data + at, &v, sizeof(v));
}

void check_fill(struct one_op *o, size_t tensor, float scale)
{
    struct fill f = {o->buffers[tensor].data, scale};

    one_op_each(&o->tensors[tensor], fill_one, &f);
}

void check_epilogue(struct one_op *o, size_t channels, enum mdl_act act, enum mdl_residual residual)
{
    const struct mdl_tensor *y = &o->tensors[o->op.out[0]];

    o->op.channels = channels;
    if (next_random() % 4 != 0) {
        o->op.shift = o->shift = malloc(channels * sizeof(float));
        for (size_t i = 0; i < channels; i++) {
            o->shift[i] = random_float(2.0f);
        }
    }
    if (next_random() % 2 != 0) {
        o->op.scale = o->scale = malloc(channels * sizeof(float));
        for (size_t i = 0; i < channels; i++) {
            o->scale[i] = random_float(1.5f);
        }
    }
    o->op.act = act;
    o->op.act_a = act == MDL_ACT_CLIP ? -0.25f : act == MDL_ACT_ELU ? 1.3f : 0.2f;
    o->op.act_b = act == MDL_ACT_CLIP ? 1.5f : 0.5f;
    o->op.residual = residual;
    if (residual != MDL_RESIDUAL_NONE) {
        ptrdiff_t stride[MDL_RANK_MAX];
        bool wider = y->rank == 4 && next_random() % 2;

        memcpy(stride, y->stride, sizeof(stride));
        if (wider) { /* a residual that is part of a wider tensor */
            stride[3] = (ptrdiff_t)y->dim[1] + 3;
            stride[2] = stride[3] * (ptrdiff_t)y->dim[3];
            stride[0] = stride[2] * (ptrdiff_t)y->dim[2];
        }
        o->op.residual_in =
            one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, y->rank, y->dim, wider ? stride : y->stride);
        check_fill(o, o->op.residual_in, 1.0f);
    }
}

double check_act_lipschitz(const struct mdl_op *op)
{
    switch (op->act) {
    case MDL_ACT_LEAKY_RELU:
    case MDL_ACT_HARD_SIGMOID:
    case MDL_ACT_ELU:
        return fmax(1.0, fabs((double)op->act_a));
    case MDL_ACT_HARD_SWISH:
        return 1.5;
    case MDL_ACT_SILU:
        return 1.1;
    default:
        return 1.0;
    }
}
