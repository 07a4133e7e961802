/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The default network, loaded from its file and run by the primitives that the machine picks: every
 * plan gives the answers of one thread, in however many pieces units run. Argument of the
 * environment: PIPED_TEST_MODEL.
 */
#include "base/base.h"
#include "pipeline/seats.h"
#include "tests/harness.h"
#include "tests/unit/pipeline/rig.h"

/* Our own rows for AVX2 and up are preferred, and two ops in one round as they do one by one. Where
 * none of them runs, libraries' rows come first; they round in another way than rows of two ops,
 * which some plans cut in two. Return: which rows the test allows; NULL: all. */
static const char *allowed_rows(void)
{
    size_t count;
    const struct krn_primitive *v = krn_primitives(&count);

    for (size_t i = 0; i < count; i++) {
        if (strstr(v[i].name, "__avx") && (v[i].needs & ~krn_cpu_features()) == 0) {
            return NULL;
        }
    }
    return "__vec";
}

struct loaded {
    struct tiny_net as_net; /* net, inputs and answers, as the rig wants them */
    struct mdl_model *model;
};

static float *run_alone(const struct krn_net *net, const float *input, size_t elements)
{
    const struct mdl_model *m = krn_net_model(net);
    base_autofree void *arena = aligned_alloc(64, base_max(m->arena_bytes, (size_t)64));
    base_autofree void *scratch =
        aligned_alloc(64, base_max(krn_net_scratch_bytes(net, 1), (size_t)64));
    float *out = calloc(elements, sizeof(float));
    const void *inputs[1] = {input};
    void *outputs[1] = {out};
    struct krn_mem mem = {arena, inputs, outputs};
    struct krn_exec exec = {NULL, 1, scratch};

    krn_net_run_ops(net, 0, m->op_count - 1, &mem, &exec);
    return out;
}

/* Return: NULL, or why not. */
static const char *load(struct loaded *l)
{
    static char error[MDL_ERROR_MAX];
    struct mdl_load_options o = {.name = "default", .const_eval = krn_const_eval};
    const char *path = getenv("PIPED_TEST_MODEL");
    size_t in;

    memset(l, 0, sizeof(*l));
    if (path == NULL) {
        return "PIPED_TEST_MODEL is not set";
    }
    if (mdl_load(path, &o, error, &l->model) != 0 ||
        krn_net_new(l->model, allowed_rows(), error, &l->as_net.net) != 0) {
        return error;
    }
    in = l->model->inputs[0].bytes / sizeof(float);
    l->as_net.elements = l->model->outputs[0].bytes / sizeof(float);
    for (size_t i = 0; i < TINY_INPUTS; i++) {
        l->as_net.inputs[i] = calloc(in, sizeof(float));
        for (size_t k = 0; k < in; k++) {
            l->as_net.inputs[i][k] = t_float();
        }
        l->as_net.answers[i] = run_alone(l->as_net.net, l->as_net.inputs[i], l->as_net.elements);
    }
    return NULL;
}

static void unload(struct loaded *l)
{
    krn_net_free(l->as_net.net);
    mdl_free(l->model);
    for (size_t i = 0; i < TINY_INPUTS; i++) {
        free(l->as_net.inputs[i]);
        free(l->as_net.answers[i]);
    }
}

static struct pl_plan random_plan(const struct pl_ep_set *eps, size_t units)
{
    struct pl_plan p = {0};
    size_t next = 0;

    while (next < units) {
        struct pl_stage_plan *s = &p.stages[p.stage_count++];

        s->first_unit = (uint16_t)next;
        s->last_unit = (uint16_t)t_range((int64_t)next, (int64_t)units - 1);
        next = (size_t)s->last_unit + 1;
        s->group_count = 1;
        s->groups[0] = (struct pl_group){
            .ep = (uint16_t)t_range(0, (int64_t)eps->count - 1),
            .width = 1,
            .count = (uint16_t)t_range(1, 2),
        };
        if (eps->count > 1 && t_range(0, 2) == 0) {
            s->groups[0].also[0] = (struct pl_also){(uint8_t)(s->groups[0].ep == 0), 1};
        }
    }
    return p;
}

/* Return: as pl_switch(). */
static int switch_at_random(struct pl_pipeline *p, const struct pl_ep_set *eps, size_t units)
{
    struct pl_plan plan = random_plan(eps, units);
    uint8_t pieces[64];

    for (size_t i = 0; i < units && i < sizeof(pieces); i++) {
        pieces[i] = (uint8_t)(t_range(0, 1) ? 1 : t_range(2, PL_PIECES_MAX));
    }
    return units > sizeof(pieces) || pl_cut(p, pieces) < 0 ? -EINVAL : pl_switch(p, &plan);
}

TEST(default_network_under_random_plans)
{
    struct loaded l;
    const char *problem = load(&l);
    struct pl_seats *seats = pl_seats_new(1, 0);
    struct pl_client client;
    struct pl_ep_set eps;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;

    if (problem != NULL) {
        T_FAIL("%s", problem);
    }
    rig_eps(&eps, true);
    rig_init(&r, &l.as_net);
    o = rig_options(&r);
    o.frames = 12;
    pl_client_init(&client, seats);
    o.client = &client;
    plan = random_plan(&eps, l.model->unit_count);
    T_EQ(pl_new(l.as_net.net, &eps, &plan, &o, &r.p), 0);
    while (r.sent < (size_t)t_times(1500)) {
        while (rig_submit(&r, 0)) {
        }
        if (!rig_collect(&r)) {
            T_TRUE(rig_wait(&r.wake));
        }
        pl_reap(r.p);
        if (!pl_switching(r.p) && t_range(0, 7) == 0) {
            T_EQ(switch_at_random(r.p, &eps, l.model->unit_count), 0);
        }
        T_TRUE(!r.wrong);
    }
    T_TRUE(rig_drain(&r));
    T_TRUE(!r.wrong);
    T_EQ(r.ok, r.sent);
    T_LT(t_times(20), r.epoch);
    rig_deinit(&r);
    pl_seats_free(seats);
    unload(&l);
}

TEST_MAIN()
