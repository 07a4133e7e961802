/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include "pipeline/dispatch.h"
#include "pipeline/fence.h"
#include "pipeline/frame_pool.h"
#include "pipeline/team.h"

/* Reading a thread's CPU clock is a system call; those of a team are read for so few frames that it
 * costs less than a thousandth of the time, and after those that took longer than usual. */
#define CPU_CLOCK_EVERY_NS 2000000.0 /* times the members */

static uint64_t thread_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Return: the CPU clock counts whole scheduler ticks, as some sandboxes' kernels do. */
static bool has_coarse_cpu_clock(void)
{
    uint64_t before = thread_cpu_ns();

    return thread_cpu_ns() == before;
}

static void set_relaxed(_Atomic uint64_t *field, uint64_t value)
{
    atomic_store_explicit(field, value, memory_order_relaxed);
}

/* ---- giving ---- */

static void push(struct pl_ring *ring, struct pl_frame *f)
{
    bool pushed = pl_ring_push(ring, f);

    assert(pushed); /* every ring has room for all frames */
    (void)pushed;
}

void pl_team_view(const struct pl_team *t, uint64_t now_ns, struct pl_dispatch_view *ret)
{
    uint64_t since = atomic_load_explicit(&t->held_since_ns, memory_order_relaxed);
    uint64_t given = atomic_load_explicit(&t->given_ns, memory_order_relaxed);

    ret->pending = atomic_load_explicit(&t->pending, memory_order_acquire);
    ret->service_ns = pl_clocks_service_ns(&t->clocks);
    ret->beside = t->sitter.client ? pl_sit_others(&t->sitter, ret->pending > 0) : 0;
    ret->rate = t->rate;
    ret->batch = t->batch;
    ret->patience = atomic_load_explicit(&t->patience, memory_order_relaxed);
    ret->idle_ns = ret->pending == 0 && given < now_ns ? (double)(now_ns - given) : 0;
    ret->held_ns = since != 0 && since < now_ns ? (double)(now_ns - since) : 0;
    if (t->batch > 1) { /* service_ns is the time of one of the frames that it holds */
        uint32_t held = atomic_load_explicit(&t->held, memory_order_relaxed);

        ret->held_ns /= (double)base_max(held, 1u);
    }
}

void pl_team_give(struct pl_team *teams, struct pl_ring *const *rings, size_t count,
                  struct pl_frame *f, uint64_t now_ns)
{
    struct pl_dispatch_view views[PL_TEAM_MAX];
    size_t to = 0;

    f->private->probe = false;
    if (count > 1) {
        for (size_t i = 0; i < count; i++) {
            pl_team_view(&teams[i], now_ns, &views[i]);
        }
        to = pl_dispatch_pick(views, count, &f->private->probe);
        atomic_store_explicit(&teams[to].patience,
                              pl_dispatch_patience(views[to].patience, f->private->probe),
                              memory_order_relaxed);
    }
    f->private->given_ns = now_ns;
    set_relaxed(&teams[to].given_ns, now_ns);
    atomic_fetch_add_explicit(&teams[to].pending, 1, memory_order_release);
    push(rings[to], f);
    pl_wake_signal(&teams[to].wake);
}

/* ---- working ---- */

static void start_clocks(struct pl_team *t, size_t frames, struct pl_clock_run *clock)
{
    uint64_t ticks = 0;

    *clock =
        (struct pl_clock_run){.start_ns = base_now_ns(), .timed = !t->common->options.no_clocks};
    if (clock->timed) {
        ticks = pl_clocks_lap(&t->clocks, 0);
        /* the two clocks are read tens of ns apart, so the ratio needs a longer interval */
        if (clock->start_ns - t->mark_ns > 100 * BASE_NS_PER_US && ticks > t->mark_ticks) {
            t->ns_per_tick =
                (double)(clock->start_ns - t->mark_ns) / (double)(ticks - t->mark_ticks);
            t->mark_ns = clock->start_ns;
            t->mark_ticks = ticks;
        }
        clock->clocked = t->cpu_skip == 0 || t->clocks.doubtful;
        if (clock->clocked) {
            pl_members_look(&t->members);
            clock->own_ns = thread_cpu_ns();
        }
    }
    atomic_store_explicit(&t->held, (uint32_t)frames, memory_order_relaxed);
    set_relaxed(&t->held_since_ns, clock->start_ns);
    set_relaxed(&t->progress_ns, clock->start_ns);
}

