/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every variant of the operators on quantised values against the exact reference, to the bit: types
 * of both signs, zero points at both ends, sums at the extremes, ties, tile edges, guard bytes.
 * Element functions that are not linear exist for real results alone and have a bound.
 */
#include "tests/harness.h"
#include "tests/kernels/check.h"
#include "tests/kernels/conv_shape.h"
#include "tests/kernels/layers.h"

static int32_t low_of(enum mdl_dtype t)
{
    return t == MDL_I8 ? INT8_MIN : 0;
}

static int32_t random_zero(enum mdl_dtype t)
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

static enum mdl_dtype random_type(void)
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

static void fill_bytes(struct one_op *o, size_t tensor, int kind)
{
    struct bytes b = {o->buffers[tensor].data, kind, o->tensors[tensor].dtype == MDL_I8, false};

    one_op_each(&o->tensors[tensor], byte_one, &b);
}

static size_t image(struct one_op *o, enum mdl_dtype dtype, size_t n, size_t c, size_t h, size_t w,
                    size_t pixel)
{
    size_t p = pixel ? pixel : c;

    return one_op_tensor(
        o, dtype, MDL_HOME_ARENA, 4, (size_t[]){n, c, h, w},
        (ptrdiff_t[]){(ptrdiff_t)(h * w * p), 1, (ptrdiff_t)(w * p), (ptrdiff_t)p});
}

/* the rows that dot products have, on emulated ones */
extern const struct krn_variant krn_conv_i8_nhwc_igemm__emulated;
extern const struct krn_variant krn_gemm_i8_igemm__emulated;
extern const struct krn_variant krn_matmul_i8_igemm__emulated;
static size_t emulated_runs;

static const struct krn_variant *emulated_of(enum mdl_op_kind kind)
{
    return kind == MDL_OP_CONV     ? &krn_conv_i8_nhwc_igemm__emulated
           : kind == MDL_OP_GEMM   ? &krn_gemm_i8_igemm__emulated
           : kind == MDL_OP_MATMUL ? &krn_matmul_i8_igemm__emulated
                                   : NULL;
}

static void run_once(const struct krn_variant *v, struct one_op *o, struct one_op_buffer *out,
                     size_t width, bool *ret_intact)
{
    size_t packed_bytes = v->packed_bytes ? v->packed_bytes(&o->m, &o->op) : 0;
    size_t scratch_bytes = v->scratch_bytes ? v->scratch_bytes(&o->m, &o->op, width) : 0;
    struct one_op_buffer packed = one_op_buffer_new(packed_bytes, 64);
    struct one_op_buffer scratch = one_op_buffer_new(scratch_bytes, 64);
    struct krn_call call = one_op_call(o, out, NULL, width, packed.data, scratch.data);

    if (v->pack) {
        v->pack(&o->m, &o->op, packed.data);
    }
    v->run(&call);
    *ret_intact = one_op_buffer_intact(&packed) && one_op_buffer_intact(&scratch) &&
                  one_op_buffer_intact(&out[0]);
    one_op_buffer_free(&packed);
    one_op_buffer_free(&scratch);
}

/* both outputs were filled with one pattern, so gaps are compared too */
static bool check_emulated(struct one_op *o, bool exact)
{
    const struct mdl_tensor *y = &o->tensors[o->op.out[0]];
    const struct krn_variant *v = emulated_of(o->op.kind), *all, *ref = NULL;
    bool ok = true, intact;
    size_t count;

    if (!v || !exact || !check_wants(v->name) || !v->supports(&o->m, &o->op)) {
        return true;
    }
    all = krn_variants(&count);
    for (size_t i = 0; i < count && !ref; i++) {
        ref = all[i].reference && all[i].kind == o->op.kind ? &all[i] : NULL;
    }
    for (size_t width = 1; width <= 2; width++) {
        struct one_op_buffer want = one_op_buffer_new(one_op_span(y), mdl_dtype_bytes(y->dtype));
        struct one_op_buffer got = one_op_buffer_new(one_op_span(y), mdl_dtype_bytes(y->dtype));

        run_once(ref, o, &want, 1, &intact);
        run_once(v, o, &got, width, &intact);
        if (!intact || memcmp(want.data, got.data, want.bytes) != 0) {
            fprintf(stderr, "%s, %s: differs or wrote outside\n", v->name, o->name);
            ok = false;
        }
        one_op_buffer_free(&want);
        one_op_buffer_free(&got);
    }
    emulated_runs++;
    return ok;
}

