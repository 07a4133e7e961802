/* SPDX-License-Identifier: Apache-2.0 */

#include "daemon/adapt/adapter_private.h"
#include "daemon/service/log.h"

/* A plan is watched once each stage has computed this many frames: then its costs are known. */
#define FRAMES_KNOWN 24u
/* A team that gets no frames for this long, because others are faster, is watched with a guess. */
#define PATIENCE_NS (5 * BASE_NS_PER_S)
#define SETTLED_NS BASE_NS_PER_S
#define GOOD_NS BASE_NS_PER_S
/* A plan that serves undisturbed for this long is worth coming back to. */
#define LASTING_NS (3 * BASE_NS_PER_S)
#define GAP_NS BASE_NS_PER_S /* later than that, a look was held up */
#define VOID_LOOKS 2u

static struct tun_adapt_options options(const struct dmn_config *c)
{
    struct tun_adapt_options o = TUN_ADAPT_DEFAULTS;

    o.detect.h = (double)dmn_config_int(c, DMN_KEY_ADAPT_NOTICE) / 1e3;
    o.detect.firm = (double)dmn_config_int(c, DMN_KEY_ADAPT_FIRM) / 1e3;
    o.detect.sigma_floor = (double)dmn_config_int(c, DMN_KEY_ADAPT_NOISE) / 1e3;
    o.gain_min = (double)dmn_config_int(c, DMN_KEY_ADAPT_GAIN) / 1e2;
    o.gain_urgent = (double)dmn_config_int(c, DMN_KEY_ADAPT_URGENT) / 1e2;
    o.cooldown_ns = (uint64_t)dmn_config_int(c, DMN_KEY_ADAPT_COOLDOWN_S) * BASE_NS_PER_S;
    o.hourly = (double)dmn_config_int(c, DMN_KEY_ADAPT_HOURLY);
    o.verify_margin = (double)dmn_config_int(c, DMN_KEY_ADAPT_VERIFY) / 1e2;
    o.settle = (unsigned)dmn_config_int(c, DMN_KEY_ADAPT_SETTLE);
    o.probe_ns = (uint64_t)dmn_config_int(c, DMN_KEY_ADAPT_PROBE_S) * BASE_NS_PER_S;
    o.search = dmn_planner_searches(c);
    return o;
}

/* Reads the state of the machine, once per snapshot; without sensors, as the topology was last
 * read. */
static void see_state(struct dmn_adapt *adapt)
{
    const struct gov_snapshot *s = dmn_sensors_now(adapt->machine);
    struct gov_machine_state state;

    if (s && adapt->state.id != 0 && adapt->state.sequence == s->sequence) {
        return;
    }
    dmn_eps_state(&adapt->machine->eps, s, adapt->machine->topology, NULL, &state);
    adapt->state.sequence = s ? s->sequence : 0;
    adapt->state.id = state.id;
    adapt->state.quota = gov_quota_cpus(s);
}

/* Frees what adapt/ keeps of a model that ends or is no longer watched. Does nothing if there is
 * none. */
static void model_free(void *ctx, struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;

    if (a) {
        a->turns = dmn_turns_leave(a->turns);
        dmn_adapt_forget(m);
        a->search = dmn_adapt_job_free(a->search);
        tun_problem_deinit(&a->home);
        tun_adapt_free(a->watch);
        tun_apart_free(a->apart);
        free(a);
        m->adapt = NULL;
    }
}

/* Return: 0 or -ENOMEM. */
static int watch_model(struct dmn_adapt *adapt, struct dmn_model *m)
{
    struct tun_adapt_options o = options(dmn_machine_config(m->of->machine));
    struct dmn_adapt_model *a = m->adapt;

    if (a) {
        return 0;
    }
    a = calloc(1, sizeof(*a));
    if (!a || tun_adapt_new(&o, &a->watch) < 0) {
        free(a);
        return -ENOMEM;
    }
    a->searched_id = adapt->state.id; /* as dmn_adapt_machine_see() knows it */
    m->adapt = a;
    return 0;
}

/* Notices a plan that something else switched to: nothing known of the previous plan applies to
 * it. */
static void note_plan(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;

    if (a->epoch != pl_epoch(m->pipe)) {
        if (!a->search) { /* else it is one of its trials */
            dmn_adapt_forget(m);
        }
        a->epoch = pl_epoch(m->pipe);
        a->epoch_ns = now_ns;
    }
}

