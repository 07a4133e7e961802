/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A retune as a chain of steps on the loop thread. Each step either waits for the old plan of a
 * switch to run dry or for enough frames of a measurement; dmn_retune_step() is called again
 * whenever frames came out or time passed. Synthetic frames only fill what clients leave free: they
 * are submitted while no client's frame waits.
 */
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/log.h"
#include "daemon/messages.h"
#include "daemon/planner.h"

#define STEP_MS 5u
#define SYNTHETIC_MAX 64u
/* nobody uses the model when no frame came out for so long */
#define IDLE_NS (250 * BASE_NS_PER_MS)
/* two measurements of one plan differ by about this much; less is no reason to go back */
#define NOISE 0.03

enum phase { PHASE_BEFORE, PHASE_PLACES, PHASE_AFTER, PHASE_BACK, PHASE_DONE };

struct dmn_retune {
    struct dmn_call *call; /* NULL: nobody waits */
    json_t *event;         /* what it is answered with, once the last synthetic frame is out */
    enum phase phase;
    bool switching; /* wait for the old set first */
    bool measuring;
    bool idle; /* no client traffic when it began */
    bool aborted;
    size_t ep; /* PHASE_PLACES: which one */
    uint64_t began_ns;
    struct pl_plan before, after;
    double fps_before, fps_after, bottleneck_before_ms, bottleneck_after_ms;
    double predicted_gain; /* of after over before, by the same costs; 0: unknown */
    const char *algorithm_before;
    /* the measurement under way */
    uint64_t from_ns, from_count; /* 0: still warming up */
    uint64_t start_ns, start_count;
    uint64_t frames_wanted;
    double fps;
    uint64_t frames;
    uint64_t frames_before, frames_after;
    /* synthetic frames: one input for all, an output each */
    uint8_t *input, *outputs;
    size_t outstanding, places;
    bool taken[SYNTHETIC_MAX];
};

static void begin_measure(struct dmn_model *m, uint64_t frames)
{
    struct dmn_retune *r = m->retune;

    r->measuring = true;
    r->from_ns = r->from_count = 0;
    r->start_ns = base_now_ns();
    r->start_count = m->stats.collected;
    r->frames_wanted = frames;
    r->fps = -1;
    r->frames = 0;
}

static void inject(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;

    while (r->outstanding < r->places && m->admission.waiting == 0) {
        struct pl_frame *f = pl_frame_get(m->pipe);
        size_t place = 0;

        if (!f) {
            return;
        }
        while (r->taken[place]) {
            place++;
        }
        f->owner = NULL;
        f->tag = place;
        for (size_t i = 0; i < m->model->input_count; i++) {
            f->inputs[i] = r->input + m->in_offset[i];
        }
        for (size_t i = 0; i < m->model->output_count; i++) {
            f->outputs[i] =
                r->outputs + place * base_align_up(m->output_bytes, 64) + m->out_offset[i];
        }
        if (pl_submit(m->pipe, f) != 0) {
            pl_frame_put(m->pipe, f);
            return;
        }
        r->taken[place] = true;
        r->outstanding++;
    }
}

void dmn_retune_collected(struct dmn_model *m, const struct pl_frame *f)
{
    m->retune->taken[f->tag] = false;
    m->retune->outstanding--;
}

/* Return: true when the measurement is over. */
static bool measure(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;
    uint64_t now = base_now_ns(), count = m->stats.collected;
    uint64_t limit = (uint64_t)dmn_config_int(m->daemon->config, DMN_KEY_PLANNER_MS);
    size_t depth = pl_depth(m->pipe);

    if (r->from_ns == 0 && count - r->start_count >= base_min((uint64_t)depth, r->frames_wanted)) {
        r->from_ns = now; /* the pipeline is full: what comes out now comes at its pace */
        r->from_count = count;
    }
    if ((r->from_ns && count - r->from_count >= r->frames_wanted) ||
        now - r->start_ns >= limit * BASE_NS_PER_MS) {
        r->frames = r->from_ns ? count - r->from_count : 0;
        r->fps = r->frames && now > r->from_ns
                     ? (double)r->frames * 1e9 / (double)(now - r->from_ns)
                     : -1;
        r->measuring = false;
        return true;
    }
    inject(m);
    return false;
}

/* The slowest stage's service time in ms, teams counted; 0: unknown. */
static double bottleneck_ms(const struct dmn_model *m)
{
    double rate[PL_STAGE_MAX] = {0}, worst = 0;

    for (size_t i = 0; i < pl_team_count(m->pipe); i++) {
        struct pl_team_stats t;

        pl_team_stats(m->pipe, i, &t);
        if (t.stage < PL_STAGE_MAX && t.service.count > 0 && t.service.mean_ns > 0) {
            rate[t.stage] += 1 / t.service.mean_ns;
        }
    }
    for (size_t s = 0; s < PL_STAGE_MAX; s++) {
        worst = rate[s] > 0 && 1 / rate[s] > worst ? 1 / rate[s] : worst;
    }
    return worst / 1e6;
}