static void read_cpu_clocks(struct pl_team *t, struct pl_clock_run *clock)
{
    struct pl_members_lost lost = pl_members_lost(&t->members);

    clock->lost_most_ns = lost.most_ns;
    clock->lost_sum_ns = lost.sum_ns;
    clock->own_ns = thread_cpu_ns() - clock->own_ns;
}

/* Counts a clocked run for those that were not, and says when the next one is due. */
static void scale_cpu_clocks(struct pl_team *t, struct pl_clock_run *clock)
{
    double service = pl_clocks_service_ns(&t->clocks);

    if (clock->disturbed && !t->clocks.coarse) {
        clock->own_ns = (uint64_t)(clock->work_ns * (double)clock->computed);
    }
    clock->cpu_ns = clock->own_ns * t->cpu_period;
    t->cpu_period =
        service > 0 ? (uint32_t)(CPU_CLOCK_EVERY_NS * (double)t->width / service) + 1 : 1;
    t->cpu_period = base_min(t->cpu_period, 1000u);
    t->cpu_skip = t->cpu_period;
}

static void end_clocks(struct pl_team *t, struct pl_clock_run *clock)
{
    if (clock->clocked) {
        read_cpu_clocks(t, clock);
    }
    clock->end_ns = base_now_ns();
    pl_clocks_judge(&t->clocks, clock);
    if (clock->timed && t->cpu_skip == 0) {
        scale_cpu_clocks(t, clock);
    }
    if (t->cpu_skip > 0) {
        t->cpu_skip--;
    }
    set_relaxed(&t->progress_ns, clock->end_ns);
}

/* The laps are cut so that the units' times add up to the service time. @taken: NULL: nothing. */
static void put_units(struct pl_trace_ring *r, const struct pl_clocks *c, const double *taken,
                      uint64_t held_ns)
{
    int64_t ticks = (int64_t)(c->laps[c->unit_count] - c->laps[0]);
    double ns_per_tick = ticks > 0 ? (double)held_ns / (double)ticks : 0;
    uint64_t before = 0;

    for (size_t i = 0; i < c->unit_count; i++) {
        double ns = (double)(int64_t)(c->laps[i + 1] - c->laps[0]) * ns_per_tick;
        uint64_t until = ns > 0 ? base_min((uint64_t)(ns + 0.5), held_ns) : 0;

        until = base_max(until, before); /* of an unpinned team, ticks may run backwards */
        pl_trace_put(r, (uint32_t)base_min(until - before, (uint64_t)UINT32_MAX));
        before = until;
    }
    for (size_t i = 0; taken != NULL && i < c->unit_count; i++) {
        pl_trace_put(r, (uint32_t)base_min(taken[i] * ns_per_tick, (double)UINT32_MAX));
    }
}

/* What of a run's time a frame's record has. Frames that were computed at once have equal parts,
 * one after the other; those that were passed on have none. */
struct part {
    uint64_t start_ns, end_ns;
    size_t left; /* frames of the run that follow */
};

