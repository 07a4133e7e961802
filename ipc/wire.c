/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/wire.h"

#include <stdbool.h>
#include <string.h>

#include "base/pixfmt.h"
#include "base/shown_text.h"

/* The numbers of the wire are those of the table. */
#define SAME(ID, ...) _Static_assert((int)IPC_PIX_##ID == PIXFMT_##ID, #ID);
PIXFMT_LIST(SAME)
_Static_assert((int)IPC_PIX_COUNT == PIXFMT_COUNT, "no format more");

/* A struct of payloads.h is its bytes: the machine has the protocol's byte order, every member is
 * at its offset, and nothing lies between members. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the protocol is little-endian");
#define AT(type, member, offset)                                                                   \
    _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
AT(ipc_header, length, 0);
AT(ipc_header, type, 4);
AT(ipc_header, version, 6);
AT(ipc_header, flags, 7);
AT(ipc_header, stream, 8);
AT(ipc_header, fd_count, 12);
AT(ipc_header, status, 14);
AT(ipc_header, frame, 16);
AT(ipc_header, time_ns, 24);
AT(ipc_hello, version_min, 0);
AT(ipc_hello, version_max, 2);
AT(ipc_hello, features, 4);
AT(ipc_hello, client, 8);
AT(ipc_hello, reserved, 72);
AT(ipc_welcome, version, 0);
AT(ipc_welcome, reserved, 2);
AT(ipc_welcome, features, 4);
AT(ipc_welcome, payload_max, 8);
AT(ipc_welcome, streams_max, 12);
AT(ipc_welcome, pool_bytes_max, 16);
AT(ipc_welcome, server, 24);
AT(ipc_welcome, instance, 88);
AT(ipc_open, model, 0);
AT(ipc_open, pixfmt, 64);
AT(ipc_open, policy, 68);
AT(ipc_open, credits, 72);
AT(ipc_open, priority, 76);
AT(ipc_open, deadline_ns, 80);
AT(ipc_open, input_dtype, 88);
AT(ipc_open, output_dtype, 92);
AT(ipc_tensor, name, 0);
AT(ipc_tensor, dtype, 64);
AT(ipc_tensor, rank, 68);
AT(ipc_tensor, dim, 72);
AT(ipc_tensor, offset, 104);
AT(ipc_tensor, bytes, 112);
AT(ipc_tensor, rows_output, 120);
AT(ipc_tensor, rows_dim, 124);
AT(ipc_opened, credits, 0);
AT(ipc_opened, depth, 4);
AT(ipc_opened, input_count, 8);
AT(ipc_opened, output_count, 12);
AT(ipc_opened, input_bytes, 16);
AT(ipc_opened, output_bytes, 24);
AT(ipc_opened, image_width, 32);
AT(ipc_opened, image_height, 36);
AT(ipc_opened, reserved, 40);
AT(ipc_pool, pool, 0);
AT(ipc_pool, reserved, 4);
AT(ipc_pool, bytes, 8);
AT(ipc_frame, pool, 0);
AT(ipc_frame, reserved, 4);
AT(ipc_frame, in_offset, 8);
AT(ipc_frame, in_bytes, 16);
AT(ipc_frame, out_offset, 24);
AT(ipc_frame, out_bytes, 32);
AT(ipc_frame, deadline_ns, 40);
AT(ipc_frame, width, 48);
AT(ipc_frame, height, 52);
AT(ipc_frame, stride, 56);
AT(ipc_frame, reserved2, 60);
AT(ipc_result, queue_ns, 0);
AT(ipc_result, service_ns, 8);
AT(ipc_result, done_ns, 16);
AT(ipc_result, credits, 24);
AT(ipc_result, epoch, 28);
AT(ipc_result, out_bytes, 32);
AT(ipc_result, depth, 40);
AT(ipc_result, reserved, 44);
AT(ipc_credit, credits, 0);
AT(ipc_credit, reserved, 4);
AT(ipc_event_msg, event, 0);
AT(ipc_event_msg, epoch, 4);
AT(ipc_event_msg, reserved, 8);
_Static_assert(sizeof(struct ipc_header) == IPC_HEADER_BYTES, "header");
_Static_assert(sizeof(struct ipc_hello) == IPC_HELLO_BYTES, "hello");
_Static_assert(sizeof(struct ipc_welcome) == IPC_WELCOME_BYTES, "welcome");
_Static_assert(sizeof(struct ipc_open) == IPC_OPEN_BYTES, "open");
_Static_assert(sizeof(struct ipc_tensor) == IPC_TENSOR_BYTES, "tensor");
_Static_assert(sizeof(struct ipc_opened) == IPC_OPENED_BYTES, "opened");
_Static_assert(sizeof(struct ipc_pool) == IPC_POOL_BYTES, "pool");
_Static_assert(sizeof(struct ipc_frame) == IPC_FRAME_BYTES, "frame");
_Static_assert(sizeof(struct ipc_result) == IPC_RESULT_BYTES, "result");
_Static_assert(sizeof(struct ipc_credit) == IPC_CREDIT_BYTES, "credit");
_Static_assert(sizeof(struct ipc_event_msg) == IPC_EVENT_BYTES, "event");

/* Cut to fit, at a border between UTF-8 characters, and padded with NUL. */
static void put_name(uint8_t b[IPC_NAME_BYTES], const char name[IPC_NAME_BYTES])
{
    size_t n = shown_fit(name, IPC_NAME_BYTES - 1);

    memset(b, 0, IPC_NAME_BYTES);
    memcpy(b, name, n);
}

