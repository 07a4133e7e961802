/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "daemon/control/boards_json.h"
#include "daemon/control/control.h"
#include "daemon/control/costs_table.h"
#include "daemon/control/json.h"
#include "daemon/control/metrics_text.h"
#include "daemon/control/sensors_json.h"
#include "daemon/frames/frames.h"
#include "daemon/plans/planning.h"
#include "tuner/json/costs_json.h"

#if defined(__x86_64__)
#define ARCH "x86_64"
#elif defined(__aarch64__)
#define ARCH "aarch64"
#else
#define ARCH "other"
#endif

#define ENVELOPE_BYTES 256u /* more than what is around the text in its message */

/* Model names contain nothing that a label would have to escape. */
static void models(FILE *to, const struct dmn_control *control, const char *name, const char *type,
                   const char *help, double (*value)(const struct dmn_model *m))
{
    dmn_metric_head(to, name, type, help);
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        fprintf(to, "piped_%s{model=\"%s\"} %.17g\n", name, m->name, value(m));
    }
}

static double admitted(const struct dmn_model *m)
{
    return (double)m->stats.admitted;
}
static double in_flight(const struct dmn_model *m)
{
    return (double)dmn_clients_in_flight(m);
}
static double waiting(const struct dmn_model *m)
{
    return (double)dmn_model_waiting(m);
}
static double epoch(const struct dmn_model *m)
{
    return (double)pl_epoch(m->pipe);
}
static double fps(const struct dmn_model *m)
{
    return dmn_model_fps(m, base_now_ns());
}
static double stalled(const struct dmn_model *m)
{
    return m->stalled;
}
static double tuning(const struct dmn_model *m)
{
    return m->planning->retune != NULL;
}
static double weight_bytes(const struct dmn_model *m)
{
    return (double)m->model->weight_bytes;
}

/* How many cells of the cost tables are known, by source. */
static void cost_cells(FILE *to, const struct dmn_control *control)
{
    dmn_metric_head(to, "cost_cells", "gauge",
                    "Figures of the cost table, by where they are from.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        size_t count[DMN_SOURCE_COUNT];

        dmn_planner_count(&m->planning->problem, count);
        for (int s = 0; s < DMN_SOURCE_COUNT; s++) {
            fprintf(to, "piped_cost_cells{model=\"%s\",source=\"%s\"} %zu\n", m->name,
                    tun_source_name((enum tun_source)s), count[s]);
        }
    }
}

static void answers(FILE *to, const struct dmn_control *control)
{
    dmn_metric_head(to, "frames_answered_total", "counter", "Frames answered, by status.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        const struct dmn_client_stats *clients = dmn_clients_stats(m);

        for (int s = 0; s < IPC_STATUS_COUNT; s++) {
            fprintf(to, "piped_frames_answered_total{model=\"%s\",status=\"%s\"} %llu\n", m->name,
                    ipc_status_name((enum ipc_status)s), (unsigned long long)clients->by_status[s]);
        }
    }
    dmn_metric_head(
        to, "latency_seconds", "summary",
        "Arrival of a frame to its last stage's end; quantiles over the newest answers.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        static const char *const quantile[] = {"0.5", "0.95", "0.99"};
        const struct dmn_client_stats *clients = dmn_clients_stats(m);
        double ms[4];

        dmn_clients_latency(m, ms);
        for (size_t i = 0; i < base_array_count(quantile); i++) {
            fprintf(to, "piped_latency_seconds{model=\"%s\",quantile=\"%s\"} %.9g\n", m->name,
                    quantile[i], ms[i] / 1e3);
        }
        fprintf(to,
                "piped_latency_seconds_sum{model=\"%s\"} %.9g\n"
                "piped_latency_seconds_count{model=\"%s\"} %llu\n",
                m->name, clients->latency_sum_s, m->name,
                (unsigned long long)clients->latency_count);
    }
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

    for (size_t row = 0; row < base_array_count(rows); row++) {
        dmn_metric_head(to, rows[row].name, rows[row].type, rows[row].help);
        for (const struct dmn_model *m = control->models->models; m; m = m->next) {
            for (size_t i = 0; i < pl_team_count(m->pipe); i++) {
                struct pl_team_stats t;
                double value;

                pl_team_stats(m->pipe, i, &t);
                value = row == 0   ? (double)t.frames
                        : row == 1 ? (double)t.busy_ns / 1e9
                        : row == 2 ? t.service.ewma_ns / 1e9
                                   : (double)t.queue;
                fprintf(to, "piped_%s{model=\"%s\",stage=\"%u\",ep=\"%s\",team=\"%zu\"} %.17g\n",
                        rows[row].name, m->name, t.stage,
                        t.ep < control->machine->eps.count ? control->machine->eps.eps[t.ep].name
                                                           : "?",
                        i, value);
            }
        }
    }
}

