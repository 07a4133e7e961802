/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoders: any description, outputs of any shape, any numbers in them. Objects are in the picture,
 * and their points and labels are there.
 *
 * The input is the description, a NUL, how many outputs, for each its type, rank and dimensions,
 * and then bytes that fill all of them again and again.
 */
#include <math.h>

#include "ipc/decode/piped_decode.h"
#include "ipc/piped.h"
#include "tests/fuzz/replay.h"

#define OUTPUTS 4u
#define AREA_MAX ((size_t)1 << 16)

#define HEAD_OF(labels)                                                                            \
    "{\"width\": 32, \"height\": 24, \"fit\": \"letterbox\", "                                     \
    "\"labels\": [" labels "], \"output\": "
#define HEAD HEAD_OF("\"a\"")
static const struct {
    const char *text;
    const char *outputs; /* how many; type, rank, dims */
    size_t bytes;
} seeds[] = {
    {HEAD "{\"decode\": \"classes\"}}", "\1\1\2\1\12", 5},
    {HEAD "{\"decode\": \"yolo\", \"layout\": \"rows\"}}", "\1\1\3\1\24\5", 6},
    {HEAD
     "{\"decode\": \"yolo\", \"head\": \"yolox\", \"strides\": [8], \"objectness\": \"root\"}}",
     "\1\1\3\1\14\6", 6},
    {HEAD "{\"decode\": \"yolo\", \"head\": \"yolov5\", \"strides\": [8, 16], \"objectness\": "
          "\"product\","
          " \"anchors\": [[[9, 9]], [[20, 20]]]}}",
     "\2\1\5\1\1\3\4\6\1\5\1\1\2\2\6", 15},
    {HEAD_OF("\"a\", \"b\"") "{\"decode\": \"ssd\", \"coding\": \"priors\", \"strides\": [16], "
                             "\"anchors\": [[[8, 8]]], \"keypoints\": 1}}",
     "\3\1\3\1\4\4\1\3\1\4\2\1\3\1\4\2", 16},
    {HEAD_OF("\"a\", \"b\"") "{\"decode\": \"boxes\", \"tensors\": {\"boxes\": \"o0\", \"scores\": "
                             "\"o1\", \"indices\": \"o2\"}}}",
     "\3\1\3\1\5\4\1\3\1\2\5\3\2\6\3", 15},
    {HEAD "{\"decode\": \"boxes\"}}", "\1\1\3\1\5\6", 6},
    {HEAD "{\"decode\": \"dbnet\", \"least\": 0}}", "\1\1\4\1\1\30\40", 7},
    {HEAD "{\"decode\": \"ctc\", \"alphabet\": [\"x\", \"y\"]}}", "\1\1\3\1\11\3", 6},
    {HEAD "{\"decode\": \"keypoints\"}}", "\1\1\4\1\5\6\10", 7},
    {HEAD_OF("\"a\", \"b\", \"c\"") "{\"decode\": \"mask\"}}", "\1\1\4\1\3\6\10", 7},
};

size_t fuzz_seed(size_t index, unsigned char *data, size_t cap)
{
    size_t n;

    if (index >= sizeof(seeds) / sizeof(seeds[0])) {
        return 0;
    }
    n = strlen(seeds[index].text) + 1;
    if (n + seeds[index].bytes + 400 > cap) {
        return 0;
    }
    memcpy(data, seeds[index].text, n);
    memcpy(data + n, seeds[index].outputs, seeds[index].bytes);
    n += seeds[index].bytes;
    for (size_t i = 0; i < 100; i++) { /* some numbers between 0 and 40 */
        float f = (float)((i * 37 + index) % 101) * 0.4f * (i % 3 ? 0.03f : 1);

        memcpy(data + n, &f, 4);
        n += 4;
    }
    return n;
}

static unsigned take(const uint8_t **data, size_t *bytes)
{
    unsigned v = *bytes ? **data : 0;

    *data += *bytes > 0;
    *bytes -= *bytes > 0;
    return v;
}

/* Return: bytes of the area; 0: too many. */
static size_t take_outputs(const uint8_t **data, size_t *bytes, struct piped_tensor *ret,
                           uint32_t *ret_count)
{
    static const size_t each[] = {1, 4, 4, 8, 1, 1, 1, 2};
    static char names[OUTPUTS][12];
    size_t area = 0;

    *ret_count = take(data, bytes) % (OUTPUTS + 1);
    for (uint32_t i = 0; i < *ret_count; i++) {
        size_t size;

        ret[i] = (struct piped_tensor){.name = names[i],
                                       .dtype = 1 + (take(data, bytes) + 6) % 7,
                                       .rank = take(data, bytes) % 7};
        snprintf(names[i], sizeof(names[i]), "o%u", i);
        size = each[ret[i].dtype];
        for (uint32_t k = 0; k < ret[i].rank; k++) {
            ret[i].dim[k] = take(data, bytes);
            size *= ret[i].dim[k];
            if (size > AREA_MAX) {
                return 0;
            }
        }
        ret[i].offset = area;
        ret[i].bytes = size;
        area += (size + 63) / 64 * 64;
    }
    return area + 1;
}

static void look_at(const struct piped_decoded *r)
{
    for (size_t i = 0; i < r->object_count; i++) {
        const struct piped_object *o = &r->objects[i];

        MUST(o->x >= 0 && o->y >= 0 && o->width >= 0 && o->height >= 0 && isfinite(o->score));
        MUST((double)o->x + (double)o->width <= r->width * 1.0001);
        MUST((double)o->y + (double)o->height <= r->height * 1.0001);
        MUST((size_t)o->point_first + o->point_count <= r->point_count);
        MUST(!o->label || strlen(o->label) > 0);
    }
    MUST(!r->text || strlen(r->text) < AREA_MAX);
    if (r->mask) {
        unsigned sum = 0;

        for (size_t i = 0; i < (size_t)r->mask->columns * r->mask->rows; i++) {
            sum += r->mask->classes[i];
        }
        MUST(sum <= 255u * r->mask->columns * r->mask->rows);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const uint8_t *end = memchr(data, 0, bytes), *from;
    struct piped_tensor outputs[OUTPUTS];
    const struct piped_decoded *r;
    struct piped_decoder *d;
    size_t left, area;
    uint32_t count;
    uint8_t *filled;

    if (!end) {
        return 0;
    }
    from = end + 1;
    left = bytes - (size_t)(from - data);
    area = take_outputs(&from, &left, outputs, &count);
    if (!area || piped_decoder_new((const char *)data, outputs, count, &d) < 0) {
        return 0;
    }
    filled = malloc(area);
    MUST(filled);
    for (size_t i = 0; i < area; i++) {
        filled[i] = left ? from[i % left] : 0;
    }
    for (uint32_t width = 0; width < 200; width += 100) {
        uint64_t rows[OUTPUTS] = {width, 1, 2, UINT64_MAX};

        if (piped_decode(d, filled, width ? rows : NULL, width, width / 2, &r) == 0) {
            look_at(r);
        }
    }
    piped_decoder_free(d);
    free(filled);
    return 0;
}
