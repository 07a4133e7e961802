/* SPDX-License-Identifier: Apache-2.0 */
/* Borders on the wire: back to the same bytes, and messages of a board that lies. */
#include "apps/link/hop/hop_private.h"
#include "tests/harness.h"

#define COUNT 60u
#define BYTES (COUNT * 4)

static const struct piped_tensor outputs[] = {
    {"z", PIPED_F32, 3, {3, 4, 5}, 0, BYTES},
    {"n", PIPED_I32, 1, {60}, 256, BYTES},
    {"x", PIPED_F32, 2, {4, 15}, 512, BYTES},
};
static const struct piped_stream_info segment = {
    .output_count = 3, .outputs = outputs, .output_bytes = 768};
/* The next one takes all three. */
static const struct piped_stream_info next = {
    .input_count = 3, .inputs = outputs, .input_bytes = 768};

struct rig {
    float out[192], got[192];
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
    r->computed = (struct piped_frame){.output = r->out, .output_bytes = 768};
    r->slot = (struct piped_frame){.input = r->got, .input_size = 768};
}

static void put(struct rig *r)
{
    r->m = (struct lnk_message){.header.type = LNK_FRAME, .frame = {.stream = 1, .hop = 1}};
    r->m.frame.tensor_count = (uint8_t)hop_border_put(&segment, &r->computed, &r->m, r->part);
}

static int take(struct rig *r)
{
    r->m.part = r->part;
    return hop_border_take(&next, &r->m, &r->slot);
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

TEST(goes_and_comes_as_it_is)
{
    struct rig r;

    begin(&r);
    put(&r);
    T_EQ(r.m.frame.tensor_count, 3);
    T_EQ(over_the_wire(&r), 0);
    T_EQ(take(&r), 0);
    for (size_t i = 0; i < 3; i++) {
        T_TRUE(memcmp(r.got + 64 * i, r.out + 64 * i, BYTES) == 0);
    }
}

/* By the wire already, or by the segment that it is for. */
TEST(lies_are_refused)
{
    static const struct {
        size_t tensor;
        struct lnk_tensor is; /* also of the part */
        bool wire;
    } lies[] = {
        {0, {.dtype = LNK_F32, .rank = 1, .dim = {COUNT}, .bytes = BYTES - 4}, true},
        {0, {.dtype = LNK_F32, .rank = 1, .dim = {COUNT}, .bytes = COUNT}, true},
        {0, {.dtype = LNK_F32, .rank = 1, .dim = {COUNT}, .is_picture = 1, .bytes = BYTES}, true},
        {0, {.dtype = LNK_F32, .rank = 1, .dim = {COUNT - 1}, .bytes = BYTES - 4}, false},
        {0, {.dtype = LNK_I8, .rank = 1, .dim = {COUNT}, .bytes = COUNT}, false},
        {0, {.dtype = LNK_U8, .rank = 3, .dim = {1, 8, 10}, .is_picture = 1, .bytes = 240}, false},
        {1, {.dtype = LNK_F32, .rank = 1, .dim = {COUNT}, .bytes = BYTES}, false},
    };
    struct rig r;

    begin(&r);
    for (size_t i = 0; i < base_array_count(lies); i++) {
        put(&r);
        r.m.tensor[lies[i].tensor] = lies[i].is;
        r.part[lies[i].tensor].bytes = lies[i].is.bytes;
        T_EQ(over_the_wire(&r) != 0, lies[i].wire);
        T_TRUE(lies[i].wire || take(&r) == PIPED_INVALID_ARGUMENT);
    }
}

/* Also where the segment's input is of bytes, and as large. */
TEST(a_picture_is_no_tensor_of_a_border)
{
    static const struct piped_tensor input = {"p", PIPED_U8, 3, {8, 10, 3}, 0, BYTES};
    static const struct piped_stream_info info = {.input_count = 1, .inputs = &input};
    struct rig r;

    begin(&r);
    put(&r);
    r.m.frame.tensor_count = 1;
    r.m.part = r.part;
    r.m.tensor[0] = (struct lnk_tensor){.dtype = LNK_U8, .bytes = BYTES};
    T_EQ(hop_border_take(&info, &r.m, &r.slot), 0);
    r.m.tensor[0].is_picture = 1;
    T_EQ(hop_border_take(&info, &r.m, &r.slot), PIPED_INVALID_ARGUMENT);
}

TEST(shapes_that_are_not_the_segments_are_refused)
{
    struct rig r;

    begin(&r);
    put(&r);
    r.m.frame.tensor_count = 2;
    T_EQ(take(&r), PIPED_INVALID_ARGUMENT);
    put(&r);
    r.m.tensor[0].bytes = r.part[0].bytes = BYTES + 4;
    T_EQ(take(&r), PIPED_INVALID_ARGUMENT);
    put(&r);
    r.part[0].bytes = COUNT;
    T_EQ(take(&r), PIPED_INVALID_ARGUMENT);
    put(&r);
    r.slot.input_size = 700; /* the slot is too small for the last */
    T_EQ(take(&r), PIPED_INVALID_ARGUMENT);
}

TEST_MAIN()
