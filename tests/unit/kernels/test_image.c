/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images that a first layer reads itself: for every primitive that does, the bits of
 * krn_preprocess() and then the same primitive, and no value of the input ever in memory.
 */
#include "kernels/image/image.h"
#include "tests/harness.h"
#include "tests/kernels/kept_pool.h"
#include "tests/kernels/one_op.h"

#define WIDTH_MAX 3u

/* [COPY to NHWC,] CONV, then the change of sign of that, or a max pooling. Tensors: */
enum { INPUT, OUTPUT, ENTRY, WEIGHTS, CONVOLVED, TENSORS };

struct shape {
    size_t n, c, h, w, o, k, stride, pad;
    bool nhwc; /* the model's input; then there is no COPY */
    bool pool; /* 3x3 of stride 2 and padding 1 */
};

struct net {
    struct mdl_model m;
    struct mdl_storage storages[TENSORS];
    struct mdl_tensor tensors[TENSORS];
    struct mdl_op ops[3];
    struct mdl_io in, out;
    struct krn_net *net;
    struct one_op_buffer weights, arena, scratch;
    size_t conv; /* its index */
    char name[8];
};

static size_t out_of(size_t in, const struct shape *s)
{
    return (in + 2 * s->pad - s->k) / s->stride + 1;
}

static void tensor(struct net *t, size_t i, enum mdl_home home, bool nhwc, size_t n, size_t c,
                   size_t h, size_t w)
{
    size_t bytes = n * c * h * w * sizeof(float);
    struct mdl_storage *s = &t->storages[i];

    t->tensors[i] = (struct mdl_tensor){
        .name = t->name, .dtype = MDL_F32, .storage = i, .rank = 4, .dim = {n, c, h, w}};
    ptrdiff_t planes[4] = {(ptrdiff_t)(c * h * w), (ptrdiff_t)(h * w), (ptrdiff_t)w, 1};
    ptrdiff_t pixels[4] = {planes[0], 1, (ptrdiff_t)(w * c), (ptrdiff_t)c};

    memcpy(t->tensors[i].stride, nhwc ? pixels : planes, sizeof(planes));
    *s = (struct mdl_storage){.home = home, .bytes = bytes, .offset = t->m.arena_bytes};
    t->m.arena_bytes += base_align_up(bytes, 64);
}

static void tensors(struct net *t, const struct shape *s)
{
    size_t ho = out_of(s->h, s), wo = out_of(s->w, s);
    size_t half = s->pool ? 2 : 1; /* of an odd number the larger half */

    tensor(t, INPUT, MDL_HOME_INPUT, s->nhwc, s->n, s->c, s->h, s->w);
    tensor(t, OUTPUT, MDL_HOME_OUTPUT, true, s->n, s->o, (ho + half - 1) / half,
           (wo + half - 1) / half);
    tensor(t, ENTRY, MDL_HOME_ARENA, true, s->n, s->c, s->h, s->w);
    tensor(t, WEIGHTS, MDL_HOME_CONST, false, s->o, s->c, s->k, s->k);
    tensor(t, CONVOLVED, MDL_HOME_ARENA, true, s->n, s->o, ho, wo);
    if (s->nhwc) { /* the input is [N][H][W][C], the convolution reads a view of it */
        t->tensors[ENTRY].storage = INPUT;
        t->tensors[INPUT].dim[1] = s->h;
        t->tensors[INPUT].dim[2] = s->w;
        t->tensors[INPUT].dim[3] = s->c;
        t->tensors[INPUT].stride[1] = (ptrdiff_t)(s->w * s->c);
        t->tensors[INPUT].stride[2] = (ptrdiff_t)s->c;
        t->tensors[INPUT].stride[3] = 1;
    }
    t->weights = one_op_buffer_new(t->storages[WEIGHTS].bytes, 4);
    t->storages[WEIGHTS].data = t->weights.data;
    for (size_t i = 0; i < t->weights.bytes / sizeof(float); i++) {
        float w = (float)t_range(-1000, 1000) / 1000.0f;

        memcpy(t->weights.data + i * sizeof(w), &w, sizeof(w));
    }
}

