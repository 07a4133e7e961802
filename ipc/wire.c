/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/wire.h"

#include <string.h>

/* The structs of wire.h are laid out as they travel, so that their offsets are the documentation;
 * the bytes are still put and taken one by one, which works on any byte order and alignment. */
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
AT(ipc_hello, client, 8);
AT(ipc_welcome, payload_max, 8);
AT(ipc_welcome, pool_bytes_max, 16);
AT(ipc_welcome, server, 24);
AT(ipc_welcome, instance, 88);
AT(ipc_open, pixfmt, 64);
AT(ipc_open, credits, 72);
AT(ipc_open, deadline_ns, 80);
AT(ipc_tensor, dtype, 64);
AT(ipc_tensor, dim, 72);
AT(ipc_tensor, offset, 104);
AT(ipc_tensor, bytes, 112);
AT(ipc_opened, input_count, 8);
AT(ipc_opened, input_bytes, 16);
AT(ipc_opened, image_width, 32);
AT(ipc_pool, bytes, 8);
AT(ipc_frame, in_offset, 8);
AT(ipc_frame, out_offset, 24);
AT(ipc_frame, deadline_ns, 40);
AT(ipc_frame, width, 48);
AT(ipc_frame, stride, 56);
AT(ipc_result, done_ns, 16);
AT(ipc_result, credits, 24);
AT(ipc_result, out_bytes, 32);
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

static void put16(uint8_t *b, uint16_t v)
{
    b[0] = (uint8_t)v;
    b[1] = (uint8_t)(v >> 8);
}
static void put32(uint8_t *b, uint32_t v)
{
    put16(b, (uint16_t)v);
    put16(b + 2, (uint16_t)(v >> 16));
}
static void put64(uint8_t *b, uint64_t v)
{
    put32(b, (uint32_t)v);
    put32(b + 4, (uint32_t)(v >> 32));
}
static uint16_t get16(const uint8_t *b)
{
    return (uint16_t)(b[0] | b[1] << 8);
}
static uint32_t get32(const uint8_t *b)
{
    return (uint32_t)get16(b) | (uint32_t)get16(b + 2) << 16;
}
static uint64_t get64(const uint8_t *b)
{
    return (uint64_t)get32(b) | (uint64_t)get32(b + 4) << 32;
}

/* Cut to fit, at a border between UTF-8 characters, and padded with NUL. */
static void put_name(uint8_t b[IPC_NAME_BYTES], const char name[IPC_NAME_BYTES])
{
    size_t n = strnlen(name, IPC_NAME_BYTES);

    if (n == IPC_NAME_BYTES) {
        n--;
        while (n > 0 && ((uint8_t)name[n] & 0xc0) == 0x80) {
            n--;
        }
    }
    memset(b, 0, IPC_NAME_BYTES);
    memcpy(b, name, n);
}

/* Bytes of the UTF-8 character at @s, or 0: broken, overlong, a surrogate, above U+10FFFF. */
static size_t utf8_length(const uint8_t *s, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = s[0];
    size_t n = c < 0x80             ? 1
               : (c & 0xe0) == 0xc0 ? 2
               : (c & 0xf0) == 0xe0 ? 3
               : (c & 0xf8) == 0xf0 ? 4
                                    : 0;

    if (n < 2 || n > left) {
        return n > left ? 0 : n;
    }
    c &= 0xffu >> (n + 1);
    for (size_t i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }
        c = c << 6 | (s[i] & 0x3f);
    }
    return c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) ? 0 : n;
}

/* Names end up in texts, JSON and logs: no control characters, no broken UTF-8. */
static bool get_name(const uint8_t b[IPC_NAME_BYTES], char ret[IPC_NAME_BYTES])
{
    size_t n = strnlen((const char *)b, IPC_NAME_BYTES);
    size_t step;

    memset(ret, 0, IPC_NAME_BYTES);
    if (n == IPC_NAME_BYTES) {
        return false;
    }
    for (size_t i = 0; i < n; i += step) {
        step = utf8_length(b + i, n - i);
        if (step == 0 || b[i] < 0x20 || b[i] == 0x7f) {
            return false;
        }
    }
    memcpy(ret, b, n);
    return true;
}

