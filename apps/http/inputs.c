/* SPDX-License-Identifier: Apache-2.0 */
/* piped-http: infer requests with tensors. */
#include "apps/http/tensors.h"
#include "base/base.h"
#include "base/json_text.h"
#include "base/tensor_name.h"
#include "ipc/wire.h"

#define TIMEOUT_MOST_US 3600000000ll

static const char *const DATATYPES[] = {
    [PIPED_F32] = "FP32", [PIPED_I32] = "INT32", [PIPED_I64] = "INT64", [PIPED_U8] = "UINT8",
    [PIPED_I8] = "INT8",  [PIPED_BOOL] = "BOOL", [PIPED_F16] = "FP16",
};

const char *web_datatype(uint32_t dtype)
{
    return dtype > 0 && dtype < base_array_count(DATATYPES) ? DATATYPES[dtype] : "UNKNOWN";
}

const char *web_datatype_of(const char *name)
{
    uint32_t dtype = 1;

    while (dtype < base_array_count(DATATYPES) && strcmp(ipc_dtype_name(dtype), name) != 0) {
        dtype++;
    }
    return web_datatype(dtype);
}

/* An optional key: null is as if it were absent. */
static const json_t *given(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);

    return json_is_null(v) ? NULL : v;
}

/* The parameters of an object. Return: false: they are something else; @r is the error. */
static bool parameters_of(const json_t *of, const char *whose, const json_t **ret,
                          struct web_reply *r)
{
    *ret = given(of, "parameters");
    return !*ret || json_is_object(*ret) ||
           web_fail(r, 400, "%s: parameters must be an object", whose);
}

/* The same of a flag, which is @usual if it is absent. */
static bool take_flag(const json_t *of, const char *key, bool usual, bool *ret, struct web_reply *r)
{
    const json_t *v = given(of, key);

    if (v && !json_is_boolean(v)) {
        return web_fail(r, 400, "the parameter %s is true or false", key);
    }
    *ret = v ? json_is_true(v) : usual;
    return true;
}

static bool refuse(struct web_reply *r, const char *name, const char *why)
{
    return web_fail(r, 400, "input %s: %s", name, why);
}

/* Where the binary data of an input is: after that of the inputs before it. */
static bool take_binary(const struct web_request *q, size_t *at, const json_t *size,
                        struct web_input *in, struct web_reply *r)
{
    json_int_t n = json_integer_value(size);

    if (!json_is_integer(size) || n < 0 || (size_t)n > q->bytes - *at) {
        return refuse(r, in->name, "binary_data_size is not within the body");
    }
    in->binary = true;
    in->data = q->body + *at;
    in->bytes = (size_t)n;
    *at += (size_t)n;
    return true;
}

static bool take_input(const struct web_request *q, struct web_call *c, const json_t *j, size_t *at,
                       struct web_reply *r)
{
    struct web_input *in = &c->inputs[c->input_count];
    const json_t *data = given(j, "data"), *parameters, *size;
    const struct web_span *array = web_split_array(&c->json, data);
    const struct web_span *shape = web_split_array(&c->json, json_object_get(j, "shape"));

    in->name = json_string_value(json_object_get(j, "name"));
    in->datatype = json_string_value(json_object_get(j, "datatype"));
    if (!in->name || !in->datatype || !shape) {
        return web_fail(r, 400,
                        "each of inputs needs name (a string), shape (an array) and datatype");
    }
    if (!parameters_of(j, in->name, &parameters, r)) {
        return false;
    }
    in->shape = *shape;
    c->input_count++;
    size = given(parameters, "binary_data_size");
    if (size && data) {
        return refuse(r, in->name, "it has both data and binary_data_size");
    }
    if (size) {
        return take_binary(q, at, size, in, r);
    }
    if (!array) {
        return refuse(r, in->name,
                      data ? "data must be an array of values"
                           : "it has neither data nor binary_data_size");
    }
    in->array = *array;
    return true;
}

static bool take_output(struct web_call *c, const json_t *j, struct web_output *ret,
                        struct web_reply *r)
{
    const json_t *p;

