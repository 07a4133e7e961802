/* SPDX-License-Identifier: Apache-2.0 */
/* krn_net, krn_const_eval(), krn_parallel(), krn_share(): on small models. */
#include "base/base.h"
#include "kernels/choice.h"
#include "kernels/kernels.h"
#include "kernels/net_private.h"
#include "tests/harness.h"
#include "tests/unit/kernels/two_ops.h"

enum { X, W, T, C, Y };

/* y = x * w + c: a constant w at any address, one residual c, in two ops. */
static void tiny_init(struct tiny *o, const void *w, const void *c)
{
    tiny_model(o, 5, 4, 128);
    o->storages[W] = (struct mdl_storage){.home = MDL_HOME_CONST, .bytes = 16, .data = w};
    o->storages[C] = (struct mdl_storage){.home = MDL_HOME_CONST, .bytes = 16, .data = c};
    o->storages[T].offset = 64;
    for (size_t i = 0; i < 2; i++) {
        o->ops[i].kind = MDL_OP_BINARY;
        o->ops[i].in[0] = i ? T : X;
        o->ops[i].in[1] = i ? C : W;
        o->ops[i].out[0] = i ? Y : T;
        o->ops[i].attr.binary = i ? MDL_BIN_ADD : MDL_BIN_MUL;
    }
}

static bool runs(struct tiny *o, const char *only)
{
    char error[MDL_ERROR_MAX];
    struct krn_net *net = NULL;
    _Alignas(64) uint8_t arena[128];
    const float x[4] = {1, 2, 3, 4};
    float y[4];
    const void *inputs[] = {x};
    void *outputs[] = {y};
    struct krn_mem mem = {.arena = arena, .inputs = inputs, .outputs = outputs};

    if (krn_net_new(&o->m, only, error, &net) != 0) {
        fprintf(stderr, "%s\n", error);
        return false;
    }
    size_t scratch = krn_net_scratch_bytes(net, 1);
    struct krn_exec exec = {.width = 1, .scratch = aligned_alloc(64, scratch + 64)};

    krn_net_run_ops(net, 0, 0, &mem, &exec);
    krn_net_run_ops(net, 1, 1, &mem, &exec);
    bool ok = y[0] == 11 && y[1] == 24 && y[2] == 39 && y[3] == 56 && scratch % 64 == 0 &&
              krn_net_model(net) == &o->m;
    if (only) {
        ok &= strstr(krn_net_chosen(net, 0, 0)->name, only) != NULL;
    }
    krn_net_free(net);
    free(exec.scratch);
    return ok;
}

TEST(net_runs_ranges_of_ops)
{
    const float w[4] = {10, 11, 12, 13}, c[4] = {1, 2, 3, 4};
    struct tiny o;

    tiny_init(&o, w, c);
    T_TRUE(runs(&o, NULL));
    T_TRUE(runs(&o, "__ref"));
}

/* File bytes: constants at odd addresses, for every primitive (undefined behaviour shows under the
 * sanitizers) */
TEST(net_takes_constants_at_any_address)
{
    const float w[4] = {10, 11, 12, 13}, c[4] = {1, 2, 3, 4};
    _Alignas(16) uint8_t bytes[64];
    struct tiny o;

    memcpy(bytes + 1, w, sizeof(w));
    memcpy(bytes + 33, c, sizeof(c));
    tiny_init(&o, bytes + 1, bytes + 33);
    T_TRUE(runs(&o, NULL));
    T_TRUE(runs(&o, "__ref"));
}

TEST(net_says_which_op_cannot_run)
{
    const float w[4] = {0}, c[4] = {0};
    char error[MDL_ERROR_MAX] = "";
    struct krn_net *net = NULL;
    struct tiny o;

    tiny_init(&o, w, c);
    o.tensors[W].dtype = MDL_U8;
    T_EQ(krn_net_new(&o.m, NULL, error, &net), -EOPNOTSUPP);
    T_CONTAINS(error, "binary 'tiny'");
    T_TRUE(net == NULL);
}

