/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics in Prometheus' text format. */
#include "base/base.h"
#include "daemon/control/control.h"
#include "daemon/control/json.h"
#include "daemon/control/metrics_text.h"
#include "daemon/frames/clients.h"
#include "daemon/frames/room.h"
#include "daemon/plans/plans.h"
#include "tuner/json/costs_json.h"

#if defined(__x86_64__)
#define ARCH "x86_64"
#elif defined(__aarch64__)
#define ARCH "aarch64"
#else
#define ARCH "other"
#endif

#define ENVELOPE_BYTES 256u /* more than what is around the text in its message */

/* What is left out of the answer of a daemon with so many models that it would not fit into one
 * message; each leaves out more. */
enum left_out {
    LEFT_OUT_NOTHING,
    LEFT_OUT_UNITS,
    LEFT_OUT_TIMES, /* histograms but that of the latency */
    LEFT_OUT_MOST,  /* all histograms, policies */
};

/* Model names contain nothing that a label would have to escape. */
typedef void rows_fn(FILE *to, const char *name, const struct dmn_model *m);

/* One metric with rows for every model. */
static void models(FILE *to, const struct dmn_control *control, const char *name, const char *type,
                   const char *help, rows_fn *rows)
{
    dmn_metric_head(to, name, type, help);
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        rows(to, name, m);
    }
}

/* Those with one row for each model. */
static void values(FILE *to, const struct dmn_control *control)
{
    static const struct {
        const char *name, *type, *help;
    } rows[] = {
        {"frames_admitted_total", "counter",
         "Frames that entered a pipeline, here or on another board."},
        {"frames_in_flight", "gauge", "Frames in a pipeline, on another board or being prepared."},
        {"frames_waiting", "gauge", "Frames that wait for room in the pipeline."},
        {"fps", "gauge", "Frames answered a second, over the last seconds."},
        {"wished_fps", "gauge", "Frames a second that the model is to have; 0: no wish."},
        {"frames_due_total", "counter", "Frames that had a deadline by the model's wishes."},
        {"frames_late_total", "counter", "Of these, those that were answered after it."},
        {"stalled", "gauge", "1 while a stage is stuck."},
        {"plan_epoch", "gauge", "Number of the present plan."},
        {"tuning", "gauge", "1 while a measurement is running."},
        {"weight_bytes", "gauge", "Weights of the model."},
        {"trial_seconds_total", "counter", "Time for which trials served."},
    };

    for (size_t i = 0; i < base_array_count(rows); i++) {
        dmn_metric_head(to, rows[i].name, rows[i].type, rows[i].help);
        for (const struct dmn_model *m = control->models->models; m; m = m->next) {
            const double value[] = {(double)m->stats.admitted,
                                    (double)dmn_frames_in_flight(m),
                                    (double)dmn_model_waiting(m),
                                    dmn_model_fps(m, base_now_ns()),
                                    m->wishes.rate,
                                    (double)m->stats.due,
                                    (double)m->stats.late,
                                    m->stalled,
                                    (double)pl_epoch(m->pipe),
                                    m->planning->retune != NULL,
                                    (double)m->model->weight_bytes,
                                    m->planning->counts.trial_s};

            _Static_assert(base_array_count(value) == base_array_count(rows), "a value each");
            dmn_metric_row(to, rows[i].name, value[i], "model=\"%s\"", m->name);
        }
    }
}

/* How many cells of the cost tables are known, by source. */
static void cost_cells(FILE *to, const char *name, const struct dmn_model *m)
{
    size_t count[DMN_SOURCE_COUNT];

    dmn_costs_count(&m->planning->problem, count);
    for (int s = 0; s < DMN_SOURCE_COUNT; s++) {
        dmn_metric_row(to, name, (double)count[s], "model=\"%s\",source=\"%s\"", m->name,
                       tun_source_names[s]);
    }
}

static void answers(FILE *to, const char *name, const struct dmn_model *m)
{
    for (int s = 0; s < IPC_STATUS_COUNT; s++) {
        dmn_metric_row(to, name, (double)m->clients->stats.by_status[s],
                       "model=\"%s\",status=\"%s\"", m->name, ipc_status_name((enum ipc_status)s));
    }
}

