/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Primitives that run two ops as one, against the references of both, one after the other: real
 * pairs of layers (made smaller) and random ones, alone and as a team.
 *
 * With M1 = |w1| |x| + |shift1| (the reference on absolute values) what lies between is at most M1
 * and wrong by at most 2 n1 u L1 M1, L1 the slope of its element function; the second convolution
 * adds up |w2| of that and is wrong by 2 n2 u S2 itself, S2 = |w2| M1 + |shift2| + |residual|. So
 * the whole is wrong by at most 2 u L2 (n1 L1 + n2) S2.
 */
#include <math.h>

#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/check_values.h"

#define PRIMITIVES_MAX 256u
#define WIDTH_MAX 3u

static size_t exercised[PRIMITIVES_MAX];

struct pair_case {
    size_t n, c, h, w, o, k, stride, pad;
    bool dw_first;
    bool planes; /* a change of layout from NCHW, then a convolution of k x k */
    bool pool;   /* a convolution of k x k, then a max pooling: */
    size_t pool_k, pool_stride, pool_pad;
    size_t x_pixel, y_pixel; /* 0: dense */
    size_t x_row;            /* elements between two rows of x that are no pixels */
    enum mdl_act act[2];
    enum mdl_residual residual; /* of the second */
    bool in_place;              /* the residual lies where the result is written */
};

/* The model: tensors, and two ops beside each other as krn_primitive.supports() sees them. */
struct pair {
    struct one_op *o;
    struct mdl_op ops[2];
    float *scale[2], *shift[2];
};

static size_t out_of(size_t in, const struct pair_case *k)
{
    return (in + 2 * k->pad - k->k) / k->stride + 1;
}

static size_t add_copy(struct pair *p, const struct pair_case *k)
{
    struct mdl_op *op = &p->o->op;

    op->kind = MDL_OP_COPY;
    op->in[0] =
        one_op_tensor(p->o, MDL_F32, MDL_HOME_INPUT, 4, (size_t[]){k->n, k->c, k->h, k->w}, NULL);
    op->out[0] = one_op_image(p->o, k->n, k->c, k->h, k->w, k->x_pixel ? k->c + k->x_pixel : 0);
    check_fill(p->o, op->in[0], 1.0f);
    p->ops[0] = *op;
    op->kind = MDL_OP_CONV;
    return op->out[0];
}

static size_t add_conv(struct pair *p, size_t i, size_t x, const struct pair_case *k, bool dw)
{
    const struct mdl_tensor *in = &p->o->tensors[x];
    struct mdl_op *op = &p->o->op;
    bool window = dw || k->planes || k->pool;
    size_t c = in->dim[1], o = dw ? c : k->o, side = window ? k->k : 1;
    size_t stride = window ? k->stride : 1, pad = window ? k->pad : 0;
    size_t h = window ? out_of(in->dim[2], k) : in->dim[2];
    size_t w = window ? out_of(in->dim[3], k) : in->dim[3];

    op->in[0] = x;
    op->in[1] = one_op_tensor(p->o, MDL_F32, MDL_HOME_CONST, 4,
                              (size_t[]){o, dw ? 1 : c, side, side}, NULL);
    op->out[0] = one_op_image(p->o, in->dim[0], o, h, w, i == 1 && k->y_pixel ? o + k->y_pixel : 0);
    op->attr.conv.groups = dw ? c : 1;
    op->attr.conv.window = (struct mdl_window){.rank = 2,
                                               .kernel = {side, side},
                                               .stride = {stride, stride},
                                               .dilation = {1, 1},
                                               .pad_begin = {pad, pad},
                                               .pad_end = {pad, pad}};
    check_fill(p->o, op->in[1], 0.5f);
    p->o->scale = p->o->shift = NULL;
    op->scale = op->shift = NULL;
    op->residual_in = MDL_NONE;
    check_epilogue(p->o, o, k->act[i], i == 1 ? k->residual : MDL_RESIDUAL_NONE);
    if (i == 1 && k->in_place) { /* check_epilogue() may have made it wider */
        const struct mdl_tensor *y = &p->o->tensors[op->out[0]];

        op->residual_in = one_op_tensor(p->o, MDL_F32, MDL_HOME_ARENA, 4, y->dim, y->stride);
        check_fill(p->o, op->residual_in, 1.0f);
    }
    p->scale[i] = p->o->scale;
    p->shift[i] = p->o->shift;
    p->ops[i] = *op;
    return op->out[0];
}

