/* SPDX-License-Identifier: Apache-2.0 */
/* Figures that the papers print and that follow from their definitions alone. */
#include <math.h>
#include <stdarg.h>

#include "base/base.h"
#include "bench/searches/check.h"
#include "tests/unit/tuner/papers.h"
#include "tuner/search/cuts.h"
#include "tuner/search/places.h"

static void print(const char *verdict, const char *name, const char *format, va_list args)
{
    printf("%s %s: ", verdict, name);
    vprintf(format, args);
    printf("\n");
    fflush(stdout);
}

void check_that(struct checks *c, bool ok, const char *name, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print(ok ? "ok" : "FAIL", name, format, args);
    va_end(args);
    *(ok ? &c->passed : &c->failed) += 1;
}

void check_claim(struct checks *c, bool holds, enum check_known known, const char *name,
                 const char *format, ...)
{
    bool told = !holds && known == CHECK_TOLD;
    va_list args;

    va_start(args, format);
    print(holds ? "ok" : told ? "told" : "FAIL", name, format, args);
    va_end(args);
    *(holds ? &c->passed : told ? &c->told : &c->failed) += 1;
}

size_t check_share(const struct checks *c, size_t most)
{
    return (size_t)ceil((double)most * c->share);
}

struct fact {
    const char *configuration;
    const double *weight;
    uint16_t layers[8];
    size_t stages;
    double percent, digit; /* as printed: cut off, not rounded, after this digit */
};

/* Pipe-search, table 7 */
static const double SYNTH1[] = {1, 4, 8, 4, 8, 8, 4};
static const double SYNTH2[] = {1, 9, 4, 8, 5, 4, 8, 5, 7, 1, 1, 1, 4, 8, 22};
static const double SYNTH3[] = {1, 9, 4, 8, 20, 2, 22, 3, 4, 8, 7, 11, 11};

static const struct fact FACTS[] = {
    {"Synth 1 [3,2,2]", SYNTH1, {3, 2, 2}, 3, 3.8, 0.1},
    {"Synth 1 [4,1,1,1]", SYNTH1, {4, 1, 1, 1}, 4, 51.4, 0.1},
    {"Synth 1 [5,1,1]", SYNTH1, {5, 1, 1}, 3, 73.8, 0.1},
    {"Synth 2 [8,7]", SYNTH2, {8, 7}, 2, 0, 0.1},
    {"Synth 2 [4,4,6,1]", SYNTH2, {4, 4, 6, 1}, 4, 0, 0.1},
    {"Synth 2 [4,7,4]", SYNTH2, {4, 7, 4}, 3, 18.5, 0.1},
    {"Synth 2 [8,6,1]", SYNTH2, {8, 6, 1}, 3, 35, 1},
    {"Synth 3 [4,2,1,4,2]", SYNTH3, {4, 2, 1, 4, 2}, 5, 0, 0.1},
    {"Synth 3 [3,1,2,1,4,2]", SYNTH3, {3, 1, 2, 1, 4, 2}, 6, 29.8, 0.1},
    {"Synth 3 [7,4,2]", SYNTH3, {7, 4, 2}, 3, 56.5, 0.1},
};

static void check_cv(struct checks *c)
{
    for (size_t i = 0; i < base_array_count(FACTS); i++) {
        const struct fact *f = &FACTS[i];
        double cv = 100 * paper_cv(f->weight, f->layers, f->stages);
        char name[64];

        snprintf(name, sizeof(name), "cv of %s", f->configuration);
        check_that(c, cv > f->percent - 1e-9 && cv < f->percent + f->digit, name,
                   "%.2f %% (the paper: %g)", cv, f->percent);
    }
}

static void check_counts(struct checks *c)
{
    double pipelines = paper_pipelines(4, 4, 8), points = paper_points(28, 4, 4);

    check_that(c, pipelines == 64, "Pipe-it eq. 1", "%.0f pipelines on 4+4 cores (the paper: 64)",
               pipelines);
    check_claim(
        c, points == 5379616, CHECK_TOLD, "Pipe-it eq. 2",
        "%.0f design points for 28 layers (the paper: 5379616, which is eq. 2 for 29: %.0f)",
        points, paper_points(29, 4, 4));
    check_claim(c, tun_cut_count(21, 2, 4) == 1970, CHECK_TOLD, "Pipe-search's space",
                "%.0f configurations of VGG-16's 21 layers in 2 to 4 stages (the paper: 1970)",
                tun_cut_count(21, 2, 4));
}

