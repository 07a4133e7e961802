/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/walk.h - the first walk over an ONNX file's wire format: checks it and strips its
 * weights
 *
 * protobuf-c copies every bytes field and recurses without a limit, so it must see neither weights
 * nor deep nesting. The walk knows ONNX's schema. It reads the mapped file once and writes a small
 * copy with only the fields that the reader needs. A tensor's weights (raw_data, and packed
 * float_data, which has the same bytes) become a 4-byte index into a table of file ranges.
 * Invariant: the walk wrote all that protobuf-c gets, message by message: depth at most
 * MDL_WALK_DEPTH_MAX, no unknown fields, no groups, every string valid UTF-8 without control
 * characters, every count and the copy's size below a cap.
 */
#pragma once

#include "model/model.h"

#define MDL_WALK_DEPTH_MAX 64u
#define MDL_WALK_COPY_MAX ((size_t)32 << 20) /* bytes of the stripped copy */
#define MDL_WALK_FIELDS_MAX 100000000u       /* fields read, copied or not; limits the time */
#define MDL_WALK_MESSAGES_MAX 400000u        /* nodes, attributes, tensors, values ... kept */
#define MDL_WALK_STRINGS_MAX 1000000u        /* names kept */
#define MDL_WALK_NAME_MAX 4096u              /* bytes of one name */
#define MDL_WALK_NOTE_MAX (1u << 20)         /* bytes of a text of metadata_props, else dropped */

struct mdl_walk_raw {
    size_t offset, bytes; /* in the file */
    bool floats;          /* from float_data: only valid for element type f32 */
};

struct mdl_walk {
    unsigned char *copy; /* owned: an ONNX ModelProto without weights */
    size_t copy_bytes;
    struct mdl_walk_raw
        *raws; /* owned: a tensor's raw_data in the copy is a native uint32_t index */
    size_t raw_count;
};

#define MDL_WALK_NULL ((struct mdl_walk){0})

/**
 * mdl_walk_init() - walks @bytes at @map
 * Threads: any; touches only the pages that hold structure. Return: 0, -EBADMSG (syntax),
 * -EOPNOTSUPP (a part of ONNX that is not supported), -E2BIG (a cap), -ENOMEM; @ret_error names the
 * place ("graph.node[12].attribute[0]") and the reason.
 */
int mdl_walk_init(struct mdl_walk *w, const void *map, size_t bytes, char ret_error[MDL_ERROR_MAX]);
void mdl_walk_deinit(struct mdl_walk *w);
