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
static double there_ns(const struct tun_seat *bench, const struct tun_task *v, bool bare)
{
    double most = v->due_ns > 0 ? v->due_ns : FOREVER_NS, f = 0, before = -1;

    while (f > before && f <= most) {
        before = f;
        f = 0;
        for (size_t i = 0; i < bench->count; i++) {
            const struct tun_task *x = &bench->tasks[i];

            f += frames(x, v, before) * (x->cost_ns + (bare ? 0 : x->gather_ns));
            if (!bare && tun_task_floored(bench, x)) {
                bool units = x != v && x->class <= v->class;

                f += tun_task_fed_once_ns(x, units) + before * tun_task_fed_share(bench, x, units);
            }
        }
    }
    return f <= most ? f : INFINITY;
}

static void refuse(const struct tun_seat *bench, const struct tun_task *v, struct tun_answer *ret)
{
    double most = -1, longest_ns = 0;

    *ret = (struct tun_answer){.load = ret->load,
                               .refusal = isfinite(there_ns(bench, v, true)) ? TUN_TOO_LONG_A_UNIT
                                                                             : TUN_TOO_MUCH_DEMAND,
                               .seat = v->seat,
                               .late = v->model};
    for (size_t i = 0; i < bench->count; i++) {
        const struct tun_task *x = &bench->tasks[i];
        double takes = frames(x, v, v->due_ns) * x->cost_ns;

        if (ret->refusal == TUN_TOO_LONG_A_UNIT && x->beside_ns > longest_ns) {
            longest_ns = x->beside_ns;
            ret->model = x->by_model;
            ret->unit = x->by_unit;
        } else if (ret->refusal == TUN_TOO_MUCH_DEMAND && takes > most) {
            most = takes;
            ret->model = x->model;
        }
    }
}

void tun_bench_check(struct tun_seat *bench, struct tun_answer *io_answer)
{
    for (size_t i = 0; i < bench->count; i++) {
        struct tun_task *v = &bench->tasks[i];

        if (v->guest) {
            continue;
        }
        tun_tasks_gather(bench, v->class);
        v->found_ns = there_ns(bench, v, false);
        if (isinf(v->found_ns) && v->due_ns > 0 && io_answer->refusal == TUN_ADMITTED) {
            refuse(bench, v, io_answer);
        }
    }
}
