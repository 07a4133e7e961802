/* SPDX-License-Identifier: Apache-2.0 */
/* The codec: known bytes, round trips, every truncated length, hostile values. */
#include "ipc/wire.h"
#include "tests/harness.h"

static void random_name(char name[IPC_NAME_BYTES])
{
    static const char *const letters[] = {"a", "Z", "0", " ", "-", "\xc3\xa9", "\xe2\x82\xac"};
    size_t used = 0, wanted = (size_t)t_range(0, IPC_NAME_BYTES - 1);

    memset(name, 0, IPC_NAME_BYTES);
    for (;;) {
        const char *l = letters[t_range(0, 6)];

        if (used + strlen(l) > wanted) {
            return;
        }
        memcpy(name + used, l, strlen(l));
        used += strlen(l);
    }
}

TEST(header_golden)
{
    static const uint8_t golden[IPC_HEADER_BYTES] = {0x40, 0, 0, 0, 7, 0, 1, 0, 0x78, 0x56, 0x34,
                                                     0x12, 0, 0, 3, 0, 8, 7, 6, 5,    4,    3,
                                                     2,    1, 1, 2, 3, 4, 5, 6, 7,    8};
    struct ipc_header h = {.length = 64,
                           .type = IPC_FRAME,
                           .version = 1,
                           .stream = 0x12345678,
                           .status = 3,
                           .frame = 0x0102030405060708,
                           .time_ns = 0x0807060504030201};
    struct ipc_header got;
    uint8_t b[IPC_HEADER_BYTES];

    memcpy(b, &h, sizeof(h));
    T_EQ(memcmp(b, golden, sizeof(b)), 0);
    T_EQ(ipc_get_header(b, &got), 0);
    T_EQ(memcmp(&got, &h, sizeof(h)), 0);
}

TEST(frame_golden)
{
    struct ipc_frame m = {.pool = 3,
                          .in_offset = 0x1122334455,
                          .in_bytes = 2,
                          .out_offset = 0x40,
                          .out_bytes = 4,
                          .deadline_ns = 0x8000000000000001,
                          .width = 5,
                          .height = 6,
                          .stride = 0xfffefdfc};
    static const uint8_t golden[IPC_FRAME_BYTES] = {
        [0] = 3,  [8] = 0x55,  [9] = 0x44,  [10] = 0x33, [11] = 0x22, [12] = 0x11,
        [16] = 2, [24] = 0x40, [32] = 4,    [40] = 1,    [47] = 0x80, [48] = 5,
        [52] = 6, [56] = 0xfc, [57] = 0xfd, [58] = 0xfe, [59] = 0xff,
    };
    uint8_t b[IPC_FRAME_BYTES];

    memcpy(b, &m, sizeof(m));
    T_EQ(memcmp(b, golden, sizeof(b)), 0);
}

/* One round trip, and every length below the struct's refused without reading past it (ASan and
 * valgrind see the exact allocation). */
#define ROUND_TRIP(kind, BYTES, m)                                                                 \
    do {                                                                                           \
        __typeof__(m) rt_got;                                                                      \
        uint8_t *rt_b = malloc(BYTES);                                                             \
        int rt_rc, rt_same;                                                                        \
        memcpy(rt_b, &(m), BYTES);                                                                 \
        memset(&rt_got, 0, sizeof(rt_got));                                                        \
        rt_rc = ipc_get_##kind(rt_b, BYTES, &rt_got);                                              \
        rt_same = memcmp(&rt_got, &(m), sizeof(m)) == 0;                                           \
        for (size_t rt_n = 0; rt_n < BYTES && rt_rc == 0; rt_n++) {                                \
            uint8_t *rt_short = malloc(rt_n ? rt_n : 1);                                           \
            memcpy(rt_short, rt_b, rt_n);                                                          \
            if (ipc_get_##kind(rt_short, rt_n, &rt_got) != IPC_E_MALFORMED) {                      \
                rt_rc = -1000 - (int)rt_n;                                                         \
            }                                                                                      \
            free(rt_short);                                                                        \
        }                                                                                          \
        free(rt_b);                                                                                \
        T_EQ(rt_rc, 0);                                                                            \
        T_TRUE(rt_same);                                                                           \
    } while (0)

