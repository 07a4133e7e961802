/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/model/onnx_bytes.h - writes ONNX files byte by byte, broken ones too
 *
 * A message is a growing buffer; a sub-message is written into its own buffer and then copied into
 * its parent, as the wire format requires. Nothing here shares code with the reader.
 */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pb {
    unsigned char *data;
    size_t bytes, cap;
};

static inline void pb_raw(struct pb *b, const void *data, size_t n)
{
    if (b->bytes + n > b->cap) {
        b->cap = (b->bytes + n) * 2 + 64;
        b->data = realloc(b->data, b->cap);
        if (!b->data) {
            abort();
        }
    }
    if (n) {
        memcpy(b->data + b->bytes, data, n);
    }
    b->bytes += n;
}

static inline void pb_free(struct pb *b)
{
    free(b->data);
    *b = (struct pb){0};
}

static inline void pb_varint(struct pb *b, uint64_t v)
{
    unsigned char c;

    do {
        c = (unsigned char)(v & 0x7f);
        v >>= 7;
        c |= v ? 0x80 : 0;
        pb_raw(b, &c, 1);
    } while (v);
}

static inline void pb_int(struct pb *b, unsigned field, int64_t v)
{
    pb_varint(b, (uint64_t)field << 3);
    pb_varint(b, (uint64_t)v);
}

static inline void pb_float(struct pb *b, unsigned field, float v)
{
    pb_varint(b, (uint64_t)field << 3 | 5);
    pb_raw(b, &v, 4);
}

static inline void pb_bytes(struct pb *b, unsigned field, const void *data, size_t n)
{
    pb_varint(b, (uint64_t)field << 3 | 2);
    pb_varint(b, n);
    pb_raw(b, data, n);
}

static inline void pb_text(struct pb *b, unsigned field, const char *s)
{
    pb_bytes(b, field, s, strlen(s));
}

/* Puts @sub into @b and frees it. */
static inline void pb_sub(struct pb *b, unsigned field, struct pb sub)
{
    pb_bytes(b, field, sub.data, sub.bytes);
    pb_free(&sub);
}

static inline struct pb pb_tensor(const char *name, int type, const int64_t *dims, size_t rank)
{
    struct pb t = {0};

    for (size_t i = 0; i < rank; i++) {
        pb_int(&t, 1, dims[i]);
    }
    pb_int(&t, 2, type);
    if (name) {
        pb_text(&t, 8, name);
    }
    return t;
}

static inline struct pb pb_value(const char *name, int type, const int64_t *dims, size_t rank)
{
    struct pb v = {0}, tensor = {0}, shape = {0}, outer = {0};

    for (size_t i = 0; i < rank; i++) {
        struct pb d = {0};

        if (dims[i] >= 0) {
            pb_int(&d, 1, dims[i]);
        } else if (dims[i] == -1) {
            pb_text(&d, 2, "N");
        } /* -2: nothing at all */
        pb_sub(&shape, 1, d);
    }
    pb_int(&tensor, 1, type);
    pb_sub(&tensor, 2, shape);
    pb_sub(&outer, 1, tensor);
    pb_text(&v, 1, name);
    pb_sub(&v, 2, outer);
    return v;
}

static inline struct pb pb_node(const char *op_type, const char *name, const char *in1,
                                const char *in2, const char *out)
{
    struct pb n = {0};

    if (in1) {
        pb_text(&n, 1, in1);
    }
    if (in2) {
        pb_text(&n, 1, in2);
    }
    if (out) {
        pb_text(&n, 2, out);
    }
    if (name) {
        pb_text(&n, 3, name);
    }
    if (op_type) {
        pb_text(&n, 4, op_type);
    }
    return n;
}

static inline struct pb pb_model(struct pb graph, int64_t ir, int64_t opset)
{
    struct pb m = {0}, o = {0};

    pb_int(&m, 1, ir);
    pb_text(&m, 2, "test");
    pb_sub(&m, 7, graph);
    pb_text(&o, 1, "");
    pb_int(&o, 2, opset);
    pb_sub(&m, 8, o);
    return m;
}

/* x[1][3][4][4] -> Conv (2 filters, 3x3, pads 1) -> Relu -> y; the weights as raw_data. */
static inline struct pb pb_small_model(void)
{
    static const int64_t x[] = {-1, 3, 4, 4}, y[] = {-1, 2, 4, 4}, w[] = {2, 3, 3, 3}, b[] = {2};
    struct pb g = {0}, conv = pb_node("Conv", "conv1", "x", "w", "c"), pads = {0}, t;
    float weights[54], bias[2] = {0.5f, -0.5f};

    for (int i = 0; i < 54; i++) {
        weights[i] = (float)(i % 7) * 0.25f - 0.5f;
    }
    pb_text(&conv, 1, "b");
    pb_text(&pads, 1, "pads");
    for (int i = 0; i < 4; i++) {
        pb_int(&pads, 8, 1);
    }
    pb_int(&pads, 20, 7);
    pb_sub(&conv, 5, pads);
    pb_sub(&g, 1, conv);
    pb_sub(&g, 1, pb_node("Relu", "relu1", "c", NULL, "y"));
    pb_text(&g, 2, "small");
    t = pb_tensor("w", 1, w, 4);
    pb_bytes(&t, 9, weights, sizeof(weights));
    pb_sub(&g, 5, t);
    t = pb_tensor("b", 1, b, 1);
    pb_bytes(&t, 4, bias, sizeof(bias));
    pb_sub(&g, 5, t);
    pb_sub(&g, 11, pb_value("x", 1, x, 4));
    pb_sub(&g, 12, pb_value("y", 1, y, 4));
    return pb_model(g, 7, 13);
}
