/* SPDX-License-Identifier: Apache-2.0 */
/* Measuring on a scripted machine: every primitive has its time, and a load comes and goes. */
#include <string.h>

#include "base/base.h"
#include "kernels/select/choose.h"
#include "kernels/select/measure_private.h"
#include "tests/harness.h"
#include "tests/unit/kernels/two_ops.h"

enum load { QUIET, WAITS, CLOCK, STOLEN };

struct script {
    enum load load;
    uint64_t from, until; /* runs that the load covers */
    uint64_t every;       /* of them, every which one */
    uint64_t runs, wall_ns, thread_ns, stolen_ns;
};

/* What the scripted clock says that @p takes: each primitive of these ops 5 us more than the one
 * before it in the table. */
static uint64_t truth(const struct krn_primitive *p)
{
    size_t count;
    uint64_t ns = 100000;

    for (const struct krn_primitive *i = krn_primitives(&count); i < p; i++) {
        ns += i->kind == MDL_OP_UNARY ? 5000 : 0;
    }
    return ns;
}

static bool loaded(const struct script *s)
{
    return s->load != QUIET && s->runs >= s->from && s->runs < s->until && s->runs % s->every == 0;
}

static uint64_t wall(void *arg)
{
    return ((struct script *)arg)->wall_ns;
}

static uint64_t thread(void *arg)
{
    return ((struct script *)arg)->thread_ns;
}

static uint64_t stolen(void *arg)
{
    return ((struct script *)arg)->stolen_ns;
}

static uint64_t reference(void *arg)
{
    struct script *s = arg;

    return s->load == CLOCK && loaded(s) ? 15000 : 10000;
}

/* A load disturbs a primitive the more, the faster it is: it turns their order around. */
static uint64_t took(void *arg, size_t op, const struct krn_primitive *p, uint64_t ns)
{
    struct script *s = arg;
    uint64_t most = 100000000 - 2 * truth(p);

    (void)op;
    ns = loaded(s) ? most : truth(p);
    s->wall_ns += ns;
    s->thread_ns += loaded(s) && s->load == WAITS ? truth(p) : ns;
    s->stolen_ns += loaded(s) && s->load == STOLEN ? 10000000 : 0;
    s->runs++;
    return ns;
}

static void model_init(struct tiny *o)
{
    tiny_model(o, 3, 256, 1024);
    for (size_t i = 0; i < 2; i++) {
        o->ops[i].kind = MDL_OP_UNARY;
        o->ops[i].in[0] = i;
        o->ops[i].out[0] = i + 1;
        o->ops[i].act = i ? MDL_ACT_NEG : MDL_ACT_RELU;
    }
}

/* Every primitive of these ops, by name. */
static int measure(struct tiny *model, struct script *s, const struct krn_times *known,
                   const bool *wanted, struct krn_times *ret)
{
    struct krn_watch_clocks clocks = {.arg = s,
                                      .wall_ns = wall,
                                      .thread_ns = thread,
                                      .reference_ns = reference,
                                      .stolen_ns = stolen,
                                      .took_ns = took};
    struct krn_measure_options o = {.cpu = -1,
                                    .budget_ns = 3600 * BASE_NS_PER_S,
                                    .only = "unary",
                                    .clocks = &clocks,
                                    .known = known,
                                    .wanted = wanted};

    return krn_measure(&model->m, &o, ret);
}

static size_t disturbed(const struct krn_times *t)
{
    size_t count = 0;

    for (size_t i = 0; i < t->count; i++) {
        count += t->times[i].disturbed;
    }
    return count;
}

/* Is the primitive of each op the first of the table that was timed? */
static void check_best(const struct krn_times *t, const struct krn_chosen *c)
{
    for (size_t i = 0; i < t->count; i++) {
        T_LE(truth(c->choice.own[t->times[i].op]), truth(t->times[i].primitive));
    }
}

static void choose(const struct krn_times *t, struct krn_chosen *ret)
{
    T_EQ(krn_choose(t, &(struct krn_choose_options){.exact = true}, ret), 0);
}

TEST(what_is_disturbed_is_left_out)
{
    static const enum load loads[] = {WAITS, CLOCK, STOLEN};

    for (size_t i = 0; i < base_array_count(loads); i++) {
        struct script s = {.load = loads[i], .until = UINT64_MAX, .every = i ? 13 : 3};
        struct krn_times t = KRN_TIMES_NULL;
        struct krn_chosen c;
        struct tiny model;

        model_init(&model);
        T_EQ(measure(&model, &s, NULL, NULL, &t), 0);
        T_LT(2, t.count); /* there is something to choose */
        T_LT(0, disturbed(&t));
        for (size_t k = 0; i == 0 && k < t.count; k++) {
            T_TRUE(t.times[k].ns == (double)truth(t.times[k].primitive));
        }
        choose(&t, &c);
        check_best(&t, &c);
        krn_chosen_deinit(&c);
        krn_times_deinit(&t);
    }
}

