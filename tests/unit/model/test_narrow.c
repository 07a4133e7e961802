/* SPDX-License-Identifier: Apache-2.0 */
/* Integers of 16 bits, which are kept in 32: they wrap, or their operator is refused. */
#include "tests/unit/model/counted_rows.h"

/* y = @op of x [4] and a constant [1], both of @type */
static void one_op(struct ran *a, const char *op, enum mdl_narrow type, int32_t constant)
{
    *a = (struct ran){0};
    gb_init(&a->g, 18);
    gb_typed_input(&a->g, "x", MDL_I32, 1, (int64_t[]){4});
    a->g.inputs[0].narrow = type;
    gb_const(&a->g, "one", MDL_I32, 1, (size_t[]){1}, &constant);
    a->g.weights[0].narrow = type;
    gb_node(&a->g, op, "n", "x one", "y");
    gb_output(&a->g, "y");
}

static bool gives(const char *op, enum mdl_narrow type, int32_t constant, const int32_t *x,
                  const int32_t *want)
{
    RAN(a);
    one_op(&a, op, type, constant);
    a.g.nodes[0].input_count = strcmp(op, "Neg") == 0 ? 1 : 2;
    return run(&a, (const float *)(const void *)x) && memcmp(a.r.outputs[0], want, 16) == 0;
}
#define I32S(...) ((const int32_t[]){__VA_ARGS__})

TEST(arithmetic_wraps_at_16_bits)
{
    T_TRUE(gives("Sub", MDL_NARROW_U16, 1, I32S(0, 1, 65535, 7), I32S(65535, 0, 65534, 6)));
    T_TRUE(gives("Add", MDL_NARROW_U16, 2, I32S(65535, 65534, 0, 7), I32S(1, 0, 2, 9)));
    T_TRUE(gives("Mul", MDL_NARROW_U16, 65535, I32S(65535, 2, 1, 0), I32S(1, 65534, 65535, 0)));
    T_TRUE(gives("Add", MDL_NARROW_I16, 1, I32S(32767, -1, -32768, 5), I32S(-32768, 0, -32767, 6)));
    T_TRUE(gives("Mul", MDL_NARROW_I16, 256, I32S(128, -129, 127, 1),
                 I32S(-32768, 32512, 32512, 256)));
    T_TRUE(
        gives("Div", MDL_NARROW_I16, -1, I32S(-32768, 32767, 3, 0), I32S(-32768, -32767, -3, 0)));
    T_TRUE(gives("Neg", MDL_NARROW_I16, 0, I32S(-32768, 32767, 3, 0), I32S(-32768, -32767, -3, 0)));
    T_TRUE(gives("Add", MDL_NARROW_NONE, 1, I32S(65535, 32767, 3, 0), I32S(65536, 32768, 4, 1)));
}

TEST(casts_know_the_width)
{
    RAN(a);
    one_op(&a, "Add", MDL_NARROW_I16, 1);
    a.g.graph.node_count = a.g.graph.output_count = 0;
    gb_node(&a.g, "Cast", "", "x", "u");
    gb_int(&a.g, "to", 4); /* uint16 */
    gb_node(&a.g, "Cast", "", "u", "wide");
    gb_int(&a.g, "to", 6); /* int32: its sums do not wrap at 16 bits */
    gb_const(&a.g, "two", MDL_I32, 1, (size_t[]){1}, &(const int32_t){2});
    gb_node(&a.g, "Add", "", "wide two", "y");
    gb_output(&a.g, "y");
    T_TRUE(run(&a, (const float *)(const void *)I32S(-1, -32768, 0, 5)));
    T_TRUE(memcmp(a.r.outputs[0], I32S(65537, 32770, 2, 7), 16) == 0);
}

TEST(what_is_not_known_is_refused)
{
    static const struct {
        const char *op;
        enum mdl_narrow type;
        const char *why;
    } rows[] = {
        {"Sum", MDL_NARROW_U16, "node n (Sum): Sum of uint16 is not supported"},
        {"Pow", MDL_NARROW_I16, "node n (Pow): Pow of int16 is not supported"},
        {"MatMul", MDL_NARROW_U16, "MatMul"},
    };

    for (size_t i = 0; i < base_array_count(rows); i++) {
        RAN(a);
        one_op(&a, rows[i].op, rows[i].type, 1);
        a.m = gb_compile(&a.g, &options);
        T_TRUE(!a.m);
        T_CONTAINS(a.g.error, rows[i].why);
    }
    RAN(mixed);
    one_op(&mixed, "Add", MDL_NARROW_U16, 1);
    mixed.g.weights[0].narrow = MDL_NARROW_I16;
    mixed.m = gb_compile(&mixed.g, &options);
    T_TRUE(!mixed.m);
    T_CONTAINS(mixed.g.error, "inputs 0 and 1 have different types");
}

TEST_MAIN()
