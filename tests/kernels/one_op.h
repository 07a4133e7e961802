/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/kernels/one_op.h - a model of one operator, built by hand, to run primitives on
 *
 * Every tensor has its own storage and memory: a mapping that ends at a forbidden page, with a
 * pattern before the data. So reads and writes past the end fault, and writes before it or into
 * gaps between elements are detected. Written buffers exist twice, for the reference and for the
 * primitive.
 */
#pragma once

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "kernels/kernels.h"

#define ONE_OP_TENSORS 8u
#define ONE_OP_PATTERN 0xa5

struct one_op_buffer {
    uint8_t *map, *data; /* data .. data + bytes, then the forbidden page */
    size_t map_bytes, bytes;
};

struct one_op {
    struct mdl_model m;
    struct mdl_storage storages[ONE_OP_TENSORS];
    struct mdl_tensor tensors[ONE_OP_TENSORS];
    struct mdl_op op;
    struct mdl_unit unit;
    struct one_op_buffer buffers[ONE_OP_TENSORS];
    float *scale, *shift; /* owned */
    char name[256];
};

static inline void one_op_die(const char *what)
{
    perror(what);
    abort();
}

/* @align: of data, at most 64; the tail between the end and the forbidden page holds the pattern */
static inline struct one_op_buffer one_op_buffer_new(size_t bytes, size_t align)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t used = base_align_up(base_align_up(bytes, align) + 64, page);
    struct one_op_buffer b = {.map_bytes = used + page, .bytes = bytes};

    b.map = mmap(NULL, b.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b.map == MAP_FAILED || mprotect(b.map + used, page, PROT_NONE) != 0) {
        one_op_die("mmap");
    }
    b.data = b.map + used - base_align_up(bytes, align);
    memset(b.map, ONE_OP_PATTERN, used);
    return b;
}
static inline void one_op_buffer_free(struct one_op_buffer *b)
{
    if (b->map) {
        munmap(b->map, b->map_bytes);
    }
    *b = (struct one_op_buffer){0};
}
static inline bool one_op_holds_pattern(const uint8_t *begin, const uint8_t *end)
{
    while (begin < end && *begin == ONE_OP_PATTERN) {
        begin++;
    }
    return begin == end;
}
/* Return: whether the bytes around the data still hold the pattern */
static inline bool one_op_buffer_intact(const struct one_op_buffer *b)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    return one_op_holds_pattern(b->map, b->data) &&
           one_op_holds_pattern(b->data + b->bytes, b->map + b->map_bytes - page);
}

static inline struct one_op *one_op_new(enum mdl_op_kind kind)
{
    struct one_op *o = calloc(1, sizeof(*o));

    if (!o) {
        one_op_die("calloc");
    }
    o->m.name = o->name;
    o->m.storage_count = o->m.tensor_count = 0;
    o->m.op_count = o->m.unit_count = 1;
    o->m.storages = o->storages;
    o->m.tensors = o->tensors;
    o->m.ops = &o->op;
    o->m.units = &o->unit;
    o->op.kind = kind;
    o->op.name = o->name;
    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        o->op.in[i] = MDL_NONE;
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        o->op.out[i] = MDL_NONE;
    }
    o->op.residual_in = MDL_NONE;
    o->unit.name = o->name;
    return o;
}

static inline void one_op_free(struct one_op *o)
{
    for (size_t i = 0; i < ONE_OP_TENSORS; i++) {
        one_op_buffer_free(&o->buffers[i]);
    }
    free(o->scale);
    free(o->shift);
    free(o);
}

/* bytes from element 0 to the end of the last one (strides not negative) */
static inline size_t one_op_span(const struct mdl_tensor *t)
{
    size_t last = 0;

    for (size_t d = 0; d < t->rank; d++) {
        if (t->dim[d] == 0) {
            return 0;
        }
        last += (t->dim[d] - 1) * (size_t)t->stride[d];
    }
    return (last + 1) * mdl_dtype_bytes(t->dtype);
}