TEST(round_trips_connection)
{
    for (int i = 0; i < 300; i++) {
        struct ipc_hello hello = {.version_min = (uint16_t)t_range(0, 9),
                                  .version_max = (uint16_t)t_range(9, 65535),
                                  .features = (uint32_t)t_random(),
                                  .reserved = t_random()};
        struct ipc_welcome welcome = {.version = (uint16_t)t_random(),
                                      .reserved = (uint16_t)t_random(),
                                      .features = (uint32_t)t_random(),
                                      .payload_max = (uint32_t)t_random(),
                                      .streams_max = (uint32_t)t_random(),
                                      .pool_bytes_max = t_random(),
                                      .instance = t_random()};
        struct ipc_open open_m = {.pixfmt = (uint32_t)t_range(0, IPC_PIX_COUNT - 1),
                                  .policy = (uint32_t)t_range(0, 2),
                                  .credits = (uint32_t)t_random(),
                                  .priority = (uint32_t)t_range(0, 3),
                                  .deadline_ns = t_random(),
                                  .input_dtype = (uint32_t)t_random(),
                                  .output_dtype = (uint32_t)t_random()};
        struct ipc_opened opened = {.credits = (uint32_t)t_range(0, IPC_CREDITS_MAX),
                                    .depth = (uint32_t)t_random(),
                                    .input_count = (uint32_t)t_range(0, 16),
                                    .output_count = (uint32_t)t_range(0, 16),
                                    .input_bytes = t_random(),
                                    .output_bytes = t_random(),
                                    .image_width = (uint32_t)t_random(),
                                    .image_height = (uint32_t)t_random(),
                                    .reserved = t_random()};

        random_name(hello.client);
        random_name(welcome.server);
        random_name(open_m.model);
        ROUND_TRIP(hello, IPC_HELLO_BYTES, hello);
        ROUND_TRIP(welcome, IPC_WELCOME_BYTES, welcome);
        ROUND_TRIP(open, IPC_OPEN_BYTES, open_m);
        ROUND_TRIP(opened, IPC_OPENED_BYTES, opened);
    }
}

TEST(round_trips_frames)
{
    for (int i = 0; i < 300; i++) {
        struct ipc_tensor tensor = {.dtype = (uint32_t)t_range(1, IPC_F16),
                                    .rank = (uint32_t)t_range(0, 8),
                                    .offset = t_random() >> 1,
                                    .rows_output = (uint32_t)t_random(),
                                    .rows_dim = (uint32_t)t_random()};
        struct ipc_pool pool = {.pool = (uint32_t)t_range(0, 3),
                                .reserved = (uint32_t)t_random(),
                                .bytes = (uint64_t)t_range(1, 1 << 30)};
        struct ipc_frame frame = {.pool = (uint32_t)t_range(0, 3),
                                  .reserved = (uint32_t)t_random(),
                                  .in_offset = t_random() >> 1,
                                  .in_bytes = t_random() >> 1,
                                  .out_offset = t_random() >> 1,
                                  .out_bytes = t_random() >> 1,
                                  .deadline_ns = t_random(),
                                  .width = (uint32_t)t_random(),
                                  .height = (uint32_t)t_random(),
                                  .stride = (uint32_t)t_random(),
                                  .reserved2 = (uint32_t)t_random()};
        struct ipc_result result = {.queue_ns = t_random(),
                                    .service_ns = t_random(),
                                    .done_ns = t_random(),
                                    .credits = (uint32_t)t_range(0, IPC_CREDITS_MAX),
                                    .epoch = (uint32_t)t_random(),
                                    .out_bytes = (uint64_t)t_range(0, 1 << 30),
                                    .depth = (uint32_t)t_random(),
                                    .reserved = (uint32_t)t_random()};
        struct ipc_credit credit = {(uint32_t)t_range(0, IPC_CREDITS_MAX), (uint32_t)t_random()};
        struct ipc_event_msg event = {(uint32_t)t_random(), (uint32_t)t_random(), t_random()};

        random_name(tensor.name);
        tensor.bytes = ipc_dtype_bytes(tensor.dtype);
        for (uint32_t k = 0; k < IPC_RANK_MAX; k++) {
            tensor.dim[k] = (uint32_t)t_range(0, 7);
            tensor.bytes *= k < tensor.rank ? tensor.dim[k] : 1;
        }
        ROUND_TRIP(tensor, IPC_TENSOR_BYTES, tensor);
        ROUND_TRIP(pool, IPC_POOL_BYTES, pool);
        ROUND_TRIP(frame, IPC_FRAME_BYTES, frame);
        ROUND_TRIP(result, IPC_RESULT_BYTES, result);
        ROUND_TRIP(credit, IPC_CREDIT_BYTES, credit);
        ROUND_TRIP(event, IPC_EVENT_BYTES, event);
    }
}

static int header_outcome(struct ipc_header h)
{
    uint8_t b[IPC_HEADER_BYTES];

    memcpy(b, &h, sizeof(h));
    return ipc_get_header(b, &h);
}