TEST(net_only_is_a_wish)
{
    const float w[4] = {10, 11, 12, 13}, c[4] = {1, 2, 3, 4};
    char error[MDL_ERROR_MAX];
    struct krn_net *a = NULL, *b = NULL, *d = NULL;
    struct tiny o;

    tiny_init(&o, w, c);
    T_EQ(krn_net_new(&o.m, NULL, error, &a), 0);
    T_EQ(krn_net_new(&o.m, "no_such_primitive", error, &b), 0);
    T_EQ(krn_net_new(&o.m, "no_such,binary__ref", error, &d), 0);
    T_TRUE(krn_net_chosen(a, 0, 0) == krn_net_chosen(b, 0, 0));
    T_STR(krn_net_chosen(d, 0, 0)->name, "binary__ref");
    krn_net_free(a);
    krn_net_free(b);
    krn_net_free(d);
    T_TRUE(krn_net_free(NULL) == NULL);
}

TEST(net_says_in_how_many_pieces_ops_run)
{
    const float w[4] = {10, 11, 12, 13}, c[4] = {1, 2, 3, 4};
    const struct krn_range both = {0, 2};
    char error[MDL_ERROR_MAX];
    struct krn_net *net = NULL;
    size_t bytes = 0;
    struct tiny o;

    tiny_init(&o, w, c);
    T_EQ(krn_net_new(&o.m, "tiled,vec,avx", error, &net), 0);
    T_EQ(krn_net_pieces(net, 0, both, 16), 16);
    T_EQ(krn_net_pieces(net, 0, both, 7), 4);
    T_EQ(krn_net_pieces(net, 0, both, 1), 1);
    T_EQ(krn_net_join_pieces(net, 0, both, 16, &bytes), 0);
    T_EQ(bytes, krn_net_scratch_bytes(net, 16));
    bytes = 1 << 20;
    T_EQ(krn_net_join_pieces(net, 0, both, 16, &bytes), 0);
    T_EQ(bytes, 1 << 20);
    krn_net_free(net);
    T_EQ(krn_net_new(&o.m, "__xnn", error, &net), 0);
    T_EQ(krn_net_pieces(net, 0, both, 16), krn_net_chosen(net, 0, 1)->whole ? 1 : 16);
    krn_net_free(net);
}

/* Two kinds of cores that run op 0 by different primitives and op 1 by the same. */
static void choose_two(const struct tiny *o, struct krn_choice ret[2])
{
    for (size_t k = 0; k < 2; k++) {
        T_EQ(krn_choice_init(&ret[k], 2), 0);
        ret[k].own[0] = krn_primitive_next(&o->m, 0, false, k ? "__ref" : "tiled,vec,avx", NULL);
        ret[k].own[1] = krn_primitive_next(&o->m, 1, false, NULL, NULL);
    }
    snprintf(ret[0].kind, sizeof(ret[0].kind), "big");
    snprintf(ret[1].kind, sizeof(ret[1].kind), "little");
}

TEST(net_runs_each_kinds_primitives)
{
    const float w[4] = {10, 11, 12, 13}, c[4] = {1, 2, 3, 4}, x[4] = {1, 2, 3, 4};
    char error[MDL_ERROR_MAX];
    struct krn_choice choices[2];
    struct krn_net *net = NULL;
    struct tiny o;
    _Alignas(64) uint8_t arena[128];
    const void *inputs[] = {x};

    tiny_init(&o, w, c);
    choose_two(&o, choices);
    T_EQ(krn_net_new_chosen(&o.m, choices, 2, KRN_PACK_ONE_STAGE, error, &net), 0);
    T_EQ(krn_net_kinds(net), 2);
    T_EQ(krn_net_kind(net, "little"), 1);
    T_EQ(krn_net_kind(net, "little.5"), 1); /* a part of them */
    T_EQ(krn_net_kind(net, "little5"), 0);
    T_EQ(krn_net_kind(net, "unheard of"), 0);
    T_STR(krn_net_chosen(net, 1, 0)->name, "binary__ref");
    T_TRUE(krn_net_chosen(net, 0, 0) != krn_net_chosen(net, 1, 0));
    T_TRUE(krn_net_chosen_fused(net, 1, 0) == NULL);
    for (size_t kind = 0; kind < 2; kind++) {
        float y[4] = {0};
        void *outputs[] = {y};
        struct krn_mem mem = {.arena = arena, .inputs = inputs, .outputs = outputs};
        size_t scratch = SIZE_MAX;

        T_EQ(krn_net_join(net, kind, 0, 1, 1, &scratch), 0);
        T_EQ(scratch % 64, 0);
        krn_net_trim(net);
        struct krn_exec exec = {
            .width = 1, .scratch = aligned_alloc(64, scratch + 64), .kind = kind};
        krn_net_run_ops(net, 0, 1, &mem, &exec);
        T_TRUE(y[0] == 11 && y[1] == 24 && y[2] == 39 && y[3] == 56);
        krn_net_leave(net, kind, 0, 1);
        free(exec.scratch);
    }
    krn_net_trim(net);
    T_EQ(krn_net_packed_bytes(net), 0);
    krn_net_free(net);
    krn_choice_deinit(&choices[0]);
    krn_choice_deinit(&choices[1]);
}