static void latency(FILE *to, const char *name, const struct dmn_model *m)
{
    static const char *const quantile[] = {"0.5", "0.95", "0.99"};
    const struct dmn_client_stats *clients = &m->clients->stats;
    double ms[4];

    dmn_client_stats_latency(clients, ms);
    for (size_t i = 0; i < base_array_count(quantile); i++) {
        dmn_metric_row(to, name, ms[i] / 1e3, "model=\"%s\",quantile=\"%s\"", m->name, quantile[i]);
    }
    dmn_metric_row(to, "latency_seconds_sum", clients->latency_sum_s, "model=\"%s\"", m->name);
    dmn_metric_row(to, "latency_seconds_count", (double)clients->latency_count, "model=\"%s\"",
                   m->name);
}

static void teams(FILE *to, const struct dmn_control *control)
{
    static const struct {
        const char *name, *type, *help;
    } rows[] = {
        {"team_frames_total", "counter", "Frames that a team computed under the present plan."},
        {"team_busy_seconds_total", "counter", "Time in which a team held a frame."},
        {"team_service_seconds", "gauge", "How long a team holds a frame, moving average."},
        {"team_queue", "gauge", "Frames that wait for a team."},
    };
    const struct pl_ep_set *eps = &control->machine->eps;

    for (size_t row = 0; row < base_array_count(rows); row++) {
        dmn_metric_head(to, rows[row].name, rows[row].type, rows[row].help);
        for (const struct dmn_model *m = control->models->models; m; m = m->next) {
            for (size_t i = 0; i < pl_team_count(m->pipe); i++) {
                struct pl_team_stats t;

                pl_team_stats(m->pipe, i, &t);
                dmn_metric_row(to, rows[row].name,
                               row == 0   ? (double)t.frames
                               : row == 1 ? (double)t.busy_ns / 1e9
                               : row == 2 ? t.service.ewma_ns / 1e9
                                          : (double)t.queue,
                               "model=\"%s\",stage=\"%u\",ep=\"%s\",team=\"%zu\"", m->name, t.stage,
                               t.ep < eps->count ? eps->eps[t.ep].name : "?", i);
            }
        }
    }
}

/* Of the plan for all models; rows only while there is one. */
static void mix(FILE *to, const struct dmn_control *control)
{
    static const struct {
        const char *name, *type, *help, *key;
        double times;
        bool each;
    } rows[] = {
        {"mix_of_bound", "gauge", "How near one plan for all comes to what the cores could do.",
         "served_of_bound", 1},
        {"mix_of_wishes", "gauge", "Part of every wished rate that one plan for all can keep.",
         "of_wishes", 1},
        {"mix_fairness", "gauge", "Jain's index of what each model has of its wish.", "fairness",
         1},
        {"planned_fps", "gauge", "Frames a second that one plan for all gives.", "rate", 1, true},
        {"planned_share", "gauge", "Share of all cores' time that it gives.", "share", 1, true},
        {"response_bound_seconds", "gauge", "Within which every frame is answered by it.",
         "served_bound_ms", 1e-3, true},
    };
    const struct dmn_mix *x = control->plans->mix;
    json_auto_t *json = x ? dmn_mix_json(x, control->models) : NULL;

    for (size_t i = 0; i < base_array_count(rows); i++) {
        const char *key = rows[i].key;

        dmn_metric_head(to, rows[i].name, rows[i].type, rows[i].help);
        if (!rows[i].each && json_is_number(json_object_get(json, key))) {
            fprintf(to, "piped_%s %.15g\n", rows[i].name,
                    json_number_value(json_object_get(json, key)));
        }
        json_text_each(rows[i].each ? json_object_get(json, "models") : NULL, k, m) {
            if (json_is_number(json_object_get(m, key))) {
                dmn_metric_row(to, rows[i].name,
                               rows[i].times * json_number_value(json_object_get(m, key)),
                               "model=\"%s\"", json_text_of(m, "model"));
            }
        }
    }
}

