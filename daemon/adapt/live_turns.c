/* SPDX-License-Identifier: Apache-2.0 */
/* Two plans take turns on live frames, and the better one stays. */
#include "daemon/adapt/adapter_private.h"
#include "daemon/service/log.h"

#define STEP_MS 4u
/* Frames of a window, at least, and as many as the pipeline's depth. Few will do where LONG_NS have
 * passed, or TOO_LONG_NS whatever the depth: the longer a frame takes, the less that varies, and
 * the more the other plan costs. Nor need a challenger that is slow serve for long. */
#define FRAMES 8u
#define FRAMES_LONG 4u
#define SLOWER 1.5    /* times as slow as the incumbent */
#define SLOW_MOST 3.0 /* what is slower than the table by more is not waited with for longer */
#define LONG_NS (250 * BASE_NS_PER_MS)
#define TOO_LONG_NS (2 * BASE_NS_PER_S)
#define NOTHING_NS (10 * BASE_NS_PER_S) /* without a frame, or a figure, the turns are over */

struct dmn_turns {
    uv_timer_t timer;
    struct dmn_model *model; /* NULL: over */
    dmn_turns_fn *over;
    void *ctx;
    struct tun_turns turns;
    struct pl_plan plans[2]; /* the incumbent, the challenger */
    struct dmn_trial trial;
    uint32_t epoch; /* of the plan that serves, as far as the turns know */
    bool measuring, left;
    /* of the first window of a pair; 0: unknown */
    double pace_ns, clock_ns;
    double incumbent_ns; /* pace of its last window; 0: unknown */
    bool second;         /* the first window is done */
    enum tun_verdict verdict;
    uint64_t frames[2]; /* measured, of each plan */
    uint64_t failed;    /* at the start */
};

static bool serves(const struct dmn_turns *t, const struct pl_plan *plan)
{
    return pl_plan_equal(pl_current_plan(t->model->pipe), plan);
}

/* Return: @plan does not serve, and cannot yet: an earlier one still drains. */
static bool must_wait(const struct dmn_turns *t, const struct pl_plan *plan)
{
    return !serves(t, plan) && pl_switching(t->model->pipe);
}

/* @plan: must not wait. Return: as dmn_plan_switch(). */
static int serve(struct dmn_turns *t, const struct pl_plan *plan)
{
    int error = 0;

    if (!serves(t, plan)) {
        error =
            dmn_plan_switch(t->model, &(struct dmn_switch){.plan = plan, .kind = DMN_SWITCH_TRIAL});
    }
    if (error == 0) {
        t->epoch = pl_epoch(t->model->pipe);
    }
    return error;
}

static void finish(struct dmn_turns *t, struct dmn_model *m)
{
    struct dmn_model *of = base_take(t->model);
    struct dmn_turns_result r = {.left = t->left,
                                 .verdict = t->verdict,
                                 .incumbent = t->plans[0],
                                 .challenger = t->plans[1],
                                 .frames = {t->frames[0], t->frames[1]},
                                 .failed = of->stats.failed - t->failed};

    tun_turns_show(&t->turns, &r.shown);
    of->adapt->turns = NULL;
    uv_close((uv_handle_t *)&t->timer, dmn_handle_free);
    t->over(m, t->ctx, &r);
}

/* The time per frame of both windows of a pair, measured in the same way. */
static void add_pair(struct dmn_turns *t, double pace_ns, double clock_ns, uint64_t now_ns)
{
    bool paces = t->pace_ns > 0 && pace_ns > 0;

    if (paces || (t->clock_ns > 0 && clock_ns > 0)) {
        tun_turns_add(&t->turns, paces ? t->pace_ns : t->clock_ns, now_ns);
        t->verdict = tun_turns_add(&t->turns, paces ? pace_ns : clock_ns, now_ns);
    } else if (now_ns - t->turns.began_ns >= NOTHING_NS) {
        t->verdict = TUN_TURNS_UNDECIDED;
    }
}

/* Return: it is the challenger's turn. */
static bool challenger_due(const struct dmn_turns *t)
{
    return tun_turns_challenger(&t->turns) != t->second;
}

/* Return: the challenger serves, and what it shows so far is enough. */
static bool much_slower(const struct dmn_turns *t, uint64_t passed_ns)
{
    return challenger_due(t) && t->incumbent_ns > 0 && t->trial.pace.count >= FRAMES_LONG &&
           (double)passed_ns > SLOWER * t->incumbent_ns * (double)t->trial.pace.count;
}

/* Return: how many frames end a window after @passed_ns. */
static size_t frames_least(uint64_t passed_ns, size_t depth)
{
    return passed_ns >= TOO_LONG_NS
               ? FRAMES_LONG
               : base_max((size_t)(passed_ns >= LONG_NS ? FRAMES_LONG : FRAMES), depth);
}

static bool window_over(const struct dmn_turns *t, uint64_t now_ns)
{
    const struct dmn_config *config = dmn_machine_config(t->model->of->machine);
    uint64_t length_ns = (uint64_t)dmn_config_int(config, DMN_KEY_ADAPT_WINDOW_MS) * BASE_NS_PER_MS;
    uint64_t passed_ns = now_ns - t->trial.window_ns;
    size_t depth = pl_depth(t->model->pipe);

    return t->trial.window_ns > 0 &&
           (much_slower(t, passed_ns) ||
            (passed_ns >= length_ns && t->trial.pace.count >= frames_least(passed_ns, depth)));
}

