/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated trials: figures, samples and noise that agree with each other and with tuner/eval.h. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tuner/pipesim/run.h"

#define UNITS 6u

/* Two EPs, random costs; samples has room for a plan. */
struct fixture {
    struct tun_problem p;
    struct tun_sample samples[6 * UNITS];
    struct psim_machine m;
    struct pl_plan plan;
};

static void set_up(struct fixture *f, const char *plan)
{
    static const struct tun_ep eps[] = {
        {.name = "big", .cores = 2, .speed = 1, .bandwidth = 1, .watts = 2},
        {.name = "little", .cores = 4, .speed = 0.4, .bandwidth = 0.5}};
    struct pl_ep_set set;
    char error[128];

    T_EQ(tun_problem_init(&f->p, UNITS, eps, base_array_count(eps)), 0);
    for (size_t k = 0; k < f->p.ep_count; k++) {
        for (size_t w = 1; w <= eps[k].cores; w++) {
            for (size_t u = 0; u < UNITS; u++) {
                tun_cell_at(&f->p.costs, k, w, u)->ns = (double)t_range(100000, 900000);
                f->p.units[u].in_bytes = u ? (double)t_range(1, 100000) : 0;
            }
        }
    }
    f->p.handoff_ns = 5000;
    f->p.handoff_ns_per_byte = 0.25;
    f->m = (struct psim_machine){.truth = &f->p, .random = {t_random()}};
    for (size_t k = 0; k < PL_EP_MAX; k++) {
        f->m.slow[k] = 1;
    }
    tun_eps(&f->p, &set);
    T_EQ(pl_plan_parse(plan, &set, UNITS, error, sizeof(error), &f->plan), 0);
}

TEST(without_noise_it_is_what_eval_says)
{
    struct fixture f;
    struct tun_trial t;
    struct tun_outcome o;

    set_up(&f, "0-2@big*2+little|3-3@littlex2|4-5@little");
    psim_trial(&f.m, &f.plan, f.samples, &t);
    T_EQ(tun_eval(&f.p, &f.plan, &o), 0);
    T_TRUE(!t.failed && !t.stopped);
    T_NEAR(t.measured.bottleneck_ns, o.bottleneck_ns, 1e-3);
    T_NEAR(t.measured.latency_ns, o.latency_ns, 1e-3);
    T_NEAR(t.measured.energy_nj, o.energy_nj, 1e-3);
    T_EQ(t.measured.stage_count, 3u);
    for (size_t s = 0; s < 3; s++) {
        T_NEAR(t.measured.stage_ns[s], o.stage_ns[s], 1e-3);
        T_NEAR(t.measured.team_ns[s][0], o.team_ns[s][0], 1e-3);
    }
    T_EQ(t.frames, 10u);
    T_NEAR(t.spent_ns, o.latency_ns + 10 * o.bottleneck_ns, 1e-2);
    tun_problem_deinit(&f.p);
}

TEST(every_shape_that_runs_is_sampled_once)
{
    struct fixture f;
    struct tun_trial t;
    bool seen[2][5][UNITS] = {0};

    set_up(&f, "0-2@big+little+big|3-5@littlex3");
    f.m.noise = 0.1;
    psim_trial(&f.m, &f.plan, f.samples, &t);
    T_EQ(t.sample_count, 9u); /* three units on big and on little, three on littlex3 */
    for (size_t i = 0; i < t.sample_count; i++) {
        const struct tun_sample *s = &t.samples[i];

        T_TRUE(!seen[s->ep][s->width][s->unit]);
        seen[s->ep][s->width][s->unit] = true;
        T_EQ(s->sigma, 0.1);
    }
    for (size_t u = 0; u < 3; u++) {
        T_TRUE(seen[0][1][u] && seen[1][1][u] && seen[1][3][u + 3]);
    }
    T_EQ(t.measured.team_ns[0][0], t.measured.team_ns[0][2]);
    tun_problem_deinit(&f.p);
}

TEST(teams_are_the_sum_of_their_samples)
{
    struct fixture f;
    struct tun_trial t;
    double sum, worst = 0;

    set_up(&f, "0-1@big|2-5@littlex4");
    f.m.noise = 0.2;
    psim_trial(&f.m, &f.plan, f.samples, &t);
    for (size_t s = 0; s < 2; s++) {
        sum = f.p.handoff_ns + (s ? f.p.handoff_ns_per_byte * f.p.units[2].in_bytes : 0);
        for (size_t i = 0; i < t.sample_count; i++) {
            sum += (t.samples[i].unit >= 2) == (s == 1) ? t.samples[i].ns : 0;
        }
        T_NEAR(t.measured.team_ns[s][0], sum, 1e-3);
        worst = fmax(worst, sum);
    }
    T_NEAR(t.measured.bottleneck_ns, worst, 1e-3);
    tun_problem_deinit(&f.p);
}