/* Its clean samples decide, but what the load did to caches beside them is not known. */
TEST(a_load_over_half_of_the_measuring_changes_nothing_but_is_not_trusted)
{
    struct script s = {.load = WAITS, .until = 60, .every = 1};
    struct krn_times t = KRN_TIMES_NULL;
    struct krn_chosen c;
    struct tiny model;

    model_init(&model);
    T_EQ(measure(&model, &s, NULL, NULL, &t), 0);
    choose(&t, &c);
    check_best(&t, &c);
    T_TRUE(krn_times_disturbed(&t) > KRN_MEASURE_RESTLESS);
    for (size_t i = 0; i < t.count; i++) {
        T_LE(0.05 * t.times[i].ns, t.times[i].sigma_ns);
    }
    krn_chosen_deinit(&c);
    krn_times_deinit(&t);
}

TEST(a_short_disturbance_leaves_no_doubt)
{
    struct script s = {.load = WAITS, .until = 6, .every = 1};
    struct krn_times t = KRN_TIMES_NULL;
    struct krn_chosen c;
    struct tiny model;

    model_init(&model);
    T_EQ(measure(&model, &s, NULL, NULL, &t), 0);
    T_TRUE(krn_times_disturbed(&t) < KRN_MEASURE_RESTLESS);
    T_LT(0, disturbed(&t));
    choose(&t, &c);
    T_TRUE(krn_chosen_doubt(&c) < 0.01);
    krn_chosen_deinit(&c);
    krn_times_deinit(&t);
}

/* The time of a thread that others keep from its core is what it ran, but it stays in doubt. */
TEST(waiting_for_the_core_is_no_part_of_a_time)
{
    struct script s = {.load = WAITS, .until = UINT64_MAX, .every = 1};
    struct krn_times t = KRN_TIMES_NULL;
    struct krn_chosen c;
    struct tiny model;

    model_init(&model);
    T_EQ(measure(&model, &s, NULL, NULL, &t), 0);
    T_TRUE(krn_times_disturbed(&t) == 1);
    for (size_t i = 0; i < t.count; i++) {
        T_TRUE(t.times[i].ns == (double)truth(t.times[i].primitive));
    }
    choose(&t, &c);
    check_best(&t, &c);
    T_TRUE(krn_chosen_doubt(&c) > 0.01);
    krn_chosen_deinit(&c);
    krn_times_deinit(&t);
}

/* A load over all of the first measuring leaves doubt, and the wrong choice. Measured again without
 * it, what is unsure is put right, and nothing else is measured. */
TEST(a_load_over_all_of_it_leaves_doubt_until_it_is_measured_again)
{
    struct script s = {.load = STOLEN, .until = UINT64_MAX, .every = 1};
    struct krn_times t = KRN_TIMES_NULL, more = KRN_TIMES_NULL;
    struct krn_chosen first, now, c;
    struct tiny model;
    bool unsure[2];

    model_init(&model);
    T_EQ(measure(&model, &s, NULL, NULL, &t), 0);
    T_TRUE(krn_times_disturbed(&t) == 1);
    choose(&t, &first);
    T_TRUE(krn_chosen_doubt(&first) > 0.01);
    T_EQ(krn_chosen_unsure(&first, 0.005, unsure), 2);
    s.load = QUIET;
    T_EQ(measure(&model, &s, &t, unsure, &more), 0);
    T_EQ(krn_times_join(&t, &more), 0);
    choose(&t, &c);
    check_best(&t, &c);
    T_TRUE(krn_chosen_doubt(&c) < 0.01);
    T_EQ(krn_choose_by(&t, &first.choice, &now), 0);
    T_TRUE(c.choice.own[0] == first.choice.own[0] || krn_chosen_beats(&c, &now));
    T_TRUE(!krn_chosen_beats(&c, &c));
    krn_chosen_deinit(&first);
    krn_chosen_deinit(&now);
    krn_chosen_deinit(&c);
    krn_times_deinit(&more);
    krn_times_deinit(&t);
}

TEST(only_what_is_wanted_is_measured_again)
{
    struct script s = {.load = QUIET};
    struct krn_times t = KRN_TIMES_NULL, more = KRN_TIMES_NULL;
    bool second[2] = {false, true};
    size_t of[2] = {0};
    struct tiny model;

    model_init(&model);
    T_EQ(measure(&model, &s, NULL, NULL, &t), 0);
    T_EQ(measure(&model, &s, &t, second, &more), 0);
    for (size_t i = 0; i < more.count; i++) {
        of[more.times[i].op] += !more.times[i].primitive->fused;
    }
    T_EQ(of[0], 1);
    T_LT(1, of[1]);
    krn_times_deinit(&more);
    krn_times_deinit(&t);
}

