/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/adapting_private.h"

#include "tuner/adapt/decided.h"
#include "tuner/pipesim/run.h"
#include "tuner/solve/solve.h"

#define EPOCH_NS (10000 * BASE_NS_PER_S) /* what the clock shows at the start; it may go back */
#define TRIAL_WINDOWS 3u                 /* that a trial of a search takes */
#define SWITCH_LOSS 0.02                 /* of a window; 0 to 1 ms of 100 were measured */
#define LOADED 0.9                       /* a lower load does not show what a plan could do */

static void log_change(struct psim_play *p, enum tun_cause cause, double gain,
                       const struct pl_plan *to, bool back)
{
    struct psim_adapted *o = p->out;
    const struct psim_scenario *s = p->how->scenario;

    p->plan = *to;
    memset(p->noise, 0, sizeof(p->noise));
    memset(p->alarmed, 0, sizeof(p->alarmed));
    if (o->changes < PSIM_CHANGES_MAX) {
        o->log[o->changes] = (struct psim_change){p->t_s, cause, gain, *to};
    }
    o->changes++;
    o->backs += back;
    if (p->t_s >= s->onset_s && o->changed_s == INFINITY) {
        o->changed_s = p->t_s - s->onset_s;
    }
    if (p->t_s >= s->end_s && o->returned_s == INFINITY) {
        o->returned_s = p->t_s - s->end_s;
    }
}

static uint64_t clock_at(const struct psim_play *p, double t_s)
{
    return EPOCH_NS + (uint64_t)(t_s * (double)BASE_NS_PER_S) + (uint64_t)p->world.clock_skew_ns;
}

/* Noticed is what was no alarm before, or began after the onset. */
static void note_alarms(struct psim_play *p)
{
    double onset_s = p->how->scenario->onset_s;
    uint64_t onset_ns = clock_at(p, onset_s);
    struct psim_adapted *o = p->out;
    struct tun_watch_view view;

    for (size_t i = 0; tun_adapt_watch(p->adapt, i, &view) && i < PL_TEAM_MAX; i++) {
        bool alarm = view.settled && view.change != TUN_SAME;

        o->alarms += alarm && !p->alarmed[i];
        if (alarm && p->t_s > onset_s && o->noticed_windows == INFINITY &&
            (!p->alarmed[i] || view.since_ns >= onset_ns)) {
            o->noticed_windows = round((p->t_s - onset_s) / PSIM_WINDOW_S);
        }
        p->alarmed[i] = alarm;
    }
}

/* A plan serves for some windows, on the machine as it is then. */
static void try_plan(struct psim_play *p, const struct pl_plan *plan, struct tun_sample *samples,
                     struct tun_trial *ret)
{
    struct tun_problem now = TUN_PROBLEM_NULL;
    struct psim_machine machine = psim_machine(&now, 0);
    size_t eps[PL_EP_MAX];

    *ret = (struct tun_trial){.plan = *plan, .failed = true};
    p->out->windows += TRIAL_WINDOWS;
    p->t_s = (double)p->out->windows * PSIM_WINDOW_S;
    psim_play_world(p);
    machine.noise = p->how->noise.cv;
    machine.random = p->random;
    if (psim_play_problem(p, &now, eps) == 0 && now.ep_count == p->truth.problem.ep_count) {
        psim_trial(&machine, plan, samples, ret);
    }
    p->random = machine.random;
    tun_problem_deinit(&now);
}

/* Asks and tells to the end. @ret: trials of the serving plan and of the one to serve. */
static int try_plans(struct psim_play *p, struct tun_search *s, struct tun_sample *samples,
                     struct tun_trial ret[2])
{
    const struct tun_trial *best;
    struct tun_trial trial;
    struct pl_plan plan;
    int error;

    try_plan(p, &p->plan, samples, &ret[0]);
    while ((error = tun_search_ask(s, &plan)) == 0) {
        try_plan(p, &plan, samples, &trial);
        error = tun_search_tell(s, &trial);
        if (error) {
            return error;
        }
    }
    best = tun_search_result(s);
    ret[1] =
        best && tun_better(&p->truth.problem, &best->measured, &ret[0].measured) ? *best : ret[0];
    return error == TUN_E_DONE ? 0 : error;
}