static void add_pool(struct pair *p, size_t x, const struct pair_case *k)
{
    const struct mdl_tensor *in = &p->o->tensors[x];
    struct mdl_op *op = &p->o->op;
    size_t n = in->dim[0], c = in->dim[1];
    size_t h = (in->dim[2] + 2 * k->pool_pad - k->pool_k) / k->pool_stride + 1;
    size_t w = (in->dim[3] + 2 * k->pool_pad - k->pool_k) / k->pool_stride + 1;

    *op = (struct mdl_op){.kind = MDL_OP_MAX_POOL, .residual_in = MDL_NONE};
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        op->in[i] = i ? MDL_NONE : x;
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        op->out[i] = MDL_NONE;
    }
    op->out[0] = one_op_image(p->o, n, c, h, w, k->y_pixel ? c + k->y_pixel : 0);
    op->attr.pool.window = (struct mdl_window){.rank = 2,
                                               .kernel = {k->pool_k, k->pool_k},
                                               .stride = {k->pool_stride, k->pool_stride},
                                               .dilation = {1, 1},
                                               .pad_begin = {k->pool_pad, k->pool_pad},
                                               .pad_end = {k->pool_pad, k->pool_pad}};
    op->attr.pool.pad_end_model[0] = op->attr.pool.pad_end_model[1] = k->pool_pad;
    p->ops[1] = *op;
}

static void pair_init(struct pair *p, const struct pair_case *k)
{
    size_t x, between;

    *p = (struct pair){.o = one_op_new(MDL_OP_CONV)};
    if (k->planes) {
        add_conv(p, 1, add_copy(p, k), k, false);
    } else {
        x = one_op_image_apart(p->o, k->n, k->c, k->h, k->w, k->x_pixel ? k->c + k->x_pixel : 0,
                               k->x_row);
        check_fill(p->o, x, 1.0f);
        between = add_conv(p, 0, x, k, k->dw_first);
        if (k->pool) {
            add_pool(p, between, k);
        } else {
            add_conv(p, 1, between, k, !k->dw_first);
        }
    }
    p->o->m.ops = p->ops;
    p->o->m.op_count = 2;
    snprintf(p->o->name, sizeof(p->o->name),
             "%s first: %zux%zux%zux%zu -> %zu, %zux%zu/%zu pad %zu pixels %zu,%zu rows %zu act "
             "%d,%d res %d in place %d pool %zu/%zu pad %zu",
             k->planes     ? "planes"
             : k->pool     ? "before pooling"
             : k->dw_first ? "depthwise"
                           : "1x1",
             k->n, k->c, k->h, k->w, k->o, k->k, k->k, k->stride, k->pad, k->x_pixel, k->y_pixel,
             k->x_row, (int)k->act[0], (int)k->act[1], (int)k->residual, k->in_place, k->pool_k,
             k->pool_stride, k->pool_pad);
}

static void pair_deinit(struct pair *p)
{
    for (size_t i = 0; i < 2; i++) {
        free(p->scale[i]);
        free(p->shift[i]);
    }
    p->o->scale = p->o->shift = NULL;
    one_op_free(p->o);
}

static struct krn_call call_of(const struct pair *p, size_t i, void *out)
{
    const struct mdl_op *op = &p->ops[i];
    struct krn_call c = {.model = &p->o->m, .op = op, .width = 1, .out = {out}};

    c.in[0] = p->o->buffers[op->in[0]].data;
    c.in[1] = op->kind == MDL_OP_CONV ? p->o->buffers[op->in[1]].data : NULL;
    c.residual = op->residual == MDL_RESIDUAL_NONE ? NULL : p->o->buffers[op->residual_in].data;
    return c;
}

