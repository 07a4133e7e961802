/* SPDX-License-Identifier: Apache-2.0 */
/* Data types as part of the path, against all choices of small random problems. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "kernels/select/mixed.h"
#include "tests/harness.h"

#define OPS 7u
#define ROWS 2u /* primitives of an op, of each data type */
#define MAX 64u

static const struct krn_primitive rows[] = {{.name = "x__a"}, {.name = "x__b"}},
                                  rough = {.name = "x__rough", .inexact = true};

struct random_mixed {
    struct krn_mixed x;
    struct krn_times real, bytes;
    struct krn_time of_real[OPS * (ROWS + 1)], of_bytes[OPS * ROWS];
    size_t of[OPS];
    bool takes[OPS], leaves[OPS];
    double error[OPS], to_bytes[OPS], to_real[OPS];
};

/* Op 2 has none on bytes; the last one leaves f32. @same: bytes take as much memory. */
static void draw(struct random_mixed *r, bool inexact)
{
    *r = (struct random_mixed){.x = {.real = &r->real,
                                     .bytes = &r->bytes,
                                     .of = r->of,
                                     .takes = r->takes,
                                     .leaves = r->leaves,
                                     .error = r->error,
                                     .to_bytes_ns = r->to_bytes,
                                     .to_real_ns = r->to_real,
                                     .inexact = inexact,
                                     .inexact_error = 3}};
    for (size_t op = 0; op < OPS; op++) {
        for (size_t k = 0; k < ROWS; k++) {
            r->of_real[r->real.count++] =
                (struct krn_time){op, &rows[k], t_range(100, 200), 20, (size_t)t_range(10, 90)};
        }
        r->of_real[r->real.count++] = (struct krn_time){op, &rough, t_range(60, 90), 20, 20};
        r->of[op] = op == 2 ? SIZE_MAX : op;
        for (size_t k = 0; k < ROWS && op != 2; k++) {
            r->of_bytes[r->bytes.count++] =
                (struct krn_time){op, &rows[k], t_range(40, 160), 20, (size_t)t_range(2, 30)};
        }
        r->takes[op] = op != 2;
        r->leaves[op] = op != 2 && op != OPS - 1;
        r->error[op] = op == 2 ? 0 : t_range(1, 1000);
        r->to_bytes[op] = t_range(1, 40);
        r->to_real[op] = t_range(1, 40);
    }
    r->real.times = r->of_real;
    r->bytes.times = r->of_bytes;
    r->real.op_count = r->bytes.op_count = OPS;
}

/* The least time of data types @set, one bit for each op, and their error. */
static double least_ns(const struct random_mixed *r, unsigned set, double *ret_error)
{
    double ns = 0;
    bool bytes = false;

    *ret_error = 0;
    for (size_t op = 0; op < OPS; op++) {
        bool on = set >> op & 1;
        const struct krn_times *t = on ? &r->bytes : &r->real;
        double best = INFINITY;

        for (size_t i = 0; i < t->count; i++) {
            if (t->times[i].op == op && (!t->times[i].primitive->inexact || r->x.inexact)) {
                best = base_min(best, t->times[i].ns);
            }
        }
        ns += best + (on && !bytes ? r->to_bytes[op] : 0) + (!on && bytes ? r->to_real[op] : 0);
        bytes = on && r->leaves[op];
        *ret_error += on ? r->error[op] : r->x.inexact ? r->x.inexact_error : 0;
    }
    return ns;
}

static unsigned set_of(const struct krn_mixed_choice *c)
{
    unsigned set = 0;

    for (size_t op = 0; op < OPS; op++) {
        set |= (unsigned)c->on_bytes[op] << op;
    }
    return set;
}

