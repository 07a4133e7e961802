/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/by_hand.h - cases small enough to work out by hand, run on the references
 *
 *     struct one_op *o = one_op_new(MDL_OP_BINARY);
 *     o->op.in[0] = F32(o, DIMS(2), 1, 2);  ...  o->op.out[0] = OUT(o, MDL_F32, DIMS(2));
 *     T_TRUE(by_hand_run(o) && F32_IS(o, 3, 5));
 */
#pragma once

#include "tests/harness.h"
#include "tests/kernels/kept_pool.h"
#include "tests/kernels/one_op.h"

#define DIMS(...)                                                                                  \
    (sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)), ((const size_t[]){__VA_ARGS__})
#define F32(o, dims, ...) by_hand_tensor(o, MDL_F32, dims, (const float[]){__VA_ARGS__})
#define I64(o, dims, ...) by_hand_tensor(o, MDL_I64, dims, (const int64_t[]){__VA_ARGS__})
#define I32(o, dims, ...) by_hand_tensor(o, MDL_I32, dims, (const int32_t[]){__VA_ARGS__})
#define U8(o, dims, ...) by_hand_tensor(o, MDL_U8, dims, (const uint8_t[]){__VA_ARGS__})
#define I8(o, dims, ...) by_hand_tensor(o, MDL_I8, dims, (const int8_t[]){__VA_ARGS__})
#define BOOL(o, dims, ...) by_hand_tensor(o, MDL_BOOL, dims, (const uint8_t[]){__VA_ARGS__})
#define OUT(o, dtype, dims) by_hand_out(o, dtype, dims)
/* compares the whole output memory, in storage order, within 1e-6 relative */
#define F32_IS(o, ...)                                                                             \
    by_hand_f32_is(o, sizeof((const float[]){__VA_ARGS__}) / sizeof(float),                        \
                   (const float[]){__VA_ARGS__})
#define INTS_ARE(o, ...)                                                                           \
    by_hand_ints_are(o, 0, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),               \
                     (const int64_t[]){__VA_ARGS__})
#define INDICES_ARE(o, ...)                                                                        \
    by_hand_ints_are(o, 1, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t),               \
                     (const int64_t[]){__VA_ARGS__})

static inline size_t by_hand_tensor(struct one_op *o, enum mdl_dtype dtype, size_t rank,
                                    const size_t *dim, const void *values)
{
    size_t i = one_op_tensor(o, dtype, MDL_HOME_CONST, rank, dim, NULL);

    if (o->buffers[i].bytes) {
        memcpy(o->buffers[i].data, values, o->buffers[i].bytes);
    }
    return i;
}

static inline size_t by_hand_out(struct one_op *o, enum mdl_dtype dtype, size_t rank,
                                 const size_t *dim)
{
    return one_op_tensor(o, dtype, MDL_HOME_ARENA, rank, dim, NULL);
}

/* The reference of a kind, from the table. */
static inline const struct krn_primitive *by_hand_reference(enum mdl_op_kind kind)
{
    const struct krn_primitive *found = NULL;
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        if (v[i].kind == kind && v[i].reference) {
            found = found ? NULL : &v[i];
        }
    }
    return found;
}

/* Runs the reference alone and with a team of three; both must write the same bytes, and only to
 * the outputs. */
static inline bool by_hand_run(struct one_op *o)
{
    const struct krn_primitive *v = by_hand_reference(o->op.kind);
    struct one_op_buffer out[MDL_OP_OUT_MAX] = {0};
    base_autofree uint8_t *first = NULL;
    bool ok;

    if (!v || !v->supports(&o->m, &o->op)) {
        fprintf(stderr, "the reference does not support this\n");
        return false;
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        if (o->op.out[i] != MDL_NONE) {
            out[i] = o->buffers[o->op.out[i]];
        }
    }
    struct krn_call alone = one_op_call(o, out, NULL, 1, NULL, NULL);
    v->run(&alone);
    first = malloc(out[0].bytes + 1);
    memcpy(first, out[0].data, out[0].bytes);
    memset(out[0].data, ONE_OP_PATTERN, out[0].bytes);
    struct krn_call team = one_op_call(o, out, kept_pool(3), 3, NULL, NULL);
    v->run(&team);
    ok = memcmp(first, out[0].data, out[0].bytes) == 0;
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        ok &= !out[i].map || one_op_buffer_intact(&out[i]);
    }
    if (!ok) {
        fprintf(stderr, "a team of three wrote something else, or beside the output\n");
    }
    return ok;
}

static inline bool by_hand_f32_is(const struct one_op *o, size_t n, const float *expected)
{
    const struct one_op_buffer *b = &o->buffers[o->op.out[0]];
    const float *y = (const float *)(const void *)b->data;

    if (b->bytes != n * sizeof(float)) {
        fprintf(stderr, "%zu bytes of output for %zu values\n", b->bytes, n);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        float e = expected[i];

        if (!(y[i] == e || (isnan(y[i]) && isnan(e)) ||
              fabsf(y[i] - e) <= 1e-6f * fmaxf(1, fabsf(e)))) {
            fprintf(stderr, "y[%zu] is %.9g, expected %.9g\n", i, (double)y[i], (double)e);
            return false;
        }
    }
    return true;
}

static inline bool by_hand_ints_are(const struct one_op *o, size_t out, size_t n,
                                    const int64_t *expected)
{
    size_t t = o->op.out[out], size = mdl_dtype_bytes(o->tensors[t].dtype);
    const uint8_t *p = o->buffers[t].data;

    if (o->buffers[t].bytes != n * size) {
        fprintf(stderr, "%zu bytes of output for %zu values\n", o->buffers[t].bytes, n);
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t y = 0;

        memcpy(&y, p + i * size, size);
        if (o->tensors[t].dtype == MDL_I8) {
            y = (int8_t)y;
        } else if (o->tensors[t].dtype == MDL_I32) {
            y = (int32_t)y;
        }
        if (y != expected[i]) {
            fprintf(stderr, "y[%zu] is %lld, expected %lld\n", i, (long long)y,
                    (long long)expected[i]);
            return false;
        }
    }
    return true;
}

static inline void by_hand_free(struct one_op **o)
{
    one_op_free(*o);
}
#define BY_HAND(name, kind) base_cleanup(by_hand_free) struct one_op *name = one_op_new(kind)
