/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl bench: the summary. */
#include <math.h>

#include "apps/pipectl/bench/bench.h"

/* Nearest rank; the values are sorted. */
static double percentile(const struct bench *b, double p)
{
    size_t rank = (size_t)(p * (double)b->latency_count);

    return b->latency_count ? b->latency_ms[base_min(rank, b->latency_count - 1)] : 0;
}

static json_t *errors_of(const struct bench *b)
{
    json_t *errors = json_object();

    for (int s = 0; s < BENCH_STATUS_COUNT; s++) {
        if (b->errors[s]) {
            json_object_set_new(errors, piped_status_name(s),
                                json_integer((json_int_t)b->errors[s]));
        }
    }
    return errors;
}

/* As AutoDiCE's authors measure a mapping (hierarchical DSE, section 5: averages of 20 inferences,
 * one at a time). One frame is sent at a time, so throughput follows from the latencies. */
static void autodice_figures(const struct bench *b, double *ret_mean_ms, double *ret_stddev_ms)
{
    double n = (double)b->latency_count, sum = 0, squares = 0;

    for (size_t i = 0; i < b->latency_count; i++) {
        sum += b->latency_ms[i];
    }
    *ret_mean_ms = n > 0 ? sum / n : 0;
    for (size_t i = 0; i < b->latency_count; i++) {
        squares += (b->latency_ms[i] - *ret_mean_ms) * (b->latency_ms[i] - *ret_mean_ms);
    }
    *ret_stddev_ms = n > 1 ? sqrt(squares / (n - 1)) : 0;
}

static json_t *autodice_json(const struct bench *b)
{
    double mean, stddev;

    autodice_figures(b, &mean, &stddev);
    return json_pack("{s:I, s:f, s:f, s:f, s:o}", "runs", (json_int_t)b->latency_count,
                     "images_per_s", mean > 0 ? 1e3 / mean : 0, "mean_ms", mean, "stddev_ms",
                     stddev, "joules_per_image", json_text_number(b->joules / BENCH_AUTODICE_RUNS));
}

static void autodice_print(const struct bench *b)
{
    double mean, stddev;

    autodice_figures(b, &mean, &stddev);
    printf("%zu inferences, one after the other: %.2f images/s, %.3f ms (+-%.3f) each",
           b->latency_count, mean > 0 ? 1e3 / mean : 0, mean, stddev);
    if (isfinite(b->joules)) {
        printf(", %.3f J each at this board", b->joules / BENCH_AUTODICE_RUNS);
    }
    printf("\n");
}

static void print_json(const struct bench *b, double fps, double seconds, double cpu_s)
{
    json_auto_t *v = json_pack(
        "{s:f, s:{s:f, s:f, s:f, s:f}, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:f, s:f, s:I, "
        "s:I, s:I, s:I}",
        "fps", fps, "latency_ms", "p50", percentile(b, 0.5), "p95", percentile(b, 0.95), "p99",
        percentile(b, 0.99), "max", percentile(b, 1), "pause_ms", (double)b->pause_ns / 1e6, "sent",
        (json_int_t)b->sent, "answered", (json_int_t)b->answered, "lost", (json_int_t)b->lost,
        "reordered", (json_int_t)b->reordered, "duplicated", (json_int_t)b->duplicated, "wrong",
        (json_int_t)b->wrong, "inexact", (json_int_t)b->inexact, "errors", errors_of(b), "cpu_s",
        cpu_s, "seconds", seconds, "clients", (json_int_t)b->o.clients, "in_flight",
        (json_int_t)b->most_under_way, "resent", (json_int_t)b->resent, "reconnects",
        (json_int_t)b->reconnects);

    if (b->o.autodice) {
        json_object_set_new(v, "autodice", autodice_json(b));
    }
    ctl_print_json(v);
}

static void print_text(const struct bench *b, double fps, double seconds, double cpu_s)
{
    shown_printf("%.1f frames/s in %.2f s, %u client%s, up to %zu frames in flight\n", fps, seconds,
                 b->o.clients, base_plural(b->o.clients), b->most_under_way);
    printf("latency ms: p50 %.3f, p95 %.3f, p99 %.3f, max %.3f\n", percentile(b, 0.5),
           percentile(b, 0.95), percentile(b, 0.99), percentile(b, 1));
    printf("sent %llu, answered %llu, lost %llu, reordered %llu, duplicated %llu",
           (unsigned long long)b->sent, (unsigned long long)b->answered,
           (unsigned long long)b->lost, (unsigned long long)b->reordered,
           (unsigned long long)b->duplicated);
    if (b->o.verify) {
        printf(", wrong %llu", (unsigned long long)b->wrong);
        if (b->inexact) {
            printf(" (%llu not bit-equal)", (unsigned long long)b->inexact);
        }
    }
    printf("\n");
    for (int s = 0; s < BENCH_STATUS_COUNT; s++) {
        if (b->errors[s]) {
            shown_printf("  %s: %llu%s%s\n", piped_status_name(s), (unsigned long long)b->errors[s],
                         b->why[s][0] ? ": " : "", b->why[s]);
        }
    }
    if (b->reconnects) {
        shown_printf("reconnected %llu time%s, resent %llu frame%s, longest pause %.0f ms\n",
                     (unsigned long long)b->reconnects, base_plural(b->reconnects),
                     (unsigned long long)b->resent, base_plural(b->resent),
                     (double)b->pause_ns / 1e6);
    }
    if (b->o.autodice) {
        autodice_print(b);
    }
    printf("pipectl itself took %.2f s of CPU\n", cpu_s);
}

void bench_report(const struct ctl *ctl, struct bench *b, double cpu_s)
{
    double seconds = b->last_ns > b->first_ns ? (double)(b->last_ns - b->first_ns) / 1e9 : 0;
    double fps = seconds > 0 ? (double)b->ok / seconds : 0;

    if (b->latency_count) {
        qsort(b->latency_ms, b->latency_count, sizeof(double), base_by_size);
    }
    if (ctl->json) {
        print_json(b, fps, seconds, cpu_s);
    } else {
        print_text(b, fps, seconds, cpu_s);
    }
}
