/* SPDX-License-Identifier: Apache-2.0 */
/* The exact planner against every plan of small problems, against perfectly divisible work, and how
 * long it takes. */
#include <math.h>

#include "base/base.h"
#include "bench/searches/check.h"
#include "tests/unit/tuner/brute.h"
#include "tuner/solve/solve.h"

#define PROBLEMS 1000u
#define CLOSE 1e-9 /* two sums of the same doubles in another order */

static double figure(const struct tun_problem *p, const struct tun_outcome *o)
{
    return p->objective == TUN_POWER ? o->energy_nj : o->latency_ns;
}

static bool same(double a, double b)
{
    return fabs(a - b) <= CLOSE * base_max(fabs(a), fabs(b));
}

/* Return: the planner agrees with brute force on this problem. */
static bool agrees(const struct tun_problem *p, const struct brute_plans *b)
{
    struct tun_solution s;
    int result = tun_solve(p, &s);

    if (result != 0 && result != TUN_E_IMPOSSIBLE) {
        return false;
    }
    if ((result == 0) != b->possible || !tun_fits(p, &s.plan)) {
        return false;
    }
    return b->possible ? same(figure(p, &s.outcome), b->figure)
                       : same(s.outcome.bottleneck_ns, b->least_bottleneck_ns);
}

static void check_brute(struct checks *c)
{
    struct brute_plans *b = malloc(sizeof(*b));
    struct tun_random random = {.state = c->seed};
    size_t count = check_share(c, PROBLEMS), wrong = 0, plans = 0, possible = 0;

    for (size_t i = 0; i < count && b; i++) {
        struct tun_problem p;

        /* most small, every eighth as large as brute force can bear */
        if (brute_problem(&random, i % 8 ? 6 : 8, i % 8 ? 4 : 6, &p) != 0 ||
            brute_plans(&p, b) != 0) {
            wrong = count;
            break;
        }
        wrong += !agrees(&p, b);
        plans += b->plan_count;
        possible += b->possible;
        tun_problem_deinit(&p);
    }
    check_that(
        c, b && wrong == 0, "exact equals brute force",
        "%zu of %zu random problems differ (%zu plans tried, %zu problems with bounds nothing "
        "keeps)",
        wrong, count, plans, count - possible);
    free(b);
}

/* 4 + 4 cores, little ones three times slower: throughput near that of perfectly divisible work,
 * and what a frame then waits against one independent worker a core. */
static void check_bound(struct checks *checks)
{
    char **networks = psim_names(&psim_networks), error[PSIM_ERROR_MAX] = "";
    double worst_bound = 0, worst_latency = 0, best_latency = INFINITY;
    size_t rows = 0, failed = 0;

    for (size_t n = 0; networks && networks[n]; n++) {
        struct psim_case c;
        struct tun_problem *p = &c.truth;
        struct tun_solution s;

        if (psim_case_init(networks[n], PSIM_UNITS, "shisha-c5", error, &c)) {
            failed++;
            break;
        }
        if (p->unit_count >= 2 * tun_core_count(p)) { /* enough units to spread */
            double bound = tun_bound_ns(p);
            double workers = tun_team_ns(p, 0, p->unit_count - 1, 1, 1);

            p->objective = TUN_LATENCY;
            p->bounds.period_max_ns = 1.03 * bound;
            failed += tun_solve(p, &s) != 0;
            worst_bound = base_max(worst_bound, s.outcome.bottleneck_ns / bound);
            worst_latency = base_max(worst_latency, s.outcome.latency_ns / workers);
            best_latency = base_min(best_latency, s.outcome.latency_ns / workers);
            rows++;
        }
        psim_case_deinit(&c);
    }
    psim_names_free(networks);
    check_that(checks, failed == 0 && rows > 0 && worst_latency <= 0.6,
               "exact against divisible work and independent workers",
               "%zu networks on 4 + 4 cores, little 3 times slower: bottleneck at most %.4f of the "
               "bound, worst frame %.2f to %.2f of one worker a core%s%s",
               rows, worst_bound, best_latency, worst_latency, *error ? ": " : "", error);
}

/* Median of a few solves of a random chain, ms. */
static double solve_ms(size_t units, const struct tun_ep *eps, size_t ep_count, bool one_ep)
{
    double ms[7];
    struct tun_random random = {.state = 7};
    struct tun_problem p;

    if (tun_problem_init(&p, units, eps, ep_count) != 0) {
        return NAN;
    }
    p.handoff_ns = 1e4;
    p.bounds.one_ep_stages = one_ep;
    for (size_t i = 0; i < base_array_count(ms); i++) {
        struct tun_solution s;
        uint64_t began;

        for (size_t u = 0; u < units; u++) {
            double work = 1e5 * (0.1 + tun_random_unit(&random));

            for (size_t k = 0; k < ep_count; k++) {
                for (size_t w = 1; w <= eps[k].cores; w++) {
                    *tun_cell_at(&p.costs, k, w, u) = (struct tun_cell){
                        .ns = work / eps[k].speed / pow((double)w, 0.85), .source = TUN_MEASURED};
                }
            }
        }
        began = base_now_ns();
        tun_solve(&p, &s);
        ms[i] = (double)(base_now_ns() - began) / 1e6;
    }
    tun_problem_deinit(&p);
    qsort(ms, base_array_count(ms), sizeof(*ms), base_by_size);
    return ms[base_array_count(ms) / 2];
}

static void print_times(void)
{
    const struct tun_ep four[] = {{.name = "big", .cores = 4, .speed = 1, .bandwidth = 1},
                                  {.name = "little", .cores = 4, .speed = 0.33, .bandwidth = 0.5}};
    const struct tun_ep hybrid[] = {{.name = "p", .cores = 8, .speed = 1, .bandwidth = 1},
                                    {.name = "e", .cores = 16, .speed = 0.5, .bandwidth = 0.5}};

    printf("solve time, median of 7: 4 + 4 cores x 60 units %.2f ms (stages of one team %.2f ms), "
           "8 + 16 x 110 %.1f ms (%.2f ms)\n",
           solve_ms(60, four, 2, false), solve_ms(60, four, 2, true),
           solve_ms(110, hybrid, 2, false), solve_ms(110, hybrid, 2, true));
}

void check_solver(struct checks *c)
{
    check_brute(c);
    check_bound(c);
    print_times();
}