TEST(noise_has_the_sigma_it_is_given)
{
    struct fixture f;
    struct tun_trial t;
    double sum = 0, squares = 0, n = 0;

    set_up(&f, "0-5@big");
    f.m.noise = 0.05;
    for (int i = 0; i < 400; i++) {
        psim_trial(&f.m, &f.plan, f.samples, &t);
        for (size_t k = 0; k < t.sample_count; k++) {
            double x = t.samples[k].ns / tun_cell_at(&f.p.costs, 0, 1, t.samples[k].unit)->ns - 1;

            sum += x;
            squares += x * x;
            n++;
        }
    }
    T_EQ(n, 2400.0);
    T_NEAR(sum / n, 0, 5 * 0.05 / sqrt(n));                  /* five standard errors */
    T_NEAR(sqrt(squares / n), 0.05, 5 * 0.05 / sqrt(2 * n)); /* of a mean and of a deviation */
    tun_problem_deinit(&f.p);
}

TEST(contention_slows_its_ep_alone)
{
    struct fixture f;
    struct tun_trial still, slow;

    set_up(&f, "0-2@big|3-5@little");
    f.p.handoff_ns = f.p.handoff_ns_per_byte = 0;
    psim_trial(&f.m, &f.plan, f.samples, &still);
    f.m.slow[1] = 1.5;
    psim_trial(&f.m, &f.plan, f.samples, &slow);
    T_NEAR(slow.measured.stage_ns[0], still.measured.stage_ns[0], 1e-3);
    T_NEAR(slow.measured.stage_ns[1], 1.5 * still.measured.stage_ns[1], 1e-3);
    tun_problem_deinit(&f.p);
}

TEST(what_cannot_run_fails)
{
    struct fixture f;
    struct tun_trial t;

    set_up(&f, "0-2@bigx2|3-5@big");
    psim_trial(&f.m, &f.plan, f.samples, &t);
    T_TRUE(t.failed);
    T_EQ(t.sample_count, 0u);
    T_EQ(t.spent_ns, 0.0);
    tun_problem_deinit(&f.p);
    set_up(&f, "0-2@big|3-5@little");
    tun_cell_at(&f.p.costs, 1, 1, 4)->ns = -1;
    psim_trial(&f.m, &f.plan, f.samples, &t);
    T_TRUE(t.failed);
    tun_problem_deinit(&f.p);
}

TEST(a_search_that_is_told_the_truth_is_as_good_as_can_be)
{
    struct fixture f;
    struct psim_run r;
    char error[PSIM_ERROR_MAX];

    set_up(&f, "0-5@big");
    f.m.slow[0] = 1.2;
    T_EQ(psim_run("exact", &f.p, NULL, &f.m, error, &r), 0);
    T_TRUE(r.count >= 1 && r.result < r.count && r.possible);
    T_TRUE(r.ratio >= 1 - 1e-9 && r.ratio <= 1 + TUN_SLACK + 1e-9);
    T_NEAR(r.ratio, r.bottleneck_ns / r.optimum_ns, 1e-9);
    T_TRUE(r.own_s > 0 && r.tuning_s > r.own_s);
    psim_run_deinit(&r);
    T_NE(psim_run("magic", &f.p, NULL, &f.m, error, &r), 0);
    T_CONTAINS(error, "magic");
    tun_problem_deinit(&f.p);
}

/* What searches are compared with: the best plan of a space. */
TEST(the_best_of_a_space_is_what_exhaustive_finds)
{
    for (int space = TUN_SPACE_CUTS; space <= TUN_SPACE_ALL; space++) {
        struct tun_options o = {.space = (enum tun_space)space};
        struct tun_outcome outcome;
        struct fixture f;
        struct pl_plan plan;
        struct psim_run r;
        char error[PSIM_ERROR_MAX];

        set_up(&f, "0-5@big");
        f.p.bounds.stages_max = 2;
        T_EQ(psim_run("exhaustive", &f.p, &o, &f.m, error, &r), 0);
        T_NEAR(psim_best(&f.p, o.space, &plan), r.bottleneck_ns, 1e-6);
        T_EQ(tun_eval(&f.p, &plan, &outcome), 0);
        T_NEAR(outcome.bottleneck_ns, r.bottleneck_ns, 1e-6);
        psim_run_deinit(&r);
        tun_problem_deinit(&f.p);
    }
}

/* Pipe-search, table 7: Synth 1 in setting 1. */
TEST(ranks_and_cvs_as_printed)
{
    static const double weight[] = {1, 4, 8, 4, 8, 8, 4};
    static const struct tun_ep ep = {.name = "core", .cores = 4, .speed = 1, .bandwidth = 1};
    struct tun_problem p;
    struct pl_ep_set set;
    struct pl_plan plan;
    char error[128];
    double cv;

    T_EQ(tun_problem_init(&p, base_array_count(weight), &ep, 1), 0);
    for (size_t u = 0; u < base_array_count(weight); u++) {
        p.units[u].weight = weight[u];
    }
    tun_eps(&p, &set);
    T_EQ(pl_plan_parse("0-3@core|4-4@core|5-5@core|6-6@core", &set, 7, error, sizeof(error), &plan),
         0);
    T_EQ(psim_rank(&p, &plan, &cv), 6);
    T_NEAR(cv, 0.51493, 1e-5);
    T_EQ(pl_plan_parse("0-2@core|3-4@core|5-6@core", &set, 7, error, sizeof(error), &plan), 0);
    T_EQ(psim_rank(&p, &plan, NULL), 1); /* its seed */
    tun_problem_deinit(&p);
}

TEST_MAIN()
