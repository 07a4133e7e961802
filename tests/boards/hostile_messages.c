/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/boards/hostile_messages.h"

#include <stdio.h>
#include <string.h>

#include "base/base.h"

/* Of all parts: zeros, or what was said last. */
static uint8_t bytes[1u << 20];

size_t hostile_below(struct hostile *h, size_t n)
{
    return n ? (size_t)(base_splitmix64(&h->random) % n) : 0;
}

/* Mostly small, sometimes extreme. */
static uint64_t any_number(struct hostile *h)
{
    static const uint64_t extremes[] = {0,          UINT16_MAX,     INT32_MAX,
                                        UINT32_MAX, UINT64_MAX - 1, UINT64_MAX};

    return hostile_below(h, 3) ? hostile_below(h, 5)
                               : extremes[hostile_below(h, base_array_count(extremes))];
}

static const char *any_text(struct hostile *h)
{
    const char *texts[] = {"",
                           h->print[0],
                           h->print[1],
                           h->print[2],
                           "\xff",
                           "caf\xc3",
                           "a sentence of the other board"};

    return texts[hostile_below(h, base_array_count(texts))];
}

/* The whole model on the receiver, a part of it there, or what cannot be. */
static void plan(struct hostile *h, size_t to, struct lnk_message *m, char *text, size_t room)
{
    static const char *const leaves[] = {"", "0-3,7", "0-18446744073709551615", ",", "9999999999"};
    static const char *const contents[] = {"digits", "..", "\xc3\xa9t\xc3\xa9", "digits#3-11", ""};
    const char *me = h->print[0], *it = h->print[to], *other = h->print[to == 1 ? 2 : 1];
    const char *content = hostile_below(h, 4) ? h->content : contents[hostile_below(h, 5)];
    const char *leaf = leaves[hostile_below(h, 3) ? 0 : hostile_below(h, 5)];
    char hops[512];

    m->plan.stream = (uint32_t)hostile_below(h, 3);
    m->plan.epoch = (uint32_t)hostile_below(h, 6);
    m->plan.last_unit = 11;
    m->plan.hop_count = 1;
    memcpy(m->plan.model, h->identity, hostile_below(h, 4) ? LNK_HASH_BYTES : 3);
    switch (hostile_below(h, 8)) {
    case 0: /* a chain through it, from and to us */
        snprintf(hops, sizeof(hops), "0-2@%s*1|3-7@%s*1|8-11@%s*1", me, it, me);
        m->plan.first_unit = 3;
        m->plan.last_unit = 7;
        m->plan.hop = 1;
        m->plan.hop_count = 3;
        break;
    case 1: /* and to another board, which has no such place */
        snprintf(hops, sizeof(hops), "0-2@%s*1|3-11@%s*1000+%s*1", it, other, me);
        m->plan.last_unit = 2;
        m->plan.hop_count = 2;
        break;
    case 2: /* a board that nobody knows */
        snprintf(hops, sizeof(hops), "0-2@%s*1|3-11@0123456789abcdef*1", it);
        m->plan.last_unit = 2;
        m->plan.hop_count = 2;
        break;
    case 3:
        snprintf(hops, sizeof(hops), "0-%ju@%s*%ju:%s", (uintmax_t)any_number(h), it,
                 (uintmax_t)any_number(h), any_text(h));
        m->plan.last_unit = (uint32_t)any_number(h);
        m->plan.hop_count = (uint16_t)any_number(h);
        break;
    case 4: /* epochs are over */
        m->plan = (struct lnk_plan){.stream = m->plan.stream, .epoch = m->plan.epoch};
        *hops = 0;
        break;
    default:
        snprintf(hops, sizeof(hops), "0-11@%s*1", it);
    }
    snprintf(text, room, hostile_below(h, 8) ? "%s\n%s\n%s" : "%s", content, hops, leaf);
    m->tail = (const uint8_t *)text;
    m->tail_bytes = strlen(text);
}

