/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/models.h"

#include <stdio.h>
#include <string.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/memory.h"
#include "daemon/service/messages.h"

struct dmn_model *dmn_model_find(const struct dmn_daemon *d, const char *name)
{
    for (struct dmn_model *m = d->models; m; m = m->next) {
        if (strcmp(m->name, name) == 0) {
            return m;
        }
    }
    return NULL;
}

struct dmn_model *dmn_model_default(const struct dmn_daemon *d)
{
    const char *name = dmn_config_string(d->config, DMN_KEY_DEFAULT_MODEL);
    struct dmn_model *m = name[0] ? dmn_model_find(d, name) : NULL;

    return m ? m : d->models;
}

size_t dmn_model_integers(const struct dmn_model *m)
{
    size_t count = 0;

    for (size_t i = 0; i < m->model->op_count; i++) {
        count += m->model->ops[i].quant != NULL;
    }
    return count;
}

size_t dmn_model_count(const struct dmn_daemon *d)
{
    size_t count = 0;

    for (const struct dmn_model *m = d->models; m; m = m->next) {
        count++;
    }
    return count;
}

struct dmn_load_source dmn_model_source(const struct dmn_model *m)
{
    return (struct dmn_load_source){.name = m->name,
                                    .path = m->path,
                                    .plan = m->config_plan,
                                    .kernels = m->kernels,
                                    .calibration = m->calibration,
                                    .latest = m->latest};
}

/* One frame's areas and whether its input is an image. */
static int lay_out(struct dmn_model *m)
{
    const struct mdl_model *model = m->model;
    const struct mdl_tensor *t = &model->tensors[model->inputs[0].tensor];
    size_t channels = model->preproc.nhwc ? 3 : 1, at = 0;

    for (size_t i = 0; i < model->input_count; i++) {
        m->in_offset[i] = at = base_align_up(at, 64);
        if (!base_add(at, model->inputs[i].bytes, &at) || at > IPC_POOL_BYTES_MAX) {
            return -E2BIG;
        }
    }
    m->input_bytes = at;
    at = 0;
    for (size_t i = 0; i < model->output_count; i++) {
        m->out_offset[i] = at = base_align_up(at, 64);
        if (!base_add(at, model->outputs[i].bytes, &at) || at > IPC_POOL_BYTES_MAX) {
            return -E2BIG;
        }
    }
    m->output_bytes = at;
    if (model->input_count == 1 && t->rank == 4 && t->dim[0] == 1 &&
        (t->dim[channels] == 1 || t->dim[channels] == 3) &&
        (t->dtype == MDL_F32 || t->dtype == MDL_U8)) {
        m->image_height = (uint32_t)t->dim[model->preproc.nhwc ? 1 : 2];
        m->image_width = (uint32_t)t->dim[model->preproc.nhwc ? 2 : 3];
    }
    return 0;
}

/* What is known of the model and its first plan, as far as the load does not bring them. */
static int first_plan(struct dmn_model *m, struct dmn_load *l, char *ret_error)
{
    int error = l->problem.unit_count ? 0 : dmn_planner_prepare(m->daemon, m->daemon->config, l);

    if (!error) {
        error = dmn_planner_first(l);
    }
    if (error) {
        snprintf(ret_error, MDL_ERROR_MAX, "%s", l->error);
        return error;
    }
    m->problem = l->problem;
    l->problem = TUN_PROBLEM_NULL;
    m->algorithm = l->algorithm;
    return 0;
}