static void run_reference(const struct pair *p, void *out)
{
    size_t count;
    const struct krn_primitive *table = krn_primitives(&count);

    for (size_t i = 0; i < 2; i++) {
        const struct krn_primitive *v = table;

        while (v->kind != p->ops[i].kind || !v->reference) {
            v++;
        }
        struct krn_call c = call_of(p, i, i ? out : p->o->buffers[p->ops[0].out[0]].data);

        v->run(&c);
    }
}

static void abs_one(void *arg, size_t at, size_t index)
{
    float v;

    memcpy(&v, (uint8_t *)arg + at, sizeof(v));
    v = fabsf(v);
    memcpy((uint8_t *)arg + at, &v, sizeof(v));
}

/* S2; destroys the pair's inputs */
static void run_magnitude(struct pair *p, void *out)
{
    for (size_t t = 0; t < p->o->m.tensor_count; t++) {
        one_op_each(&p->o->tensors[t], abs_one, p->o->buffers[t].data);
    }
    for (size_t i = 0; i < 2; i++) {
        for (size_t c = 0; c < p->ops[i].channels; c++) {
            if (p->scale[i]) {
                p->scale[i][c] = fabsf(p->scale[i][c]);
            }
            if (p->shift[i]) {
                p->shift[i][c] = fabsf(p->shift[i][c]);
            }
        }
        p->ops[i].act = MDL_ACT_NONE;
    }
    run_reference(p, out);
}

struct result {
    struct one_op_buffer out;
    const struct krn_primitive *primitive;
    size_t width;
};

static struct one_op_buffer out_new(const struct pair *p)
{
    return one_op_buffer_new(one_op_span(&p->o->tensors[p->ops[1].out[0]]), sizeof(float));
}

/* Return: whether it wrote only what it may */
static bool run_fused(const struct pair *p, const struct pair_case *k, pthreadpool_t pool,
                      struct result *r)
{
    const struct krn_primitive *v = r->primitive;
    struct one_op_buffer packed = one_op_buffer_new(v->packed_bytes(&p->o->m, p->ops), 64);
    struct one_op_buffer scratch =
        one_op_buffer_new(v->scratch_bytes(&p->o->m, p->ops, r->width), 64);
    const struct one_op_buffer *between = &p->o->buffers[p->ops[0].out[0]];
    struct krn_call next = call_of(p, 1, r->out.data), call = call_of(p, 0, between->data);
    const struct one_op_buffer *x = &p->o->buffers[p->ops[0].in[0]];
    uint8_t *odd = malloc(x->bytes + 1); /* a client's buffer lies anywhere */
    bool ok;

    if (k->planes) {
        memcpy(odd + 1, x->data, x->bytes);
        call.in[0] = odd + 1;
    }
    memset(between->data, ONE_OP_PATTERN, between->bytes);
    if (k->in_place) {
        memcpy(r->out.data, next.residual, r->out.bytes);
        next.residual = r->out.data;
    }
    v->pack(&p->o->m, p->ops, packed.data);
    call.next = &next;
    call.packed = packed.data;
    call.pool = next.pool = pool;
    call.width = next.width = r->width;
    call.scratch = next.scratch = scratch.data;
    v->run(&call);
    ok = one_op_buffer_intact(&packed) && one_op_buffer_intact(&scratch) &&
         one_op_buffer_intact(&r->out);
    for (size_t i = 0; i < between->bytes; i++) {
        ok &= between->data[i] == ONE_OP_PATTERN; /* what lies between is written nowhere else */
    }
    one_op_buffer_free(&packed);
    one_op_buffer_free(&scratch);
    free(odd);
    return ok;
}

struct compare {
    const struct result *result;
    const uint8_t *want, *magnitude;
    const char *name;
    double factor;
    bool failed;
};

