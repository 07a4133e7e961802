/* SPDX-License-Identifier: Apache-2.0 */
/* Borders on the wire: what is encoded and what is not, back to the same floats, and messages of a
 * board that lies. */
#include "apps/link/hop/border.h"
#include "tests/harness.h"

#define COUNT 60u
#define BYTES (COUNT * 4)

/* Input 0 passes to output 2; output 1 is of integers. */
static const struct piped_tensor inputs[] = {
    {"x", PIPED_F32, 2, {4, 15}, 0, BYTES},
    {"y", PIPED_F32, 2, {2, 30}, 256, BYTES},
};
static const struct piped_tensor outputs[] = {
    {"z", PIPED_F32, 3, {3, 4, 5}, 0, BYTES},
    {"n", PIPED_I32, 1, {60}, 256, BYTES},
    {"x", PIPED_F32, 2, {4, 15}, 512, BYTES},
};
static const struct piped_stream_info segment = {.input_count = 2,
                                                 .output_count = 3,
                                                 .inputs = inputs,
                                                 .outputs = outputs,
                                                 .input_bytes = 512,
                                                 .output_bytes = 768};
/* The next one takes all three. */
static const struct piped_stream_info next = {
    .input_count = 3, .inputs = outputs, .input_bytes = 768};

struct rig {
    struct hop_border here, there;
    float in[128], out[192], got[192];
    struct piped_frame computed, slot;
    struct lnk_message m;
    struct lnk_bytes part[LNK_PARTS_MAX];
};

static void begin(struct rig *r)
{
    memset(r, 0, sizeof(*r));
    for (size_t i = 0; i < base_array_count(r->out); i++) {
        r->out[i] = (float)t_range(-100000, 100000) / 777;
    }
    r->computed = (struct piped_frame){
        .input = r->in, .input_size = 512, .output = r->out, .output_bytes = 768};
    r->slot = (struct piped_frame){.input = r->got, .input_size = 768};
}

static void end(struct rig *r)
{
    hop_border_deinit(&r->here);
    hop_border_deinit(&r->there);
}

/* The segment's own inputs came in this encoding. */
static void came(struct rig *r, enum lnk_encoding as)
{
    uint8_t bytes[BYTES] = {0};
    struct lnk_bytes part[2];
    struct lnk_message m = {.frame.tensor_count = 2, .part = part};

    for (size_t i = 0; i < 2; i++) {
        m.tensor[i] = (struct lnk_tensor){.dtype = LNK_F32,
                                          .encoding = (uint8_t)as,
                                          .bytes = brd_encoded_bytes((enum brd_encoding)as, COUNT),
                                          .scale = as == LNK_AS_I8};
        part[i] = (struct lnk_bytes){bytes, m.tensor[i].bytes};
    }
    T_EQ(hop_border_take(&r->here, &segment, &m, (enum brd_encoding)as, &r->computed), 0);
}

static void put(struct rig *r, enum brd_encoding as)
{
    r->m = (struct lnk_message){.header.type = LNK_FRAME, .frame = {.stream = 1, .hop = 1}};
    r->m.frame.tensor_count =
        (uint8_t)hop_border_put(&r->here, &segment, &r->computed, as, &r->m, r->part);
}

static int take(struct rig *r, enum brd_encoding may)
{
    r->m.part = r->part;
    return hop_border_take(&r->there, &next, &r->m, may, &r->slot);
}

/* As another board reads it. Return: of lnk_get(). */
static int over_the_wire(struct rig *r)
{
    size_t sizes[LNK_PARTS_MAX];
    uint8_t first[LNK_FIRST_MAX];
    size_t bytes = lnk_put(&r->m, 0, first);

    for (size_t i = 0; i < r->m.frame.tensor_count; i++) {
        sizes[i] = r->part[i].bytes;
    }
    return bytes ? lnk_get(first, bytes, sizes, r->m.frame.tensor_count, &r->m) : -1;
}

static void wanted(enum brd_encoding as, const float *from, float *ret)
{
    uint8_t bytes[BYTES];
    int32_t zero;
    float scale;

    brd_encode(as, from, COUNT, bytes, &scale, &zero);
    brd_decode(as, bytes, COUNT, scale, zero, ret);
}

static void goes_and_comes(enum brd_encoding as)
{
    float rounded[COUNT];
    struct rig r;

    begin(&r);
    came(&r, (enum lnk_encoding)as);
    put(&r, as);
    T_EQ(r.m.frame.tensor_count, 3);
    T_EQ(r.part[0].bytes, brd_encoded_bytes(as, COUNT));
    T_EQ(r.part[1].bytes, BYTES);
    T_EQ(r.part[2].bytes, brd_encoded_bytes(as, COUNT));
    T_EQ(over_the_wire(&r), 0);
    T_EQ(take(&r, as), 0);
    wanted(as, r.out, rounded);
    T_TRUE(memcmp(r.got, rounded, BYTES) == 0);
    T_TRUE(memcmp(r.got + 64, r.out + 64, BYTES) == 0);
    wanted(as, r.out + 128, rounded);
    T_TRUE(memcmp(r.got + 128, rounded, BYTES) == 0);
    T_EQ(r.there.came_as_is, 2);
    end(&r);
}

TEST(goes_and_comes_back_rounded)
{
    goes_and_comes(BRD_AS_F16);
    goes_and_comes(BRD_AS_I8);
}