/* Names end up in texts, JSON and logs. */
static bool get_name(const uint8_t b[IPC_NAME_BYTES], char ret[IPC_NAME_BYTES])
{
    size_t n = strnlen((const char *)b, IPC_NAME_BYTES);

    memset(ret, 0, IPC_NAME_BYTES);
    if (n == IPC_NAME_BYTES || !shown_ok(b, n)) {
        return false;
    }
    memcpy(ret, b, n);
    return true;
}

/* Encoders copy the struct; names again, so that no byte after their end goes out. */
#define PUT(kind, type, BYTES)                                                                     \
    void ipc_put_##kind(const struct type *m, uint8_t b[BYTES])                                    \
    {                                                                                              \
        memcpy(b, m, BYTES);                                                                       \
    }
#define PUT_NAMED(kind, type, BYTES, name)                                                         \
    void ipc_put_##kind(const struct type *m, uint8_t b[BYTES])                                    \
    {                                                                                              \
        memcpy(b, m, BYTES);                                                                       \
        put_name(b + offsetof(struct type, name), m->name);                                        \
    }
PUT(header, ipc_header, IPC_HEADER_BYTES)
PUT_NAMED(hello, ipc_hello, IPC_HELLO_BYTES, client)
PUT_NAMED(welcome, ipc_welcome, IPC_WELCOME_BYTES, server)
PUT_NAMED(open, ipc_open, IPC_OPEN_BYTES, model)
PUT_NAMED(tensor, ipc_tensor, IPC_TENSOR_BYTES, name)
PUT(opened, ipc_opened, IPC_OPENED_BYTES)
PUT(pool, ipc_pool, IPC_POOL_BYTES)
PUT(frame, ipc_frame, IPC_FRAME_BYTES)
PUT(result, ipc_result, IPC_RESULT_BYTES)
PUT(credit, ipc_credit, IPC_CREDIT_BYTES)
PUT(event, ipc_event_msg, IPC_EVENT_BYTES)

/* Decoders begin by copying the struct. Return: false if there are too few bytes. */
static bool take(const uint8_t *b, size_t bytes, void *ret, size_t size)
{
    if (bytes < size) {
        return false;
    }
    memcpy(ret, b, size);
    return true;
}
/* Makes an invalid name empty. Value: true if it is valid. */
#define NAME(ret, b, member)                                                                       \
    get_name((b) + ((uint8_t *)(ret)->member - (uint8_t *)(ret)), (ret)->member)

/* Sizes of a type's payload. A message of fixed size may grow at its end in a later version, up to
 * IPC_EXTENDED_MAX; readers ignore what they do not know. */
static const struct {
    const char *name;
    uint32_t least, most;
} types[] = {
    [IPC_HELLO] = {"HELLO", IPC_HELLO_BYTES, IPC_EXTENDED_MAX},
    [IPC_WELCOME] = {"WELCOME", IPC_WELCOME_BYTES, IPC_EXTENDED_MAX},
    [IPC_OPEN] = {"OPEN", IPC_OPEN_BYTES, IPC_EXTENDED_MAX},
    [IPC_OPENED] = {"OPENED", IPC_OPENED_BYTES,
                    IPC_OPENED_BYTES + 2 * IPC_TENSORS_MAX *IPC_TENSOR_BYTES},
    [IPC_POOL] = {"POOL", IPC_POOL_BYTES, IPC_EXTENDED_MAX},
    [IPC_POOLED] = {"POOLED", 0, IPC_TEXT_MAX},
    [IPC_FRAME] = {"FRAME", IPC_FRAME_BYTES, IPC_EXTENDED_MAX},
    [IPC_INLINE] = {"INLINE", IPC_FRAME_BYTES, IPC_PAYLOAD_MAX},
    [IPC_RESULT] = {"RESULT", IPC_RESULT_BYTES, IPC_PAYLOAD_MAX},
    [IPC_CREDIT] = {"CREDIT", IPC_CREDIT_BYTES, IPC_EXTENDED_MAX},
    [IPC_CANCEL] = {"CANCEL", 0, IPC_EXTENDED_MAX},
    [IPC_PING] = {"PING", 0, IPC_PING_MAX},
    [IPC_PONG] = {"PONG", 0, IPC_PING_MAX},
    [IPC_CLOSE] = {"CLOSE", 0, IPC_EXTENDED_MAX},
    [IPC_CLOSED] = {"CLOSED", 0, IPC_EXTENDED_MAX},
    [IPC_ERROR] = {"ERROR", 0, IPC_TEXT_MAX},
};
#define TYPE_COUNT (sizeof(types) / sizeof(types[0]))

