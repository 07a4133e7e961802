/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/tensor_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "onnx.pb-c.h"

uint8_t *read_file(const char *path, size_t *ret_bytes)
{
    FILE *f = fopen(path, "rb");
    uint8_t *data = NULL;
    long bytes;

    if (!f) {
        return NULL;
    }
    if (fseek(f, 0, SEEK_END) == 0 && (bytes = ftell(f)) >= 0 && fseek(f, 0, SEEK_SET) == 0) {
        data = malloc((size_t)bytes + 1);
        if (data && fread(data, 1, (size_t)bytes, f) != (size_t)bytes) {
            free(data);
            data = NULL;
        }
        *ret_bytes = (size_t)bytes;
    }
    fclose(f);
    return data;
}

void tensor_file_deinit(struct tensor_file *t)
{
    free(t->name);
    free(t->data);
    *t = (struct tensor_file){0};
}

enum {
    FLOAT = 1,
    UINT16 = 4,
    INT16 = 5,
    FLOAT16 = 10,
    DOUBLE = 11,
    BFLOAT16 = 16
}; /* of TensorProto.DataType */

static int dtype_of(int onnx, enum mdl_dtype *ret)
{
    switch (onnx) {
    case FLOAT:
    case FLOAT16:
    case DOUBLE:
    case BFLOAT16:
        *ret = MDL_F32;
        return 0;
    case 2:
        *ret = MDL_U8;
        return 0;
    case 3:
        *ret = MDL_I8;
        return 0;
    case UINT16: /* in 32 bits here */
    case INT16:
    case 6:
        *ret = MDL_I32;
        return 0;
    case 7:
        *ret = MDL_I64;
        return 0;
    case 9:
        *ret = MDL_BOOL;
        return 0;
    default:
        return -1;
    }
}

static float of_bits(uint16_t bits, int onnx)
{
    int exponent = bits >> 10 & 31, fraction = bits & 1023;
    uint32_t wide = (uint32_t)bits << 16;
    float f;

    if (onnx == BFLOAT16) {
        memcpy(&f, &wide, sizeof(f));
        return f;
    }
    f = exponent == 31  ? (fraction ? NAN : INFINITY)
        : exponent == 0 ? ldexpf((float)fraction, -24)
                        : ldexpf((float)(fraction + 1024), exponent - 25);
    return bits >> 15 ? -f : f;
}

/* Floats of other widths as f32. */
static int fill_other(struct tensor_file *t, const Onnx__TensorProto *p)
{
    bool doubles = p->data_type == DOUBLE;
    size_t have = p->has_raw_data ? p->raw_data.len / (doubles ? 8 : 2)
                  : doubles       ? p->n_double_data
                                  : p->n_int32_data;

    t->rounding = doubles ? 0x1p-24 : p->data_type == FLOAT16 ? 0x1p-11 : 0x1p-8;
    t->data = calloc(t->elements + 1, sizeof(float));
    if (!t->data || have != t->elements) {
        return -1;
    }
    for (size_t i = 0; i < have; i++) {
        double wide = !doubles || p->has_raw_data ? 0 : p->double_data[i];
        uint16_t bits = doubles || p->has_raw_data ? 0 : (uint16_t)p->int32_data[i];

        if (p->has_raw_data && doubles) {
            memcpy(&wide, p->raw_data.data + i * sizeof(wide), sizeof(wide));
        } else if (p->has_raw_data) {
            memcpy(&bits, p->raw_data.data + i * sizeof(bits), sizeof(bits));
        }
        ((float *)t->data)[i] = doubles ? (float)wide : of_bits(bits, p->data_type);
    }
    return 0;
}

/* Integers of 16 bits, raw, as i32. */
static int fill_short(struct tensor_file *t, const Onnx__TensorProto *p)
{
    if (p->raw_data.len != t->elements * 2) {
        return -1;
    }
    for (size_t i = 0; i < t->elements; i++) {
        uint16_t bits;

        memcpy(&bits, p->raw_data.data + 2 * i, sizeof(bits));
        ((int32_t *)t->data)[i] = p->data_type == UINT16 ? (int32_t)bits : (int32_t)(int16_t)bits;
    }
    return 0;
}

