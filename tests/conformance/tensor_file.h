/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tests/conformance/tensor_file.h - reads the tensors and pictures of the conformance data
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

struct tensor_file {
    char *name;           /* owned; "" if the file has none */
    enum mdl_dtype dtype; /* float16, bfloat16 and double are read as f32 */
    double rounding;      /* of the file's type, relative; 0: exact in dtype */
    size_t rank;          /* SIZE_MAX: the file does not say (raw float32) */
    size_t dim[MDL_RANK_MAX];
    size_t elements;
    void *data; /* owned, row-major */
};

/** tensor_file_read() - reads a TensorProto (*.pb) or raw little-endian float32 (*.f32).
 * @ret_error: a static sentence. Return: 0, or -1. */
int tensor_file_read(const char *path, struct tensor_file *ret, const char **ret_error);
void tensor_file_deinit(struct tensor_file *t);

struct picture {
    uint8_t *rgb; /* owned, width * height * 3 */
    uint32_t width, height;
};

/** picture_read() - reads an 8-bit binary PPM. Return: 0, or -1. */
int picture_read(const char *path, struct picture *ret);

/** read_file() - Return: the whole file, owned by the caller, or NULL. */
uint8_t *read_file(const char *path, size_t *ret_bytes);