TEST(hostile_headers)
{
    struct ipc_header h = {.length = 64, .type = IPC_FRAME, .version = 1};

    T_EQ(header_outcome(h), 0);
    h.version = 0;
    T_EQ(header_outcome(h), IPC_E_VERSION);
    h.version = 2;
    T_EQ(header_outcome(h), IPC_E_VERSION);
    h.version = 1;
    h.length = 63;
    T_EQ(header_outcome(h), IPC_E_MALFORMED);
    h.length = IPC_EXTENDED_MAX;
    T_EQ(header_outcome(h), 0);
    h.length++;
    T_EQ(header_outcome(h), IPC_E_TOO_BIG);
    h.length = UINT32_MAX;
    T_EQ(header_outcome(h), IPC_E_TOO_BIG);
    h.type = IPC_INLINE;
    h.length = IPC_PAYLOAD_MAX;
    T_EQ(header_outcome(h), 0);
    h.length++;
    T_EQ(header_outcome(h), IPC_E_TOO_BIG);
    h.length = 64;
    h.fd_count = IPC_FDS_MAX;
    T_EQ(header_outcome(h), 0);
    h.fd_count++;
    T_EQ(header_outcome(h), IPC_E_MALFORMED);
    h.fd_count = 0;
    h.type = 0;
    T_EQ(header_outcome(h), IPC_E_MALFORMED);
    h.type = IPC_ERROR + 1;
    T_EQ(header_outcome(h), IPC_E_MALFORMED);
    h.type = 0x7fff;
    T_EQ(header_outcome(h), IPC_E_MALFORMED);
    h.type = 0x8000;
    T_EQ(header_outcome(h), 0);
    T_STR(ipc_type_name(h.type), "unknown");
    h.type = 0x8002;
    T_EQ(header_outcome(h), 0);
    h.length = IPC_UNKNOWN_MAX + 1;
    T_EQ(header_outcome(h), IPC_E_TOO_BIG);
}

TEST(header_is_filled_when_refused)
{
    struct ipc_header h = {.length = 7, .type = 99, .version = 9, .stream = 5, .frame = 6}, got;
    uint8_t b[IPC_HEADER_BYTES];

    memcpy(b, &h, sizeof(h));
    T_EQ(ipc_get_header(b, &got), IPC_E_VERSION);
    T_EQ(memcmp(&h, &got, sizeof(h)), 0);
}

static int open_with_name(const char *bytes, size_t count)
{
    uint8_t b[IPC_OPEN_BYTES] = {0};
    struct ipc_open m;

    memcpy(b, bytes, count);
    return ipc_get_open(b, sizeof(b), &m);
}

TEST(hostile_names)
{
    char full[IPC_NAME_BYTES];

    memset(full, 'x', sizeof(full));
    T_EQ(open_with_name(full, 63), 0);
    T_EQ(open_with_name(full, 64), IPC_E_MALFORMED);
    T_EQ(open_with_name("r\xc3\xa9seau \xf0\x9f\x90\x9d", 13), 0);
    T_EQ(open_with_name("\xc3", 1), IPC_E_MALFORMED);
    T_EQ(open_with_name("\xc0\xaf", 2), IPC_E_MALFORMED);         /* overlong */
    T_EQ(open_with_name("\xed\xa0\x80", 3), IPC_E_MALFORMED);     /* surrogate */
    T_EQ(open_with_name("\xf5\x80\x80\x80", 4), IPC_E_MALFORMED); /* above U+10FFFF */
    T_EQ(open_with_name("\x80", 1), IPC_E_MALFORMED);
    T_EQ(open_with_name("a\nb", 3), IPC_E_MALFORMED);
    T_EQ(open_with_name("a\x1b[m", 4), IPC_E_MALFORMED);
    T_EQ(open_with_name("\x7f", 1), IPC_E_MALFORMED);
    /* a character that the end of the field cuts */
    memcpy(full + 61, "\xe2\x82", 3);
    T_EQ(open_with_name(full, 64), IPC_E_MALFORMED);
}

TEST(long_names_are_cut_between_characters)
{
    char name[IPC_NAME_BYTES + 1], set[IPC_NAME_BYTES];

    memset(name, 'x', sizeof(name));
    memcpy(name + 62, "\xc3\xa9", 3); /* ends where the NUL must be */
    ipc_name_set(set, name);
    T_EQ(strlen(set), 62);
}

TEST(names_are_padded)
{
    static const char z[IPC_NAME_BYTES] = "z";
    char set[IPC_NAME_BYTES];

    memset(set, 'y', sizeof(set));
    ipc_name_set(set, "z");
    T_EQ(memcmp(set, z, sizeof(set)), 0);
}

