/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a TensorProto to a struct mdl_gtensor. */
#include "base/f16.h"
#include "model/common/weight_files.h"
#include "model/onnx/reader.h"
#include "onnx.pb-c.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "raw_data is little-endian");

static float to_f32(enum mdl_from from, const unsigned char *p)
{
    uint16_t h;
    uint32_t bits;
    double d;
    float f;

    if (from == MDL_FROM_F64) {
        memcpy(&d, p, sizeof(d));
        return (float)d;
    }
    memcpy(&h, p, sizeof(h));
    if (from == MDL_FROM_F16) {
        return f16_to_f32(h);
    }
    bits = (uint32_t)h << 16;
    memcpy(&f, &bits, sizeof(f));
    return f;
}

static _Noreturn void data_fail(struct mdl_onnx_reader *rd, int code, const char *attr,
                                const char *why)
{
    mdl_onnx_refuse(rd, code, "%s%s%.60s%s: %s", rd->where, attr ? ": attribute '" : "",
                    attr ? attr : "", attr ? "'" : "", why);
}

/* Return: how many elements. */
static size_t read_dims(struct mdl_onnx_reader *rd, const Onnx__TensorProto *t, const char *attr,
                        struct mdl_gtensor *out)
{
    size_t n = 1;
    char why[96];

    if (t->n_dims > MDL_RANK_MAX) {
        snprintf(why, sizeof(why), "%zu dimensions, more than %u", t->n_dims, MDL_RANK_MAX);
        data_fail(rd, -EOPNOTSUPP, attr, why);
    }
    out->rank = t->n_dims;
    for (size_t i = 0; i < t->n_dims; i++) {
        if (t->dims[i] < 0) {
            snprintf(why, sizeof(why), "dimension %zu is negative (%lld)", i,
                     (long long)t->dims[i]);
            data_fail(rd, -EBADMSG, attr, why);
        }
        out->dim[i] = (size_t)t->dims[i];
        if (!base_mul(n, out->dim[i], &n)) {
            data_fail(rd, -E2BIG, attr, "the number of elements overflows");
        }
    }
    /* A dim of 0 hides the size of the others, but strides are their products. */
    for (size_t i = 0, product = 1; n == 0 && i < out->rank; i++) {
        if (out->dim[i] && !base_mul(product, out->dim[i], &product)) {
            data_fail(rd, -E2BIG, attr, "the number of elements overflows");
        }
    }
    return n;
}

/* Typed data with @n values; @size: bytes of one value in protobuf-c's array. */
struct typed {
    const void *values;
    size_t n, size;
};

static struct typed typed_data(const Onnx__TensorProto *t)
{
    switch (t->data_type) {
    case ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT:
        return (struct typed){t->float_data, t->n_float_data, 4};
    case ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE:
        return (struct typed){t->double_data, t->n_double_data, 8};
    case ONNX__TENSOR_PROTO__DATA_TYPE__INT64:
        return (struct typed){t->int64_data, t->n_int64_data, 8};
    default: /* everything of 32 bits and less is in int32_data */
        return (struct typed){t->int32_data, t->n_int32_data, 4};
    }
}

/* int32_data to elements of 1 or 2 bytes. Return: packed bytes in the pool; NULL: a value does not
 * fit. */
static void *narrow(struct mdl_onnx_reader *rd, const Onnx__TensorProto *t, size_t n)
{
    size_t size = mdl_onnx_type(t->data_type)->bytes;
    bool is_signed = t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT8 ||
                     t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__INT16;
    int32_t low = !is_signed ? 0 : size == 2 ? INT16_MIN : INT8_MIN;
    int32_t high = is_signed                                             ? -1 - low
                   : size == 2                                           ? UINT16_MAX
                   : t->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__BOOL ? 1
                                                                         : UINT8_MAX;
    unsigned char *out = mdl_onnx_alloc(rd, n, size);

    for (size_t i = 0; i < n; i++) {
        int32_t v = t->int32_data[i];

        if (v < low || v > high) {
            return NULL;
        }
        memcpy(out + i * size, &v, size); /* little-endian: the low bytes */
    }
    return out;
}

/* ---- data in another file ---- */

struct place {
    const char *location, *offset, *length; /* NULL: not given */
};

