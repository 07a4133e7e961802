/* SPDX-License-Identifier: Apache-2.0 */
/* The generations of NSGA-II: drawing, crossing, mutating, selecting. */
#include "tuner/search/evolve.h"

#include <math.h>

/* Individuals 0..population-1 are the parents, those behind them the children; the pool of genes
 * has room for both, and every individual keeps one slot of it. */
struct tun_evolve {
    size_t gene_count, objective_count, population;
    double crossover, mutation;
    bool sorted;
    uint16_t *least, *most, *pool; /* owned */
    struct tun_individual *all;    /* [2 * population], owned */
    struct tun_individual **order; /* [2 * population], owned: room for selecting */
    struct tun_individual *ranked; /* [2 * population], owned: room for selecting */
    size_t parent_count;           /* 0 or population, or fewer after tun_evolve_end() */
    size_t seeded, child_count;    /* children in all, behind the parents */
    size_t asked;                  /* of them, those that were judged */
    size_t generation;
};

static int by_value(const void *a, const void *b)
{
    return *(const uint16_t *)a - *(const uint16_t *)b;
}

static void settle(const struct tun_evolve *e, uint16_t *genes)
{
    for (size_t i = 0; i < e->gene_count; i++) {
        genes[i] = base_min(base_max(genes[i], e->least[i]), e->most[i]);
    }
    if (e->sorted) {
        qsort(genes, e->gene_count, sizeof(*genes), by_value);
    }
}

static uint16_t draw(const struct tun_evolve *e, struct tun_random *random, size_t gene)
{
    return (uint16_t)(e->least[gene] +
                      tun_random_below(random, (size_t)(e->most[gene] - e->least[gene]) + 1));
}

static bool is_sane(const struct tun_evolve_options *o)
{
    bool sane = o->gene_count > 0 && o->objective_count > 0 &&
                o->objective_count <= TUN_OBJECTIVES_MAX && o->population != 1;

    for (size_t i = 0; sane && i < o->gene_count; i++) {
        sane = o->least[i] <= o->most[i];
    }
    return sane;
}

int tun_evolve_new(const struct tun_evolve_options *o, struct tun_evolve **ret)
{
    struct tun_evolve *e;
    size_t bytes = o->gene_count * sizeof(*o->least);

    if (!is_sane(o)) {
        return -EINVAL;
    }
    e = calloc(1, sizeof(*e));
    if (!e) {
        return -ENOMEM;
    }
    e->gene_count = o->gene_count;
    e->objective_count = o->objective_count;
    e->population = o->population ? o->population + o->population % 2 : TUN_POPULATION;
    e->crossover = o->crossover < 0 ? TUN_CROSSOVER : o->crossover;
    e->mutation = o->mutation < 0 ? TUN_MUTATION : o->mutation;
    e->sorted = o->sorted;
    e->least = malloc(bytes);
    e->most = malloc(bytes);
    e->pool = calloc(2 * e->population, bytes);
    e->all = calloc(2 * e->population, sizeof(*e->all));
    e->order = calloc(2 * e->population, sizeof(struct tun_individual *));
    e->ranked = calloc(2 * e->population, sizeof(*e->ranked));
    if (!e->least || !e->most || !e->pool || !e->all || !e->order || !e->ranked) {
        tun_evolve_free(e);
        return -ENOMEM;
    }
    memcpy(e->least, o->least, bytes);
    memcpy(e->most, o->most, bytes);
    for (size_t i = 0; i < 2 * e->population; i++) {
        e->all[i].genes = e->pool + i * e->gene_count;
    }
    *ret = e;
    return 0;
}

struct tun_evolve *tun_evolve_free(struct tun_evolve *e)
{
    if (e) {
        free(e->least);
        free(e->most);
        free(e->pool);
        free(e->all);
        free(e->order);
        free(e->ranked);
        free(e);
    }
    return NULL;
}

bool tun_evolve_seed(struct tun_evolve *e, const uint16_t *genes)
{
    struct tun_individual *child = &e->all[e->population + e->seeded];

    if (e->seeded == e->population || e->child_count > 0 || e->generation > 0) {
        return false;
    }
    memcpy(child->genes, genes, e->gene_count * sizeof(*genes));
    settle(e, child->genes);
    e->seeded++;
    return true;
}

static void draw_first(struct tun_evolve *e, struct tun_random *random)
{
    for (size_t i = e->seeded; i < e->population; i++) {
        struct tun_individual *child = &e->all[e->population + i];

        for (size_t g = 0; g < e->gene_count; g++) {
            child->genes[g] = draw(e, random, g);
        }
        settle(e, child->genes);
    }
    e->child_count = e->population;
}

/* The better of two parents drawn at random; of two equally good ones, the first drawn. */
static const struct tun_individual *tournament(const struct tun_evolve *e,
                                               struct tun_random *random)
{
    const struct tun_individual *a = &e->all[tun_random_below(random, e->population)];
    const struct tun_individual *b = &e->all[tun_random_below(random, e->population)];