/* Measures the plan whose turn it is. */
static void take_turn(struct dmn_turns *t, uint64_t now_ns)
{
    struct dmn_model *m = t->model;
    double pace_ns, clock_ns;

    if (!t->measuring) {
        const struct pl_plan *plan = &t->plans[challenger_due(t)];
        int error;

        if (must_wait(t, plan)) {
            return;
        }
        error = serve(t, plan);
        if (error < 0) {
            dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                            "model %s: cannot build a plan to compare it: %s", m->name,
                            strerror(-error));
            t->verdict = TUN_TURNS_UNDECIDED;
        }
        t->measuring = error == 0;
        dmn_trial_begin(&t->trial, m, &(struct dmn_trial_limits){0});
    } else if (window_over(t, now_ns)) {
        dmn_trial_figures(&t->trial, m, &pace_ns, &clock_ns);
        if (t->second) {
            add_pair(t, pace_ns, clock_ns, now_ns);
        }
        t->incumbent_ns = serves(t, &t->plans[0]) ? pace_ns : t->incumbent_ns;
        t->frames[serves(t, &t->plans[1])] += t->trial.pace.count;
        t->pace_ns = pace_ns;
        t->clock_ns = clock_ns;
        t->second = !t->second;
        t->measuring = false;
    } else if (now_ns - base_min(now_ns, base_max(t->trial.began_ns, t->trial.last_ns)) >=
               NOTHING_NS) {
        t->verdict = TUN_TURNS_UNDECIDED;
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct dmn_turns *t = timer->data;
    struct dmn_model *m = t->model;
    const struct pl_plan *last;

    if (pl_epoch(m->pipe) != t->epoch || dmn_plan_changing(m) || m->leaving || m->of->stopping) {
        t->left = true;
        finish(t, m);
        return;
    }
    if (t->verdict == TUN_TURNS_OPEN) {
        take_turn(t, base_now_ns());
    }
    last = &t->plans[t->verdict == TUN_TURNS_BETTER];
    if (t->verdict != TUN_TURNS_OPEN && !must_wait(t, last)) {
        (void)serve(t, last);
        finish(t, m);
    }
}

int dmn_turns_begin(struct dmn_model *m, const struct dmn_turns_request *q)
{
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;
    struct dmn_turns *t = calloc(1, sizeof(*t));

    o.returns = q->returns;
    o.before_ns = dmn_adapt_pace_ns(m);
    o.challenger_ns = q->expected_ns;
    if (!t || tun_turns_begin(&t->turns, &o, base_now_ns()) < 0 ||
        uv_timer_init(m->of->machine->loop, &t->timer) < 0) {
        free(t);
        return -ENOMEM;
    }
    t->timer.data = t;
    t->model = m;
    t->over = q->over;
    t->ctx = q->ctx;
    t->plans[0] = *q->incumbent;
    t->plans[1] = *q->challenger;
    t->epoch = pl_epoch(m->pipe);
    t->failed = m->stats.failed;
    m->adapt->turns = t;
    uv_timer_start(&t->timer, on_timer, STEP_MS, STEP_MS);
    return 0;
}

/* Return: how many frames a window has at this pace. */
static size_t window_frames(double pace_ns, size_t depth)
{
    size_t count = base_max((size_t)FRAMES_LONG, depth);

    while (count < frames_least((uint64_t)((double)count * pace_ns), depth)) {
        count++;
    }
    return count;
}

uint64_t dmn_turns_take_ns(const struct dmn_model *m)
{
    double windows = 2 * TUN_TURNS_DEFAULTS.pairs_least, pace_ns = dmn_adapt_pace_ns(m);
    size_t depth = pl_depth(m->pipe);
    struct tun_outcome o;

    if (tun_eval(&m->planning->problem, pl_current_plan(m->pipe), &o) == 0) {
        pace_ns = base_min(pace_ns, SLOW_MOST * o.bottleneck_ns);
    }
    return (uint64_t)(windows * pace_ns * (double)(depth + window_frames(pace_ns, depth)));
}

void dmn_turns_collected(struct dmn_turns *t, struct dmn_model *m, const struct pl_frame *f)
{
    if (t->measuring) {
        dmn_trial_collected(&t->trial, m, f);
    }
}

void dmn_turns_call_off(struct dmn_turns *t)
{
    if (t && t->verdict == TUN_TURNS_OPEN) {
        t->verdict = TUN_TURNS_UNDECIDED;
        t->left = true;
    }
}

void dmn_turns_end(struct dmn_turns *t)
{
    if (t->verdict == TUN_TURNS_OPEN) {
        t->verdict = TUN_TURNS_ENDED;
    }
}

struct dmn_turns *dmn_turns_leave(struct dmn_turns *t)
{
    if (t) {
        struct dmn_model *m = t->model;

        t->left = true;
        if (pl_epoch(m->pipe) == t->epoch && !m->leaving && !m->of->stopping) {
            serve(t, &t->plans[0]);
        }
        finish(t, NULL);
    }
    return NULL;
}

bool dmn_turns_any(const struct dmn_models *models)
{
    for (const struct dmn_model *m = models->models; m; m = m->next) {
        if (m->adapt && m->adapt->turns) {
            return true;
        }
    }
    return false;
}