/* The search of a decision. */
static int search(struct psim_play *p, struct tun_decision *d)
{
    base_autofree struct tun_sample *samples =
        calloc(tun_core_count(&p->truth.problem) * p->truth.problem.unit_count, sizeof(*samples));
    struct tun_options o = {
        .seed = p->how->seed, .from = &p->plan, .trials_max = p->how->trials_max};
    struct psim_searched found = {.at_s = p->t_s, .cause = d->cause};
    char why[TUN_ERROR_MAX];
    struct tun_search *s = NULL;
    struct tun_trial ends[2];
    int error =
        samples ? tun_search_new(p->how->algorithm->name, &d->corrected, &o, why, &s) : -ENOMEM;

    error = error ? error : try_plans(p, s, samples, ends);
    if (error == 0) {
        double before_ns = ends[0].measured.bottleneck_ns;
        double after_ns = ends[1].measured.bottleneck_ns;

        tun_search_log(s, &found.trials);
        found.before_ms = before_ns / (double)BASE_NS_PER_MS;
        found.after_ms = after_ns / (double)BASE_NS_PER_MS;
        if (p->out->searches < PSIM_CHANGES_MAX) {
            p->out->found[p->out->searches] = found;
        }
        p->out->searches++;
        tun_decision_searched(d, &ends[1].plan, !pl_plan_equal(&ends[1].plan, &p->plan), before_ns,
                              after_ns);
        d->gain = before_ns / after_ns - 1;
    }
    tun_search_free(s);
    return error;
}

/* Tells the watch what became of the decision. */
static int settle(struct psim_play *p, bool switched, enum tun_verdict verdict, uint64_t now_ns)
{
    int error = tun_adapt_decided(p->adapt, &p->record, &p->decision, switched, now_ns);

    if (verdict != TUN_TURNS_OPEN) {
        tun_adapt_proved(p->adapt, &p->record, &p->decision, verdict);
    }
    tun_decision_deinit(&p->decision);
    tun_record_deinit(&p->record);
    return error;
}

/* Return: plans take turns from now on. */
static bool begin_turns(struct psim_play *p, uint64_t now_ns)
{
    struct tun_turns_options o = TUN_TURNS_DEFAULTS;

    o.returns = tun_decision_returns(&p->record, &p->decision);
    if (!p->decision.replan || p->decision.must || p->world.load < LOADED ||
        tun_turns_begin(&p->turns, &o, now_ns) < 0) {
        return false;
    }
    p->turning = true;
    p->challenger = false; /* the incumbent serves */
    p->out->contests++;
    return true;
}

static int decide(struct psim_play *p, struct tun_record *r, uint64_t now_ns)
{
    struct tun_decision *d = &p->decision;
    int error;

    p->record = *r;
    p->record.measured_ns =
        p->world.load < LOADED
            ? 0
            : psim_play_bottleneck(p) * exp(p->how->noise.cv * tun_random_normal(&p->random));
    error = tun_decide(&p->record, d);
    if (error) {
        tun_record_deinit(&p->record);
        return error;
    }
    p->out->decisions++;
    if (p->t_s > p->how->scenario->onset_s && p->out->noticed_windows == INFINITY) {
        p->out->noticed_windows = round((p->t_s - p->how->scenario->onset_s) / PSIM_WINDOW_S);
    }
    if (p->how->decided) {
        p->how->decided(p->how->context, p->t_s, &p->record, d);
    }
    if (d->replan && d->search) {
        error = search(p, d);
        now_ns = clock_at(p, p->t_s);
    } else if (d->replan && tun_adapt_lost(p->adapt, &p->record, d)) {
        d->replan = false;
        d->hold = TUN_HOLD_LOST;
    }
    if (error) {
        return error; /* psim_adapt() frees the decision */
    }
    if (begin_turns(p, now_ns)) {
        return 0;
    }
    if (d->replan) {
        log_change(p, d->cause, d->gain, &d->plan, false);
    }
    return settle(p, d->replan, TUN_TURNS_OPEN, now_ns);
}

/* A window of the plan whose turn it is. */
static int turn(struct psim_play *p, uint64_t now_ns)
{
    double ns = psim_play_bottleneck(p) *
                exp(p->how->noise.cv * tun_random_normal(&p->random) + psim_play_spike(p));
    enum tun_verdict verdict = tun_turns_add(&p->turns, ns, now_ns);

    if (verdict == TUN_TURNS_OPEN && !(p->world.events & (TUN_EVENT_HOTPLUG | TUN_EVENT_CPUSET))) {
        return 0;
    }
    p->turning = false;
    p->plan = p->record.plan;
    p->out->turns += p->turns.count;
    if (verdict == TUN_TURNS_BETTER) {
        log_change(p, p->decision.cause, p->decision.gain, &p->decision.plan, false);
    } else {
        p->decision.replan = false;
        p->decision.hold = TUN_HOLD_LOST;
    }
    return settle(p, p->decision.replan, verdict, now_ns);
}

/* Counts the frames of a window. */
static void count_frames(struct psim_play *p, bool switched)
{
    struct pl_plan serving = p->plan;
    double window_ns = PSIM_WINDOW_S * 1e9 * p->world.load;

    p->out->frames += (switched ? 1 - SWITCH_LOSS : 1) * window_ns / psim_play_bottleneck(p);
    p->plan = p->out->first;
    p->out->frames_first += window_ns / psim_play_bottleneck(p);
    p->plan = serving;
}