/* Other keys (a checksum, the writer's own) say nothing about where the data is. */
static const char *read_entries(const Onnx__TensorProto *t, struct place *p)
{
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = mdl_onnx_text(t->external_data[i]->key);
        const char **to = strcmp(key, "location") == 0 ? &p->location
                          : strcmp(key, "offset") == 0 ? &p->offset
                          : strcmp(key, "length") == 0 ? &p->length
                                                       : NULL;

        if (to && *to) {
            return "external_data gives a key twice";
        }
        if (to) {
            *to = mdl_onnx_text(t->external_data[i]->value);
        }
    }
    return p->location && p->location[0] ? NULL : "external_data has no location";
}

/* A decimal number without sign. */
static bool read_size(const char *text, size_t *ret)
{
    size_t v = 0;

    for (const char *s = text; *s; s++) {
        if (*s < '0' || *s > '9' || !base_mul(v, 10, &v) || !base_add(v, (size_t)(*s - '0'), &v)) {
            return false;
        }
    }
    *ret = v;
    return text[0] != '\0';
}

/* Finds the data of @t, whose data_location is EXTERNAL. @want: bytes that its shape needs. Return:
 * 0 with *ret pointing to @want bytes; -errno, with @why. */
static int external_data(struct mdl_onnx_reader *rd, const Onnx__TensorProto *t, size_t want,
                         char *why, size_t why_bytes, const void **ret)
{
    struct mdl_map_range map = {0};
    struct place p = {0};
    size_t offset = 0, length = want, end, mapped;
    const char *wrong = read_entries(t, &p);
    char error[MDL_ERROR_MAX] = "";
    int r;

    if (!wrong && ((p.offset && !read_size(p.offset, &offset)) ||
                   (p.length && !read_size(p.length, &length)))) {
        wrong = "external_data's offset or length is not a number";
    }
    if (!wrong && length != want) {
        snprintf(why, why_bytes, "external_data has %zu bytes where its shape needs %zu", length,
                 want);
        return -EBADMSG;
    }
    if (wrong) {
        snprintf(why, why_bytes, "%s", wrong);
        return -EBADMSG;
    }
    if (!rd->data) {
        snprintf(why, why_bytes, "its data is in another file, which cannot be read here");
        return -EOPNOTSUPP;
    }
    mapped = rd->data->bytes;
    r = mdl_data_file_map(rd->data, p.location, error, &map);
    if (r < 0) {
        snprintf(why, why_bytes, "external data: %.900s", error);
        return r;
    }
    /* as for the model's file: 16 bit weights double when they are converted */
    mdl_pool_allow(rd->graph->pool, 2 * (rd->data->bytes - mapped));
    rd->graph->data_bytes = rd->data->bytes;
    if (!base_add(offset, length, &end) || end > map.bytes) {
        snprintf(why, why_bytes, "external data: %.100s has %zu bytes; %zu from byte %zu are meant",
                 p.location, map.bytes, length, offset);
        return -EBADMSG;
    }
    *ret = want > 0 ? (const char *)map.data + offset : "";
    return 0;
}

/* Finds the bytes in another file; @typed: values that are in the model's file none the less. */
static void find_outside(struct mdl_onnx_reader *rd, const Onnx__TensorProto *t, const char *attr,
                         size_t typed, struct mdl_gtensor *out)
{
    char why[MDL_ERROR_MAX];
    int r;

    if (t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL) {
        data_fail(rd, -EOPNOTSUPP, attr, "its data_location is not known");
    }
    if (t->has_raw_data || typed > 0) {
        data_fail(rd, -EBADMSG, attr, "data is given in several or in wrong fields");
    }
    r = external_data(rd, t, out->bytes, why, sizeof(why), &out->data);
    if (r < 0) {
        data_fail(rd, r, attr, why);
    }
    out->in_file = out->bytes > 0;
}

/* ---- data in the model's file ---- */

