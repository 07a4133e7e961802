/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "base/leaves/load_work.h"
#include "kernels/select/measure_private.h"

#define WINDOW_BYTES ((size_t)96 << 20) /* of primitives that are packed at the same time */
#define LONG_NS (20 * BASE_NS_PER_MS)   /* cold caches do not matter to what takes so long */
#define HUGE_FRAMES 8u                  /* samples of a primitive that alone fills a window */

/* When passes over a window end. */
struct goal {
    size_t frames;   /* samples of each primitive */
    size_t least;    /* of them, which it takes whatever the time */
    uint64_t end_ns; /* of the time for more */
};

static bool ready(struct krn_measurement *r, size_t op, struct krn_candidate *c)
{
    const struct krn_primitive *v = c->bound.primitive;
    size_t scratch;
    int e = krn_bound_ready(&c->bound, r->m, op, 1);

    e = e < 0 ? e : krn_bound_consts(v, r->m, op, r->copies, &r->copied);
    if (e < 0) {
        c->unable = true;
        r->error = e == -EOPNOTSUPP ? r->error : e;
        return false;
    }
    c->warm = false;
    c->bytes = krn_bound_bytes(&c->bound);
    scratch = krn_bound_scratch_bytes(v, r->m, op, 1);
    if (scratch > r->scratch_bytes) {
        free(r->scratch);
        r->scratch = aligned_alloc(64, base_align_up(scratch, 64));
        r->scratch_bytes = r->scratch ? scratch : 0;
        r->error = r->scratch ? r->error : -ENOMEM;
    }
    return r->error == 0;
}

static bool give_up(struct krn_measurement *r)
{
    if (mdl_stopped()) {
        r->error = -ECANCELED;
    }
    return r->error < 0;
}

/* The primitive for op @op in this pass: the least sampled unfinished one, else the fastest ready
 * one. NULL: none. */
static struct krn_candidate *next_candidate(const struct krn_measurement *r, size_t op, size_t last)
{
    struct krn_candidate *pick = NULL, *spare = NULL;

    for (size_t i = 0; i < r->ops[op].count; i++) {
        struct krn_candidate *c = &r->ops[op].of[i];

        if (!c->bound.ready || (c->bound.primitive->fused && op == last)) {
            continue;
        }
        if (!krn_measure_is_done(r, c) && (!pick || c->stat->runs < pick->stat->runs)) {
            pick = c;
        }
        if (!c->bound.primitive->fused &&
            (!spare || krn_stat_median(c->stat) < krn_stat_median(spare->stat))) {
            spare = c;
        }
    }
    return pick ? pick : spare;
}

static void add_sample(const struct krn_measurement *r, struct krn_stat *s, double ns, bool clean)
{
    if (clean && s->count < r->frames) {
        s->samples[s->count++] = ns;
    } else if (!clean) {
        s->disturbed[s->disturbed_count++ % KRN_MEASURE_FRAMES] = ns;
    }
}

/* Ends a stretch: only now is it known whether its samples are clean. */
static void end_stretch(struct krn_measurement *r)
{
    bool steady = krn_watch_end(&r->watch);

    for (size_t i = 0; i < r->pending_count; i++) {
        const struct krn_pending *p = &r->pending[i];

        add_sample(r, p->stat, (double)p->ns, steady && p->kept);
        if (p->judged) {
            krn_measure_judge(r, p->op, p->judged);
        }
    }
    r->pending_count = 0;
}

static void pend(struct krn_measurement *r, struct krn_pending p)
{
    p.stat->runs++;
    r->pending[r->pending_count++] = p;
}

