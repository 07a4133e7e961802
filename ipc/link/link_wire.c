/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/link/link_wire.h"

#include <math.h>
#include <string.h>

#include "base.h"
#include "ipc/boards/picture_room.h"

/* A struct is its bytes. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the messages are little-endian");
#define AT(type, member, offset)                                                                   \
    _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)
#define IS(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type)
IS(lnk_header, 16);
AT(lnk_header, version, 2);
AT(lnk_header, body_bytes, 4);
AT(lnk_header, payload_bytes, 8);
IS(lnk_hello, 112);
AT(lnk_hello, features, 4);
AT(lnk_hello, instance, 8);
AT(lnk_hello, name, 16);
AT(lnk_hello, model, 48);
AT(lnk_hello, border, 80);
IS(lnk_plan, 88);
AT(lnk_plan, first_unit, 8);
AT(lnk_plan, hop, 16);
AT(lnk_plan, text_bytes, 20);
AT(lnk_plan, model, 24);
IS(lnk_frame, 32);
AT(lnk_frame, frame, 8);
AT(lnk_frame, left_ns, 16);
AT(lnk_frame, hop, 24);
AT(lnk_frame, tensor_count, 26);
AT(lnk_frame, way, 28);
IS(lnk_tensor, 56);
AT(lnk_tensor, scale, 4);
AT(lnk_tensor, zero, 8);
AT(lnk_tensor, dim, 16);
AT(lnk_tensor, bytes, 48);
IS(lnk_answer, 40);
AT(lnk_answer, queue_ns, 16);
AT(lnk_answer, hop, 32);
AT(lnk_answer, tensor_count, 34);
AT(lnk_answer, way, 36);
IS(lnk_error, 24);
AT(lnk_error, frame, 8);
AT(lnk_error, hop, 16);
AT(lnk_error, text_bytes, 20);
AT(lnk_error, way, 22);
IS(lnk_credit, 24);
AT(lnk_credit, credits, 12);
AT(lnk_credit, frame_bytes, 16);
IS(lnk_ping, 16);
IS(lnk_want, 40);
AT(lnk_want, leaf_count, 32);
IS(lnk_leaf, 40);
AT(lnk_leaf, leaf, 32);
IS(lnk_bye, 8);
IS(lnk_cancel, 16);
AT(lnk_cancel, frame, 8);
#undef AT
#undef IS

static const size_t body_sizes[LNK_TYPE_COUNT] = {
    [LNK_HELLO] = sizeof(struct lnk_hello), [LNK_PLAN] = sizeof(struct lnk_plan),
    [LNK_FRAME] = sizeof(struct lnk_frame), [LNK_ANSWER] = sizeof(struct lnk_answer),
    [LNK_ERROR] = sizeof(struct lnk_error), [LNK_CREDIT] = sizeof(struct lnk_credit),
    [LNK_PING] = sizeof(struct lnk_ping),   [LNK_PONG] = sizeof(struct lnk_ping),
    [LNK_WANT] = sizeof(struct lnk_want),   [LNK_LEAF] = sizeof(struct lnk_leaf),
    [LNK_BYE] = sizeof(struct lnk_bye),     [LNK_CANCEL] = sizeof(struct lnk_cancel),
};

/* How many tensors a message of this type counts. */
static size_t tensors_of(const struct lnk_message *m)
{
    return m->header.type == LNK_FRAME    ? m->frame.tensor_count
           : m->header.type == LNK_ANSWER ? m->answer.tensor_count
                                          : 0;
}

/* Bytes behind the struct and the tensors that the struct announces. */
static size_t tail_of(const struct lnk_message *m)
{
    switch (m->header.type) {
    case LNK_PLAN:
        return m->plan.text_bytes;
    case LNK_FRAME:
        return m->frame.time_count * sizeof(uint64_t);
    case LNK_ANSWER:
        return m->answer.time_count * sizeof(uint64_t);
    case LNK_ERROR:
        return m->error.text_bytes;
    case LNK_WANT:
        return (size_t)m->want.leaf_count * sizeof(uint64_t);
    default:
        return 0;
    }
}

