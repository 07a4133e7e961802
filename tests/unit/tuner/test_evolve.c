/* SPDX-License-Identifier: Apache-2.0 */
/* NSGA-II's parts, the hypervolume, the encodings and the stages, by hand; DEAP's answers are in
 * test_evolve_oracle.py. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/papers.h"
#include "tuner/search/staged.h"

TEST(hypervolume_of_corners)
{
    static const double flat[] = {1, 3, 1, 2, 2, 1, 3, 1, 1, 9, 0, 1, 2, 2, 1};
    static const double corners[] = {0, 0, 1, 1, 1, 0};
    static const double limit[] = {4, 4, 2};
    double v = -1;

    T_EQ(tun_hypervolume(flat, 5, limit, &v), 0);
    T_NEAR(v, 6, 1e-12); /* 3 + 2 + 1; the fourth does not beat the limit, the fifth is a repeat */
    T_EQ(tun_hypervolume(flat, 0, limit, &v), 0);
    T_EQ(v, 0.0);
    T_EQ(tun_hypervolume(corners, 2, limit, &v), 0);
    T_NEAR(v, 16 + 9, 1e-12); /* 4 4 1, and 3 3 2 of which the upper half is in it */
}

TEST(hypervolume_grows_with_what_is_new)
{
    for (int round = 0; round < t_times(200); round++) {
        double points[3 * 30], limit[] = {1, 1, 1}, before = 0, v;
        bool flat = t_range(2, 3) == 2;

        for (size_t i = 0; i < 30; i++) {
            bool dominated = false;

            for (size_t d = 0; d < 3; d++) {
                points[3 * i + d] = flat && d == 2 ? 0 : (double)t_range(0, 12) / 10;
            }
            for (size_t j = 0; j < i; j++) {
                bool no_worse = true;

                for (size_t d = 0; d < 3; d++) {
                    no_worse &= points[3 * j + d] <= points[3 * i + d];
                }
                dominated |= no_worse;
            }
            for (size_t d = 0; d < 3; d++) {
                dominated |= points[3 * i + d] >= 1;
            }
            T_EQ(tun_hypervolume(points, i + 1, limit, &v), 0);
            T_TRUE(dominated ? fabs(v - before) < 1e-12 : v > before + 1e-12);
            before = v;
        }
    }
}

TEST(bounds_come_before_objectives)
{
    struct tun_fitness good = {{5, 5}, 0}, better = {{5, 4}, 0}, wrong = {{0, 0}, 1};
    struct tun_fitness worse = {{0, 0}, 2};

    T_TRUE(tun_dominates(&better, &good, 2) && !tun_dominates(&good, &better, 2));
    T_TRUE(tun_dominates(&good, &wrong, 2) && !tun_dominates(&wrong, &good, 2));
    T_TRUE(tun_dominates(&wrong, &worse, 2));
    T_TRUE(!tun_dominates(&good, &good, 2));
}

/* Two figures: how far the genes are from all 3 and from all 7. */
static void judge(const uint16_t *genes, size_t count, struct tun_fitness *ret)
{
    *ret = (struct tun_fitness){0};
    for (size_t i = 0; i < count; i++) {
        ret->objective[0] += fabs(genes[i] - 3.0);
        ret->objective[1] += fabs(genes[i] - 7.0);
    }
}

struct evolved {
    struct tun_evolve *e;
    uint64_t hash; /* of all that was asked */
    bool in_bounds;
};

static struct evolved evolve(uint64_t seed, size_t generations)
{
    static const uint16_t least[6] = {0}, most[6] = {0, 20, 20, 20, 20, 20};
    struct tun_random random = {seed};
    struct tun_fitness fitness;
    struct evolved r = {.in_bounds = true};

