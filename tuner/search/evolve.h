/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/search/evolve.h - NSGA-II over lists of whole numbers: ask for genes, tell their fitness
 *
 * Deb, Pratap, Agarwal and Meyarivan 2002: fast non-dominated sort, crowding distance, binary
 * tournament, parents and children compete (section III), bounds by constrained domination
 * (section VI). A pair of children is crossed at two points with probability `crossover`; each
 * child is then mutated with probability `mutation`: each gene gets a new value with probability
 * 1 / genes, one at least. A child that is neither is a copy: it is not asked again and does not
 * compete. The same options, seeds, random state and fitness give the same questions.
 *
 * Pure; one thread at a time; everything is allocated by tun_evolve_new(). Only files of tuner/ and
 * tests include it.
 */
#pragma once

#include <stdbool.h>

#include "tuner/search/random.h"

#define TUN_OBJECTIVES_MAX 3u
/* Hierarchical DSE, section 5.1 */
#define TUN_POPULATION 100u
#define TUN_CROSSOVER 0.5
#define TUN_MUTATION 0.2

struct tun_fitness {
    double objective[TUN_OBJECTIVES_MAX]; /* less is better; finite */
    double missed;                        /* by how much bounds are missed; 0: all are kept */
};

struct tun_individual {
    uint16_t *genes; /* [gene_count], of its engine */
    struct tun_fitness fitness;
    size_t rank;     /* 0: on the first front */
    double crowding; /* infinite at the ends of a front */
};

struct tun_evolve_options {
    size_t gene_count, objective_count;
    const uint16_t *least, *most; /* [gene_count], both may be a value; copied */
    bool sorted;                  /* genes are kept in rising order; both bounds must rise, too */
    size_t population;            /* >= 2; 0: TUN_POPULATION */
    double crossover, mutation;   /* probabilities; below 0: those above */
};

struct tun_evolve;

/** tun_evolve_new() - Return: 0, -EINVAL (no gene, bounds crossed, no or too many objectives, a
 * population of one), -ENOMEM. */
int tun_evolve_new(const struct tun_evolve_options *o, struct tun_evolve **ret);
struct tun_evolve *tun_evolve_free(struct tun_evolve *e);

/** tun_evolve_seed() - an individual to begin with; before the first ask(). The rest of the first
 * population is drawn at random. @genes: brought within the bounds. Return: false: it is full. */
bool tun_evolve_seed(struct tun_evolve *e, const uint16_t *genes);
/** tun_evolve_ask() - the genes to judge next; the same until tell(). Return: borrowed until then;
 * NULL: the generation that began has only copies (ask again, or give up). */
const uint16_t *tun_evolve_ask(struct tun_evolve *e, struct tun_random *random);
void tun_evolve_tell(struct tun_evolve *e, const struct tun_fitness *fitness);
/** tun_evolve_end() - lets the children that were judged so far compete; nothing is asked after it.
 */
void tun_evolve_end(struct tun_evolve *e);

/** tun_evolve_generation() - 0 until the first population is judged. */
size_t tun_evolve_generation(const struct tun_evolve *e);
/** tun_evolve_parents() - the present population, best first; none before generation 1. Borrowed
 * until the next ask() or tell(). */
const struct tun_individual *tun_evolve_parents(const struct tun_evolve *e, size_t *ret_count);

/* The parts, for tests. */
/** tun_dominates() - constrained: what misses less wins; else no objective worse, one better. */
bool tun_dominates(const struct tun_fitness *a, const struct tun_fitness *b, size_t objectives);
/** tun_rank() - sets every rank: one more than the highest of those that dominate it.
 * @ret_order: [count], pointers to all, whoever dominates before whom it dominates. */
void tun_rank(struct tun_individual *all, size_t count, size_t objectives,
              struct tun_individual **ret_order);
/** tun_crowd() - sets crowding within one front: the sum over the objectives of what lies between
 * both neighbours, as a share of the front's extent. @front: [count] pointers, reordered. */
void tun_crowd(struct tun_individual **front, size_t count, size_t objectives);

/**
 * tun_hypervolume() - the volume of what the points dominate within @reference, exactly: one figure
 * for a whole front
 * @points: [count][3], less is better; those that do not beat @reference in each count nothing.
 *
 * Slabs between the points by their last figure, each with the area of the points below it (Fonseca
 * et al. 2006, section III, without its tree: O(n^2)). Threads: any; allocates. Return: 0; -ENOMEM.
 */
int tun_hypervolume(const double *points, size_t count, const double reference[3], double *ret);