void ipc_put_header(const struct ipc_header *h, uint8_t b[IPC_HEADER_BYTES])
{
    put32(b, h->length);
    put16(b + 4, h->type);
    b[6] = h->version;
    b[7] = h->flags;
    put32(b + 8, h->stream);
    put16(b + 12, h->fd_count);
    put16(b + 14, h->status);
    put64(b + 16, h->frame);
    put64(b + 24, h->time_ns);
}

void ipc_put_hello(const struct ipc_hello *m, uint8_t b[IPC_HELLO_BYTES])
{
    put16(b, m->version_min);
    put16(b + 2, m->version_max);
    put32(b + 4, m->features);
    put_name(b + 8, m->client);
    put64(b + 72, m->reserved);
}

void ipc_put_welcome(const struct ipc_welcome *m, uint8_t b[IPC_WELCOME_BYTES])
{
    put16(b, m->version);
    put16(b + 2, m->reserved);
    put32(b + 4, m->features);
    put32(b + 8, m->payload_max);
    put32(b + 12, m->streams_max);
    put64(b + 16, m->pool_bytes_max);
    put_name(b + 24, m->server);
    put64(b + 88, m->instance);
}

void ipc_put_open(const struct ipc_open *m, uint8_t b[IPC_OPEN_BYTES])
{
    put_name(b, m->model);
    put32(b + 64, m->pixfmt);
    put32(b + 68, m->policy);
    put32(b + 72, m->credits);
    put32(b + 76, m->priority);
    put64(b + 80, m->deadline_ns);
    put64(b + 88, m->reserved);
}

void ipc_put_tensor(const struct ipc_tensor *m, uint8_t b[IPC_TENSOR_BYTES])
{
    put_name(b, m->name);
    put32(b + 64, m->dtype);
    put32(b + 68, m->rank);
    for (size_t i = 0; i < IPC_RANK_MAX; i++) {
        put32(b + 72 + 4 * i, m->dim[i]);
    }
    put64(b + 104, m->offset);
    put64(b + 112, m->bytes);
    put64(b + 120, m->reserved);
}

void ipc_put_opened(const struct ipc_opened *m, uint8_t b[IPC_OPENED_BYTES])
{
    put32(b, m->credits);
    put32(b + 4, m->depth);
    put32(b + 8, m->input_count);
    put32(b + 12, m->output_count);
    put64(b + 16, m->input_bytes);
    put64(b + 24, m->output_bytes);
    put32(b + 32, m->image_width);
    put32(b + 36, m->image_height);
    put64(b + 40, m->reserved);
}

void ipc_put_pool(const struct ipc_pool *m, uint8_t b[IPC_POOL_BYTES])
{
    put32(b, m->pool);
    put32(b + 4, m->reserved);
    put64(b + 8, m->bytes);
}

void ipc_put_frame(const struct ipc_frame *m, uint8_t b[IPC_FRAME_BYTES])
{
    put32(b, m->pool);
    put32(b + 4, m->reserved);
    put64(b + 8, m->in_offset);
    put64(b + 16, m->in_bytes);
    put64(b + 24, m->out_offset);
    put64(b + 32, m->out_bytes);
    put64(b + 40, m->deadline_ns);
    put32(b + 48, m->width);
    put32(b + 52, m->height);
    put32(b + 56, m->stride);
    put32(b + 60, m->reserved2);
}

void ipc_put_result(const struct ipc_result *m, uint8_t b[IPC_RESULT_BYTES])
{
    put64(b, m->queue_ns);
    put64(b + 8, m->service_ns);
    put64(b + 16, m->done_ns);
    put32(b + 24, m->credits);
    put32(b + 28, m->epoch);
    put64(b + 32, m->out_bytes);
    put64(b + 40, m->reserved);
}

void ipc_put_credit(const struct ipc_credit *m, uint8_t b[IPC_CREDIT_BYTES])
{
    put32(b, m->credits);
    put32(b + 4, m->reserved);
}

