/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are loaded: what is read of them and beside them, and the memory of their weights. */
#include "base/leaves/leaves.h"
#include "tests/unit/model/load_files.h"

TEST(a_good_file)
{
    struct pb small = pb_small_model();
    const char *path = load_put("small.onnx", small.data, small.bytes);
    struct mdl_load_options o = {.name = "other"};
    struct mdl_model *m = NULL;
    unsigned char leaf[MDL_HASH_BYTES];
    unsigned char size[8] = {(unsigned char)small.bytes, (unsigned char)(small.bytes >> 8)};
    struct mdl_hash h;
    char hex[65];

    T_LT(small.bytes, 65536);
    mdl_hash_init(&h);
    mdl_hash_update(&h, small.data, small.bytes);
    mdl_hash_end(&h, leaf);
    mdl_hash_init(&h);
    mdl_hash_update(&h, size, sizeof(size));
    mdl_hash_update(&h, leaf, sizeof(leaf));
    mdl_hash_hex(&h, hex);
    pb_free(&small);
    T_EQ(mdl_load(path, NULL, load_error, &m), 0);
    T_STR(m->name, "small");
    T_STR(m->hash, hex);
    T_EQ(m->input_count, 1);
    T_STR(m->inputs[0].name, "x");
    T_EQ(m->inputs[0].bytes, 3 * 4 * 4 * 4);
    T_EQ(m->output_count, 1);
    T_TRUE(!m->preproc.known);
    T_NEAR(m->preproc.std[2], 1, 0);
    m = mdl_free(m);
    T_EQ(mdl_load(path, &o, load_error, &m), 0);
    T_STR(m->name, "other");
    m = mdl_free(m);
    T_TRUE(mdl_free(NULL) == NULL);
}

TEST(sidecars)
{
    struct pb small = pb_small_model();
    const char *path = load_put("side.onnx", small.data, small.bytes);
    static const char good[] =
        "{\"preprocess\": {\"mean\": 3, \"size\": [4, 4]}, \"labels\": [\"a\", "
        "\"b\"]}",
                      wrong[] = "{\"preprocess\": {\"size\": [4, 5]}}", bad[] = "{\"x\": 1}";
    struct mdl_model *m = NULL;

    pb_free(&small);
    load_put("side.sidecar.json", good, sizeof(good) - 1);
    T_EQ(mdl_load(path, NULL, load_error, &m), 0);
    T_TRUE(m->preproc.known);
    T_NEAR(m->preproc.mean[1], 3, 0);
    T_EQ(m->label_count, 2);
    T_STR(m->labels[1], "b");
    m = mdl_free(m);
    load_put("side.sidecar.json", wrong, sizeof(wrong) - 1);
    T_EQ(load_try(path, false), -EBADMSG);
    T_CONTAINS(load_error, "sidecar key 'size': 5 where input 'x' has 4");
    load_put("side.sidecar.json", bad, sizeof(bad) - 1);
    T_EQ(load_try(path, false), -EBADMSG);
    T_CONTAINS(load_error, "side.sidecar.json: key 'x': unknown key");
}

/* A fully connected layer of @n x @n, and an Add with a constant of n. */
static const char *put_large(const char *name, size_t n)
{
    int64_t x[] = {1, (int64_t)n}, w[] = {(int64_t)n, (int64_t)n}, c[] = {(int64_t)n};
    size_t bytes = n * n * sizeof(float);
    struct pb g = {0}, t, m;
    float *data = calloc(n, n * sizeof(float));
    const char *path;

    if (!data) {
        abort();
    }
    for (size_t i = 0; i < n * n; i += 512) {
        data[i] = (float)i;
    }
    pb_sub(&g, 1, pb_node("MatMul", "product", "x", "w", "p"));
    pb_sub(&g, 1, pb_node("Mul", "sum", "p", "x", "s"));
    pb_sub(&g, 1, pb_node("Pow", "power", "s", "c", "y"));
    t = pb_tensor("w", 1, w, 2);
    pb_bytes(&t, 9, data, bytes);
    pb_sub(&g, 5, t);
    t = pb_tensor("c", 1, c, 1);
    pb_bytes(&t, 9, data, n * sizeof(float));
    pb_sub(&g, 5, t);
    pb_sub(&g, 11, pb_value("x", 1, x, 2));
    pb_sub(&g, 12, pb_value("y", 1, x, 2));
    m = pb_model(g, 7, 13);
    path = load_put(name, m.data, m.bytes);
    pb_free(&m);
    free(data);
    return path;
}

static long status_kb(const char *key)
{
    char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    long kb = -1;

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kb = atol(line + strlen(key) + 1);
        }
    }
    if (f) {
        fclose(f);
    }
    return kb;
}

static double sum_constants(const struct mdl_model *m, bool heavy)
{
    double sum = 0;

    for (size_t o = 0; o < m->op_count; o++) {
        bool is_heavy = m->ops[o].kind == MDL_OP_MATMUL || m->ops[o].kind == MDL_OP_GEMM;

        for (size_t k = 0; k < MDL_OP_IN_MAX; k++) {
            size_t t = m->ops[o].in[k];
            const struct mdl_storage *s =
                t != MDL_NONE ? &m->storages[m->tensors[t].storage] : NULL;

            if (!s || s->home != MDL_HOME_CONST || is_heavy != heavy) {
                continue;
            }
            for (size_t i = 0; i + 4 <= s->bytes; i += 4) {
                float f;

                memcpy(&f, (const char *)s->data + i, 4);
                sum += f;
            }
        }
    }
    return sum;
}

TEST(weights_cost_no_memory_until_they_are_used)
{
    const char *path = put_large("large.onnx", 4096); /* 64 MiB */
    struct mdl_model *m = NULL;
    FILE *clear = fopen("/proc/self/clear_refs", "w");
    double before, after;
    long base, kb;

    if (!clear || fputs("5", clear) < 0 || fclose(clear) != 0) { /* resets VmHWM */
        T_SKIP("the peak of memory cannot be reset here");
    }
    base = status_kb("VmRSS");
    T_EQ(mdl_load(path, NULL, load_error, &m), 0);
    kb = status_kb("VmHWM") - base;
    printf("  load of 64 MiB: %ld kB at most, %ld kB after it\n", kb, status_kb("VmRSS") - base);
    T_LT(kb, 8 * 1024);
    before = sum_constants(m, true);
    kb = status_kb("RssFile");
    T_LT(60 * 1024, kb);
    for (size_t i = 0; i < m->op_count; i++) {
        mdl_drop_op_weights(m, i);
    }
    T_LT(status_kb("RssFile"), kb - 60 * 1024);
    after = sum_constants(m, true); /* they stay readable */
    T_TRUE(before == after && before != 0);
    mdl_free(m);
}

TEST(a_file_cut_short_later_is_harmless)
{
    const char *path = put_large("shrink.onnx", 64);
    struct mdl_model *m = NULL;
    double before;

    T_EQ(mdl_load(path, NULL, load_error, &m), 0);
    before = sum_constants(m, false);
    T_EQ(truncate(path, 0), 0);
    T_TRUE(sum_constants(m, false) == before); /* no SIGBUS: small constants were copied */
    mdl_free(m);
}

LOAD_MAIN()