static json_t *trial_json(const struct dmn_model *m, const struct pl_plan *plan, double ms,
                          uint64_t frames, bool kept)
{
    char text[PL_PLAN_TEXT_MAX];

    if (pl_plan_format(plan, pl_current_eps(m->pipe), text, sizeof(text)) < 0) {
        text[0] = '\0';
    }
    return json_pack("{s:s, s:f, s:I, s:b}", "plan", text, "bottleneck_ms", ms, "frames",
                     (json_int_t)frames, "kept", kept);
}

static void finish(struct dmn_model *m, const char *outcome)
{
    struct dmn_retune *r = m->retune;
    char before[PL_PLAN_TEXT_MAX] = "", after[PL_PLAN_TEXT_MAX];
    bool changed =
        pl_plan_equal(pl_current_plan(m->pipe), &r->after) && !pl_plan_equal(&r->before, &r->after);
    json_t *trials = json_array(), *event;

    pl_plan_format(&r->before, pl_current_eps(m->pipe), before, sizeof(before));
    dmn_model_plan_text(m, after);
    m->algorithm = changed ? "exact" : r->algorithm_before;
    json_array_append_new(
        trials, trial_json(m, &r->before, r->bottleneck_before_ms, r->frames_before, !changed));
    if (r->frames_after) {
        json_array_append_new(
            trials, trial_json(m, &r->after, r->bottleneck_after_ms, r->frames_after, changed));
    }
    event = dmn_history_add(
        &m->daemon->history,
        &(struct dmn_history_event){.model = m->name,
                                    .cause = "request",
                                    .detail = r->idle ? "retune, measured with synthetic frames"
                                                      : "retune, measured under traffic",
                                    .algorithm = "exact",
                                    .trials = trials,
                                    .plan_before = before,
                                    .plan_after = after,
                                    .fps_before = r->fps_before,
                                    .fps_after = changed ? r->fps_after : r->fps_before,
                                    .predicted_gain = r->predicted_gain,
                                    .duration_ms = (double)(base_now_ns() - r->began_ns) / 1e6,
                                    .outcome = outcome});
    dmn_log_limited(
        LOG_NOTICE,
        ((struct dmn_log_fields){.id = DMN_MSG_RETUNE_END, .model = m->name, .plan = after}),
        "model %s: retune %s: plan %s, %.1f frames/s before, %.1f after, %.0f ms", m->name, outcome,
        after, r->fps_before, changed ? r->fps_after : r->fps_before,
        (double)(base_now_ns() - r->began_ns) / 1e6);
    dmn_model_plan_changed(m);
    dmn_state_save(m);
    r->event = json_incref(event);
    r->phase = PHASE_DONE;
}

static void fail(struct dmn_model *m, const char *why)
{
    struct dmn_retune *r = m->retune;

    dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.id = DMN_MSG_RETUNE_END, .model = m->name},
                 "model %s: retune given up: %s", m->name, why);
    if (r->call) {
        dmn_call_error(base_take(r->call), "Busy", "why", why);
    }
    m->algorithm = r->algorithm_before;
    r->phase = PHASE_DONE;
    /* back from a plan that was only there to measure; if even that fails, it serves on */
    if (!pl_plan_equal(&r->before, pl_current_plan(m->pipe)) && !m->leaving &&
        pl_switch(m->pipe, &r->before) != 0) {
        dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.model = m->name},
                     "model %s: the plan before could not be restored", m->name);
    }
    dmn_model_plan_changed(m);
}

/* Return: false when it did not work and the retune is over. */
static bool go_to(struct dmn_model *m, const struct pl_plan *plan)
{
    int error = 0;

    if (!pl_plan_equal(plan, pl_current_plan(m->pipe))) {
        error = pl_switch(m->pipe, plan);
    }
    if (error) {
        fail(m, error == PL_E_BUSY ? "a switch is under way" : strerror(-error));
        return false;
    }
    m->retune->switching = true;
    return true;
}

/* The whole network on one core of one place. */
static bool measure_place(struct dmn_model *m, size_t ep)
{
    struct pl_plan plan = {.stage_count = 1};

    plan.stages[0] =
        (struct pl_stage_plan){.last_unit = (uint16_t)(m->model->unit_count - 1),
                               .group_count = 1,
                               .groups = {{.ep = (uint16_t)ep, .width = 1, .count = 1}}};
    if (!go_to(m, &plan)) {
        return false;
    }
    begin_measure(m, (uint64_t)dmn_config_int(m->daemon->config, DMN_KEY_PLANNER_FRAMES));
    return true;
}

/* The slowest stage's time by the costs; 0: unknown. */
static double expected_ns(const struct dmn_model *m, const struct pl_plan *plan)
{
    struct tun_outcome o;

    return dmn_planner_expect(m, plan, &o) ? o.bottleneck_ns : 0;
}