static void operators(struct net *t, const struct shape *s)
{
    for (size_t i = 0; i < 3; i++) {
        t->ops[i] = (struct mdl_op){.name = t->name,
                                    .in = {MDL_NONE, MDL_NONE, MDL_NONE, MDL_NONE},
                                    .out = {MDL_NONE, MDL_NONE},
                                    .residual_in = MDL_NONE};
    }
    t->conv = s->nhwc ? 0 : 1;
    t->ops[0].kind = MDL_OP_COPY;
    t->ops[0].in[0] = INPUT;
    t->ops[0].out[0] = ENTRY;
    struct mdl_op *op = &t->ops[t->conv];

    op->kind = MDL_OP_CONV;
    op->in[0] = ENTRY;
    op->in[1] = WEIGHTS;
    op->out[0] = CONVOLVED;
    op->attr.conv.groups = 1;
    op->attr.conv.window = (struct mdl_window){.rank = 2,
                                               .kernel = {s->k, s->k},
                                               .stride = {s->stride, s->stride},
                                               .dilation = {1, 1},
                                               .pad_begin = {s->pad, s->pad},
                                               .pad_end = {s->pad, s->pad}};
    if (s->pool) {
        op[1].kind = MDL_OP_MAX_POOL;
        op[1].attr.pool.window = (struct mdl_window){.rank = 2,
                                                     .kernel = {3, 3},
                                                     .stride = {2, 2},
                                                     .dilation = {1, 1},
                                                     .pad_begin = {1, 1},
                                                     .pad_end = {1, 1}};
        op[1].attr.pool.pad_end_model[0] = op[1].attr.pool.pad_end_model[1] = 1;
    } else {
        op[1].kind = MDL_OP_UNARY;
        op[1].act = MDL_ACT_NEG;
    }
    op[1].in[0] = CONVOLVED;
    op[1].out[0] = OUTPUT;
}

/* @t may not be moved from then on. @only: the primitive that is to run the convolution. */
static bool net_init(struct net *t, const struct shape *s, const struct mdl_preproc *pre,
                     const char *only)
{
    char error[MDL_ERROR_MAX];

    *t = (struct net){.name = "image"};
    t->m = (struct mdl_model){.name = t->name,
                              .storage_count = TENSORS,
                              .tensor_count = TENSORS,
                              .op_count = s->nhwc ? 2 : 3,
                              .input_count = 1,
                              .output_count = 1,
                              .storages = t->storages,
                              .tensors = t->tensors,
                              .ops = t->ops,
                              .inputs = &t->in,
                              .outputs = &t->out,
                              .preproc = *pre};
    t->m.preproc.nhwc = s->nhwc;
    tensors(t, s);
    operators(t, s);
    t->in = (struct mdl_io){t->name, INPUT, t->storages[INPUT].bytes, s->nhwc ? MDL_NONE : 0};
    t->out = (struct mdl_io){t->name, OUTPUT, t->storages[OUTPUT].bytes, MDL_NONE};
    if (krn_net_new(&t->m, only, error, &t->net) != 0) {
        fprintf(stderr, "krn_net_new: %s\n", error);
        return false;
    }
    t->arena = one_op_buffer_new(t->m.arena_bytes, 64);
    t->scratch = one_op_buffer_new(krn_net_scratch_bytes(t->net, WIDTH_MAX), 64);
    return true;
}

static void net_deinit(struct net *t)
{
    krn_net_free(t->net);
    one_op_buffer_free(&t->weights);
    one_op_buffer_free(&t->arena);
    one_op_buffer_free(&t->scratch);
}

/* An image up to the last byte that it may be read at. */
struct source {
    struct krn_image img;
    struct one_op_buffer at;
};

static void source_init(struct source *s, enum krn_pixfmt format, size_t w, size_t h, size_t pad)
{
    static const uint32_t bytes[KRN_PIX_COUNT] = {3, 3, 1, 1, 2};

    s->img = (struct krn_image){.format = format,
                                .width = (uint32_t)w,
                                .height = (uint32_t)h,
                                .stride = (uint32_t)(w * bytes[format] + pad)};
    s->at = one_op_buffer_new(krn_image_bytes(&s->img), 1);
    s->img.data = s->at.data;
    for (size_t i = 0; i < s->at.bytes; i++) {
        s->at.data[i] = (uint8_t)t_random();
    }
}

/* Other bytes where no pixel is. */
static void source_repad(struct source *s, size_t pad)
{
    for (size_t row = s->img.stride; pad > 0 && row <= s->at.bytes; row += s->img.stride) {
        for (size_t i = row - pad; i < row; i++) {
            s->at.data[i] ^= 0xff;
        }
    }
}

