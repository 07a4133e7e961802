/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/wire/messages.h"

#include "base/base.h"
#include "ipc/boards/route_window.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the messages are little-endian");

bool lnk_tensor_bytes(const struct lnk_tensor *t, uint64_t *ret)
{
    static const uint8_t dtype_bytes[] = {
        [LNK_F32] = 4, [LNK_I32] = 4, [LNK_I64] = 8, [LNK_U8] = 1, [LNK_I8] = 1, [LNK_BOOL] = 1};
    uint64_t bytes;

    if (t->is_picture) {
        bytes = t->is_picture == 1 && t->dtype == LNK_U8 && t->rank == 3
                    ? brd_picture_bytes(t->dim[0], t->dim[2], t->dim[1])
                    : 0;
        *ret = bytes;
        return bytes > 0 && bytes <= LNK_PAYLOAD_MAX;
    }
    if (t->dtype < LNK_F32 || t->dtype > LNK_BOOL || t->rank > LNK_RANK_MAX) {
        return false;
    }
    bytes = dtype_bytes[t->dtype];
    for (size_t i = 0; i < t->rank; i++) {
        /* The product before stays within LNK_PAYLOAD_MAX, so this one fits 64 bits. */
        bytes *= t->dim[i];
        if (bytes == 0 || bytes > LNK_PAYLOAD_MAX) {
            return false;
        }
    }
    *ret = bytes;
    return true;
}