void ipc_put_event(const struct ipc_event_msg *m, uint8_t b[IPC_EVENT_BYTES])
{
    put32(b, m->event);
    put32(b + 4, m->epoch);
    put64(b + 8, m->reserved);
}

/* What a type's payload may measure. Messages of fixed size may grow at their end in a later
 * version (readers ignore what they do not know), up to IPC_EXTENDED_MAX. */
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

    *ret = (struct ipc_header){
        .length = get32(b),
        .type = get16(b + 4),
        .version = b[6],
        .flags = b[7],
        .stream = get32(b + 8),
        .fd_count = get16(b + 12),
        .status = get16(b + 14),
        .frame = get64(b + 16),
        .time_ns = get64(b + 24),
    };
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

    if (bytes < IPC_HELLO_BYTES) {
        return IPC_E_MALFORMED;
    }
    ret->version_min = get16(b);
    ret->version_max = get16(b + 2);
    ret->features = get32(b + 4);
    good = get_name(b + 8, ret->client);
    ret->reserved = get64(b + 72);
    return good && ret->version_min <= ret->version_max ? 0 : IPC_E_MALFORMED;
}

int ipc_get_welcome(const uint8_t *b, size_t bytes, struct ipc_welcome *ret)
{
    bool good;

    if (bytes < IPC_WELCOME_BYTES) {
        return IPC_E_MALFORMED;
    }
    ret->version = get16(b);
    ret->reserved = get16(b + 2);
    ret->features = get32(b + 4);
    ret->payload_max = get32(b + 8);
    ret->streams_max = get32(b + 12);
    ret->pool_bytes_max = get64(b + 16);
    good = get_name(b + 24, ret->server);
    ret->instance = get64(b + 88);
    return good ? 0 : IPC_E_MALFORMED;
}

int ipc_get_open(const uint8_t *b, size_t bytes, struct ipc_open *ret)
{
    bool good;

    if (bytes < IPC_OPEN_BYTES) {
        return IPC_E_MALFORMED;
    }
    good = get_name(b, ret->model);
    ret->pixfmt = get32(b + 64);
    ret->policy = get32(b + 68);
    ret->credits = get32(b + 72);
    ret->priority = get32(b + 76);
    ret->deadline_ns = get64(b + 80);
    ret->reserved = get64(b + 88);
    return good && ret->pixfmt < IPC_PIX_COUNT && ret->policy <= IPC_POLICY_REJECT &&
                   ret->priority <= IPC_PRIORITY_MAX
               ? 0
               : IPC_E_MALFORMED;
}

int ipc_get_opened(const uint8_t *b, size_t bytes, struct ipc_opened *ret)
{
    if (bytes < IPC_OPENED_BYTES) {
        return IPC_E_MALFORMED;
    }
    ret->credits = get32(b);
    ret->depth = get32(b + 4);
    ret->input_count = get32(b + 8);
    ret->output_count = get32(b + 12);
    ret->input_bytes = get64(b + 16);
    ret->output_bytes = get64(b + 24);
    ret->image_width = get32(b + 32);
    ret->image_height = get32(b + 36);
    ret->reserved = get64(b + 40);
    return ret->input_count <= IPC_TENSORS_MAX && ret->output_count <= IPC_TENSORS_MAX &&
                   ret->credits <= IPC_CREDITS_MAX
               ? 0
               : IPC_E_MALFORMED;
}

size_t ipc_dtype_bytes(uint32_t dtype)
{
    static const uint8_t bytes[] = {
        [IPC_F32] = 4, [IPC_I32] = 4, [IPC_I64] = 8, [IPC_U8] = 1, [IPC_I8] = 1, [IPC_BOOL] = 1};

    return dtype < sizeof(bytes) ? bytes[dtype] : 0;
}

