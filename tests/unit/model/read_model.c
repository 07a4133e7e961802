/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/model/read_model.h"

char read_error[MDL_ERROR_MAX];

int read_model(struct pb model, struct mdl_graph **ret)
{
    static struct pb last;
    static struct mdl_graph *last_graph;
    int r;

    last_graph = mdl_graph_free(last_graph);
    pb_free(&last);
    last = model;
    memset(read_error, 'X', sizeof(read_error));
    read_error[MDL_ERROR_MAX - 1] = '\0';
    r = mdl_onnx_read(last.data, last.bytes, NULL, read_error, &last_graph);
    if (r == 0 && ret) {
        *ret = last_graph;
    }
    if (r < 0) {
        printf("  %d: %s\n", r, read_error);
        last_graph = NULL;
    }
    return r;
}

struct pb model_with(struct pb t)
{
    static const int64_t x[] = {1, 4};
    struct pb g = {0};

    pb_sub(&g, 1, pb_node("Add", "add", "x", "t", "y"));
    pb_sub(&g, 5, t);
    pb_sub(&g, 11, pb_value("x", 1, x, 2));
    pb_sub(&g, 12, pb_value("y", 1, x, 2));
    return pb_model(g, 7, 13);
}
