/* SPDX-License-Identifier: Apache-2.0 */
/* Fronts: ranks and crowding distances of NSGA-II (Deb et al. 2002, section III), and volumes. */
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

/* Whoever dominates another comes before it. */
static int by_fitness(const void *a, const void *b, void *objectives)
{
    const struct tun_fitness *p = &(*(struct tun_individual *const *)a)->fitness;
    const struct tun_fitness *q = &(*(struct tun_individual *const *)b)->fitness;

    if (p->missed != q->missed) {
        return (p->missed > q->missed) - (p->missed < q->missed);
    }
    for (size_t i = 0; i < *(size_t *)objectives; i++) {
        if (p->objective[i] != q->objective[i]) {
            return (p->objective[i] > q->objective[i]) - (p->objective[i] < q->objective[i]);
        }
    }
    return 0;
}

void tun_rank(struct tun_individual *all, size_t count, size_t objectives,
              struct tun_individual **ret_order)
{
    for (size_t i = 0; i < count; i++) {
        ret_order[i] = &all[i];
    }
    qsort_r(ret_order, count, sizeof(*ret_order), by_fitness, &objectives);
    for (size_t i = 0; i < count; i++) {
        ret_order[i]->rank = 0;
        for (size_t j = i; j-- > 0;) {
            if (ret_order[j]->rank >= ret_order[i]->rank &&
                tun_dominates(&ret_order[j]->fitness, &ret_order[i]->fitness, objectives)) {
                ret_order[i]->rank = ret_order[j]->rank + 1;
            }
        }
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

/* ---- the volume ---- */

struct point {
    double x, y, z;
};

/* The points of one slab of which none dominates another: by rising x, falling y. */
struct stairs {
    struct point *steps; /* borrowed */
    size_t count;
    double area;
};

static int by_z(const void *a, const void *b)
{
    const struct point *p = a, *q = b;

    return (p->z > q->z) - (p->z < q->z);
}

/* The area between two neighbouring steps (or the borders) that lies below @y_above. */
static double strip(double from_x, double to_x, double y, double y_above)
{
    return (to_x - from_x) * (y_above - y);
}

/* Takes a point in; keeps the area. */
static void take(struct stairs *s, const struct point *p, const struct point *reference)
{
    size_t at = 0, end;
    double above;

    while (at < s->count && s->steps[at].x <= p->x) {
        at++;
    }
    above = at > 0 ? s->steps[at - 1].y : reference->y;
    if (above <= p->y) {
        return;
    }
    /* What lies right of it and is no lower is dominated now: steps at..end-1. */
    for (end = at; end < s->count && s->steps[end].y >= p->y; end++) {
        double right = end + 1 < s->count ? s->steps[end + 1].x : reference->x;
        double left = s->steps[end].x;

        s->area -= strip(left, right, s->steps[end].y, above);
    }
    s->area += strip(p->x, end < s->count ? s->steps[end].x : reference->x, p->y, above);
    memmove(&s->steps[at + 1], &s->steps[end], (s->count - end) * sizeof(*s->steps));
    s->count = s->count - (end - at) + 1;
    s->steps[at] = *p;
}

int tun_hypervolume(const double *points, size_t count, const double reference[3], double *ret)
{
    const struct point limit = {reference[0], reference[1], reference[2]};
    base_autofree struct point *inside = calloc(count + 1, sizeof(*inside));
    base_autofree struct point *steps = calloc(count + 1, sizeof(*steps));
    struct stairs stairs = {.steps = steps};
    size_t n = 0;
    double volume = 0;

    if (!inside || !steps) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        struct point p = {points[3 * i], points[3 * i + 1], points[3 * i + 2]};

        if (p.x < limit.x && p.y < limit.y && p.z < limit.z) {
            inside[n++] = p;
        }
    }
    qsort(inside, n, sizeof(*inside), by_z);
    for (size_t i = 0; i < n; i++) {
        take(&stairs, &inside[i], &limit);
        volume += stairs.area * ((i + 1 < n ? inside[i + 1].z : limit.z) - inside[i].z);
    }
    *ret = volume;
    return 0;
}
