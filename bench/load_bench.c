/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load_bench MODEL [THREADS] - how long a load takes and how much memory it needs, as one line of
 * JSON
 *
 * peak_bytes is the process's largest resident set (VmHWM, file pages included) after the load less
 * what the process held before; peak_over_need compares it with the larger of weights and packed
 * weights, and one frame's arena; ready_ms runs from the
 * first byte read to weights packed, by the static choice of primitives.
 */
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "kernels/kernels.h"
#include "model/model.h"

static size_t status_bytes(const char *key)
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    size_t kib = 0;

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = strtoull(line + strlen(key) + 1, NULL, 10);
        }
    }
    if (f) {
        fclose(f);
    }
    return kib * 1024;
}

int main(int argc, char **argv)
{
    struct mdl_load_options options = {.name = "model", .const_eval = krn_const_eval};
    char error[MDL_ERROR_MAX];
    struct mdl_model *m = NULL;
    struct krn_net *net = NULL;
    size_t before, peak, after, need;
    uint64_t start, loaded, ready;

    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: load_bench MODEL [THREADS]\n");
        return 2;
    }
    options.threads = argc == 3 ? strtoull(argv[2], NULL, 10) : 1;
    krn_pack_threads(options.threads);
    before = status_bytes("VmRSS");
    start = base_now_ns();
    if (mdl_load(argv[1], &options, error, &m) != 0) {
        fprintf(stderr, "%s: %s\n", argv[1], error);
        return 1;
    }
    loaded = base_now_ns();
    if (krn_net_new(m, NULL, error, &net) != 0) {
        fprintf(stderr, "%s: %s\n", argv[1], error);
        return 1;
    }
    ready = base_now_ns();
    peak = status_bytes("VmHWM") - before;
    after = status_bytes("VmRSS") - before;
    need = base_max(m->weight_bytes, krn_net_packed_bytes(net)) + m->arena_bytes;
    printf("{\"model\": \"%s\", \"units\": %zu, \"load_ms\": %.1f, \"ready_ms\": %.1f, "
           "\"weight_bytes\": %zu, \"packed_bytes\": %zu, \"arena_bytes\": %zu, "
           "\"arena_of_all_tensors\": %.3f, "
           "\"peak_bytes\": %zu, \"resident_bytes\": %zu, \"peak_over_need\": %.3f}\n",
           argv[1], m->unit_count, (double)(loaded - start) / 1e6, (double)(ready - start) / 1e6,
           m->weight_bytes, krn_net_packed_bytes(net), m->arena_bytes,
           m->tensor_bytes ? (double)m->arena_bytes / (double)m->tensor_bytes : 0.0, peak, after,
           (double)peak / (double)need);
    krn_net_free(net);
    mdl_free(m);
    return 0;
}
