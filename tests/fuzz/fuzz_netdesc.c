/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a network description, and as a sidecar. */
#include <stdlib.h>
#include <string.h>

#include "model/netdesc/netdesc.h"
#include "model/sidecar.h"
#include "tests/fuzz/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char error[MDL_ERROR_MAX];
    mdl_autopool struct mdl_pool *pool = NULL;
    struct mdl_graph *g = NULL;
    struct mdl_sidecar side;

    error[0] = '\0';
    if (mdl_netdesc_read(data, bytes, NULL, error, &g) == 0) {
        mdl_graph_free(g);
    } else if (error[0] == '\0') {
        abort();
    }
    if (mdl_pool_new(1u << 20, &pool) < 0) {
        abort();
    }
    error[0] = '\0';
    if (mdl_sidecar_parse((const char *)data, bytes, "s", -1, pool, error, &side) < 0 &&
        error[0] == '\0') {
        abort();
    }
    return 0;
}

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    static const char *const seeds[] = {
        "{\"input\": {\"shape\": [3, 8, 8]}, \"layers\": [{\"op\": \"conv\", \"name\": \"a\", "
        "\"out\": 4, \"kernel\": 3, \"pad\": \"same\", \"bn\": true, \"act\": \"relu6\"}, {\"op\": "
        "\"dwconv\", \"kernel\": [3, 1], \"pad\": [1, 0]}, {\"op\": \"add\", \"in\": [\"a\", "
        "\"dwconv1\"]}, {\"op\": \"maxpool\", \"kernel\": 2, \"stride\": 2, \"ceil\": true}, "
        "{\"op\": \"upsample\"}, {\"op\": \"lrn\"}, {\"op\": \"fc\", \"out\": 3}]}",
        "{\"preprocess\": {\"size\": [8, 8], \"mean\": [1, 2, 3], \"std\": 2, \"scale\": 0.5, "
        "\"colour\": \"bgr\", \"layout\": \"nhwc\", \"fit\": \"crop\"}, \"labels\": [\"a\", "
        "\"b\"]}",
    };
    size_t n = index < 2 ? strlen(seeds[index]) : 0;

    n = n <= cap ? n : 0;
    if (n) {
        memcpy(data, seeds[index], n);
    }
    return n;
}