int ipc_get_header(const uint8_t b[IPC_HEADER_BYTES], struct ipc_header *ret)
{
    uint32_t least = 0, most = IPC_UNKNOWN_MAX;

    memcpy(ret, b, sizeof(*ret));
    if (ret->version != IPC_VERSION) {
        return IPC_E_VERSION;
    }
    if (ret->length > IPC_PAYLOAD_MAX) {
        return IPC_E_TOO_BIG;
    }
    if (ret->type > 0 && ret->type < TYPE_COUNT) {
        least = types[ret->type].least;
        most = types[ret->type].most;
    } else if (ret->type == IPC_EVENT) {
        least = IPC_EVENT_BYTES;
        most = IPC_EXTENDED_MAX;
    } else if (!(ret->type & 0x8000)) {
        return IPC_E_MALFORMED;
    }
    if (ret->length > most) {
        return IPC_E_TOO_BIG;
    }
    return ret->length < least || ret->fd_count > IPC_FDS_MAX ? IPC_E_MALFORMED : 0;
}

int ipc_get_hello(const uint8_t *b, size_t bytes, struct ipc_hello *ret)
{
    bool good;

    if (!take(b, bytes, ret, sizeof(*ret))) {
        return IPC_E_MALFORMED;
    }
    good = NAME(ret, b, client);
    return good && ret->version_min <= ret->version_max ? 0 : IPC_E_MALFORMED;
}

int ipc_get_welcome(const uint8_t *b, size_t bytes, struct ipc_welcome *ret)
{
    bool good;

    if (!take(b, bytes, ret, sizeof(*ret))) {
        return IPC_E_MALFORMED;
    }
    good = NAME(ret, b, server);
    return good ? 0 : IPC_E_MALFORMED;
}

int ipc_get_open(const uint8_t *b, size_t bytes, struct ipc_open *ret)
{
    bool good;

    if (!take(b, bytes, ret, sizeof(*ret))) {
        return IPC_E_MALFORMED;
    }
    good = NAME(ret, b, model);
    return good && ret->pixfmt < IPC_PIX_COUNT && ret->policy <= IPC_POLICY_REJECT &&
                   ret->priority <= IPC_PRIORITY_MAX
               ? 0
               : IPC_E_MALFORMED;
}

int ipc_get_opened(const uint8_t *b, size_t bytes, struct ipc_opened *ret)
{
    if (!take(b, bytes, ret, sizeof(*ret))) {
        return IPC_E_MALFORMED;
    }
    return ret->input_count <= IPC_TENSORS_MAX && ret->output_count <= IPC_TENSORS_MAX &&
                   ret->credits <= IPC_CREDITS_MAX
               ? 0
               : IPC_E_MALFORMED;
}

const char *ipc_dtype_name(uint32_t dtype)
{
    static const char *const names[] = {
        [IPC_F32] = "f32", [IPC_I32] = "i32",   [IPC_I64] = "i64", [IPC_U8] = "u8",
        [IPC_I8] = "i8",   [IPC_BOOL] = "bool", [IPC_F16] = "f16"};

    return dtype < base_array_count(names) && names[dtype] ? names[dtype] : "?";
}

size_t ipc_dtype_bytes(uint32_t dtype)
{
    static const uint8_t bytes[] = {[IPC_F32] = 4, [IPC_I32] = 4,  [IPC_I64] = 8, [IPC_U8] = 1,
                                    [IPC_I8] = 1,  [IPC_BOOL] = 1, [IPC_F16] = 2};

    return dtype < sizeof(bytes) ? bytes[dtype] : 0;
}

