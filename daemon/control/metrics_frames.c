/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of clients' frames. */

#include "base/base.h"
#include "daemon/control/control.h"
#include "daemon/control/metrics_text.h"
#include "daemon/frames/frames.h"

/* Return: NULL: no rows for this model. */
typedef const struct dmn_histogram *histogram_of(const struct dmn_client_stats *s);

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

static void histogram(FILE *to, const struct dmn_control *control, const char *name,
                      const char *type, const char *help, histogram_of *of)
{
    dmn_metric_head(to, name, type, help);
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        const struct dmn_histogram *h = of(dmn_clients_stats(m));

        if (h) {
            histogram_rows(to, name, m->name, h);
        }
    }
}

static const struct dmn_histogram *latency(const struct dmn_client_stats *s)
{
    return &s->latency;
}
static const struct dmn_histogram *queue(const struct dmn_client_stats *s)
{
    return &s->queue;
}
static const struct dmn_histogram *compute(const struct dmn_client_stats *s)
{
    return &s->compute;
}
/* Few models ever get such images. */
static const struct dmn_histogram *preparing(const struct dmn_client_stats *s)
{
    return s->preparing.sum_ns > 0 ? &s->preparing : NULL;
}

static void by_policy(FILE *to, const struct dmn_control *control)
{
    static const char *const policies[IPC_POLICY_COUNT] = {[IPC_POLICY_BLOCK] = "block",
                                                           [IPC_POLICY_LATEST] = "latest",
                                                           [IPC_POLICY_REJECT] = "reject"};

    dmn_metric_head(to, "frames_policy_total", "counter",
                    "Frames answered, by policy of their stream and by status.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        const struct dmn_client_stats *clients = dmn_clients_stats(m);

        for (int p = 0; p < IPC_POLICY_COUNT; p++) {
            for (int s = 0; s < IPC_STATUS_COUNT; s++) {
                fprintf(to,
                        "piped_frames_policy_total{model=\"%s\",policy=\"%s\",status=\"%s\"} "
                        "%llu\n",
                        m->name, policies[p], ipc_status_name((enum ipc_status)s),
                        (unsigned long long)clients->by_policy[p][s]);
            }
        }
    }
}

static void refusals(FILE *to, const struct dmn_control *control)
{
    dmn_metric_head(to, "frames_refused_total", "counter",
                    "Frames answered without a result, by reason.");
    for (const struct dmn_model *m = control->models->models; m; m = m->next) {
        const struct dmn_client_stats *clients = dmn_clients_stats(m);

        for (int why = DMN_NO_RESULT_NONE + 1; why < DMN_NO_RESULT_COUNT; why++) {
            fprintf(to, "piped_frames_refused_total{model=\"%s\",reason=\"%s\"} %llu\n", m->name,
                    dmn_no_result_name((enum dmn_no_result)why),
                    (unsigned long long)clients->by_reason[why]);
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
              "Arrival of a computed frame to its last stage's end.", latency);
    if (less >= DMN_LEFT_OUT_TIMES) {
        return;
    }
    histogram(to, control, "frame_queue_seconds", "histogram",
              "Arrival of a computed frame to its first stage's start.", queue);
    histogram(to, control, "frame_compute_seconds", "histogram",
              "First stage's start to the last one's end.", compute);
    histogram(to, control, "frame_preparing_seconds", "histogram",
              "Shrinking a large image beside the pipeline.", preparing);
}