    ret->name = json_string_value(json_object_get(j, "name"));
    if (!ret->name) {
        return web_fail(r, 400, "each of outputs needs a name");
    }
    if (!parameters_of(j, ret->name, &p, r)) {
        return false;
    }
    if (given(p, "classification") || given(p, "shared_memory_region")) {
        return web_fail(r, 400,
                        "output %s: this server has neither the extension classification nor "
                        "shared memory",
                        ret->name);
    }
    return take_flag(p, "binary_data", c->all_binary, &ret->binary, r);
}

static bool take_outputs(struct web_call *c, struct web_reply *r)
{
    const json_t *list = given(c->json.rest, "outputs");

    if (list && (!json_is_array(list) || json_array_size(list) > WEB_TENSORS_MAX)) {
        return web_fail(r, 400, "outputs must be an array of at most %u objects", WEB_TENSORS_MAX);
    }
    json_text_each(list, i, j) {
        if (!take_output(c, j, &c->outputs[i], r)) {
            return false;
        }
    }
    c->output_count = json_array_size(list);
    return true;
}

static bool take_parameters(struct web_call *c, struct web_reply *r)
{
    const json_t *id = given(c->json.rest, "id");
    const json_t *p, *timeout;

    if (id && !json_is_string(id)) {
        return web_fail(r, 400, "id must be a string");
    }
    if (!parameters_of(c->json.rest, "the request", &p, r) ||
        !take_flag(p, "decode", c->decode, &c->decode, r) ||
        !take_flag(p, "binary_data_output", c->all_binary, &c->all_binary, r)) {
        return false;
    }
    timeout = given(p, "timeout");
    if (timeout && (!json_is_integer(timeout) || json_integer_value(timeout) < 0 ||
                    json_integer_value(timeout) > TIMEOUT_MOST_US)) {
        return web_fail(r, 400, "the parameter timeout is microseconds, at most an hour");
    }
    c->id = json_string_value(id);
    c->timeout_ns = timeout ? (uint64_t)json_integer_value(timeout) * BASE_NS_PER_US : 0;
    return true;
}

/* FP16 for one f32 tensor of a stream means FP16 for all. */
static bool judge_halves(struct web_call *c, struct web_reply *r)
{
    size_t halves = 0, floats = 0;

    for (size_t i = 0; i < c->input_count; i++) {
        halves += strcmp(c->inputs[i].datatype, "FP16") == 0;
        floats += strcmp(c->inputs[i].datatype, "FP32") == 0;
        if (strcmp(c->inputs[i].datatype, "FP16") == 0 && !c->inputs[i].binary) {
            return refuse(r, c->inputs[i].name, "FP16 has no form in JSON; send it as binary data");
        }
    }
    c->half = halves > 0;
    return !(halves && floats) ||
           web_fail(r, 400, "inputs of one request are FP32 or FP16, not both");
}

/* Reads the JSON but for its arrays. Its tree is claimed before. */
static bool read_rest(struct web_request *q, size_t header, struct web_call *c, struct web_reply *r)
{
    char why[WEB_WHY_BYTES];
    unsigned status = web_split_cut((const char *)q->body, header, &c->json, why);

    if (status == 0 && !web_claim(q, c->json.text_bytes * WEB_TREE_FACTOR, r)) {
        return false;
    }
    status = status ? status : web_split_read(&c->json, why);
    return status == 0 || web_fail(r, status, "%s", why);
}

static bool read_json(struct web_request *q, size_t header, struct web_call *c, struct web_reply *r)
{
    const json_t *inputs;
    size_t at = header;

    if (!read_rest(q, header, c, r)) {
        return false;
    }
    inputs = json_object_get(c->json.rest, "inputs");
    if (!json_is_array(inputs) || json_array_size(inputs) > WEB_TENSORS_MAX) {
        return web_fail(r, 400, "inputs must be an array of at most %u objects", WEB_TENSORS_MAX);
    }
    if (!take_parameters(c, r) || !take_outputs(c, r)) {
        return false;
    }
    json_text_each(inputs, i, j) {
        if (!take_input(q, c, j, &at, r)) {
            return false;
        }
    }
    if (at != q->bytes) {
        return web_fail(r, 400, "the body has %zu bytes of binary data, binary_data_size names %zu",
                        q->bytes - header, at - header);
    }
    return judge_halves(c, r);
}