int ipc_get_tensor(const uint8_t *b, size_t bytes, struct ipc_tensor *ret)
{
    uint64_t size, end;
    bool good, empty = false;

    if (!take(b, bytes, ret, sizeof(*ret))) {
        return IPC_E_MALFORMED;
    }
    good = NAME(ret, b, name);
    size = ipc_dtype_bytes(ret->dtype);
    good = good && size > 0 && ret->rank <= IPC_RANK_MAX;
    for (size_t i = 0; good && i < ret->rank; i++) { /* strides of empty tensors must fit, too */
        empty |= ret->dim[i] == 0;
        good = !__builtin_mul_overflow(size, ret->dim[i] ? ret->dim[i] : 1, &size);
    }
    size = empty ? 0 : size;
    good = good && size == ret->bytes && !__builtin_add_overflow(ret->offset, ret->bytes, &end);
    return good ? 0 : IPC_E_MALFORMED;
}

int ipc_get_pool(const uint8_t *b, size_t bytes, struct ipc_pool *ret)
{
    if (!take(b, bytes, ret, sizeof(*ret))) {
        return IPC_E_MALFORMED;
    }
    return ret->pool < IPC_POOLS_MAX && ret->bytes > 0 && ret->bytes <= IPC_POOL_BYTES_MAX
               ? 0
               : IPC_E_MALFORMED;
}

int ipc_get_frame(const uint8_t *b, size_t bytes, struct ipc_frame *ret)
{
    uint64_t end;

    if (!take(b, bytes, ret, sizeof(*ret))) {
        return IPC_E_MALFORMED;
    }
    return ret->pool < IPC_POOLS_MAX &&
                   !__builtin_add_overflow(ret->in_offset, ret->in_bytes, &end) &&
                   !__builtin_add_overflow(ret->out_offset, ret->out_bytes, &end)
               ? 0
               : IPC_E_MALFORMED;
}

int ipc_get_result(const uint8_t *b, size_t bytes, struct ipc_result *ret)
{
    if (!take(b, bytes, ret, sizeof(*ret))) {
        return IPC_E_MALFORMED;
    }
    return ret->out_bytes <= IPC_POOL_BYTES_MAX && ret->credits <= IPC_CREDITS_MAX
               ? 0
               : IPC_E_MALFORMED;
}

int ipc_get_credit(const uint8_t *b, size_t bytes, struct ipc_credit *ret)
{
    if (!take(b, bytes, ret, sizeof(*ret))) {
        return IPC_E_MALFORMED;
    }
    return ret->credits <= IPC_CREDITS_MAX ? 0 : IPC_E_MALFORMED;
}

int ipc_get_event(const uint8_t *b, size_t bytes, struct ipc_event_msg *ret)
{
    return take(b, bytes, ret, sizeof(*ret)) ? 0 : IPC_E_MALFORMED;
}

const char *ipc_status_name(enum ipc_status s)
{
    static const char *const names[IPC_STATUS_COUNT] = {
        [IPC_OK] = "ok",
        [IPC_INVALID_ARGUMENT] = "invalid_argument",
        [IPC_NOT_FOUND] = "not_found",
        [IPC_PERMISSION_DENIED] = "permission_denied",
        [IPC_UNSUPPORTED] = "unsupported",
        [IPC_RESOURCE_EXHAUSTED] = "resource_exhausted",
        [IPC_UNAVAILABLE] = "unavailable",
        [IPC_DEADLINE_EXCEEDED] = "deadline_exceeded",
        [IPC_CANCELLED] = "cancelled",
        [IPC_DROPPED] = "dropped",
        [IPC_INTERNAL] = "internal",
        [IPC_PROTOCOL] = "protocol",
    };

    return (unsigned)s < IPC_STATUS_COUNT ? names[s] : "unknown";
}

size_t ipc_put_error(uint16_t status, const char *text, uint8_t b[IPC_HEADER_BYTES + IPC_TEXT_MAX])
{
    struct ipc_header h = {.type = IPC_ERROR,
                           .version = IPC_VERSION,
                           .status = status,
                           .length = (uint32_t)strnlen(text, IPC_TEXT_MAX)};

    ipc_put_header(&h, b);
    memcpy(b + IPC_HEADER_BYTES, text, h.length);
    return IPC_HEADER_BYTES + h.length;
}

const char *ipc_type_name(uint16_t type)
{
    if (type == IPC_EVENT) {
        return "EVENT";
    }
    if (type == IPC_DESCRIBED) {
        return "DESCRIBED";
    }
    return type > 0 && type < TYPE_COUNT ? types[type].name : "unknown";
}
