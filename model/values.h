/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/values.h - storages and tensors: where a model's values are in memory
 *
 * A *storage* is a piece of memory, a *tensor* a strided view of one. Both are plain data, parts of
 * struct mdl_model (model/model.h). Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MDL_RANK_MAX 8u
#define MDL_NONE SIZE_MAX /* an absent index */

enum mdl_dtype { MDL_F32, MDL_I32, MDL_I64, MDL_U8, MDL_I8, MDL_BOOL, MDL_DTYPE_COUNT };

enum mdl_home {
    MDL_HOME_ARENA,  /* storage.offset is a byte offset in the frame's arena */
    MDL_HOME_INPUT,  /* the frame's input buffer storage.index, from the client; row-major, dense */
    MDL_HOME_OUTPUT, /* the frame's output buffer storage.index; row-major, dense */
    MDL_HOME_CONST,  /* storage.data: inside the model file's mapping or owned by the model */
};

struct mdl_storage {
    enum mdl_home home;
    size_t bytes;
    size_t offset;    /* ARENA: multiple of 64. INPUT: where the arena holds a converted image */
    size_t index;     /* INPUT, OUTPUT */
    const void *data; /* CONST; may lie at any address (file bytes): read it with memcpy() */
    size_t first_op;  /* ARENA: the op that writes it first ... */
    size_t last_op;   /* ... and the op that reads it last */
};

struct mdl_tensor {
    char *name; /* owned; ONNX value name, or a generated one */
    enum mdl_dtype dtype;
    size_t storage;                 /* index into model.storages */
    size_t offset;                  /* byte offset of element 0 inside the storage */
    size_t rank;                    /* 0 (scalar) .. MDL_RANK_MAX */
    size_t dim[MDL_RANK_MAX];       /* ONNX order, all known; 0: an empty tensor */
    ptrdiff_t stride[MDL_RANK_MAX]; /* elements, in the order of dim; 0 where broadcast */
};

const char *mdl_dtype_name(enum mdl_dtype t); /* "f32", "i64", ...; "?" for no type */
size_t mdl_dtype_bytes(enum mdl_dtype t);

/** mdl_elements() - Return: product of the dims; 1 for a scalar. Does not overflow for a tensor of
 * a loaded model. */
size_t mdl_elements(const struct mdl_tensor *t);
/** mdl_is_dense() - Return: whether it is row-major without gaps. */
bool mdl_is_dense(const struct mdl_tensor *t);
/** mdl_is_nhwc() - Return: whether it has rank 3 or more, channel stride 1, and spatial dims that
 * are dense on top of one pixel stride. The pixel stride may exceed the channels (a part of a
 * concat). *ret_pixel: that stride in elements, set if true. */
bool mdl_is_nhwc(const struct mdl_tensor *t, size_t *ret_pixel);
