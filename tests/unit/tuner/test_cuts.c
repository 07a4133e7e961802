/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/papers.h"
#include "tuner/search/cuts.h"
#include "tuner/search/places.h"
#include "tuner/search/search.h"

/* Pipe-search, table 7. */
static const double SYNTH1[7] = {1, 4, 8, 4, 8, 8, 4};
static const double SYNTH2[15] = {1, 9, 4, 8, 5, 4, 8, 5, 7, 1, 1, 1, 4, 8, 22};
static const double SYNTH3[13] = {1, 9, 4, 8, 20, 2, 22, 3, 4, 8, 7, 11, 11};

static const struct row {
    const double *weight;
    size_t units, stages;
    uint16_t layers[PL_STAGE_MAX];
    double cv;   /* percent, as printed */
    size_t rank; /* as printed; 1: a best seed */
} TABLE7[] = {
    {SYNTH1, 7, 3, {3, 2, 2}, 3.8, 1},
    {SYNTH1, 7, 4, {4, 1, 1, 1}, 51.4, 6},
    {SYNTH1, 7, 3, {5, 1, 1}, 73.8, 10},
    {SYNTH2, 15, 2, {8, 7}, 0, 1},
    {SYNTH2, 15, 4, {4, 4, 6, 1}, 0, 1},
    {SYNTH2, 15, 3, {4, 7, 4}, 18.5, 8},
    {SYNTH2, 15, 3, {8, 6, 1}, 35, 22},
    {SYNTH3, 13, 5, {4, 2, 1, 4, 2}, 0, 1},
    {SYNTH3, 13, 6, {3, 1, 2, 1, 4, 2}, 29.8, 9},
    {SYNTH3, 13, 3, {7, 4, 2}, 56.5, 22},
};

static void cleanup_cuts(struct tun_cuts **c)
{
    *c = tun_cuts_free(*c);
}
#define AUTO_CUTS base_cleanup(cleanup_cuts) struct tun_cuts

/* The population's standard deviation gives every printed figure when digits are cut off. */
TEST(cv_of_table_7)
{
    for (size_t i = 0; i < base_array_count(TABLE7); i++) {
        const struct row *r = &TABLE7[i];
        double percent = 100 * paper_cv(r->weight, r->layers, r->stages);
        double digits = r->cv == 35 ? 1 : 10; /* printed without decimals */

        T_NEAR(floor(percent * digits + 1e-9) / digits, r->cv, 1e-9);
    }
    T_NEAR(paper_cv(SYNTH1, TABLE7[1].layers, 4), 0.51493402, 1e-8);
}

TEST(cv_of_nothing)
{
    const double zero[3] = {0, 0, 0};
    const uint16_t layers[2] = {1, 2};

    T_TRUE(paper_cv(zero, layers, 2) == 0);
    T_TRUE(paper_cv(SYNTH1, (uint16_t[]){7}, 1) == 0);
}

/* Ranks in the paper are places in its sorted list, whose order among equals it does not say: the
 * printed rank must lie within the group of equal CV. */
TEST(ranks_of_table_7)
{
    for (size_t i = 0; i < base_array_count(TABLE7); i++) {
        const struct row *r = &TABLE7[i];
        double cv = paper_cv(r->weight, r->layers, r->stages);
        size_t below = 0, equal = 0;
        AUTO_CUTS *c = NULL;
        uint16_t layers[PL_STAGE_MAX];

        T_EQ(tun_cuts_new(r->weight, r->units, r->stages, &c), 0);
        while (tun_cuts_next(c, r->stages, layers) == 0) {
            double other = paper_cv(r->weight, layers, r->stages);

            below += other < cv - 1e-12;
            equal += fabs(other - cv) <= 1e-12;
        }
        T_LE(below + 1, r->rank);
        T_LE(r->rank, below + equal);
    }
}

/* VGG-16 as the paper counts it: 13 convolutions and 3 full layers by eq. 1 and 2, 5 poolings by
 * their input. */
