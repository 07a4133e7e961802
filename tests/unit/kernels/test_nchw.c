/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values that stay as NCHW between primitives of that layout, and those that may not: small
 * networks run in one go and cut everywhere, by teams of one to three, against the reference.
 */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "kernels/choice.h"
#include "kernels/common/layout.h"
#include "kernels/kernels.h"
#include "tests/harness.h"

#define WIDTH_MAX 3u

/* A chain, a value with two readers, the parts of a concat, a residual, a first op that changes the
 * layout and a last one that changes it back. */
static const char chain[] =
    "{\"seed\": 3, \"input\": {\"shape\": [3, 21, 18]}, \"layers\": ["
    "{\"op\": \"conv\", \"name\": \"a\", \"out\": 24, \"kernel\": 3, \"pad\": 1, \"act\": "
    "\"relu\"},"
    "{\"op\": \"maxpool\", \"name\": \"b\", \"kernel\": 3, \"stride\": 2},"
    "{\"op\": \"conv\", \"name\": \"c\", \"out\": 20, \"kernel\": 1, \"bn\": true},"
    "{\"op\": \"conv\", \"name\": \"d\", \"out\": 17, \"kernel\": 3, \"pad\": 1},"
    "{\"op\": \"avgpool\", \"name\": \"e\", \"kernel\": 2, \"stride\": 2},"
    "{\"op\": \"conv\", \"out\": 19, \"kernel\": 3, \"pad\": 1, \"act\": \"relu\"}]}";
static const char branches[] =
    "{\"seed\": 5, \"input\": {\"shape\": [3, 16, 15]}, \"layers\": ["
    "{\"op\": \"conv\", \"name\": \"a\", \"out\": 16, \"kernel\": 3, \"pad\": 1, \"act\": "
    "\"relu\"},"
    "{\"op\": \"conv\", \"name\": \"left\", \"out\": 12, \"kernel\": 1},"
    "{\"op\": \"conv\", \"name\": \"right\", \"in\": \"a\", \"out\": 9, \"kernel\": 3, \"pad\": 1},"
    "{\"op\": \"concat\", \"name\": \"both\", \"in\": [\"left\", \"right\"]},"
    "{\"op\": \"conv\", \"name\": \"f\", \"out\": 16, \"kernel\": 3, \"pad\": 1},"
    "{\"op\": \"add\", \"name\": \"sum\", \"in\": [\"f\", \"a\"], \"act\": \"relu\"},"
    "{\"op\": \"conv\", \"name\": \"g\", \"out\": 16, \"kernel\": 3, \"pad\": 1},"
    "{\"op\": \"conv\", \"name\": \"h\", \"out\": 8, \"kernel\": 1}],"
    "\"outputs\": [\"h\", \"g\"]}";

struct frame {
    struct mdl_model *m;
    struct krn_net *net;
    float *input, *arena, *outputs[4];
    struct krn_exec exec[WIDTH_MAX + 1];
};

static float *floats(size_t bytes)
{
    return aligned_alloc(64, base_align_up(bytes + 1, 64));
}

static bool load(const char *text, struct mdl_model **ret)
{
    struct mdl_load_options options = {.const_eval = krn_const_eval};
    char path[] = "/tmp/test_form_XXXXXX.json", error[MDL_ERROR_MAX];
    int fd = mkstemps(path, 5);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

    ok = ok && mdl_load(path, &options, error, ret) == 0;
    if (!ok) {
        fprintf(stderr, "%s\n", error);
    }
    close(fd);
    unlink(path);
    return ok;
}

static bool frame_init(struct frame *f, struct mdl_model *m, const char *only)
{
    char error[MDL_ERROR_MAX];

    *f = (struct frame){
        .m = m, .input = floats(m->inputs[0].bytes), .arena = floats(m->arena_bytes)};
    for (size_t i = 0; i < m->inputs[0].bytes / sizeof(float); i++) {
        f->input[i] = (float)(i * 2654435761u % 1000) / 500.0f - 1.0f;
    }
    for (size_t i = 0; i < m->output_count; i++) {
        f->outputs[i] = floats(m->outputs[i].bytes);
    }
    if (krn_net_new(m, only, error, &f->net) != 0) {
        fprintf(stderr, "%s\n", error);
        return false;
    }
    for (size_t w = 1; w <= WIDTH_MAX; w++) {
        size_t scratch = krn_net_scratch_bytes(f->net, w);

        /* without a pool the parts of a team are run one after the other */
        f->exec[w] = (struct krn_exec){.width = w, .scratch = floats(scratch)};
    }
    return true;
}

