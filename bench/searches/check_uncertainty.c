/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exact search when its cost table is wrong: every (unit, EP) off by a log-normal factor of
 * 10 % sigma, the same on every width, and one EP slowed by up to 20 % by contention that nobody
 * reports. The optimum is that of the true, contended machine.
 */
#include <math.h>

#include "base/base.h"
#include "bench/searches/check.h"

#define SIGMA 0.10
#define CONTENTION 0.20
#define NOISE 0.005 /* of a unit's mean in one trial */
#define REPEATS 4u  /* cases of each network and machine */

static const char *const MACHINES[] = {"hikey970",     "tx2-1",     "tx2-3",
                                       "rk3588",       "rpi5",      "host2",
                                       "intel-hybrid", "shisha-c3", "shisha-c5-6x"};

struct uncertainty {
    size_t cases, in_three, over_five, behind_shisha;
    double trials, shisha_trials, worst;
};

static void spoil(struct tun_problem *truth, struct tun_random *r)
{
    for (size_t k = 0; k < truth->ep_count; k++) {
        for (size_t u = 0; u < truth->unit_count; u++) {
            double factor = exp(SIGMA * tun_random_normal(r));

            for (size_t w = 1; w <= truth->eps[k].cores; w++) {
                tun_cell_at(&truth->costs, k, w, u)->ns *= factor;
            }
        }
    }
}

/* The search is told that every figure is off by SIGMA. */
static void make_uncertain(struct tun_problem *told)
{
    for (size_t k = 0; k < told->ep_count; k++) {
        for (size_t w = 1; w <= told->eps[k].cores; w++) {
            for (size_t u = 0; u < told->unit_count; u++) {
                struct tun_cell *cell = tun_cell_at(&told->costs, k, w, u);

                cell->source = TUN_PREDICTED;
                cell->sigma = SIGMA;
            }
        }
    }
}

/* One search on the spoilt machine. Return: 0 or -errno. */
static int run(const char *algorithm, const struct tun_problem *told,
               const struct psim_machine *disturbed, struct psim_run *ret)
{
    struct psim_machine machine = *disturbed;
    struct tun_options options = {.seed = machine.random.state};
    char error[PSIM_ERROR_MAX] = "";
    int result = psim_run(algorithm, told, &options, &machine, error, ret);

    if (result) {
        fprintf(stderr, "search_check: %s: %s\n", algorithm, error);
    }
    return result;
}

static int one_case(const struct tun_problem *told, struct tun_random *r, struct uncertainty *d)
{
    struct tun_problem truth = TUN_PROBLEM_NULL;
    struct psim_machine machine = psim_machine(&truth, 0);
    struct psim_run exact, shisha;
    int error;

    machine.noise = NOISE;
    machine.slow[tun_random_below(r, told->ep_count)] = 1 + CONTENTION * tun_random_unit(r);
    machine.random.state = tun_random_next(r);
    error = tun_problem_copy(told, &truth);
    if (error) {
        return error;
    }
    spoil(&truth, r);
    error = run("exact", told, &machine, &exact);
    if (!error && (error = run("shisha", told, &machine, &shisha)) == 0) {
        double ratio = exact.bottleneck_ns / exact.optimum_ns;

        d->cases++;
        d->in_three += ratio <= 1.01 && exact.count <= 3;
        d->over_five += exact.count > 5;
        d->behind_shisha += exact.bottleneck_ns > shisha.bottleneck_ns * 1.001;
        d->trials += (double)exact.count;
        d->shisha_trials += (double)shisha.count;
        d->worst = base_max(d->worst, ratio);
        psim_run_deinit(&shisha);
    }
    if (!error) {
        psim_run_deinit(&exact);
    }
    tun_problem_deinit(&truth);
    return error;
}

static int all_cases(struct checks *c, struct uncertainty *d)
{
    char **networks = psim_names(&psim_networks), error[PSIM_ERROR_MAX];
    struct tun_random r = {.state = c->seed};
    int result = 0;

    for (size_t n = 0; networks && networks[n] && !result; n++) {
        struct psim_network network;

        result = psim_network_load(networks[n], PSIM_UNITS, error, &network);
        for (size_t m = 0; m < base_array_count(MACHINES) && !result; m++) {
            struct psim_platform platform;
            struct tun_problem told;

            result = psim_platform_load(MACHINES[m], error, &platform);
            if (result || (result = psim_problem(&network, &platform, &told)) != 0) {
                break;
            }
            told.bounds.slack = 0;
            make_uncertain(&told);
            for (size_t i = 0; i < check_share(c, REPEATS) && !result; i++) {
                result = one_case(&told, &r, d);
            }
            tun_problem_deinit(&told);
        }
        if (!result) {
            psim_network_deinit(&network);
        } else {
            fprintf(stderr, "search_check: %s\n", error);
        }
    }
    psim_names_free(networks);
    return result;
}

void check_uncertainty(struct checks *c)
{
    struct uncertainty d = {0};
    double n;

    if (all_cases(c, &d) != 0 || d.cases == 0) {
        check_that(c, false, "exact with a wrong table", "could not run");
        return;
    }
    n = (double)d.cases;
    check_that(
        c, (double)d.in_three >= 0.95 * n && d.over_five == 0, "exact with a wrong table",
        "within 1 %% of the optimum in at most 3 trials in %.1f %% of %zu cases, %.2f trials "
        "on average, %zu above 5, worst result %.3f of the optimum",
        100 * (double)d.in_three / n, d.cases, d.trials / n, d.over_five, d.worst);
    check_that(c, d.shisha_trials >= 5 * d.trials && d.behind_shisha == 0, "exact against shisha",
               "%.1f times fewer trials (%.1f), worse result in %zu of %zu cases",
               d.shisha_trials / d.trials, d.shisha_trials / n, d.behind_shisha, d.cases);
}
