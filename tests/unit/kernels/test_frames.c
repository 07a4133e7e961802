/* SPDX-License-Identifier: Apache-2.0 */
/* krn_net_run_frames(): several frames at once give what each gives alone, with every primitive
 * that can compute several at once. */
#include <math.h>

#include "base/base.h"
#include "kernels/kernels.h"
#include "tests/harness.h"
#include "tests/kernels/kept_pool.h"
#include "tests/unit/kernels/two_ops.h"

#define ELEMENTS 101u /* no multiple of a tile */
#define FRAMES 8u
#define GUARD_BYTES 64u
#define PATTERN 0xa5
#define ARENA_BYTES 448u

enum { X, W, C, T, Y };

struct memory {
    float x[FRAMES][ELEMENTS], y[FRAMES][ELEMENTS + 1];
    _Alignas(64) uint8_t arena[FRAMES][ARENA_BYTES + GUARD_BYTES];
    const void *inputs[FRAMES][1];
    void *outputs[FRAMES][1];
    struct krn_mem mem[FRAMES];
    const struct krn_mem *mems[FRAMES];
};

static float w[ELEMENTS * ELEMENTS], c[ELEMENTS];

static float value(void)
{
    return (float)t_range(-1000, 1000) / 1000;
}

/* y = relu(x w) + c, or relu((x + c) w) with the product last. */
static void model_init(struct tiny *o, bool product_last)
{
    size_t product = product_last ? 1 : 0;

    tiny_model(o, 5, ELEMENTS, ARENA_BYTES);
    o->tensors[W].dim[0] = ELEMENTS;
    o->storages[W] = (struct mdl_storage){.home = MDL_HOME_CONST, .bytes = sizeof(w), .data = w};
    o->storages[C] = (struct mdl_storage){.home = MDL_HOME_CONST, .bytes = sizeof(c), .data = c};
    for (size_t i = 0; i < 2; i++) {
        o->ops[i].kind = i == product ? MDL_OP_GEMM : MDL_OP_BINARY;
        o->ops[i].in[0] = i ? T : X;
        o->ops[i].in[1] = i == product ? W : C;
        o->ops[i].out[0] = i ? Y : T;
    }
    o->ops[product].attr.gemm.alpha = 1;
    o->ops[product].attr.gemm.beta = 1;
    o->ops[product].act = MDL_ACT_RELU;
    o->ops[product].channels = ELEMENTS;
    o->ops[1 - product].attr.binary = MDL_BIN_ADD;
}

static void memory_init(struct memory *s)
{
    memset(s, PATTERN, sizeof(*s));
    for (size_t i = 0; i < FRAMES; i++) {
        for (size_t k = 0; k < ELEMENTS; k++) {
            s->x[i][k] = value();
        }
        s->inputs[i][0] = s->x[i];
        s->outputs[i][0] = s->y[i];
        s->mem[i] = (struct krn_mem){
            .arena = s->arena[i], .inputs = s->inputs[i], .outputs = s->outputs[i]};
        s->mems[i] = &s->mem[i];
    }
}

static bool is_pattern(const void *at, size_t bytes)
{
    const uint8_t *p = at;

    while (bytes > 0 && *p == PATTERN) {
        p++;
        bytes--;
    }
    return bytes == 0;
}

static bool guards_hold(const struct memory *s, size_t frames)
{
    bool hold = true;

    for (size_t i = 0; i < FRAMES; i++) {
        hold &= is_pattern(s->arena[i] + ARENA_BYTES, GUARD_BYTES);
        hold &= i < frames ? is_pattern(&s->y[i][ELEMENTS], sizeof(float))
                           : is_pattern(s->y[i], sizeof(s->y[i]));
    }
    return hold;
}

/* Both are within n u S of the sum, with S = sum |x w| of at most 2 n here. */
static bool same(const float *a, const float *b)
{
    const double n = ELEMENTS, bound = 2 * n * 0x1p-24 * 2 * n;

    for (size_t k = 0; k < ELEMENTS; k++) {
        if (!(fabs((double)a[k] - (double)b[k]) <= 2 * bound)) {
            fprintf(stderr, "element %zu: %g, alone %g\n", k, (double)a[k], (double)b[k]);
            return false;
        }
    }
    return true;
}

