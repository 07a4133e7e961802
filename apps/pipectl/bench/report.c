/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl bench: the summary. */
#include <stdio.h>
#include <stdlib.h>

#include "apps/pipectl/bench/bench.h"
#include "base/cli/shown_print.h"

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

static void print_json(const struct bench *b, double fps, double seconds, double cpu_s)
{
    json_t *v = json_object();

    json_object_set_new(v, "fps", json_real(fps));
    json_object_set_new(v, "latency_ms",
                        json_pack("{s:f, s:f, s:f, s:f}", "p50", percentile(b, 0.5), "p95",
                                  percentile(b, 0.95), "p99", percentile(b, 0.99), "max",
                                  percentile(b, 1)));
    json_object_set_new(v, "pause_ms", json_real((double)b->pause_ns / 1e6));
    json_object_set_new(v, "sent", json_integer((json_int_t)b->sent));
    json_object_set_new(v, "answered", json_integer((json_int_t)b->answered));
    json_object_set_new(v, "lost", json_integer((json_int_t)b->lost));
    json_object_set_new(v, "reordered", json_integer((json_int_t)b->reordered));
    json_object_set_new(v, "duplicated", json_integer((json_int_t)b->duplicated));
    json_object_set_new(v, "wrong", json_integer((json_int_t)b->wrong));
    json_object_set_new(v, "inexact", json_integer((json_int_t)b->inexact));
    json_object_set_new(v, "errors", errors_of(b));
    json_object_set_new(v, "cpu_s", json_real(cpu_s));
    json_object_set_new(v, "seconds", json_real(seconds));
    json_object_set_new(v, "clients", json_integer(b->o.clients));
    json_object_set_new(v, "in_flight", json_integer((json_int_t)b->most_under_way));
    json_object_set_new(v, "resent", json_integer((json_int_t)b->resent));
    json_object_set_new(v, "reconnects", json_integer((json_int_t)b->reconnects));
    if (b->o.autodice) {
        json_object_set_new(v, "autodice", bench_autodice_json(b));
    }
    ctl_print_json(v);
    json_decref(v);
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
        bench_autodice_print(b);
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
