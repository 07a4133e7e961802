/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/wide.h"

#include "base/base.h"

#define FOREVER_NS (100.0 * (double)BASE_NS_PER_S)

/* Return: frames of @x that may go before one of @v, or are it, from its release until f later. */
static double frames(const struct tun_task *x, const struct tun_task *v, double f)
{
    uint64_t k = 0;

    if (x->class > v->class || (x->class == v->class && v->due_ns == 0)) {
        return tun_task_may_come(x, f + x->rest_ns);
    }
    while (tun_task_has_due(x, v->class) &&
           x->due_ns - x->rest_ns + tun_task_release_ns(x, k) <= v->due_ns * (1 + TUN_SLIP)) {
        k++;
    }
    return (double)k;
}

/* Return: how long a frame of @v is there; INFINITY: longer than it may. @bare: if seats did not
 * idle. */
static double there_ns(const struct tun_seat *row, const struct tun_task *v, bool bare)
{
    double most = v->due_ns > 0 ? v->due_ns : FOREVER_NS, f = 0, before = -1;

    while (f > before && f <= most) {
        before = f;
        f = 0;
        for (size_t i = 0; i < row->count; i++) {
            const struct tun_task *x = &row->tasks[i];

            f += frames(x, v, before) * (x->cost_ns + (bare ? 0 : x->gather_ns));
            if (!bare && tun_task_floored(row, x)) {
                bool units = x != v && x->class <= v->class;

                f += tun_task_fed_once_ns(x, units) + before * tun_task_fed_share(row, x, units);
            }
        }
    }
    return f <= most ? f : INFINITY;
}

static struct tun_late late(const struct tun_seat *row, const struct tun_task *v)
{
    struct tun_late ret = {.task = v, .waits = isfinite(there_ns(row, v, true))};
    double most = -1, longest_ns = 0;

    for (size_t i = 0; i < row->count; i++) {
        const struct tun_task *x = &row->tasks[i];
        double takes = frames(x, v, v->due_ns) * x->cost_ns;

        if (ret.waits && x->beside_ns > longest_ns) {
            longest_ns = x->beside_ns;
            ret.model = x->by_model;
            ret.unit = x->by_unit;
        } else if (!ret.waits && takes > most) {
            most = takes;
            ret.model = x->model;
        }
    }
    return ret;
}

void tun_row_check(struct tun_seat *row, struct tun_late *ret)
{
    *ret = (struct tun_late){0};
    for (size_t i = 0; i < row->count; i++) {
        struct tun_task *v = &row->tasks[i];

        if (v->guest) {
            continue;
        }
        tun_tasks_gather(row, v->class);
        v->found_ns = there_ns(row, v, false);
        if (isinf(v->found_ns) && v->due_ns > 0 && !ret->task) {
            *ret = late(row, v);
        }
    }
}
