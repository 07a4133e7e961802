/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ir/constant.h"

int64_t mdl_const_int(const struct mdl_ir_value *v, size_t i)
{
    const unsigned char *p = (const unsigned char *)v->data + i * mdl_dtype_bytes(v->dtype);
    int64_t i64;
    int32_t i32;
    float f;

    switch (v->dtype) {
    case MDL_I64:
        memcpy(&i64, p, sizeof(i64));
        return i64;
    case MDL_I32:
        memcpy(&i32, p, sizeof(i32));
        return i32;
    case MDL_I8:
        return (int8_t)*p;
    case MDL_U8:
        return *p;
    case MDL_BOOL:
        return *p != 0;
    default:
        memcpy(&f, p, sizeof(f));
        /* saturate: a conversion out of range is undefined */
        return f != f ? 0 : f >= 0x1p63f ? INT64_MAX : f <= -0x1p63f ? INT64_MIN : (int64_t)f;
    }
}

double mdl_const_real(const struct mdl_ir_value *v, size_t i)
{
    float f;

    if (v->dtype != MDL_F32) {
        return (double)mdl_const_int(v, i);
    }
    memcpy(&f, (const unsigned char *)v->data + i * sizeof(f), sizeof(f));
    return f;
}

double mdl_const_channel(const struct mdl_ir_value *v, size_t c)
{
    return mdl_const_real(v, mdl_ir_elements(v) == 1 ? 0 : c);
}

void mdl_const_store(void *data, enum mdl_dtype dtype, size_t i, double real, int64_t integer)
{
    unsigned char *p = (unsigned char *)data + i * mdl_dtype_bytes(dtype);
    int32_t i32 = (int32_t)integer;
    float f = (float)real;

    switch (dtype) {
    case MDL_I64:
        memcpy(p, &integer, sizeof(integer));
        break;
    case MDL_I32:
        memcpy(p, &i32, sizeof(i32));
        break;
    case MDL_F32:
        memcpy(p, &f, sizeof(f));
        break;
    case MDL_BOOL:
        *p = integer != 0;
        break;
    default:
        *p = (unsigned char)integer;
        break;
    }
}

void *mdl_const_make(struct mdl_ir *ir, size_t v)
{
    void *data = mdl_ir_fold_alloc(ir, mdl_ir_bytes(&ir->values[v]));

    ir->values[v].data = data;
    ir->values[v].in_file = false;
    return data;
}

size_t mdl_const_settled(const struct mdl_ir *ir, size_t v)
{
    const struct mdl_ir_value *x = &ir->values[v];
    bool settled =
        !x->data && x->most != MDL_NONE &&
        memcmp(ir->values[x->least].data, ir->values[x->most].data, mdl_ir_bytes(x)) == 0;

    return settled ? x->least : v;
}

void mdl_const_move(size_t size, size_t rank, const size_t *dim, unsigned char *dst,
                    const ptrdiff_t *to, const unsigned char *src, const ptrdiff_t *from)
{
    size_t index[MDL_RANK_MAX] = {0}, count = 1;
    ptrdiff_t y = 0, x = 0;

    for (size_t k = 0; k < rank; k++) {
        count *= dim[k];
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(dst + y * (ptrdiff_t)size, src + x * (ptrdiff_t)size, size);
        for (size_t k = rank; k-- > 0;) {
            y += to[k];
            x += from[k];
            if (++index[k] < dim[k]) {
                break;
            }
            y -= to[k] * (ptrdiff_t)dim[k];
            x -= from[k] * (ptrdiff_t)dim[k];
            index[k] = 0;
        }
    }
}