/* A product of one row reads its weights from memory, which takes longer than its sums. */
TEST(times_of_another_model_serve_its_like)
{
    struct script s = {.load = QUIET};
    struct krn_times t = KRN_TIMES_NULL, like = KRN_TIMES_NULL;
    struct tiny model, other;
    bool wanted[2];

    model_init(&model);
    model_init(&other);
    T_EQ(measure(&model, &s, NULL, NULL, &t), 0);
    other.ops[1].act = MDL_ACT_ABS;
    T_EQ(krn_times_like(&t, &model.m, &other.m, &like, wanted), 0);
    T_TRUE(!wanted[0] && wanted[1]);
    T_LT(0, like.count);
    for (size_t i = 0; i < like.count; i++) {
        const struct krn_time *x = krn_times_of(&t, 0, like.times[i].primitive);

        T_EQ(like.times[i].op, 0);
        T_TRUE(x != NULL && x->ns == like.times[i].ns);
    }
    krn_times_deinit(&like);
    krn_times_deinit(&t);
}

TEST(time_is_divided_by_what_takes_it)
{
    bool second[2] = {false, true};
    struct krn_times known = {.op_count = 2};
    struct krn_measure_options options = {.only = "unary"};
    struct krn_measurement r = {.o = &options};
    struct tiny model;

    model_init(&model);
    r.m = &model.m;
    model.ops[0].macs = model.ops[1].macs = 16000;
    T_EQ(krn_measure_list(&r), 0);
    T_NEAR(r.ops[0].share, 0.5, 1e-9);
    krn_measure_deinit(&r);

    model.storages[2].bytes = 72000;
    model.ops[1].in[1] = 2;
    r = (struct krn_measurement){.m = &model.m, .o = &options};
    T_EQ(krn_measure_list(&r), 0);
    T_NEAR(r.ops[0].share, 1257.0 / (1257 + 9257), 1e-9);
    T_NEAR(r.ops[0].share + r.ops[1].share, 1, 1e-9);
    krn_measure_deinit(&r);

    options.known = &known;
    options.wanted = second;
    r = (struct krn_measurement){.m = &model.m, .o = &options};
    T_EQ(krn_measure_list(&r), 0);
    T_NEAR(r.ops[0].share, 0, 0);
    T_NEAR(r.ops[1].share, 1, 0);
    krn_measure_deinit(&r);
}

/* What writes nothing, or would take a minute, is not run: it has its time all the same, and the
 * others are measured. */
TEST(an_op_that_is_not_run_ends_no_measurement)
{
    struct script s = {.load = QUIET};
    struct krn_times t;
    struct tiny model;

    for (size_t at = 0; at < 2; at++) {
        model_init(&model);
        model.tensors[at + 1].dim[0] = 0;
        model.tensors[2].dim[0] = 0;
        T_EQ(measure(&model, &s, NULL, NULL, &t), 0);
        T_EQ(t.times[t.count - 1].op, 1u);
        T_EQ(t.times[t.count - 1].samples, 0u);
        T_NEAR(t.times[t.count - 1].ns, 0, 0);
        T_EQ(t.times[0].samples > 0, at == 1);
        krn_times_deinit(&t);
    }
    model_init(&model);
    model.ops[1].macs = 1e15;
    T_EQ(measure(&model, &s, NULL, NULL, &t), 0);
    T_EQ(t.times[t.count - 1].samples, 0u);
    T_LT(1e9, t.times[t.count - 1].ns);
    T_LT(0, t.times[0].samples);
    krn_times_deinit(&t);
}

/* However little time there is, what takes long to pack is not judged by one run. */
TEST(a_product_that_fills_a_window_gets_some_samples)
{
    enum { SIDE = 5100 }; /* 99 MB of weights */
    struct script s = {.load = QUIET};
    struct krn_watch_clocks clocks = {.arg = &s,
                                      .wall_ns = wall,
                                      .thread_ns = thread,
                                      .reference_ns = reference,
                                      .took_ns = took};
    struct krn_measure_options o = {
        .cpu = -1, .budget_ns = 1, .only = "gemm_f32_igemm", .clocks = &clocks};
    struct krn_times t = KRN_TIMES_NULL;
    size_t bytes = (size_t)SIDE * SIDE * sizeof(float);
    base_autofree float *weights = calloc(1, bytes);
    struct tiny model;

    T_TRUE(weights);
    tiny_model(&model, 3, SIDE, 1024);
    model.tensors[1].dim[0] = SIDE;
    model.storages[1] =
        (struct mdl_storage){.home = MDL_HOME_CONST, .bytes = bytes, .data = (void *)weights};
    model.ops[0].kind = MDL_OP_GEMM;
    model.ops[0].in[0] = 0;
    model.ops[0].in[1] = 1;
    model.ops[0].out[0] = 2;
    model.ops[0].attr.gemm.alpha = model.ops[0].attr.gemm.beta = 1;
    model.ops[0].channels = SIDE;
    model.m.op_count = 1;
    model.m.weight_bytes = bytes;
    T_EQ(krn_measure(&model.m, &o, &t), 0);
    T_LT(0, t.count);
    for (size_t i = 0; i < t.count; i++) {
        T_LE(KRN_FIGURE_CLEAN_MIN, t.times[i].samples);
    }
    krn_times_deinit(&t);
}

TEST_MAIN()