static int build(struct dmn_model *m, struct dmn_load *l, char *ret_error)
{
    struct dmn_daemon *d = m->daemon;
    struct pl_options options = {
        .frames = (size_t)dmn_config_int(d->config, DMN_KEY_FRAMES_IN_FLIGHT),
        .spin_ns = (uint64_t)dmn_config_int(d->config, DMN_KEY_SPIN_US) * BASE_NS_PER_US,
        .no_pin = !dmn_config_int(d->config, DMN_KEY_PIN),
        .notify = dmn_daemon_wake,
        .notify_arg = d,
    };
    int error;

    snprintf(m->name, sizeof(m->name), "%s", l->name);
    m->path = strdup(l->path);
    m->config_plan = strdup(l->plan);
    m->kernels = strdup(l->kernels);
    m->calibration = strdup(l->calibration);
    m->latest = l->latest;
    m->from_config = l->from_config;
    m->load_took_ns = l->took_ns;
    m->stamp = l->stamp;
    m->loaded_ns = base_now_ns();
    m->stats.rate[m->stats.rate_at++].at_ns = m->loaded_ns;
    m->model = l->model; /* lent: given back by the caller on failure */
    m->net = l->net;
    if (!m->path || !m->config_plan || !m->kernels || !m->calibration) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    error = lay_out(m);
    if (error) {
        snprintf(ret_error, MDL_ERROR_MAX, "a frame's inputs or outputs are larger than %llu bytes",
                 IPC_POOL_BYTES_MAX);
        return error;
    }
    error = first_plan(m, l, ret_error);
    if (error) {
        return error;
    }
    error = pl_new(m->net, &d->eps, l->first, &options, &m->pipe);
    if (error) {
        snprintf(ret_error, MDL_ERROR_MAX, "the pipeline could not be built: %s", strerror(-error));
    }
    return error;
}

static void free_parts(struct dmn_model *m)
{
    dmn_planner_deinit(m);
    free(m->path);
    free(m->config_plan);
    free(m->kernels);
    free(m->calibration);
    free(m);
}

int dmn_model_start(struct dmn_daemon *d, struct dmn_load *l, const char *cause, char *ret_error,
                    struct dmn_model **ret)
{
    struct dmn_model *m = calloc(1, sizeof(*m)), **at;
    char plan[PL_PLAN_TEXT_MAX], detail[320], integers[64] = "";
    int error;

    ret_error[0] = '\0';
    if (!m) {
        snprintf(ret_error, MDL_ERROR_MAX, "out of memory");
        return -ENOMEM;
    }
    m->daemon = d;
    error = build(m, l, ret_error);
    if (error) {
        free_parts(m);
        return error;
    }
    l->model = NULL;
    l->net = NULL;
    for (at = &d->models; *at; at = &(*at)->next) {
    }
    *at = m;
    krn_net_trim(m->net);
    dmn_memory_trim();
    m->expects = dmn_planner_expect(m, pl_current_plan(m->pipe), &m->expected);
    dmn_model_plan_text(m, plan);
    if (dmn_model_integers(m)) {
        snprintf(integers, sizeof(integers), ", %zu operators on integers", dmn_model_integers(m));
    }
    snprintf(detail, sizeof(detail), "%zu units, loaded in %.0f ms%s%s", m->model->unit_count,
             (double)m->load_took_ns / 1e6,
             l->choose.chosen && l->choose.measured ? ", its primitives measured" : "", integers);
    if (l->choose.note[0]) {
        dmn_log_with(LOG_WARNING, (struct dmn_log_fields){.model = m->name}, "model %s: %s",
                     m->name, l->choose.note);
    }
    dmn_history_add(&d->history, &(struct dmn_history_event){.model = m->name,
                                                             .cause = cause,
                                                             .detail = detail,
                                                             .algorithm = m->algorithm,
                                                             .plan_after = plan,
                                                             .fps_before = -1,
                                                             .fps_after = -1,
                                                             .outcome = "serving"});
    dmn_log_with(
        LOG_NOTICE,
        (struct dmn_log_fields){.id = DMN_MSG_MODEL_LOADED, .model = m->name, .plan = plan},
        "model %s from %s: %s, plan %s (%s)", m->name, m->path, detail, plan, m->algorithm);
    dmn_control_event(
        d, json_pack("{s:s, s:s, s:s}", "event", "model_loaded", "model", m->name, "plan", plan));
    *ret = m;
    return 0;
}

static bool same_tensors(const struct mdl_model *a, const struct mdl_io *of_a,
                         const struct mdl_model *b, const struct mdl_io *of_b, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct mdl_tensor *x = &a->tensors[of_a[i].tensor], *y = &b->tensors[of_b[i].tensor];

        if (x->dtype != y->dtype || x->rank != y->rank ||
            memcmp(x->dim, y->dim, x->rank * sizeof(x->dim[0])) != 0) {
            return false;
        }
    }
    return true;
}

