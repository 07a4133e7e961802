/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of clients' frames. */

#include "base/base.h"
#include "daemon/control/control.h"
#include "daemon/control/json.h"
#include "daemon/control/metrics_text.h"
#include "daemon/frames/frames.h"

static void histogram_rows(FILE *to, const char *name, const char *model,
                           const struct dmn_histogram *h)
{
    uint64_t count = 0;

    for (size_t i = 0; i < DMN_BUCKETS; i++) {
        count += h->count[i];
        fprintf(to, "piped_%s_bucket{model=\"%s\",le=\"%.9g\"} %llu\n", name, model,
                (double)dmn_histogram_bound_ns(i) / 1e9, (unsigned long long)count);
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
                      const char *type, const char *help, size_t at)
{
    dmn_metric_head(to, name, type, help);
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        const void *h = (const char *)&m->clients->stats + at;

        /* few models ever get images that are prepared beside the pipeline */
        if (h != &m->clients->stats.preparing || m->clients->stats.preparing.sum_ns > 0) {
            histogram_rows(to, name, m->name, h);
        }
    }
}

static void by_policy(FILE *to, const struct dmn_control *control)
{
    dmn_metric_head(to, "frames_policy_total", "counter",
                    "Frames answered, by policy of their stream and by status.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        const struct dmn_client_stats *clients = &m->clients->stats;

        for (int p = 0; p < IPC_POLICY_COUNT; p++) {
            for (int s = 0; s < IPC_STATUS_COUNT; s++) {
                dmn_metric_row(to, "frames_policy_total", (double)clients->by_policy[p][s],
                               "model=\"%s\",policy=\"%s\",status=\"%s\"", m->name,
                               dmn_policy_name((enum ipc_policy)p),
                               ipc_status_name((enum ipc_status)s));
            }
        }
    }
}

static void refusals(FILE *to, const struct dmn_control *control)
{
    dmn_metric_head(to, "frames_refused_total", "counter",
                    "Frames answered without a result, by reason.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        const struct dmn_client_stats *clients = &m->clients->stats;

        for (int why = DMN_NO_RESULT_NONE + 1; why < DMN_NO_RESULT_COUNT; why++) {
            dmn_metric_row(to, "frames_refused_total", (double)clients->by_reason[why],
                           "model=\"%s\",reason=\"%s\"", m->name, dmn_no_results[why].name);
        }
    }
}

void dmn_frames_metrics(FILE *to, const struct dmn_control *control, enum dmn_left_out less)
{
    refusals(to, control);
    if (less >= DMN_LEFT_OUT_MOST) {
        return;
    }
    by_policy(to, control);
    histogram(to, control, "frame_latency_seconds", "histogram",
              "Arrival of a computed frame to its last stage's end.",
              offsetof(struct dmn_client_stats, latency));
    if (less >= DMN_LEFT_OUT_TIMES) {
        return;
    }
    histogram(to, control, "frame_queue_seconds", "histogram",
              "Arrival of a computed frame to its first stage's start.",
              offsetof(struct dmn_client_stats, queue));
    histogram(to, control, "frame_compute_seconds", "histogram",
              "First stage's start to the last one's end.",
              offsetof(struct dmn_client_stats, compute));
    histogram(to, control, "frame_preparing_seconds", "histogram",
              "Shrinking a large image beside the pipeline.",
              offsetof(struct dmn_client_stats, preparing));
}
