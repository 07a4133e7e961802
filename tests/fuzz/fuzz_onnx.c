/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a model: what the reader accepts must hold what its header promises. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "model/common/graph.h"
#include "model/common/weight_files.h"
#include "model/onnx/onnx.h"
#include "tests/fuzz/replay.h"
#include "tests/unit/model/onnx_bytes.h"

static void must(bool ok)
{
    if (!ok) {
        abort();
    }
}

static uint64_t sum;

/* ---- a file with weights beside the model ---- */

#define DATA_NAME "fuzz-onnx.data"
#define DATA_BYTES 300u

static void put_data(void)
{
    static bool done;
    FILE *f = done ? NULL : fopen(DATA_NAME, "wb");

    for (size_t i = 0; f && i < DATA_BYTES; i++) {
        fputc((int)(i & 0xff), f);
    }
    must(done || (f && fclose(f) == 0));
    done = true;
}

static bool in_range(const void *base, size_t base_bytes, const struct mdl_gtensor *t)
{
    const char *d = t->data, *from = base;

    return from && d >= from && t->bytes <= base_bytes &&
           (size_t)(d - from) <= base_bytes - t->bytes;
}

static const struct mdl_data_files *outside;

static void check_tensor(const struct mdl_gtensor *t, const struct mdl_graph *g)
{
    size_t n = mdl_dtype_bytes(t->dtype);

    for (size_t i = 0; i < t->rank; i++) {
        n *= t->dim[i];
    }
    must(t->rank <= MDL_RANK_MAX && t->bytes == n);
    if (t->in_file) {
        bool inside = in_range(g->file_map, g->file_bytes, t);

        for (size_t i = 0; i < outside->count; i++) {
            inside |= in_range(outside->list[i].map.data, outside->list[i].map.bytes, t);
        }
        must(inside);
    }
    for (size_t i = 0; i < t->bytes; i++) {
        sum += ((const unsigned char *)t->data)[i];
    }
}

