/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>

#include "pipeline/clocks.h"
#include "pipeline/fence.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define EWMA_WEIGHT 0.125
#define CHANGED_TIMES 1.5
/* What wall and CPU time of a run may differ by: the clocks are read one after the other. */
#define ALLOW_NS 5e3
#define ALLOW_SHARE (1 / 64.0)
/* By how much a run whose CPU clock was not read may take longer than usual. */
#define DOUBT_NS 5e4
#define DOUBT_SHARE 0.25
#define UNKNOWN_MAX 32u /* frames at the start that wait for one that is known */
#define READ_SPINS 64u
#define READ_YIELDS 16u /* after as many spins */

bool pl_ticks_usable;

__attribute__((constructor)) static void find_ticks(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    /* CPUID 80000007h, EDX bit 8: invariant TSC */
    pl_ticks_usable = __get_cpuid(0x80000007u, &a, &b, &c, &d) && (d & (1u << 8)) != 0;
#elif defined(__aarch64__)
    pl_ticks_usable = true;
#endif
}

int pl_clocks_init(struct pl_clocks *c, size_t unit_count)
{
    memset(c, 0, sizeof(*c));
    c->unit_count = unit_count;
    c->units = calloc(base_max(unit_count, (size_t)1), sizeof(c->units[0]));
    c->laps = calloc(unit_count + 1, sizeof(c->laps[0]));
    c->taken = calloc(unit_count + 1, sizeof(c->taken[0]));
    if (c->units == NULL || c->laps == NULL || c->taken == NULL) {
        pl_clocks_deinit(c);
        return -ENOMEM;
    }
    return 0;
}

void pl_clocks_deinit(struct pl_clocks *c)
{
    free(c->units);
    free(c->laps);
    free(c->taken);
    c->units = NULL;
    c->laps = NULL;
    c->taken = NULL;
}

/* The writer reads its own counters: relaxed, since it is the only writer. */
#define own(field) atomic_load_explicit(&(field), memory_order_relaxed)
#define set(field, value) atomic_store_explicit(&(field), value, memory_order_relaxed)

void pl_clocks_split(struct pl_clocks *c, size_t first, size_t end, const double *weights)
{
    double ticks = (double)(c->laps[end] - c->laps[first]), all = 0, before = 0;

    for (size_t i = first; i < end; i++) {
        all += weights[i];
    }
    for (size_t i = first; i + 1 < end; i++) {
        before += weights[i];
        c->laps[i + 1] = c->laps[first] + (uint64_t)(all > 0 ? ticks * (before / all) : 0);
    }
}

static double limit_of(double expected_ns, double allow_ns)
{
    return expected_ns + base_max(expected_ns, allow_ns);
}

/* Cuts the first sample; its limit is known only when the second one comes. */
static void cut_first(struct pl_clock_series *s, double limit)
{
    if (own(s->mean_ns) > limit) {
        set(s->mean_ns, limit);
        set(s->ewma_ns, limit);
    }
}

/* Welford: mean += d / n, m2 += d (x - mean). @inverse is 1 / n: the units share one division. */
static void series_add(struct pl_clock_series *s, uint64_t count, double inverse, double x,
                       double allow_ns)
{
    double mean, delta, ewma;

    if (count == 1) {
        set(s->mean_ns, x);
        set(s->ewma_ns, x);
        set(s->min_ns, x);
        set(s->count, count);
        return;
    }
    set(s->min_ns, base_min(own(s->min_ns), x));
    if (__builtin_expect(count == 2, 0)) {
        cut_first(s, limit_of(x, allow_ns));
    }
    ewma = own(s->ewma_ns);
    x = base_min(x, limit_of(ewma, allow_ns));
    mean = own(s->mean_ns);
    delta = x - mean;
    mean += delta * inverse;
    set(s->mean_ns, mean);
    set(s->m2, own(s->m2) + delta * (x - mean));
    set(s->ewma_ns, ewma + (x - ewma) * EWMA_WEIGHT);
    set(s->count, count);
}

/* Return: of a frame of a run that was clocked, the time for which the team had all its cores. Sets
 * run->unsure. */