struct quant_case {
    enum mdl_dtype x, w, y;
    int fill;       /* of x and w, see struct bytes */
    bool zero_is_0; /* of the weights */
    bool narrow;    /* weights are at most 64 from their zero, the type's middle */
    enum mdl_act act;
    enum mdl_residual residual;
};

static struct quant_case random_quant(void)
{
    struct quant_case q = {.x = random_type(),
                           .w = random_type(),
                           .y = t_range(0, 4) ? random_type() : MDL_F32,
                           .fill = t_range(0, 5) ? 0 : (int)t_range(1, 3),
                           .residual = (enum mdl_residual)t_range(0, 2)};

    q.act = (enum mdl_act)t_range(0, q.y == MDL_F32 ? MDL_ACT_SOFTPLUS : MDL_ACT_LEAKY_RELU);
    return q;
}

static void fill_weights(struct one_op *o, const struct quant_case *q)
{
    struct bytes b = {o->buffers[o->op.in[1]].data, q->fill, q->w == MDL_I8, q->narrow};

    one_op_each(&o->tensors[o->op.in[1]], byte_one, &b);
}

/* Zero points, multipliers, biases and the epilogue of a product of @terms terms. */
static struct mdl_quant *product_quant(struct one_op *o, const struct quant_case *k,
                                       size_t channels, size_t terms)
{
    struct mdl_quant *q = calloc(1, sizeof(*q) + 2 * channels * sizeof(int32_t));
    int32_t *zero = (int32_t *)(q + 1), *bias = zero + channels;
    int zeros = k->zero_is_0 ? 0 : k->narrow ? 1 : (int)t_range(0, 3);
    /* none, the type's middle, one for all, one each */
    bool ties = t_range(0, 3) == 0;

    o->scale = malloc(channels * sizeof(float));
    q->x_zero = random_zero(k->x);
    q->y_zero = k->y == MDL_F32 ? 0 : random_zero(k->y);
    for (size_t i = 0; i < channels; i++) {
        zero[i] = zeros == 1   ? (k->w == MDL_I8 ? 0 : 128)
                  : zeros == 2 ? (i ? zero[0] : random_zero(k->w))
                               : random_zero(k->w);
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

static void add_residual(struct one_op *o, struct mdl_quant *q)
{
    const struct mdl_tensor *y = &o->tensors[o->op.out[0]];
    enum mdl_dtype t = random_type();
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
    q->r_zero = random_zero(t);
    q->r_scale = (float)t_range(1, 300) * (y->dtype == MDL_F32 ? 1e-4f : 1e-2f);
    o->op.residual_in = one_op_tensor(o, t, MDL_HOME_ARENA, y->rank, y->dim, stride);
    fill_bytes(o, o->op.residual_in, 0);
}

static bool finish(struct one_op *o, const struct quant_case *k, struct mdl_quant *q,
                   const char *expect)
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

struct conv_case {
    struct conv_shape s;
    struct quant_case q;
};

static bool conv_run(const struct conv_case *k, const char *name, const char *expect)
{
    struct one_op *o = one_op_new(MDL_OP_CONV);
    const struct conv_shape *s = &k->s;
    size_t cg = s->c / s->groups;
    int length = conv_tell(s, name, o->name, sizeof(o->name));
    struct mdl_quant *q;

    snprintf(o->name + length, sizeof(o->name) - (size_t)length,
             " types %d %d %d fill %d act %d res %d", (int)k->q.x, (int)k->q.w, (int)k->q.y,
             k->q.fill, (int)k->q.act, (int)k->q.residual);
    o->op.in[0] = image(o, k->q.x, s->n, s->c, s->h, s->w, s->x_pixel);
    o->op.in[1] =
        one_op_tensor(o, k->q.w, MDL_HOME_CONST, 4, (size_t[]){s->o, cg, s->kh, s->kw}, NULL);
    o->op.out[0] = image(o, k->q.y, s->n, s->o, conv_out_height(s), conv_out_width(s), s->y_pixel);
    o->op.attr.conv.groups = s->groups;
    o->op.attr.conv.window = conv_window(s);
    q = product_quant(o, &k->q, s->o, cg * s->kh * s->kw);
    add_residual(o, q);
    fill_bytes(o, o->op.in[0], k->q.fill);
    fill_weights(o, &k->q);
    return finish(o, &k->q, q, expect);
}

TEST(convs_of_real_networks)
{
    for (size_t i = 0; i < base_array_count(layer_convs); i++) {
        const struct layer_conv *l = &layer_convs[i];
        struct conv_case k = {.s = conv_of_layer(l), .q = random_quant()};

        if (!conv_too_large(&k.s)) {
            T_TRUE(conv_run(&k, l->name, l->groups == l->c ? "i8_nhwc_dw" : "i8_nhwc_igemm"));
        }
    }
}

TEST(convs_of_random_shapes)
{
    for (int i = 0; i < t_times(400); i++) {
        struct conv_case k = {.q = random_quant()};

        k.s = conv_random();
        T_TRUE(conv_run(&k, "random", "i8_nhwc_igemm"));
    }
}

static struct conv_case conv_3x3(size_t c, size_t o, size_t h, size_t w)
{
    return (struct conv_case){.s = conv_square(c, h, w, o, 3, 0), .q = random_quant()};
}

/* F(4x4): every rest of a tile, channels about its blocks, images that share tiles' blocks */
TEST(convs_of_3x3)
{
    for (int i = 0; i < t_times(60); i++) {
        struct conv_case k =
            conv_3x3((size_t)(t_range(0, 3) ? t_range(24, 100) : t_range(120, 270)),
                     (size_t)t_range(24, 70), (size_t)t_range(8, 15), (size_t)t_range(8, 15));

        k.s.n = (size_t)t_range(1, 3);
        conv_random_pads(&k.s, 2);
        conv_random_pixels(&k.s);
        T_TRUE(conv_run(&k, "3x3", "i8_nhwc"));
    }
}

/* 9 c 128 255 is just below 2^26 for 228 channels, and F(4x4) has to know */
TEST(sums_at_the_ends_of_f4x4)
{
    for (int fill = 1; fill <= 3; fill++) {
        for (size_t c = 228; c <= 229; c++) {
            struct conv_case k = conv_3x3(c, 24, 8, 8);

            k.q = (struct quant_case){.x = fill == 2 ? MDL_U8 : MDL_I8,
                                      .w = MDL_I8,
                                      .y = MDL_F32,
                                      .fill = fill,
                                      .zero_is_0 = true};
            T_TRUE(conv_run(&k, "range", c == 228 || fill == 2 ? "i8_nhwc_f4x4" : "i8_nhwc_igemm"));
        }
    }
}

/* sizes around the register tiles: every count of pixels and channels once */
TEST(convs_around_tile_edges)
{
    for (size_t i = 1; i <= 70; i++) {
        struct conv_case k = {.s = conv_square(1 + i % 9, 1, i, 71 - i, 1, 0), .q = random_quant()};

        T_TRUE(conv_run(&k, "tile edge", "i8_nhwc_igemm"));
        k.s.o = i;
        T_TRUE(conv_run(&k, "tile edge", "i8_nhwc_igemm"));
    }
}

/* -128 by -128 and 255 by 255 over thousands of terms: sums near the ends of 32 bits */
TEST(sums_at_the_extremes)
{
    static const int32_t zeros[2][2] = {{127, -128}, {255, 0}};

    for (int type = 0; type < 2; type++) {
        for (int fill = 1; fill <= 2; fill++) {
            for (int z = 0; z < 2; z++) {
                enum mdl_dtype t = type ? MDL_U8 : MDL_I8;
                struct one_op *o = one_op_new(MDL_OP_GEMM);
                struct quant_case k = {.x = t, .w = t, .y = MDL_I8, .fill = fill};
                struct mdl_quant *q;

                snprintf(o->name, sizeof(o->name), "extremes %d %d %d", type, fill, z);
                o->op.in[0] = one_op_tensor(o, t, MDL_HOME_ARENA, 2, (size_t[]){2, 33000}, NULL);
                o->op.in[1] = one_op_tensor(o, t, MDL_HOME_CONST, 2, (size_t[]){3, 33000}, NULL);
                o->op.out[0] = one_op_tensor(o, MDL_I8, MDL_HOME_ARENA, 2, (size_t[]){2, 3}, NULL);
                o->op.attr.gemm.trans_b = true;
                o->op.attr.gemm.alpha = 1;
                q = product_quant(o, &k, 3, 33000);
                q->bias = NULL;
                q->x_zero = zeros[type][z];
                q->w_zero = NULL;
                for (size_t i = 0; i < 3; i++) {
                    ((int32_t *)(q + 1))[i] = i == 1 ? 0 : zeros[type][z];
                    o->scale[i] = 5e-8f;
                }
                q->w_zero = (int32_t *)(q + 1);
                fill_bytes(o, o->op.in[0], fill);
                fill_bytes(o, o->op.in[1], fill);
                T_TRUE(finish(o, &k, q, "gemm_i8_igemm"));
            }
        }
    }
}

static bool product_run(const struct quant_case *c, const char *expect)
{
    bool gemm = t_range(0, 1), trans = gemm && t_range(0, 1);
    size_t m = (size_t)(t_range(0, 2) ? t_range(1, 80) : 1), n = (size_t)t_range(1, 150);
    size_t k = (size_t)t_range(c->narrow ? 2 : 1, 130);
    ptrdiff_t lda = (ptrdiff_t)k + (t_range(0, 2) ? 0 : t_range(1, 5));
    ptrdiff_t ldy = (ptrdiff_t)n + (t_range(0, 2) ? 0 : t_range(1, 5));
    struct one_op *o = one_op_new(gemm ? MDL_OP_GEMM : MDL_OP_MATMUL);
    struct mdl_quant *q;

    snprintf(o->name, sizeof(o->name), "product %zux%zux%zu gemm %d trans %d types %d %d %d", m, k,
             n, gemm, trans, (int)c->x, (int)c->w, (int)c->y);
    o->op.in[0] =
        one_op_tensor(o, c->x, MDL_HOME_ARENA, 2, (size_t[]){m, k}, (ptrdiff_t[]){lda, 1});
    o->op.in[1] = one_op_tensor(o, c->w, MDL_HOME_CONST, 2,
                                trans ? (size_t[]){n, k} : (size_t[]){k, n}, NULL);
    o->op.out[0] =
        one_op_tensor(o, c->y, MDL_HOME_ARENA, 2, (size_t[]){m, n}, (ptrdiff_t[]){ldy, 1});
    o->op.attr.gemm.trans_b = trans;
    o->op.attr.gemm.alpha = 1;
    q = product_quant(o, c, n, k);
    add_residual(o, q);
    fill_bytes(o, o->op.in[0], c->fill);
    fill_weights(o, c);
    return finish(o, c, q, expect);
}

TEST(products_of_random_shapes)
{
    for (int i = 0; i < t_times(250); i++) {
        struct quant_case c = random_quant();

        T_TRUE(product_run(&c, "i8_igemm"));
    }
}

/* weights of 7 bits, which oneDNN multiplies exactly on any CPU */
TEST(narrow_products)
{
    for (int i = 0; i < t_times(60); i++) {
        struct quant_case c = random_quant();

        c.narrow = true;
        T_TRUE(product_run(&c, "i8__dnnl"));
    }
}

TEST(narrow_convs)
{
    for (int i = 0; i < t_times(70); i++) {
        struct conv_case k = {.s = conv_random(), .q = random_quant()};

        k.q.narrow = true;
        T_TRUE(conv_run(&k, "narrow", k.s.groups == 1 && k.s.c > 1 ? "i8_nhwc__dnnl" : "i8_nhwc"));
    }
    for (size_t i = 0; i < base_array_count(layer_convs); i += 4) {
        const struct layer_conv *l = &layer_convs[i];
        struct conv_case k = {.s = conv_of_layer(l), .q = random_quant()};

        k.q.narrow = true;
        if (!conv_too_large(&k.s) && l->groups != l->c) {
            T_TRUE(conv_run(&k, l->name, "i8_nhwc"));
        }
    }
}

/* Bands, and more of them than members: large planes of few channels. */
TEST(narrow_convs_of_many_bands)
{
    for (int i = 0; i < t_times(6); i++) {
        size_t k = i % 2 ? 1 : 3;
        struct conv_case c = {.s = conv_square(4, (size_t)t_range(40, 70), (size_t)t_range(40, 70),
                                               (size_t)t_range(30, 60), k, k / 2),
                              .q = random_quant()};

        c.s.n = (size_t)t_range(1, 2);
        c.q.narrow = true;
        T_TRUE(conv_run(&c, "bands", "i8_nhwc__dnnl"));
    }
}

/* 255 times 1044 weights of 63 is just below 2^24, to which f32 has every integer; with 1045 the
 * row has to leave it, or the sum is off by one, which a zero point of 255 shows. */
TEST(sums_at_the_ends_of_f32)
{
    for (int i = 0; i < 24; i++) {
        struct conv_case k = {.s = conv_square(1044 + (size_t)i % 2, 1, 3, 20, 1, 0)};

        k.q =
            (struct quant_case){.x = MDL_U8, .w = MDL_I8, .y = MDL_F32, .fill = 2, .narrow = true};
        T_TRUE(conv_run(&k, "range", i % 2 ? "i8_nhwc_igemm" : "i8_nhwc__dnnl"));
    }
}

TEST(pools_of_random_shapes)
{
    for (int i = 0; i < t_times(500); i++) {
        bool max = t_range(0, 1);
        struct one_op *o = one_op_new(max ? MDL_OP_MAX_POOL : MDL_OP_AVG_POOL);
        enum mdl_dtype x = random_type(), y = max ? x : random_type();
        size_t c = (size_t)t_range(1, 150), h = (size_t)t_range(1, 9), w = (size_t)t_range(1, 9);
        size_t kh = (size_t)t_range(1, (int64_t)h), kw = (size_t)t_range(1, (int64_t)w);
        size_t s = (size_t)t_range(1, 3), top = (size_t)t_range(0, (int64_t)kh - 1);
        size_t left = (size_t)t_range(0, (int64_t)kw - 1);
        size_t x_pixel = t_range(0, 2) ? 0 : c + (size_t)t_range(1, 9);
        size_t y_pixel = t_range(0, 2) ? 0 : c + (size_t)t_range(1, 9);
        struct quant_case k = {.x = x, .y = y};
        struct mdl_quant *q = calloc(1, sizeof(*q));

        snprintf(o->name, sizeof(o->name), "pool max %d %zux%zux%zu %zux%zu/%zu pad %zu %zu", max,
                 c, h, w, kh, kw, s, top, left);
        o->op.in[0] = image(o, x, 2, c, h, w, x_pixel);
        o->op.out[0] =
            image(o, y, 2, c, (h + 2 * top - kh) / s + 1, (w + 2 * left - kw) / s + 1, y_pixel);
        o->op.attr.pool.window = (struct mdl_window){.rank = 2,
                                                     .kernel = {kh, kw},
                                                     .stride = {s, s},
                                                     .dilation = {1, 1},
                                                     .pad_begin = {top, left},
                                                     .pad_end = {top, left}};
        o->op.attr.pool.pad_end_model[0] = top;
        o->op.attr.pool.pad_end_model[1] = left;
        o->op.attr.pool.count_include_pad = t_range(0, 1);
        q->x_zero = random_zero(x);
        q->y_zero = random_zero(y);
        q->x_scale = t_range(0, 1) ? 0.5f : (float)t_range(1, 300) * 1e-2f;
        o->op.quant = max ? NULL : q;
        fill_bytes(o, o->op.in[0], t_range(0, 5) ? 0 : (int)t_range(1, 3));
        T_TRUE(finish(o, &k, q, "pool_i8"));
    }
}

TEST(sums_of_random_shapes)
{
    for (int i = 0; i < t_times(300); i++) {
        struct one_op *o = one_op_new(MDL_OP_BINARY);
        struct quant_case k = {.y = random_type(), .act = (enum mdl_act)t_range(0, 3)};
        enum mdl_dtype a = random_type(), b = random_type();
        size_t c = (size_t)t_range(1, 90), h = (size_t)t_range(1, 4), w = (size_t)t_range(1, 4);
        struct mdl_quant *q = calloc(1, sizeof(*q));

        snprintf(o->name, sizeof(o->name), "add %zux%zux%zu", c, h, w);
        o->op.in[0] = image(o, a, 1, c, h, w, t_range(0, 2) ? 0 : c + 5);
        o->op.in[1] = image(o, b, 1, c, h, w, t_range(0, 2) ? 0 : c + 7);
        o->op.out[0] = image(o, k.y, 1, c, h, w, t_range(0, 2) ? 0 : c + 3);
        o->op.attr.binary = MDL_BIN_ADD;
        *q = (struct mdl_quant){.x_zero = random_zero(a),
                                .b_zero = random_zero(b),
                                .y_zero = random_zero(k.y),
                                .x_scale = t_range(0, 1) ? 0.5f : (float)t_range(1, 300) * 1e-2f,
                                .b_scale = t_range(0, 1) ? 1.5f : (float)t_range(1, 300) * 1e-2f};
        o->op.quant = q;
        o->op.act = k.act;
        o->op.act_a = k.act == MDL_ACT_CLIP ? -20.25f : 0.125f;
        o->op.act_b = 60.5f;
        fill_bytes(o, o->op.in[0], 0);
        fill_bytes(o, o->op.in[1], 0);
        T_TRUE(finish(o, &k, q, c > 1 ? "binary_i8_add" : NULL));
    }
}

static void real_one(void *arg, size_t at, size_t index)
{
    float v = (float)t_range(-800, 800) * 0.25f;

    switch (t_range(0, 40)) {
    case 0:
        v = NAN;
        break;
    case 1:
        v = INFINITY;
        break;
    case 2:
        v = -INFINITY;
        break;
    case 3:
        v = 3e38f;
        break;
    default:
        break;
    }
    memcpy((uint8_t *)arg + at, &v, sizeof(v));
}

TEST(quantise_and_dequantise)
{
    for (int i = 0; i < t_times(300); i++) {
        bool to_bytes = t_range(0, 1);
        struct one_op *o = one_op_new(to_bytes ? MDL_OP_QUANTIZE : MDL_OP_DEQUANTIZE);
        struct quant_case k = {.y = MDL_U8};
        enum mdl_dtype t = random_type();
        size_t c = (size_t)t_range(1, 90), h = (size_t)t_range(1, 4), w = (size_t)t_range(1, 4);
        float scale = t_range(0, 1) ? 0.5f : (float)t_range(1, 300) * 1e-2f;

        snprintf(o->name, sizeof(o->name), "quantise %d %zux%zux%zu", to_bytes, c, h, w);
        o->op.in[0] = image(o, to_bytes ? MDL_F32 : t, 1, c, h, w, t_range(0, 2) ? 0 : c + 5);
        o->op.in[1] = one_op_tensor(o, MDL_F32, MDL_HOME_CONST, 4, (size_t[]){1, 1, 1, 1}, NULL);
        o->op.in[2] = one_op_tensor(o, t, MDL_HOME_CONST, 4, (size_t[]){1, 1, 1, 1}, NULL);
        o->op.out[0] = image(o, to_bytes ? t : MDL_F32, 1, c, h, w, t_range(0, 2) ? 0 : c + 3);
        memcpy(o->buffers[o->op.in[1]].data, &scale, sizeof(scale));
        *o->buffers[o->op.in[2]].data = (uint8_t)random_zero(t);
        if (to_bytes) {
            one_op_each(&o->tensors[o->op.in[0]], real_one, o->buffers[o->op.in[0]].data);
        } else {
            fill_bytes(o, o->op.in[0], 0);
        }
        T_TRUE(finish(o, &k, NULL, c > 1 ? "quantize_i8" : NULL));
    }
}

static bool ours(const struct krn_variant *v)
{
    return strstr(v->name, "_i8_") != NULL;
}

TEST(no_variant_is_untested)
{
    if (check_partial) {
        T_SKIP("only some cases were asked for");
    }
    T_EQ(check_unexercised(ours), 0);
    T_TRUE(emulated_runs > (size_t)t_times(100) || !check_wants("i8__emulated"));
}

CHECK_MAIN()