/* Restores what was known before the cores changed, and whether to verify the plan on the new
 * ones. */
static void resume(struct dmn_adapt_model *a, size_t cells)
{
    if (a->carried && a->carried_count == cells) {
        tun_adapt_resume(a->watch, a->carried, a->carried_contended);
        a->corrected = true;
    }
    if (a->unverified) {
        tun_adapt_verify(a->watch, &a->before, a->before_ns, a->after_ns);
    }
    free(base_take(a->carried));
    a->unverified = false;
}

/* Return: the table may know what teams take that work all the time. */
static bool is_warm(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    return !a->cold && m->stats.collected - a->warm_from >= FRAMES_KNOWN;
}

/* Cores rested when the watch began: it takes over what was learned since they work. */
static void know(struct dmn_model *m)
{
    dmn_planner_learn(m);
    m->adapt->known = true;
    (void)dmn_adapt_take_learned(m); /* not where more is known than the table says */
}

/* Begins to watch once the table knows the plan's costs. */
static void begin(struct dmn_model *m, const struct tun_ep_seen *eps, uint64_t now_ns)
{
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    struct dmn_adapt_model *a = m->adapt;
    struct tun_outcome expected;

    if (now_ns - a->epoch_ns < SETTLED_NS || !dmn_adapt_measured(m, FRAMES_KNOWN) ||
        !(a->starved || is_warm(m))) {
        return;
    }
    dmn_planner_learn(m);
    if ((!dmn_planner_expect(m, pl_current_plan(m->pipe), &expected) &&
         now_ns - a->epoch_ns < PATIENCE_NS) ||
        dmn_planner_problem(m, NULL, &p) < 0) {
        return;
    }
    a->known = is_warm(m);
    a->serving = tun_adapt_serve(a->watch, &p, pl_current_plan(m->pipe), eps, now_ns) == 0;
    if (a->serving) {
        resume(a, p.ep_count * p.unit_count);
    }
}

/* Copies the table while there is no alarm; the older copy is a second older. */
static void keep_good(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_problem copy;

    if (now_ns - a->good_ns < GOOD_NS || a->corrected || a->alarmed ||
        tun_problem_copy(&m->planning->problem, &copy) < 0) {
        return;
    }
    tun_problem_deinit(&a->good[1]);
    a->good[1] = a->good[0];
    a->good[0] = copy;
    a->good_ns = now_ns;
}

/* Keeps the plan for this state. A quota is part of the state; other interference is not. */
static void keep_known(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    struct pl_plan kept;

    if (now_ns - a->known_ns >= GOOD_NS && !dmn_together(m) && dmn_kept_suits(m) &&
        a->verify_left == 0 && !a->job && now_ns - a->epoch_ns > LASTING_NS &&
        now_ns - a->state_ns > LASTING_NS) {
        a->known_ns = now_ns;
        if (!dmn_kept_plan(m, &kept) || !pl_plan_equal(&kept, pl_current_plan(m->pipe))) {
            dmn_kept_save(m);
        }
    }
}

static bool any_alarm(const struct tun_adapt *watch)
{
    struct tun_watch_view v;
    bool any = false;

    for (size_t i = 0; tun_adapt_watch(watch, i, &v); i++) {
        any |= v.change != TUN_SAME;
    }
    return any;
}

static void note_state(struct dmn_adapt *adapt, struct dmn_adapt_model *a, uint64_t now_ns)
{
    see_state(adapt);
    a->quota = adapt->state.quota;
    if (a->state_id == 0) {
        a->quota_decided = a->quota;
    }
    if (a->state_id != adapt->state.id) {
        a->state_id = adapt->state.id;
        a->state_ns = now_ns;
    }
}

/* What a search is due for, once the serving plan is watched and verified. A state of the machine
 * that has gone again is no reason for one. */
static unsigned take_due(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;
    unsigned due = dmn_adapt_searches(m) ? a->due : 0;

    if (a->verify_left > 0 || tun_adapt_verifying(a->watch)) {
        return 0;
    }
    if (a->state_id == a->searched_id) {
        due &= ~(unsigned)(TUN_EVENT_GOVERNOR | TUN_EVENT_FREQUENCY | TUN_EVENT_THERMAL);
    }
    a->due = 0;
    return due;
}

