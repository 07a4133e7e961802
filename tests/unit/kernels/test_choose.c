/* SPDX-License-Identifier: Apache-2.0 */
/* From times to a choice, on times made by hand; and times of a small model. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "kernels/select/choose.h"
#include "tests/harness.h"
#include "tests/unit/kernels/choose_uniform.h"
#include "tests/unit/kernels/two_ops.h"

static const struct krn_primitive ours = {.name = "a__ours"}, library = {.name = "a__library"},
                                  pair = {.name = "ab__pair", .fused = true},
                                  rough = {.name = "a__rough", .inexact = true};

/* Three ops: the library is faster at the first and larger; a pair over the last two. */
static const struct krn_time by_hand[] = {
    {0, &ours, 100, 20, 10}, {0, &library, 60, 20, 90}, {0, &rough, 20, 20, 45},
    {1, &ours, 30, 20, 10},  {1, &library, 50, 20, 10}, {1, &pair, 65, 20, 40},
    {2, &ours, 80, 20, 10},  {2, &library, 60, 20, 20},
};

static struct krn_times times_by_hand(void)
{
    return (struct krn_times){.op_count = 3,
                              .count = base_array_count(by_hand),
                              .times = (struct krn_time *)(uintptr_t)by_hand};
}

TEST(choice_is_the_fastest)
{
    struct krn_times t = times_by_hand();
    struct krn_choose_options o = {.exact = true};
    struct krn_chosen c;

    T_EQ(krn_choose(&t, &o, &c), 0);
    T_EQ(c.ns, 125); /* 60, and the pair's 65 rather than 30 + 60 */
    T_EQ(c.packed_bytes, 130);
    T_EQ(c.inexact, 0);
    T_TRUE(c.choice.own[0] == &library && c.choice.fused[0] == NULL);
    T_TRUE(c.choice.fused[1] == &pair && c.choice.fused[2] == NULL);
    T_TRUE(c.choice.own[1] == &ours && c.choice.own[2] == &library); /* when cut apart */
    T_TRUE(fabs(c.op_ns[1] - 65.0 * 30 / 90) < 1e-9);                /* shared as they take alone */
    T_TRUE(fabs(c.op_ns[2] - 65.0 * 60 / 90) < 1e-9);
    krn_chosen_deinit(&c);
    o.exact = false;
    T_EQ(krn_choose(&t, &o, &c), 0);
    T_TRUE(c.choice.own[0] == &rough);
    T_EQ(c.inexact, 1);
    krn_chosen_deinit(&c);
}

TEST(choice_keeps_to_its_memory)
{
    struct krn_times t = times_by_hand();
    struct krn_choose_options o = {.exact = true, .packed_bytes_max = 60};
    struct krn_chosen c;

    T_EQ(krn_choose(&t, &o, &c), 0);
    T_EQ(c.ns, 165); /* 100 + 65 with 10 + 40 bytes */
    krn_chosen_deinit(&c);
    o.packed_bytes_max = 29;
    T_EQ(krn_choose(&t, &o, &c), -ENOSPC);
    o.packed_bytes_max = 0;
    o.objective = KRN_MEMORY;
    T_EQ(krn_choose(&t, &o, &c), 0);
    T_EQ(c.packed_bytes, 30);
    T_EQ(c.ns, 210); /* of the two primitives of op 1 that are as small the faster */
    krn_chosen_deinit(&c);
}

TEST(front_and_uniform_choices)
{
    struct krn_times t = times_by_hand();
    struct krn_choose_options o = {.exact = true};
    struct krn_chosen front[8], c;
    size_t count = 0;

    T_EQ(krn_choose_front(&t, &o, 8, front, &count), 0);
    T_EQ(front[0].ns, 125);
    T_EQ(front[count - 1].packed_bytes, 30);
    for (size_t i = 0; i < count; i++) {
        T_TRUE(i == 0 || (front[i].ns > front[i - 1].ns &&
                          front[i].packed_bytes < front[i - 1].packed_bytes));
    }
    for (size_t i = 0; i < count; i++) {
        krn_chosen_deinit(&front[i]);
    }
    T_EQ(choose_uniform(&t, "__ours", &c), 0);
    T_EQ(c.ns, 210);
    krn_chosen_deinit(&c);
    T_EQ(choose_uniform(&t, "__library", &c), 0);
    T_EQ(c.ns, 170);
    krn_chosen_deinit(&c);
}

#define OPS 5u
#define ROWS 5u

static const struct krn_primitive of_forms[] = {
    {.name = "x__nhwc"},
    {.name = "x__planes", .nchw_in = true, .nchw_out = true},
    {.name = "x__takes", .nchw_in = true},
    {.name = "x__leaves", .nchw_out = true},
    {.name = "xx__pair", .fused = true},
};

struct random_times {
    struct krn_times t;
    struct krn_time times[OPS * ROWS];
    struct krn_layout_time layouts[OPS];
};