static void compare_one(void *arg, size_t at, size_t index)
{
    struct compare *c = arg;
    float got, want, magnitude;
    double bound;

    memcpy(&got, c->result->out.data + at, sizeof(got));
    memcpy(&want, c->want + at, sizeof(want));
    memcpy(&magnitude, c->magnitude + at, sizeof(magnitude));
    bound = 2 * c->factor * 0x1p-24 * (double)magnitude + 2e-6;
    if (!(fabs((double)got - (double)want) <= bound) && !c->failed) {
        c->failed = true;
        fprintf(stderr, "%s, %s, width %zu: element %zu is %.9g, reference %.9g, bound %.3g\n",
                c->result->primitive->name, c->name, c->result->width, index, (double)got,
                (double)want, bound);
    }
}

static pthreadpool_t pool_of(size_t width)
{
    static pthreadpool_t pools[WIDTH_MAX + 1];

    if (width > 1 && !pools[width]) {
        pools[width] = pthreadpool_create(width);
    }
    return pools[width];
}

/* Return: how many primitives took the pair, or SIZE_MAX where one failed */
static size_t pair_run(const struct pair_case *k, const char *expect)
{
    size_t count, used = 0, taken = 0;
    const struct krn_primitive *v = krn_primitives(&count);
    static struct result results[16];
    struct pair p;
    struct one_op_buffer want, magnitude;
    struct compare c;
    double n[2];
    bool ok = true;

    pair_init(&p, k);
    n[k->dw_first ? 0 : 1] = (double)(k->k * k->k);
    n[k->dw_first ? 1 : 0] = (double)k->c;
    if (k->planes || k->pool) {
        n[k->planes ? 0 : 1] = 0; /* a pooling adds no error of its own */
        n[k->planes ? 1 : 0] = (double)(k->c * k->k * k->k);
    }
    want = out_new(&p);
    run_reference(&p, want.data);
    for (size_t i = 0; i < count && ok; i++) {
        if (!v[i].fused || v[i].kind != p.ops[0].kind || !check_wants(v[i].name) ||
            (v[i].needs & ~krn_cpu_features()) || !v[i].supports(&p.o->m, p.ops)) {
            continue;
        }
        taken += strstr(v[i].name, expect) != NULL;
        /* shares are checked by doing the parts one after the other; a team now and then */
        bool team = exercised[i]++ % 16 == 0;
        for (size_t width = 1; width <= WIDTH_MAX && ok; width++) {
            struct result *r = &results[used++];

            *r = (struct result){out_new(&p), &v[i], width};
            ok = run_fused(&p, k, team ? pool_of(width) : NULL, r);
            if (!ok) {
                fprintf(stderr, "%s, %s, width %zu: wrote outside its buffers\n", v[i].name,
                        p.o->name, width);
            }
        }
    }
    c = (struct compare){.want = want.data, .name = p.o->name};
    c.factor =
        check_act_lipschitz(&p.ops[1]) * ((n[0] + 8) * check_act_lipschitz(&p.ops[0]) + n[1] + 8);
    magnitude = out_new(&p);
    run_magnitude(&p, magnitude.data);
    c.magnitude = magnitude.data;
    for (size_t i = 0; i < used; i++) {
        c.result = &results[i];
        if (ok) {
            one_op_each(&p.o->tensors[p.ops[1].out[0]], compare_one, &c);
        }
        one_op_buffer_free(&results[i].out);
    }
    one_op_buffer_free(&want);
    one_op_buffer_free(&magnitude);
    pair_deinit(&p);
    return ok && !c.failed ? taken : SIZE_MAX;
}

static bool pair_passes(const struct pair_case *k)
{
    size_t taken = pair_run(k, k->planes     ? "planes"
                               : k->pool     ? "stem_pool"
                               : k->dw_first ? "dw_pw"
                                             : "pw_dw");

    return taken != SIZE_MAX && taken > 0;
}