static double had_cores(struct pl_clock_run *run, double each_ns, double usual_ns)
{
    double frames = (double)run->computed, lost = each_ns - (double)run->own_ns / frames;
    double most = each_ns - base_max(lost, (double)run->lost_most_ns / frames);
    double least = each_ns - base_max(lost, 0.0) - (double)run->lost_sum_ns / frames;

    if (each_ns - most <= ALLOW_NS + each_ns * ALLOW_SHARE) {
        return each_ns;
    }
    least = base_max(least, 0.0);
    run->unsure = run->lost_sum_ns > 0;
    return usual_ns > 0 ? base_max(least, base_min(usual_ns, most)) : (least + most) / 2;
}

/* Return: what a frame of the run cost the team, of @each_ns on the wall clock. */
static double work_of(struct pl_clocks *c, struct pl_clock_run *run, double each_ns)
{
    double usual_ns = own(c->work.ewma_ns);
    bool fewer = run->computed < c->computed; /* at once, which may take longer each */

    c->computed = run->computed;
    c->doubtful =
        !c->coarse && !fewer && usual_ns > 0 && each_ns > usual_ns * (1 + DOUBT_SHARE) + DOUBT_NS;
    if (!c->coarse && run->clocked) {
        return had_cores(run, each_ns, usual_ns);
    }
    return c->doubtful ? usual_ns : each_ns;
}

static double lap_ticks(const struct pl_clocks *c, size_t i)
{
    /* signed: an unpinned team may see ticks run backwards if the counter is not invariant */
    return base_max((double)(int64_t)(c->laps[i + 1] - c->laps[i]), 0.0);
}

/* What unit @i usually takes, of its lap at most. @work: ticks of all units. */
static double usual_ticks(const struct pl_clocks *c, size_t i, double ns_per_tick, double work)
{
    double usual = c->known            ? own(c->units[i].ewma_ns) / ns_per_tick
                   : c->shares != NULL ? c->shares[i] * work
                                       : work / (double)c->unit_count;

    return base_min(lap_ticks(c, i), usual);
}

/* Sets taken[] to @lost ticks of @held: of what is above the usual, then of all. */
static void leave_out(struct pl_clocks *c, double lost, double held, double ns_per_tick)
{
    double usual = 0, above = 0, of_above, of_usual;

    for (size_t i = 0; i < c->unit_count; i++) {
        double u = usual_ticks(c, i, ns_per_tick, held - lost);

        usual += u;
        above += lap_ticks(c, i) - u;
    }
    of_above = above > lost ? lost / above : 1;
    of_usual = above < lost && usual > 0 ? base_min((lost - above) / usual, 1.0) : 0;
    for (size_t i = 0; i < c->unit_count; i++) {
        double u = usual_ticks(c, i, ns_per_tick, held - lost);

        c->taken[i] = (lap_ticks(c, i) - u) * of_above + u * of_usual;
    }
}

void pl_clocks_judge(struct pl_clocks *c, struct pl_clock_run *run)
{
    double ticks = (double)(c->laps[c->unit_count] - c->laps[0]), each_ns;

    if (!run->timed || run->computed == 0 || !(ticks > 0)) {
        return;
    }
    each_ns = (double)(run->end_ns - run->start_ns) / (double)run->computed;
    run->work_ns = work_of(c, run, each_ns);
    run->disturbed = run->work_ns < each_ns;
    c->doubtful |= !c->known && run->unsure;
    if (__builtin_expect(run->disturbed, 0)) {
        leave_out(c, ticks * (1 - run->work_ns / each_ns), ticks, each_ns / ticks);
    }
}

/* Adds a frame. @taken: NULL: nothing. @count: of frames whose units were timed, with this one. */
static void fold_units(struct pl_clocks *c, const double *taken, uint64_t count, double ns_per_tick)
{
    double inverse = 1.0 / (double)count;

    for (size_t i = 0; i < c->unit_count; i++) {
        double ticks = lap_ticks(c, i) - (taken != NULL ? taken[i] : 0);

        series_add(&c->units[i], count, inverse, ticks * ns_per_tick, PL_SERIES_ALLOW_UNIT_NS);
    }
}

/* Adds the frames of a run whose units were timed, @each_ns for each. Those at the start whose work
 * is not known are added with the first that is, and count as that one. */