/**
 * one_op_tensor() - adds a tensor with its own memory
 * @stride: in elements, or NULL for row-major dense
 * Return: its index; o->buffers[index] is its memory, filled with the pattern.
 */
static inline size_t one_op_tensor(struct one_op *o, enum mdl_dtype dtype, enum mdl_home home,
                                   size_t rank, const size_t *dim, const ptrdiff_t *stride)
{
    size_t i = o->m.tensor_count++;
    struct mdl_tensor *t = &o->tensors[i];
    ptrdiff_t dense = 1;
    bool is_const = home == MDL_HOME_CONST;

    o->m.storage_count = o->m.tensor_count;
    *t = (struct mdl_tensor){.name = o->name, .dtype = dtype, .storage = i, .rank = rank};
    for (size_t d = rank; d-- > 0;) {
        t->dim[d] = dim[d];
        t->stride[d] = stride ? stride[d] : dense;
        dense *= (ptrdiff_t)dim[d];
    }
    /* constants have any alignment, as in a file; activations are aligned to an element */
    o->buffers[i] = one_op_buffer_new(one_op_span(t), is_const ? 1 : mdl_dtype_bytes(dtype));
    o->storages[i] = (struct mdl_storage){
        .home = home, .bytes = one_op_span(t), .data = is_const ? o->buffers[i].data : NULL};
    return i;
}

/* adds an f32 NHWC image with @pixel elements between pixels (0: dense), and @gap elements between
 * two rows that are no pixels */
static inline size_t one_op_image_apart(struct one_op *o, size_t n, size_t c, size_t h, size_t w,
                                        size_t pixel, size_t gap)
{
    size_t p = pixel ? pixel : c, row = w * p + gap;

    return one_op_tensor(o, MDL_F32, MDL_HOME_ARENA, 4, (size_t[]){n, c, h, w},
                         (ptrdiff_t[]){(ptrdiff_t)(h * row), 1, (ptrdiff_t)row, (ptrdiff_t)p});
}

static inline size_t one_op_image(struct one_op *o, size_t n, size_t c, size_t h, size_t w,
                                  size_t pixel)
{
    return one_op_image_apart(o, n, c, h, w, pixel, 0);
}

/* calls fn with the byte offset of every element, row-major */
static inline void one_op_each(const struct mdl_tensor *t,
                               void (*fn)(void *arg, size_t at, size_t index), void *arg)
{
    size_t at[MDL_RANK_MAX] = {0}, count = 1, size = mdl_dtype_bytes(t->dtype);

    for (size_t d = 0; d < t->rank; d++) {
        count *= t->dim[d];
    }
    for (size_t i = 0; i < count; i++) {
        size_t offset = 0;

        for (size_t d = 0; d < t->rank; d++) {
            offset += at[d] * (size_t)t->stride[d];
        }
        fn(arg, offset * size, i);
        for (size_t d = t->rank; d-- > 0;) {
            if (++at[d] < t->dim[d]) {
                break;
            }
            at[d] = 0;
        }
    }
}

/* the call that runs the op; outputs come from @out instead of the tensors' own memory */
static inline struct krn_call one_op_call(const struct one_op *o, struct one_op_buffer *out,
                                          pthreadpool_t pool, size_t width, void *packed,
                                          uint8_t *scratch)
{
    struct krn_call c = {.model = &o->m,
                         .op = &o->op,
                         .packed = packed,
                         .pool = pool,
                         .width = width,
                         .scratch = scratch};

    for (size_t i = 0; i < MDL_OP_IN_MAX; i++) {
        c.in[i] = o->op.in[i] == MDL_NONE ? NULL : o->buffers[o->op.in[i]].data;
    }
    for (size_t i = 0; i < MDL_OP_OUT_MAX; i++) {
        c.out[i] = o->op.out[i] == MDL_NONE ? NULL : out[i].data;
    }
    c.residual = o->op.residual_in == MDL_NONE ? NULL : o->buffers[o->op.residual_in].data;
    return c;
}
