/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/search/hypervolume.h"

#include "base/base.h"

struct point {
    double x, y, z;
};

/* The points of one slab of which none dominates another: by rising x, falling y. */
struct stairs {
    struct point *steps; /* owned */
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

static bool within(const double *point, const double *reference, size_t dimensions)
{
    for (size_t d = 0; d < dimensions; d++) {
        if (!(point[d] < reference[d])) {
            return false;
        }
    }
    return true;
}

int tun_hypervolume(const double *points, size_t count, size_t dimensions, const double *reference,
                    double *ret)
{
    struct point limit = {0}, *inside;
    struct stairs stairs = {0};
    size_t n = 0;
    double volume = 0;

    if (dimensions < 2 || dimensions > 3) {
        return -EINVAL;
    }
    limit = (struct point){reference[0], reference[1], dimensions == 3 ? reference[2] : 1};
    inside = calloc(count + 1, sizeof(*inside));
    stairs.steps = calloc(count + 1, sizeof(*stairs.steps));
    if (!inside || !stairs.steps) {
        free(inside);
        free(stairs.steps);
        return -ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const double *p = &points[i * dimensions];

        if (within(p, reference, dimensions)) {
            inside[n++] = (struct point){p[0], p[1], dimensions == 3 ? p[2] : 0};
        }
    }
    qsort(inside, n, sizeof(*inside), by_z);
    for (size_t i = 0; i < n; i++) {
        take(&stairs, &inside[i], &limit);
        volume += stairs.area * ((i + 1 < n ? inside[i + 1].z : limit.z) - inside[i].z);
    }
    free(inside);
    free(stairs.steps);
    *ret = volume;
    return 0;
}