/* Runs 1 to FRAMES frames at once, and compares each with the same frame alone. */
static void compare(const struct krn_net *net, struct krn_exec *exec)
{
    static struct memory all, alone;
    size_t own = krn_net_scratch_bytes(net, exec->width);
    size_t bytes = krn_net_frames_bytes(net, 0, (struct krn_range){0, 2}, exec->width, FRAMES);
    uint8_t *scratch;

    T_LT(0, bytes);
    T_EQ(bytes % 64, 0);
    bytes = base_max(bytes, own);
    scratch = aligned_alloc(64, bytes + GUARD_BYTES);
    T_TRUE(scratch != NULL);
    exec->scratch = scratch;
    for (size_t frames = 1; frames <= FRAMES && scratch; frames++) {
        memory_init(&all);
        memset(scratch, PATTERN, bytes + GUARD_BYTES);
        krn_net_run_frames(net, (struct krn_range){0, 2}, all.mems, frames, exec);
        T_TRUE(is_pattern(scratch + bytes, GUARD_BYTES));
        T_TRUE(guards_hold(&all, frames));
        memory_init(&alone);
        memcpy(alone.x, all.x, sizeof(alone.x));
        for (size_t i = 0; i < frames; i++) {
            krn_net_run_ops(net, 0, 1, alone.mems[i], exec);
            T_TRUE(same(all.y[i], alone.y[i]));
        }
    }
    free(scratch);
}

static void run_primitive(const char *name, struct tiny *o, size_t product)
{
    char error[MDL_ERROR_MAX], only[128];
    struct krn_net *net = NULL;

    snprintf(only, sizeof(only), "%s,binary", name);
    T_EQ(krn_net_new(&o->m, only, error, &net), 0);
    if (!net) {
        return;
    }
    T_STR(krn_net_chosen(net, 0, product)->name, name);
    for (size_t width = 1; width <= 3; width += 2) {
        struct krn_exec exec = {.pool = kept_pool(width), .width = width};

        compare(net, &exec);
    }
    krn_net_free(net);
}

TEST(every_primitive_that_can_gives_what_each_frame_gives_alone)
{
    size_t count, ran = 0;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t i = 0; i < ELEMENTS * ELEMENTS; i++) {
        w[i] = value();
    }
    for (size_t i = 0; i < ELEMENTS; i++) {
        c[i] = value();
    }
    for (size_t last = 0; last < 2; last++) {
        struct tiny o;

        model_init(&o, last);
        for (size_t i = 0; i < count; i++) {
            if (v[i].frames_at_once && krn_usable(&v[i], &o.m, last) &&
                v[i].frames_at_once(&o.m, &o.ops[last])) {
                run_primitive(v[i].name, &o, last);
                ran++;
            }
        }
    }
    T_LE(2, ran);
}

/* A primitive that cannot runs each frame, and needs no scratch for it. */
TEST(the_others_run_frame_after_frame)
{
    static struct memory all, alone;
    char error[MDL_ERROR_MAX];
    struct krn_net *net = NULL;
    struct tiny o;

    model_init(&o, false);
    T_EQ(krn_net_new(&o.m, "__ref", error, &net), 0);
    T_EQ(krn_net_frames_bytes(net, 0, (struct krn_range){0, 2}, 1, FRAMES), 0);
    struct krn_exec exec = {.width = 1,
                            .scratch = aligned_alloc(64, krn_net_scratch_bytes(net, 1) + 64)};

    memory_init(&all);
    memory_init(&alone);
    memcpy(alone.x, all.x, sizeof(alone.x));
    krn_net_run_frames(net, (struct krn_range){0, 2}, all.mems, 3, &exec);
    T_TRUE(guards_hold(&all, 3));
    for (size_t i = 0; i < 3; i++) {
        krn_net_run_ops(net, 0, 1, alone.mems[i], &exec);
        T_TRUE(memcmp(all.y[i], alone.y[i], sizeof(all.y[i])) == 0);
    }
    free(exec.scratch);
    krn_net_free(net);
}

TEST_MAIN()
