/* SPDX-License-Identifier: Apache-2.0 */
/* How a team runs its units on the frames it took. */
#include "pipeline/team.h"

/* A run of units of the team, both ends included. */
struct units {
    size_t first, last;
};

static const struct mdl_model *model_of(const struct pl_team *t)
{
    return krn_net_model(t->common->net);
}

/* The last unit that must run together with @unit: a FUSED primitive may run the last op of a unit
 * and the first of the next. */
static size_t group_end(const struct pl_team *t, size_t unit)
{
    const struct mdl_model *m = model_of(t);

    while (unit < t->last_unit &&
           krn_net_chosen_fused(t->common->net, t->kind, m->units[unit].last_op) != NULL) {
        unit++;
    }
    return unit;
}

static struct krn_range ops_of(const struct mdl_model *m, const struct units *u)
{
    return (struct krn_range){m->units[u->first].first_op, m->units[u->last].last_op + 1};
}

static void progress(struct pl_team *t, uint64_t ticks, const struct pl_clock_run *clock)
{
    double held_ns = (double)(ticks - t->clocks.laps[0]) * t->ns_per_tick;

    atomic_store_explicit(&t->progress_ns, clock->start_ns + (uint64_t)held_ns,
                          memory_order_relaxed);
}

/* Sets the laps inside a group whose end is known. */
static void split(struct pl_team *t, const struct units *group)
{
    if (group->last > group->first) {
        pl_clocks_split(&t->clocks, group->first - t->first_unit, group->last - t->first_unit + 1u,
                        t->shares);
    }
}

/* A run of frames. */
struct run {
    const struct krn_mem *const *mems;
    size_t count;
    struct pl_clock_run *clock;
    const struct krn_exec *exec;
    size_t laps; /* that are set, and move if the team gets up */
};

/* Learns what part of the group's time, until @now, its longest piece takes. One that took long by
 * chance counts little. */
static void learn_longest(struct pl_team *t, const struct units *group,
                          const struct pl_in_pieces *p, uint64_t now)
{
    uint64_t took = now - p->start_ticks - p->stood_ticks;
    uint64_t longest_ticks = base_max(p->longest_ticks, now - p->piece_ticks);
    double part = took > 0 ? base_min((double)longest_ticks / (double)took, 1.0) : 1;

    for (size_t i = group->first; i <= group->last; i++) {
        _Atomic double *longest = &t->longest[i - t->first_unit];
        double e = atomic_load_explicit(longest, memory_order_relaxed);

        e = e > 0 ? e + (base_min(part, 2 * e) - e) / 8 : part;
        atomic_store_explicit(longest, e, memory_order_relaxed);
    }
}

/* Return: for how many ticks it got up meanwhile. */
static uint64_t run_in_pieces(struct pl_team *t, const struct units *group, const struct run *r)
{
    size_t at = group->first - t->first_unit;
    struct krn_exec cut = *r->exec;
    uint64_t start = pl_ticks();
    struct pl_in_pieces p = {.team = t,
                             .at = at,
                             .laps = r->laps,
                             .clock = r->clock,
                             .start_ticks = start,
                             .piece_ticks = start};

    cut.width = t->pieces[at];
    cut.pool = NULL;
    krn_parallel_between((struct krn_between){pl_team_between, &p});
    krn_net_run_frames(t->common->net, ops_of(model_of(t), group), r->mems, 1, &cut);
    krn_parallel_between(KRN_BETWEEN_NULL);
    learn_longest(t, group, &p, pl_ticks());
    return p.stood_ticks;
}

/* A team over several EPs divides units by what its members did of the first of them before. */
static void run_divided(const struct pl_team *t, const struct units *group, const struct run *r)
{
    struct krn_exec divided = *r->exec;
    struct krn_uneven *u;
    uint64_t start;

    u = &t->uneven[group->first - t->first_unit];
    divided.width = krn_uneven_width(u);
    divided.pool = divided.width > 1 ? r->exec->pool : NULL;
    krn_parallel_uneven(u);
    start = base_now_ns();
    krn_net_run_frames(t->common->net, ops_of(model_of(t), group), r->mems, r->count, &divided);
    krn_uneven_took(u, (double)(base_now_ns() - start) / (double)r->count);
    krn_parallel_uneven(NULL);
}

/* Runs units of frames. Return: for how many ticks the team got up in the middle of them. */
static uint64_t run_units(struct pl_team *t, const struct units *group, const struct run *r)
{
    if (t->uneven != NULL) {
        run_divided(t, group, r);
    } else if (t->pieces != NULL && r->count == 1 && t->pieces[group->first - t->first_unit] > 1) {
        return run_in_pieces(t, group, r);
    } else {
        krn_net_run_frames(t->common->net, ops_of(model_of(t), group), r->mems, r->count, r->exec);
    }
    return 0;
}

/* Runs a group of all frames. */
static void run_group(struct pl_team *t, const struct units *group,
                      const struct krn_mem *const *mems, struct pl_clock_run *clock,
                      const struct krn_exec *exec)
{
    const struct run r = {mems, clock->computed, clock, exec, group->first - t->first_unit + 1u};

    run_units(t, group, &r);
    if (clock->timed) {
        progress(t, pl_clocks_lap(&t->clocks, group->last - t->first_unit + 1u), clock);
        split(t, group);
    }
}

