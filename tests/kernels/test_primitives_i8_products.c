/* SPDX-License-Identifier: Apache-2.0 */
/* Products of quantised matrices. */
#include "tests/harness.h"
#include "tests/kernels/i8_case.h"

/* -128 by -128 and 255 by 255 over thousands of terms: sums near the ends of 32 bits */
TEST(sums_at_the_extremes)
{
    static const int32_t zeros[2][2] = {{127, -128}, {255, 0}};

    for (int type = 0; type < 2; type++) {
        for (int fill = 1; fill <= 2; fill++) {
            for (int z = 0; z < 2; z++) {
                enum mdl_dtype t = type ? MDL_U8 : MDL_I8;
                struct one_op *o = one_op_new(MDL_OP_GEMM);
                struct i8_case k = {.x = t, .w = t, .y = MDL_I8, .fill = fill};
                struct mdl_quant *q;

                snprintf(o->name, sizeof(o->name), "extremes %d %d %d", type, fill, z);
                o->op.in[0] = one_op_tensor(o, t, MDL_HOME_ARENA, 2, (size_t[]){2, 33000}, NULL);
                o->op.in[1] = one_op_tensor(o, t, MDL_HOME_CONST, 2, (size_t[]){3, 33000}, NULL);
                o->op.out[0] = one_op_tensor(o, MDL_I8, MDL_HOME_ARENA, 2, (size_t[]){2, 3}, NULL);
                o->op.attr.gemm.trans_b = true;
                o->op.attr.gemm.alpha = 1;
                q = i8_product_quant(o, &k, 3, 33000);
                q->bias = NULL;
                q->x_zero = zeros[type][z];
                q->w_zero = NULL;
                for (size_t i = 0; i < 3; i++) {
                    ((int32_t *)(q + 1))[i] = i == 1 ? 0 : zeros[type][z];
                    o->scale[i] = 5e-8f;
                }
                q->w_zero = (int32_t *)(q + 1);
                i8_fill(o, o->op.in[0], fill);
                i8_fill(o, o->op.in[1], fill);
                T_TRUE(i8_finish(o, &k, q, "gemm_i8_igemm"));
            }
        }
    }
}

static bool product_run(const struct i8_case *c, const char *expect)
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
    q = i8_product_quant(o, c, n, k);
    i8_add_residual(o, q);
    i8_fill(o, o->op.in[0], c->fill);
    i8_fill_weights(o, c);
    return i8_finish(o, c, q, expect);
}

TEST(products_of_random_shapes)
{
    for (int i = 0; i < t_times(250); i++) {
        struct i8_case c = i8_random_case();

        T_TRUE(product_run(&c, "i8_igemm"));
    }
}

/* weights of 7 bits, which oneDNN multiplies exactly on any CPU */
TEST(narrow_products)
{
    for (int i = 0; i < t_times(60); i++) {
        struct i8_case c = i8_random_case();

        c.narrow = true;
        T_TRUE(product_run(&c, "i8__dnnl"));
    }
}