/* MobileNets: channels and windows as they are, height and width smaller */
TEST(pairs_of_real_networks)
{
    static const struct pair_case pairs[] = {
        {.c = 32, .h = 24, .w = 24, .o = 64, .k = 3, .stride = 1, .pad = 1, .dw_first = true},
        {.c = 64, .h = 24, .w = 24, .o = 128, .k = 3, .stride = 2, .pad = 1, .dw_first = true},
        {.c = 512, .h = 6, .w = 7, .o = 96, .k = 3, .stride = 1, .pad = 1, .dw_first = true},
        {.c = 1024, .h = 7, .w = 7, .o = 40, .k = 3, .stride = 1, .pad = 1, .dw_first = true},
        {.c = 96, .h = 20, .w = 56, .o = 24, .k = 5, .stride = 2, .pad = 2, .dw_first = true},
        {.c = 16, .h = 26, .w = 112, .o = 96, .k = 3, .stride = 2, .pad = 1},
        {.c = 24, .h = 40, .w = 56, .o = 144, .k = 3, .stride = 1, .pad = 1},
        {.c = 24, .h = 14, .w = 14, .o = 96, .k = 5, .stride = 2, .pad = 2},
        {.c = 40, .h = 14, .w = 14, .o = 240, .k = 5, .stride = 1, .pad = 2},
        {.c = 96, .h = 7, .w = 7, .o = 576, .k = 3, .stride = 1, .pad = 1},
    };

    for (size_t i = 0; i < base_array_count(pairs); i++) {
        struct pair_case k = pairs[i];

        k.n = 1;
        k.act[0] = i % 2 ? MDL_ACT_CLIP : MDL_ACT_RELU;
        k.act[1] = k.dw_first ? MDL_ACT_NONE : MDL_ACT_HARD_SWISH;
        k.residual = i % 3 == 0 ? MDL_RESIDUAL_AFTER_ACT : MDL_RESIDUAL_NONE;
        T_TRUE(pair_passes(&k));
    }
}

TEST(pairs_of_random_shapes)
{
    for (int i = 0; i < t_times(120); i++) {
        struct pair_case k = {.n = (size_t)t_range(1, 2),
                              .c = (size_t)t_range(2, 40),
                              .h = (size_t)t_range(1, 20),
                              .w = (size_t)t_range(1, 20),
                              .o = (size_t)t_range(2, 70),
                              .k = (size_t)t_range(1, 6),
                              .stride = (size_t)t_range(1, 3),
                              .dw_first = t_range(0, 1),
                              .x_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                              .y_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                              .x_row = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                              .act = {(enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS),
                                      (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS)},
                              .residual = (enum mdl_residual)t_range(0, 2)};

        k.pad = (size_t)t_range(0, (int)k.k - 1);
        k.h = base_max(k.h, k.k);
        k.w = base_max(k.w, k.k);
        T_TRUE(pair_passes(&k));
    }
}

/* images of many strips, with a residual that lies where the result is written */
TEST(pairs_of_many_strips)
{
    for (int i = 0; i < t_times(12); i++) {
        struct pair_case k = {.n = 1 + (size_t)i % 2,
                              .c = (size_t)t_range(30, 90),
                              .h = (size_t)t_range(40, 60),
                              .w = (size_t)t_range(60, 90),
                              .o = (size_t)t_range(30, 90),
                              .k = i % 4 < 2 ? 3 : 5,
                              .stride = (size_t)t_range(1, 2),
                              .pad = (size_t)t_range(0, 2),
                              .dw_first = i % 4 % 2,
                              .residual = MDL_RESIDUAL_BEFORE_ACT,
                              .in_place = true};

        T_TRUE(pair_passes(&k));
    }
}

TEST(first_layers_read_planes)
{
    for (int i = 0; i < t_times(80); i++) {
        struct pair_case k = {.n = (size_t)t_range(1, 2),
                              .c = (size_t)(t_range(0, 1) ? 3 : t_range(1, 7)),
                              .h = (size_t)t_range(1, 40),
                              .w = (size_t)t_range(1, 50),
                              .o = (size_t)t_range(1, 40),
                              .k = (size_t)t_range(2, 7),
                              .stride = (size_t)t_range(1, 4),
                              .planes = true,
                              .x_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                              .y_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9)),
                              .act = {MDL_ACT_NONE, (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS)},
                              .residual = (enum mdl_residual)t_range(0, 2)};

        if (i == 0) { /* one that every primitive takes */
            k.c = k.k = 3;
            k.h = 40;
            k.w = 60;
            k.stride = 2;
        }
        k.pad = (size_t)t_range(0, (int)k.k - 1);
        k.h = base_max(k.h, k.k);
        k.w = base_max(k.w, k.k);
        T_TRUE(pair_passes(&k));
    }
}

