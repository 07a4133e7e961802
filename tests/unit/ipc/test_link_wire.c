/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between boards: known bytes, round trips, every truncated length, hostile values. */
#include "apps/link/wire/messages.h"
#include "tests/harness.h"

/* What other builds send: sizes and offsets stay. */
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
AT(lnk_hello, reserved, 48);
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
IS(lnk_tensor, 48);
AT(lnk_tensor, is_picture, 2);
AT(lnk_tensor, dim, 8);
AT(lnk_tensor, bytes, 40);
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
IS(lnk_cancel, 16);
AT(lnk_cancel, frame, 8);

/* Writes and reads; the sizes of parts follow from the message. Return: what lnk_get() returned. */
static uint8_t bytes[LNK_FIRST_MAX];
static size_t written, part_bytes[LNK_PARTS_MAX], part_count;

static int put_get(const struct lnk_message *m, uint64_t payload, struct lnk_message *ret)
{
    size_t tensors = m->header.type == LNK_FRAME    ? m->frame.tensor_count
                     : m->header.type == LNK_ANSWER ? m->answer.tensor_count
                                                    : 0;

    written = lnk_put(m, payload, bytes);
    if (written == 0) {
        return -1;
    }
    part_count = tensors ? tensors : payload > 0;
    part_bytes[0] = (size_t)payload;
    for (size_t i = 0; i < tensors; i++) {
        part_bytes[i] = (size_t)m->tensor[i].bytes;
    }
    return lnk_get(bytes, written, part_bytes, part_count, ret);
}

static struct lnk_tensor tensor(uint8_t dtype, uint32_t a, uint32_t b)
{
    struct lnk_tensor t = {.dtype = dtype, .rank = 2, .dim = {a, b}};

    lnk_tensor_bytes(&t, &t.bytes);
    return t;
}

static struct lnk_message frame_message(void)
{
    struct lnk_message m = {.header.type = LNK_FRAME};

    m.frame = (struct lnk_frame){.stream = 0x11223344,
                                 .epoch = 5,
                                 .frame = 0x0102030405060708,
                                 .left_ns = 9,
                                 .hop = 0x0a0b,
                                 .tensor_count = 2};
    m.tensor[0] = tensor(LNK_F32, 3, 4);
    m.tensor[1] = tensor(LNK_I8, 7, 1);
    return m;
}

TEST(golden_frame)
{
    static const uint8_t golden[] = {
        3,    0,    1,    2,    0x80, 0, 0, 0,
        0x37, 0,    0,    0,    0,    0, 0, 0, /* header: 48 + 7 bytes */
        0x44, 0x33, 0x22, 0x11, 5,    0, 0, 0,
        8,    7,    6,    5,    4,    3, 2, 1, /* stream, epoch, frame */
        9,    0,    0,    0,    0,    0, 0, 0,
        0x0b, 0x0a, 2,    0,    0,    0, 0, 0, /* left, hop, count */
        1,    2,    0,    0,    0,    0, 0, 0, /* f32, rank 2 */
        3,    0,    0,    0,    4,    0, 0, 0,
    };
    struct lnk_message m = frame_message(), got;

    T_EQ(put_get(&m, 0, &got), 0);
    T_EQ(written, 16 + 32 + 2 * 48);
    for (size_t i = 0; i < sizeof(golden); i++) {
        if (bytes[i] != golden[i]) {
            T_FAIL("byte %zu: %#x against %#x", i, bytes[i], golden[i]);
        }
    }
    T_EQ(bytes[16 + 32 + 48], LNK_I8);
    T_EQ(bytes[16 + 32 + 48 + 8], 7);
    T_EQ(got.frame.frame, m.frame.frame);
    T_EQ(got.tensor[1].bytes, 7);
}

TEST(golden_hello)
{
    struct lnk_message m = {.header.type = LNK_HELLO}, got;

    m.hello = (struct lnk_hello){
        .version_min = 1, .version_max = 2, .features = 3, .instance = 4, .name = "b2"};
    m.hello.reserved[0] = 0xaa;
    m.hello.reserved[63] = 0xbb;
    T_EQ(put_get(&m, 0, &got), 0);
    T_EQ(written, 128);
    T_EQ(bytes[0], LNK_HELLO);
    T_EQ(bytes[4], 112);
    T_EQ(bytes[16], 1);
    T_EQ(bytes[18], 2);
    T_EQ(memcmp(bytes + 32, "b2\0", 3), 0);
    T_EQ(bytes[64], 0xaa);
    T_EQ(bytes[127], 0xbb);
    T_STR(got.hello.name, "b2");
}