/* A configuration's rank in the order of CV, among cuts into as many stages. */
static void check_rank(struct checks *c, const char *configuration, const double *weight,
                       const uint16_t *want, size_t stages, unsigned printed)
{
    uint16_t layers[8];
    struct tun_cuts *cuts;
    size_t units = 0, rank = 0;
    bool found = false;
    char name[64];

    for (size_t s = 0; s < stages; s++) {
        units += want[s];
    }
    if (tun_cuts_new(weight, units, stages, &cuts) == 0) {
        while (!found && tun_cuts_next(cuts, stages, layers) == 0) {
            rank++;
            found = memcmp(layers, want, stages * sizeof(*layers)) == 0;
        }
        tun_cuts_free(cuts);
    }
    snprintf(name, sizeof(name), "rank of %s", configuration);
    check_claim(c, found && rank == printed, found ? CHECK_TOLD : CHECK_HOLDS, name,
                "%zu of %.0f (the paper: %u)", rank, tun_binomial(units - 1, stages - 1), printed);
}

/* Tables 6 and 7. */
static void check_ranks(struct checks *c)
{
    static const struct {
        const char *name;
        uint16_t layers[8];
        size_t stages;
        unsigned printed;
    } VGG16[] = {{"VGG-16 [6,5,10]", {6, 5, 10}, 3, 1},
                 {"VGG-16 [5,16]", {5, 16}, 2, 7},
                 {"VGG-16 [9,12]", {9, 12}, 2, 2},
                 {"VGG-16 [7,4,10]", {7, 4, 10}, 3, 3}};
    static const struct {
        size_t fact;
        unsigned printed;
    } ROWS[] = {{1, 6}, {2, 10}, {5, 8}, {6, 22}, {8, 9}, {9, 22}};
    base_cleanup(psim_case_deinit) struct psim_case on = PSIM_CASE_NULL;
    char error[PSIM_ERROR_MAX] = "";

    for (size_t i = 0; i < base_array_count(ROWS); i++) {
        const struct fact *f = &FACTS[ROWS[i].fact];

        check_rank(c, f->configuration, f->weight, f->layers, f->stages, ROWS[i].printed);
    }
    if (psim_case_init("vgg16", PSIM_LAYERS, "tx2-1", error, &on) == 0) {
        double weight[TUN_UNIT_MAX];

        for (size_t u = 0; u < on.truth.unit_count; u++) {
            weight[u] = on.truth.units[u].weight;
        }
        for (size_t i = 0; i < base_array_count(VGG16); i++) {
            check_rank(c, VGG16[i].name, weight, VGG16[i].layers, VGG16[i].stages,
                       VGG16[i].printed);
        }
    } else {
        check_that(c, false, "ranks of VGG-16", "%s", error);
    }
}

/* Shisha, algorithm 1, by hand: units 9 2 5 1 1 1 6 3 7 4 on two fast cores and two of half their
 * speed. 1+1, 1+2, 2+5, 3+6, 3+7, 10+4 are merged in turn until four groups are left: 9 7 9 14. */
static void check_seed(struct checks *c)
{
    static const double weight[] = {9, 2, 5, 1, 1, 1, 6, 3, 7, 4};
    static const struct tun_ep eps[] = {{"slow", 2, 0.5, 0.5, 1}, {"fast", 2, 1, 1, 1}};
    static const char expected[] = "0-0@fast|1-2@slow|3-6@slow|7-9@fast";
    struct tun_random random = {0};
    struct tun_pipeline seed;
    struct tun_problem p;
    struct pl_ep_set set;
    struct pl_plan plan;
    char text[PL_PLAN_TEXT_MAX] = "";

    if (tun_problem_init(&p, base_array_count(weight), eps, 2) == 0) {
        for (size_t u = 0; u < base_array_count(weight); u++) {
            p.units[u].weight = weight[u];
        }
        if (tun_shisha_seed(&p, 3, 4, &random, &seed) == 0) {
            tun_pipeline_plan(&seed, &plan);
            tun_eps(&p, &set);
            pl_plan_format(&plan, &set, text, sizeof(text));
        }
        tun_problem_deinit(&p);
    }
    check_that(c, strcmp(text, expected) == 0, "Shisha's seed", "%s (by hand: %s)", text, expected);
}

void check_facts(struct checks *c)
{
    check_cv(c);
    check_ranks(c);
    check_counts(c);
    check_seed(c);
}
