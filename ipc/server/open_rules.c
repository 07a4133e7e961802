/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/server/open_rules.h"

#include <string.h>

_Static_assert(sizeof(((struct ipc_reply *)NULL)->payload) >= IPC_OPENED_BYTES,
               "a reply has room for OPENED");

static bool travels(uint32_t dtype)
{
    return dtype == 0 || dtype == IPC_F32 || dtype == IPC_F16;
}

/* Checks as what f32 tensors travel. Where a side knows only f32, these fields are reserved. */
static enum ipc_status check_dtypes(struct ipc_open *o, uint32_t features, const char **ret_text)
{
    if (!(features & IPC_FEATURE_F16)) {
        o->input_dtype = o->output_dtype = 0;
    }
    if (!travels(o->input_dtype) || !travels(o->output_dtype)) {
        *ret_text = "input_dtype and output_dtype are 0, f32 or f16";
        return IPC_UNSUPPORTED;
    }
    if (o->input_dtype == IPC_F16 && o->pixfmt != IPC_PIX_TENSOR) {
        *ret_text = "an input of f16 needs pixfmt 0; pictures have pixels of bytes";
        return IPC_INVALID_ARGUMENT;
    }
    o->input_dtype = o->input_dtype == IPC_F16 ? IPC_F16 : 0;
    o->output_dtype = o->output_dtype == IPC_F16 ? IPC_F16 : 0;
    return IPC_OK;
}

enum ipc_status ipc_open_check(const struct ipc_header *h, const uint8_t *payload,
                               const struct ipc_open_place *place, struct ipc_open *ret,
                               const char **ret_text)
{
    if (ipc_get_open(payload, IPC_OPEN_BYTES, ret) != 0 || h->stream == 0) {
        *ret_text = "a field of OPEN is out of range";
        return IPC_INVALID_ARGUMENT;
    }
    if (place->in_use) {
        *ret_text = "the stream's number is in use";
        return IPC_INVALID_ARGUMENT;
    }
    if (place->unavailable) {
        *ret_text = place->unavailable;
        return IPC_UNAVAILABLE;
    }
    if (place->streams >= place->streams_max) {
        *ret_text = "too many streams on this connection";
        return IPC_RESOURCE_EXHAUSTED;
    }
    return check_dtypes(ret, place->features, ret_text);
}

void ipc_open_refusal(const struct ipc_header *h, enum ipc_status status, const char *text,
                      struct ipc_reply *ret)
{
    *ret = (struct ipc_reply){
        .h = {.type = IPC_OPENED, .stream = h->stream, .status = (uint16_t)status},
        .bytes = IPC_OPENED_BYTES,
        .tail = text,
        .tail_bytes = strlen(text)};
}

static enum ipc_status take_pool(const uint8_t *payload, int fd, const struct ipc_pool_place *place,
                                 struct ipc_pool *ret, const char **ret_text)
{
    if (ipc_get_pool(payload, IPC_POOL_BYTES, ret) != 0) {
        *ret_text = "a field of POOL is out of range";
        return IPC_INVALID_ARGUMENT;
    }
    if (!place->memory) {
        *ret_text = "no such stream";
        return IPC_NOT_FOUND;
    }
    if (fd < 0) {
        *ret_text = "POOL needs exactly one file descriptor";
        return IPC_INVALID_ARGUMENT;
    }
    if (place->memory[ret->pool]) {
        *ret_text = "the pool's number is in use";
        return IPC_INVALID_ARGUMENT;
    }
    if (ret->bytes <= IPC_POOL_BYTES_MAX && *place->total + ret->bytes > place->total_max) {
        *ret_text = place->over;
        return IPC_RESOURCE_EXHAUSTED;
    }
    return ipc_memory_map(fd, ret->bytes, place->total, place->total_max, ret_text,
                          &place->memory[ret->pool]);
}

void ipc_pool_take(const struct ipc_header *h, const uint8_t *payload, int fd,
                   const struct ipc_pool_place *place, struct ipc_reply *ret)
{
    struct ipc_pool p = {0};
    const char *text = "";
    enum ipc_status status = take_pool(payload, fd, place, &p, &text);

    *ret = (struct ipc_reply){
        .h = {.type = IPC_POOLED, .stream = h->stream, .status = (uint16_t)status, .frame = p.pool},
        .tail = text,
        .tail_bytes = strlen(text)};
}
