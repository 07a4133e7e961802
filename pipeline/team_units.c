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

/* Runs units of frames. A team over several EPs divides them by what its members did of the first
 * of them before. */
static void run_units(const struct pl_team *t, const struct units *group,
                      const struct krn_mem *const *mems, size_t count, const struct krn_exec *exec)
{
    const struct krn_net *net = t->common->net;
    struct krn_range ops = ops_of(model_of(t), group);
    struct krn_exec divided = *exec;
    struct krn_uneven *u;
    uint64_t start;

    if (t->uneven == NULL) {
        krn_net_run_frames(net, ops, mems, count, exec);
        return;
    }
    u = &t->uneven[group->first - t->first_unit];
    divided.width = krn_uneven_width(u);
    divided.pool = divided.width > 1 ? exec->pool : NULL;
    krn_parallel_uneven(u);
    start = base_now_ns();
    krn_net_run_frames(net, ops, mems, count, &divided);
    krn_uneven_took(u, (double)(base_now_ns() - start) / (double)count);
    krn_parallel_uneven(NULL);
}

/* Runs a group of all frames. */
static void run_group(struct pl_team *t, const struct units *group,
                      const struct krn_mem *const *mems, const struct pl_clock_run *clock,
                      const struct krn_exec *exec)
{
    run_units(t, group, mems, clock->computed, exec);
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
    size_t laps = path->first - t->first_unit + 1u;
    struct units group;

    for (group.first = path->first; group.first <= path->last; group.first = group.last + 1) {
        uint64_t before, now;

        group.last = group_end(t, group.first);
        if (!pl_team_goes_on(t, group.first - t->first_unit, laps, clock)) {
            return false;
        }
        before = pl_ticks();
        run_units(t, &group, &mem, 1, exec);
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