/* The NUMA nodes, one bit each, of an operator's weights for cores of this kind. */
static uint64_t nodes(const struct krn_net *net, size_t kind, size_t op)
{
    return krn_net_own(net, kind, op)->nodes;
}

/* Op 0 has a primitive for each kind, op 1 one for both: what teams of both read is on both
 * nodes. */
TEST(net_places_rows_where_they_are_read)
{
    const float w[4] = {10, 11, 12, 13}, c[4] = {1, 2, 3, 4};
    char error[MDL_ERROR_MAX];
    struct krn_choice choices[2];
    struct krn_net *net = NULL;
    struct tiny o;

    tiny_init(&o, w, c);
    choose_two(&o, choices);
    T_EQ(krn_net_new_chosen(&o.m, choices, 2, KRN_PACK_ONE_STAGE, error, &net), 0);
    T_EQ(nodes(net, 0, 0), 0);
    krn_net_place(net, 0, 1, (uint64_t[]){1, 2});
    T_EQ(nodes(net, 0, 0), 1);
    T_EQ(nodes(net, 1, 0), 2);
    T_EQ(nodes(net, 0, 1), 3);
    T_EQ(nodes(net, 1, 1), 3);
    krn_net_place(net, 1, 9, (uint64_t[]){0, 8}); /* only kind 1 runs op 1 now */
    T_EQ(nodes(net, 1, 1), 8);
    T_EQ(nodes(net, 0, 0), 1);
    krn_net_place(net, 0, 1, (uint64_t[]){0, 0}); /* nothing is known */
    T_EQ(nodes(net, 1, 1), 8);
    krn_net_free(net);
    krn_choice_deinit(&choices[0]);
    krn_choice_deinit(&choices[1]);
}

/* A depthwise and a 1x1 convolution that the static order runs as one. Return: owned; NULL. */
static struct mdl_model *pair_model(void)
{
    static const char text[] =
        "{\"input\": {\"shape\": [32, 14, 14]}, \"layers\": ["
        "{\"op\": \"dwconv\", \"kernel\": 3, \"pad\": 1, \"act\": \"relu\"},"
        "{\"op\": \"conv\", \"out\": 64, \"kernel\": 1, \"act\": \"relu\"}]}";
    struct mdl_model *m = NULL;
    char error[MDL_ERROR_MAX];
    FILE *f = fopen("pair.json", "w");

    if (!f || fputs(text, f) < 0 || fclose(f) != 0 || mdl_load("pair.json", NULL, error, &m) < 0) {
        return NULL;
    }
    unlink("pair.json");
    return m;
}

/* What runs the two apart is packed when a team is to do that, by krn_net_new() at once. */
TEST(net_packs_what_a_plan_runs)
{
    struct krn_net *all = NULL, *net = NULL;
    struct mdl_model *m = pair_model();
    char error[MDL_ERROR_MAX];
    size_t scratch, pair = 0, packed;

    T_TRUE(m != NULL);
    T_EQ(krn_net_new_preferred(m, NULL, KRN_PACK_ONE_STAGE, error, &net), 0);
    T_EQ(krn_net_new(m, NULL, error, &all), 0);
    while (pair < m->op_count && !krn_net_chosen_fused(net, 0, pair)) {
        pair++;
    }
    T_LT(pair, m->op_count);
    packed = krn_net_packed_bytes(net);
    T_LT(packed, krn_net_packed_bytes(all));
    T_TRUE(krn_net_chosen_fused(all, 0, pair) == krn_net_chosen_fused(net, 0, pair));
    T_EQ(krn_net_join(net, 0, 0, m->op_count - 1, 1, &scratch), 0);
    T_EQ(krn_net_packed_bytes(net), packed);
    T_EQ(krn_net_join(net, 0, 0, pair, 1, &scratch), 0); /* a plan that cuts between the two */
    T_EQ(krn_net_join(net, 0, pair + 1, m->op_count - 1, 1, &scratch), 0);
    T_EQ(krn_net_packed_bytes(net), krn_net_packed_bytes(all));
    krn_net_leave(net, 0, 0, pair);
    krn_net_leave(net, 0, pair + 1, m->op_count - 1);
    krn_net_trim(net);
    T_EQ(krn_net_packed_bytes(net), packed);
    krn_net_free(net);
    krn_net_free(all);
    mdl_free(m);
}

