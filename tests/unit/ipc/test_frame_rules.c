/* SPDX-License-Identifier: Apache-2.0 */
/* What both servers of the frames protocol refuse, and the deadline of a frame. */
#include "ipc/server/frame_rules.h"
#include "tests/harness.h"

#define POOL 4096u

TEST(a_deadline_is_the_frames_own_or_its_streams)
{
    struct ipc_flow flow = {.deadline_ns = 5};

    T_EQ(ipc_frame_deadline(&flow, &(struct ipc_frame){.deadline_ns = 7}, 100), 7);
    T_EQ(ipc_frame_deadline(&flow, &(struct ipc_frame){0}, 100), 105);
    flow.deadline_ns = UINT64_MAX;
    T_EQ(ipc_frame_deadline(&flow, &(struct ipc_frame){0}, 100), UINT64_MAX);
    flow.deadline_ns = 0;
    T_EQ(ipc_frame_deadline(&flow, &(struct ipc_frame){0}, 100), 0);
}

TEST(credits_and_numbers)
{
    struct ipc_flow flow = {.credits = 2};
    struct ipc_header h = {.type = IPC_FRAME, .frame = 4, .time_ns = 9};
    uint8_t payload[IPC_FRAME_BYTES];
    struct ipc_answer a;
    struct ipc_frame f;

    memcpy(payload, &(struct ipc_frame){.in_bytes = 1}, sizeof(payload));
    T_TRUE(ipc_frame_take(&flow, &a, &h, payload, &f));
    T_EQ(a.frame, 4);
    T_EQ(a.time_ns, 9);
    T_TRUE(!ipc_frame_take(&flow, &a, &h, payload, &f));
    T_EQ(a.status, IPC_INVALID_ARGUMENT);
    T_CONTAINS(a.text, "frame number 4 is not above");
    T_TRUE(a.has_credit);
    h.frame = 5;
    T_TRUE(!ipc_frame_take(&flow, &a, &h, payload, &f));
    T_EQ(a.status, IPC_RESOURCE_EXHAUSTED);
    T_TRUE(!a.has_credit);
    T_EQ(flow.unanswered, 2);
    flow.unanswered = 0;
    h.frame = 6;
    memcpy(payload, &(struct ipc_frame){.in_offset = UINT64_MAX, .in_bytes = 1}, sizeof(payload));
    T_TRUE(!ipc_frame_take(&flow, &a, &h, payload, &f));
    T_CONTAINS(a.text, "out of range");
}

TEST(a_frame_lies_within_its_memory)
{
    static uint8_t bytes[POOL];
    const struct ipc_memory memory = {.map = bytes, .bytes = POOL};
    const struct ipc_areas areas = {.input_bytes = 100, .output_bytes = 40};
    static const struct {
        struct ipc_frame f;
        const char *why;
    } cases[] = {
        {{.in_bytes = 100, .out_offset = 128, .out_bytes = 40}, NULL},
        {{.in_offset = POOL - 64, .in_bytes = 100, .out_bytes = 40}, "the input is outside"},
        {{.in_bytes = 100, .out_offset = POOL - 64, .out_bytes = 65}, "the output is outside"},
        {{.in_bytes = 100, .out_offset = POOL - 64, .out_bytes = 64}, NULL},
        {{.in_bytes = 100, .out_offset = 128, .out_bytes = 39}, "the model writes 40"},
        {{.in_offset = 32, .in_bytes = 100, .out_offset = 192, .out_bytes = 40}, "multiples of 64"},
        {{.in_bytes = 100, .out_offset = 160, .out_bytes = 40}, "multiples of 64"},
        {{.in_bytes = 100, .out_offset = 64, .out_bytes = 40}, "overlap"},
        {{.in_bytes = 99, .out_offset = 128, .out_bytes = 40}, "the model takes 100"},
    };

    for (size_t i = 0; i < base_array_count(cases); i++) {
        struct ipc_answer a = {0};
        bool fits = ipc_frame_fits_memory(&a, &cases[i].f, &memory, &areas);

        T_EQ(fits, cases[i].why == NULL);
        T_EQ(a.status, fits ? IPC_OK : IPC_INVALID_ARGUMENT);
        T_CONTAINS(a.text, cases[i].why ? cases[i].why : "");
        T_TRUE(!ipc_frame_fits_memory(&a, &cases[i].f, NULL, &areas));
        T_EQ(a.status, IPC_NOT_FOUND);
    }
}

TEST(an_image_may_have_any_size_and_place)
{
    static uint8_t bytes[POOL];
    const struct ipc_memory memory = {.map = bytes, .bytes = POOL};
    const struct ipc_areas areas = {.input_bytes = 100, .output_bytes = 40, .image = true};
    const struct ipc_frame f = {.in_offset = 33, .in_bytes = 7, .out_offset = 128, .out_bytes = 40};
    struct ipc_answer a = {0};

    T_TRUE(ipc_frame_fits_memory(&a, &f, &memory, &areas));
}