/* One valid message of each type; sizes vary with the seed. */
static struct lnk_message any_message(uint16_t type, uint64_t *ret_payload)
{
    static uint8_t text[LNK_PLAN_TEXT_MAX];
    static uint64_t leaves[LNK_LEAVES_MAX];
    struct lnk_message m = {.header.type = type};

    *ret_payload = 0;
    memset(text, 'x', sizeof(text));
    switch (type) {
    case LNK_HELLO:
        m.hello.version_max = (uint16_t)t_random();
        m.hello.instance = t_random();
        snprintf(m.hello.name, sizeof(m.hello.name), "board-%d", (int)t_range(0, 99999));
        break;
    case LNK_PLAN:
        m.plan.last_unit = (uint32_t)t_random();
        m.plan.hop_count = 1;
        m.tail = text;
        m.tail_bytes = (size_t)t_range(0, LNK_PLAN_TEXT_MAX);
        break;
    case LNK_FRAME:
        m.frame.frame = t_random();
        m.frame.tensor_count = (uint8_t)t_range(1, LNK_PARTS_MAX);
        m.frame.way = (uint32_t)t_random();
        m.tail = (const uint8_t *)leaves;
        m.tail_bytes = 8 * (size_t)t_range(0, LNK_HOPS_MAX);
        break;
    case LNK_ANSWER:
        m.answer.service_ns = t_random();
        m.answer.tensor_count = (uint8_t)t_range(1, LNK_PARTS_MAX);
        m.tail = (const uint8_t *)leaves;
        m.tail_bytes = 8 * (size_t)t_range(0, LNK_HOPS_MAX);
        break;
    case LNK_ERROR:
        m.error.status = (uint16_t)t_range(1, 65535);
        m.tail = text;
        m.tail_bytes = (size_t)t_range(0, LNK_TEXT_MAX);
        break;
    case LNK_CREDIT:
        m.credit.credits = (uint32_t)t_random();
        m.credit.depth = (uint16_t)t_random();
        m.credit.frame_bytes = t_random();
        break;
    case LNK_PING:
        *ret_payload = t_random() % 2 ? LNK_PING_LARGE_BYTES : 0;
        break;
    case LNK_WANT:
        m.tail = (const uint8_t *)leaves;
        m.tail_bytes = 8 * (size_t)t_range(0, LNK_LEAVES_MAX);
        leaves[t_range(0, LNK_LEAVES_MAX - 1)] = 12345;
        break;
    case LNK_CANCEL:
        m.cancel = (struct lnk_cancel){(uint32_t)t_random(), (uint32_t)t_random(), t_random()};
        break;
    case LNK_BOARD:
        *ret_payload = (uint64_t)t_range(1, LNK_BOARD_BYTES);
        break;
    case LNK_LEAF:
        m.leaf.leaf = t_random();
        *ret_payload = (uint64_t)t_range(1, LNK_LEAF_BYTES);
        break;
    default:
        break;
    }
    for (size_t i = 0; i < LNK_PARTS_MAX; i++) {
        m.tensor[i] =
            tensor((uint8_t)t_range(1, 6), (uint32_t)t_range(1, 300), (uint32_t)t_range(1, 300));
    }
    return m;
}

TEST(round_trips_and_truncations)
{
    for (int run = 0; run < t_times(30); run++) {
        for (uint16_t type = 1; type < LNK_TYPE_COUNT; type += type == 10 ? 2 : 1) {
            uint64_t payload;
            struct lnk_message m = any_message(type, &payload), got;
            uint8_t again[LNK_FIRST_MAX], *exact;

            T_EQ(put_get(&m, payload, &got), 0);
            T_EQ(got.header.type, type);
            T_EQ(got.tail_bytes, m.tail_bytes);
            T_EQ(lnk_put(&got, payload, again), written);
            T_EQ(memcmp(again, bytes, written), 0);
            for (size_t n = 0; n < written; n += n < 160 ? 1 : 61) {
                exact = malloc(n + 1);
                memcpy(exact, bytes, n);
                T_EQ(lnk_get(exact, n, part_bytes, part_count, &got), LNK_E_MALFORMED);
                free(exact);
            }
            memcpy(again, bytes, written);
            again[written < LNK_FIRST_MAX ? written : 0] = 0;
            if (written < LNK_FIRST_MAX) { /* one byte more */
                T_EQ(lnk_get(again, written + 1, part_bytes, part_count, &got), LNK_E_MALFORMED);
            }
        }
    }
}

