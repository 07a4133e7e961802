/* SPDX-License-Identifier: Apache-2.0 */
/* For test_evolve_oracle.py: what ours says, a command a line on stdin, an answer a line.
 *
 *     volume DIMENSIONS COUNT REFERENCE... POINT...     the hypervolume
 *     rank OBJECTIVES COUNT POINT...                    rank and crowding of each point
 *     run PROBLEM SEED GENERATIONS                      the last front's points */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tuner/search/evolve.h"

#define GENES 12u
#define MOST 1000u

static double number(void)
{
    double x;

    if (scanf("%lf", &x) != 1) {
        exit(2);
    }
    return x;
}

/* Fewer than three dimensions are a slab of height 1. */
static void volume(void)
{
    size_t dimensions = (size_t)number(), count = (size_t)number();
    double *figures = calloc(3 * (count + 1), sizeof(*figures)), v = NAN;

    figures[2] = 1;
    for (size_t i = 0; i < count + 1; i++) {
        for (size_t d = 0; d < dimensions; d++) {
            figures[3 * i + d] = number();
        }
    }
    if (tun_hypervolume(figures + 3, count, figures, &v) != 0) {
        exit(2);
    }
    printf("%.17g\n", v);
    free(figures);
}

static void rank(void)
{
    size_t objectives = (size_t)number(), count = (size_t)number(), most = 0;
    struct tun_individual *all = calloc(count, sizeof(*all));
    struct tun_individual **front = calloc(count, sizeof(struct tun_individual *));
    struct tun_individual **room = calloc(count, sizeof(*room));

    for (size_t i = 0; i < count; i++) {
        for (size_t o = 0; o < objectives; o++) {
            all[i].fitness.objective[o] = number();
        }
    }
    tun_rank(all, count, objectives, room);
    for (size_t i = 0; i < count; i++) {
        most = base_max(most, all[i].rank);
    }
    for (size_t r = 0; r <= most; r++) {
        size_t n = 0;

        for (size_t i = 0; i < count; i++) {
            if (all[i].rank == r) {
                front[n++] = &all[i];
            }
        }
        tun_crowd(front, n, objectives);
    }
    for (size_t i = 0; i < count; i++) {
        printf("%zu %.17g ", all[i].rank, all[i].crowding);
    }
    printf("\n");
    free(all);
    free(front);
    free(room);
}

/* ZDT1, ZDT2 and DTLZ2 over thousandths; test_evolve_oracle.py has the same. */
static size_t judge(const char *problem, const uint16_t *genes, struct tun_fitness *ret)
{
    double x[GENES], g = 0;

    for (size_t i = 0; i < GENES; i++) {
        x[i] = genes[i] / (double)MOST;
    }
    *ret = (struct tun_fitness){0};
    if (strcmp(problem, "dtlz2") == 0) {
        for (size_t i = 2; i < GENES; i++) {
            g += (x[i] - 0.5) * (x[i] - 0.5);
        }
        ret->objective[0] = (1 + g) * cos(x[0] * M_PI / 2) * cos(x[1] * M_PI / 2);
        ret->objective[1] = (1 + g) * cos(x[0] * M_PI / 2) * sin(x[1] * M_PI / 2);
        ret->objective[2] = (1 + g) * sin(x[0] * M_PI / 2);
        return 3;
    }
    for (size_t i = 1; i < GENES; i++) {
        g += x[i];
    }
    g = 1 + 9 * g / (GENES - 1);
    ret->objective[0] = x[0];
    ret->objective[1] =
        g * (1 - (strcmp(problem, "zdt1") == 0 ? sqrt(x[0] / g) : (x[0] / g) * (x[0] / g)));
    return 2;
}

static void run(void)
{
    uint16_t least[GENES] = {0}, most[GENES];
    struct tun_fitness fitness;
    struct tun_random random;
    struct tun_evolve *e;
    size_t generations, objectives, count;
    const struct tun_individual *all;
    char problem[16];

    if (scanf("%15s", problem) != 1) {
        exit(2);
    }
    random.state = (uint64_t)number();
    generations = (size_t)number();
    for (size_t i = 0; i < GENES; i++) {
        most[i] = MOST;
    }
    objectives = judge(problem, least, &fitness);
    if (tun_evolve_new(&(struct tun_evolve_options){.gene_count = GENES,
                                                    .objective_count = objectives,
                                                    .least = least,
                                                    .most = most,
                                                    .crossover = -1,
                                                    .mutation = -1},
                       &e) != 0) {
        exit(2);
    }
    while (tun_evolve_generation(e) < generations) {
        const uint16_t *genes = tun_evolve_ask(e, &random);

        if (genes) {
            judge(problem, genes, &fitness);
            tun_evolve_tell(e, &fitness);
        }
    }
    all = tun_evolve_parents(e, &count);
    for (size_t i = 0; i < count; i++) {
        for (size_t o = 0; all[i].rank == 0 && o < objectives; o++) {
            printf("%.17g ", all[i].fitness.objective[o]);
        }
    }
    printf("\n");
    tun_evolve_free(e);
}

int main(void)
{
    char command[16];

    setvbuf(stdout, NULL, _IONBF, 0);
    while (scanf("%15s", command) == 1) {
        if (strcmp(command, "volume") == 0) {
            volume();
        } else if (strcmp(command, "rank") == 0) {
            rank();
        } else if (strcmp(command, "run") == 0) {
            run();
        } else {
            return 2;
        }
    }
    return 0;
}