/* Before the frame is passed on, so that the record of an answered frame is there. */
static __attribute__((noinline)) void record(struct pl_team *t, const struct pl_frame *f,
                                             const struct pl_clock_run *clock,
                                             const struct part *part)
{
    bool computed = f->status == PL_FRAME_OK;
    uint32_t units = computed && clock->timed ? (uint32_t)t->clocks.unit_count : 0;
    const double *taken = units > 0 && clock->disturbed ? t->clocks.taken : NULL;
    struct pl_trace_ring *r;

    atomic_store_explicit(&t->tracing, true, memory_order_relaxed);
    pl_fence(); /* pairs with the one of pl_team_untrace() */
    r = atomic_load_explicit(&t->trace, memory_order_acquire);
    if (r != NULL && pl_trace_begin(r, TRACE_TEAM, TRACE_TEAM_UNITS + units * (taken ? 2 : 1))) {
        pl_trace_put(r, f->status);
        pl_trace_put(r, (t->slept ? TRACE_TEAM_SLEPT : 0) | (r->gap ? TRACE_TEAM_GAP : 0) |
                            (taken ? TRACE_TEAM_TAKEN : 0));
        pl_trace_put(r, atomic_load_explicit(&t->pending, memory_order_relaxed) - 1 -
                            (uint32_t)part->left);
        pl_trace_put64(r, f->number);
        pl_trace_put64(r, f->tag);
        pl_trace_put64(r, f->private->given_ns);
        pl_trace_put64(r, part->start_ns);
        pl_trace_put64(r, part->end_ns);
        if (units > 0) {
            put_units(r, &t->clocks, taken, part->end_ns - part->start_ns);
        }
        pl_trace_end(r);
        r->gap = false;
    }
    t->slept = false;
    atomic_store_explicit(&t->tracing, false, memory_order_release);
}

static void pass_on(struct pl_team *t, struct pl_frame *f, uint64_t now_ns)
{
    /* before the push: a thread that sees the frame gone also sees this team without it */
    set_relaxed(&t->held_since_ns, 0);
    atomic_fetch_sub_explicit(&t->pending, 1, memory_order_release);
    if (t->next_count > 0) {
        pl_team_give(t->next, t->outputs, t->next_count, f, now_ns);
    } else {
        f->done_ns = now_ns;
        push(t->outputs[0], f);
        if (t->common->options.notify != NULL) {
            /* pairs with the fence that opens pl_collect(): see docs/pipeline.md */
            pl_fence();
            t->common->options.notify(t->common->options.notify_arg);
        }
    }
}

/* Decides whether a frame is still to be computed. */
static void judge(const struct pl_team *t, struct pl_frame *f, uint64_t now_ns)
{
    if (t->first_unit == 0) {
        f->started_ns = now_ns;
    }
    if (f->status == PL_FRAME_OK) {
        if (atomic_load_explicit(&f->cancel, memory_order_relaxed)) {
            f->status = PL_FRAME_CANCELLED;
        } else if (f->deadline_ns != 0 && now_ns > f->deadline_ns) {
            f->status = PL_FRAME_EXPIRED;
        }
    }
}

/* Return: what the run took, without what others took of its cores where that was measured. What is
 * guessed does not count: frames that are really dearer must not cost as little as usual ones. */
static uint64_t spent_ns(const struct pl_clock_run *clock)
{
    return clock->clocked && clock->disturbed ? (uint64_t)(clock->work_ns * (double)clock->computed)
                                              : clock->end_ns - clock->start_ns;
}

static void pass_all_on(struct pl_team *t, const struct pl_held *h,
                        const struct pl_clock_run *clock)
{
    uint64_t held_ns = clock->end_ns - clock->start_ns, spent = spent_ns(clock);
    struct part part = {.end_ns = clock->computed > 0 ? clock->start_ns : clock->end_ns};
    size_t done = 0;

    for (size_t i = 0; i < h->count; i++) {
        struct pl_frame *f = h->frames[i];

        f->busy_ns += spent;
        if (__builtin_expect(atomic_load_explicit(&t->trace, memory_order_relaxed) != NULL, 0)) {
            part.start_ns = part.end_ns;
            part.left = h->count - 1 - i;
            done += f->status == PL_FRAME_OK;
            part.end_ns = clock->computed > 0 ? clock->start_ns + held_ns * done / clock->computed
                                              : clock->end_ns;
            record(t, f, clock, &part);
        }
        pass_on(t, f, clock->end_ns);
    }
}

static void serve(struct pl_team *t, const struct pl_held *h)
{
    const struct krn_mem *mems[PL_BATCH_MAX];
    struct pl_clock_run clock;

    start_clocks(t, h->count, &clock);
    for (size_t i = 0; i < h->count; i++) {
        judge(t, h->frames[i], clock.start_ns);
        clock.probe |= h->frames[i]->private->probe;
        if (h->frames[i]->status == PL_FRAME_OK) {
            mems[clock.computed++] = &h->frames[i]->private->mem;
        }
    }
    t->first = h->frames[0];
    if (clock.computed > 0 && !pl_team_run_units(t, mems, &clock)) {
        return;
    }
    end_clocks(t, &clock);
    pass_all_on(t, h, &clock);
    /* the frames are gone: this delays only this team's next frame */
    pl_clocks_fold(&t->clocks, &clock);
}