    if (tun_evolve_new(&(struct tun_evolve_options){.gene_count = 6,
                                                    .objective_count = 2,
                                                    .least = least,
                                                    .most = most,
                                                    .sorted = true,
                                                    .crossover = -1,
                                                    .mutation = -1},
                       &r.e) != 0) {
        abort();
    }
    while (tun_evolve_generation(r.e) < generations) {
        const uint16_t *genes = tun_evolve_ask(r.e, &random);

        for (size_t i = 0; genes && i < 6; i++) {
            r.in_bounds &= genes[i] <= most[i] && (i == 0 || genes[i] >= genes[i - 1]);
            r.hash = r.hash * 31 + genes[i];
        }
        if (genes) {
            judge(genes, 6, &fitness);
            tun_evolve_tell(r.e, &fitness);
        }
    }
    return r;
}

TEST(evolution_finds_the_front_again_by_the_same_seed)
{
    struct evolved a = evolve(1, 60), b = evolve(1, 60), c = evolve(2, 60);
    size_t count;
    const struct tun_individual *all = tun_evolve_parents(a.e, &count);

    T_TRUE(a.in_bounds);
    T_EQ(a.hash, b.hash);
    T_NE(a.hash, c.hash);
    T_EQ(count, (size_t)TUN_POPULATION);
    for (size_t i = 0; i < count; i++) {
        const double *f = all[i].fitness.objective;

        T_EQ(all[i].rank, 0u);
        T_NEAR(f[0] + f[1], 5 * 4 + 3 + 7, 1e-9); /* between 3 and 7 nothing is lost */
    }
    tun_evolve_free(a.e);
    tun_evolve_free(b.e);
    tun_evolve_free(c.e);
}

TEST(evolution_begins_with_what_it_is_given)
{
    static const uint16_t least[2] = {0, 0}, most[2] = {9, 9}, far[2] = {4, 99};
    struct tun_evolve_options o = {.gene_count = 2,
                                   .objective_count = 1,
                                   .least = least,
                                   .most = most,
                                   .population = 4,
                                   .crossover = 0,
                                   .mutation = 0};
    struct tun_random random = {1};
    struct tun_evolve *e;
    const uint16_t *genes;
    size_t count;

    T_EQ(tun_evolve_new(&o, &e), 0);
    T_TRUE(tun_evolve_seed(e, far));
    genes = tun_evolve_ask(e, &random);
    T_EQ(genes[0], 4);
    T_EQ(genes[1], 9);
    T_TRUE(!tun_evolve_seed(e, far));
    for (size_t i = 0; i < 3; i++) {
        tun_evolve_tell(e, &(struct tun_fitness){.objective = {(double)i}});
        T_TRUE(tun_evolve_ask(e, &random) != NULL);
    }
    tun_evolve_parents(e, &count);
    T_EQ(count, 0u);
    tun_evolve_end(e);
    T_EQ(tun_evolve_parents(e, &count)[0].fitness.objective[0], 0.0);
    T_EQ(count, 3u);
    tun_evolve_free(e);

    T_EQ(tun_evolve_new(&o, &e), 0); /* nothing crossed, nothing mutated: only copies */
    for (size_t i = 0; i < 4; i++) {
        T_TRUE(tun_evolve_ask(e, &random) != NULL);
        tun_evolve_tell(e, &(struct tun_fitness){.objective = {(double)i}});
    }
    T_TRUE(tun_evolve_ask(e, &random) == NULL);
    T_EQ(tun_evolve_generation(e), 2u);
    tun_evolve_free(e);
    o.population = 1;
    T_EQ(tun_evolve_new(&o, &e), -EINVAL);
    o.population = 4;
    o.objective_count = 4;
    T_EQ(tun_evolve_new(&o, &e), -EINVAL);
    o.objective_count = 1;
    o.least = far;
    T_EQ(tun_evolve_new(&o, &e), -EINVAL);
}

/* Hierarchical DSE, figure 2: eight layers on four places. */
TEST(both_encodings_of_figure_2_are_one_mapping)
{
    static const uint16_t ne[8] = {0, 0, 1, 1, 2, 3, 3, 3}, spe[4] = {0, 2, 4, 5};
    uint16_t a[8], b[8];

    tun_encoding_decode(TUN_ENCODING_NE, ne, 8, 4, a);
    tun_encoding_decode(TUN_ENCODING_SPE, spe, 8, 4, b);
    T_EQ(memcmp(a, b, sizeof(a)), 0);
}

