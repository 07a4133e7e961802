/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/problem.h"

#include "base/base.h"

static int costs_init(struct tun_costs *c, size_t unit_count, const struct tun_ep *eps,
                      size_t ep_count)
{
    size_t rows = 0, cells;

    *c = (struct tun_costs){.unit_count = unit_count, .ep_count = ep_count};
    for (size_t k = 0; k < ep_count; k++) {
        c->first[k] = rows;
        c->cores[k] = eps[k].cores;
        rows += eps[k].cores;
    }
    if (!base_mul(rows, unit_count, &cells) || !(c->cells = calloc(cells, sizeof(*c->cells)))) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < cells; i++) {
        c->cells[i].ns = -1;
    }
    return 0;
}

int tun_problem_init(struct tun_problem *p, size_t unit_count, const struct tun_ep *eps,
                     size_t ep_count)
{
    *p = TUN_PROBLEM_NULL;
    if (unit_count == 0 || unit_count > TUN_UNIT_MAX || ep_count == 0 || ep_count > PL_EP_MAX) {
        return -EINVAL;
    }
    for (size_t k = 0; k < ep_count; k++) {
        if (eps[k].cores == 0 || eps[k].cores > PL_CPU_MAX) {
            return -EINVAL;
        }
    }
    p->units = calloc(unit_count, sizeof(*p->units));
    if (!p->units || costs_init(&p->costs, unit_count, eps, ep_count) < 0) {
        tun_problem_deinit(p);
        return -ENOMEM;
    }
    for (size_t u = 0; u < unit_count; u++) {
        p->units[u].weight = 1;
    }
    memcpy(p->eps, eps, ep_count * sizeof(*eps));
    p->unit_count = unit_count;
    p->ep_count = ep_count;
    p->bounds.slack = TUN_SLACK;
    return 0;
}

/* Return: there was memory; else spans that @to has are its own. */
static bool copy_spans(const struct tun_problem *from, struct tun_problem *to)
{
    to->span_count = 0;
    for (size_t i = 0; i < from->span_count; i++) {
        double *factors = calloc(from->unit_count, sizeof(*factors));

        if (!factors) {
            return false;
        }
        memcpy(factors, from->spans[i].factors, from->unit_count * sizeof(*factors));
        to->spans[to->span_count++].factors = factors;
    }
    return true;
}

int tun_problem_copy(const struct tun_problem *from, struct tun_problem *ret)
{
    struct tun_problem copy = *from;
    size_t cells = tun_cell_count(&from->costs);

    copy.units = calloc(from->unit_count, sizeof(*copy.units));
    copy.costs.cells = calloc(cells, sizeof(*copy.costs.cells));
    copy.at_once = NULL;
    copy.span_count = 0;
    if (!copy.units || !copy.costs.cells || (from->at_once && !tun_problem_at_once(&copy)) ||
        !copy_spans(from, &copy)) {
        tun_problem_deinit(&copy);
        return -ENOMEM;
    }
    memcpy(copy.units, from->units, from->unit_count * sizeof(*copy.units));
    memcpy(copy.costs.cells, from->costs.cells, cells * sizeof(*copy.costs.cells));
    if (from->at_once) {
        memcpy(copy.at_once, from->at_once,
               from->ep_count * from->unit_count * sizeof(*copy.at_once));
    }
    *ret = copy;
    return 0;
}

int tun_problem_part(const struct tun_problem *from, const uint16_t *eps, size_t ep_count,
                     size_t first, size_t last, struct tun_problem *ret)
{
    size_t units = last - first + 1;
    struct tun_ep part[PL_EP_MAX] = {0};
    int r;

    for (size_t k = 0; k < ep_count; k++) {
        part[k] = from->eps[eps[k]];
        part[k].board = 0;
    }
    r = tun_problem_init(ret, units, part, ep_count);
    if (r < 0) {
        return r;
    }
    memcpy(ret->units, from->units + first, units * sizeof(*ret->units));
    for (size_t k = 0; k < ep_count; k++) {
        for (size_t w = 1; w <= part[k].cores; w++) {
            memcpy(tun_cell_at(&ret->costs, k, w, 0), tun_cell_at(&from->costs, eps[k], w, first),
                   units * sizeof(struct tun_cell));
        }
    }
    ret->handoff_ns = from->handoff_ns;
    ret->handoff_ns_per_byte = from->handoff_ns_per_byte;
    return 0;
}