/* first layers of ResNets, SqueezeNet and AlexNet with their poolings, made smaller, and others */
TEST(first_layers_with_pooling)
{
    static const struct pair_case pairs[] = {
        {.h = 40, .w = 60, .o = 64, .k = 7, .stride = 2, .pad = 3, .pool_k = 3, .pool_pad = 1},
        {.h = 41, .w = 61, .o = 64, .k = 3, .stride = 2, .pool_k = 3},
        {.h = 70, .w = 80, .o = 64, .k = 11, .stride = 4, .pad = 2, .pool_k = 3},
        {.h = 24, .w = 30, .o = 16, .k = 3, .stride = 1, .pad = 1, .pool_k = 2},
        {.h = 40, .w = 50, .o = 40, .k = 3, .stride = 2, .pad = 1, .pool_k = 8},
    };

    for (int i = 0; i < t_times(60); i++) {
        struct pair_case k = pairs[(size_t)i % base_array_count(pairs)];

        k.pool = true;
        k.c = 3;
        k.n = (size_t)t_range(1, 2);
        k.pool_stride = 2;
        k.act[0] = MDL_ACT_RELU;
        if ((size_t)i >= base_array_count(pairs)) {
            k.act[0] = (enum mdl_act)t_range(0, MDL_ACT_SOFTPLUS);
            k.h = (size_t)t_range(16, 40);
            k.w = (size_t)t_range(52, 70); /* at least one row of tiles, whatever the stride */
            k.o = (size_t)t_range(1, 90);
            k.pool_k = (size_t)t_range(1, 4);
            k.pool_stride = (size_t)t_range(1, 4);
            k.pool_pad = (size_t)t_range(0, (int)k.pool_k - 1);
            k.x_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9));
            k.y_pixel = (size_t)(t_range(0, 2) ? 0 : t_range(1, 9));
        }
        k.pool_k = base_min(k.pool_k, (k.h + 2 * k.pad - k.k) / k.stride + 1);
        T_TRUE(pair_passes(&k));
    }
}

TEST(other_pairs_are_refused)
{
    struct pair_case k = {.n = 1, .c = 8, .h = 6, .w = 6, .o = 8, .k = 3, .stride = 1, .pad = 1};
    struct pair p;
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (int change = 0; change < 4; change++) {
        pair_init(&p, &k);
        switch (change) {
        case 0: /* two others */
            p.ops[1].kind = MDL_OP_UNARY;
            break;
        case 1: /* not one behind the other */
            p.ops[1].in[0] = p.ops[0].in[0];
            break;
        case 2: /* the first adds something */
            p.ops[0].residual = MDL_RESIDUAL_BEFORE_ACT;
            p.ops[0].residual_in = p.ops[0].out[0];
            break;
        default: /* a second 1x1 */
            p.ops[1] = p.ops[0];
            p.ops[1].in[0] = p.ops[0].out[0];
            break;
        }
        for (size_t i = 0; i < count; i++) {
            if (v[i].fused && v[i].kind == MDL_OP_CONV && !(v[i].needs & ~krn_cpu_features())) {
                T_TRUE(!v[i].supports(&p.o->m, p.ops));
            }
        }
        pair_deinit(&p);
    }
}

TEST(no_fused_row_is_untested)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    if (check_partial) {
        T_SKIP("only some cases were asked for");
    }
    for (size_t i = 0; i < count; i++) {
        if (v[i].fused && check_wants(v[i].name) && !(v[i].needs & ~krn_cpu_features())) {
            T_TRUE(exercised[i] > 0);
        }
    }
}

CHECK_MAIN()
