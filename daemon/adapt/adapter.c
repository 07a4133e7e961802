/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/adapt.h"

#include <math.h>
#include <string.h>

#include "base.h"
#include "daemon/adapt_private.h"
#include "daemon/service/log.h"

/* A plan is watched once each of its stages has computed so many frames: its costs are known. */
#define FRAMES_KNOWN 24u
/* A team that gets no frames for so long, because others are faster, is watched by a guess. */
#define PATIENCE_NS (5 * BASE_NS_PER_S)
#define SETTLED_NS BASE_NS_PER_S
#define GOOD_NS BASE_NS_PER_S
/* A plan that serves calmly for so long is one to come back to. */
#define LASTING_NS (3 * BASE_NS_PER_S)

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
    return o;
}

bool dmn_adapt_pinned(const struct dmn_model *m)
{
    return strcmp(m->algorithm, "manual") == 0 || strcmp(m->algorithm, "config") == 0;
}

bool dmn_adapt_free_to_act(const struct dmn_model *m)
{
    return !m->retune && !m->switch_call && !m->leaving && !pl_switching(m->pipe) &&
           !m->daemon->draining && !dmn_calibrating(m->daemon);
}

bool dmn_adapt_holds(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    return a && ((a->serving && (a->corrected || a->alarmed || a->verify_left > 0)) || a->carried);
}

bool dmn_adapt_keeps(const struct dmn_model *m)
{
    const struct dmn_adapt_model *a = m->adapt;

    return !a || a->quota > 0 || a->epoch != pl_epoch(m->pipe) ||
           (!a->carried && (!a->serving || !a->corrected));
}

void dmn_adapt_forget(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;

    a->serving = a->corrected = a->alarmed = false;
    a->verify_left = 0;
    a->job = dmn_adapt_job_leave(a->job);
    json_decref(base_take(a->event));
    free(base_take(a->carried));
    a->doubted = false;
    tun_problem_deinit(&a->good[0]);
    tun_problem_deinit(&a->good[1]);
}

void dmn_adapt_model_free(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;

    if (a) {
        dmn_adapt_forget(m);
        json_decref(a->record);
        tun_problem_deinit(&a->home);
        tun_adapt_free(a->watch);
        free(a);
        m->adapt = NULL;
    }
}

/* Return: 0 or -ENOMEM. */
static int watch_model(struct dmn_model *m)
{
    struct tun_adapt_options o = options(m->daemon->config);
    struct dmn_adapt_model *a = m->adapt;

    if (a) {
        return 0;
    }
    a = calloc(1, sizeof(*a));
    if (!a || tun_adapt_new(&o, &a->watch) < 0) {
        free(a);
        return -ENOMEM;
    }
    m->adapt = a;
    return 0;
}

/* A plan from somebody else serves since @now_ns: nothing of the one before holds for it. */
static void note_plan(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;

    if (a->epoch != pl_epoch(m->pipe)) {
        dmn_adapt_forget(m);
        a->epoch = pl_epoch(m->pipe);
        a->epoch_ns = now_ns;
    }
}

/* What was known before the cores changed, and the doubt about the plan on the new ones. */
static void resume(struct dmn_adapt_model *a, size_t cells)
{
    if (a->carried && a->carried_count == cells) {
        tun_adapt_resume(a->watch, a->carried, a->carried_contended);
        a->corrected = true;
    }
    if (a->doubted) {
        tun_adapt_doubt(a->watch, &a->before, a->before_ns, a->after_ns);
    }
    free(base_take(a->carried));
    a->doubted = false;
}