static size_t vgg16(double *ret)
{
    static const struct {
        size_t convolutions;
        double channels;
    } blocks[] = {{2, 64}, {2, 128}, {3, 256}, {3, 512}, {3, 512}};
    double side = 224, in = 3;
    size_t units = 0;

    for (size_t b = 0; b < base_array_count(blocks); b++) {
        for (size_t i = 0; i < blocks[b].convolutions; i++) {
            ret[units++] = side * side * in * 9 * blocks[b].channels;
            in = blocks[b].channels;
        }
        ret[units++] = side * side * in;
        side /= 2;
    }
    ret[units++] = side * side * in * 4096;
    ret[units++] = 4096.0 * 4096;
    ret[units++] = 4096.0 * 1000;
    return units;
}

/* The seed of table 3, and all of table 6: configurations and ranks come out as printed. 1,350
 * configurations in 2 to 4 stages; the paper counts 1,970. Counting also how 4 equal cores are
 * shared out, sum_p binomial(20, p-1) binomial(3, p-1), gives 1,770: close, but not it. */
TEST(vgg16_of_the_paper)
{
    static const struct {
        size_t stages, rank;
        uint16_t layers[4];
    } rows[] = {{3, 1, {6, 5, 10}}, {2, 7, {5, 16}}, {2, 2, {9, 12}}, {3, 3, {7, 4, 10}}};
    double weight[32];
    size_t units = vgg16(weight), all = 0;
    uint16_t layers[PL_STAGE_MAX];

    T_EQ(units, 21);
    for (size_t i = 0; i < base_array_count(rows); i++) {
        AUTO_CUTS *c = NULL;

        T_EQ(tun_cuts_new(weight, units, rows[i].stages, &c), 0);
        for (size_t n = 0; n < rows[i].rank; n++) {
            T_EQ(tun_cuts_next(c, rows[i].stages, layers), 0);
        }
        for (size_t s = 0; s < rows[i].stages; s++) {
            T_EQ(layers[s], rows[i].layers[s]);
        }
    }
    for (size_t stages = 2; stages <= 4; stages++) {
        uint16_t *sorted = NULL;
        size_t count;

        T_EQ(tun_cuts_sorted(weight, units, stages, &sorted, &count), 0);
        free(sorted);
        all += count;
    }
    T_EQ(all, 1350);
}

/* Lazily and from the database: the same configurations in the same order, and that is by CV, then
 * by cuts from left to right. */
static void compare(const double *weight, size_t units, size_t stages)
{
    base_autofree uint16_t *sorted = NULL;
    uint16_t layers[PL_STAGE_MAX];
    AUTO_CUTS *c = NULL;
    size_t count = 0, bytes = stages * sizeof(*layers);
    double last = -1;

    T_EQ(tun_cuts_sorted(weight, units, stages, &sorted, &count), 0);
    T_TRUE((double)count == tun_binomial(units - 1, stages - 1));
    T_EQ(tun_cuts_new(weight, units, stages, &c), 0);
    for (size_t n = 0; n < count; n++) {
        double cv;

        T_EQ(tun_cuts_next(c, stages, layers), 0);
        T_EQ(memcmp(layers, &sorted[n * stages], bytes), 0);
        cv = paper_cv(weight, layers, stages);
        T_TRUE(cv >= last - 1e-7);
        last = cv;
    }
    T_EQ(tun_cuts_next(c, stages, layers), TUN_E_DONE);
    T_EQ(tun_cuts_next(c, stages, layers), TUN_E_DONE);
}

TEST(lazy_order_is_the_database)
{
    for (int round = 0; round < 400; round++) {
        double weight[16];
        size_t units = (size_t)t_range(1, 13);
        int64_t grain = t_range(0, 3);

        for (size_t u = 0; u < units; u++) {
            /* few values: many ties; then tenths; then any number, then of any size */
            weight[u] = grain == 0   ? (double)t_range(0, 3)
                        : grain == 1 ? (double)t_range(1, 30) / 10
                        : grain == 2 ? 1.0 + t_float() * 0.999
                                     : ldexp(1.0 + t_float(), (int)t_range(-300, 300));
        }
        compare(weight, units, (size_t)t_range(1, (int64_t)units));
    }
}

