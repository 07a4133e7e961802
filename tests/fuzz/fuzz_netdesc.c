/* SPDX-License-Identifier: Apache-2.0 */
/* Any text as a network description: what is refused has a reason. */
#include "model/netdesc/netdesc.h"
#include "tests/fuzz/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char error[MDL_ERROR_MAX] = "";
    struct mdl_graph *g = NULL;

    if (mdl_netdesc_read(data, bytes, NULL, false, error, &g) == 0) {
        mdl_graph_free(g);
    } else {
        MUST(error[0] != '\0');
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
    };

    return fuzz_seed_text(seeds, sizeof(seeds) / sizeof(seeds[0]), index, data, cap);
}
