/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/problem.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base.h"

static int costs_init(struct tun_costs *c, size_t unit_count, const struct tun_kind *kinds,
                      size_t kind_count)
{
    size_t rows = 0, cells;

    *c = (struct tun_costs){.unit_count = unit_count, .kind_count = kind_count};
    for (size_t k = 0; k < kind_count; k++) {
        c->first[k] = rows;
        c->cores[k] = kinds[k].cores;
        rows += kinds[k].cores;
    }
    if (!base_mul(rows, unit_count, &cells) || !(c->cells = calloc(cells, sizeof(*c->cells)))) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < cells; i++) {
        c->cells[i].ns = -1;
    }
    return 0;
}

static size_t cell_count(const struct tun_costs *c)
{
    size_t last = c->kind_count - 1;

    return (c->first[last] + c->cores[last]) * c->unit_count;
}

int tun_problem_init(struct tun_problem *p, size_t unit_count, const struct tun_kind *kinds,
                     size_t kind_count)
{
    *p = TUN_PROBLEM_NULL;
    if (unit_count == 0 || unit_count > TUN_UNIT_MAX || kind_count == 0 || kind_count > PL_EP_MAX) {
        return -EINVAL;
    }
    for (size_t k = 0; k < kind_count; k++) {
        if (kinds[k].cores == 0 || kinds[k].cores > PL_CPU_MAX) {
            return -EINVAL;
        }
    }
    p->units = calloc(unit_count, sizeof(*p->units));
    if (!p->units || costs_init(&p->costs, unit_count, kinds, kind_count) < 0) {
        tun_problem_deinit(p);
        return -ENOMEM;
    }
    for (size_t u = 0; u < unit_count; u++) {
        p->units[u].weight = 1;
    }
    memcpy(p->kinds, kinds, kind_count * sizeof(*kinds));
    p->unit_count = unit_count;
    p->kind_count = kind_count;
    p->bounds.slack = TUN_SLACK;
    return 0;
}

int tun_problem_copy(const struct tun_problem *from, struct tun_problem *ret)
{
    struct tun_problem copy = *from;
    size_t cells = cell_count(&from->costs);

    copy.units = calloc(from->unit_count, sizeof(*copy.units));
    copy.costs.cells = calloc(cells, sizeof(*copy.costs.cells));
    if (!copy.units || !copy.costs.cells) {
        tun_problem_deinit(&copy);
        return -ENOMEM;
    }
    memcpy(copy.units, from->units, from->unit_count * sizeof(*copy.units));
    memcpy(copy.costs.cells, from->costs.cells, cells * sizeof(*copy.costs.cells));
    *ret = copy;
    return 0;
}

void tun_problem_deinit(struct tun_problem *p)
{
    free(p->units);
    free(p->costs.cells);
    *p = TUN_PROBLEM_NULL;
}

static bool positive(double x)
{
    return isfinite(x) && x > 0;
}

static int check_units(const struct tun_problem *p, char *ret_error)
{
    for (size_t u = 0; u < p->unit_count; u++) {
        const struct tun_unit *unit = &p->units[u];

        if (!positive(unit->weight)) {
            snprintf(ret_error, TUN_ERROR_MAX, "unit %zu: its weight must be above 0, not %g", u,
                     unit->weight);
            return -EINVAL;
        }
        if (!isfinite(unit->in_bytes) || unit->in_bytes < 0) {
            snprintf(ret_error, TUN_ERROR_MAX, "unit %zu: %g bytes cannot cross its border", u,
                     unit->in_bytes);
            return -EINVAL;
        }
    }
    return 0;
}

static int check_costs(const struct tun_problem *p, char *ret_error)
{
    for (size_t k = 0; k < p->kind_count; k++) {
        for (size_t w = 1; w <= p->kinds[k].cores; w++) {
            for (size_t u = 0; u < p->unit_count; u++) {
                const struct tun_cell *cell = tun_cell_at(&p->costs, k, w, u);

                if (positive(cell->ns)) {
                    continue;
                }
                if (cell->source == TUN_UNKNOWN) {
                    snprintf(ret_error, TUN_ERROR_MAX,
                             "unit %zu has no cost on %zu core%s of kind %s", u, w,
                             w > 1 ? "s" : "", p->kinds[k].name);
                } else {
                    snprintf(ret_error, TUN_ERROR_MAX,
                             "unit %zu on %zu core%s of kind %s: a cost must be above 0 ns, not %g",
                             u, w, w > 1 ? "s" : "", p->kinds[k].name, cell->ns);
                }
                return -EINVAL;
            }
        }
    }
    return 0;
}

int tun_problem_check(const struct tun_problem *p, char ret_error[TUN_ERROR_MAX])
{
    const struct tun_bounds *b = &p->bounds;
    int error;

    if (p->unit_count == 0 || p->kind_count == 0) {
        snprintf(ret_error, TUN_ERROR_MAX, "there is nothing to plan: no units or no cores");
        return -EINVAL;
    }
    for (size_t k = 0; k < p->kind_count; k++) {
        if (!positive(p->kinds[k].speed) || !positive(p->kinds[k].bandwidth) ||
            !isfinite(p->kinds[k].watts) || p->kinds[k].watts < 0) {
            snprintf(ret_error, TUN_ERROR_MAX,
                     "kind %s: speed and bandwidth must be above 0, watts not negative",
                     p->kinds[k].name);
            return -EINVAL;
        }
    }
    if (!(p->handoff_ns >= 0) || !(p->handoff_ns_per_byte >= 0) || !isfinite(p->handoff_ns) ||
        !isfinite(p->handoff_ns_per_byte)) {
        snprintf(ret_error, TUN_ERROR_MAX, "the hand-off cost must not be negative");
        return -EINVAL;
    }
    if (!(b->period_max_ns >= 0) || !(b->latency_max_ns >= 0) || !(b->slack >= 0)) {
        snprintf(ret_error, TUN_ERROR_MAX, "bounds and slack must not be negative");
        return -EINVAL;
    }
    if (p->objective == TUN_POWER && b->period_max_ns == 0) {
        snprintf(ret_error, TUN_ERROR_MAX,
                 "the power objective needs a frame rate to hold (its period)");
        return -EINVAL;
    }
    error = check_units(p, ret_error);
    return error ? error : check_costs(p, ret_error);
}

size_t tun_core_count(const struct tun_problem *p)
{
    size_t cores = 0;

    for (size_t k = 0; k < p->kind_count; k++) {
        cores += p->kinds[k].cores;
    }
    return cores;
}

void tun_eps(const struct tun_problem *p, struct pl_ep_set *ret)
{
    uint16_t cpu = 0;

    *ret = (struct pl_ep_set){.count = p->kind_count};
    for (size_t k = 0; k < p->kind_count; k++) {
        struct pl_ep *ep = &ret->eps[k];

        memcpy(ep->name, p->kinds[k].name, sizeof(ep->name));
        ep->cpu_count = p->kinds[k].cores;
        ep->speed = p->kinds[k].speed;
        for (size_t i = 0; i < ep->cpu_count; i++) {
            ep->cpus[i] = cpu++;
        }
    }
}
