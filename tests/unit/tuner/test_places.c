/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/papers.h"
#include "tuner/eval.h"
#include "tuner/search/draw.h"
#include "tuner/search/search.h"

struct machine {
    uint16_t cores[4];
    double speed[4];
};

static int problem(size_t units, size_t eps, const struct machine *m, struct tun_problem *ret)
{
    struct tun_ep ep[4] = {0};

    for (size_t k = 0; k < eps; k++) {
        snprintf(ep[k].name, sizeof(ep[k].name), "k%zu", k);
        ep[k].cores = m->cores[k];
        ep[k].speed = m->speed[k] > 0 ? m->speed[k] : 1;
        ep[k].bandwidth = 1;
    }
    return tun_problem_init(ret, units, ep, eps);
}

static void set_costs(struct tun_problem *p, size_t ep, double ns)
{
    for (size_t w = 1; w <= p->eps[ep].cores; w++) {
        for (size_t u = 0; u < p->unit_count; u++) {
            tun_cell_at(&p->costs, ep, w, u)->ns = ns / (double)w;
        }
    }
}

TEST(pipeline_becomes_plan)
{
    struct tun_pipeline p = {3, {2, 1, 4}, {{1, 2}, {0, 1}, {1, 1}}};
    struct machine m = {{1, 3}, {1, 1}};
    base_cleanup(tun_problem_deinit) struct tun_problem problem_ = TUN_PROBLEM_NULL;
    struct pl_ep_set eps;
    struct pl_plan plan;
    char text[PL_PLAN_TEXT_MAX], error[TUN_ERROR_MAX];

    T_EQ(problem(7, 2, &m, &problem_), 0);
    tun_eps(&problem_, &eps);
    tun_pipeline_plan(&p, &plan);
    T_EQ(pl_plan_check(&plan, &eps, 7, error, sizeof(error)), 0);
    T_EQ(pl_plan_format(&plan, &eps, text, sizeof(text)), 0);
    T_STR(text, "0-1@k1x2|2-2@k0|3-6@k1");
}

TEST(eps_rank_by_speed_bandwidth_cores_order)
{
    struct machine m = {{2, 2, 4, 2}, {0.5, 1, 0.5, 0.5}};
    base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
    size_t rank[PL_EP_MAX];

    T_EQ(problem(3, 4, &m, &p), 0);
    tun_rank_eps(&p, rank);
    T_EQ(rank[0], 1);
    T_EQ(rank[1], 2);
    T_EQ(rank[2], 0);
    T_EQ(rank[3], 3);
    p.eps[3].bandwidth = 2;
    tun_rank_eps(&p, rank);
    T_EQ(rank[1], 3);
    /* Costs say otherwise than the hints, once all of width 1 are known. */
    set_costs(&p, 0, 10);
    set_costs(&p, 1, 40);
    set_costs(&p, 2, 30);
    tun_rank_eps(&p, rank);
    T_EQ(rank[0], 1);
    set_costs(&p, 3, 20);
    tun_rank_eps(&p, rank);
    T_EQ(rank[0], 0);
    T_EQ(rank[1], 3);
    T_EQ(rank[2], 2);
    T_EQ(rank[3], 1);
}

static void slots_text(const struct tun_problem *p, size_t stages, char *ret, size_t bytes)
{
    struct tun_place place[PL_CPU_MAX];
    size_t used = 0;

    ret[0] = '\0';
    if (tun_slots(p, stages, place) < 0) {
        snprintf(ret, bytes, "no");
        return;
    }
    for (size_t s = 0; s < stages; s++) {
        used += (size_t)snprintf(ret + used, bytes - used, "%s%s.%u", s ? " " : "",
                                 p->eps[place[s].ep].name, place[s].width);
    }
}

