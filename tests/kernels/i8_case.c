/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/kernels/i8_case.h"

#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/primitive_run.h"

static int32_t low_of(enum mdl_dtype t)
{
    return t == MDL_I8 ? INT8_MIN : 0;
}

int32_t i8_random_zero(enum mdl_dtype t)
{
    switch (t_range(0, 3)) {
    case 0:
        return low_of(t);
    case 1:
        return low_of(t) + 255;
    case 2:
        return t == MDL_I8 ? 0 : 128;
    default:
        return low_of(t) + (int32_t)t_range(0, 255);
    }
}

enum mdl_dtype i8_random_type(void)
{
    return t_range(0, 1) ? MDL_I8 : MDL_U8;
}

struct bytes {
    uint8_t *data;
    int kind; /* 0: random, 1: the lowest, 2: the highest, 3: either */
    bool is_signed, narrow;
};

static void byte_one(void *arg, size_t at, size_t index)
{
    const struct bytes *b = arg;
    uint8_t low = b->is_signed ? 0x80 : 0, high = b->is_signed ? 0x7f : 0xff;
    bool up = b->kind == 2 || (b->kind == 3 && t_range(0, 1));

    if (b->narrow) {
        int64_t v = b->kind == 0 ? t_range(-64, 64) : b->kind == 2 ? 63 : up ? 64 : -64;

        b->data[at] = (uint8_t)(v + (b->is_signed ? 0 : 128));
        return;
    }
    b->data[at] = b->kind == 0 ? (uint8_t)t_range(0, 255) : up ? high : low;
}

void i8_fill(struct one_op *o, size_t tensor, int kind)
{
    struct bytes b = {o->buffers[tensor].data, kind, o->tensors[tensor].dtype == MDL_I8, false};

    one_op_each(&o->tensors[tensor], byte_one, &b);
}

size_t i8_image(struct one_op *o, enum mdl_dtype dtype, size_t n, size_t c, size_t h, size_t w,
                size_t pixel)
{
    size_t p = pixel ? pixel : c;

    return one_op_tensor(
        o, dtype, MDL_HOME_ARENA, 4, (size_t[]){n, c, h, w},
        (ptrdiff_t[]){(ptrdiff_t)(h * w * p), 1, (ptrdiff_t)(w * p), (ptrdiff_t)p});
}

/* the primitives that dot products have, on emulated ones */
extern const struct krn_primitive krn_conv_i8_nhwc_dw_dot__emulated;
extern const struct krn_primitive krn_conv_i8_nhwc_igemm__emulated;
extern const struct krn_primitive krn_gemm_i8_igemm__emulated;
extern const struct krn_primitive krn_matmul_i8_igemm__emulated;
static const struct krn_primitive *const emulated[] = {
    &krn_conv_i8_nhwc_dw_dot__emulated, &krn_conv_i8_nhwc_igemm__emulated,
    &krn_gemm_i8_igemm__emulated, &krn_matmul_i8_igemm__emulated};
static size_t emulated_runs;

const struct krn_primitive *i8_emulated(size_t i)
{
    return i < base_array_count(emulated) ? emulated[i] : NULL;
}

/* both outputs were filled with one pattern, so gaps are compared too */
static bool check_one(const struct krn_primitive *v, struct one_op *o)
{
    bool ok = true, intact;

    if (v->kind != o->op.kind || !check_wants(v->name) || !v->supports(&o->m, &o->op)) {
        return true;
    }
    for (size_t width = 1; width <= 2; width++) {
        struct one_op_buffer want[MDL_OP_OUT_MAX], got[MDL_OP_OUT_MAX];

        primitive_out_new(o, want);
        primitive_out_new(o, got);
        primitive_run(primitive_reference(o->op.kind), o, want,
                      &(struct primitive_how){.width = 1});
        intact = primitive_run(v, o, got, &(struct primitive_how){.width = width});
        if (!intact || memcmp(want[0].data, got[0].data, want[0].bytes) != 0) {
            fprintf(stderr, "%s, %s: differs or wrote outside\n", v->name, o->name);
            ok = false;
        }
        primitive_out_free(want);
        primitive_out_free(got);
    }
    emulated_runs++;
    return ok;
}

static bool check_emulated(struct one_op *o, bool exact)
{
    bool ok = true;

    for (size_t i = 0; i < base_array_count(emulated); i++) {
        ok &= !exact || check_one(emulated[i], o);
    }
    return ok;
}

size_t i8_emulated_runs(void)
{
    return emulated_runs;
}

struct i8_case i8_random_case(void)
{
    struct i8_case q = {.x = i8_random_type(),
                        .w = i8_random_type(),
                        .y = t_range(0, 4) ? i8_random_type() : MDL_F32,
                        .fill = t_range(0, 5) ? 0 : (int)t_range(1, 3),
                        .residual = (enum mdl_residual)t_range(0, 2)};

    q.act = (enum mdl_act)t_range(0, q.y == MDL_F32 ? MDL_ACT_SOFTPLUS : MDL_ACT_LEAKY_RELU);
    return q;
}

void i8_fill_weights(struct one_op *o, const struct i8_case *q)
{
    struct bytes b = {o->buffers[o->op.in[1]].data, q->fill, q->w == MDL_I8, q->narrow};

    one_op_each(&o->tensors[o->op.in[1]], byte_one, &b);
}