bool dmn_model_move_streams(struct dmn_model *from, struct dmn_model *to)
{
    const struct mdl_model *a = from->model, *b = to->model;

    if (a->input_count != b->input_count || a->output_count != b->output_count ||
        !same_tensors(a, a->inputs, b, b->inputs, b->input_count) ||
        !same_tensors(a, a->outputs, b, b->outputs, b->output_count) ||
        from->image_width != to->image_width || from->image_height != to->image_height) {
        return false;
    }
    while (from->streams) {
        struct dmn_stream *s = from->streams;
        size_t waiting = s->queue.waiting;

        for (size_t i = 0; i < waiting; i++) {
            dmn_admission_drop(&from->admission, &s->queue);
        }
        from->streams = s->model_next;
        if (s->model_next) {
            s->model_next->model_prev = NULL;
        }
        s->model = to;
        s->model_next = to->streams;
        if (to->streams) {
            to->streams->model_prev = s;
        }
        to->streams = s;
        for (size_t i = 0; i < waiting; i++) {
            dmn_admission_add(&to->admission, &s->queue);
        }
    }
    return true;
}

void dmn_model_unload(struct dmn_model *m, struct dmn_call *call)
{
    struct dmn_daemon *d = m->daemon;

    for (struct dmn_model **at = &d->models; *at; at = &(*at)->next) {
        if (*at == m) {
            *at = m->next;
            break;
        }
    }
    m->next = d->leaving;
    d->leaving = m;
    m->leaving = true;
    m->unload_call = call;
    dmn_retune_abort(m, "the model is being unloaded");
    if (m->switch_call) {
        dmn_call_error(base_take(m->switch_call), "NotFound", "what",
                       "the model is being unloaded");
    }
    for (struct dmn_stream *s = m->streams; s; s = s->model_next) {
        dmn_stream_event(s, IPC_EVENT_UNLOADING, pl_epoch(m->pipe));
    }
    dmn_log_with(LOG_NOTICE,
                 (struct dmn_log_fields){.id = DMN_MSG_MODEL_UNLOADED, .model = m->name},
                 "model %s: unloading, %zu frames in flight", m->name, pl_in_flight(m->pipe));
    dmn_control_event(d, json_pack("{s:s, s:s}", "event", "model_unloaded", "model", m->name));
}

void dmn_model_destroy(struct dmn_model *m)
{
    struct dmn_daemon *d = m->daemon;

    for (struct dmn_model **at = m->leaving ? &d->leaving : &d->models; *at; at = &(*at)->next) {
        if (*at == m) {
            *at = m->next;
            break;
        }
    }
    if (!m->retune) { /* else the plan that serves is one on trial */
        dmn_planner_learn(m);
        if (m->clocks.learned) {
            dmn_state_save(m);
        }
    }
    m->leaving = true;
    dmn_adapt_model_free(m);
    m->pipe = pl_free(m->pipe); /* no team touches a client's memory from here on */
    while (m->streams) {
        dmn_stream_detach(m->streams);
    }
    dmn_retune_free(m);
    if (m->unload_call) {
        dmn_call_reply(base_take(m->unload_call), NULL, false);
    }
    m->net = krn_net_free(m->net);
    m->model = mdl_free(m->model);
    free_parts(m);
}

void dmn_model_admit(struct dmn_model *m)
{
    struct dmn_queue *q;

    while ((q = dmn_admission_next(&m->admission)) != NULL) {
        if (!dmn_record_submit(base_container_of(q, struct dmn_stream, queue))) {
            break;
        }
    }
}

