/* SPDX-License-Identifier: Apache-2.0 */
/* Borders that are rounded: what keeps its class, what does not, and what cannot be judged. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/boards/border_judge.h"
#include "daemon/boards/spread_table.h"
#include "model/segment/segment.h"
#include "tests/harness.h"

#define SIDE 14u
#define INPUT (3 * SIDE * SIDE)
#define EXAMPLES 192u

/* The depthwise and the 1x1 convolution behind it run as one, unless a border is between them. */
static struct mdl_model *load(int classes)
{
    static const char text[] =
        "{\"seed\": 5, \"input\": {\"shape\": [3, 14, 14]}, \"layers\": ["
        "{\"op\": \"conv\", \"out\": 16, \"kernel\": 3, \"pad\": 1},"
        "{\"op\": \"dwconv\", \"kernel\": 3, \"pad\": 1},"
        "{\"op\": \"conv\", \"out\": 16, \"kernel\": 1, \"name\": \"a\"},"
        "{\"op\": \"conv\", \"out\": 16, \"kernel\": 3, \"pad\": 1, \"name\": \"b\"},"
        "{\"op\": \"add\", \"in\": [\"a\", \"b\"]},"
        "{\"op\": \"fc\", \"out\": %d}]}";
    struct mdl_model *m = NULL;
    char error[MDL_ERROR_MAX];
    FILE *f = fopen("judged.json", "w");

    if (!f || fprintf(f, text, classes) < 0 || fclose(f) != 0 ||
        mdl_load("judged.json", NULL, error, &m) < 0) {
        return NULL;
    }
    unlink("judged.json");
    return m;
}

static float pixels[EXAMPLES][INPUT];

static void draw(struct krn_examples *e, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < INPUT; k++) {
            pixels[i][k] = (float)t_range(-1000000, 1000000) / 1000;
        }
        T_EQ(krn_examples_add(e, "x.f32", pixels[i], sizeof(pixels[i]), false), 0);
    }
}

static const _Atomic bool go = false, stop = true;

TEST(f16_keeps_classes_and_i8_does_not_where_they_are_close)
{
    struct krn_examples e = KRN_EXAMPLES_NULL, some = KRN_EXAMPLES_NULL;
    struct dmn_border_verdict few, f16, i8;
    struct mdl_model *ten = load(10), *many = load(1000);
    char error[MDL_ERROR_MAX];

    T_TRUE(ten && many);
    draw(&e, EXAMPLES);
    draw(&some, 16);
    T_EQ(krn_examples_add(&some, "short.f32", pixels[0], 8, false), 0);
    T_EQ(dmn_border_judge(ten, &some, BRD_AS_F16, &go, error, &few), 0);
    T_EQ(few.judged, 16);
    T_EQ(some.left_out, 1);
    T_TRUE(few.agreement == 1.0);
    T_TRUE(few.error_mean > 0 && few.error_mean <= few.error_most && few.error_most < 0.01);
    T_EQ(dmn_border_judge(many, &e, BRD_AS_F16, &go, error, &f16), 0);
    T_EQ(dmn_border_judge(many, &e, BRD_AS_I8, &go, error, &i8), 0);
    T_TRUE(i8.agreement < 1.0);
    T_TRUE(i8.agreement <= f16.agreement);

    krn_examples_deinit(&e);
    krn_examples_deinit(&some);
    mdl_free(ten);
    mdl_free(many);
}

TEST(as_it_is_nothing_changes)
{
    struct krn_examples e = KRN_EXAMPLES_NULL;
    struct mdl_model *m = load(10);
    struct dmn_border_verdict v;
    char error[MDL_ERROR_MAX];

    T_TRUE(m != NULL);
    draw(&e, 4);
    T_EQ(dmn_border_judge(m, &e, BRD_AS_IS, &go, error, &v), 0);
    T_TRUE(v.agreement == 1.0);
    T_TRUE(v.error_most < 1e-5); /* what is fused over two units sums in another order */
    krn_examples_deinit(&e);
    mdl_free(m);
}

/* Bytes in front of each unit, on a link. */
static bool border_bytes(const struct mdl_model *m, enum brd_encoding encoding,
                         struct tun_problem *ret)
{
    struct tun_ep ep = {.name = "big", .cores = 1, .speed = 1};

    return tun_problem_init(ret, m->unit_count, &ep, 1) == 0 &&
           dmn_spread_units(m, NULL, encoding, ret) == 0;
}

TEST(planning_counts_the_bytes_of_the_encoding)
{
    struct tun_problem f32 = TUN_PROBLEM_NULL, f16 = TUN_PROBLEM_NULL, i8 = TUN_PROBLEM_NULL;
    struct mdl_model *m = load(10);

    T_TRUE(m != NULL && border_bytes(m, BRD_AS_IS, &f32) && border_bytes(m, BRD_AS_F16, &f16) &&
           border_bytes(m, BRD_AS_I8, &i8));
    for (size_t u = 1; u < m->unit_count; u++) {
        struct mdl_border border;

        T_EQ(mdl_border(m, u, &border), 0);
        T_TRUE(f32.units[u].in_bytes == (double)border.bytes);
        T_TRUE(f16.units[u].in_bytes * 2 == f32.units[u].in_bytes);
        T_TRUE(i8.units[u].in_bytes * 4 == f32.units[u].in_bytes);
        mdl_border_deinit(&border);
    }
    T_TRUE(i8.boards.input_bytes == INPUT * 4 && i8.boards.output_bytes == 40);
    tun_problem_deinit(&f32);
    tun_problem_deinit(&f16);
    tun_problem_deinit(&i8);
    mdl_free(m);
}

TEST(what_cannot_be_judged)
{
    struct krn_examples none = KRN_EXAMPLES_NULL, e = KRN_EXAMPLES_NULL;
    struct mdl_model *m = load(10), *part = NULL;
    struct dmn_border_verdict v;
    char error[MDL_ERROR_MAX];

    T_TRUE(m != NULL);
    T_EQ(dmn_border_judge(m, &none, BRD_AS_F16, &go, error, &v), -ENOENT);
    draw(&e, 3);
    T_EQ(dmn_border_judge(m, &e, BRD_AS_F16, &stop, error, &v), -ECANCELED);
    T_STR(error, "it was cancelled");
    T_EQ(v.judged, 0);
    T_EQ(mdl_segment(m, 0, 1, NULL, error, &part), 0);
    T_EQ(dmn_border_judge(part, &e, BRD_AS_F16, &go, error, &v), -EINVAL);
    krn_examples_deinit(&none);
    krn_examples_deinit(&e);
    mdl_free(part);
    mdl_free(m);
}

TEST_MAIN()