TEST(split_points_are_where_places_begin)
{
    for (int round = 0; round < t_times(300); round++) {
        size_t units = (size_t)t_range(1, 40), places = (size_t)t_range(1, 9);
        uint16_t genes[9] = {0}, mapping[40];

        for (size_t i = 1; i < places; i++) {
            genes[i] = (uint16_t)t_range(genes[i - 1], (int64_t)units);
        }
        tun_encoding_decode(TUN_ENCODING_SPE, genes, units, places, mapping);
        for (size_t u = 0; u < units; u++) {
            T_TRUE(mapping[u] < places && genes[mapping[u]] <= u);
            T_TRUE(mapping[u] + 1u == places || genes[mapping[u] + 1] > u);
        }
    }
}

TEST(spaces_of_the_paper)
{
    /* 344 layers, 8 places: 8^344, and C(351, 7) = 351 350 349 348 347 346 345 / 5040 */
    T_NEAR(paper_space_log10(TUN_ENCODING_NE, 344, 8), 344 * log10(8), 1e-9);
    T_TRUE(isinf(tun_encoding_space(TUN_ENCODING_NE, 344, 8))); /* no double holds it */
    T_EQ(tun_encoding_space(TUN_ENCODING_NE, 20, 8), 0x1p60);
    T_NEAR(tun_encoding_space(TUN_ENCODING_SPE, 344, 8), 122623572295575.0, 1);
    T_NEAR(paper_space_log10(TUN_ENCODING_SPE, 344, 8), log10(122623572295575.0), 1e-9);
    T_EQ(tun_encoding_space(TUN_ENCODING_SPE, 5, 1), 1.0);
}

/* Figure 3: K = ceil(log2 N) stages, stage k on 2^k places, the last on all. */
TEST(stages_of_the_paper)
{
    static const struct {
        size_t places, stages, used[4];
    } rows[] = {{1, 1, {1}},       {2, 1, {2}},       {3, 2, {2, 3}},
                {5, 3, {2, 4, 5}}, {8, 3, {2, 4, 8}}, {9, 4, {2, 4, 8, 9}}};

    for (size_t i = 0; i < base_array_count(rows); i++) {
        T_EQ(tun_stages_of(rows[i].places), rows[i].stages);
        for (size_t k = 1; k <= rows[i].stages; k++) {
            T_EQ(tun_stage_places(rows[i].places, k), rows[i].used[k - 1]);
        }
    }
}

#define UNITS 24u
#define PLACES 6u

/* How many places are used, and how unevenly; the model sees less of the second. */
static void judge_mapping(enum tun_encoding encoding, const uint16_t *genes, double seen,
                          struct tun_fitness *ret)
{
    uint16_t mapping[UNITS];
    double load[PLACES] = {0};

    *ret = (struct tun_fitness){0};
    tun_encoding_decode(encoding, genes, UNITS, PLACES, mapping);
    for (size_t u = 0; u < UNITS; u++) {
        load[mapping[u]] += 1 + seen * (double)(u % 3);
    }
    for (size_t i = 0; i < PLACES; i++) {
        ret->objective[0] += load[i] > 0;
        ret->objective[1] = base_max(ret->objective[1], load[i]);
    }
}

static void model(void *context, const uint16_t *genes, struct tun_fitness *ret)
{
    judge_mapping(*(enum tun_encoding *)context, genes, 0.5, ret);
}

/* The genes of the front, without repeats. Return: how many. */
static size_t front_of(const struct tun_staged *s, size_t gene_count, uint16_t *ret)
{
    size_t count, n = 0;
    const struct tun_individual *all = tun_staged_parents(s, &count);

    for (size_t i = 0; i < count; i++) {
        bool there = all[i].rank != 0;

        for (size_t j = 0; j < n; j++) {
            there |= memcmp(ret + j * gene_count, all[i].genes, gene_count * sizeof(*ret)) == 0;
        }
        if (!there) {
            memcpy(ret + n++ * gene_count, all[i].genes, gene_count * sizeof(*ret));
        }
    }
    return n;
}