static void refused(FILE *to, const char *name, const char *type, const char *help,
                    const uint64_t counts[IPC_STATUS_COUNT])
{
    dmn_metric_head(to, name, type, help);
    for (int s = IPC_OK + 1; s < IPC_STATUS_COUNT; s++) {
        dmn_metric_row(to, name, (double)counts[s], "status=\"%s\"",
                       ipc_status_name((enum ipc_status)s));
    }
}

static void connections_refused(FILE *to, const struct dmn_frames *f)
{
    static const char *const names[DMN_UNPLACED_COUNT] = {[DMN_UNPLACED_LIMIT] = "limit",
                                                          [DMN_UNPLACED_USER] = "limit_of_user",
                                                          [DMN_UNPLACED_MEMORY] = "out_of_memory"};

    dmn_metric_head(to, "connections_refused_total", "counter", "Connections refused, by reason.");
    for (size_t i = 0; i < DMN_UNPLACED_COUNT; i++) {
        dmn_metric_row(to, "connections_refused_total", (double)f->refused[i], "reason=\"%s\"",
                       names[i]);
    }
}

static void loop(FILE *to, const struct dmn_control *control)
{
    static const struct {
        const char *name, *type, *help;
    } rows[] = {{"loop_seconds_total", "counter",
                 "Time that the loop spent on what a user's clients sent."},
                {"loop_put_off_total", "counter",
                 "Turns of the loop after which a user's clients had more to be handled."}};
    const struct dmn_loop_user *u;

    for (size_t row = 0; row < base_array_count(rows); row++) {
        dmn_metric_head(to, rows[row].name, rows[row].type, rows[row].help);
        LIST_FOREACH(u, &control->turns->known, linked) {
            if (u->uid != DMN_LOOP_NOBODY) {
                dmn_metric_row(to, rows[row].name,
                               row ? (double)u->put_off : (double)u->spent_ns / 1e9, "user=\"%u\"",
                               (unsigned)u->uid);
            }
        }
    }
}

static void memory(FILE *to, const struct dmn_control *control)
{
    struct dmn_memory m = dmn_memory_now(control->models);

    dmn_metric(to, "resident_bytes", "gauge", "Memory of the process, files' pages included.",
               (double)m.resident_bytes);
    dmn_metric(to, "packed_bytes", "gauge", "Weights as they are packed.", (double)m.packed_bytes);
    dmn_metric(to, "arena_bytes", "gauge", "Arenas that frames were ever in.",
               (double)m.arena_bytes);
}

static void the_daemon(FILE *to, const struct dmn_control *control)
{
    const struct dmn_host *host = control->host;
    const struct dmn_failed_model *m;
    size_t failed = 0;

    STAILQ_FOREACH(m, &control->models->failed, linked)
    {
        failed++;
    }
    dmn_metric_head(to, "build_info", "gauge", "What the daemon was built of.");
    dmn_metric_row(to, "build_info", 1, "version=\"%s\",arch=\"%s\",compiler=\"%s\"", PIPED_VERSION,
                   ARCH, __VERSION__);
    dmn_metric(to, "start_time_seconds", "gauge", "Start of the daemon, since 1970.",
               host->started_s);
    dmn_metric(to, "uptime_seconds", "gauge", "Time since the start.",
               (double)(base_now_ns() - host->started_ns) / 1e9);
    dmn_metric(to, "degraded", "gauge", "1 while something asked for does not work.",
               host->state(host->ctx) == DMN_STATE_DEGRADED);
    dmn_metric(to, "models_failed", "gauge", "Configured or saved models that could not be loaded.",
               (double)failed);
    dmn_metric(to, "connections", "gauge", "Connections to the frames socket.",
               (double)control->frames->server.conn_count);
    connections_refused(to, control->frames);
    refused(to, "streams_refused_total", "counter", "Streams that could not be opened, by status.",
            control->frames->streams_refused);
    refused(to, "pools_refused_total", "counter", "Client memory that was not taken, by status.",
            control->frames->pools_refused);
    dmn_metric_head(to, "reloads_total", "counter", "Reloads of the configuration, by outcome.");
    dmn_metric_row(to, "reloads_total", (double)host->reloads, "outcome=\"done\"");
    dmn_metric_row(to, "reloads_total", (double)host->reload_failures, "outcome=\"failed\"");
}

