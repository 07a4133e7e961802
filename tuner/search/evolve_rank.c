/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks and crowding distances of NSGA-II (Deb et al. 2002, section III). */
#include <math.h>

#include "base/base.h"
#include "tuner/search/evolve.h"

bool tun_dominates(const struct tun_fitness *a, const struct tun_fitness *b, size_t objectives)
{
    bool better = false;

    if (a->missed != b->missed) {
        return a->missed < b->missed;
    }
    if (a->missed > 0) {
        return false;
    }
    for (size_t i = 0; i < objectives; i++) {
        if (a->objective[i] > b->objective[i]) {
            return false;
        }
        better |= a->objective[i] < b->objective[i];
    }
    return better;
}

void tun_rank(struct tun_individual *all, size_t count, size_t objectives, size_t *room)
{
    /* by[i]: how many of those not ranked yet dominate i; front: of the last rank */
    size_t *by = room, *front = room + count, left = count, rank = 0;

    for (size_t i = 0; i < count; i++) {
        all[i].rank = SIZE_MAX;
        by[i] = 0;
        for (size_t j = 0; j < count; j++) {
            by[i] += tun_dominates(&all[j].fitness, &all[i].fitness, objectives);
        }
    }
    while (left > 0) {
        size_t found = 0;

        for (size_t i = 0; i < count; i++) {
            if (all[i].rank == SIZE_MAX && by[i] == 0) {
                front[found++] = i;
            }
        }
        for (size_t f = 0; f < found; f++) {
            all[front[f]].rank = rank;
        }
        for (size_t i = 0; i < count; i++) {
            for (size_t f = 0; f < found && all[i].rank == SIZE_MAX; f++) {
                by[i] -= tun_dominates(&all[front[f]].fitness, &all[i].fitness, objectives);
            }
        }
        left -= found;
        rank++;
    }
}

/* Ties by place in memory, so that the order does not depend on the library's sort. */
static int by_objective(const void *a, const void *b, void *objective)
{
    const struct tun_individual *p = *(struct tun_individual *const *)a;
    const struct tun_individual *q = *(struct tun_individual *const *)b;
    double x = p->fitness.objective[*(size_t *)objective];
    double y = q->fitness.objective[*(size_t *)objective];

    return x != y ? (x > y) - (x < y) : (p > q) - (p < q);
}

void tun_crowd(struct tun_individual **front, size_t count, size_t objectives)
{
    for (size_t i = 0; i < count; i++) {
        front[i]->crowding = 0;
    }
    for (size_t o = 0; o < objectives && count > 0; o++) {
        double extent;

        qsort_r(front, count, sizeof(*front), by_objective, &o);
        extent = front[count - 1]->fitness.objective[o] - front[0]->fitness.objective[o];
        front[0]->crowding = front[count - 1]->crowding = INFINITY;
        for (size_t i = 1; i + 1 < count && extent > 0; i++) {
            front[i]->crowding +=
                (front[i + 1]->fitness.objective[o] - front[i - 1]->fitness.objective[o]) / extent;
        }
    }
}
