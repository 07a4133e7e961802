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

/* A struct of payloads.h is its bytes: the machine has the protocol's byte order, and nothing lies
 * between or behind the members. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the protocol is little-endian");
#define SIZE(type, BYTES) _Static_assert(sizeof(struct type) == (BYTES), #type)
SIZE(ipc_header, IPC_HEADER_BYTES);
SIZE(ipc_hello, IPC_HELLO_BYTES);
SIZE(ipc_welcome, IPC_WELCOME_BYTES);
SIZE(ipc_open, IPC_OPEN_BYTES);
SIZE(ipc_tensor, IPC_TENSOR_BYTES);
SIZE(ipc_opened, IPC_OPENED_BYTES);
SIZE(ipc_pool, IPC_POOL_BYTES);
SIZE(ipc_frame, IPC_FRAME_BYTES);
SIZE(ipc_result, IPC_RESULT_BYTES);
SIZE(ipc_credit, IPC_CREDIT_BYTES);
SIZE(ipc_event_msg, IPC_EVENT_BYTES);

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

static bool good_tensor(const struct ipc_tensor *t)
{
    uint64_t size = ipc_dtype_bytes(t->dtype), end;
    bool good = size > 0 && t->rank <= IPC_RANK_MAX, empty = false;

    for (size_t i = 0; good && i < t->rank; i++) { /* strides of empty tensors must fit, too */
        empty |= t->dim[i] == 0;
        good = !__builtin_mul_overflow(size, t->dim[i] ? t->dim[i] : 1, &size);
    }
    size = empty ? 0 : size;
    return good && size == t->bytes && !__builtin_add_overflow(t->offset, t->bytes, &end);
}

static bool good_frame(const struct ipc_frame *m)
{
    uint64_t end;

    return m->pool < IPC_POOLS_MAX && !__builtin_add_overflow(m->in_offset, m->in_bytes, &end) &&
           !__builtin_add_overflow(m->out_offset, m->out_bytes, &end);
}

/* Decoders copy the struct, unless there are too few bytes, and check it. */
#define GET(kind, type, good)                                                                      \
    int ipc_get_##kind(const uint8_t *b, size_t bytes, struct type *ret)                           \
    {                                                                                              \
        if (bytes < sizeof(*ret)) {                                                                \
            return IPC_E_MALFORMED;                                                                \
        }                                                                                          \
        memcpy(ret, b, sizeof(*ret));                                                              \
        return (good) ? 0 : IPC_E_MALFORMED;                                                       \
    }
/* Makes an invalid name empty. Value: true if it is valid. */
#define NAME(member) get_name(b + offsetof(__typeof__(*ret), member), ret->member)
GET(hello, ipc_hello, NAME(client) && ret->version_min <= ret->version_max)
GET(welcome, ipc_welcome, NAME(server))
GET(open, ipc_open,
    NAME(model) && ret->pixfmt < IPC_PIX_COUNT && ret->policy <= IPC_POLICY_REJECT &&
        ret->priority <= IPC_PRIORITY_MAX)
GET(opened, ipc_opened,
    ret->input_count <= IPC_TENSORS_MAX && ret->output_count <= IPC_TENSORS_MAX &&
        ret->credits <= IPC_CREDITS_MAX)
GET(tensor, ipc_tensor, NAME(name) && good_tensor(ret))
GET(pool, ipc_pool, ret->pool<IPC_POOLS_MAX && ret->bytes> 0 && ret->bytes <= IPC_POOL_BYTES_MAX)
GET(frame, ipc_frame, good_frame(ret))
GET(result, ipc_result, ret->out_bytes <= IPC_POOL_BYTES_MAX && ret->credits <= IPC_CREDITS_MAX)
GET(credit, ipc_credit, ret->credits <= IPC_CREDITS_MAX)
GET(event, ipc_event_msg, true)

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