static void by_status(FILE *to, const char *name, const uint64_t counts[IPC_STATUS_COUNT])
{
    for (int s = IPC_OK + 1; s < IPC_STATUS_COUNT; s++) {
        fprintf(to, "piped_%s{status=\"%s\"} %llu\n", name, ipc_status_name((enum ipc_status)s),
                (unsigned long long)counts[s]);
    }
}

static void connections_refused(FILE *to, const struct dmn_frames *f)
{
    static const char *const names[DMN_UNPLACED_COUNT] = {[DMN_UNPLACED_LIMIT] = "limit",
                                                          [DMN_UNPLACED_USER] = "limit_of_user",
                                                          [DMN_UNPLACED_MEMORY] = "out_of_memory"};

    dmn_metric_head(to, "connections_refused_total", "counter", "Connections refused, by reason.");
    for (size_t i = 0; i < DMN_UNPLACED_COUNT; i++) {
        fprintf(to, "piped_connections_refused_total{reason=\"%s\"} %llu\n", names[i],
                (unsigned long long)f->refused[i]);
    }
    dmn_metric_head(to, "streams_refused_total", "counter",
                    "Streams that could not be opened, by status.");
    by_status(to, "streams_refused_total", f->streams_refused);
    dmn_metric_head(to, "pools_refused_total", "counter",
                    "Client memory that was not taken, by status.");
    by_status(to, "pools_refused_total", f->pools_refused);
}

static void loop(FILE *to, const struct dmn_control *control)
{
    const struct dmn_loop_user *u;

    dmn_metric_head(to, "loop_seconds_total", "counter",
                    "Time that the loop spent on what a user's clients sent.");
    LIST_FOREACH(u, &control->turns->known, linked) {
        if (u->uid != DMN_LOOP_NOBODY) {
            fprintf(to, "piped_loop_seconds_total{user=\"%u\"} %.9g\n", (unsigned)u->uid,
                    (double)u->spent_ns / 1e9);
        }
    }
    dmn_metric_head(to, "loop_put_off_total", "counter",
                    "Turns of the loop after which a user's clients had more to be handled.");
    LIST_FOREACH(u, &control->turns->known, linked) {
        if (u->uid != DMN_LOOP_NOBODY) {
            fprintf(to, "piped_loop_put_off_total{user=\"%u\"} %llu\n", (unsigned)u->uid,
                    (unsigned long long)u->put_off);
        }
    }
}

static void memory(FILE *to, const struct dmn_control *control)
{
    struct dmn_memory m = dmn_memory_now(control->models);

    dmn_metric_head(to, "resident_bytes", "gauge", "Memory of the process, files' pages included.");
    fprintf(to, "piped_resident_bytes %llu\n", (unsigned long long)m.resident_bytes);
    dmn_metric_head(to, "packed_bytes", "gauge", "Weights as they are packed.");
    fprintf(to, "piped_packed_bytes %llu\n", (unsigned long long)m.packed_bytes);
    dmn_metric_head(to, "arena_bytes", "gauge", "Arenas that frames were ever in.");
    fprintf(to, "piped_arena_bytes %llu\n", (unsigned long long)m.arena_bytes);
}