/* ---- clients' frames ---- */

static void histogram_rows(FILE *to, const char *name, const char *model,
                           const struct dmn_histogram *h)
{
    uint64_t count = 0;

    for (size_t i = 0; i < DMN_BUCKETS; i++) {
        count += h->count[i];
        fprintf(to, "piped_%s_bucket{model=\"%s\",le=\"%.9g\"} %llu\n", name, model,
                (double)dmn_histogram_ns[i] / 1e9, (unsigned long long)count);
    }
    count += h->count[DMN_BUCKETS];
    fprintf(to,
            "piped_%s_bucket{model=\"%s\",le=\"+Inf\"} %llu\npiped_%s_sum{model=\"%s\"} "
            "%llu.%09llu\npiped_%s_count{model=\"%s\"} %llu\n",
            name, model, (unsigned long long)count, name, model,
            (unsigned long long)(h->sum_ns / BASE_NS_PER_S),
            (unsigned long long)(h->sum_ns % BASE_NS_PER_S), name, model,
            (unsigned long long)count);
}

/* @at: of the histogram, in struct dmn_client_stats. */
static void histogram(FILE *to, const struct dmn_control *control, const char *name,
                      const char *help, size_t at)
{
    dmn_metric_head(to, name, "histogram", help);
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        const void *h = (const char *)&m->clients->stats + at;

        /* few models ever get images that are prepared beside the pipeline */
        if (h != &m->clients->stats.preparing || m->clients->stats.preparing.sum_ns > 0) {
            histogram_rows(to, name, m->name, h);
        }
    }
}

static void by_policy(FILE *to, const char *name, const struct dmn_model *m)
{
    for (int p = 0; p < IPC_POLICY_COUNT; p++) {
        for (int s = 0; s < IPC_STATUS_COUNT; s++) {
            dmn_metric_row(to, name, (double)m->clients->stats.by_policy[p][s],
                           "model=\"%s\",policy=\"%s\",status=\"%s\"", m->name, dmn_policy_names[p],
                           ipc_status_name((enum ipc_status)s));
        }
    }
}

static void refusals(FILE *to, const char *name, const struct dmn_model *m)
{
    for (int why = DMN_NO_RESULT_NONE + 1; why < DMN_NO_RESULT_COUNT; why++) {
        dmn_metric_row(to, name, (double)m->clients->stats.by_reason[why],
                       "model=\"%s\",reason=\"%s\"", m->name, dmn_no_results[why].name);
    }
}

static void frames_metrics(FILE *to, const struct dmn_control *control, enum left_out less)
{
    models(to, control, "frames_refused_total", "counter",
           "Frames answered without a result, by reason.", refusals);
    if (less >= LEFT_OUT_MOST) {
        return;
    }
    models(to, control, "frames_policy_total", "counter",
           "Frames answered, by policy of their stream and by status.", by_policy);
    histogram(to, control, "frame_latency_seconds",
              "Arrival of a computed frame to its last stage's end.",
              offsetof(struct dmn_client_stats, latency));
    if (less >= LEFT_OUT_TIMES) {
        return;
    }
    histogram(to, control, "frame_queue_seconds",
              "Arrival of a computed frame to its first stage's start.",
              offsetof(struct dmn_client_stats, queue));
    histogram(to, control, "frame_compute_seconds", "First stage's start to the last one's end.",
              offsetof(struct dmn_client_stats, compute));
    histogram(to, control, "frame_preparing_seconds",
              "Shrinking a large image beside the pipeline.",
              offsetof(struct dmn_client_stats, preparing));
}

/* ---- plans and units ---- */

/* Alert rules watch these: their rows are there before anything is counted, or the first event
 * would be no increase. */
static bool always(int cause, int outcome)
{
    return cause > TUN_CAUSE_NONE && cause < (int)TUN_CAUSE_COUNT &&
           (outcome == DMN_OUTCOME_SWITCHED || outcome == DMN_OUTCOME_ROLLED_BACK);
}