static void watch_window(struct dmn_adapt *adapt, struct dmn_model *m,
                         const struct tun_ep_seen *eps, const struct tun_team_seen *teams,
                         size_t team_count, uint64_t start_ns, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_seen_window w = {.start_ns = start_ns,
                                .now_ns = now_ns,
                                .eps = eps,
                                .teams = teams,
                                .team_count = team_count,
                                .events = a->events,
                                .felt = adapt->felt.now,
                                .hold_ns = a->turns_ns};
    struct tun_record record = TUN_RECORD_NULL;

    note_state(adapt, a, now_ns);
    w.events |= take_due(m);
    a->state.windows++;
    a->events = 0;
    switch (tun_adapt_observe(a->watch, &w, &record)) {
    case TUN_ADAPT_DECIDE:
        record.measured_ns = dmn_adapt_pace_ns(m);
        dmn_adapt_decide(m, &record);
        break;
    case TUN_ADAPT_BACK:
        dmn_adapt_back(m, now_ns);
        break;
    default:
        break;
    }
    a->alarmed = a->serving && any_alarm(a->watch);
    keep_good(m, now_ns);
    keep_known(m, now_ns);
}

/* If a thread could not be pinned to its core, the core is gone. */
static void check_pins(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;
    struct pl_team_stats t;

    if (a->pins_epoch == pl_epoch(m->pipe) ||
        !dmn_config_int(dmn_machine_config(m->of->machine), DMN_KEY_PIN)) {
        return;
    }
    a->pins_epoch = pl_epoch(m->pipe);
    for (size_t i = 0; dmn_model_team(m, i, &t); i++) {
        if (!t.pinned) {
            dmn_hotplug_check(m->of->machine, base_now_ns());
            return;
        }
    }
}

/* Notices that the process was stopped, or its machine slept, since the last look. The windows of
 * then say nothing: first few frames came, then some took as long as the stop. */
static void note_gap(struct dmn_adapt *adapt, uint64_t now_ns)
{
    uint64_t gap = now_ns - adapt->looked_ns;

    adapt->looked_ns = now_ns;
    if (gap > adapt->period_ms * BASE_NS_PER_MS + GAP_NS) {
        adapt->void_looks = VOID_LOOKS;
    } else if (adapt->void_looks > 0) {
        adapt->void_looks--;
    }
}

/* Turns get shorter when a slowdown ends; that is no reason to begin them, so what is asked for
 * shrinks by no more than the time that passes. */
static void note_turns(const struct dmn_adapt *adapt, struct dmn_model *m)
{
    uint64_t before = m->adapt->turns_ns;

    before -= base_min(before, adapt->period_ms * BASE_NS_PER_MS);
    m->adapt->turns_ns = base_max(dmn_turns_take_ns(m), before);
}

static void step(struct dmn_adapt *adapt, struct dmn_model *m, const struct tun_ep_seen *eps,
                 uint64_t now_ns)
{
    struct tun_team_seen teams[PL_TEAM_MAX];
    uint64_t start_ns;
    size_t count;

    if (watch_model(adapt, m) < 0) {
        return;
    }
    dmn_adapt_machine_tell(m, now_ns);
    count = dmn_adapt_window(m, now_ns, teams, &start_ns);
    if (m->adapt->turns) {
        dmn_split_see_turns(adapt, m, start_ns);
        return;
    }
    m->adapt->alike = 0;
    note_plan(m, now_ns);
    if (adapt->void_looks > 0) { /* count frames and paces anew */
        memset(m->adapt->pace, 0, sizeof(m->adapt->pace));
        m->adapt->verify_ns = 0;
        return;
    }
    if (m->adapt->verify_left > 0) {
        dmn_adapt_verify(m, now_ns);
    }
    check_pins(m);
    note_turns(adapt, m);
    dmn_split_see(adapt, m, start_ns, now_ns);
    if (dmn_adapt_parting(adapt) || m->adapt->suspects || dmn_origin_pinned(m->origin) ||
        !dmn_adapt_free_to_act(m) || m->adapt->job ||
        m->planning->problem.ep_count != m->of->machine->eps.count) {
        return;
    }
    if (!m->adapt->serving) {
        begin(m, eps, now_ns);
    } else if (!m->adapt->known && is_warm(m)) {
        know(m);
    } else if (start_ns > 0 && now_ns > start_ns) {
        watch_window(adapt, m, eps, teams, count, start_ns, now_ns);
        if (!dmn_together(m)) {
            dmn_adapt_solve_again(m, now_ns);
        }
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct dmn_adapt *adapt = timer->data;
    const struct dmn_config *config = dmn_machine_config(adapt->machine);
    uint64_t period = (uint64_t)dmn_config_int(config, DMN_KEY_ADAPT_WINDOW_MS);
    struct tun_ep_seen eps[PL_EP_MAX];
    uint64_t now = base_now_ns();

    if (period != adapt->period_ms) { /* after a reload */
        adapt->period_ms = period;
        uv_timer_start(timer, on_timer, period, period);
    }
    if (!dmn_config_int(config, DMN_KEY_ADAPT_ENABLED)) {
        for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
            model_free(adapt, m);
        }
        dmn_together_leave(adapt);
        dmn_split_end(adapt);
        dmn_adapt_change_step(adapt);
        return;
    }
    note_gap(adapt, now);
    dmn_hotplug_check(adapt->machine, now);
    dmn_adapt_change_step(adapt);
    dmn_adapt_eps(adapt->machine, eps);
    dmn_adapt_felt(&adapt->felt, dmn_sensors_now(adapt->machine));
    for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
        step(adapt, m, eps, now);
    }
    dmn_together_step(adapt, now);
    dmn_split_step(adapt, now);
    dmn_adapt_machine_see(adapt, dmn_sensors_now(adapt->machine), now);
    see_state(adapt);
}