static void frame_deinit(struct frame *f)
{
    krn_net_free(f->net);
    free(f->input);
    free(f->arena);
    for (size_t i = 0; i < f->m->output_count; i++) {
        free(f->outputs[i]);
    }
    for (size_t w = 1; w <= WIDTH_MAX; w++) {
        free(f->exec[w].scratch);
    }
}

/* Runs the frame by teams of @width, the ops before @cut by one and the others, on the primitives
 * of
 * @then, by the next. @calls: each team makes a call for every op. */
static void run(struct frame *f, const struct frame *then, size_t width, size_t cut, bool calls)
{
    struct krn_mem mem = {.arena = (uint8_t *)f->arena,
                          .inputs = (const void *const[]){f->input},
                          .outputs = (void *const *)f->outputs};
    size_t begin[] = {0, cut, f->m->op_count};

    memset(f->arena, 0xff, f->m->arena_bytes);
    for (size_t team = 0; team < 2; team++) {
        const struct frame *now = team ? then : f;
        struct krn_exec exec = now->exec[width];
        size_t end = begin[team + 1];

        if (calls && begin[team] < end) {
            exec.first_op = begin[team];
            exec.last_op = end - 1;
        }
        memset(exec.scratch, 0xff, krn_net_scratch_bytes(now->net, width));
        for (size_t i = begin[team]; i < end; i = calls ? i + 1 : end) {
            krn_net_run_ops(now->net, i, calls ? i : end - 1, &mem, &exec);
        }
    }
}

/* Are the outputs within @bound of those of @other, relative to the largest? */
static bool agrees(const struct frame *f, const struct frame *other, double bound)
{
    for (size_t o = 0; o < f->m->output_count; o++) {
        double worst = 0, most = 0;

        for (size_t i = 0; i < f->m->outputs[o].bytes / sizeof(float); i++) {
            worst = fmax(worst, fabs((double)f->outputs[o][i] - (double)other->outputs[o][i]));
            worst = isnan(f->outputs[o][i]) ? INFINITY : worst;
            most = fmax(most, fabs((double)other->outputs[o][i]));
        }
        if (!(worst <= bound * most) || most == 0) {
            fprintf(stderr, "output %zu: off by %g of %g\n", o, worst, most);
            return false;
        }
    }
    return true;
}

static size_t rows_of_planes(const struct krn_net *net)
{
    size_t count = 0;

    for (size_t i = 0; i < krn_net_model(net)->op_count; i++) {
        const struct krn_primitive *v = krn_net_chosen(net, 0, i);

        count += v->nchw_in || v->nchw_out;
    }
    return count;
}

/* Sums of at most 24 * 9 products with u = 2^-24 through at most 6 layers: 6 * 2 * 216 u is 1.6e-4
 * of the sums of absolute values, of which the results are a part. */
#define BOUND 1e-4

static void check(const char *text, const char *only, size_t least_rows)
{
    struct mdl_model *m = NULL;
    struct frame planes, ref;

    T_TRUE(load(text, &m));
    T_TRUE(frame_init(&ref, m, "__ref") && frame_init(&planes, m, only));
    T_LE(least_rows, rows_of_planes(planes.net));
    run(&ref, &ref, 1, 0, false);
    for (size_t width = 1; width <= WIDTH_MAX; width++) {
        struct frame whole = planes;

        for (size_t i = 0; i < m->output_count; i++) {
            whole.outputs[i] = floats(m->outputs[i].bytes);
        }
        run(&whole, &planes, width, 0, false);
        T_TRUE(agrees(&whole, &ref, BOUND));
        for (size_t cut = 0; cut <= m->op_count; cut++) {
            for (size_t calls = 0; calls < 2; calls++) {
                run(&planes, &planes, width, cut, calls);
                T_TRUE(agrees(&planes, &whole, 0)); /* changes of layout round nothing */
                run(&planes, &ref, width, cut, calls);
                T_TRUE(agrees(&planes, &ref, BOUND)); /* a border is as the model has it */
            }
        }
        for (size_t i = 0; i < m->output_count; i++) {
            free(whole.outputs[i]);
        }
    }
    frame_deinit(&planes);
    frame_deinit(&ref);
    mdl_free(m);
}