TEST(slots_share_the_cores)
{
    static const struct {
        struct machine m;
        size_t eps, stages;
        const char *want;
    } rows[] = {
        {{{4, 2}, {0.5, 1}}, 2, 1, "k1.2"},
        {{{4, 2}, {0.5, 1}}, 2, 2, "k1.2 k0.4"},
        {{{4, 2}, {0.5, 1}}, 2, 3, "k1.2 k0.2 k0.2"},
        {{{4, 2}, {0.5, 1}}, 2, 4, "k1.2 k0.2 k0.1 k0.1"},
        {{{4, 2}, {0.5, 1}}, 2, 6, "k1.1 k1.1 k0.1 k0.1 k0.1 k0.1"},
        {{{2, 2}, {1, 0.5}}, 2, 3, "k0.1 k0.1 k1.2"}, /* equal remainders: the faster EP */
        {{{1, 8}, {1, 0.5}}, 2, 3, "k0.1 k1.4 k1.4"}, /* one each though its share is 0.3 */
        {{{1, 1, 8}, {1, 0.9, 0.1}}, 3, 3, "k0.1 k1.1 k2.8"},
        {{{1, 1, 8}, {1, 0.9, 0.1}}, 3, 4, "k0.1 k1.1 k2.4 k2.4"},
        {{{1, 1, 8}, {1, 0.9, 0.1}}, 3, 2, "k0.1 k1.1"},        /* fewer stages than EPs */
        {{{2, 3}, {0.5, 1}}, 2, 5, "k1.1 k1.1 k1.1 k0.1 k0.1"}, /* a core each, fastest first */
        {{{3}, {1}}, 1, 2, "k0.2 k0.1"},
        {{{3}, {1}}, 1, 4, "no"},
        {{{3}, {1}}, 1, 0, "no"},
    };
    char text[256];

    for (size_t i = 0; i < base_array_count(rows); i++) {
        base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;

        T_EQ(problem(5, rows[i].eps, &rows[i].m, &p), 0);
        slots_text(&p, rows[i].stages, text, sizeof(text));
        T_STR(text, rows[i].want);
    }
}

/* On any machine: as many as asked for, in rank order, each EP's cores all given out. */
TEST(slots_always_fit)
{
    for (int round = 0; round < 2000; round++) {
        base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
        struct machine m;
        size_t eps = (size_t)t_range(1, 4), stages, cores = 0, used[4] = {0};
        struct tun_place place[64];

        for (size_t k = 0; k < eps; k++) {
            m.cores[k] = (uint16_t)t_range(1, 9);
            m.speed[k] = (double)t_range(1, 4) / 4;
            cores += m.cores[k];
        }
        stages = (size_t)t_range(1, (int64_t)cores);
        T_EQ(problem(5, eps, &m, &p), 0);
        T_EQ(tun_slots(&p, stages, place), 0);
        for (size_t s = 0; s < stages; s++) {
            T_LT(place[s].ep, eps);
            T_LE(1, place[s].width);
            used[place[s].ep] += place[s].width;
            T_TRUE(s == 0 || p.eps[place[s].ep].speed <= p.eps[place[s - 1].ep].speed);
        }
        for (size_t k = 0; k < eps; k++) {
            T_TRUE(used[k] == p.eps[k].cores || (used[k] == 0 && stages < eps));
        }
    }
}

TEST(binomials)
{
    T_TRUE(tun_binomial(0, 0) == 1);
    T_TRUE(tun_binomial(5, 6) == 0);
    T_TRUE(tun_binomial(20, 3) == 1140);
    T_TRUE(tun_binomial(53, 7) == 154143080);
    T_TRUE(tun_binomial(55, 27) == 3824345300380220.0); /* below 2^53: every digit */
    T_NEAR(tun_binomial(109, 54) / 4.926360926505e31, 1, 1e-9);
    for (size_t n = 1; n < 50; n++) {
        for (size_t k = 1; k <= n; k++) {
            T_TRUE(tun_binomial(n, k) == tun_binomial(n - 1, k - 1) + tun_binomial(n - 1, k));
        }
    }
}

/* Pipe-it, section IV: 64 pipelines on 4+4 cores; eq. 2 for 28 layers (the paper's figure for
 * MobileNet is the value for 29). */
TEST(pipe_it_counts)
{
    T_TRUE(paper_pipelines(4, 4, 8) == 64);
    T_TRUE(paper_pipelines(4, 4, 2) == 1);
    T_TRUE(paper_pipelines(1, 1, 8) == 1);
    T_TRUE(paper_pipelines(4, 0, 4) == 0);
    T_TRUE(paper_points(28, 4, 4) == 4272048);
    T_TRUE(paper_points(29, 4, 4) == 5379616);
    T_TRUE(paper_points(1, 4, 4) == 0);
}