/* The data of a TensorProto into t->data, from raw_data or from the typed field. */
static int fill(struct tensor_file *t, const Onnx__TensorProto *p)
{
    size_t bytes = t->elements * mdl_dtype_bytes(t->dtype);

    if (t->dtype == MDL_F32 && p->data_type != FLOAT) {
        return fill_other(t, p);
    }
    t->data = calloc(1, bytes + 1);
    if (!t->data) {
        return -1;
    }
    if (p->has_raw_data && (p->data_type == UINT16 || p->data_type == INT16)) {
        return fill_short(t, p);
    }
    if (p->has_raw_data) {
        if (p->raw_data.len != bytes) {
            return -1;
        }
        if (bytes) {
            memcpy(t->data, p->raw_data.data, bytes);
        }
        return 0;
    }
    size_t have = t->dtype == MDL_F32   ? p->n_float_data
                  : t->dtype == MDL_I64 ? p->n_int64_data
                                        : p->n_int32_data;
    if (have != t->elements) {
        return -1;
    }
    for (size_t i = 0; i < have; i++) {
        switch (t->dtype) {
        case MDL_F32:
            ((float *)t->data)[i] = p->float_data[i];
            break;
        case MDL_I64:
            ((int64_t *)t->data)[i] = p->int64_data[i];
            break;
        case MDL_I32:
            ((int32_t *)t->data)[i] = p->int32_data[i];
            break;
        default:
            ((uint8_t *)t->data)[i] = (uint8_t)p->int32_data[i];
            break;
        }
    }
    return 0;
}

static int from_proto(const Onnx__TensorProto *p, struct tensor_file *t, const char **ret_error)
{
    if (p->n_dims > MDL_RANK_MAX) {
        *ret_error = "rank too high";
        return -1;
    }
    if (dtype_of(p->data_type, &t->dtype) < 0) {
        *ret_error = "data type not supported";
        return -1;
    }
    t->rank = p->n_dims;
    t->elements = 1;
    for (size_t d = 0; d < t->rank; d++) {
        t->dim[d] = (size_t)p->dims[d];
        if (p->dims[d] < 0 || !base_mul(t->elements, t->dim[d], &t->elements)) {
            *ret_error = "bad dims";
            return -1;
        }
    }
    t->name = strdup(p->name ? p->name : "");
    if (!t->name || fill(t, p) < 0) {
        *ret_error = "bad tensor data";
        return -1;
    }
    return 0;
}

int tensor_file_read(const char *path, struct tensor_file *ret, const char **ret_error)
{
    struct tensor_file t = {0};
    size_t bytes = 0, n = strlen(path);
    uint8_t *file = read_file(path, &bytes);
    int r = -1;

    *ret_error = "cannot read the file";
    if (!file) {
        return -1;
    }
    if (n > 4 && strcmp(path + n - 4, ".f32") == 0) {
        t = (struct tensor_file){.name = strdup(""),
                                 .dtype = MDL_F32,
                                 .rank = SIZE_MAX,
                                 .elements = bytes / sizeof(float),
                                 .data = base_take(file)};
        r = t.name ? 0 : -1;
    } else {
        Onnx__TensorProto *p = onnx__tensor_proto__unpack(NULL, bytes, file);

        *ret_error = "not a TensorProto";
        if (p) {
            r = from_proto(p, &t, ret_error);
            onnx__tensor_proto__free_unpacked(p, NULL);
        }
    }
    free(file);
    if (r < 0) {
        tensor_file_deinit(&t);
        return -1;
    }
    *ret = t;
    return 0;
}

int picture_read(const char *path, struct picture *ret)
{
    size_t bytes = 0;
    base_autofree uint8_t *file = read_file(path, &bytes);
    unsigned width, height, max;
    int header = 0;

    if (!file) {
        return -1;
    }
    file[bytes] = 0;
    if (sscanf((char *)file, "P6 %u %u %u%n", &width, &height, &max, &header) != 3 || max != 255 ||
        width == 0 || height == 0 || width > 65535 || height > 65535 ||
        bytes - (size_t)header - 1 != (size_t)width * height * 3) {
        return -1;
    }
    ret->rgb = malloc((size_t)width * height * 3);
    if (!ret->rgb) {
        return -1;
    }
    memcpy(ret->rgb, file + header + 1, (size_t)width * height * 3);
    ret->width = width;
    ret->height = height;
    return 0;
}