static void run_candidate(struct krn_measurement *r, size_t op, struct krn_candidate *c)
{
    struct krn_op_candidates *shapes = &r->ops[r->ops[op].same];
    const struct krn_watch_clocks *clocks = &r->watch.clocks;
    struct krn_exec exec = {.width = 1, .scratch = r->scratch};
    struct krn_bound_laps laps;
    uint64_t ran_ns = clocks->thread_ns(clocks->arg);
    bool kept;

    krn_bound_run(&c->bound, &(struct krn_bound_run){.m = r->m,
                                                     .op = op,
                                                     .copies = r->copies,
                                                     .mem = &r->mem,
                                                     .exec = &exec,
                                                     .laps = &laps});
    if (clocks->took_ns) {
        laps.run_ns = clocks->took_ns(clocks->arg, op, c->bound.primitive, laps.run_ns);
    }
    kept = krn_watch_kept(&r->watch);
    ran_ns = r->watch.thread_ns - ran_ns;
    if (!kept) { /* others may have had the core for longer than it took */
        laps.run_ns = base_min(laps.run_ns, ran_ns);
    }
    if (c->warm && c->bound.primitive->nchw_in) {
        pend(r, (struct krn_pending){&shapes->takes, laps.in_ns, kept, op, NULL});
    }
    if (c->warm && c->bound.primitive->nchw_out) {
        pend(r, (struct krn_pending){&shapes->gives, laps.out_ns, kept, op, NULL});
    }
    if (c->warm || laps.run_ns > LONG_NS) {
        pend(r, (struct krn_pending){c->stat, laps.run_ns, kept, op, c});
    }
    c->warm = true;
    if (r->watch.wall_ns - r->watch.start_ns >= KRN_WATCH_STRETCH_NS ||
        r->pending_count + 3 > KRN_MEASURE_PENDING) {
        end_stretch(r);
    }
}

static void pass(struct krn_measurement *r, size_t first, size_t last)
{
    memcpy(r->arena, r->saved, r->m->arena_bytes);
    for (size_t op = first; op <= last; op++) {
        struct krn_candidate *c = give_up(r) ? NULL : next_candidate(r, op, last);

        if (!c) {
            continue;
        }
        run_candidate(r, op, c);
        op += c->bound.primitive->fused;
    }
}

/* Has @c the samples, or as many runs as are spent on them? */
static bool has(const struct krn_measurement *r, const struct krn_candidate *c,
                size_t least_samples)
{
    const struct krn_stat *s = c->stat;

    return krn_measure_is_done(r, c) || s->count >= least_samples ||
           s->runs >= (least_samples > 1 ? KRN_MEASURE_PATIENCE * least_samples : 1);
}

static bool all_done(const struct krn_measurement *r, size_t first, size_t last,
                     size_t least_samples)
{
    for (size_t op = first; op <= last; op++) {
        for (size_t i = 0; i < r->ops[op].count; i++) {
            const struct krn_candidate *c = &r->ops[op].of[i];

            if (c->bound.ready && !has(r, c, least_samples) &&
                !(c->bound.primitive->fused && op == last)) {
                return false;
            }
        }
    }
    return true;
}

/* Has a primitive of each op run, if all cannot? A pair of ops may run as one. */
static bool any_done(const struct krn_measurement *r, size_t first, size_t last)
{
    for (size_t op = first; op <= last; op++) {
        if (!r->ops[op].still && !krn_measure_fastest(r, op)) {
            return false;
        }
    }
    return true;
}

/* Need not all of the ops' primitives have run? */
static bool is_late(const struct krn_measurement *r, size_t first, size_t last)
{
    return base_now_ns() > r->limit_end_ns && any_done(r, first, last);
}

/* All ops of a window are measured side by side: those that are done are reckoned by its time. */
static void tell(const struct krn_measurement *r, size_t first, size_t last)
{
    uint64_t now = base_now_ns(),
             all = r->window_end_ns - base_min(r->window_start_ns, r->window_end_ns);
    uint64_t passed = base_min(now - r->window_start_ns, all);

    mdl_progress(
        "measuring primitives of operators",
        first + (all ? (size_t)((double)(last + 1 - first) * (double)passed / (double)all) : 0),
        r->m->op_count);
}

static void passes(struct krn_measurement *r, size_t first, size_t last, struct goal goal)
{
    memcpy(r->saved, r->arena, r->m->arena_bytes);
    krn_watch_begin(&r->watch);
    while (!give_up(r) && !all_done(r, first, last, goal.frames) &&
           (base_now_ns() < goal.end_ns || !all_done(r, first, last, goal.least)) &&
           !is_late(r, first, last)) {
        tell(r, first, last);
        pass(r, first, last);
    }
    end_stretch(r);
}

static size_t op_bytes(const struct krn_measurement *r, size_t op)
{
    size_t bytes = 0;

    for (size_t i = 0; !r->ops[op].still && i < r->ops[op].count; i++) {
        const struct krn_candidate *c = &r->ops[op].of[i];

        bytes += krn_measure_is_done(r, c) ? 0 : c->bytes;
    }
    return bytes;
}