    if (a->rank != b->rank) {
        return a->rank < b->rank ? a : b;
    }
    return b->crowding > a->crowding ? b : a;
}

/* Swaps the genes between two points. Return: did it. */
static bool cross(const struct tun_evolve *e, struct tun_random *random, uint16_t *a, uint16_t *b)
{
    size_t from, to;

    if (tun_random_unit(random) >= e->crossover) {
        return false;
    }
    from = tun_random_below(random, e->gene_count);
    to = tun_random_below(random, e->gene_count);
    for (size_t g = base_min(from, to); g <= base_max(from, to); g++) {
        uint16_t gene = a[g];

        a[g] = b[g];
        b[g] = gene;
    }
    return true;
}

static bool mutate(const struct tun_evolve *e, struct tun_random *random, uint16_t *genes)
{
    size_t at;

    if (tun_random_unit(random) >= e->mutation) {
        return false;
    }
    at = tun_random_below(random, e->gene_count);
    for (size_t g = 0; g < e->gene_count; g++) {
        if (g == at || tun_random_below(random, e->gene_count) == 0) {
            genes[g] = draw(e, random, g);
        }
    }
    return true;
}

/* Makes as many children as there are parents; those that are copies are left out. */
static void breed(struct tun_evolve *e, struct tun_random *random)
{
    size_t bytes = e->gene_count * sizeof(uint16_t);

    e->child_count = 0;
    for (size_t pair = 0; pair < e->population; pair += 2) {
        uint16_t *genes[2];
        bool crossed;

        for (size_t i = 0; i < 2; i++) {
            genes[i] = e->all[e->population + e->child_count + i].genes;
            memcpy(genes[i], tournament(e, random)->genes, bytes);
        }
        crossed = cross(e, random, genes[0], genes[1]);
        for (size_t i = 0; i < 2; i++) {
            if (mutate(e, random, genes[i]) || crossed) {
                uint16_t *slot = e->all[e->population + e->child_count++].genes;

                memmove(slot, genes[i], bytes);
                settle(e, slot);
            }
        }
    }
}

/* Best first: by rank, then what has more room around it. */
static int by_merit(const void *a, const void *b)
{
    const struct tun_individual *p = *(struct tun_individual *const *)a;
    const struct tun_individual *q = *(struct tun_individual *const *)b;

    if (p->rank != q->rank) {
        return p->rank < q->rank ? -1 : 1;
    }
    if (p->crowding != q->crowding) {
        return p->crowding > q->crowding ? -1 : 1;
    }
    return (p > q) - (p < q);
}

/* Parents and children compete for the places of parents. */
static void select_parents(struct tun_evolve *e)
{
    size_t count = e->generation > 0 ? e->population + e->child_count : e->child_count;

    for (size_t i = 0; e->generation == 0 && i < count; i++) {
        struct tun_individual empty = e->all[i];

        e->all[i] = e->all[e->population + i];
        e->all[e->population + i] = empty;
    }
    tun_rank(e->all, count, e->objective_count, e->order);
    for (size_t i = 0; i < count; i++) {
        e->all[i].crowding = 0;
    }
    qsort(e->order, count, sizeof(struct tun_individual *), by_merit);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from; to < count && e->order[to]->rank == e->order[from]->rank;) {
            to++;
        }
        tun_crowd(e->order + from, to - from, e->objective_count);
    }
    qsort(e->order, count, sizeof(struct tun_individual *), by_merit);
    for (size_t i = 0; i < count; i++) {
        e->ranked[i] = *e->order[i];
    }
    memcpy(e->all, e->ranked, count * sizeof(*e->all));
    e->parent_count = base_min(count, e->population);
    e->generation++;
}

const uint16_t *tun_evolve_ask(struct tun_evolve *e, struct tun_random *random)
{
    if (e->asked == e->child_count) {
        if (e->child_count == 0 && e->generation == 0) {
            draw_first(e, random);
        } else {
            breed(e, random);
        }
        e->asked = 0;
        if (e->child_count == 0) {
            e->generation++;
            return NULL;
        }
    }
    return e->all[e->population + e->asked].genes;
}

void tun_evolve_tell(struct tun_evolve *e, const struct tun_fitness *fitness)
{
    e->all[e->population + e->asked++].fitness = *fitness;
    if (e->asked == e->child_count) {
        select_parents(e);
    }
}

void tun_evolve_end(struct tun_evolve *e)
{
    if (e->asked > 0 && e->asked < e->child_count) {
        e->child_count = e->asked;
        select_parents(e);
    }
}

size_t tun_evolve_generation(const struct tun_evolve *e)
{
    return e->generation;
}

const struct tun_individual *tun_evolve_parents(const struct tun_evolve *e, size_t *ret_count)
{
    *ret_count = e->parent_count;
    return e->all;
}