static size_t need_by_units(const struct krn_net *net, const struct mdl_model *m)
{
    size_t bytes = 0;

    for (size_t u = 0; u < m->unit_count; u++) {
        bytes += krn_net_ops_need_bytes(net, m->units[u].first_op, m->units[u].last_op);
    }
    return bytes;
}

/* Nothing is packed until a team joins, nor after it has left. */
TEST(net_that_packs_nothing)
{
    struct krn_net *net = NULL, *none = NULL;
    struct mdl_model *m = pair_model();
    char error[MDL_ERROR_MAX];
    size_t scratch;

    T_TRUE(m != NULL);
    T_EQ(krn_net_new_preferred(m, NULL, KRN_PACK_ONE_STAGE, error, &net), 0);
    T_EQ(krn_net_new_preferred(m, NULL, KRN_PACK_NOTHING, error, &none), 0);
    T_EQ(krn_net_packed_bytes(none), 0);
    T_TRUE(krn_net_packed_bytes(net) > 0);
    T_EQ(krn_net_need_bytes(none), krn_net_packed_bytes(net));
    T_EQ(krn_net_need_bytes(net), krn_net_packed_bytes(net));
    T_EQ(need_by_units(net, m), krn_net_need_bytes(net));
    for (size_t i = 0; i < m->op_count; i++) {
        T_TRUE(krn_net_chosen(none, 0, i) == krn_net_chosen(net, 0, i));
        T_TRUE(krn_net_chosen_fused(none, 0, i) == krn_net_chosen_fused(net, 0, i));
    }
    T_EQ(krn_net_join(none, 0, 0, m->op_count - 1, 1, &scratch), 0);
    T_EQ(krn_net_packed_bytes(none), krn_net_packed_bytes(net));
    krn_net_leave(none, 0, 0, m->op_count - 1);
    krn_net_trim(none);
    T_EQ(krn_net_packed_bytes(none), 0);
    krn_net_free(net);
    krn_net_free(none);
    mdl_free(m);
}

/* The same net, whether one thread packs or several do. */
TEST(net_is_packed_by_several_threads)
{
    const float w[4] = {10, 11, 12, 13}, c[4] = {1, 2, 3, 4};
    struct tiny o;

    tiny_init(&o, w, c);
    for (size_t threads = 0; threads < 5; threads++) {
        krn_pack_threads(threads);
        T_TRUE(runs(&o, NULL));
        T_TRUE(runs(&o, "__ref"));
    }
    krn_pack_threads(0);
}

TEST(net_refuses_a_choice_that_cannot_be)
{
    const float w[4] = {0}, c[4] = {0};
    char error[MDL_ERROR_MAX];
    struct krn_choice choices[2];
    struct krn_net *net = NULL;
    struct tiny o;

    tiny_init(&o, w, c);
    choose_two(&o, choices);
    choices[1].own[0] = krn_primitive_find("conv__ref");
    T_TRUE(choices[1].own[0] != NULL);
    T_EQ(krn_net_new_chosen(&o.m, choices, 2, KRN_PACK_ONE_STAGE, error, &net), -EOPNOTSUPP);
    T_CONTAINS(error, "binary 'tiny'");
    choices[1].op_count = 1;
    T_EQ(krn_net_new_chosen(&o.m, choices, 2, KRN_PACK_ONE_STAGE, error, &net), -EINVAL);
    T_EQ(krn_net_new_chosen(&o.m, choices, KRN_KIND_MAX + 1, KRN_PACK_ONE_STAGE, error, &net),
         -EINVAL);
    T_TRUE(net == NULL && krn_primitive_find("no such primitive") == NULL);
    krn_choice_deinit(&choices[0]);
    krn_choice_deinit(&choices[1]);
}