/* One window: the world is as it is at its beginning. */
static int window(struct psim_play *p)
{
    struct tun_ep_seen eps[PL_EP_MAX] = {0};
    struct tun_team_seen teams[PL_TEAM_MAX];
    struct tun_seen_window w = {.eps = eps, .teams = teams};
    struct tun_record r = TUN_RECORD_NULL;
    bool switched = false;
    int asked;

    psim_play_world(p);
    if (p->turning) {
        bool challenger = tun_turns_challenger(&p->turns);

        switched = challenger != p->challenger;
        p->challenger = challenger;
        p->plan = challenger ? p->decision.plan : p->record.plan;
    }
    count_frames(p, switched);
    psim_play_eps(p, eps);
    w.team_count = psim_play_teams(p, teams);
    w.events = p->world.events;
    w.felt.throttled = p->world.quota[0] < 1 ? 0.9 : 0;
    w.start_ns = clock_at(p, p->t_s);
    p->t_s = (double)++p->out->windows * PSIM_WINDOW_S;
    w.now_ns = clock_at(p, p->t_s);
    if (p->turning) {
        return turn(p, w.now_ns);
    }
    asked = tun_adapt_observe(p->adapt, &w, &r);
    note_alarms(p);
    if (asked == TUN_ADAPT_DECIDE) {
        return decide(p, &r, w.now_ns);
    }
    if (asked == TUN_ADAPT_BACK) {
        log_change(p, TUN_CAUSE_NONE, 0, tun_adapt_before(p->adapt), true);
        return tun_adapt_went_back(p->adapt, true, w.now_ns);
    }
    return asked;
}

/* The truth's own compute-boundness, and the planner's table with its errors. */
static int prepare(struct psim_play *p, struct tun_problem *ret_told)
{
    const struct tun_problem *truth = p->how->truth;
    size_t units = truth->unit_count;

    p->truth.beta = malloc(units * sizeof(double));
    p->truth.slow = malloc(truth->ep_count * units * sizeof(double));
    if (!p->truth.beta || !p->truth.slow || tun_problem_copy(truth, &p->truth.problem) < 0 ||
        tun_problem_copy(truth, ret_told) < 0) {
        return -ENOMEM;
    }
    for (size_t u = 0; u < units; u++) {
        p->truth.beta[u] =
            base_max(0.0, base_min(1.0, tun_beta_default(&truth->units[u]) *
                                            (0.7 + 0.4 * tun_random_unit(&p->random))));
        for (size_t k = 0; k < truth->ep_count; k++) {
            tun_unit_scale(ret_told, k, u,
                           exp(p->how->noise.error * tun_random_normal(&p->random)));
        }
    }
    return 0;
}

static int start(struct psim_play *p, const struct tun_problem *told)
{
    base_autofree struct tun_solution *first = malloc(sizeof(*first));
    struct tun_adapt_options options = p->how->options ? *p->how->options : TUN_ADAPT_DEFAULTS;
    struct tun_ep_seen eps[PL_EP_MAX] = {0};
    int error = first ? tun_solve(told, first) : -ENOMEM;

    options.search |= p->how->algorithm && p->how->algorithm != &tun_exact;
    error = error ? error : tun_adapt_new(&options, &p->adapt);
    if (error) {
        return error < 0 ? error : -EINVAL;
    }
    p->plan = first->plan;
    psim_play_world(p);
    psim_play_eps(p, eps);
    return tun_adapt_serve(p->adapt, told, &p->plan, eps, clock_at(p, 0));
}

int psim_adapt(const struct psim_adapting *how, struct psim_adapted *ret)
{
    base_autofree struct psim_play *p = calloc(1, sizeof(*p));
    struct tun_problem told = TUN_PROBLEM_NULL;
    double seconds = how->seconds > 0 ? how->seconds : how->scenario->seconds;
    bool slow_seen = how->scenario->end_s == 0;
    int error;

    if (!p) {
        return -ENOMEM;
    }
    *ret = (struct psim_adapted){.noticed_windows = INFINITY,
                                 .changed_s = INFINITY,
                                 .returned_s = INFINITY,
                                 .ratio_slow = NAN};
    p->how = how;
    p->out = ret;
    p->random.state = how->seed;
    error = prepare(p, &told);
    error = error ? error : start(p, &told);
    ret->first = p->plan;
    while (error == 0 && p->t_s < seconds) {
        if (!slow_seen && p->t_s + PSIM_WINDOW_S >= how->scenario->end_s) {
            ret->ratio_slow = psim_play_ratio(p);
            slow_seen = true;
        }
        error = window(p);
    }
    if (error == 0) {
        psim_play_world(p);
        ret->ratio_end = psim_play_ratio(p);
        ret->last = p->plan;
    }
    tun_adapt_free(p->adapt);
    tun_decision_deinit(&p->decision);
    tun_record_deinit(&p->record);
    tun_record_deinit(&p->truth);
    tun_problem_deinit(&told);
    return error;
}
