/* SPDX-License-Identifier: Apache-2.0 */
/** tests/unit/model/two_products.h - a model of two units whose weights are most of its file */
#pragma once

#include "kernels/kernels.h"
#include "model/model.h"
#include "tests/harness.h"
#include "tests/unit/model/onnx_bytes.h"

/* Two products with weights of 4 MiB each, x[1][1024] -> 1024 -> 1024, and small biases between. */
static inline struct pb two_products(void)
{
    static const int64_t x[] = {1, 1024}, w[] = {1024, 1024}, b[] = {1024};
    static float weights[1024 * 1024], bias[1024];
    static const char *const names[2][4] = {{"x", "w1", "h", "b1"}, {"h", "w2", "y", "b2"}};
    struct pb g = {0}, t;
    uint64_t seed = 1;

    for (int i = 0; i < 2; i++) {
        struct pb n = pb_node("Gemm", names[i][2], names[i][0], names[i][1], names[i][2]);

        pb_text(&n, 1, names[i][3]);
        pb_sub(&g, 1, n);
    }
    pb_text(&g, 2, "two");
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < base_array_count(weights); k++) {
            weights[k] = (float)(base_splitmix64(&seed) % 1000) * 1e-3f - 0.5f;
        }
        t = pb_tensor(names[i][1], 1, w, 2);
        pb_bytes(&t, 9, weights, sizeof(weights));
        pb_sub(&g, 5, t);
        t = pb_tensor(names[i][3], 1, b, 1);
        pb_bytes(&t, 9, bias, sizeof(bias));
        pb_sub(&g, 5, t);
    }
    pb_sub(&g, 11, pb_value("x", 1, x, 2));
    pb_sub(&g, 12, pb_value("y", 1, x, 2));
    return pb_model(g, 7, 13);
}

/* The answer to ones; zeros on failure. Return: its element 0. */
static inline float run_ones(const struct mdl_model *m, float ret[1024])
{
    char error[MDL_ERROR_MAX];
    static _Alignas(64) float in[1024], out[1024];
    struct krn_net *net = NULL;
    uint8_t *arena = aligned_alloc(64, m->arena_bytes + 64), *scratch;
    const void *inputs[] = {in};
    void *outputs[] = {out};
    struct krn_mem mem = {arena, inputs, outputs};
    struct krn_exec exec = {.width = 1};

    memset(ret, 0, sizeof(out));
    for (size_t i = 0; i < 1024; i++) {
        in[i] = 1;
    }
    if (!arena || krn_net_new(m, "__ref", error, &net) < 0) {
        free(arena);
        return 0;
    }
    scratch = aligned_alloc(64, krn_net_scratch_bytes(net, 1) + 64);
    exec.scratch = scratch;
    krn_net_run_ops(net, 0, m->op_count - 1, &mem, &exec);
    krn_net_free(net);
    free(scratch);
    free(arena);
    memcpy(ret, out, sizeof(out));
    return out[0];
}
