/* SPDX-License-Identifier: Apache-2.0 */
/* pipectl bench --autodice: as AutoDiCE's authors measure a mapping (hierarchical DSE, section 5:
 * averages of 20 inferences, one at a time). */
#include <math.h>

#include "apps/pipectl/bench/bench.h"
#include "base/base.h"

void bench_autodice_options(struct bench_options *o)
{
    o->autodice = true;
    o->frames = BENCH_AUTODICE_RUNS;
    o->clients = o->in_flight = 1;
    o->seconds = o->rate = 0;
}

double bench_joules(const struct ctl *ctl)
{
    json_t *reply = NULL;
    const json_t *joules;
    double ret = NAN;

    if (ctl_call(ctl, "Status", NULL, &reply) == CTL_DONE) {
        joules = json_object_get(
            json_object_get(json_object_get(json_object_get(reply, "status"), "sensors"), "energy"),
            "joules");
        ret = json_is_number(joules) ? json_number_value(joules) : NAN;
    }
    json_decref(reply);
    return ret;
}

/* One frame is sent at a time, so throughput follows from the latencies. */
static void figures(const struct bench *b, double *ret_mean_ms, double *ret_stddev_ms)
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

json_t *bench_autodice_json(const struct bench *b)
{
    double mean, stddev;

    figures(b, &mean, &stddev);
    return json_pack(
        "{s:I, s:f, s:f, s:f, s:o}", "runs", (json_int_t)b->latency_count, "images_per_s",
        mean > 0 ? 1e3 / mean : 0, "mean_ms", mean, "stddev_ms", stddev, "joules_per_image",
        isfinite(b->joules) ? json_real(b->joules / BENCH_AUTODICE_RUNS) : json_null());
}

void bench_autodice_print(const struct bench *b)
{
    double mean, stddev;

    figures(b, &mean, &stddev);
    printf("%zu inferences, one after the other: %.2f images/s, %.3f ms (+-%.3f) each",
           b->latency_count, mean > 0 ? 1e3 / mean : 0, mean, stddev);
    if (isfinite(b->joules)) {
        printf(", %.3f J each at this board", b->joules / BENCH_AUTODICE_RUNS);
    }
    printf("\n");
}