static void make_times(struct random_times *r)
{
    r->t = (struct krn_times){
        .op_count = (size_t)t_range(1, OPS), .times = r->times, .layouts = r->layouts};
    for (size_t op = 0; op < r->t.op_count; op++) {
        for (size_t i = 0; i < ROWS; i++) {
            bool fits = !of_forms[i].fused || op + 1 < r->t.op_count;

            if (i == 0 || (fits && t_range(0, 2))) {
                r->times[r->t.count++] = (struct krn_time){op, &of_forms[i], (double)t_range(0, 40),
                                                           20, (size_t)t_range(0, 40)};
            }
        }
        r->layouts[op] = (struct krn_layout_time){(double)t_range(0, 15), (double)t_range(0, 15),
                                                  op + 1 < r->t.op_count && t_range(0, 2)};
    }
}

/* Is @x a primitive that a uniform choice may take? */
static bool uniform_takes(const struct random_times *r, const struct krn_time *x, const char *only)
{
    bool any = false;

    for (size_t i = 0; i < r->t.count; i++) {
        any |= r->times[i].op == x->op && strstr(r->times[i].primitive->name, only);
    }
    return !x->primitive->fused && (!any || strstr(x->primitive->name, only));
}

/* The least time of what comes behind @before, told from what runs: a primitive that takes NCHW
 * turns its input over unless the primitive before has left it so, one that leaves NCHW its output
 * unless the next takes them. */
static double brute_times(const struct random_times *r, const struct krn_time *before,
                          const char *only)
{
    size_t op = before ? before->op + (before->primitive->fused ? 2 : 1) : 0;
    bool left = before && before->primitive->nchw_out;
    double least = INFINITY;

    if (op == r->t.op_count) {
        return left ? r->layouts[op - 1].out_ns : 0;
    }
    for (size_t i = 0; i < r->t.count; i++) {
        const struct krn_time *x = &r->times[i];
        double ns = x->ns;

        if (x->op != op || (only && !uniform_takes(r, x, only))) {
            continue;
        }
        if (!left || !x->primitive->nchw_in || !r->layouts[op - 1].may_stay) {
            ns += (left ? r->layouts[op - 1].out_ns : 0) +
                  (x->primitive->nchw_in ? r->layouts[op].in_ns : 0);
        }
        least = fmin(least, ns + brute_times(r, x, only));
    }
    return least;
}

TEST(changes_of_form_are_counted)
{
    for (int i = 0; i < 500; i++) {
        struct krn_choose_options o = {.exact = true};
        struct random_times r;
        struct krn_chosen front[16], c;
        size_t count;

        make_times(&r);
        for (size_t a = 0; a < 2; a++) {
            double sum = 0;

            o.path.algorithm = a ? KRN_PATH_A_STAR : KRN_PATH_DIJKSTRA;
            T_EQ(krn_choose(&r.t, &o, &c), 0);
            for (size_t op = 0; op < r.t.op_count; op++) {
                sum += c.op_ns[op];
            }
            T_NEAR(c.ns, brute_times(&r, NULL, NULL), 1e-9);
            T_NEAR(sum, c.ns, 1e-9);
            krn_chosen_deinit(&c);
        }
        T_EQ(krn_choose_front(&r.t, &o, 16, front, &count), 0);
        T_NEAR(front[0].ns, brute_times(&r, NULL, NULL), 1e-9);
        for (size_t k = 0; k < count; k++) {
            krn_chosen_deinit(&front[k]);
        }
        T_EQ(choose_uniform(&r.t, "__nhwc", &c), 0);
        T_NEAR(c.ns, brute_times(&r, NULL, "__nhwc"), 1e-9);
        krn_chosen_deinit(&c);
        T_EQ(choose_uniform(&r.t, "__planes", &c), 0);
        T_NEAR(c.ns, brute_times(&r, NULL, "__planes"), 1e-9);
        krn_chosen_deinit(&c);
    }
}

/* A primitive on NCHW that is the fastest by itself, between primitives that are not: greedy falls
 * for it. */
TEST(greedy_search_pays_for_changes_of_form)
{
    struct krn_time times[] = {{0, &of_forms[0], 50, 20, 0},
                               {0, &of_forms[3], 30, 20, 0},
                               {1, &of_forms[0], 50, 20, 0},
                               {1, &of_forms[1], 70, 20, 0},
                               {2, &of_forms[0], 50, 20, 0}};
    struct krn_layout_time layouts[] = {{10, 30, true}, {20, 20, true}, {0, 0, false}};
    struct krn_times t = {.op_count = 3, .count = 5, .times = times, .layouts = layouts};
    static const double ns[] = {150, 150, 150, 170, 160, 150};

    for (int a = 0; a < KRN_PATH_ALGORITHM_COUNT; a++) {
        struct krn_choose_options o = {.exact = true};
        struct krn_chosen c;

        o.path.algorithm = (enum krn_path_algorithm)a;
        T_EQ(krn_choose(&t, &o, &c), 0);
        T_EQ(c.ns, ns[a]);
        krn_chosen_deinit(&c);
    }
}