/* Begins to watch once the table knows what the plan costs. */
static void begin(struct dmn_model *m, const struct tun_kind_seen *kinds, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_problem p = TUN_PROBLEM_NULL;
    struct tun_outcome expected;

    if (now_ns - a->epoch_ns < SETTLED_NS || !dmn_adapt_measured(m, FRAMES_KNOWN)) {
        return;
    }
    if (!dmn_adapt_holds(m)) {
        dmn_planner_learn(m);
    }
    if ((!dmn_planner_expect(m, pl_current_plan(m->pipe), &expected) &&
         now_ns - a->epoch_ns < PATIENCE_NS) ||
        dmn_planner_problem(m, NULL, &p) < 0) {
        return;
    }
    a->serving = tun_adapt_serve(a->watch, &p, pl_current_plan(m->pipe), kinds, now_ns) == 0;
    if (a->serving) {
        resume(a, p.kind_count * p.unit_count);
    }
    tun_problem_deinit(&p);
}

/* The search that was begun for a decision is over: its event is told what for. */
static void note_search(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;
    json_t *list;

    if (!a->tuning || m->retune) {
        return;
    }
    a->tuning = false;
    list = dmn_history_json(&m->daemon->history, m->name, 1);
    if (json_array_size(list) == 1 && a->record) {
        json_object_set(json_array_get(list, 0), "decision", a->record);
    }
    json_decref(list);
    json_decref(base_take(a->record));
    a->last_outcome = "tuned";
}

/* Copies of the table from before an alarm; the older one is a second older. */
static void keep_good(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_problem copy;

    if (now_ns - a->good_ns < GOOD_NS || a->corrected || a->alarmed ||
        tun_problem_copy(&m->problem, &copy) < 0) {
        return;
    }
    tun_problem_deinit(&a->good[1]);
    a->good[1] = a->good[0];
    a->good[0] = copy;
    a->good_ns = now_ns;
}

/* What a quota slows is as it is in a state with that quota; what else is foreign is in no state.
 */