static void plan_events(FILE *to, const char *name, const struct dmn_model *m)
{
    const struct dmn_plan_counts *counts = &m->planning->counts;

    for (int c = 0; c < DMN_CAUSE_COUNT; c++) {
        for (int o = DMN_OUTCOME_NONE + 1; o < DMN_OUTCOME_COUNT; o++) {
            if (counts->events[c][o] || always(c, o)) {
                dmn_metric_row(to, name, (double)counts->events[c][o],
                               "model=\"%s\",cause=\"%s\",outcome=\"%s\"", m->name,
                               dmn_cause_name((enum dmn_cause)c), dmn_event_outcome_names[o]);
            }
        }
    }
}

static void trials(FILE *to, const char *name, const struct dmn_model *m)
{
    static const char *const ends[DMN_TRIAL_ENDS] = {[DMN_TRIAL_COMPLETED] = "completed",
                                                     [DMN_TRIAL_STOPPED] = "stopped",
                                                     [DMN_TRIAL_FAILED] = "failed"};

    for (int e = 0; e < DMN_TRIAL_ENDS; e++) {
        dmn_metric_row(to, name, (double)m->planning->counts.trials[e],
                       "model=\"%s\",outcome=\"%s\"", m->name, ends[e]);
    }
}

static void units(FILE *to, const char *name, const struct dmn_model *m)
{
    for (size_t u = 0; u < m->model->unit_count; u++) {
        const struct mdl_op *op = &m->model->ops[m->model->units[u].heavy_op];
        struct pl_unit_total t;

        pl_unit_total(m->pipe, u, &t);
        dmn_metric_row(to, "unit_seconds_sum", t.ns / 1e9, "model=\"%s\",unit=\"%zu\",kind=\"%s\"",
                       m->name, u, mdl_op_kind_name(op->kind));
        dmn_metric_row(to, "unit_seconds_count", (double)t.frames,
                       "model=\"%s\",unit=\"%zu\",kind=\"%s\"", m->name, u,
                       mdl_op_kind_name(op->kind));
    }
}

static void write_all(FILE *to, const struct dmn_control *control, enum left_out less)
{
    the_daemon(to, control);
    dmn_metric(to, "metrics_left_out", "gauge", "What did not fit into one answer.", less);
    values(to, control);
    models(to, control, "frames_answered_total", "counter", "Frames answered, by status.", answers);
    models(to, control, "latency_seconds", "summary",
           "Arrival of a frame to its last stage's end; quantiles over the newest answers.",
           latency);
    mix(to, control);
    loop(to, control);
    memory(to, control);
    models(to, control, "cost_cells", "gauge", "Figures of the cost table, by where they are from.",
           cost_cells);
    teams(to, control);
    frames_metrics(to, control, less);
    models(to, control, "plan_events_total", "counter",
           "Events of the history, by cause and outcome.", plan_events);
    models(to, control, "trials_total", "counter", "Plans that served to be measured, by outcome.",
           trials);
    if (less < LEFT_OUT_UNITS) {
        models(to, control, "unit_seconds", "summary", "Time of a unit, over all plans.", units);
    }
    dmn_boards_metrics(to, control);
    dmn_sensors_metrics(to, control);
}

/* Return: owned (free); NULL: out of memory. */
static char *text_with(const struct dmn_control *control, enum left_out less)
{
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    if (!to) {
        return NULL;
    }
    write_all(to, control, less);
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* As a string of JSON. */
static bool fits_message(const char *text)
{
    size_t bytes = ENVELOPE_BYTES;

    for (; *text; text++) {
        bytes += 1 + (*text == '"' || *text == '\\' || *text == '\n');
    }
    return bytes < IPC_VARLINK_MESSAGE_MAX;
}

char *dmn_metrics_text(struct dmn_control *control)
{
    char *text = text_with(control, LEFT_OUT_NOTHING);

    for (int less = LEFT_OUT_UNITS; text && less <= LEFT_OUT_MOST && !fits_message(text); less++) {
        free(text);
        text = text_with(control, (enum left_out)less);
    }
    return text;
}