void tun_problem_deinit(struct tun_problem *p)
{
    free(p->units);
    free(p->costs.cells);
    free(p->at_once);
    for (size_t i = 0; i < p->span_count; i++) {
        free(p->spans[i].factors);
    }
    *p = TUN_PROBLEM_NULL;
}

/* ---- several frames at once ---- */

double tun_at_once_factor(const struct tun_at_once *a, double frames)
{
    double from = 1, from_t = 1;

    if (!a || !(frames > 1)) {
        return 1;
    }
    for (size_t i = 0; i < TUN_AT_ONCE; i++) {
        double to = 2 * from, to_t = to * (a->factor[i] > 0 ? a->factor[i] : 1);

        if (frames == to) {
            return to_t / to; /* as it is given, to the last bit */
        }
        if (frames < to) {
            return (from_t + (frames - from) * (to_t - from_t) / (to - from)) / frames;
        }
        from = to;
        from_t = to_t;
    }
    return from_t / from;
}

void tun_at_once_settle(struct tun_at_once *a)
{
    double before = 1;

    for (size_t i = 0; i < TUN_AT_ONCE; i++) {
        double *f = &a->factor[i];

        *f = isfinite(*f) && *f > 0 ? base_max(before / 2, base_min(before, *f)) : before;
        before = *f;
    }
}

bool tun_at_once_gains(const struct tun_at_once *a)
{
    return a && tun_at_once_factor(a, 8) <= 1 - TUN_AT_ONCE_LEAST;
}

struct tun_at_once *tun_problem_at_once(struct tun_problem *p)
{
    if (!p->at_once) {
        p->at_once = calloc(p->ep_count * p->unit_count, sizeof(*p->at_once));
    }
    return p->at_once;
}

bool tun_problem_gains(const struct tun_problem *p)
{
    for (size_t i = 0; p->at_once && i < p->ep_count * p->unit_count; i++) {
        if (tun_at_once_gains(&p->at_once[i])) {
            return true;
        }
    }
    return false;
}

size_t tun_problem_batch_max(const struct tun_problem *p)
{
    size_t most = p->bounds.batch_max ? p->bounds.batch_max : PL_BATCH_MAX;

    return tun_problem_gains(p) ? base_min(most, (size_t)PL_BATCH_MAX) : 1;
}

/* ---- checks ---- */

static int check_units(const struct tun_problem *p, char *ret_error)
{
    for (size_t u = 0; u < p->unit_count; u++) {
        const struct tun_unit *unit = &p->units[u];

        if (!tun_positive(unit->weight)) {
            snprintf(ret_error, TUN_ERROR_MAX, "unit %zu: its weight must be above 0, not %g", u,
                     unit->weight);
            return -EINVAL;
        }
        if (!isfinite(unit->in_bytes) || unit->in_bytes < 0) {
            snprintf(ret_error, TUN_ERROR_MAX, "unit %zu: %g bytes cannot cross its border", u,
                     unit->in_bytes);
            return -EINVAL;
        }
        if (!(unit->weight_bytes >= 0) || !(unit->arena_bytes >= 0) || !(unit->bytes >= 0) ||
            !isfinite(unit->weight_bytes + unit->arena_bytes + unit->bytes)) {
            snprintf(ret_error, TUN_ERROR_MAX, "unit %zu: its memory must not be negative", u);
            return -EINVAL;
        }
    }
    return 0;
}

static bool not_negative(double x)
{
    return isfinite(x) && x >= 0;
}

static int check_costs(const struct tun_problem *p, char *ret_error)
{
    for (size_t k = 0; k < p->ep_count; k++) {
        for (size_t w = 1; w <= p->eps[k].cores; w++) {
            for (size_t u = 0; u < p->unit_count; u++) {
                const struct tun_cell *cell = tun_cell_at(&p->costs, k, w, u);

                if (tun_cell_known(cell)) {
                    continue;
                }
                if (cell->source == TUN_UNKNOWN) {
                    snprintf(ret_error, TUN_ERROR_MAX,
                             "unit %zu has no cost on %zu core%s of EP %s", u, w, base_plural(w),
                             p->eps[k].name);
                } else {
                    snprintf(ret_error, TUN_ERROR_MAX,
                             "unit %zu on %zu core%s of EP %s: a cost must be above 0 ns, not %g",
                             u, w, base_plural(w), p->eps[k].name, cell->ns);
                }
                return -EINVAL;
            }
        }
    }
    return 0;
}