static void keep_known(struct dmn_model *m, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;

    if (now_ns - a->known_ns >= GOOD_NS && dmn_adapt_keeps(m) && a->verify_left == 0 && !a->job &&
        now_ns - a->epoch_ns > LASTING_NS && now_ns - a->state_ns > LASTING_NS) {
        a->known_ns = now_ns;
        dmn_adapt_remember(m, now_ns);
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

/* CPUs' worth of time that the cgroup allows; 0: all. */
static double quota(const struct dmn_daemon *d)
{
    const struct gov_snapshot *s = dmn_sensors_now(d);

    return s && isfinite(s->cgroup.quota_cpus) ? s->cgroup.quota_cpus : 0;
}

static void note_state(struct dmn_model *m, const struct tun_kind_seen *kinds, uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    uint64_t id;

    a->quota = quota(m->daemon);
    id = tun_state_id(kinds, m->daemon->eps.count, a->quota);
    if (a->state_id == 0) {
        a->quota_decided = a->quota;
    }
    if (a->state_id != id) {
        a->state_id = id;
        a->state_ns = now_ns;
    }
}

static void watch_window(struct dmn_model *m, const struct tun_kind_seen *kinds,
                         const struct tun_team_seen *teams, size_t team_count, uint64_t start_ns,
                         uint64_t now_ns)
{
    struct dmn_adapt_model *a = m->adapt;
    struct tun_seen_window w = {.start_ns = start_ns,
                                .now_ns = now_ns,
                                .kinds = kinds,
                                .teams = teams,
                                .team_count = team_count,
                                .events = a->events,
                                .throttled = m->daemon->adapt->felt.throttled,
                                .pressure = m->daemon->adapt->felt.pressure};
    struct tun_record record = TUN_RECORD_NULL;

    note_state(m, kinds, now_ns);
    a->windows++;
    a->events = 0;
    switch (tun_adapt_observe(a->watch, &w, &record)) {
    case TUN_ADAPT_DECIDE:
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

/* A core that a thread could not be pinned to is one that went. */
static void check_pins(struct dmn_model *m)
{
    struct dmn_adapt_model *a = m->adapt;

    if (a->pins_epoch == pl_epoch(m->pipe) || !dmn_config_int(m->daemon->config, DMN_KEY_PIN)) {
        return;
    }
    a->pins_epoch = pl_epoch(m->pipe);
    for (size_t i = 0; i < pl_team_count(m->pipe); i++) {
        struct pl_team_stats t;

        pl_team_stats(m->pipe, i, &t);
        if (!t.pinned) {
            dmn_hotplug_check(m->daemon);
            return;
        }
    }
}

static void step(struct dmn_model *m, const struct tun_kind_seen *kinds, uint64_t now_ns)
{
    struct tun_team_seen teams[PL_TEAM_MAX];
    uint64_t start_ns;
    size_t count;

    if (watch_model(m) < 0) {
        return;
    }
    note_search(m);
    dmn_adapt_machine_tell(m, now_ns);
    count = dmn_adapt_window(m, now_ns, teams, &start_ns);
    note_plan(m, now_ns);
    if (m->adapt->verify_left > 0) {
        dmn_adapt_verify(m, now_ns);
    }
    check_pins(m);
    if (dmn_adapt_pinned(m) || !dmn_adapt_free_to_act(m) || m->adapt->job ||
        m->problem.kind_count != m->daemon->eps.count) {
        return;
    }
    if (!m->adapt->serving) {
        begin(m, kinds, now_ns);
    } else if (start_ns > 0 && now_ns > start_ns) {
        watch_window(m, kinds, teams, count, start_ns, now_ns);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct dmn_adapt *a = timer->data;
    struct dmn_daemon *d = a->daemon;
    uint64_t period = (uint64_t)dmn_config_int(d->config, DMN_KEY_ADAPT_WINDOW_MS);
    struct tun_kind_seen kinds[PL_EP_MAX];
    uint64_t now = base_now_ns();

    if (period != a->period_ms) { /* after a reload */
        a->period_ms = period;
        uv_timer_start(timer, on_timer, period, period);
    }
    if (!dmn_config_int(d->config, DMN_KEY_ADAPT_ENABLED)) {
        for (struct dmn_model *m = d->models; m; m = m->next) {
            dmn_adapt_model_free(m);
        }
        return;
    }
    dmn_hotplug_check(d);
    dmn_adapt_change_step(d);
    dmn_adapt_kinds(d, dmn_sensors_now(d), kinds);
    dmn_adapt_felt(&a->felt, dmn_sensors_now(d));
    for (struct dmn_model *m = d->models; m; m = m->next) {
        step(m, kinds, now);
    }
    dmn_adapt_machine_see(d, dmn_sensors_now(d), now);
}

static void on_power(struct dmn_daemon *d, bool active)
{
    (void)active;
    for (struct dmn_model *m = d->models; m; m = m->next) {
        if (m->adapt) {
            m->adapt->events |= TUN_EVENT_POWER;
        }
    }
}

int dmn_adapt_start(struct dmn_daemon *d)
{
    struct dmn_adapt *a = calloc(1, sizeof(*a));

    if (!a) {
        return -ENOMEM;
    }
    a->daemon = d;
    a->period_ms = (uint64_t)dmn_config_int(d->config, DMN_KEY_ADAPT_WINDOW_MS);
    d->adapt = a;
    uv_timer_init(&d->loop, &a->timer);
    a->timer.data = a;
    uv_timer_start(&a->timer, on_timer, a->period_ms, a->period_ms);
    dmn_adapt_machine_see(d, dmn_sensors_now(d), base_now_ns());
    dmn_hotplug_listen(d, dmn_adapt_cores_changed);
    dmn_gpio_listen(d, on_power);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void dmn_adapt_configure(struct dmn_daemon *d)
{
    struct tun_adapt_options o = options(d->config);

    for (struct dmn_model *m = d->models; m; m = m->next) {
        if (m->adapt && tun_adapt_set_options(m->adapt->watch, &o) < 0) {
            dmn_log_limited(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                            "model %s: the keys of adapt take effect when it is loaded again",
                            m->name);
        }
    }
}

void dmn_adapt_stop(struct dmn_daemon *d)
{
    struct dmn_adapt *a = base_take(d->adapt);

    if (a) {
        dmn_hotplug_listen(d, NULL);
        dmn_adapt_change_leave(a);
        uv_close((uv_handle_t *)&a->timer, on_closed);
    }
}
