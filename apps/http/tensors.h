/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/tensors.h - infer requests with tensors or a picture, and answers. Threads: any. */
#pragma once

#include "apps/http/json.h"
#include "apps/http/pool.h"
#include "apps/picture/picture.h"

#define WEB_TENSORS_MAX 64u

struct web_input {
    const char *name, *datatype; /* borrowed from the JSON */
    struct web_span shape;
    bool binary;
    const uint8_t *data; /* binary: borrowed from the body */
    size_t bytes;
    struct web_span array; /* else */
};

struct web_output {
    const char *name; /* borrowed */
    bool binary;
};

struct web_call {
    struct web_split json; /* owned */
    bool raw;              /* the body is the only input's bytes */
    struct web_input inputs[WEB_TENSORS_MAX];
    size_t input_count;
    struct web_output outputs[WEB_TENSORS_MAX];
    size_t output_count; /* 0: all */
    bool all_binary;     /* but for those that say otherwise */
    bool no_outputs;     /* the answer has no list of outputs */
    bool only_named;     /* without a name the list is empty */
    bool decode;         /* the answer has what they mean */
    const char *id;      /* NULL: none */
    uint64_t timeout_ns; /* 0: none */
    bool half;           /* f32 inputs come as FP16 */
};

/** web_datatype() - "FP32", ... of an enum piped_dtype. */
const char *web_datatype(uint32_t dtype);
/** web_datatype_of() - the same of the control socket's name, such as "f32". */
const char *web_datatype_of(const char *name);

/** web_call_read() - reads the body. @c: all 0, but for what the address says; the body may say
 * otherwise. Return: true; false: @r is the error. */
bool web_call_read(struct web_request *q, struct web_call *c, struct web_reply *r);
/** web_call_fill() - writes the inputs into a frame. Return: as web_call_read(). */
bool web_call_fill(const struct web_call *c, const struct piped_stream_info *info,
                   struct piped_frame *f, const struct web_request *q, struct web_reply *r);
/** web_call_answer() - makes the answer of an answered frame. @more: an object whose members come
 * before the outputs; NULL: none. */
void web_call_answer(const struct web_call *c, struct web_request *q, struct piped_stream *s,
                     const struct piped_frame *f, const json_t *more, struct web_reply *r);

/* picture.c */
/** web_picture_settle() - decides by its first bytes what a body is that may be a picture.
 * Return: false: @r is the error. */
bool web_picture_settle(struct web_request *q, struct web_reply *r);
/** web_picture_read() - reads the picture's size, and what it takes. @ret: borrows the body.
 * Return: false: @r is the error. */
bool web_picture_read(const struct web_request *q, struct picture *ret, struct web_need *ret_need,
                      struct web_reply *r);
/** web_picture_decode() - into the frame. Return: as web_picture_read(). */
bool web_picture_decode(const struct picture *img, struct piped_frame *f, struct web_reply *r);
