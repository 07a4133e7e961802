/* SPDX-License-Identifier: Apache-2.0 */
/* Every primitive of an operator of single elements, of windows and of rows, at the ends of the
 * number line: zeros of both signs, denormals, the largest numbers, infinities and NaN. */
#include <float.h>
#include <math.h>

#include "base/base.h"
#include "tests/kernels/light_case.h"
#include "tests/kernels/op_names.h"

static const float ends[] = {
    -1e30f,      1e30f,         -1e28f,         1e28f,     -1e20f,     1e20f,
    -2e38f,      2e38f,         0.0f,           -0.0f,     FLT_MIN,    -FLT_MIN,
    1e-45f,      -1e-45f,       1e-40f,         -1e-40f,   1e-30f,     -1e-30f,
    FLT_MAX,     -FLT_MAX,      INFINITY,       -INFINITY, NAN,        88.0f,
    -88.0f,      89.0f,         -89.0f,         104.0f,    -104.0f,    709.0f,
    -709.0f,     1.0f,          -1.0f,          0.5f,      -0.5f,      1.5f,
    -1.5f,       2.5f,          3.0f,           -3.0f,     6.0f,       -6.0f,
    20.0f,       -20.0f,        1e6f,           -1e6f,     8388607.5f, -8388607.5f,
    16777216.0f, 2147483648.0f, -2147483648.0f, 3e9f,      -3e9f,      1e10f,
    -1e10f,      1e15f,         -1e15f,         1e19f,     -1e19f,     4e18f,
};
#define ENDS base_array_count(ends)

struct filling {
    float *at;
    size_t step, shift;
    float most; /* larger ones, much smaller ones and NaN become 2; NAN: none does */
};

static void put_end(void *arg, size_t at, size_t index)
{
    const struct filling *f = arg;
    float x = ends[(index / f->step + f->shift) % ENDS], size = fabsf(x);

    if (!isnan(f->most) && (!(size <= f->most) || (x != 0 && size * f->most < 1))) {
        x = 2.0f;
    }
    memcpy((char *)f->at + at, &x, sizeof(x));
}

/* Element i is the end number i / @step + @shift. */
static void fill_ends(struct one_op *o, size_t tensor, size_t step, size_t shift, float most)
{
    struct filling f = {(float *)(void *)o->buffers[tensor].data, step, shift, most};

    one_op_each(&o->tensors[tensor], put_end, &f);
}

/* sin and others of numbers that are no angles: the libraries' reductions differ */
static bool is_periodic(enum mdl_act act)
{
    return act == MDL_ACT_SIN || act == MDL_ACT_COS || act == MDL_ACT_TAN;
}

static const struct parameters {
    float a, b;
} parameters[] = {{0.2f, 0.5f}, {1.0f, 1.0f}, {-1.0f, 6.0f}};

TEST(functions_of_one_element)
{
    bool good = true;

    for (int act = MDL_ACT_NONE; act < MDL_ACT_COUNT; act++) {
        for (size_t p = 0; p < base_array_count(parameters); p++) {
            struct check k = {.bound = CHECK_ULP, .ulps = 1024, .absolute = 1e-5};
            size_t dim[4] = {1, 16, 2, ENDS};
            struct one_op *o = one_op_new(MDL_OP_UNARY);

            if (act == MDL_ACT_NOT || act == MDL_ACT_BIT_NOT || is_periodic((enum mdl_act)act)) {
                one_op_free(o);
                continue;
            }
            o->op.act = (enum mdl_act)act;
            o->op.act_a = parameters[p].a;
            o->op.act_b = parameters[p].b;
            o->op.out[0] = light_tensor(o, dim, p % 2, 0, 0);
            o->op.in[0] = light_tensor(o, dim, p % 2, 0, 0);
            fill_ends(o, o->op.in[0], 1, 0, NAN);
            snprintf(o->name, sizeof(o->name), "%s(%g, %g) at the ends", act_name(o->op.act),
                     (double)o->op.act_a, (double)o->op.act_b);
            good &= light_finish(o, &k);
        }
    }
    T_TRUE(good);
}