int ipc_get_tensor(const uint8_t *b, size_t bytes, struct ipc_tensor *ret)
{
    uint64_t size, end;
    bool good;

    if (bytes < IPC_TENSOR_BYTES) {
        return IPC_E_MALFORMED;
    }
    good = get_name(b, ret->name);
    ret->dtype = get32(b + 64);
    ret->rank = get32(b + 68);
    for (size_t i = 0; i < IPC_RANK_MAX; i++) {
        ret->dim[i] = get32(b + 72 + 4 * i);
    }
    ret->offset = get64(b + 104);
    ret->bytes = get64(b + 112);
    ret->reserved = get64(b + 120);
    size = ipc_dtype_bytes(ret->dtype);
    good = good && size > 0 && ret->rank <= IPC_RANK_MAX;
    for (size_t i = 0; good && i < ret->rank; i++) {
        good = ret->dim[i] > 0 && !__builtin_mul_overflow(size, ret->dim[i], &size);
    }
    good = good && size == ret->bytes && !__builtin_add_overflow(ret->offset, ret->bytes, &end);
    return good ? 0 : IPC_E_MALFORMED;
}

int ipc_get_pool(const uint8_t *b, size_t bytes, struct ipc_pool *ret)
{
    if (bytes < IPC_POOL_BYTES) {
        return IPC_E_MALFORMED;
    }
    ret->pool = get32(b);
    ret->reserved = get32(b + 4);
    ret->bytes = get64(b + 8);
    return ret->pool < IPC_POOLS_MAX && ret->bytes > 0 && ret->bytes <= IPC_POOL_BYTES_MAX
               ? 0
               : IPC_E_MALFORMED;
}

int ipc_get_frame(const uint8_t *b, size_t bytes, struct ipc_frame *ret)
{
    uint64_t end;

    if (bytes < IPC_FRAME_BYTES) {
        return IPC_E_MALFORMED;
    }
    ret->pool = get32(b);
    ret->reserved = get32(b + 4);
    ret->in_offset = get64(b + 8);
    ret->in_bytes = get64(b + 16);
    ret->out_offset = get64(b + 24);
    ret->out_bytes = get64(b + 32);
    ret->deadline_ns = get64(b + 40);
    ret->width = get32(b + 48);
    ret->height = get32(b + 52);
    ret->stride = get32(b + 56);
    ret->reserved2 = get32(b + 60);
    return ret->pool < IPC_POOLS_MAX &&
                   !__builtin_add_overflow(ret->in_offset, ret->in_bytes, &end) &&
                   !__builtin_add_overflow(ret->out_offset, ret->out_bytes, &end)
               ? 0
               : IPC_E_MALFORMED;
}

int ipc_get_result(const uint8_t *b, size_t bytes, struct ipc_result *ret)
{
    if (bytes < IPC_RESULT_BYTES) {
        return IPC_E_MALFORMED;
    }
    ret->queue_ns = get64(b);
    ret->service_ns = get64(b + 8);
    ret->done_ns = get64(b + 16);
    ret->credits = get32(b + 24);
    ret->epoch = get32(b + 28);
    ret->out_bytes = get64(b + 32);
    ret->reserved = get64(b + 40);
    return ret->out_bytes <= IPC_POOL_BYTES_MAX && ret->credits <= IPC_CREDITS_MAX
               ? 0
               : IPC_E_MALFORMED;
}

int ipc_get_credit(const uint8_t *b, size_t bytes, struct ipc_credit *ret)
{
    if (bytes < IPC_CREDIT_BYTES) {
        return IPC_E_MALFORMED;
    }
    ret->credits = get32(b);
    ret->reserved = get32(b + 4);
    return ret->credits <= IPC_CREDITS_MAX ? 0 : IPC_E_MALFORMED;
}

int ipc_get_event(const uint8_t *b, size_t bytes, struct ipc_event_msg *ret)
{
    if (bytes < IPC_EVENT_BYTES) {
        return IPC_E_MALFORMED;
    }
    ret->event = get32(b);
    ret->epoch = get32(b + 4);
    ret->reserved = get64(b + 8);
    return 0;
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

const char *ipc_type_name(uint16_t type)
{
    if (type == IPC_EVENT) {
        return "EVENT";
    }
    return type > 0 && type < TYPE_COUNT ? types[type].name : "unknown";
}