static void plan_anew(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;
    double before, after;

    if (dmn_planner_plan(m, &r->after) < 0) {
        r->after = r->before;
    }
    before = expected_ns(m, &r->before);
    after = expected_ns(m, &r->after);
    r->predicted_gain = before > 0 && after > 0 ? before / after - 1 : 0;
    r->phase = PHASE_AFTER;
    if (go_to(m, &r->after) && !pl_plan_equal(&r->before, &r->after)) {
        begin_measure(m, r->frames_wanted);
    }
}

/* A measurement is over, or a switch without one: what comes next. */
static void advance(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;

    switch (r->phase) {
    case PHASE_BEFORE:
        dmn_planner_learn(m);
        r->fps_before = r->fps;
        r->frames_before = r->frames;
        r->bottleneck_before_ms = bottleneck_ms(m);
        r->phase = PHASE_PLACES;
        r->ep = 0;
        if (r->idle) {
            measure_place(m, 0);
        } else {
            plan_anew(m);
        }
        break;
    case PHASE_PLACES:
        dmn_planner_learn(m);
        if (++r->ep < pl_current_eps(m->pipe)->count) {
            measure_place(m, r->ep);
        } else {
            plan_anew(m);
        }
        break;
    case PHASE_AFTER:
        if (pl_plan_equal(&r->before, &r->after)) {
            finish(m, "kept");
            break;
        }
        dmn_planner_learn(m);
        r->fps_after = r->fps;
        r->frames_after = r->frames;
        r->bottleneck_after_ms = bottleneck_ms(m);
        if (r->fps_after >= r->fps_before * (1 - NOISE)) {
            finish(m, "switched");
        } else if (go_to(m, &r->before)) {
            r->phase = PHASE_BACK;
        }
        break;
    case PHASE_BACK:
        finish(m, "reverted");
        break;
    case PHASE_DONE:
        break;
    }
}

void dmn_retune_step(struct dmn_model *m)
{
    struct dmn_retune *r = m->retune;

    while (r->phase != PHASE_DONE && !r->aborted) {
        if (r->switching) {
            if (pl_switching(m->pipe)) {
                return;
            }
            r->switching = false;
            if (r->measuring) {
                begin_measure(m, r->frames_wanted);
            }
        }
        if (r->measuring && !measure(m)) {
            return;
        }
        advance(m);
    }
    if (r->outstanding == 0) {
        dmn_retune_free(m);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct dmn_daemon *d = timer->data;
    bool any = false;

    for (struct dmn_model *m = d->models; m; m = m->next) {
        if (m->retune) {
            dmn_retune_step(m);
        }
        any |= m->retune != NULL;
    }
    if (!any) {
        uv_timer_stop(timer);
    }
    dmn_daemon_settle(d);
}

int dmn_retune_begin(struct dmn_model *m, struct dmn_call *call)
{
    struct dmn_retune *r;
    struct dmn_daemon *d = m->daemon;

    if (m->retune || m->switch_call || pl_switching(m->pipe) || m->leaving) {
        return -EBUSY;
    }
    r = calloc(1, sizeof(*r));
    if (!r) {
        return -ENOMEM;
    }
    r->places = base_min(pl_frame_count(m->pipe), (size_t)SYNTHETIC_MAX);
    r->input = calloc(1, base_align_up(m->input_bytes, 64) + 64);
    r->outputs = calloc(r->places, base_align_up(m->output_bytes, 64) + 64);
    if (!r->input || !r->outputs) {
        free(r->input);
        free(r->outputs);
        free(r);
        return -ENOMEM;
    }
    r->call = call;
    r->began_ns = base_now_ns();
    r->idle =
        m->running == 0 && m->admission.waiting == 0 && r->began_ns - m->stats.last_ns > IDLE_NS;
    r->before = *pl_current_plan(m->pipe);
    r->algorithm_before = m->algorithm;
    r->fps_before = r->fps_after = -1;
    m->retune = r;
    dmn_log_with(LOG_INFO, (struct dmn_log_fields){.id = DMN_MSG_RETUNE_BEGIN, .model = m->name},
                 "model %s: retune begins", m->name);
    dmn_control_event(d, json_pack("{s:s, s:s}", "event", "retune", "model", m->name));
    begin_measure(m, (uint64_t)dmn_config_int(d->config, DMN_KEY_PLANNER_FRAMES));
    uv_timer_start(&d->retune, on_timer, STEP_MS, STEP_MS);
    dmn_retune_step(m);
    return 0;
}

void dmn_retune_abort(struct dmn_model *m, const char *why)
{
    if (m->retune && !m->retune->aborted && m->retune->phase != PHASE_DONE) {
        m->retune->aborted = true;
        fail(m, why);
    }
}

void dmn_retune_free(struct dmn_model *m)
{
    struct dmn_retune *r = base_take(m->retune);

    if (r) {
        if (r->call && r->event) {
            dmn_call_reply(r->call, json_pack("{s:O}", "event", r->event), false);
        } else if (r->call) {
            dmn_call_error(r->call, "Busy", "why", "the daemon is going down");
        }
        json_decref(r->event);
        free(r->input);
        free(r->outputs);
        free(r);
    }
}