TEST(fronts_have_what_all_choices_have)
{
    for (size_t trial = 0; trial < 60; trial++) {
        struct random_mixed r;
        struct krn_mixed_choice found[MAX];
        size_t count = 0;

        draw(&r, false);
        T_EQ(krn_mixed_front(&r.x, &(struct krn_path_options){0}, MAX, found, &count), 0);
        for (unsigned set = 0; set < 1u << OPS; set++) {
            double error, ns = least_ns(&r, set, &error), cell = 7000.0 / 1024;
            bool covered = (set >> 2 & 1) != 0;

            for (size_t i = 0; i < count && !covered; i++) {
                covered = found[i].ns <= ns + 1e-9 && found[i].error <= error + OPS * cell;
            }
            T_TRUE(covered);
        }
        for (size_t i = 0; i < count; i++) {
            double error, ns = least_ns(&r, set_of(&found[i]), &error);

            T_TRUE(found[i].ns >= ns - 1e-9 && fabs(found[i].error - error) < 1e-9);
            T_TRUE(i == 0 || found[i].ns >= found[i - 1].ns);
            for (size_t k = 0; k < count; k++) { /* none is better in all three */
                T_TRUE(k == i || found[k].ns > found[i].ns || found[k].bytes > found[i].bytes ||
                       found[k].error > found[i].error);
            }
        }
        for (size_t i = 0; i < count; i++) {
            krn_mixed_choice_deinit(&found[i]);
        }
    }
}

TEST(the_ends_stay_where_few_are_wanted)
{
    for (size_t max = 1; max < 6; max++) {
        struct random_mixed r;
        struct krn_mixed_choice all[MAX], few[MAX];
        size_t count = 0, some = 0;

        draw(&r, false);
        T_EQ(krn_mixed_front(&r.x, &(struct krn_path_options){0}, MAX, all, &count), 0);
        T_EQ(krn_mixed_front(&r.x, &(struct krn_path_options){0}, max, few, &some), 0);
        T_TRUE(some >= 1 && some <= max);
        T_EQ(set_of(&few[0]), set_of(&all[0]));
        if (max >= 3) {
            double least = INFINITY;

            for (size_t i = 0; i < some; i++) {
                least = base_min(least, few[i].error);
            }
            T_EQ(least, 0); /* all in f32 */
        }
        for (size_t i = 0; i < count; i++) {
            krn_mixed_choice_deinit(&all[i]);
        }
        for (size_t i = 0; i < some; i++) {
            krn_mixed_choice_deinit(&few[i]);
        }
    }
}

/* Section IV-C3: what is judged is at most 25 % slower than the fastest. */
TEST(q_learning_proposes_what_is_fast)
{
    struct krn_path_options o = {.algorithm = KRN_PATH_Q_LEARNING, .seed = 5};
    struct random_mixed r;
    struct krn_mixed_choice exact[MAX], learned[MAX];
    size_t count = 0, some = 0;

    draw(&r, false);
    T_EQ(krn_mixed_front(&r.x, &(struct krn_path_options){0}, MAX, exact, &count), 0);
    T_EQ(krn_mixed_front(&r.x, &o, MAX, learned, &some), 0);
    T_TRUE(some > 1);
    T_TRUE(learned[0].ns <= 1.02 * exact[0].ns);
    T_TRUE(learned[some - 1].ns <= 1.25 * learned[0].ns + 1e-9);
    for (size_t i = 0; i < count; i++) {
        krn_mixed_choice_deinit(&exact[i]);
    }
    for (size_t i = 0; i < some; i++) {
        krn_mixed_choice_deinit(&learned[i]);
    }
}

TEST(what_rounds_more_costs_its_error)
{
    struct random_mixed r;
    struct krn_mixed_choice found[MAX];
    size_t count = 0;
    double least = INFINITY;

    draw(&r, true);
    T_EQ(krn_mixed_front(&r.x, &(struct krn_path_options){0}, MAX, found, &count), 0);
    for (size_t i = 0; i < count; i++) {
        least = base_min(least, found[i].error);
        krn_mixed_choice_deinit(&found[i]);
    }
    T_EQ(least, 0); /* exact primitives are there, too */
    T_EQ(krn_mixed_front(&r.x, &(struct krn_path_options){0}, 0, found, &count), -EINVAL);
}

TEST_MAIN()