#define REFUSED(change)                                                                            \
    do {                                                                                           \
        struct lnk_message r_m = frame_message(), r_got;                                           \
        struct lnk_header r_h;                                                                     \
        struct lnk_tensor r_t;                                                                     \
        T_EQ(put_get(&r_m, 0, &r_got), 0);                                                         \
        memcpy(&r_h, bytes, sizeof(r_h));                                                          \
        memcpy(&r_t, bytes + 16 + 32, sizeof(r_t));                                                \
        change;                                                                                    \
        memcpy(bytes, &r_h, sizeof(r_h));                                                          \
        memcpy(bytes + 16 + 32, &r_t, sizeof(r_t));                                                \
        T_NE(lnk_get(bytes, written, part_bytes, part_count, &r_got), 0);                          \
    } while (0)

TEST(hostile_frames)
{
    struct lnk_message m = frame_message(), got;

    REFUSED(r_h.version = 2);
    REFUSED(r_h.type = 0);
    REFUSED(r_h.type = 11);
    REFUSED(r_h.type = LNK_TYPE_COUNT);
    REFUSED(r_h.type = LNK_PING);
    REFUSED(r_h.part_count = 1);
    REFUSED(r_h.body_bytes++);
    REFUSED(r_h.body_bytes = UINT32_MAX);
    REFUSED(r_h.payload_bytes++);
    REFUSED(r_t.dtype = 0);
    REFUSED(r_t.dtype = 7);
    REFUSED(r_t.is_picture = 1);
    REFUSED(r_t.is_picture = 2);
    REFUSED(r_t.rank = 9);
    REFUSED(r_t.rank = 1);
    REFUSED(r_t.dim[0] = 0);
    REFUSED(r_t.dim[0] = UINT32_MAX);
    REFUSED((r_t.dim[0] = r_t.dim[1] = UINT32_MAX, r_t.rank = 8, r_t.dim[2] = UINT32_MAX));
    REFUSED(r_t.bytes++);
    REFUSED(r_t.reserved = 1);
    REFUSED(r_t.reserved2 = 1);
    REFUSED(part_bytes[0]++);
    REFUSED(part_bytes[0] = SIZE_MAX);
    REFUSED((part_bytes[0]++, part_bytes[1]--));
    REFUSED(part_count = 1);
    REFUSED(part_count = LNK_PARTS_MAX + 1);
    REFUSED(bytes[16 + 26] = 0);  /* no tensors */
    REFUSED(bytes[16 + 26] = 17); /* more than parts */
    REFUSED(bytes[16 + 26] = 255);
    m.tensor[1].bytes++;
    T_EQ(put_get(&m, 0, &got), -1);
}

TEST(outcomes_differ)
{
    struct lnk_message m = frame_message(), got;
    size_t too_big[LNK_PARTS_MAX + 1] = {LNK_PAYLOAD_MAX, 1};

    T_EQ(put_get(&m, 0, &got), 0);
    T_EQ(lnk_get(bytes, written, too_big, 2, &got), LNK_E_TOO_BIG);
    T_EQ(lnk_get(bytes, written, part_bytes, LNK_PARTS_MAX + 1, &got), LNK_E_TOO_BIG);
    bytes[2] = 9;
    T_EQ(lnk_get(bytes, written, part_bytes, part_count, &got), LNK_E_VERSION);
    T_EQ(lnk_get(bytes, 15, part_bytes, part_count, &got), LNK_E_MALFORMED);
}