/* Runs the net on @values, or, where that is NULL, on @img, op by op with @cut. */
static void run(struct net *t, const void *values, const struct krn_image *img, size_t width,
                bool cut, struct one_op_buffer *out)
{
    const void *inputs[1] = {values ? values : t->arena.data + t->storages[INPUT].offset};
    void *outputs[1] = {out->data};
    struct krn_mem mem = {t->arena.data, inputs, outputs, values ? NULL : img};
    struct krn_exec exec = {kept_pool(width), width, t->scratch.data, 0};
    size_t ops = t->m.op_count;

    memset(t->arena.data, ONE_OP_PATTERN, t->arena.bytes);
    memset(out->data, ONE_OP_PATTERN, out->bytes);
    for (size_t i = 0; cut && i < ops; i++) {
        krn_net_run_ops(t->net, i, i, &mem, &exec);
    }
    if (!cut) {
        krn_net_run_ops(t->net, 0, ops - 1, &mem, &exec);
    }
}

/* Was anything written where the image would be converted to? */
static bool is_untouched(const struct net *t)
{
    const struct mdl_storage *s = &t->storages[t->conv == 0 ? INPUT : ENTRY];

    for (size_t i = 0; i < s->bytes; i++) {
        if (t->arena.data[s->offset + i] != ONE_OP_PATTERN) {
            return false;
        }
    }
    return true;
}

struct image_case {
    struct shape s;
    struct mdl_preproc pre;
    enum krn_pixfmt format;
    size_t pad, width;
    bool cut, other_size;
};

static bool case_passes(const struct krn_primitive *v, const struct image_case *k)
{
    base_cleanup(net_deinit) struct net t;
    struct source src;
    struct one_op_buffer values, want, got;
    struct krn_exec exec = {.width = 1};
    size_t more = k->other_size ? 2 : 0;
    bool direct = !k->other_size && (!k->cut || k->s.nhwc), ok;
    char only[256];

    /* the convolution adds up in the same order where it is run by itself */
    snprintf(only, sizeof(only), "%s,conv_f32_nhwc_stem%s", v->name, strstr(v->name, "__"));
    if (!net_init(&t, &k->s, &k->pre, only)) {
        return false;
    }
    source_init(&src, k->format, k->s.w + more, k->s.h, k->pad);
    values = one_op_buffer_new(t.in.bytes, 4);
    want = one_op_buffer_new(t.out.bytes, 4);
    got = one_op_buffer_new(t.out.bytes, 4);
    exec.scratch = t.scratch.data;
    krn_preprocess(&src.img, &t.m.preproc, &t.tensors[INPUT], values.data, &exec);
    run(&t, values.data, NULL, 1, false, &want);
    source_repad(&src, k->pad);
    run(&t, NULL, &src.img, k->width, k->cut, &got);
    ok = memcmp(want.data, got.data, got.bytes) == 0 && is_untouched(&t) == direct &&
         one_op_buffer_intact(&got) && one_op_buffer_intact(&t.arena) &&
         one_op_buffer_intact(&t.scratch);
    if (!ok) {
        fprintf(stderr,
                "%s: %zux%zux%zux%zu%s -> %zu, %zux%zu/%zu pad %zu, format %d, %zu more bytes a "
                "row, bgr %d, width %zu, cut %d, other size %d: %s\n",
                v->name, k->s.n, k->s.c, k->s.h, k->s.w, k->s.nhwc ? " nhwc" : "", k->s.o, k->s.k,
                k->s.k, k->s.stride, k->s.pad, (int)k->format, k->pad, k->pre.bgr, k->width, k->cut,
                k->other_size,
                memcmp(want.data, got.data, got.bytes) ? "another answer"
                                                       : "not read as it should be");
    }
    one_op_buffer_free(&src.at);
    one_op_buffer_free(&values);
    one_op_buffer_free(&want);
    one_op_buffer_free(&got);
    return ok;
}

static bool pools(const struct krn_primitive *v)
{
    return strstr(v->name, "_pool__") != NULL;
}

/* Return: it takes a pair that begins with the change of layout. */
static bool takes_planes(const struct krn_primitive *v)
{
    return v->fused && !pools(v);
}