static void check_nodes(const struct mdl_gnode *nodes, size_t count, const struct mdl_graph *g)
{
    for (size_t i = 0; i < count; i++) {
        const struct mdl_gnode *n = &nodes[i];

        for (size_t k = 0; k < n->input_count; k++) {
            sum += strlen(n->inputs[k]);
        }
        for (size_t k = 0; k < n->output_count; k++) {
            sum += strlen(n->outputs[k]);
        }
        must(n->op_type[0] != '\0' && n->name && n->opset > 0);
        for (size_t k = 0; k < n->attr_count; k++) {
            const struct mdl_gattr *a = &n->attrs[k];

            if (a->type == MDL_ATTR_TENSOR) {
                check_tensor(a->t, g);
            }
            must((a->type == MDL_ATTR_BRANCH) == (a->branch != NULL));
            if (a->branch) {
                check_nodes(a->branch->nodes, a->branch->node_count, g);
                for (size_t o = 0; o < a->branch->output_count; o++) {
                    sum += strlen(a->branch->outputs[o]);
                }
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char error[MDL_ERROR_MAX];
    struct mdl_data_files files = MDL_DATA_FILES_NULL;
    struct mdl_graph *g = NULL;
    int r;

    put_data();
    files.model_path = "fuzz.onnx";
    files.bytes_max = 1u << 20;
    outside = &files;
    memset(error, 'X', sizeof(error));
    r = mdl_onnx_read(data, bytes, &files, error, &g);
    must(memchr(error, '\0', sizeof(error)) != NULL);
    must((r < 0) == (g == NULL) && (r == 0 || error[0] != '\0'));
    if (r == 0) {
        /* a call of a function without nodes leaves none */
        must(g->output_count > 0);
        for (size_t i = 0; i < g->initializer_count; i++) {
            must(g->initializers[i].name[0] != '\0');
            check_tensor(&g->initializers[i], g);
        }
        check_nodes(g->nodes, g->node_count, g);
        mdl_graph_free(g);
    }
    mdl_data_files_deinit(&files);
    return 0;
}

/* ---- models made at random, field by field: most mutations of bytes only break a length ---- */

static uint64_t state;

static uint64_t below(uint64_t n)
{
    return base_splitmix64(&state) % n;
}

static const char *any_name(void)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "x", "y", "", "long.name"};

    return names[below(10)];
}

static int64_t any_int(void)
{
    static const int64_t values[] = {0, 1, 2, 3, -1, 7, INT32_MAX, INT64_MIN, INT64_MAX, 1ll << 33};

    return values[below(below(4) ? 4 : 10)];
}

static struct pb any_tensor(void)
{
    static const unsigned char zeros[256];
    int64_t dims[10];
    size_t rank = below(below(10) ? 4 : 10), n = 1, bytes;
    int type = (int)below(below(8) ? 12 : 20);
    struct pb t;

    for (size_t i = 0; i < rank; i++) {
        dims[i] = below(8) ? (int64_t)below(4) : any_int();
        n *= (size_t)dims[i];
    }
    t = pb_tensor(any_name(), type, dims, rank);
    n = n > 16 ? 16 : n;
    bytes = n * (type == 7 || type == 11 ? 8 : type == 10 ? 2 : type == 1 || type == 6 ? 4 : 1);
    switch (below(6)) {
    case 0:
        pb_bytes(&t, 4, zeros, 4 * n);
        break;
    case 1:
        for (size_t i = 0; i < n; i++) {
            pb_int(&t, below(2) ? 5 : 7, any_int());
        }
        break;
    case 2:
        pb_bytes(&t, 10, zeros, 8 * n);
        break;
    default:
        pb_bytes(&t, 9, zeros, below(10) ? bytes : below(sizeof(zeros)));
        break;
    }
    if (below(40) == 0) {
        pb_text(&t, 13, "external");
    }
    return t;
}

static void put_entry(struct pb *t, const char *key, const char *value)
{
    struct pb e = {0};

    pb_text(&e, 1, key);
    pb_text(&e, 2, value);
    pb_sub(t, 13, e);
}

/* A tensor in the file beside, or somewhere that is no such file. */
static struct pb any_outside(void)
{
    static const char *const places[] = {DATA_NAME,   DATA_NAME, DATA_NAME, "none.data",     "..",
                                         "/dev/zero", ".",       "",        ("./" DATA_NAME)};
    static const char *const numbers[] = {"0",   "4", "7",  "299",
                                          "300", "x", "-1", "18446744073709551615"};
    int64_t dims[2] = {(int64_t)below(5), (int64_t)below(20)};
    struct pb t = pb_tensor(any_name(), below(4) ? 1 : 10, dims, 2);

    put_entry(&t, "location", places[below(base_array_count(places))]);
    if (below(2)) {
        put_entry(&t, "offset", numbers[below(below(2) ? 3 : base_array_count(numbers))]);
    }
    if (below(4) == 0) {
        put_entry(&t, "length", numbers[below(base_array_count(numbers))]);
    }
    pb_int(&t, 14, below(20) ? 1 : any_int());
    return t;
}

static struct pb any_graph(unsigned depth);

static struct pb any_attr(unsigned depth)
{
    struct pb a = {0};
    unsigned kind = (unsigned)below(10);
    float f[3] = {1, 2, 3};

    pb_text(&a, 1, any_name());
    switch (kind) {
    case 0:
        pb_float(&a, 2, 0.5f);
        break;
    case 1:
        pb_int(&a, 3, any_int());
        break;
    case 2:
        pb_text(&a, 4, "SAME_UPPER");
        break;
    case 3:
        pb_sub(&a, 5, any_tensor());
        break;
    case 4:
        pb_sub(&a, 6, any_graph(depth + 1));
        break;
    case 7:
        pb_text(&a, 21, any_name());
        break;
    case 5:
        pb_bytes(&a, 7, f, sizeof(f));
        break;
    case 6:
        pb_text(&a, 9, any_name());
        break;
    default:
        for (uint64_t i = below(5); i > 0; i--) {
            pb_int(&a, 8, any_int());
        }
        break;
    }
    if (below(3)) {
        pb_int(&a, 20, below(4) ? (int64_t)kind + 1 : any_int());
    }
    return a;
}

static struct pb any_graph(unsigned depth)
{
    static const char *const ops[] = {"Conv", "Relu", "Add", "If", "Constant", "", "F", "G"};
    struct pb g = {0};

    for (uint64_t i = below(6) + (depth == 0); i > 0; i--) {
        struct pb n =
            pb_node(ops[below(below(8) ? 5 : 8)], any_name(), any_name(), any_name(), any_name());

        for (uint64_t k = below(4); depth < 6 && k > 0; k--) {
            pb_sub(&n, 5, any_attr(depth));
        }
        if (below(4) == 0) {
            pb_text(&n, 7, below(2) ? "own" : "ai.onnx");
        }
        if (below(10) == 0) {
            pb_text(&n, 8, any_name());
        }
        pb_sub(&g, 1, n);
    }
    for (uint64_t i = below(5); i > 0; i--) {
        pb_sub(&g, 5, below(4) ? any_tensor() : any_outside());
    }
    for (uint64_t i = below(4); i > 0; i--) {
        int64_t dims[4] = {any_int(), 3, any_int(), -2};

        pb_sub(&g, 10 + (unsigned)below(4),
               pb_value(any_name(), (int)below(12), dims, (size_t)below(5)));
    }
    if (depth == 0) {
        pb_sub(&g, 12, pb_value("out", 1, NULL, 0));
    }
    return g;
}

/* Its nodes are those of a graph; names of inputs and outputs are few, so that they meet. */
static struct pb any_function(void)
{
    struct pb f = {0}, o = {0};

    pb_text(&f, 1, below(2) ? "F" : "G");
    for (uint64_t i = below(4); i > 0; i--) {
        pb_text(&f, 4, any_name());
    }
    for (uint64_t i = below(3); i > 0; i--) {
        pb_text(&f, 5, any_name());
    }
    for (uint64_t i = below(4); i > 0; i--) {
        struct pb n = pb_node(below(4) ? "Relu" : "F", any_name(), any_name(), NULL, any_name());

        if (below(2)) {
            pb_sub(&n, 5, any_attr(4));
        }
        pb_sub(&f, 7, n);
    }
    if (below(2)) {
        pb_sub(&f, 11, any_attr(4));
    }
    pb_int(&o, 2, below(8) ? 18 : any_int());
    pb_sub(&f, 9, o);
    pb_text(&f, 10, below(4) ? "own" : "");
    if (below(4) == 0) {
        pb_text(&f, 13, any_name());
    }
    return f;
}

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    struct pb m;
    size_t n;

    state = index * 77777;
    m = index == 0 ? pb_small_model()
                   : pb_model(any_graph(0), below(20) ? 7 : any_int(), below(20) ? 13 : any_int());
    for (uint64_t i = index ? below(4) : 0; i > 0; i--) {
        pb_sub(&m, 25, any_function());
    }
    n = index < 4000 && m.bytes <= cap ? m.bytes : 0;
    memcpy(data, m.data, n);
    pb_free(&m);
    return n;
}