TEST(an_inline_frame_fits_its_messages)
{
    struct ipc_areas areas = {.input_bytes = 100, .output_bytes = 40};
    struct ipc_header h = {.type = IPC_INLINE, .length = IPC_FRAME_BYTES + 100};
    struct ipc_frame f = {.in_bytes = 100};
    struct ipc_answer a = {0};

    T_TRUE(ipc_frame_fits_message(&a, &h, &f, &areas));
    areas.output_bytes = IPC_PAYLOAD_MAX - IPC_RESULT_BYTES;
    T_TRUE(ipc_frame_fits_message(&a, &h, &f, &areas));
    areas.output_bytes++;
    T_TRUE(!ipc_frame_fits_message(&a, &h, &f, &areas));
    T_CONTAINS(a.text, "does not fit into a message");
    f.in_bytes = 99;
    T_TRUE(!ipc_frame_fits_message(&a, &h, &f, &areas));
    T_CONTAINS(a.text, "in_bytes is 99, but 100 bytes follow");
    h.length = IPC_FRAME_BYTES + 99;
    T_TRUE(!ipc_frame_fits_message(&a, &h, &f, &areas));
    T_CONTAINS(a.text, "the model takes 100");
}

TEST(what_open_meets)
{
    struct ipc_header h = {.type = IPC_OPEN, .stream = 3};
    struct ipc_open_place place = {.streams_max = 1};
    uint8_t payload[IPC_OPEN_BYTES];
    struct ipc_reply reply;
    const char *text = "";
    struct ipc_open o;

    memcpy(payload, &(struct ipc_open){.model = "m"}, sizeof(payload));
    T_EQ(ipc_open_check(&h, payload, &place, &o, &text), IPC_OK);
    T_STR(o.model, "m");
    place.streams = 1;
    T_EQ(ipc_open_check(&h, payload, &place, &o, &text), IPC_RESOURCE_EXHAUSTED);
    place.unavailable = "stopping";
    T_EQ(ipc_open_check(&h, payload, &place, &o, &text), IPC_UNAVAILABLE);
    T_STR(text, "stopping");
    place.in_use = true;
    T_EQ(ipc_open_check(&h, payload, &place, &o, &text), IPC_INVALID_ARGUMENT);
    T_CONTAINS(text, "in use");
    h.stream = 0;
    T_EQ(ipc_open_check(&h, payload, &place, &o, &text), IPC_INVALID_ARGUMENT);
    T_CONTAINS(text, "out of range");
    ipc_open_refusal(&h, IPC_NOT_FOUND, "no", &reply);
    T_EQ(reply.h.type, IPC_OPENED);
    T_EQ(reply.h.status, IPC_NOT_FOUND);
    T_EQ(reply.bytes, IPC_OPENED_BYTES);
    T_EQ(reply.tail_bytes, 2);
}

static enum ipc_status open_as(uint32_t features, uint32_t input, uint32_t output, uint32_t pixfmt,
                               struct ipc_open *ret, const char **ret_text)
{
    struct ipc_header h = {.type = IPC_OPEN, .stream = 3};
    struct ipc_open_place place = {.streams_max = 1, .features = features};
    uint8_t payload[IPC_OPEN_BYTES];

    memcpy(payload,
           &(struct ipc_open){.pixfmt = pixfmt, .input_dtype = input, .output_dtype = output},
           sizeof(payload));
    return ipc_open_check(&h, payload, &place, ret, ret_text);
}

TEST(as_what_tensors_travel)
{
    const char *text = "";
    struct ipc_open o;

    T_EQ(open_as(IPC_FEATURE_F16, IPC_F16, IPC_F16, IPC_PIX_TENSOR, &o, &text), IPC_OK);
    T_EQ(o.input_dtype, IPC_F16);
    T_EQ(o.output_dtype, IPC_F16);
    T_EQ(open_as(IPC_FEATURE_F16, IPC_F32, 0, IPC_PIX_TENSOR, &o, &text), IPC_OK);
    T_EQ(o.input_dtype, 0);
    T_EQ(open_as(IPC_FEATURE_F16, 0, IPC_F16, IPC_PIX_GRAY8, &o, &text), IPC_OK);
    T_EQ(open_as(IPC_FEATURE_F16, IPC_F16, 0, IPC_PIX_GRAY8, &o, &text), IPC_INVALID_ARGUMENT);
    T_CONTAINS(text, "pixfmt 0");
    T_EQ(open_as(IPC_FEATURE_F16, IPC_I64, 0, IPC_PIX_TENSOR, &o, &text), IPC_UNSUPPORTED);
    T_CONTAINS(text, "f32 or f16");
    T_EQ(open_as(IPC_FEATURE_F16, 0, IPC_F16 + 1, IPC_PIX_TENSOR, &o, &text), IPC_UNSUPPORTED);
    /* what is reserved for a client is ignored */
    T_EQ(open_as(0, IPC_F16, 99, IPC_PIX_GRAY8, &o, &text), IPC_OK);
    T_EQ(o.input_dtype | o.output_dtype, 0);
}

TEST_MAIN()