bool lnk_tensor_bytes(const struct lnk_tensor *t, uint64_t *ret)
{
    static const uint8_t dtype_bytes[] = {
        [LNK_F32] = 4, [LNK_I32] = 4, [LNK_I64] = 8, [LNK_U8] = 1, [LNK_I8] = 1, [LNK_BOOL] = 1};
    uint64_t bytes;

    if (t->encoding == LNK_AS_PICTURE) {
        bytes = t->dtype == LNK_U8 && t->rank == 3 && t->reserved == 0
                    ? brd_picture_bytes(t->dim[0], t->dim[2], t->dim[1])
                    : 0;
        *ret = bytes;
        return bytes > 0 && bytes <= LNK_PAYLOAD_MAX;
    }
    if (t->dtype < LNK_F32 || t->dtype > LNK_BOOL || t->rank > LNK_RANK_MAX ||
        t->encoding > LNK_AS_I8 || (t->encoding != LNK_AS_IS && t->dtype != LNK_F32)) {
        return false;
    }
    bytes = t->encoding == LNK_AS_F16 ? 2 : t->encoding == LNK_AS_I8 ? 1 : dtype_bytes[t->dtype];
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
    if (t->encoding != LNK_AS_I8) {
        return t->scale == 0 && t->zero == 0;
    }
    return isfinite(t->scale) && t->scale > 0 && t->zero >= -128 && t->zero <= 127;
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

/* No control characters: texts are shown and logged. A plan has lines. Bytes above ASCII pass. */
static bool text_is_valid(const struct lnk_message *m)
{
    if (m->header.type != LNK_PLAN && m->header.type != LNK_ERROR) {
        return true;
    }
    for (size_t i = 0; i < m->tail_bytes; i++) {
        uint8_t c = m->tail[i];

        if ((c < ' ' && !(c == '\n' && m->header.type == LNK_PLAN)) || c == 0x7f) {
            return false;
        }
    }
    return true;
}

/* The checks of a type that need more than sizes. */
static bool body_is_valid(const struct lnk_message *m)
{
    switch (m->header.type) {
    case LNK_HELLO:
        return m->hello.version_min <= m->hello.version_max && name_is_valid(m->hello.name);
    case LNK_PLAN:
        return m->plan.first_unit <= m->plan.last_unit &&
               (m->plan.hop < m->plan.hop_count || (m->plan.hop == 0 && m->plan.hop_count == 0)) &&
               m->plan.text_bytes <= LNK_PLAN_TEXT_MAX;
    case LNK_FRAME:
        return m->frame.tensor_count > 0 && m->frame.tensor_count <= LNK_PARTS_MAX &&
               m->frame.time_count <= LNK_HOPS_MAX;
    case LNK_ANSWER:
        return m->answer.tensor_count > 0 && m->answer.tensor_count <= LNK_PARTS_MAX &&
               m->answer.time_count <= LNK_HOPS_MAX;
    case LNK_ERROR:
        return m->error.status != 0 && m->error.text_bytes <= LNK_TEXT_MAX;
    case LNK_WANT:
        return m->want.leaf_count <= LNK_LEAVES_MAX && m->want.reserved == 0;
    default:
        return true;
    }
}

/* Do the payload parts fit the type? Their sum is checked before. */
static bool parts_are_valid(const struct lnk_message *m, const size_t *part_bytes, size_t parts)
{
    switch (m->header.type) {
    case LNK_FRAME:
    case LNK_ANSWER:
        if (parts != tensors_of(m)) {
            return false;
        }
        for (size_t i = 0; i < parts; i++) {
            if (part_bytes[i] != m->tensor[i].bytes) {
                return false;
            }
        }
        return true;
    case LNK_PING:
        return parts == 0 || (parts == 1 && part_bytes[0] == LNK_PING_LARGE_BYTES);
    case LNK_LEAF:
        return parts == 1 && part_bytes[0] > 0 && part_bytes[0] <= LNK_LEAF_BYTES;
    case LNK_BOARD:
        return parts == 1 && part_bytes[0] > 0 && part_bytes[0] <= LNK_BOARD_BYTES;
    default:
        return parts == 0;
    }
}

static int get_header(const void *first, size_t first_bytes, const size_t *part_bytes, size_t parts,
                      struct lnk_header *ret)
{
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
    if (ret->type == 0 || ret->type >= LNK_TYPE_COUNT || ret->part_count != parts ||
        ret->payload_bytes != payload || ret->body_bytes != first_bytes - sizeof(*ret) ||
        ret->body_bytes < body_sizes[ret->type]) {
        return LNK_E_MALFORMED;
    }
    return 0;
}

int lnk_get(const void *first, size_t first_bytes, const size_t *part_bytes, size_t parts,
            struct lnk_message *ret)
{
    struct lnk_message m;
    const uint8_t *at = first;
    size_t left, tensors;
    int rc = get_header(first, first_bytes, part_bytes, parts, &m.header);

    if (rc) {
        return rc;
    }
    at += sizeof(m.header);
    memcpy(&m.hello, at, body_sizes[m.header.type]);
    at += body_sizes[m.header.type];
    left = first_bytes - sizeof(m.header) - body_sizes[m.header.type];
    if (!body_is_valid(&m)) {
        return LNK_E_MALFORMED;
    }
    tensors = tensors_of(&m);
    if (left != tensors * sizeof(struct lnk_tensor) + tail_of(&m)) {
        return LNK_E_MALFORMED;
    }
    memcpy(m.tensor, at, tensors * sizeof(struct lnk_tensor));
    for (size_t i = 0; i < tensors; i++) {
        if (!tensor_is_valid(&m.tensor[i])) {
            return LNK_E_MALFORMED;
        }
    }
    m.tail = at + tensors * sizeof(struct lnk_tensor);
    m.tail_bytes = tail_of(&m);
    if (!text_is_valid(&m) || !parts_are_valid(&m, part_bytes, parts)) {
        return LNK_E_MALFORMED;
    }
    memcpy(ret, &m, offsetof(struct lnk_message, tensor) + tensors * sizeof(struct lnk_tensor));
    ret->tail = m.tail;
    ret->tail_bytes = m.tail_bytes;
    ret->part = NULL;
    return 0;
}

size_t lnk_put(const struct lnk_message *m, uint64_t payload_bytes, uint8_t ret[LNK_FIRST_MAX])
{
    uint16_t type = m->header.type;
    size_t tensors = tensors_of(m), body, part_bytes[LNK_PARTS_MAX];
    struct lnk_message whole, check;

    if (type == 0 || type >= LNK_TYPE_COUNT || tensors > LNK_PARTS_MAX ||
        m->tail_bytes > LNK_PLAN_TEXT_MAX) {
        return 0;
    }
    memcpy(&whole, m, offsetof(struct lnk_message, tensor));
    if (type == LNK_PLAN) {
        whole.plan.text_bytes = (uint32_t)m->tail_bytes;
    } else if (type == LNK_ERROR) {
        whole.error.text_bytes = (uint16_t)m->tail_bytes;
    } else if (type == LNK_WANT) {
        whole.want.leaf_count = (uint32_t)(m->tail_bytes / sizeof(uint64_t));
    } else if (type == LNK_FRAME) {
        whole.frame.time_count = (uint8_t)base_min(m->tail_bytes / sizeof(uint64_t), 255u);
    } else if (type == LNK_ANSWER) {
        whole.answer.time_count = (uint8_t)base_min(m->tail_bytes / sizeof(uint64_t), 255u);
    }
    part_bytes[0] = (size_t)payload_bytes;
    for (size_t i = 0; i < tensors; i++) {
        part_bytes[i] = (size_t)m->tensor[i].bytes;
        payload_bytes = i ? payload_bytes + part_bytes[i] : part_bytes[i];
    }
    body = body_sizes[type] + tensors * sizeof(struct lnk_tensor) + m->tail_bytes;
    whole.header = (struct lnk_header){
        .type = type,
        .version = LNK_VERSION,
        .part_count = (uint8_t)(tensors ? tensors : payload_bytes > 0),
        .body_bytes = (uint32_t)body,
        .payload_bytes = payload_bytes,
    };
    if (sizeof(whole.header) + body > LNK_FIRST_MAX) {
        return 0;
    }
    memcpy(ret, &whole.header, sizeof(whole.header));
    ret += sizeof(whole.header);
    memcpy(ret, &whole.hello, body_sizes[type]);
    memcpy(ret + body_sizes[type], m->tensor, tensors * sizeof(struct lnk_tensor));
    if (m->tail_bytes > 0) {
        memcpy(ret + body - m->tail_bytes, m->tail, m->tail_bytes);
    }
    ret -= sizeof(whole.header);
    body += sizeof(whole.header);
    /* What the other board would refuse is not sent. */
    return lnk_get(ret, body, part_bytes, whole.header.part_count, &check) == 0 ? body : 0;
}

static uint64_t number(const struct lnk_message *m, size_t i)
{
    uint64_t n;

    memcpy(&n, m->tail + i * sizeof(n), sizeof(n));
    return n;
}

uint64_t lnk_leaf_number(const struct lnk_message *want, size_t i)
{
    return number(want, i);
}

uint64_t lnk_hop_ns(const struct lnk_message *m, size_t i)
{
    return number(m, i);
}