static void tensors(struct hostile *h, struct lnk_message *m, uint8_t *ret_count)
{
    *ret_count = (uint8_t)(hostile_below(h, 3) ? 1 : 1 + hostile_below(h, LNK_PARTS_MAX));
    for (size_t i = 0; i < *ret_count; i++) {
        struct lnk_tensor *t = &m->tensor[i];

        *t = (struct lnk_tensor){.dtype = LNK_F32, .rank = 4, .dim = {1, 1, 16, 16}};
        if (hostile_below(h, 3) == 0) {
            t->dim[3] = (uint32_t)(1 + hostile_below(h, 64));
            t->dtype = (uint8_t)(LNK_F32 + hostile_below(h, LNK_BOOL));
        }
        lnk_tensor_bytes(t, &t->bytes);
    }
}

/* What it says of itself. */
static size_t state(struct hostile *h, char *text, size_t room)
{
    size_t deep = 1 + hostile_below(h, 4000);

    if (hostile_below(h, 8) == 0) { /* deeper than any reader goes */
        memset(text, '[', deep);
        return deep;
    }
    return (size_t)snprintf(
        text, room,
        "{\"board\": \"%s\", \"known\": true, \"version\": \"%s\", \"memory_bytes\": %s, \"eps\": "
        "[{\"name\": \"%s\", \"cores\": %ju, \"speed\": %s}], \"links\": [{\"board\": \"%s\", "
        "\"up\": true, \"ns\": %ju, \"ns_per_byte\": 1e9}], \"costs\": [{\"content\": \"%s\", "
        "\"first_unit\": 0, \"units\": %ju, \"rows\": [{\"ep\": %ju, \"width\": 1, \"ns\": [1, "
        "2, 1e300, -1, null, \"x\", 1, 1, 1, 1, 1, 1]}]}]}",
        h->print[hostile_below(h, 3)], hostile_below(h, 3) ? "0.1.0" : "\\u001b[2J\\n",
        hostile_below(h, 3) ? "1e9" : "1e999", hostile_below(h, 3) ? "big" : "b\\u0007g",
        (uintmax_t)any_number(h), hostile_below(h, 4) ? "1.0" : "1e-300",
        h->print[hostile_below(h, 3)], (uintmax_t)any_number(h), h->content,
        hostile_below(h, 3) ? 12 : (uintmax_t)any_number(h), (uintmax_t)any_number(h));
}

/* A message that its receiver can read, whatever it says. Return: bytes of its part, if it has one
 * that is not a tensor's. */
static size_t valid(struct hostile *h, size_t to, struct lnk_message *m, char *text, size_t room)
{
    m->header.type = (uint16_t)(1 + hostile_below(h, LNK_TYPE_COUNT - 1));
    if (m->header.type == 11) { /* which is no type */
        m->header.type = LNK_BOARD;
    }
    m->tail = (const uint8_t *)text;
    switch (m->header.type) {
    case LNK_HELLO:
        m->hello.version_max = (uint16_t)(1 + hostile_below(h, 2));
        m->hello.version_min = (uint16_t)hostile_below(h, 2);
        m->hello.instance = 1 + hostile_below(h, 2);
        strcpy(m->hello.name, "evil");
        return 0;
    case LNK_PLAN:
        plan(h, to, m, text, room);
        return 0;
    case LNK_FRAME:
        tensors(h, m, &m->frame.tensor_count);
        m->frame.stream = (uint32_t)hostile_below(h, 3);
        m->frame.epoch = (uint32_t)hostile_below(h, 6);
        m->frame.frame = any_number(h);
        m->frame.left_ns = any_number(h);
        m->frame.hop = (uint16_t)(hostile_below(h, 4) ? hostile_below(h, 2) : any_number(h));
        m->frame.way = (uint32_t)any_number(h);
        m->tail_bytes = 8 * hostile_below(h, LNK_HOPS_MAX + 1);
        memset(text, 0xff, m->tail_bytes);
        return 0;
    case LNK_ANSWER:
        tensors(h, m, &m->answer.tensor_count);
        m->answer.stream = (uint32_t)any_number(h);
        m->answer.epoch = (uint32_t)any_number(h);
        m->answer.frame = any_number(h);
        m->answer.way = (uint32_t)any_number(h);
        return 0;
    case LNK_ERROR:
        m->error = (struct lnk_error){.stream = (uint32_t)any_number(h),
                                      .epoch = (uint32_t)any_number(h),
                                      .frame = any_number(h),
                                      .hop = (uint16_t)hostile_below(h, 3),
                                      .status = (uint16_t)(1 + hostile_below(h, 12))};
        m->tail = (const uint8_t *)any_text(h);
        m->tail_bytes = strlen((const char *)m->tail);
        return 0;
    case LNK_CREDIT:
        m->credit = (struct lnk_credit){.stream = (uint32_t)any_number(h),
                                        .epoch = (uint32_t)any_number(h),
                                        .depth = (uint16_t)any_number(h),
                                        .credits = (uint32_t)any_number(h),
                                        .frame_bytes = any_number(h)};
        return 0;
    case LNK_PING:
        m->ping.id = any_number(h);
        return hostile_below(h, 8) ? 0 : LNK_PING_LARGE_BYTES;
    case LNK_WANT:
        memcpy(m->want.model, h->identity, hostile_below(h, 3) ? LNK_HASH_BYTES : 3);
        m->tail_bytes = 8 * hostile_below(h, LNK_LEAVES_MAX + 1);
        memset(text, hostile_below(h, 2) ? 0 : 0xff, m->tail_bytes);
        return 0;
    case LNK_LEAF: /* that nobody has asked for, or that comes wrong */
        memcpy(m->leaf.model, h->identity, hostile_below(h, 3) ? LNK_HASH_BYTES : 3);
        m->leaf.leaf = any_number(h);
        return 1 + hostile_below(h, 2048);
    case LNK_BOARD:
        return state(h, (char *)bytes, sizeof(bytes));
    default:
        return 0;
    }
}

