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
 * Threads: any; touches only the pages that hold structure. @w: also for mdl_walk_deinit() after a
 * failure. Return: 0, -EBADMSG (syntax),
 * -EOPNOTSUPP (a part of ONNX that is not supported), -E2BIG (a cap), -ENOMEM; @ret_error names the
 * place ("graph.node[12].attribute[0]") and the reason.
 */
int mdl_walk_init(struct mdl_walk *w, const void *map, size_t bytes, char ret_error[MDL_ERROR_MAX]);
void mdl_walk_deinit(struct mdl_walk *w);

/* ---- schema.c: the fields of ONNX's messages: copied, checked, dropped or refused ---- */

enum mdl_onnx_msg {
    MDL_MSG_NONE,
    MDL_MSG_MODEL,
    MDL_MSG_OPSET,
    MDL_MSG_GRAPH,
    MDL_MSG_NODE,
    MDL_MSG_ATTR,
    MDL_MSG_TENSOR,
    MDL_MSG_VALUE,
    MDL_MSG_TYPE,
    MDL_MSG_TYPE_TENSOR,
    MDL_MSG_SHAPE,
    MDL_MSG_DIM,
    MDL_MSG_TYPE_OF,  /* Sequence, Optional: a TypeProto in field 1 */
    MDL_MSG_TYPE_MAP, /* a TypeProto in field 2 */
    MDL_MSG_ENTRY,    /* key and value of external_data */
    MDL_MSG_NOTE,     /* key and value of metadata_props */
    MDL_MSG_FUNCTION, /* nodes in field 7 */
    MDL_MSG_SPARSE,   /* tensors in fields 1 and 2 */
    MDL_MSG_COUNT
};

enum mdl_onnx_kind {
    MDL_FIELD_DROP,     /* not in the table: not copied */
    MDL_FIELD_VARINT,   /* copied */
    MDL_FIELD_FIXED32,  /* copied */
    MDL_FIELD_NAME,     /* a string, checked and copied */
    MDL_FIELD_BYTES,    /* text in a bytes field, without NUL; copied */
    MDL_FIELD_NOTE,     /* a string that matters little: copied if it is good, else dropped */
    MDL_FIELD_VARINTS,  /* repeated varint, packed or not; copied */
    MDL_FIELD_FIXED32S, /* repeated 32 bit, packed or not; copied */
    MDL_FIELD_FLOATS,   /* float_data: to the table if it is a single packed field, else copied */
    MDL_FIELD_FIXED64S, /* repeated 64 bit; copied */
    MDL_FIELD_RAW,      /* raw_data: to the table */
    MDL_FIELD_MSG,      /* a message, walked and copied */
    MDL_FIELD_CHECK,    /* a message, checked but not copied */
    MDL_FIELD_WRAP,     /* an attribute, copied as the only one of a marked node in field `as` */
    MDL_FIELD_REFUSE,   /* not supported: its presence is an error */
};

struct mdl_onnx_field {
    unsigned char kind;
    const char *name;
    unsigned char sub; /* the message that it is */
    bool once;         /* a second one would be merged by protobuf: refused */
    unsigned char as;  /* the field's number in the copy; 0: the same */
};

/* Fields that later versions of ONNX added have no place in the structs that protobuf-c makes from
 * an old schema. They are copied into the text fields for documentation, which nothing else uses.
 * A node with this text carries the default of a function's attribute. */
#define MDL_WRAP_MARK "\x01"

#define MDL_FIELD_NUMBER_MAX 25u

/** mdl_onnx_field() - Return: how to treat field @number of a message; NULL: drop it. */
const struct mdl_onnx_field *mdl_onnx_field(enum mdl_onnx_msg msg, uint64_t number);