static int check_boards(const struct tun_problem *p, char *ret_error)
{
    const struct tun_boards *all = &p->boards;

    if (all->count > TUN_BOARD_MAX || all->head >= all->count) {
        snprintf(ret_error, TUN_ERROR_MAX, "%zu boards with board %zu as head: at most %u",
                 all->count, all->head, TUN_BOARD_MAX);
        return -EINVAL;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        if (p->eps[k].board >= all->count) {
            snprintf(ret_error, TUN_ERROR_MAX, "EP %s is on board %u of %zu", p->eps[k].name,
                     p->eps[k].board, all->count);
            return -EINVAL;
        }
    }
    for (size_t a = 0; a < all->count; a++) {
        const struct tun_board *b = &all->boards[a];

        if (!not_negative(b->memory_bytes) || !not_negative(b->energy_max_nj) ||
            !not_negative(b->frames_held) || !not_negative(b->port_ns_per_byte) ||
            !not_negative(b->link_watts)) {
            snprintf(ret_error, TUN_ERROR_MAX, "board %s: no figure may be negative", b->name);
            return -EINVAL;
        }
        for (size_t c = 0; c < all->count; c++) {
            if (c != a && (!not_negative(all->links[a][c].ns) ||
                           !not_negative(all->links[a][c].ns_per_byte))) {
                snprintf(ret_error, TUN_ERROR_MAX, "link %s to %s: a time is negative", b->name,
                         all->boards[c].name);
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

    if (p->unit_count == 0 || p->ep_count == 0) {
        snprintf(ret_error, TUN_ERROR_MAX, "there is nothing to plan: no units or no cores");
        return -EINVAL;
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        if (!tun_positive(p->eps[k].speed) || !tun_positive(p->eps[k].bandwidth) ||
            !not_negative(p->eps[k].watts) || !not_negative(p->eps[k].gbytes) ||
            !not_negative(p->eps[k].gbytes_max) || !not_negative(p->gbytes_max)) {
            snprintf(ret_error, TUN_ERROR_MAX,
                     "EP %s: speed and bandwidth must be above 0, watts and bytes per ns not "
                     "negative",
                     p->eps[k].name);
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
    if (error == 0 && p->boards.count > 1) {
        error = check_boards(p, ret_error);
    }
    return error ? error : check_costs(p, ret_error);
}

size_t tun_core_count(const struct tun_problem *p)
{
    size_t cores = 0;

    for (size_t k = 0; k < p->ep_count; k++) {
        cores += p->eps[k].cores;
    }
    return cores;
}

size_t tun_stages_max(const struct tun_problem *p)
{
    size_t most = base_min(base_min(tun_core_count(p), p->unit_count), (size_t)PL_STAGE_MAX);

    return p->bounds.stages_max ? base_min(most, p->bounds.stages_max) : most;
}

const char *const tun_objective_names[] = {
    [TUN_THROUGHPUT] = "throughput", [TUN_LATENCY] = "latency", [TUN_POWER] = "power"};

int tun_objective_find(const char *name, enum tun_objective *ret)
{
    for (enum tun_objective o = TUN_THROUGHPUT; o <= TUN_POWER; o++) {
        if (strcmp(tun_objective_names[o], name) == 0) {
            *ret = o;
            return 0;
        }
    }
    return -EINVAL;
}

void tun_eps(const struct tun_problem *p, struct pl_ep_set *ret)
{
    uint16_t cpu = 0;

    *ret = (struct pl_ep_set){.count = p->ep_count};
    if (p->boards.count > 1) {
        memcpy(ret->board, p->boards.boards[p->boards.head].name, sizeof(ret->board));
    }
    for (size_t k = 0; k < p->ep_count; k++) {
        struct pl_ep *ep = &ret->eps[k];

        memcpy(ep->name, p->eps[k].name, sizeof(ep->name));
        ep->cpu_count = p->eps[k].cores;
        ep->speed = p->eps[k].speed;
        for (size_t i = 0; i < ep->cpu_count; i++) {
            ep->cpus[i] = cpu++;
        }
    }
}

int tun_plan_text(const struct tun_problem *p, const struct pl_plan *plan,
                  char ret[PL_PLAN_TEXT_MAX])
{
    struct pl_ep_set eps;

    tun_eps(p, &eps);
    return pl_plan_format(plan, &eps, ret, PL_PLAN_TEXT_MAX);
}