static bool is_among(const uint16_t *genes, const uint16_t *list, size_t count, size_t gene_count)
{
    for (size_t i = 0; i < count; i++) {
        if (memcmp(genes, list + i * gene_count, gene_count * sizeof(*genes)) == 0) {
            return true;
        }
    }
    return false;
}

static void check_stages(enum tun_encoding encoding)
{
    size_t gene_count = tun_encoding_genes(encoding, UNITS, PLACES), stage = 0, front_count = 0;
    size_t asked = 0, asked_in_stage = 0;
    struct tun_random random = {t_random()};
    struct tun_staged_options o = {.encoding = encoding,
                                   .units = UNITS,
                                   .places = PLACES,
                                   .objective_count = 2,
                                   .population = 20,
                                   .questions_max = 300,
                                   .model = model,
                                   .context = &encoding};
    uint16_t front[20 * UNITS];
    struct tun_staged *s;
    const uint16_t *genes;

    T_EQ(tun_staged_new(&o, &s), 0);
    while (tun_staged_ask(s, &random, &genes) == 0) {
        struct tun_fitness fitness;
        uint16_t mapping[UNITS];

        if (tun_staged_stage(s) != stage) {
            size_t seeds;
            const uint16_t *list = tun_staged_seeds(s, &seeds);

            T_EQ(tun_staged_stage(s), stage + 1);
            T_TRUE(stage == 0 || asked_in_stage == 100);
            T_LE(1, seeds);
            T_TRUE(is_among(genes, list, seeds, gene_count));
            /* level 2 begins with level 1's front and that of the stage before */
            for (size_t i = 0; i < front_count; i++) {
                T_TRUE(seeds == 20 || is_among(front + i * gene_count, list, seeds, gene_count));
            }
            stage++;
            asked_in_stage = 0;
        }
        tun_encoding_decode(encoding, genes, UNITS, PLACES, mapping);
        for (size_t u = 0; u < UNITS; u++) {
            T_LT(mapping[u], tun_stage_places(PLACES, stage));
        }
        judge_mapping(encoding, genes, 1, &fitness);
        tun_staged_tell(s, &fitness, false, false);
        front_count = front_of(s, gene_count, front);
        asked++;
        asked_in_stage++;
    }
    T_EQ(stage, 3u);
    T_EQ(asked, 300u);
    tun_staged_free(s);
}

TEST(stages_use_twice_as_many_places_each_and_begin_with_what_was_found)
{
    check_stages(TUN_ENCODING_SPE);
    check_stages(TUN_ENCODING_NE);
}

TEST(one_stage_asks_from_the_start)
{
    struct tun_staged_options o = {.encoding = TUN_ENCODING_SPE,
                                   .units = UNITS,
                                   .places = PLACES,
                                   .stages = 1,
                                   .objective_count = 2,
                                   .alpha = 3};
    struct tun_random random = {1};
    struct tun_staged *s;
    const uint16_t *genes;
    size_t asked = 0, seeds = 1;

    T_EQ(tun_staged_new(&o, &s), 0);
    while (tun_staged_ask(s, &random, &genes) == 0) {
        struct tun_fitness fitness;

        T_EQ(tun_staged_stage(s), 3u);
        judge_mapping(TUN_ENCODING_SPE, genes, 1, &fitness);
        tun_staged_tell(s, &fitness, asked++ == 0, false);
    }
    tun_staged_seeds(s, &seeds);
    T_EQ(seeds, 0u);
    T_TRUE(asked > 3 * 40 && asked <= 4 * 100); /* the first generation, and three without a gain */
    tun_staged_free(s);
    o.places = 0;
    T_EQ(tun_staged_new(&o, &s), -EINVAL);
}

TEST_MAIN()