static void damage(struct hostile *h, struct hostile_message *m)
{
    for (size_t times = 1 + hostile_below(h, 4); times > 0 && m->first_bytes > 0; times--) {
        size_t at = hostile_below(h, m->first_bytes);

        switch (hostile_below(h, 5)) {
        case 0:
            m->first[at] ^= (uint8_t)(1u << hostile_below(h, 8));
            break;
        case 1:
            m->first[at] = (uint8_t)hostile_below(h, 256);
            break;
        case 2: /* an extreme number */
            memset(m->first + at, hostile_below(h, 2) ? 0xff : 0,
                   base_min((size_t)8, m->first_bytes - at));
            break;
        case 3:
            m->first_bytes = at;
            break;
        default: /* longer than it says */
            memset(m->first + m->first_bytes, 0, base_min(at, HOSTILE_FIRST_MAX - m->first_bytes));
            m->first_bytes += base_min(at, HOSTILE_FIRST_MAX - m->first_bytes);
        }
    }
}

/* Other parts than the first one says. */
static void damage_parts(struct hostile *h, struct hostile_message *m)
{
    m->count = hostile_below(h, LNK_PARTS_MAX + 1);
    for (size_t i = 0; i < m->count; i++) {
        size_t most = hostile_below(h, 16) ? 2048 : sizeof(bytes);

        m->part[i] = (struct lnk_bytes){bytes, hostile_below(h, most)};
    }
}

void hostile_any(struct hostile *h, size_t to, struct hostile_message *ret)
{
    static char text[LNK_PLAN_TEXT_MAX];
    struct lnk_message m = {.header.type = 0};
    size_t part = valid(h, to, &m, text, sizeof(text)), tensor_count = 0;

    if (m.header.type == LNK_FRAME || m.header.type == LNK_ANSWER) {
        tensor_count = m.header.type == LNK_FRAME ? m.frame.tensor_count : m.answer.tensor_count;
    }
    ret->first_bytes = lnk_put(&m, part, ret->first);
    ret->count = tensor_count ? tensor_count : part > 0;
    for (size_t i = 0; i < ret->count; i++) {
        ret->part[i] = (struct lnk_bytes){bytes, tensor_count ? (size_t)m.tensor[i].bytes : part};
    }
    if (hostile_below(h, 3) == 0) {
        damage(h, ret);
    }
    if (hostile_below(h, 12) == 0) {
        damage_parts(h, ret);
    }
    if (ret->first_bytes == 0) { /* the transport sends no part of nothing */
        ret->first[0] = 0;
        ret->first_bytes = 1;
    }
}