/* y = act(act(x)), two element functions on 1 x 256 values. */
static void tiny_init(struct tiny *o)
{
    tiny_model(o, 3, 256, 1024);
    for (size_t i = 0; i < 2; i++) {
        o->ops[i].kind = MDL_OP_UNARY;
        o->ops[i].in[0] = i;
        o->ops[i].out[0] = i + 1;
        o->ops[i].act = i ? MDL_ACT_NEG : MDL_ACT_RELU;
    }
}

TEST(measured_choice_runs_the_model)
{
    struct krn_measure_options mo = {.cpu = -1, .budget_ns = 50 * BASE_NS_PER_MS, .frames = 5};
    struct krn_choose_options o = {.exact = true};
    struct krn_times t = KRN_TIMES_NULL;
    struct krn_net *net = NULL;
    struct krn_chosen c;
    char error[MDL_ERROR_MAX];
    struct tiny model;
    bool alone[2] = {false};

    tiny_init(&model);
    T_EQ(krn_measure(&model.m, &mo, &t), 0);
    T_EQ(t.op_count, 2);
    for (size_t i = 0; i < t.count; i++) {
        T_TRUE(t.times[i].op < 2 && (i == 0 || t.times[i].op >= t.times[i - 1].op));
        T_TRUE(t.times[i].ns > 0 && t.times[i].samples + t.times[i].disturbed > 0);
        T_TRUE(t.times[i].samples <= 5);
        T_TRUE(krn_usable(t.times[i].primitive, &model.m, t.times[i].op));
        alone[t.times[i].op] |= !t.times[i].primitive->fused;
    }
    T_TRUE(alone[0] && alone[1]);
    T_EQ(krn_choose(&t, &o, &c), 0);
    T_EQ(krn_net_new_chosen(&model.m, &c.choice, 1, KRN_PACK_ONE_STAGE, error, &net), 0);

    _Alignas(64) float x[256], y[256], arena[256];
    const void *inputs[] = {x};
    void *outputs[] = {y};
    struct krn_mem mem = {.arena = (uint8_t *)arena, .inputs = inputs, .outputs = outputs};
    struct krn_exec exec = {.width = 1};
    size_t scratch;

    for (size_t i = 0; i < 256; i++) {
        x[i] = (float)i - 100;
    }
    T_EQ(krn_net_join(net, 0, 0, 1, 1, &scratch), 0);
    exec.scratch = aligned_alloc(64, scratch + 64);
    krn_net_run_ops(net, 0, 1, &mem, &exec);
    for (size_t i = 0; i < 256; i++) {
        T_TRUE(y[i] == (i > 100 ? 100 - (float)i : 0));
    }
    free(exec.scratch);
    krn_net_free(net);
    krn_chosen_deinit(&c);
    krn_times_deinit(&t);
}

/* Of the primitives of an op, those that were timed. */
static size_t timed(const struct krn_times *t, size_t op)
{
    size_t count = 0;

    for (size_t i = 0; i < t->count; i++) {
        count += t->times[i].op == op && !t->times[i].primitive->fused;
    }
    return count;
}

TEST(beyond_the_limit_one_primitive_of_each_op_is_enough)
{
    struct krn_measure_options o = {.cpu = -1, .budget_ns = 1};
    struct krn_times all = KRN_TIMES_NULL, few = KRN_TIMES_NULL;
    struct krn_chosen c;
    struct tiny model;

    tiny_init(&model);
    T_EQ(krn_measure(&model.m, &o, &all), 0);
    o.limit_ns = 1;
    T_EQ(krn_measure(&model.m, &o, &few), 0);
    for (size_t op = 0; op < 2; op++) {
        T_EQ(timed(&few, op), 1);
        T_LE(1, timed(&all, op));
    }
    T_EQ(krn_choose(&few, &(struct krn_choose_options){.exact = true}, &c), 0);
    krn_chosen_deinit(&c);
    krn_times_deinit(&all);
    krn_times_deinit(&few);
}

TEST(measuring_can_be_given_up_and_can_fail)
{
    _Atomic bool stop = true;
    struct krn_measure_options o = {.cpu = -1, .budget_ns = BASE_NS_PER_S, .stop = &stop};
    struct krn_times t = KRN_TIMES_NULL;
    struct tiny model;

    tiny_init(&model);
    T_EQ(krn_measure(&model.m, &o, &t), -ECANCELED);
    stop = false;
    model.tensors[1].dtype = MDL_DTYPE_COUNT;
    T_EQ(krn_measure(&model.m, &o, &t), -EOPNOTSUPP);
    T_TRUE(t.times == NULL);
}

TEST_MAIN()
