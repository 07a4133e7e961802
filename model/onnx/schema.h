/* SPDX-License-Identifier: Apache-2.0 */
/**
 * model/onnx/schema.h - the fields of ONNX's messages: copied, checked, dropped or refused
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

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
    unsigned char kind, sub;
    bool once; /* a second one would be merged by protobuf: refused */
    const char *name;
    unsigned char as; /* the field's number in the copy; 0: the same */
};

/* Fields that later versions of ONNX added have no place in the structs that protobuf-c makes from
 * an old schema. They are copied into the text fields for documentation, which nothing else uses.
 * A node with this text carries the default of a function's attribute. */
#define MDL_WRAP_MARK "\x01"

#define MDL_FIELD_NUMBER_MAX 25u

/** mdl_onnx_field() - Return: how to treat field @number of a message; NULL: drop it. */
const struct mdl_onnx_field *mdl_onnx_field(enum mdl_onnx_msg msg, uint64_t number);