bool web_call_read(struct web_request *q, struct web_call *c, struct web_reply *r)
{
    size_t header = q->header_bytes == SIZE_MAX ? q->bytes : q->header_bytes;

    if (q->body_kind == WEB_BODY_RAW) {
        c->raw = c->all_binary = true;
        return true;
    }
    if (header > q->bytes) {
        return web_fail(r, 400, "Inference-Header-Content-Length is %zu, the body has %zu bytes",
                        header, q->bytes);
    }
    return read_json(q, header, c, r);
}

static void shape_text(const struct piped_tensor *t, char *ret, size_t bytes)
{
    ret[0] = '\0';
    for (uint32_t i = 0; i < t->rank; i++) {
        base_append(ret, bytes, "%s%u", i ? "," : "", t->dim[i]);
    }
}

static bool shape_fits(const struct piped_tensor *t, struct web_span shape)
{
    int64_t dims[IPC_RANK_MAX];
    char why[WEB_WHY_BYTES];
    bool fits = web_read_array(shape, PIPED_I64, &t->rank, 1, dims, why) == 0;

    for (uint32_t i = 0; fits && i < t->rank; i++) {
        fits = dims[i] == t->dim[i];
    }
    return fits;
}

static bool fill_one(const struct web_input *in, const struct piped_tensor *t,
                     struct piped_frame *f, struct web_reply *r)
{
    uint8_t *to = (uint8_t *)f->input + t->offset;
    char shape[128] = "", why[WEB_WHY_BYTES];

    if (strcmp(in->datatype, web_datatype(t->dtype)) != 0) {
        return web_fail(r, 400, "input %s is %.32s; the model takes %s", in->name, in->datatype,
                        web_datatype(t->dtype));
    }
    if (!shape_fits(t, in->shape)) {
        shape_text(t, shape, sizeof(shape));
        return web_fail(r, 400, "input %s has shape %.*s; the model takes [%s]", in->name,
                        (int)base_min(in->shape.bytes, (size_t)128), in->shape.text, shape);
    }
    if (in->binary) {
        if (in->bytes != t->bytes) {
            return web_fail(r, 400, "input %s has %zu bytes; its shape takes %zu", in->name,
                            in->bytes, (size_t)t->bytes);
        }
        memcpy(to, in->data, in->bytes);
        return true;
    }
    return web_read_array(in->array, t->dtype, t->dim, t->rank, to, why) == 0 ||
           refuse(r, in->name, why);
}

static bool fill_raw(const struct piped_stream_info *info, struct piped_frame *f,
                     const struct web_request *q, struct web_reply *r)
{
    const char *foreign;
    enum picture_kind kind = picture_known(q->body, q->bytes, &foreign);

    if (info->input_count != 1 || info->inputs[0].bytes != q->bytes) {
        return web_fail(r, 400,
                        "a raw body must be the bytes of the only input; the model has %u, the "
                        "first takes %zu bytes and the body has %zu%s",
                        info->input_count, (size_t)info->inputs[0].bytes, q->bytes,
                        kind == PICTURE_JPEG  ? "; for a picture: -H 'Content-Type: image/jpeg'"
                        : kind == PICTURE_PNG ? "; for a picture: -H 'Content-Type: image/png'"
                                              : "");
    }
    memcpy((uint8_t *)f->input + info->inputs[0].offset, q->body, q->bytes);
    return true;
}

bool web_call_fill(const struct web_call *c, const struct piped_stream_info *info,
                   struct piped_frame *f, const struct web_request *q, struct web_reply *r)
{
    bool filled[WEB_TENSORS_MAX] = {false};

    if (c->raw) {
        return fill_raw(info, f, q, r);
    }
    for (size_t i = 0; i < c->input_count; i++) {
        uint32_t k = 0;

        while (k < info->input_count && !tensor_same(info->inputs[k].name, c->inputs[i].name)) {
            k++;
        }
        if (k == info->input_count || filled[k]) {
            return refuse(r, c->inputs[i].name,
                          k < info->input_count ? "it comes twice" : "the model has no such input");
        }
        filled[k] = true;
        if (!fill_one(&c->inputs[i], &info->inputs[k], f, r)) {
            return false;
        }
    }
    if (c->input_count != info->input_count) {
        return web_fail(r, 400, "the model has %u input%s, the request %zu", info->input_count,
                        base_plural(info->input_count), c->input_count);
    }
    return true;
}