TEST(what_came_as_it_is_is_handed_on_as_it_is)
{
    struct rig r;

    begin(&r);
    came(&r, LNK_AS_IS);
    put(&r, BRD_AS_F16);
    T_EQ(r.m.tensor[0].encoding, LNK_AS_F16);
    T_EQ(r.m.tensor[2].encoding, LNK_AS_IS);
    T_EQ(over_the_wire(&r), 0);
    T_EQ(take(&r, BRD_AS_F16), 0);
    T_TRUE(memcmp(r.got + 128, r.out + 128, BYTES) == 0);
    T_EQ(r.there.came_as_is, 6);
    end(&r);
}

TEST(nothing_is_encoded_to_itself_or_as_an_answer)
{
    struct rig r;

    begin(&r);
    put(&r, BRD_AS_IS);
    T_EQ(over_the_wire(&r), 0);
    T_EQ(take(&r, BRD_AS_F16), 0);
    for (size_t i = 0; i < 3; i++) {
        T_TRUE(memcmp(r.got + 64 * i, r.out + 64 * i, BYTES) == 0);
    }
    T_TRUE(r.here.bytes == NULL);
    end(&r);
}

TEST(a_frame_that_must_wait_is_encoded_once)
{
    struct rig r;
    float first;

    begin(&r);
    put(&r, BRD_AS_F16);
    first = r.out[0];
    r.out[0] += 50; /* not so in reality: it would show */
    put(&r, BRD_AS_F16);
    T_EQ(take(&r, BRD_AS_F16), 0);
    T_NEAR(r.got[0], first, 0.1);
    hop_border_next(&r.here);
    put(&r, BRD_AS_F16);
    T_EQ(take(&r, BRD_AS_F16), 0);
    T_NEAR(r.got[0], first + 50, 0.1);
    end(&r);
}

TEST(another_encoding_than_the_route_says_is_refused)
{
    struct rig r;

    begin(&r);
    put(&r, BRD_AS_I8);
    T_EQ(over_the_wire(&r), 0);
    T_EQ(take(&r, BRD_AS_F16), PIPED_INVALID_ARGUMENT);
    T_EQ(take(&r, BRD_AS_IS), PIPED_INVALID_ARGUMENT);
    T_EQ(take(&r, BRD_AS_I8), 0);
    end(&r);
}

/* By the wire already, or by the segment that it is for. */
TEST(lies_are_refused)
{
    static const struct {
        size_t tensor;
        uint8_t dtype, encoding;
        float scale;
        int32_t zero;
        uint64_t bytes; /* also of the part */
        bool wire;
    } lies[] = {
        {0, LNK_F32, LNK_AS_F16, 0, 0, 2 * COUNT - 2, true},
        {0, LNK_F32, LNK_AS_F16, 0, 0, BYTES, true},
        {0, LNK_F32, LNK_AS_I8, NAN, 0, COUNT, true},
        {0, LNK_F32, LNK_AS_I8, INFINITY, 0, COUNT, true},
        {0, LNK_F32, LNK_AS_I8, -1, 0, COUNT, true},
        {0, LNK_F32, LNK_AS_I8, 1, 128, COUNT, true},
        {0, LNK_F32, LNK_AS_F16, 1, 0, 2 * COUNT, true},
        {0, LNK_F32, 3, 0, 0, BYTES, true},
        {1, LNK_I32, LNK_AS_F16, 0, 0, 2 * COUNT, true},
        {0, LNK_I8, LNK_AS_IS, 0, 0, COUNT, false},
        {1, LNK_F32, LNK_AS_IS, 0, 0, BYTES, false},
    };
    struct rig r;

    begin(&r);
    for (size_t i = 0; i < base_array_count(lies); i++) {
        struct lnk_tensor *t;

        put(&r, BRD_AS_IS);
        t = &r.m.tensor[lies[i].tensor];
        *t = (struct lnk_tensor){.dtype = lies[i].dtype,
                                 .encoding = lies[i].encoding,
                                 .rank = 1,
                                 .dim = {COUNT},
                                 .scale = lies[i].scale,
                                 .zero = lies[i].zero,
                                 .bytes = lies[i].bytes};
        r.part[lies[i].tensor].bytes = lies[i].bytes;
        T_EQ(over_the_wire(&r) != 0, lies[i].wire);
        T_TRUE(lies[i].wire || take(&r, BRD_AS_F16) == PIPED_INVALID_ARGUMENT);
    }
    end(&r);
}

TEST(shapes_that_are_not_the_segments_are_refused)
{
    struct rig r;

    begin(&r);
    put(&r, BRD_AS_F16);
    r.m.frame.tensor_count = 2;
    T_EQ(take(&r, BRD_AS_F16), PIPED_INVALID_ARGUMENT);
    put(&r, BRD_AS_F16);
    r.m.tensor[0].bytes = r.part[0].bytes = 2 * COUNT + 2;
    T_EQ(take(&r, BRD_AS_F16), PIPED_INVALID_ARGUMENT);
    put(&r, BRD_AS_F16);
    r.part[0].bytes = COUNT;
    T_EQ(take(&r, BRD_AS_F16), PIPED_INVALID_ARGUMENT);
    put(&r, BRD_AS_F16);
    r.slot.input_size = 700; /* the slot is too small for the last */
    T_EQ(take(&r, BRD_AS_F16), PIPED_INVALID_ARGUMENT);
    end(&r);
}

TEST_MAIN()