/* One chain's series share what they found, and do not disturb each other. */
TEST(series_of_all_stage_counts)
{
    for (int round = 0; round < 30; round++) {
        uint16_t *sorted[10] = {NULL}, layers[PL_STAGE_MAX];
        size_t count[10], taken[10] = {0};
        double weight[9];
        AUTO_CUTS *c = NULL;

        for (size_t u = 0; u < 9; u++) {
            weight[u] = (double)t_range(1, 9);
        }
        T_EQ(tun_cuts_new(weight, 9, 9, &c), 0);
        for (size_t p = 1; p <= 9; p++) {
            T_EQ(tun_cuts_sorted(weight, 9, p, &sorted[p], &count[p]), 0);
        }
        for (size_t n = 0; n < 400; n++) {
            size_t p = (size_t)t_range(1, 9);
            bool left = taken[p] < count[p];

            T_EQ(tun_cuts_next(c, p, layers), left ? 0 : TUN_E_DONE);
            T_TRUE(!left || memcmp(layers, &sorted[p][taken[p] * p], p * sizeof(*layers)) == 0);
            taken[p] += left;
        }
        T_EQ(tun_cuts_next(c, 0, layers), -EINVAL);
        T_EQ(tun_cuts_next(c, 10, layers), -EINVAL);
        for (size_t p = 1; p <= 9; p++) {
            free(sorted[p]);
        }
    }
}

/* Tenths add up with rounding, yet their ties are ties: by cuts from left to right. */
TEST(ties_in_spite_of_rounding)
{
    const double weight[4] = {0.1, 0.2, 0.3, 0.3}; /* 0.1 + 0.2 != 0.3 in binary */
    static const uint16_t want[3][3] = {{2, 1, 1}, {1, 2, 1}, {1, 1, 2}};
    const double equal[5] = {0.7, 0.7, 0.7, 0.7, 0.7};
    static const uint16_t order[4][2] = {{2, 3}, {3, 2}, {1, 4}, {4, 1}};
    const double tie[3] = {0.3, 0.2, 0.1 + 0.2};
    AUTO_CUTS *c = NULL, *d = NULL, *e = NULL;
    uint16_t layers[PL_STAGE_MAX];

    T_EQ(tun_cuts_new(weight, 4, 3, &c), 0);
    for (size_t n = 0; n < 3; n++) {
        T_EQ(tun_cuts_next(c, 3, layers), 0);
        T_EQ(memcmp(layers, want[n], sizeof(want[n])), 0);
    }
    T_EQ(tun_cuts_new(equal, 5, 2, &d), 0);
    for (size_t n = 0; n < 4; n++) {
        T_EQ(tun_cuts_next(d, 2, layers), 0);
        T_EQ(memcmp(layers, order[n], sizeof(order[n])), 0);
    }
    /* {0.3 | 0.5} and {0.5 | 0.3}: the last weight is a rounding more than 0.3. */
    T_EQ(tun_cuts_new(tie, 3, 2, &e), 0);
    T_EQ(tun_cuts_next(e, 2, layers), 0);
    T_EQ(layers[0], 1);
    T_EQ(tun_cuts_next(e, 2, layers), 0);
    T_EQ(layers[0], 2);
}

/* Multiples of a part order as the whole numbers they are multiples by: sums
 * of parts are rounded, their ties are not lost. */
TEST(parts_order_as_whole_numbers)
{
    static const double parts[] = {0.1, 1.0 / 3, 0.007, 3e-5, 1e9 / 7};

    for (int round = 0; round < 200; round++) {
        double whole[9], part[9], grain = parts[round % (int)base_array_count(parts)];
        size_t units = (size_t)t_range(3, 9), stages = (size_t)t_range(2, (int64_t)units);
        AUTO_CUTS *a = NULL, *b = NULL;
        uint16_t x[PL_STAGE_MAX], y[PL_STAGE_MAX];

        for (size_t u = 0; u < units; u++) {
            whole[u] = (double)t_range(1, 12);
            part[u] = whole[u] * grain;
        }
        T_EQ(tun_cuts_new(whole, units, stages, &a), 0);
        T_EQ(tun_cuts_new(part, units, stages, &b), 0);
        while (tun_cuts_next(a, stages, x) == 0) {
            T_EQ(tun_cuts_next(b, stages, y), 0);
            T_EQ(memcmp(x, y, stages * sizeof(*x)), 0);
        }
    }
}

