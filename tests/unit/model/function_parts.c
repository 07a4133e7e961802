/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/model/function_parts.h"

const int64_t shape[2] = {1, 4};

struct pb attr_int(const char *name, int64_t v)
{
    struct pb a = {0};

    pb_text(&a, 1, name);
    pb_int(&a, 3, v);
    pb_int(&a, 20, 2);
    return a;
}

struct pb attr_float(const char *name, float v)
{
    struct pb a = {0};

    pb_text(&a, 1, name);
    pb_float(&a, 2, v);
    pb_int(&a, 20, 1);
    return a;
}

struct pb attr_ref(const char *name, const char *ref)
{
    struct pb a = {0};

    pb_text(&a, 1, name);
    pb_int(&a, 20, 1);
    pb_text(&a, 21, ref);
    return a;
}

struct pb attr_graph(const char *name, struct pb g)
{
    struct pb a = {0};

    pb_text(&a, 1, name);
    pb_sub(&a, 6, g);
    pb_int(&a, 20, 5);
    return a;
}

struct pb call(const char *function, const char *name, const char *in1, const char *in2,
               const char *out)
{
    struct pb n = pb_node(function, name, in1, in2, out);

    pb_text(&n, 7, "own");
    return n;
}

struct pb function(const char *name, const char *in1, const char *in2, const char *out)
{
    struct pb f = {0}, o = {0};

    pb_text(&f, 1, name);
    if (in1) {
        pb_text(&f, 4, in1);
    }
    if (in2) {
        pb_text(&f, 4, in2);
    }
    pb_text(&f, 5, out);
    pb_text(&o, 1, "");
    pb_int(&o, 2, 18);
    pb_sub(&f, 9, o);
    pb_text(&f, 10, "own");
    return f;
}

struct pb leaky_add(void)
{
    struct pb f = function("LeakyAdd", "a", "b", "r"),
              n = pb_node("LeakyRelu", "act", "a", NULL, "t");

    pb_sub(&n, 5, attr_ref("alpha", "slope"));
    pb_text(&f, 6, "slope");
    pb_sub(&f, 7, n);
    pb_sub(&f, 7, pb_node("Add", "sum", "t", "b", "r"));
    return f;
}

struct pb graph_of(const struct pb *nodes, size_t count)
{
    struct pb g = {0};

    for (size_t i = 0; i < count; i++) {
        pb_sub(&g, 1, nodes[i]);
    }
    pb_sub(&g, 11, pb_value("x", 1, shape, 2));
    pb_sub(&g, 12, pb_value("y", 1, NULL, 0));
    return g;
}

static struct mdl_graph *last_graph;
static struct pb last;
char read_error[MDL_ERROR_MAX];

int read_graph(struct pb model, struct mdl_graph **ret)
{
    int r;

    last_graph = mdl_graph_free(last_graph);
    pb_free(&last);
    last = model;
    r = mdl_onnx_read(last.data, last.bytes, NULL, read_error, &last_graph);
    if (r < 0) {
        printf("  %d: %s\n", r, read_error);
        last_graph = NULL;
    }
    *ret = last_graph;
    return r;
}