TEST(functions_of_two_elements)
{
    bool good = true;

    for (int kind = MDL_BIN_ADD; kind <= MDL_BIN_MIN; kind++) {
        for (int act = MDL_ACT_NONE; act <= MDL_ACT_SOFTPLUS; act++) {
            struct check k = {.bound = CHECK_ULP, .ulps = 1024, .absolute = 1e-5};
            size_t dim[4] = {1, 4, ENDS, ENDS};
            struct one_op *o = one_op_new(MDL_OP_BINARY);

            o->op.attr.binary = (enum mdl_binary)kind;
            o->op.act = (enum mdl_act)act;
            o->op.act_a = 0.2f;
            o->op.act_b = 6.0f;
            o->op.out[0] = light_tensor(o, dim, false, 0, 0);
            o->op.in[0] = light_tensor(o, dim, false, 0, 0);
            o->op.in[1] = light_tensor(o, dim, false, 0, 0);
            /* what f32 cannot hold between the two is another question */
            fill_ends(o, o->op.in[0], 1, 0, act ? 1e15f : NAN);
            fill_ends(o, o->op.in[1], ENDS, 0, act ? 1e15f : NAN);
            snprintf(o->name, sizeof(o->name), "%s, then %s, at the ends",
                     binary_name((enum mdl_binary)kind), act_name(o->op.act));
            good &= light_finish(o, &k);
        }
    }
    T_TRUE(good);
}

TEST(slopes)
{
    bool good = true;

    struct check k = {.bound = CHECK_ULP, .ulps = 4};
    size_t dim[4] = {1, 64, 3, ENDS}, each[4] = {1, 64, 1, 1};
    struct one_op *o = one_op_new(MDL_OP_PRELU);

    o->op.out[0] = light_tensor(o, dim, true, 0, 0);
    o->op.in[0] = light_tensor(o, dim, true, 0, 0);
    o->op.in[1] = one_op_tensor(o, MDL_F32, MDL_HOME_CONST, 4, each, NULL);
    fill_ends(o, o->op.in[0], 64, 0, NAN);
    check_fill(o, o->op.in[1], 2.0f);
    snprintf(o->name, sizeof(o->name), "prelu at the ends");
    good &= light_finish(o, &k);
    T_TRUE(good);
}

/* The largest of windows that hold -inf alone, infinities, NaN, and denormals. */
TEST(pooling)
{
    bool good = true;

    for (int kind = 0; kind < 2; kind++) {
        for (size_t pad = 0; pad < 2; pad++) {
            struct check k = {.bound = CHECK_ULP, .ulps = 64, .absolute = 1e-30};
            size_t side = 24, to = side - 2 + 2 * pad;
            struct one_op *o = one_op_new(kind ? MDL_OP_AVG_POOL : MDL_OP_MAX_POOL);
            struct mdl_window *w = &o->op.attr.pool.window;

            *w = (struct mdl_window){.rank = 2,
                                     .kernel = {3, 3},
                                     .stride = {1, 1},
                                     .dilation = {1, 1},
                                     .pad_begin = {pad, pad},
                                     .pad_end = {pad, pad}};
            o->op.attr.pool.pad_end_model[0] = o->op.attr.pool.pad_end_model[1] = pad;
            o->op.out[0] = one_op_image(o, 1, 32, to, to, 0);
            o->op.in[0] = one_op_image(o, 1, 32, side, side, 0);
            /* sums depend on their order */
            fill_ends(o, o->op.in[0], 32 * 7, 20, kind ? 100.0f : NAN);
            snprintf(o->name, sizeof(o->name), "%s pooling at the ends, pad %zu",
                     kind ? "average" : "max", pad);
            good &= light_finish(o, &k);
        }
    }
    T_TRUE(good);
}

/* Rows whose numbers are all huge, all tiny, infinite or not a number. */
TEST(softmax_of_rows)
{
    bool good = true;

    for (int log = 0; log < 2; log++) {
        for (size_t step = 1; step <= 3000; step = step == 1 ? 10 : step * 300) {
            struct check k = {.bound = CHECK_ULP, .ulps = 4096, .absolute = 1e-5};
            size_t dim[2] = {ENDS, 48};
            struct one_op *o = one_op_new(MDL_OP_SOFTMAX);

            o->op.attr.softmax.axis = 1;
            o->op.attr.softmax.log = log;
            o->op.out[0] = one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 2, dim, NULL);
            o->op.in[0] = one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 2, dim, NULL);
            fill_ends(o, o->op.in[0], step, 0, NAN);
            snprintf(o->name, sizeof(o->name), "%ssoftmax at the ends, step %zu", log ? "log" : "",
                     step);
            good &= light_finish(o, &k);
        }
    }
    T_TRUE(good);
}

int main(int argc, char **argv)
{
    check_partial = true;
    return t_main(argc, argv);
}