TEST(cut_counts)
{
    T_TRUE(tun_cut_count(21, 2, 4) == 1350); /* VGG-16 on 4 cores; the Pipe-search paper: 1970 */
    T_TRUE(tun_cut_count(7, 2, 4) == 6 + 15 + 20);
    T_TRUE(tun_cut_count(3, 2, 9) == 3);
    T_TRUE(tun_cut_count(1, 2, 9) == 0);
    T_TRUE(tun_cut_count(5, 0, 9) == 16);
}

struct tally {
    const struct tun_problem *p;
    size_t stages_max;
    int space;
    uint16_t used[4];
    double plans;
};
static void next_stage(struct tally *t, size_t unit, size_t stages);

/* A stage has teams: more of shapes from (EP, width) on, or the stage ends at any unit. */
static void more_teams(struct tally *t, size_t unit, size_t stages, size_t ep, size_t width,
                       size_t teams)
{
    bool single = t->space != TUN_SPACE_ALL || t->p->bounds.one_ep_stages;

    if (teams > 0) {
        for (size_t end = unit + 1; end <= t->p->unit_count; end++) {
            next_stage(t, end, stages + 1);
        }
        if (single) {
            return;
        }
    }
    for (size_t k = ep; k < t->p->ep_count; k++) {
        size_t widest = t->space == TUN_SPACE_PLACES ? 1 : t->p->eps[k].cores;

        for (size_t w = k == ep ? width : 1; w <= widest; w++) {
            if (t->used[k] + w <= t->p->eps[k].cores) {
                t->used[k] = (uint16_t)(t->used[k] + w);
                more_teams(t, unit, stages, k, w, teams + 1);
                t->used[k] = (uint16_t)(t->used[k] - w);
            }
        }
    }
}

static void next_stage(struct tally *t, size_t unit, size_t stages)
{
    if (unit == t->p->unit_count) {
        t->plans++;
    } else if (stages < t->stages_max) {
        more_teams(t, unit, stages, 0, 1, 0);
    }
}

TEST(spaces_match_brute_force)
{
    for (int round = 0; round < 150; round++) {
        base_cleanup(tun_problem_deinit) struct tun_problem p = TUN_PROBLEM_NULL;
        struct machine m = {{0}, {0}};
        size_t eps = (size_t)t_range(1, 3);

        for (size_t k = 0; k < eps; k++) {
            m.cores[k] = (uint16_t)t_range(1, eps == 1 ? 7 : eps == 2 ? 4 : 2);
        }
        T_EQ(problem((size_t)t_range(1, 5), eps, &m, &p), 0);
        p.bounds.stages_max = (size_t)t_range(0, 4);
        p.bounds.one_ep_stages = t_range(0, 3) == 0;
        for (int space = TUN_SPACE_PLACES; space <= TUN_SPACE_ALL; space++) {
            struct tally t = {.p = &p, .space = space};

            t.stages_max = p.bounds.stages_max ? p.bounds.stages_max : SIZE_MAX;
            next_stage(&t, 0, 0);
            T_NEAR(tun_space_size(&p, space), t.plans, 0);
        }
    }
}

TEST(spaces_of_odd_machines)
{
    struct machine one = {{1}, {0}}, eight = {{4, 4}, {0}}, vast = {{256, 256, 256, 256}, {0}};
    base_cleanup(tun_problem_deinit) struct tun_problem a = TUN_PROBLEM_NULL;
    base_cleanup(tun_problem_deinit) struct tun_problem b = TUN_PROBLEM_NULL;
    base_cleanup(tun_problem_deinit) struct tun_problem c = TUN_PROBLEM_NULL;

    T_EQ(problem(9, 1, &one, &a), 0);
    for (int space = TUN_SPACE_CUTS; space <= TUN_SPACE_ALL; space++) {
        T_TRUE(tun_space_size(&a, space) == 1);
    }
    T_EQ(problem(21, 2, &eight, &b), 0);
    b.bounds.stages_max = 4;
    T_TRUE(tun_space_size(&b, TUN_SPACE_CUTS) == 1350);
    b.bounds.stages_max = 1;
    T_TRUE(tun_space_size(&b, TUN_SPACE_CUTS) == 1);
    T_EQ(problem(4096, 4, &vast, &c), 0);
    for (int space = TUN_SPACE_CUTS; space <= TUN_SPACE_ALL; space++) {
        T_TRUE(tun_space_size(&c, space) > 1e100); /* and not a NaN */
    }
}

TEST_MAIN()
