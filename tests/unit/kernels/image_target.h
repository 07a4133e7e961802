/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/unit/kernels/image_target.h - images, and guarded tensors that krn_preprocess() fills
 *
 *     TARGET(o, MDL_F32, true, 3, 4, 4, 1);
 *     SOURCE(s, KRN_PIX_RGB24, 8, 8, 0);
 *     target_go(&o, &s.img);
 *     T_TRUE(target_intact(&o));
 */
#pragma once

#include "base/base.h"
#include "kernels/image/image.h"
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/kernels/kept_pool.h"

#define GUARD 0xcb
#define GUARD_BYTES ((size_t)128)

/* A destination with guards around it, and exactly the scratch that is asked for. */
struct target {
    struct mdl_tensor t;
    struct mdl_preproc pre;
    uint8_t *raw, *data, *scratch;
    size_t bytes, scratch_bytes, width;
};

static inline struct target target_new(enum mdl_dtype dtype, bool nhwc, size_t c, size_t h,
                                       size_t w, size_t width)
{
    struct target o = {.t = {.dtype = dtype, .rank = 4}, .width = width};
    struct mdl_model m = {.input_count = 1};
    struct mdl_io io = {0};

    memcpy(o.t.dim, nhwc ? (size_t[]){1, h, w, c} : (size_t[]){1, c, h, w}, 4 * sizeof(size_t));
    for (size_t d = 4, stride = 1; d-- > 0;) {
        o.t.stride[d] = (ptrdiff_t)stride;
        stride *= o.t.dim[d];
    }
    o.pre = (struct mdl_preproc){.known = true, .nhwc = nhwc};
    for (size_t i = 0; i < 4; i++) {
        o.pre.std[i] = 1;
    }
    o.bytes = c * h * w * mdl_dtype_bytes(dtype);
    o.raw = malloc(o.bytes + 2 * GUARD_BYTES);
    memset(o.raw, GUARD, o.bytes + 2 * GUARD_BYTES);
    o.data = o.raw + GUARD_BYTES;
    m.preproc = o.pre;
    m.inputs = &io;
    m.tensors = &o.t;
    o.scratch_bytes = krn_preprocess_scratch_bytes(&m, width);
    o.scratch = aligned_alloc(64, base_align_up(o.scratch_bytes + GUARD_BYTES, 64));
    memset(o.scratch, GUARD, o.scratch_bytes + GUARD_BYTES);
    return o;
}

static inline void target_free(struct target *o)
{
    free(o->raw);
    free(o->scratch);
}
#define TARGET(name, ...) base_cleanup(target_free) struct target name = target_new(__VA_ARGS__)

/* krn_preprocess() into @o, by a team if it is wider than 1 */
static inline void target_go(struct target *o, const struct krn_image *img)
{
    struct krn_exec exec = {.pool = kept_pool(o->width), .width = o->width, .scratch = o->scratch};

    krn_preprocess(img, &o->pre, &o->t, o->data, &exec);
}

/* Return: whether the memory around the tensor and behind the scratch is as it was */
static inline bool target_intact(const struct target *o)
{
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        if (o->raw[i] != GUARD || o->data[o->bytes + i] != GUARD ||
            o->scratch[o->scratch_bytes + i] != GUARD) {
            return false;
        }
    }
    return true;
}

/* Return: element @i of an f32 tensor, in the order of memory */
static inline float target_f32(const struct target *o, size_t i)
{
    float v;

    memcpy(&v, o->data + i * sizeof(v), sizeof(v));
    return v;
}

/* An image whose memory ends exactly where it says, so that the sanitizers see a byte too many. */
struct source {
    struct krn_image img;
    uint8_t *data;
};

/* random pixels; @pad: bytes behind each row */
static inline struct source source_new(enum krn_pixfmt format, uint32_t w, uint32_t h, uint32_t pad)
{
    static const uint8_t row[] = {3, 3, 1, 1, 2};
    struct source s = {.img = {.format = format, .width = w, .height = h}};

    s.img.stride = w * row[format] + pad;
    s.data = malloc(krn_image_bytes(&s.img) + 1);
    for (size_t i = 0; i < krn_image_bytes(&s.img); i++) {
        s.data[i] = (uint8_t)t_random();
    }
    s.img.data = s.data;
    return s;
}

static inline void source_free(struct source *s)
{
    free(s->data);
}
#define SOURCE(name, ...) base_cleanup(source_free) struct source name = source_new(__VA_ARGS__)