static struct image_case random_case(const struct krn_primitive *v)
{
    static const size_t channels[] = {3, 3, 3, 1, 2, 4, 7};
    struct image_case k = {
        .s = {.n = (size_t)t_range(1, 2),
              .c = channels[t_range(0, 6)],
              .h = (size_t)t_range(1, 40),
              .w = (size_t)t_range(1, 300),
              .o = (size_t)t_range(1, 20),
              .k = (size_t)t_range(2, 7),
              .stride = (size_t)t_range(1, 4),
              .nhwc = !takes_planes(v) && t_range(0, 1),
              .pool = pools(v)},
        .pre = {.known = t_range(0, 3) != 0, .bgr = t_range(0, 1)},
        .format = (enum krn_pixfmt)t_range(0, KRN_PIX_COUNT - 1),
        .pad = (size_t)(t_range(0, 1) ? 0 : t_range(1, 9)),
        .width = (size_t)t_range(1, WIDTH_MAX),
        .cut = t_range(0, 3) == 0,
        .other_size = t_range(0, 3) == 0,
    };

    k.s.pad = (size_t)t_range(0, (int)k.s.k - 1);
    k.s.h = base_align_up(base_max(k.s.h, k.s.k), 2);
    k.s.w = base_align_up(base_max(k.s.w, k.s.k), 2);
    if (k.format < KRN_PIX_NV12) { /* the others are of even size */
        k.s.h += (size_t)t_range(0, 1);
        k.s.w += (size_t)t_range(0, 1);
    }
    for (size_t c = 0; c < 4; c++) {
        k.pre.mean[c] = (float)t_range(-100, 25500) / 100.0f;
        k.pre.std[c] = (float)t_range(1, 25500) / 100.0f;
    }
    return k;
}

/* Every row that reads images, with every kind of image in turn. */
TEST(the_same_bits_as_by_way_of_memory)
{
    size_t count, rows = 0;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        if (!v[i].from_image || (v[i].needs & ~krn_cpu_features())) {
            continue;
        }
        rows++;
        for (int r = 0; r < t_times(60); r++) {
            struct image_case k = random_case(&v[i]);

            T_TRUE(case_passes(&v[i], &k));
        }
    }
    T_TRUE(rows >= 2);
}

/* The usual first layer, of many bands, for every format and team. */
TEST(first_layer_of_a_real_network)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        for (int f = 0; v[i].from_image && f < KRN_PIX_COUNT; f++) {
            struct image_case k = {.s = {1, 3, 112, 224, 16, f % 2 ? 3 : 7, 2, f % 2,
                                         takes_planes(&v[i]) ? false : f % 2, pools(&v[i])},
                                   .pre = {.known = true,
                                           .mean = {123.675f, 116.28f, 103.53f},
                                           .std = {58.395f, 57.12f, 57.375f, 1}},
                                   .format = (enum krn_pixfmt)f,
                                   .pad = 5,
                                   .width = (size_t)f % WIDTH_MAX + 1};

            if (!(v[i].needs & ~krn_cpu_features())) {
                T_TRUE(case_passes(&v[i], &k));
            }
        }
    }
}

/* What is made of the image has to be there for all that read it. */
TEST(a_second_reader_needs_the_values)
{
    struct shape s = {1, 3, 12, 12, 4, 3, 1, 1, false};
    struct mdl_preproc pre = {.known = false};
    struct net t;

    T_TRUE(net_init(&t, &s, &pre, "conv_f32_nhwc_igemm"));
    T_EQ(krn_image_reader(&t.m), 1);
    t.ops[2].residual_in = ENTRY;
    T_EQ(krn_image_reader(&t.m), MDL_NONE);
    t.ops[2].residual_in = MDL_NONE;
    t.out.tensor = ENTRY;
    T_EQ(krn_image_reader(&t.m), MDL_NONE);
    t.out.tensor = OUTPUT;
    t.m.preproc.nhwc = true; /* by a sidecar that is wrong: the channels are rows */
    T_EQ(krn_image_reader(&t.m), MDL_NONE);
    t.m.preproc.nhwc = false;
    t.tensors[ENTRY].dtype = MDL_I8;
    T_EQ(krn_image_reader(&t.m), MDL_NONE);
    t.tensors[ENTRY].dtype = MDL_F32;
    t.m.op_count = 1;
    T_EQ(krn_image_reader(&t.m), MDL_NONE);
    t.m.op_count = 3;
    t.m.input_count = 0;
    T_EQ(krn_image_reader(&t.m), MDL_NONE);
    net_deinit(&t);
}

TEST_MAIN()
