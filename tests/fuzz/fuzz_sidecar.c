/* SPDX-License-Identifier: Apache-2.0 */
/* Sidecars: what is refused has a reason; what is accepted can be computed with. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/sidecar.h"
#include "tests/fuzz/replay.h"

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    static const char *const texts[] = {
        ("{\"preprocess\": {\"size\": [224, 224], \"scale\": 0.0039, \"mean\": [0.4, 0.4, 0.4],"
         " \"std\": [0.2, 0.2, 0.2], \"colour\": \"rgb\", \"layout\": \"nchw\", \"fit\": \"crop\"},"
         " \"labels\": [\"a\", \"b\"]}"),
        ("{\"comment\": \"c\", \"shapes\": {\"input\": [1, 3, 8, 8], \"n\": 4},"
         " \"preprocess\": {\"colour\": \"gray\", \"layout\": \"nhwc\", \"fit\": \"stretch\"}}"),
        "{\"labels_file\": \"labels.txt\"}",
        ("{\"output\": {\"decode\": \"yolo\", \"head\": \"yolov5\", \"strides\": [8, 16],"
         " \"anchors\": [[[10, 13], [16, 30]], [[30, 61]]], \"score\": 0.2, \"across\": true,"
         " \"objectness\": \"product\", \"tensors\": {\"boxes\": [\"a\", \"b\"]}}}"),
        ("{\"output\": {\"decode\": \"ctc\", \"alphabet\": [\"a\", \"b\"], \"space\": true}}"),
        ("{\"output\": {\"decode\": \"ssd\", \"coding\": \"priors\", \"strides\": [8], \"anchors\":"
         " [[[1, 2]]], \"variances\": [0.1, 0.2], \"keypoints\": 5, \"background\": false}}"),
        ("{\"output\": {\"decode\": \"boxes\", \"columns\": [\"x1\", \"y1\", \"w\", \"h\", "
         "\"score\"]}}"),
        ("{\"preprocess\": {\"size\": [8, 8], \"mean\": [1, 2, 3], \"std\": 2, \"scale\": 0.5, "
         "\"colour\": \"bgr\", \"layout\": \"nhwc\", \"fit\": \"crop\", \"pad\": [1, 2]}, "
         "\"labels\": [\"a\", "
         "\"b\"]}"),
    };

    return fuzz_seed_text(texts, sizeof(texts) / sizeof(texts[0]), index, data, cap);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    mdl_autopool struct mdl_pool *pool = NULL;
    char error[MDL_ERROR_MAX] = "";
    struct mdl_sidecar s;

    MUST(mdl_pool_new(1u << 20, &pool) == 0);
    if (mdl_sidecar_parse((const char *)data, bytes, "fuzz", -1, pool, error, &s) < 0) {
        MUST(error[0] != '\0');
        return 0;
    }
    MUST(s.label_count <= MDL_LABELS_MAX);
    for (size_t i = 0; i < s.label_count; i++) {
        MUST(strlen(s.labels[i]) <= MDL_LABEL_BYTES_MAX);
    }
    for (size_t i = 0; i < 3; i++) {
        MUST(isfinite(s.preproc.mean[i]) && isfinite(s.preproc.std[i]) && s.preproc.std[i] != 0);
        MUST(isfinite(s.preproc.pad[i]));
    }
    return 0;
}