static void fold_timed(struct pl_clocks *c, const struct pl_clock_run *run, double each_ns)
{
    uint64_t ticks = c->laps[c->unit_count] - c->laps[0], count = own(c->work.count);
    double ns_per_tick = ticks > 0 ? each_ns / (double)ticks : 0;
    size_t frames = c->unknown + run->computed;

    if (!c->known && run->unsure && frames <= UNKNOWN_MAX) {
        c->unknown = frames;
        return;
    }
    c->known = true;
    c->unknown = 0;
    for (size_t i = 0; i < frames; i++) {
        count++;
        series_add(&c->work, count, 1.0 / (double)count, run->disturbed ? run->work_ns : each_ns,
                   PL_SERIES_ALLOW_NS);
        fold_units(c, run->disturbed ? c->taken : NULL, count, ns_per_tick);
    }
}

/* The average of service times follows a change at once that two runs in a row agree on. */
static void follow_change(struct pl_clocks *c, const struct pl_clock_run *run, double each)
{
    double ewma = own(c->service.ewma_ns), before = c->before_ns;
    double least = base_min(before, each), most = base_max(before, each);

    c->before_ns = each;
    if (run->probe) {
        set(c->service.ewma_ns, each);
    } else if (before > 0 && least > ewma * CHANGED_TIMES + PL_SERIES_ALLOW_NS) {
        set(c->service.ewma_ns, least);
    } else if (before > 0 && ewma > most * CHANGED_TIMES + PL_SERIES_ALLOW_NS) {
        set(c->service.ewma_ns, most);
    }
}

void pl_clocks_fold(struct pl_clocks *c, const struct pl_clock_run *run)
{
    uint32_t version = own(c->version);
    uint64_t frames = own(c->frames), held = run->end_ns - run->start_ns;
    double each = (double)held / (double)base_max(run->computed, (size_t)1);

    set(c->version, version + 1);
    /* odd version before any counter; release fence pairs with the reader's acquire fence */
    pl_fence_release();
    set(c->busy_ns, own(c->busy_ns) + held);
    set(c->cpu_ns, own(c->cpu_ns) + run->cpu_ns);
    set(c->runs, own(c->runs) + (run->computed > 0));
    if (run->computed > 0) {
        follow_change(c, run, each);
    }
    for (size_t i = 0; i < run->computed; i++) {
        frames++;
        series_add(&c->service, frames, 1.0 / (double)frames, each, PL_SERIES_ALLOW_NS);
    }
    if (run->timed && run->computed > 0) {
        fold_timed(c, run, each);
    }
    set(c->frames, frames);
    atomic_store_explicit(&c->version, version + 2, memory_order_release);
}

/* @patience: how often it may still look; at 0 it takes what is there. */
static uint32_t read_begin(const struct pl_clocks *c, unsigned *patience)
{
    for (;;) {
        uint32_t version = atomic_load_explicit(&c->version, memory_order_acquire);

        if ((version & 1) == 0 || *patience == 0) {
            return version;
        }
        if (--*patience < READ_YIELDS) {
            sched_yield();
        }
    }
}

static bool read_again(const struct pl_clocks *c, uint32_t version, unsigned *patience)
{
    pl_fence_acquire();
    if (atomic_load_explicit(&c->version, memory_order_relaxed) == version || *patience == 0) {
        return false;
    }
    --*patience;
    return true;
}

static void series_read(const struct pl_clock_series *s, struct pl_series *ret)
{
    ret->count = own(s->count);
    ret->mean_ns = own(s->mean_ns);
    ret->ewma_ns = own(s->ewma_ns);
    ret->min_ns = own(s->min_ns);
    ret->m2 = own(s->m2);
}

bool pl_clocks_read(const struct pl_clocks *c, struct pl_team_stats *ret)
{
    unsigned patience = READ_SPINS + READ_YIELDS;
    uint32_t version;

    do {
        version = read_begin(c, &patience);
        series_read(&c->service, &ret->service);
        series_read(&c->work, &ret->work);
        ret->frames = own(c->frames);
        ret->runs = own(c->runs);
        ret->busy_ns = own(c->busy_ns);
        ret->cpu_ns = own(c->cpu_ns);
    } while (read_again(c, version, &patience));
    return patience > 0;
}

bool pl_clocks_read_unit(const struct pl_clocks *c, size_t i, struct pl_series *ret)
{
    unsigned patience = READ_SPINS + READ_YIELDS;
    uint32_t version;

    do {
        version = read_begin(c, &patience);
        series_read(&c->units[i], ret);
    } while (read_again(c, version, &patience));
    return patience > 0;
}