/* ---- life ---- */

static void set_ready(struct pl_team *t, int value)
{
    atomic_store_explicit(&t->ready, value, memory_order_release);
    (void)syscall(SYS_futex, &t->ready, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *team_main(void *arg)
{
    struct pl_team *t = arg;
    struct pl_team_common *common = t->common;
    void (*notify)(void *) = common->options.notify;
    void *notify_arg = common->options.notify_arg;
    struct pl_held h;
    int r;

    r = pl_members_init(&t->members, common->options.no_pin ? NULL : t->cpus, t->width, t->name);
    t->pinned = r == 0 && t->members.pinned;
    t->mark_ns = base_now_ns();
    t->mark_ticks = pl_ticks();
    t->ns_per_tick = 1;
    t->cpu_period = 1;
    t->clocks.coarse = has_coarse_cpu_clock();
    set_ready(t, r < 0 ? r : 1);
    if (r == 0) {
        krn_parallel_yield(common->options.spin_ns == 0);
        while (pl_team_take(t, &h)) {
            serve(t, &h);
        }
        pl_team_rise(t);
        pl_members_deinit(&t->members);
    }
    for (size_t i = 0; i < t->output_count; i++) {
        pl_ring_close(t->outputs[i]);
    }
    for (size_t i = 0; i < t->next_count; i++) {
        pl_wake_signal(&t->next[i].wake);
    }
    /* the set may be freed from here on */
    atomic_fetch_add_explicit(&common->exited, 1, memory_order_release);
    if (notify != NULL) {
        pl_fence();
        notify(notify_arg);
    }
    return NULL;
}

int pl_team_start(struct pl_team *t)
{
    int r = pl_thread_start(&t->thread, team_main, t);

    t->started = r == 0;
    return r;
}

int pl_team_wait_ready(struct pl_team *t)
{
    int ready;

    while ((ready = atomic_load_explicit(&t->ready, memory_order_acquire)) == 0) {
        (void)syscall(SYS_futex, &t->ready, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
    return ready < 0 ? ready : 0;
}

uint64_t pl_team_stalled_ns(const struct pl_team *t, uint64_t now_ns)
{
    uint64_t since;

    if (atomic_load_explicit(&t->pending, memory_order_acquire) == 0 ||
        pl_sit_waits(&t->sitter)) { /* who has its core is looked at, too */
        return 0;
    }
    since = base_max(atomic_load_explicit(&t->given_ns, memory_order_relaxed),
                     atomic_load_explicit(&t->progress_ns, memory_order_relaxed));
    return now_ns > since ? now_ns - since : 0;
}

/* ---- tracing ---- */

void pl_team_trace(struct pl_team *t, struct pl_trace *trace, const char *ep, uint32_t epoch,
                   uint32_t pipeline)
{
    struct pl_trace_team team = {.pipeline = pipeline,
                                 .epoch = epoch,
                                 .stage = t->stage,
                                 .width = t->width,
                                 .replica = t->replica,
                                 .first_unit = t->first_unit,
                                 .last_unit = t->last_unit};

    memcpy(team.cpus, t->cpus, sizeof(team.cpus));
    snprintf(team.ep, sizeof(team.ep), "%.*s", (int)PL_EP_NAME_MAX, ep);
    t->trace_entry = pl_trace_add(trace, &team);
    atomic_store_explicit(&t->trace, t->trace_entry ? &t->trace_entry->ring : NULL,
                          memory_order_release);
}

bool pl_team_untrace(struct pl_team *t, bool joined)
{
    if (t->trace_entry == NULL) {
        return true;
    }
    atomic_store_explicit(&t->trace, NULL, memory_order_relaxed);
    pl_fence();
    if (!joined && atomic_load_explicit(&t->tracing, memory_order_acquire)) {
        return false;
    }
    base_take(t->trace_entry)->ended = true;
    return true;
}