/* Finds the tensor's bytes, still in the file's element type. */
static void find_data(struct mdl_onnx_reader *rd, const Onnx__TensorProto *t, const char *attr,
                      size_t elements, struct mdl_gtensor *out)
{
    size_t size = mdl_onnx_type(t->data_type)->bytes, want, have;
    struct typed typed = typed_data(t);
    char why[128];

    if (mdl_onnx_type(t->data_type)->from == MDL_FROM_4BIT) {
        want = elements / 2 + elements % 2;
    } else if (!base_mul(elements, size, &want)) {
        data_fail(rd, -E2BIG, attr, "the number of bytes overflows");
    }
    out->bytes = want;
    if (t->has_data_location && t->data_location != ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT) {
        find_outside(rd, t, attr, typed.n, out);
        return;
    }
    if (t->has_raw_data) {
        const struct mdl_walk_raw *raw;
        uint32_t index;

        /* the walk wrote this field itself: an index of its table */
        memcpy(&index, t->raw_data.data, sizeof(index));
        raw = &rd->walk->raws[index];
        if (typed.n > 0 || (raw->floats && t->data_type != ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT)) {
            data_fail(rd, -EBADMSG, attr, "data is given in several or in wrong fields");
        }
        have = raw->bytes;
        out->data = (const char *)rd->graph->file_map + raw->offset;
        out->in_file = true;
    } else {
        if (!base_mul(typed.n, size, &have)) {
            have = SIZE_MAX;
        }
        out->data = typed.n ? typed.values : "";
    }
    if (have != want) {
        snprintf(why, sizeof(why), "%zu bytes of data where its shape of %s needs %zu", have,
                 mdl_onnx_type(t->data_type)->name, want);
        data_fail(rd, -EBADMSG, attr, why);
    }
    if (!out->in_file && typed.size != size && typed.n > 0) {
        out->data = narrow(rd, t, typed.n);
        if (!out->data) {
            snprintf(why, sizeof(why), "a value does not fit into %s",
                     mdl_onnx_type(t->data_type)->name);
            data_fail(rd, -EBADMSG, attr, why);
        }
    }
}

/* Element @i of type @from, the lower half of a byte before the upper. */
static void convert_one(const unsigned char *in, size_t i, enum mdl_from from, enum mdl_dtype to,
                        void *out)
{
    unsigned half;
    uint16_t u;
    int32_t v;

    switch (from) {
    case MDL_FROM_4BIT:
        half = in[i / 2] >> i % 2 * 4 & 15u;
        ((unsigned char *)out)[i] = (unsigned char)(to == MDL_I8 && half > 7 ? half - 16 : half);
        break;
    case MDL_FROM_U16:
    case MDL_FROM_I16:
        memcpy(&u, in + i * sizeof(u), sizeof(u));
        v = from == MDL_FROM_I16 ? (int16_t)u : u;
        ((int32_t *)out)[i] = v;
        break;
    default:
        ((float *)out)[i] = to_f32(from, in + i * (from == MDL_FROM_F64 ? 8 : 2));
        break;
    }
}

static void convert(struct mdl_onnx_reader *rd, const struct mdl_onnx_type *type, size_t elements,
                    struct mdl_gtensor *out)
{
    const unsigned char *in = out->data;
    size_t size = mdl_dtype_bytes(out->dtype);
    void *wide = mdl_onnx_alloc(rd, elements, size);

    for (size_t i = 0; i < elements; i++) {
        convert_one(in, i, type->from, out->dtype, wide);
    }
    out->narrow = type->narrow;
    out->data = wide;
    out->bytes = elements * size;
    out->in_file = false;
}

struct mdl_gtensor mdl_onnx_tensor(struct mdl_onnx_reader *rd, const Onnx__TensorProto *t,
                                   const char *attr)
{
    struct mdl_gtensor out = {.name = mdl_onnx_text(t->name)};
    const struct mdl_onnx_type *type = mdl_onnx_type(t->data_type);
    size_t elements;
    char why[96];

    if (type->from == MDL_FROM_NONE) {
        snprintf(why, sizeof(why), "element type %s (%d) is not supported", type->name,
                 t->data_type);
        data_fail(rd, -EOPNOTSUPP, attr, why);
    }
    out.dtype = type->dtype;
    elements = read_dims(rd, t, attr, &out);
    find_data(rd, t, attr, elements, &out);
    if (type->from != MDL_FROM_SAME) {
        convert(rd, type, elements, &out);
    }
    return out;
}