static void on_power(void *ctx, bool active)
{
    struct dmn_adapt *adapt = ctx;

    for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (m->adapt) {
            m->adapt->events |= TUN_EVENT_POWER;
        }
    }
}

static void on_collected(void *ctx, struct dmn_model *m, const struct pl_frame *f)
{
    if (m->adapt && m->adapt->turns) {
        dmn_turns_collected(m->adapt->turns, m, f);
    }
}

/* The cores are the same: what is known of slowed ones stays. */
static void on_replaced(void *ctx, struct dmn_model *m, struct dmn_model *by)
{
    if (m->adapt && watch_model(ctx, by) == 0) {
        dmn_adapt_carry_over(m, by);
        by->adapt->epoch = pl_epoch(by->pipe);
        by->adapt->epoch_ns = base_now_ns();
    }
}

int dmn_adapt_start(struct dmn_plans *plans, struct dmn_adapt **ret)
{
    struct dmn_adapt *adapt = calloc(1, sizeof(*adapt));

    if (!adapt) {
        return -ENOMEM;
    }
    adapt->plans = plans;
    plans->held = dmn_adapt_held;
    plans->costs = dmn_adapt_costs;
    adapt->models = plans->models;
    adapt->machine = plans->machine;
    adapt->period_ms =
        (uint64_t)dmn_config_int(dmn_machine_config(adapt->machine), DMN_KEY_ADAPT_WINDOW_MS);
    adapt->looked_ns = base_now_ns();
    uv_timer_init(adapt->machine->loop, &adapt->timer);
    adapt->timer.data = adapt;
    uv_timer_start(&adapt->timer, on_timer, adapt->period_ms, adapt->period_ms);
    dmn_adapt_machine_see(adapt, dmn_sensors_now(adapt->machine), base_now_ns());
    see_state(adapt);
    dmn_hotplug_listen(adapt->machine, dmn_adapt_cores_changed, adapt);
    adapt->lines = (struct dmn_gpio_listener){.ctx = adapt, .power = on_power};
    dmn_gpio_listen(adapt->machine, &adapt->lines);
    adapt->hears = (struct dmn_models_listener){
        .ctx = adapt, .collected = on_collected, .replaced = on_replaced, .ending = model_free};
    dmn_models_listen(adapt->models, &adapt->hears);
    *ret = adapt;
    return 0;
}

void dmn_adapt_configure(struct dmn_adapt *adapt)
{
    struct tun_adapt_options o;

    if (!adapt) {
        return;
    }
    o = options(dmn_machine_config(adapt->machine));
    for (struct dmn_model *m = adapt->models->models; m; m = m->next) {
        if (m->adapt && tun_adapt_set_options(m->adapt->watch, &o) < 0) {
            dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                            "model %s: adapt.* takes effect when it is loaded again", m->name);
        }
    }
}

struct dmn_adapt *dmn_adapt_stop(struct dmn_adapt *adapt)
{
    if (adapt) {
        dmn_hotplug_listen(adapt->machine, NULL, NULL);
        dmn_adapt_change_leave(adapt);
        dmn_together_leave(adapt);
        uv_close((uv_handle_t *)&adapt->timer, dmn_handle_free);
    }
    return NULL;
}