TEST(net_skips_what_is_empty)
{
    const float w[4] = {0};
    char error[MDL_ERROR_MAX];
    struct krn_net *net = NULL;
    struct tiny o;
    _Alignas(64) uint8_t arena[128];
    const void *inputs[] = {NULL};
    void *outputs[] = {NULL};
    struct krn_mem mem = {.arena = arena, .inputs = inputs, .outputs = outputs};
    struct krn_exec exec = {.width = 1};

    tiny_init(&o, w, w);
    for (size_t i = 0; i < 5; i++) {
        o.tensors[i].dim[0] = 0;
        o.storages[i].bytes = 0;
    }
    T_EQ(krn_net_new(&o.m, NULL, error, &net), 0);
    krn_net_run_ops(net, 0, 1, &mem, &exec);
    krn_net_free(net);
}

TEST(const_eval_runs_the_one_op)
{
    const float w[4] = {10, 11, 12, 13}, x[4] = {1, 2, 3, 4};
    struct tiny o;
    _Alignas(64) uint8_t arena[128];

    tiny_init(&o, w, w);
    o.storages[X] = (struct mdl_storage){.home = MDL_HOME_CONST, .bytes = 16, .data = x};
    o.m.op_count = 1;
    T_EQ(krn_const_eval(&o.m, arena), 0);
    float y[4];
    memcpy(y, arena + 64, sizeof(y));
    T_TRUE(y[0] == 10 && y[1] == 22 && y[2] == 36 && y[3] == 52);
    o.ops[0].attr.binary = MDL_BIN_COUNT;
    T_EQ(krn_const_eval(&o.m, arena), -EOPNOTSUPP);
}

TEST(share_covers_everything_once)
{
    for (int i = 0; i < 2000; i++) {
        size_t n = (size_t)t_range(0, 100), step = (size_t)t_range(1, 9);
        size_t parts = (size_t)t_range(1, 9), at = 0, least = SIZE_MAX, most = 0;

        for (size_t p = 0; p < parts; p++) {
            struct krn_range r = krn_share(n, step, p, parts);

            T_EQ(r.begin, at);
            T_LE(r.begin, r.end);
            T_TRUE(r.end == n || r.end % step == 0);
            size_t steps = (r.end - r.begin + step - 1) / step;
            least = base_min(least, steps);
            most = base_max(most, steps);
            at = r.end;
        }
        T_EQ(at, n);
        T_LE(most - least, 1);
    }
}

static void count_part(void *arg, size_t part)
{
    _Atomic unsigned *counts = arg;

    counts[part]++;
}

TEST(parallel_runs_each_part_once)
{
    _Atomic unsigned counts[100] = {0};
    pthreadpool_t pool = pthreadpool_create(3);

    krn_parallel(pool, 100, count_part, counts);
    krn_parallel(NULL, 50, count_part, counts);
    krn_parallel(pool, 0, count_part, counts);
    pthreadpool_destroy(pool);
    for (size_t i = 0; i < 100; i++) {
        T_EQ(counts[i], i < 50 ? 2 : 1);
    }
}

static void look_between(void *arg)
{
    ((_Atomic unsigned *)arg)[99]++;
}

/* A thread alone is asked before each part; a team is not. */
TEST(parts_of_one_thread_have_something_between)
{
    _Atomic unsigned counts[100] = {0};
    pthreadpool_t pool = pthreadpool_create(2);

    krn_parallel_between((struct krn_between){look_between, counts});
    krn_parallel(NULL, 8, count_part, counts);
    T_EQ(counts[99], 8);
    krn_parallel(NULL, 1, count_part, counts);
    T_EQ(counts[99], 9);
    krn_parallel(pool, 50, count_part, counts);
    T_EQ(counts[99], 9);
    T_TRUE(krn_parallel_between(KRN_BETWEEN_NULL).arg == counts);
    krn_parallel(NULL, 8, count_part, counts);
    T_EQ(counts[99], 9);
    T_EQ(counts[7], 3);
    pthreadpool_destroy(pool);
}

TEST_MAIN()
