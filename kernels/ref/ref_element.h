/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/ref/ref_element.h - elements of a tensor of any type, by index
 *
 * Indices count elements from element 0 and may be negative. Buffers from a client or a file may
 * have any alignment, so everything goes through memcpy(). Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "model/values.h"

static inline bool ref_is_int(enum mdl_dtype t)
{
    return t != MDL_F32;
}

static inline float ref_f32(const void *p, ptrdiff_t i)
{
    float v;
    memcpy(&v, (const char *)p + i * (ptrdiff_t)sizeof(v), sizeof(v));
    return v;
}
static inline void ref_set_f32(void *p, ptrdiff_t i, double v)
{
    float f = (float)v;
    memcpy((char *)p + i * (ptrdiff_t)sizeof(f), &f, sizeof(f));
}

/** ref_i64() - an integer or boolean element, widened. ref_f64() - any element. */
static inline int64_t ref_i64(const void *p, enum mdl_dtype t, ptrdiff_t i)
{
    const uint8_t *b = p;
    int32_t v32;
    int64_t v64;

    switch (t) {
    case MDL_I32:
        memcpy(&v32, b + i * 4, sizeof(v32));
        return v32;
    case MDL_I64:
        memcpy(&v64, b + i * 8, sizeof(v64));
        return v64;
    case MDL_I8:
        return (int8_t)b[i];
    case MDL_U8:
        return b[i];
    default:
        return b[i] != 0;
    }
}
static inline double ref_f64(const void *p, enum mdl_dtype t, ptrdiff_t i)
{
    return t == MDL_F32 ? (double)ref_f32(p, i) : (double)ref_i64(p, t, i);
}

/** ref_set_i64() - stores the low bits (BOOL: v != 0; F32: rounded). */
static inline void ref_set_i64(void *p, enum mdl_dtype t, ptrdiff_t i, int64_t v)
{
    uint8_t *b = p;
    uint32_t v32 = (uint32_t)(uint64_t)v;
    float f = (float)v;

    switch (t) {
    case MDL_F32:
        memcpy(b + i * 4, &f, sizeof(f));
        break;
    case MDL_I32:
        memcpy(b + i * 4, &v32, sizeof(v32));
        break;
    case MDL_I64:
        memcpy(b + i * 8, &v, sizeof(v));
        break;
    case MDL_BOOL:
        b[i] = v != 0;
        break;
    default:
        b[i] = (uint8_t)(uint64_t)v;
        break;
    }
}

/** ref_lowest(), ref_highest() - Return: what an integer or boolean type holds. */
int64_t ref_lowest(enum mdl_dtype t);
int64_t ref_highest(enum mdl_dtype t);
/** ref_set_f64() - stores a real value. For integers it is truncated toward zero and saturated, and
 * NaN becomes 0 (ONNX leaves out-of-range values undefined). */
void ref_set_f64(void *p, enum mdl_dtype t, ptrdiff_t i, double v);