/* A chain of ResNet-50's size: no database could be kept (binomial(53, 7) = 154 million). */
TEST(first_thousand_of_54_by_8)
{
    static uint16_t seen[1000][8];
    double weight[54], last = -1;
    AUTO_CUTS *c = NULL;
    uint16_t *sorted;
    size_t count;

    for (size_t u = 0; u < 54; u++) {
        weight[u] = (double)t_range(1, 60) * 1e6;
    }
    T_EQ(tun_cuts_sorted(weight, 54, 8, &sorted, &count), -E2BIG);
    T_EQ(tun_cuts_new(weight, 54, 8, &c), 0);
    for (size_t n = 0; n < 1000; n++) {
        double cv;
        size_t units = 0;

        T_EQ(tun_cuts_next(c, 8, seen[n]), 0);
        for (size_t s = 0; s < 8; s++) {
            T_LE(1, seen[n][s]);
            units += seen[n][s];
        }
        T_EQ(units, 54);
        cv = paper_cv(weight, seen[n], 8);
        T_TRUE(cv >= last - 1e-12);
        last = cv;
        for (size_t m = 0; m < n; m++) {
            T_NE(memcmp(seen[m], seen[n], sizeof(seen[n])), 0);
        }
    }
}

/* The largest chain and the deepest cut there may be: the seed, and a few more. */
TEST(longest_chain)
{
    static double weight[TUN_UNIT_MAX];
    uint16_t layers[PL_STAGE_MAX];
    AUTO_CUTS *c = NULL;

    for (size_t u = 0; u < TUN_UNIT_MAX; u++) {
        weight[u] = 1;
    }
    T_EQ(tun_cuts_new(weight, TUN_UNIT_MAX, PL_STAGE_MAX, &c), 0);
    T_EQ(tun_cuts_next(c, PL_STAGE_MAX, layers), 0);
    for (size_t s = 0; s < PL_STAGE_MAX; s++) {
        T_EQ(layers[s], TUN_UNIT_MAX / PL_STAGE_MAX);
    }
    for (size_t n = 0; n < 5; n++) {
        T_EQ(tun_cuts_next(c, PL_STAGE_MAX, layers), 0);
    }
}

TEST(odd_weights)
{
    const double small[5] = {1e-300, 1, 1e-300, 5e-324, 1}, zero[4] = {0, 0, 0, 0};
    const double vast[3] = {1.7e308, 1.7e308, 1.7e308};

    for (size_t stages = 1; stages <= 3; stages++) {
        compare(small, 5, stages);
        compare(zero, 4, stages);
    }
    AUTO_CUTS *c = NULL;
    uint16_t layers[PL_STAGE_MAX];

    T_EQ(tun_cuts_new(vast, 3, 2, &c), 0);
    T_EQ(tun_cuts_next(c, 2, layers), 0);
    T_EQ(layers[0], 1);
}

TEST(refused)
{
    double weight[3] = {1, 2, 3};
    const double bad[] = {-1, NAN, INFINITY};
    struct tun_cuts *c;
    uint16_t *sorted;
    size_t count;
    static const size_t shapes[][2] = {{3, 0}, {3, 4}, {0, 0}, {0, 1}, {65536, 2}, {3, SIZE_MAX}};

    for (size_t i = 0; i < base_array_count(shapes); i++) {
        T_EQ(tun_cuts_new(weight, shapes[i][0], shapes[i][1], &c), -EINVAL);
        T_EQ(tun_cuts_sorted(weight, shapes[i][0], shapes[i][1], &sorted, &count), -EINVAL);
    }
    for (size_t i = 0; i < base_array_count(bad); i++) {
        weight[1] = bad[i];
        T_EQ(tun_cuts_new(weight, 3, 2, &c), -EINVAL);
        T_EQ(tun_cuts_sorted(weight, 3, 2, &sorted, &count), -EINVAL);
    }
    T_TRUE(tun_cuts_free(NULL) == NULL);
}

TEST_MAIN()
