/* SPDX-License-Identifier: Apache-2.0 */
/* krn_bound_run_frames(): convolutions of several frames at once give, bit for bit, what each frame
 * gives alone. Results lie in a part of wider pixels, as those of a branch that is concatenated. */

#include "base/base.h"
#include "kernels/bound_primitive.h"
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/kernels/conv_shape.h"
#include "tests/kernels/kept_pool.h"

#define CHANNELS 136u /* transformed weights of every form are too large to be kept */
#define OUTPUTS 140u
#define PIXEL (OUTPUTS + 3u) /* between pixels of the result */
#define SIDE_MAX 5u
#define EDGE_MAX 9u
#define FRAMES 8u
#define GUARD_BYTES 64u
#define PATTERN 0xa5

struct frames {
    float x[FRAMES][EDGE_MAX * EDGE_MAX * CHANNELS], y[FRAMES][EDGE_MAX * EDGE_MAX * PIXEL];
    const void *inputs[FRAMES][1];
    void *outputs[FRAMES][1];
    struct krn_mem mem[FRAMES];
    const struct krn_mem *mems[FRAMES];
};

struct conv {
    struct mdl_model m;
    struct mdl_storage storages[3];
    struct mdl_tensor tensors[3];
    struct mdl_op op;
    char name[8];
};

static struct frames together, alone;
static float weights[OUTPUTS * CHANNELS * SIDE_MAX * SIDE_MAX];

static void fill(float *x, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        x[i] = (float)t_range(-1000, 1000) / 1000;
    }
}

static struct mdl_tensor image(struct conv *c, size_t storage, size_t channels, size_t h, size_t w,
                               size_t pixel)
{
    return (struct mdl_tensor){
        .name = c->name,
        .dtype = MDL_F32,
        .storage = storage,
        .rank = 4,
        .dim = {1, channels, h, w},
        .stride = {(ptrdiff_t)(h * w * pixel), 1, (ptrdiff_t)(w * pixel), (ptrdiff_t)pixel}};
}

/* A convolution of @side x @side taps on an image of @h x @w. Do not move @c: the model points into
 * it. */
static void conv_init(struct conv *c, size_t side, size_t h, size_t w)
{
    ptrdiff_t taps = (ptrdiff_t)(side * side);
    struct conv_shape shape = conv_square(CHANNELS, h, w, OUTPUTS, side, side / 2);

    *c = (struct conv){
        .name = "conv",
        .storages = {{.home = MDL_HOME_INPUT, .bytes = h * w * CHANNELS * sizeof(float)},
                     {.home = MDL_HOME_CONST, .bytes = sizeof(weights), .data = weights},
                     {.home = MDL_HOME_OUTPUT, .bytes = h * w * PIXEL * sizeof(float)}},
        .tensors = {image(c, 0, CHANNELS, h, w, CHANNELS),
                    {.name = c->name,
                     .dtype = MDL_F32,
                     .storage = 1,
                     .rank = 4,
                     .dim = {OUTPUTS, CHANNELS, side, side},
                     .stride = {(ptrdiff_t)CHANNELS * taps, taps, (ptrdiff_t)side, 1}},
                    image(c, 2, OUTPUTS, h, w, PIXEL)},
        .op = {.name = c->name,
               .kind = MDL_OP_CONV,
               .in = {0, 1, MDL_NONE, MDL_NONE},
               .out = {2, MDL_NONE},
               .residual_in = MDL_NONE,
               .act = MDL_ACT_RELU},
    };
    c->op.attr.conv.groups = 1;
    c->op.attr.conv.window = conv_window(&shape);
    c->m = (struct mdl_model){.name = c->name,
                              .storage_count = 3,
                              .tensor_count = 3,
                              .op_count = 1,
                              .storages = c->storages,
                              .tensors = c->tensors,
                              .ops = &c->op};
}

static void frames_init(struct frames *f)
{
    memset(f, PATTERN, sizeof(*f));
    for (size_t i = 0; i < FRAMES; i++) {
        fill(f->x[i], base_array_count(f->x[i]));
        f->inputs[i][0] = f->x[i];
        f->outputs[i][0] = f->y[i];
        f->mem[i] = (struct krn_mem){.inputs = f->inputs[i], .outputs = f->outputs[i]};
        f->mems[i] = &f->mem[i];
    }
}