TEST(a_chain_stays_as_planes)
{
    check(chain, "nchw", 7);
    check(chain, "nchw_kn2row,pool_f32_nchw,_to_nchw,_from_nchw", 6);
}

TEST(rows_of_both_forms_beside_each_other)
{
    check(chain, "conv_f32_nchw", 4);
    check(chain, "pool_f32_nchw", 2);
    check(chain, "copy_f32_to_nchw", 1);
    check(chain, "copy_f32_from_nchw,pool_f32_nchw", 3);
}

TEST(branches_are_read_as_the_model_has_them)
{
    check(branches, "nchw", 6);
    check(branches, "nchw_kn2row", 3);
}

/* The op whose result has that name. */
static size_t op_of(const struct mdl_model *m, const char *name)
{
    size_t i = 0;

    while (i < m->op_count && strcmp(m->tensors[m->ops[i].out[0]].name, name) != 0) {
        i++;
    }
    return i;
}

TEST(what_may_stay)
{
    struct mdl_model *m = NULL;

    T_TRUE(load(chain, &m));
    for (size_t i = 0; i + 1 < m->op_count; i++) {
        T_EQ(krn_nchw_may_stay(m, i), m->ops[i + 1].in[0] == m->ops[i].out[0]);
    }
    T_TRUE(!krn_nchw_may_stay(m, m->op_count - 1)); /* nobody behind it */
    mdl_free(m);
    T_TRUE(load(branches, &m));
    size_t a = op_of(m, "a"), left = op_of(m, "left"), right = op_of(m, "right");

    T_TRUE(right < m->op_count && left < m->op_count && a < m->op_count);
    T_TRUE(!krn_nchw_may_stay(m, a));             /* three readers */
    T_TRUE(!krn_nchw_may_stay(m, left));          /* a part of a concat */
    T_TRUE(!krn_nchw_may_stay(m, right));         /* read as a whole */
    T_TRUE(!krn_nchw_may_stay(m, op_of(m, "g"))); /* an output, too */
    mdl_free(m);
}

/* There and back, of every shape around the squares that are turned over in registers. */
TEST(changes_of_form_are_exact)
{
    for (int i = 0; i < t_times(300); i++) {
        size_t n = (size_t)t_range(1, 2), c = (size_t)t_range(1, 40), h = (size_t)t_range(1, 6);
        size_t w = (size_t)t_range(1, 24), pixel = c + (size_t)(t_range(0, 1) ? t_range(1, 9) : 0);
        struct mdl_tensor t = {
            .dtype = MDL_F32,
            .rank = 4,
            .dim = {n, c, h, w},
            .stride = {(ptrdiff_t)(h * w * pixel), 1, (ptrdiff_t)(w * pixel), (ptrdiff_t)pixel}};
        struct mdl_model m = {.tensors = &t, .tensor_count = 1};
        struct krn_exec exec = {.width = (size_t)t_range(1, 3)};
        size_t count = n * h * w * pixel;
        float *x = floats(count * sizeof(*x)), *y = floats(count * sizeof(*y));
        float *planes = floats(krn_nchw_bytes(&m, 0));

        for (size_t k = 0; k < count; k++) {
            x[k] = (float)k;
            y[k] = -1;
        }
        krn_nchw_to(&m, 0, x, planes, &exec);
        krn_nchw_from(&m, 0, planes, y, &exec);
        for (size_t k = 0; k < count; k++) {
            T_TRUE(y[k] == (k % pixel < c ? x[k] : -1));
        }
        for (size_t k = 0; k < n * c * h * w; k++) {
            size_t image = k / (c * h * w), channel = k / (h * w) % c, at = k % (h * w);

            T_TRUE(planes[k] == x[(image * h * w + at) * pixel + channel]);
        }
        free(x);
        free(y);
        free(planes);
    }
}

TEST_MAIN()