static void the_daemon(FILE *to, const struct dmn_control *control)
{
    dmn_metric_head(to, "build_info", "gauge", "What the daemon was built of.");
    fprintf(to, "piped_build_info{version=\"%s\",arch=\"%s\",compiler=\"%s\"} 1\n", PIPED_VERSION,
            ARCH, __VERSION__);
    dmn_metric_head(to, "start_time_seconds", "gauge", "Start of the daemon, since 1970.");
    fprintf(to, "piped_start_time_seconds %.3f\n", control->host->started_s);
    dmn_metric_head(to, "uptime_seconds", "gauge", "Time since the start.");
    fprintf(to, "piped_uptime_seconds %.3f\n",
            (double)(base_now_ns() - control->host->started_ns) / 1e9);
    dmn_metric_head(to, "degraded", "gauge", "1 while something asked for does not work.");
    fprintf(to, "piped_degraded %d\n",
            control->host->state(control->host->ctx) == DMN_STATE_DEGRADED);
    dmn_metric_head(to, "models_failed", "gauge",
                    "Configured or saved models that could not be loaded.");
    fprintf(to, "piped_models_failed %zu\n", dmn_failed_count(&control->models->failed));
    dmn_metric_head(to, "connections", "gauge", "Connections to the frames socket.");
    fprintf(to, "piped_connections %zu\n", control->frames->server.conn_count);
    connections_refused(to, control->frames);
    dmn_metric_head(to, "reloads_total", "counter", "Reloads of the configuration, by outcome.");
    fprintf(to, "piped_reloads_total{outcome=\"done\"} %llu\n",
            (unsigned long long)control->host->reloads);
    fprintf(to, "piped_reloads_total{outcome=\"failed\"} %llu\n",
            (unsigned long long)control->host->reload_failures);
}

static void write_all(FILE *to, const struct dmn_control *control, enum dmn_left_out less)
{
    the_daemon(to, control);
    dmn_metric_head(to, "metrics_left_out", "gauge", "What did not fit into one answer.");
    fprintf(to, "piped_metrics_left_out %d\n", (int)less);
    models(to, control, "frames_admitted_total", "counter", "Frames that entered the pipeline.",
           admitted);
    answers(to, control);
    models(to, control, "frames_in_flight", "gauge", "Frames inside the pipeline.", in_flight);
    models(to, control, "frames_waiting", "gauge", "Frames that wait for room in the pipeline.",
           waiting);
    models(to, control, "fps", "gauge", "Frames answered a second, over the last seconds.", fps);
    models(to, control, "stalled", "gauge", "1 while a stage is stuck.", stalled);
    models(to, control, "plan_epoch", "gauge", "Number of the present plan.", epoch);
    models(to, control, "tuning", "gauge", "1 while a measurement is running.", tuning);
    models(to, control, "weight_bytes", "gauge", "Weights of the model.", weight_bytes);
    loop(to, control);
    memory(to, control);
    cost_cells(to, control);
    teams(to, control);
    dmn_frames_metrics(to, control, less);
    dmn_plans_metrics(to, control, less);
    dmn_boards_metrics(to, control);
    dmn_sensors_metrics(to, control->machine);
}

/* Return: owned (free); NULL: out of memory. */
static char *text_with(const struct dmn_control *control, enum dmn_left_out less)
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
    char *text = text_with(control, DMN_LEFT_OUT_NOTHING);

    for (int less = DMN_LEFT_OUT_UNITS; text && less <= DMN_LEFT_OUT_MOST && !fits_message(text);
         less++) {
        free(text);
        text = text_with(control, (enum dmn_left_out)less);
    }
    return text;
}