struct mdl_quant *i8_product_quant(struct one_op *o, const struct i8_case *k, size_t channels,
                                   size_t terms)
{
    struct mdl_quant *q = calloc(1, sizeof(*q) + 2 * channels * sizeof(int32_t));
    int32_t *zero = (int32_t *)(q + 1), *bias = zero + channels;
    int zeros = k->zero_is_0 ? 0 : k->narrow ? 1 : (int)t_range(0, 3);
    /* none, the type's middle, one for all, one each */
    bool ties = t_range(0, 3) == 0;

    o->scale = malloc(channels * sizeof(float));
    q->x_zero = i8_random_zero(k->x);
    q->y_zero = k->y == MDL_F32 ? 0 : i8_random_zero(k->y);
    for (size_t i = 0; i < channels; i++) {
        zero[i] = zeros == 1   ? (k->w == MDL_I8 ? 0 : 128)
                  : zeros == 2 ? (i ? zero[0] : i8_random_zero(k->w))
                               : i8_random_zero(k->w);
        bias[i] = (int32_t)t_range(-20000, 20000);
        o->scale[i] = ties ? 1.0f / (float)(1 << t_range(1, 14))
                           : (float)t_range(1, 2000) * 1e-5f / (float)terms;
        if (k->y == MDL_F32) {
            o->scale[i] *= 0.01f; /* element functions are tested where they are not flat */
        }
    }
    q->w_zero = zeros ? zero : NULL;
    q->bias = t_range(0, 3) ? bias : NULL;
    o->op.scale = o->scale;
    o->op.channels = channels;
    o->op.quant = q;
    o->op.act = k->act;
    o->op.act_a = k->act == MDL_ACT_CLIP ? -20.25f : 0.125f;
    o->op.act_b = k->act == MDL_ACT_CLIP ? 60.5f : 0.5f;
    if (k->act == MDL_ACT_CLIP && t_range(0, 3) == 0) {
        o->op.act_a = 0.0f;
        o->op.act_b = 1000.0f;
    }
    o->op.residual = k->residual;
    return q;
}

void i8_add_residual(struct one_op *o, struct mdl_quant *q)
{
    const struct mdl_tensor *y = &o->tensors[o->op.out[0]];
    enum mdl_dtype t = i8_random_type();
    ptrdiff_t stride[MDL_RANK_MAX];

    if (o->op.residual == MDL_RESIDUAL_NONE) {
        return;
    }
    memcpy(stride, y->stride, sizeof(stride));
    if (y->rank == 4 && t_range(0, 1)) { /* part of something wider */
        stride[3] = (ptrdiff_t)y->dim[1] + 3;
        stride[2] = stride[3] * (ptrdiff_t)y->dim[3];
        stride[0] = stride[2] * (ptrdiff_t)y->dim[2];
    }
    q->r_zero = i8_random_zero(t);
    q->r_scale = (float)t_range(1, 300) * (y->dtype == MDL_F32 ? 1e-4f : 1e-2f);
    o->op.residual_in = one_op_tensor(o, t, MDL_HOME_ARENA, y->rank, y->dim, stride);
    i8_fill(o, o->op.residual_in, 0);
}

bool i8_finish(struct one_op *o, const struct i8_case *k, struct mdl_quant *q, const char *expect)
{
    struct check c = {.bound = CHECK_EXACT, .expect = expect};
    bool ok;

    if (k->y == MDL_F32 && k->act > MDL_ACT_LEAKY_RELU) {
        c = (struct check){.bound = CHECK_ULP, .ulps = 64, .absolute = 4e-6, .expect = expect};
    }
    ok = check_run(o, &c) && check_emulated(o, c.bound == CHECK_EXACT);
    free(q);
    one_op_free(o);
    return ok;
}

struct one_op *i8_conv(const struct conv_shape *s, const struct i8_case *k, const char *name,
                       struct mdl_quant **ret_quant)
{
    struct one_op *o = one_op_new(MDL_OP_CONV);
    size_t cg = s->c / s->groups;
    int length = conv_tell(s, name, o->name, sizeof(o->name));
    struct mdl_quant *q;

    snprintf(o->name + length, sizeof(o->name) - (size_t)length,
             " types %d %d %d fill %d act %d res %d", (int)k->x, (int)k->w, (int)k->y, k->fill,
             (int)k->act, (int)k->residual);
    o->op.in[0] = i8_image(o, k->x, s->n, s->c, s->h, s->w, s->x_pixel);
    o->op.in[1] =
        one_op_tensor(o, k->w, MDL_HOME_CONST, 4, (size_t[]){s->o, cg, s->kh, s->kw}, NULL);
    o->op.out[0] = i8_image(o, k->y, s->n, s->o, conv_out_height(s), conv_out_width(s), s->y_pixel);
    o->op.attr.conv.groups = s->groups;
    o->op.attr.conv.window = conv_window(s);
    q = i8_product_quant(o, k, s->o, cg * s->kh * s->kw);
    i8_add_residual(o, q);
    i8_fill(o, o->op.in[0], k->fill);
    i8_fill_weights(o, k);
    *ret_quant = q;
    return o;
}