/* Return: the bytes of values that @group reads and writes are more than those of its weights. */
static bool has_larger_values(const struct mdl_model *m, const struct units *group)
{
    size_t weights = 0, values = m->units[group->last].live_bytes;

    values += group->first > 0 ? m->units[group->first - 1].live_bytes : m->inputs[0].bytes;
    for (size_t i = group->first; i <= group->last; i++) {
        weights += m->units[i].weight_bytes;
    }
    return values > weights;
}

/* Return: the last unit of the groups from @group on whose values are larger than their weights;
 * the caller knows that of @group. */
static size_t path_end(const struct pl_team *t, const struct units *group)
{
    size_t last = group->last;

    while (last < t->last_unit) {
        const struct units next = {last + 1, group_end(t, last + 1)};

        if (!has_larger_values(model_of(t), &next)) {
            break;
        }
        last = next.last;
    }
    return last;
}

/* Runs @path of one frame, and adds the time of each group to the lap of its end. */
static bool run_frame(struct pl_team *t, const struct units *path, const struct krn_mem *mem,
                      struct pl_clock_run *clock, const struct krn_exec *exec)
{
    const struct run r = {&mem, 1, clock, exec, path->first - t->first_unit + 1u};
    struct units group;

    for (group.first = path->first; group.first <= path->last; group.first = group.last + 1) {
        uint64_t before, now;

        group.last = group_end(t, group.first);
        if (!pl_team_goes_on(t, group.first - t->first_unit, r.laps, clock)) {
            return false;
        }
        before = pl_ticks();
        before += run_units(t, &group, &r);
        now = pl_ticks();
        t->clocks.laps[group.last - t->first_unit + 1u] += now - before;
        if (clock->timed) {
            progress(t, now, clock);
        }
    }
    return true;
}

/* Runs @path of one frame after the other. */
static bool run_path(struct pl_team *t, const struct units *path, const struct krn_mem *const *mems,
                     struct pl_clock_run *clock, const struct krn_exec *exec)
{
    uint64_t *laps = t->clocks.laps;
    struct units group;

    for (size_t i = path->first; i <= path->last; i++) {
        laps[i - t->first_unit + 1u] = 0;
    }
    for (size_t k = 0; k < clock->computed; k++) {
        if (!run_frame(t, path, mems[k], clock, exec)) {
            return false;
        }
    }
    for (size_t i = path->first; i <= path->last; i++) {
        laps[i - t->first_unit + 1u] += laps[i - t->first_unit];
    }
    for (group.first = path->first; group.first <= path->last; group.first = group.last + 1) {
        group.last = group_end(t, group.first);
        split(t, &group);
    }
    return true;
}

int pl_team_cut(struct pl_team *t, const uint8_t *pieces, size_t *io_scratch_bytes)
{
    const struct krn_net *net = t->common->net;
    size_t count = (size_t)(t->last_unit - t->first_unit) + 1;
    struct units group;
    int r = 0;

    if (t->width > 1 || t->sitter.client == NULL || !t->joined) {
        return 0;
    }
    t->pieces = malloc(count);
    t->longest = calloc(count, sizeof(t->longest[0]));
    if (t->pieces == NULL || t->longest == NULL) {
        return -ENOMEM;
    }
    memset(t->pieces, 1, count);
    for (group.first = t->first_unit; r == 0 && group.first <= t->last_unit;
         group.first = group.last + 1) {
        struct krn_range ops;
        size_t most = 1, n;

        group.last = group_end(t, group.first);
        for (size_t i = group.first; i <= group.last; i++) {
            most = base_max(most, (size_t)pieces[i]);
        }
        ops = ops_of(model_of(t), &group);
        n = krn_net_pieces(net, t->kind, ops, most);
        r = n > 1 ? krn_net_join_pieces(net, t->kind, ops, n, io_scratch_bytes) : 0;
        memset(t->pieces + (group.first - t->first_unit), (int)n, group.last - group.first + 1);
    }
    return r;
}

bool pl_team_run_units(struct pl_team *t, const struct krn_mem *const *mems,
                       struct pl_clock_run *clock)
{
    const struct mdl_model *m = model_of(t);
    const struct krn_exec exec = {.pool = t->members.pool,
                                  .width = t->width,
                                  .scratch = t->scratch,
                                  .kind = t->kind,
                                  .first_op = m->units[t->first_unit].first_op,
                                  .last_op = m->units[t->last_unit].last_op};
    struct units now;

    for (now.first = t->first_unit; now.first <= t->last_unit; now.first = now.last + 1) {
        size_t at = now.first - t->first_unit;

        now.last = group_end(t, now.first);
        if (!pl_team_goes_on(t, at, at + 1, clock)) {
            return false;
        }
        if (clock->computed == 1 || !has_larger_values(m, &now)) {
            run_group(t, &now, mems, clock, &exec);
            continue;
        }
        now.last = path_end(t, &now);
        if (!run_path(t, &now, mems, clock, &exec)) {
            return false;
        }
    }
    return true;
}
