/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/wire.h"

#include "base/shown_text.h"

/* A struct of protocol.h is its bytes: the machine has the protocol's byte order, and nothing lies
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

void ipc_name_set(char ret[IPC_NAME_BYTES], const char *name)
{
    memset(ret, 0, IPC_NAME_BYTES);
    memcpy(ret, name, shown_fit(name, IPC_NAME_BYTES - 1));
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

/* Types by number, those with bit 15 behind the others. */
#define ROW(type) ((type)&0x8000 ? IPC_ERROR + 1 + ((type)&0x7fff) : (type))

/* Sizes of a type's payload. A message of fixed size may grow at its end in a later version, up to
 * IPC_EXTENDED_MAX; readers ignore what they do not know. */
static const struct type {
    const char *name;
    bool by_client;
    uint32_t least, most;
} types[] = {
    [IPC_HELLO] = {"HELLO", true, IPC_HELLO_BYTES, IPC_EXTENDED_MAX},
    [IPC_WELCOME] = {"WELCOME", false, IPC_WELCOME_BYTES, IPC_EXTENDED_MAX},
    [IPC_OPEN] = {"OPEN", true, IPC_OPEN_BYTES, IPC_EXTENDED_MAX},
    [IPC_OPENED] = {"OPENED", false, IPC_OPENED_BYTES,
                    IPC_OPENED_BYTES + 2 * IPC_TENSORS_MAX *IPC_TENSOR_BYTES},
    [IPC_POOL] = {"POOL", true, IPC_POOL_BYTES, IPC_EXTENDED_MAX},
    [IPC_POOLED] = {"POOLED", false, 0, IPC_TEXT_MAX},
    [IPC_FRAME] = {"FRAME", true, IPC_FRAME_BYTES, IPC_EXTENDED_MAX},
    [IPC_INLINE] = {"INLINE", true, IPC_FRAME_BYTES, IPC_PAYLOAD_MAX},
    [IPC_RESULT] = {"RESULT", false, IPC_RESULT_BYTES, IPC_PAYLOAD_MAX},
    [IPC_CREDIT] = {"CREDIT", false, IPC_CREDIT_BYTES, IPC_EXTENDED_MAX},
    [IPC_CANCEL] = {"CANCEL", true, 0, IPC_EXTENDED_MAX},
    [IPC_PING] = {"PING", true, 0, IPC_PING_MAX},
    [IPC_PONG] = {"PONG", true, 0, IPC_PING_MAX},
    [IPC_CLOSE] = {"CLOSE", true, 0, IPC_EXTENDED_MAX},
    [IPC_CLOSED] = {"CLOSED", false, 0, IPC_EXTENDED_MAX},
    [IPC_ERROR] = {"ERROR", false, 0, IPC_TEXT_MAX},
    [ROW(IPC_EVENT)] = {"EVENT", true, IPC_EVENT_BYTES, IPC_EXTENDED_MAX},
    [ROW(IPC_DESCRIBED)] = {"DESCRIBED", true, 0, IPC_UNKNOWN_MAX},
};

/* Return: the row of a type; NULL: it is invalid. */
static const struct type *type_of(uint16_t type)
{
    static const struct type skipped = {"unknown", true, 0, IPC_UNKNOWN_MAX};

    if (type == 0 || (type > IPC_ERROR && !(type & 0x8000))) {
        return NULL;
    }
    return (size_t)ROW(type) < base_array_count(types) && types[ROW(type)].name ? &types[ROW(type)]
                                                                                : &skipped;
}

int ipc_get_header(const uint8_t b[IPC_HEADER_BYTES], struct ipc_header *ret)
{
    const struct type *type;

    memcpy(ret, b, sizeof(*ret));
    type = type_of(ret->type);
    if (ret->version != IPC_VERSION) {
        return IPC_E_VERSION;
    }
    if (ret->length > (type ? type->most : IPC_PAYLOAD_MAX)) {
        return IPC_E_TOO_BIG;
    }
    return !type || ret->length < type->least || ret->fd_count > IPC_FDS_MAX ? IPC_E_MALFORMED : 0;
}

const char *ipc_type_name(uint16_t type)
{
    const struct type *t = type_of(type);

    return t ? t->name : "unknown";
}

bool ipc_type_by_client(uint16_t type)
{
    const struct type *t = type_of(type);

    return t && t->by_client;
}

static const struct {
    const char *name;
    size_t bytes;
} dtypes[] = {
    [0] = {"?", 0},       [IPC_F32] = {"f32", 4}, [IPC_I32] = {"i32", 4},   [IPC_I64] = {"i64", 8},
    [IPC_U8] = {"u8", 1}, [IPC_I8] = {"i8", 1},   [IPC_BOOL] = {"bool", 1}, [IPC_F16] = {"f16", 2},
};

const char *ipc_dtype_name(uint32_t dtype)
{
    return dtypes[dtype < base_array_count(dtypes) ? dtype : 0].name;
}

size_t ipc_dtype_bytes(uint32_t dtype)
{
    return dtypes[dtype < base_array_count(dtypes) ? dtype : 0].bytes;
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

    memcpy(b, &h, sizeof(h));
    memcpy(b + IPC_HEADER_BYTES, text, h.length);
    return IPC_HEADER_BYTES + h.length;
}