TEST(hostile_values)
{
    struct ipc_open open_m = {.pixfmt = IPC_PIX_COUNT};
    struct ipc_tensor t = {.dtype = IPC_F32, .rank = 2, .dim = {2, 3}, .bytes = 24};
    struct ipc_pool pool = {.bytes = IPC_POOL_BYTES_MAX};
    struct ipc_frame frame = {.in_offset = UINT64_MAX, .in_bytes = 1};
    struct ipc_result result = {.out_bytes = IPC_POOL_BYTES_MAX + 1};
    struct ipc_opened opened = {.input_count = IPC_TENSORS_MAX + 1};
    struct ipc_hello hello = {.version_min = 2, .version_max = 1};
    struct ipc_credit credit = {.credits = UINT32_MAX};
    uint8_t b[IPC_TENSOR_BYTES];

#define REFUSED(kind, BYTES, m)                                                                    \
    do {                                                                                           \
        __typeof__(m) rt_got;                                                                      \
        memcpy(b, &(m), BYTES);                                                                    \
        T_EQ(ipc_get_##kind(b, BYTES, &rt_got), IPC_E_MALFORMED);                                  \
    } while (0)
    REFUSED(open, IPC_OPEN_BYTES, open_m);
    open_m = (struct ipc_open){.policy = 3};
    REFUSED(open, IPC_OPEN_BYTES, open_m);
    open_m = (struct ipc_open){.priority = 4};
    REFUSED(open, IPC_OPEN_BYTES, open_m);
    REFUSED(hello, IPC_HELLO_BYTES, hello);
    REFUSED(opened, IPC_OPENED_BYTES, opened);
    REFUSED(frame, IPC_FRAME_BYTES, frame);
    frame = (struct ipc_frame){.out_offset = 2, .out_bytes = UINT64_MAX - 1};
    REFUSED(frame, IPC_FRAME_BYTES, frame);
    frame = (struct ipc_frame){.pool = IPC_POOLS_MAX};
    REFUSED(frame, IPC_FRAME_BYTES, frame);
    REFUSED(result, IPC_RESULT_BYTES, result);
    REFUSED(credit, IPC_CREDIT_BYTES, credit);
    pool.bytes++;
    REFUSED(pool, IPC_POOL_BYTES, pool);
    pool.bytes = 0;
    REFUSED(pool, IPC_POOL_BYTES, pool);
    pool = (struct ipc_pool){.pool = IPC_POOLS_MAX, .bytes = 1};
    REFUSED(pool, IPC_POOL_BYTES, pool);
    t.bytes = 20;
    REFUSED(tensor, IPC_TENSOR_BYTES, t);
    t.bytes = 24;
    t.rank = IPC_RANK_MAX + 1;
    REFUSED(tensor, IPC_TENSOR_BYTES, t);
    t.rank = 2;
    t.dim[1] = 0; /* no elements, and yet 24 bytes */
    REFUSED(tensor, IPC_TENSOR_BYTES, t);
    t.bytes = 0;
    memcpy(b, &t, sizeof(t));
    T_EQ(ipc_get_tensor(b, sizeof(b), &t), 0);
    t = (struct ipc_tensor){/* its strides would not fit */
                            .dtype = IPC_F32,
                            .rank = 4,
                            .dim = {0, 1u << 31, 1u << 31, 1u << 31},
                            .bytes = 0};
    REFUSED(tensor, IPC_TENSOR_BYTES, t);
    t = (struct ipc_tensor){.dtype = IPC_F16 + 1, .bytes = 0};
    REFUSED(tensor, IPC_TENSOR_BYTES, t);
    /* 2^32 * 2^30 * 4 wraps to 0 */
    t = (struct ipc_tensor){
        .dtype = IPC_F32, .rank = 3, .dim = {1u << 31, 2, 1u << 30}, .bytes = 0};
    REFUSED(tensor, IPC_TENSOR_BYTES, t);
    t = (struct ipc_tensor){.dtype = IPC_U8, .rank = 0, .bytes = 1, .offset = UINT64_MAX};
    REFUSED(tensor, IPC_TENSOR_BYTES, t);
#undef REFUSED
}

TEST(names_of_numbers)
{
    T_STR(ipc_status_name(IPC_OK), "ok");
    T_STR(ipc_status_name(IPC_PROTOCOL), "protocol");
    T_STR(ipc_status_name((enum ipc_status)12), "unknown");
    T_STR(ipc_status_name((enum ipc_status) - 1), "unknown");
    T_STR(ipc_type_name(IPC_HELLO), "HELLO");
    T_STR(ipc_type_name(IPC_ERROR), "ERROR");
    T_STR(ipc_type_name(IPC_EVENT), "EVENT");
    T_STR(ipc_type_name(0), "unknown");
    T_STR(ipc_type_name(17), "unknown");
}

TEST_MAIN()