void dmn_model_collect(struct dmn_model *m)
{
    struct pl_frame *f;

    while ((f = pl_collect(m->pipe)) != NULL) {
        struct dmn_record *r = f->owner;

        m->stats.collected++;
        if (r) {
            double took = (double)(f->done_ns - f->started_ns);

            m->running--;
            m->stats.last_ns = f->done_ns;
            if (f->status == PL_FRAME_OK && f->started_ns && f->done_ns > f->started_ns) {
                m->stats.service_ewma_ns += (took - m->stats.service_ewma_ns) *
                                            (m->stats.service_ewma_ns > 0 ? 0.125 : 1.0);
            }
            dmn_record_collected(r, f);
        }
        if (m->retune) {
            dmn_retune_collected(m, f);
        }
        pl_frame_put(m->pipe, f);
        dmn_model_admit(m);
    }
    pl_reap(m->pipe);
    dmn_model_admit(m);
}

/* Frames of streams that a reload moved here may still be in the pipeline of the model before. */
static bool streams_run(const struct dmn_model *m)
{
    for (const struct dmn_stream *s = m->streams; s; s = s->model_next) {
        if (s->running > 0) {
            return true;
        }
    }
    return false;
}

void dmn_model_after(struct dmn_model *m)
{
    if (m->switch_call && !pl_switching(m->pipe)) {
        char plan[PL_PLAN_TEXT_MAX];
        bool automatic = strcmp(m->switch_call->method, "io.piped.AutoPlan") == 0;
        json_t *reply;

        dmn_model_plan_text(m, plan);
        reply = json_pack("{s:s, s:I}", "plan", plan, "epoch", (json_int_t)pl_epoch(m->pipe));
        if (!automatic) {
            json_object_set_new(reply, "warnings", dmn_model_warnings_json(m));
        }
        dmn_call_reply(base_take(m->switch_call), reply, false);
    }
    if (m->retune) {
        dmn_retune_step(m);
    }
    if (m->leaving && m->admission.waiting == 0 && pl_in_flight(m->pipe) == 0 &&
        !pl_switching(m->pipe) && !streams_run(m)) {
        dmn_model_destroy(m);
    }
}

void dmn_model_plan_changed(struct dmn_model *m)
{
    char plan[PL_PLAN_TEXT_MAX];

    dmn_model_plan_text(m, plan);
    m->expects = dmn_planner_expect(m, pl_current_plan(m->pipe), &m->expected);
    m->period_ns = 0;
    for (struct dmn_stream *s = m->streams; s; s = s->model_next) {
        dmn_stream_event(s, IPC_EVENT_PLAN, pl_epoch(m->pipe));
        dmn_stream_more_credits(s, pl_depth(m->pipe));
    }
    dmn_control_event(m->daemon,
                      json_pack("{s:s, s:s, s:s, s:I, s:s}", "event", "plan", "model", m->name,
                                "plan", plan, "epoch", (json_int_t)pl_epoch(m->pipe), "algorithm",
                                m->algorithm));
}

int dmn_model_set_plan(struct dmn_model *m, const struct pl_plan *plan, const char *algorithm,
                       const char *cause, const char *detail)
{
    char before[PL_PLAN_TEXT_MAX], after[PL_PLAN_TEXT_MAX];
    double fps = dmn_model_fps(m, base_now_ns());
    uint64_t start = base_now_ns();
    int error;

    dmn_planner_learn(m); /* the clocks begin anew */
    dmn_model_plan_text(m, before);
    error = pl_switch(m->pipe, plan);
    if (error) {
        return error;
    }
    m->algorithm = algorithm;
    dmn_model_plan_text(m, after);
    dmn_history_add(&m->daemon->history, &(struct dmn_history_event){
                                             .model = m->name,
                                             .cause = cause,
                                             .detail = detail,
                                             .algorithm = algorithm,
                                             .plan_before = before,
                                             .plan_after = after,
                                             .fps_before = fps,
                                             .fps_after = -1,
                                             .duration_ms = (double)(base_now_ns() - start) / 1e6,
                                             .outcome = "switched"});
    dmn_log_limited(
        LOG_NOTICE,
        ((struct dmn_log_fields){.id = DMN_MSG_PLAN_CHANGED, .model = m->name, .plan = after}),
        "model %s: plan %s instead of %s (%s, %s)", m->name, after, before, algorithm, cause);
    dmn_model_plan_changed(m);
    dmn_state_save(m);
    return 0;
}