static bool tensor_is_valid(const struct lnk_tensor *t)
{
    uint64_t bytes;

    if (!lnk_tensor_bytes(t, &bytes) || bytes != t->bytes || t->reserved || t->reserved2) {
        return false;
    }
    for (size_t i = t->rank; i < LNK_RANK_MAX; i++) {
        if (t->dim[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Printable ASCII up to a NUL, zeros behind it: names go into plans and logs. */
static bool name_is_valid(const char name[LNK_NAME_BYTES])
{
    size_t n = strnlen(name, LNK_NAME_BYTES);

    for (size_t i = 0; i < LNK_NAME_BYTES; i++) {
        if (i < n ? name[i] <= ' ' || name[i] > '~' : name[i] != 0) {
            return false;
        }
    }
    return n > 0 && n < LNK_NAME_BYTES;
}

/* A number in the struct of a type. @at: in struct lnk_message; @bytes: 0: there is none. */
struct field {
    uint8_t at, bytes;
};
#define BODY(member) .body_bytes = sizeof(((struct lnk_message *)0)->member)
#define FIELD(member)                                                                              \
    {                                                                                              \
        offsetof(struct lnk_message, member), sizeof(((struct lnk_message *)0)->member)            \
    }

/* What a type of message is made of. */
struct row {
    size_t body_bytes;    /* of its struct */
    struct field tensors; /* how many follow the struct: at least one, with a part for each */
    struct {
        enum { NO_TAIL, NUMBERS, LINE, LINES } is; /* LINE, LINES: text */
        struct field count;                        /* of numbers, or bytes of text */
        size_t most;
    } tail;
    struct {
        size_t least, most; /* bytes; most 0: there is none */
        bool may_lack;
    } part;                                        /* the only one, without tensors */
    bool (*is_valid)(const struct lnk_message *m); /* NULL: any values are */
};

static bool hello_is_valid(const struct lnk_message *m)
{
    return m->hello.version_min <= m->hello.version_max && name_is_valid(m->hello.name);
}

static bool plan_is_valid(const struct lnk_message *m)
{
    return m->plan.first_unit <= m->plan.last_unit &&
           (m->plan.hop < m->plan.hop_count || (m->plan.hop == 0 && m->plan.hop_count == 0));
}

static bool error_is_valid(const struct lnk_message *m)
{
    return m->error.status != 0;
}

static bool want_is_valid(const struct lnk_message *m)
{
    return m->want.reserved == 0;
}

static const struct row rows[LNK_TYPE_COUNT] = {
    [LNK_HELLO] = {BODY(hello), .is_valid = hello_is_valid},
    [LNK_PLAN] = {BODY(plan), .tail = {LINES, FIELD(plan.text_bytes), LNK_PLAN_TEXT_MAX},
                  .is_valid = plan_is_valid},
    [LNK_FRAME] = {BODY(frame),
                   FIELD(frame.tensor_count),
                   {NUMBERS, FIELD(frame.time_count), LNK_HOPS_MAX}},
    [LNK_ANSWER] = {BODY(answer),
                    FIELD(answer.tensor_count),
                    {NUMBERS, FIELD(answer.time_count), LNK_HOPS_MAX}},
    [LNK_ERROR] = {BODY(error), .tail = {LINE, FIELD(error.text_bytes), LNK_TEXT_MAX},
                   .is_valid = error_is_valid},
    [LNK_CREDIT] = {BODY(credit)},
    [LNK_PING] = {BODY(ping), .part = {LNK_PING_LARGE_BYTES, LNK_PING_LARGE_BYTES, true}},
    [LNK_PONG] = {BODY(ping)},
    [LNK_WANT] = {BODY(want), .tail = {NUMBERS, FIELD(want.leaf_count), LNK_LEAVES_MAX},
                  .is_valid = want_is_valid},
    [LNK_LEAF] = {BODY(leaf), .part = {1, LNK_LEAF_BYTES}},
    [LNK_BOARD] = {.part = {1, LNK_BOARD_BYTES}},
    [LNK_CANCEL] = {BODY(cancel)},
};

/* Return: NULL: there is no such type. */
static const struct row *row_of(uint16_t type)
{
    const struct row *row = &rows[type < LNK_TYPE_COUNT ? type : 0];

    return row->body_bytes > 0 || row->part.most > 0 ? row : NULL;
}

static size_t count_of(const struct lnk_message *m, struct field f)
{
    size_t n = 0;

    memcpy(&n, (const uint8_t *)m + f.at, f.bytes);
    return n;
}

static size_t item_bytes(const struct row *row)
{
    return row->tail.is == NUMBERS ? sizeof(uint64_t) : 1;
}

void lnk_count_tail(struct lnk_message *m)
{
    const struct row *row = &rows[m->header.type];
    size_t count = m->tail_bytes / item_bytes(row);

    memcpy((uint8_t *)m + row->tail.count.at, &count, row->tail.count.bytes);
}

/* No control characters: texts are shown and logged. Bytes above ASCII pass. */
static bool text_is_valid(const struct lnk_message *m, bool has_lines)
{
    for (size_t i = 0; i < m->tail_bytes; i++) {
        uint8_t c = m->tail[i];

        if ((c < ' ' && !(c == '\n' && has_lines)) || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* The first part. @tensors: at most LNK_PARTS_MAX; @count: of the tail */
static bool first_is_valid(const struct row *row, const struct lnk_message *m, size_t tensors,
                           size_t count)
{
    if ((row->is_valid && !row->is_valid(m)) || (row->tensors.bytes > 0 && tensors == 0) ||
        count > row->tail.most || m->tail_bytes != count * item_bytes(row)) {
        return false;
    }
    for (size_t i = 0; i < tensors; i++) {
        if (!tensor_is_valid(&m->tensor[i])) {
            return false;
        }
    }
    return row->tail.is < LINE || text_is_valid(m, row->tail.is == LINES);
}

/* The parts of a message without tensors. @bytes: of the first one */
static bool part_is_valid(const struct row *row, size_t parts, uint64_t bytes)
{
    return parts == 0
               ? row->part.most == 0 || row->part.may_lack
               : parts == 1 && bytes > 0 && bytes >= row->part.least && bytes <= row->part.most;
}

static int get_header(const void *first, size_t first_bytes, const size_t *part_bytes, size_t parts,
                      struct lnk_header *ret)
{
    const struct row *row;
    uint64_t payload = 0;

    if (first_bytes < sizeof(*ret)) {
        return LNK_E_MALFORMED;
    }
    memcpy(ret, first, sizeof(*ret));
    if (ret->version != LNK_VERSION) {
        return LNK_E_VERSION;
    }
    if (parts > LNK_PARTS_MAX || first_bytes > LNK_FIRST_MAX) {
        return LNK_E_TOO_BIG;
    }
    for (size_t i = 0; i < parts; i++) {
        if (part_bytes[i] > LNK_PAYLOAD_MAX - payload) {
            return LNK_E_TOO_BIG;
        }
        payload += part_bytes[i];
    }
    row = row_of(ret->type);
    if (!row || ret->part_count != parts || ret->payload_bytes != payload ||
        ret->body_bytes != first_bytes - sizeof(*ret) || ret->body_bytes < row->body_bytes) {
        return LNK_E_MALFORMED;
    }
    return 0;
}

int lnk_get(const void *first, size_t first_bytes, const size_t *part_bytes, size_t parts,
            struct lnk_message *ret)
{
    struct lnk_message m;
    const struct row *row;
    const uint8_t *at = first;
    size_t tensors, tensor_bytes, count;
    int rc = get_header(first, first_bytes, part_bytes, parts, &m.header);

    if (rc) {
        return rc;
    }
    row = &rows[m.header.type];
    at += sizeof(m.header);
    memcpy(&m.hello, at, row->body_bytes);
    at += row->body_bytes;
    tensors = count_of(&m, row->tensors);
    tensor_bytes = tensors * sizeof(struct lnk_tensor);
    count = count_of(&m, row->tail.count);
    m.tail_bytes = count * item_bytes(row);
    if (tensors > LNK_PARTS_MAX ||
        m.header.body_bytes - row->body_bytes != tensor_bytes + m.tail_bytes) {
        return LNK_E_MALFORMED;
    }
    memcpy(m.tensor, at, tensor_bytes);
    m.tail = at + tensor_bytes;
    if (!first_is_valid(row, &m, tensors, count) ||
        (tensors ? parts != tensors : !part_is_valid(row, parts, m.header.payload_bytes))) {
        return LNK_E_MALFORMED;
    }
    for (size_t i = 0; i < tensors; i++) {
        if (part_bytes[i] != m.tensor[i].bytes) {
            return LNK_E_MALFORMED;
        }
    }
    memcpy(ret, &m, offsetof(struct lnk_message, tensor) + tensor_bytes);
    ret->tail = m.tail;
    ret->tail_bytes = m.tail_bytes;
    ret->part = NULL;
    return 0;
}

size_t lnk_put(const struct lnk_message *m, uint64_t payload_bytes, uint8_t ret[LNK_FIRST_MAX])
{
    struct lnk_header header = {.type = m->header.type, .version = LNK_VERSION};
    const struct row *row = row_of(header.type);
    size_t tensors, tensor_bytes, count;

    if (!row) {
        return 0;
    }
    tensors = count_of(m, row->tensors);
    tensor_bytes = tensors * sizeof(struct lnk_tensor);
    count = m->tail_bytes / item_bytes(row);
    /* What the other board would refuse is not sent. */
    if (tensors > LNK_PARTS_MAX || !first_is_valid(row, m, tensors, count)) {
        return 0;
    }
    header.part_count = (uint8_t)(tensors ? tensors : payload_bytes > 0);
    header.payload_bytes = tensors ? 0 : payload_bytes;
    for (size_t i = 0; i < tensors; i++) {
        header.payload_bytes += m->tensor[i].bytes;
    }
    if (tensors ? header.payload_bytes > LNK_PAYLOAD_MAX
                : !part_is_valid(row, header.part_count, payload_bytes)) {
        return 0;
    }
    header.body_bytes = (uint32_t)(row->body_bytes + tensor_bytes + m->tail_bytes);
    memcpy(ret, &header, sizeof(header));
    ret += sizeof(header);
    memcpy(ret, &m->hello, row->body_bytes);
    memcpy(ret + row->tail.count.at - offsetof(struct lnk_message, hello), &count,
           row->tail.count.bytes);
    ret += row->body_bytes;
    memcpy(ret, m->tensor, tensor_bytes);
    if (m->tail_bytes > 0) {
        memcpy(ret + tensor_bytes, m->tail, m->tail_bytes);
    }
    return sizeof(header) + header.body_bytes;
}

uint64_t lnk_number(const struct lnk_message *m, size_t i)
{
    uint64_t n;

    memcpy(&n, m->tail + i * sizeof(n), sizeof(n));
    return n;
}