TEST(hostile_texts_and_names)
{
    struct lnk_message m = {.header.type = LNK_ERROR}, got;

    m.error.status = 4;
    m.tail = (const uint8_t *)"no\nsuch";
    m.tail_bytes = 7;
    T_EQ(put_get(&m, 0, &got), -1);
    m.tail = (const uint8_t *)"\x1b[2J";
    m.tail_bytes = 4;
    T_EQ(put_get(&m, 0, &got), -1);
    m.tail = (const uint8_t *)"no such model";
    m.tail_bytes = 13;
    T_EQ(put_get(&m, 0, &got), 0);
    m.error.status = 0;
    T_EQ(put_get(&m, 0, &got), -1);
    m = (struct lnk_message){.header.type = LNK_HELLO};
    T_EQ(put_get(&m, 0, &got), -1); /* no name */
    memset(m.hello.name, 'a', sizeof(m.hello.name));
    T_EQ(put_get(&m, 0, &got), -1); /* no end */
    m.hello.name[31] = 0;
    T_EQ(put_get(&m, 0, &got), 0);
    m.hello.name[3] = 0; /* something behind the end */
    T_EQ(put_get(&m, 0, &got), -1);
    m.hello = (struct lnk_hello){.version_min = 2, .version_max = 1, .name = "a"};
    T_EQ(put_get(&m, 0, &got), -1);
}

TEST(plans_have_lines_and_ends)
{
    struct lnk_message m = {.header.type = LNK_PLAN}, got;

    T_EQ(put_get(&m, 0, &got), 0); /* epochs are over */
    m.plan.hop = 1;
    T_EQ(put_get(&m, 0, &got), -1);
    m.plan.hop_count = 2;
    m.tail = (const uint8_t *)"a-12345678\n0-3@0011223344556677*1\n";
    m.tail_bytes = strlen((const char *)m.tail);
    T_EQ(put_get(&m, 0, &got), 0);
    m.tail = (const uint8_t *)"a\tb";
    m.tail_bytes = 3;
    T_EQ(put_get(&m, 0, &got), -1);
    m = frame_message();
    m.tail = (const uint8_t *)"\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0";
    m.tail_bytes = 16;
    T_EQ(put_get(&m, 0, &got), 0);
    T_EQ(got.frame.time_count, 2);
    T_EQ(lnk_number(&got, 1), 2);
    m.tail_bytes = 15;
    T_EQ(put_get(&m, 0, &got), -1);
}

/* As another board reads them; nothing beside them changes. */
TEST(tails_are_counted)
{
    struct lnk_message m, got;
    static const struct {
        uint16_t type;
        size_t bytes; /* of its struct */
    } all[] = {{LNK_PLAN, sizeof(m.plan)},
               {LNK_FRAME, sizeof(m.frame)},
               {LNK_ANSWER, sizeof(m.answer)},
               {LNK_ERROR, sizeof(m.error)},
               {LNK_WANT, sizeof(m.want)}};
    uint64_t payload;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        m = any_message(all[i].type, &payload);
        T_EQ(put_get(&m, payload, &got), 0);
        lnk_count_tail(&m);
        T_EQ(memcmp(&m.hello, &got.hello, all[i].bytes), 0);
    }
    m = (struct lnk_message){.header.type = LNK_CANCEL, .cancel = {1, 2, 3}};
    lnk_count_tail(&m);
    T_EQ(m.cancel.stream, 1);
    T_EQ(m.cancel.frame, 3);
}

TEST(parts_by_type)
{
    struct lnk_message m = {.header.type = LNK_PING}, got;

    T_EQ(put_get(&m, 0, &got), 0);
    T_EQ(put_get(&m, LNK_PING_LARGE_BYTES, &got), 0);
    T_EQ(put_get(&m, 1, &got), -1);
    m.header.type = LNK_PONG;
    T_EQ(put_get(&m, LNK_PING_LARGE_BYTES, &got), -1);
    m.header.type = LNK_LEAF;
    T_EQ(put_get(&m, 0, &got), -1);
    T_EQ(put_get(&m, LNK_LEAF_BYTES + 1, &got), -1);
    T_EQ(put_get(&m, LNK_LEAF_BYTES, &got), 0);
    m.header.type = LNK_BOARD;
    T_EQ(put_get(&m, 0, &got), -1);
    T_EQ(put_get(&m, LNK_BOARD_BYTES + 1, &got), -1);
    T_EQ(put_get(&m, LNK_BOARD_BYTES, &got), 0);
    m.header.type = LNK_WANT;
    T_EQ(put_get(&m, 0, &got), 0); /* the list of leaves */
    T_EQ(got.want.leaf_count, 0);
    m.tail = (const uint8_t *)"\7\0\0\0\0\0\0\0";
    m.tail_bytes = 8;
    T_EQ(put_get(&m, 0, &got), 0);
    T_EQ(lnk_number(&got, 0), 7);
    m.tail_bytes = 7;
    T_EQ(put_get(&m, 0, &got), -1);
}

TEST_MAIN()
