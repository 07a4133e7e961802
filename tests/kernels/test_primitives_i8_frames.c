/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one row, and convolutions, of several frames at once, against the reference on a
 * matrix or images of the frames. */
#include "tests/harness.h"
#include "tests/kernels/against_ref.h"
#include "tests/kernels/conv_shape.h"
#include "tests/kernels/i8_case.h"
#include "tests/kernels/primitive_run.h"

#define FRAMES_MAX 20

/* Makes @o, whose rows are frames, the model of one frame; it shares @all's memory. */
static void one_frame(const struct one_op *all, struct one_op *o)
{
    *o = *all;
    o->m.storages = o->storages;
    o->m.tensors = o->tensors;
    o->m.ops = &o->op;
    o->m.units = &o->unit;
    o->tensors[o->op.in[0]].dim[0] = 1;
    o->tensors[o->op.out[0]].dim[0] = 1;
}

static size_t ran;

static bool can(const struct krn_primitive *v, const struct one_op *o)
{
    return v->kind == o->op.kind && v->frames_at_once && check_wants(v->name) &&
           !(v->needs & ~krn_cpu_features()) && v->supports(&o->m, &o->op) &&
           v->frames_at_once(&o->m, &o->op);
}

/* Return: whether all frames at once give @want, and no memory outside the buffers was written. */
static bool run_at_once(const struct krn_primitive *v, const struct one_op *all,
                        const struct one_op *one, size_t width, const struct one_op_buffer *want)
{
    struct one_op_buffer packed = one_op_buffer_new(v->packed_bytes(&one->m, &one->op), 64);
    size_t frames = all->tensors[all->op.in[0]].dim[0];
    struct one_op_buffer scratch = one_op_buffer_new(
        v->frames_scratch_bytes ? v->frames_scratch_bytes(&one->m, &one->op, width, frames)
                                : v->scratch_bytes(&one->m, &one->op, width),
        64);
    struct one_op_buffer got[MDL_OP_OUT_MAX];
    struct krn_call call;
    bool ok;

    primitive_out_new(all, got);
    call = one_op_call(all, got, NULL, width, packed.data, scratch.data);
    call.model = &one->m;
    call.op = &one->op;
    call.frames = frames;
    v->pack(&one->m, &one->op, packed.data);
    v->run(&call);
    ok = one_op_buffer_intact(&scratch) && one_op_buffer_intact(&got[0]) &&
         memcmp(want->data, got[0].data, want->bytes) == 0;
    if (!ok) {
        fprintf(stderr, "%s, %s, width %zu: differs or wrote outside\n", v->name, all->name, width);
    }
    primitive_out_free(got);
    one_op_buffer_free(&scratch);
    one_op_buffer_free(&packed);
    return ok;
}

/* Runs @all, whose rows are frames, by every primitive that can, and frees it. Return: success */
static bool finish(struct one_op *all, struct mdl_quant *q)
{
    struct one_op one;
    struct one_op_buffer want[MDL_OP_OUT_MAX];
    size_t count;
    bool ok = true;
    const struct krn_primitive *v = krn_primitives(&count);

    one_frame(all, &one);
    primitive_out_new(all, want);
    primitive_run(primitive_reference(all->op.kind), all, want,
                  &(struct primitive_how){.width = 1});
    for (size_t i = 0; i < count || i8_emulated(i - count); i++) {
        const struct krn_primitive *p = i < count ? &v[i] : i8_emulated(i - count);

        for (size_t width = 1; width <= 3 && can(p, &one); width += 2) {
            ok &= run_at_once(p, all, &one, width, &want[0]);
            ran++;
        }
    }
    primitive_out_free(want);
    free(q);
    one_op_free(all);
    return ok;
}

/* A product of one row of @k for @frames frames, @n results each. */
static struct one_op *product(const struct i8_case *c, size_t frames, size_t n, size_t k,
                              struct mdl_quant **ret_q)
{
    bool gemm = t_range(0, 1), trans = gemm && t_range(0, 1);
    struct one_op *o = one_op_new(gemm ? MDL_OP_GEMM : MDL_OP_MATMUL);

    snprintf(o->name, sizeof(o->name), "%zu frames %zux%zu gemm %d trans %d types %d %d %d fill %d",
             frames, n, k, gemm, trans, (int)c->x, (int)c->w, (int)c->y, c->fill);
    o->op.in[0] = one_op_tensor(o, c->x, MDL_HOME_ARENA, 2, (size_t[]){frames, k}, NULL);
    o->op.in[1] = one_op_tensor(o, c->w, MDL_HOME_CONST, 2,
                                trans ? (size_t[]){n, k} : (size_t[]){k, n}, NULL);
    o->op.out[0] = one_op_tensor(o, c->y, MDL_HOME_ARENA, 2, (size_t[]){frames, n}, NULL);
    o->op.attr.gemm.trans_b = trans;
    o->op.attr.gemm.alpha = 1;
    *ret_q = i8_product_quant(o, c, n, k);
    i8_fill(o, o->op.in[0], c->fill);
    i8_fill_weights(o, c);
    return o;
}

static struct i8_case exact_case(void)
{
    struct i8_case c = i8_random_case();

    c.act = (enum mdl_act)t_range(0, MDL_ACT_LEAKY_RELU);
    c.residual = MDL_RESIDUAL_NONE;
    return c;
}

TEST(frames_at_once_of_random_shapes)
{
    for (int i = 0; i < t_times(250); i++) {
        struct i8_case c = exact_case();
        struct mdl_quant *q;
        struct one_op *o = product(&c, (size_t)t_range(2, FRAMES_MAX), (size_t)t_range(1, 150),
                                   (size_t)t_range(1, 130), &q);

        T_TRUE(finish(o, q));
    }
    T_TRUE(ran > 0 || getenv("PIPED_TEST_PRIMITIVES"));
}

/* more bytes of input than a band of a product of many rows takes */
TEST(frames_at_once_of_long_rows)
{
    for (int i = 0; i < 4; i++) {
        struct i8_case c = exact_case();
        struct mdl_quant *q;
        struct one_op *o =
            product(&c, FRAMES_MAX, (size_t)t_range(1, 70), (size_t)t_range(25000, 26000), &q);

        T_TRUE(finish(o, q));
    }
}

/* Images of fewer tiles than a block takes, with weights too large to be transformed beforehand. */
TEST(frames_at_once_of_convolutions)
{
    size_t before = ran;

    for (int i = 0; i < t_times(12); i++) {
        struct i8_case c = exact_case();
        struct conv_shape s = conv_square(t_range(0, 1) ? 136 : 210, (size_t)t_range(4, 9),
                                          (size_t)t_range(4, 9), 140, 3, 1);
        struct mdl_quant *q;
        struct one_op *o;

        c.narrow = true; /* so that F(4x4) takes it */
        s.n = (size_t)t_range(2, 8);
        s.y_pixel = t_range(0, 1) ? s.o : s.o + 5;
        o = i8_conv(&s, &c, "frames", &q);
        T_TRUE(finish(o, q));
    }
    T_TRUE(ran > before || getenv("PIPED_TEST_PRIMITIVES"));
}

TEST(a_residual_is_left_to_one_frame_at_a_time)
{
    struct i8_case c = exact_case();
    struct one_op *o;
    struct mdl_quant *q;
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    c.y = MDL_U8;
    c.residual = MDL_RESIDUAL_BEFORE_ACT;
    o = product(&c, 1, 20, 20, &q);
    i8_add_residual(o, q);
    for (size_t i = 0; i < count; i++) {
        T_TRUE(!can(&v[i], o));
    }
    free(q);
    one_op_free(o);
}