static bool is_pattern(const uint8_t *p, size_t bytes)
{
    while (bytes > 0 && *p == PATTERN) {
        p++;
        bytes--;
    }
    return bytes == 0;
}

/* Runs @count frames at once with @bytes of scratch, then each alone. Whole buffers are compared,
 * so what lies between the results counts, too. */
static void compare(const struct krn_bound *bound, struct krn_bound_run *run, size_t count,
                    size_t bytes)
{
    uint8_t *scratch = run->exec->scratch;

    frames_init(&together);
    memcpy(alone.x, together.x, sizeof(alone.x));
    memset(alone.y, PATTERN, sizeof(alone.y));
    memset(scratch, PATTERN, bytes + GUARD_BYTES);
    krn_bound_run_frames(bound, run, together.mems, count);
    T_TRUE(is_pattern(scratch + bytes, GUARD_BYTES));
    for (size_t i = 0; i < count; i++) {
        run->mem = &alone.mem[i];
        krn_bound_run(bound, run);
    }
    T_TRUE(memcmp(together.y, alone.y, sizeof(alone.y)) == 0);
}

static void run_primitive(const struct krn_primitive *v, struct conv *c, size_t width)
{
    struct krn_bound bound = {.primitive = v};
    struct krn_exec exec = {.pool = kept_pool(width), .width = width};
    void *copies[3] = {NULL};
    struct krn_bound_run run = {.m = &c->m, .op = 0, .copies = copies, .exec = &exec};
    size_t bytes = base_max(krn_bound_frames_bytes(v, &c->m, 0, width, FRAMES),
                            krn_bound_scratch_bytes(v, &c->m, 0, width));

    T_EQ(krn_bound_ready(&bound, &c->m, 0, width), 0);
    bytes = base_align_up(bytes, 64);
    exec.scratch = aligned_alloc(64, bytes + GUARD_BYTES);
    T_TRUE(exec.scratch != NULL);
    frames_init(&alone);
    for (size_t count = 2; count <= FRAMES; count += 3) {
        compare(&bound, &run, count, bytes);
    }
    free(exec.scratch);
    krn_bound_release(&bound);
}

TEST(frames_at_once_give_what_each_gives_alone)
{
    static const size_t shapes[][3] = {{3, 7, 6}, {3, 1, 9}, {5, 5, 7}};
    size_t count, ran = 0;
    const struct krn_primitive *v = krn_primitives(&count);

    krn_parallel_yield(true); /* there may be fewer cores than threads */
    fill(weights, base_array_count(weights));
    for (size_t s = 0; s < base_array_count(shapes); s++) {
        struct conv c;

        conv_init(&c, shapes[s][0], shapes[s][1], shapes[s][2]);
        for (size_t i = 0; i < count; i++) {
            if (v[i].kind == MDL_OP_CONV && !(v[i].needs & ~krn_cpu_features()) &&
                v[i].frames_at_once && v[i].frames_at_once(&c.m, &c.op)) {
                run_primitive(&v[i], &c, 1);
                run_primitive(&v[i], &c, 3);
                ran++;
            }
        }
    }
    T_LE(7, ran); /* of __vec: three forms for 3x3 twice, one for 5x5 */
}

/* Several frames gain nothing where one has tiles enough, and residuals are not gathered. */
TEST(other_convolutions_run_frame_after_frame)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);
    struct conv large, added;

    conv_init(&large, 3, 64, 64);
    conv_init(&added, 3, 7, 6);
    added.op.residual = MDL_RESIDUAL_BEFORE_ACT;
    added.op.residual_in = 2;
    for (size_t i = 0; i < count; i++) {
        if (v[i].kind == MDL_OP_CONV && v[i].frames_at_once &&
            !(v[i].needs & ~krn_cpu_features())) {
            T_TRUE(!v[i].frames_at_once(&large.m, &large.op));
            T_TRUE(!v[i].frames_at_once(&added.m, &added.op));
        }
    }
}

TEST_MAIN()