static void release(struct krn_measurement *r, size_t first, size_t last)
{
    for (size_t op = first; op <= last; op++) {
        for (size_t i = 0; i < r->ops[op].count; i++) {
            krn_bound_release(&r->ops[op].of[i].bound);
        }
    }
}

static bool is_huge_left(const struct krn_measurement *r, const struct krn_candidate *c)
{
    return !krn_measure_is_done(r, c) && !c->bound.primitive->fused;
}

/* Measures ops whose weights alone fill a window, one primitive at a time. Packing takes longer
 * than a few samples, and each of the primitives has its share of the time. */
static void measure_huge(struct krn_measurement *r, size_t op, uint64_t end_ns)
{
    struct krn_candidate *all = r->ops[op].of;
    size_t left = 0;

    for (size_t i = 0; i < r->ops[op].count; i++) {
        left += is_huge_left(r, &all[i]);
    }
    for (size_t i = 0; !give_up(r) && i < r->ops[op].count; i++) {
        if (is_huge_left(r, &all[i]) && !is_late(r, op, op)) {
            uint64_t now_ns = base_now_ns();
            uint64_t share_ns = (end_ns - base_min(now_ns, end_ns)) / base_max(left--, (size_t)1);

            if (ready(r, op, &all[i])) {
                passes(r, op, op,
                       (struct goal){HUGE_FRAMES, KRN_FIGURE_CLEAN_MIN, now_ns + share_ns});
                krn_bound_release(&all[i].bound);
            }
        }
    }
}

/* Prepares every promising primitive of the window, or one to run the op with if none is left. */
static void ready_window(struct krn_measurement *r, size_t first, size_t last)
{
    for (size_t op = first; !give_up(r) && op <= last; op++) {
        bool any = r->ops[op].still;

        for (size_t i = 0; !r->ops[op].still && !give_up(r) && i < r->ops[op].count; i++) {
            struct krn_candidate *c = &r->ops[op].of[i];

            if (!krn_measure_is_done(r, c)) {
                any |= ready(r, op, c) && !c->bound.primitive->fused;
            }
        }
        for (struct krn_candidate *best;
             !any && !give_up(r) && (best = krn_measure_fastest(r, op));) {
            any = ready(r, op, best);
        }
        if (!any && r->error == 0) {
            r->error = -EOPNOTSUPP;
        }
    }
}

static void measure_windows(struct krn_measurement *r)
{
    double before = 0;

    for (size_t first = 0, last; first < r->m->op_count && !give_up(r); first = last + 1) {
        size_t bytes = op_bytes(r, first);

        before += r->ops[first].share;
        for (last = first; last + 1 < r->m->op_count; last++) {
            bytes += op_bytes(r, last + 1);
            if (bytes > WINDOW_BYTES) {
                break;
            }
            before += r->ops[last + 1].share;
        }
        uint64_t end = r->start_ns + (uint64_t)((double)r->o->budget_ns * before);
        r->limit_end_ns =
            r->o->limit_ns ? r->start_ns + (uint64_t)((double)r->o->limit_ns * before) : UINT64_MAX;

        r->window_start_ns = base_now_ns();
        r->window_end_ns = end;
        if (first == last && op_bytes(r, first) > WINDOW_BYTES) {
            measure_huge(r, first, end);
            continue;
        }
        ready_window(r, first, last);
        passes(r, first, last, (struct goal){r->frames, 1, end});
        release(r, first, last);
    }
}

int krn_measure(const struct mdl_model *m, const struct krn_measure_options *o,
                struct krn_times *ret)
{
    struct krn_measurement r = {.m = m, .o = o, .start_ns = base_now_ns()};

    r.frames = o->frames ? base_min(o->frames, (size_t)KRN_MEASURE_FRAMES) : KRN_MEASURE_FRAMES;
    krn_watch_init(&r.watch, o->clocks);
    r.error = krn_measure_list(&r);
    r.error = r.error < 0 ? r.error : krn_measure_on(&r, o->cpu, o->stop, measure_windows);
    r.error = r.error < 0 ? r.error : krn_measure_results(&r, ret);
    krn_measure_deinit(&r);
    return r.error;
}
