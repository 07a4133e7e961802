/* SPDX-License-Identifier: Apache-2.0 */
/* Several models on one set of cores: routes are the best there are, nothing passes the bound. */
#include "base/base.h"
#include "tests/harness.h"
#include "tuner/eval.h"
#include "tuner/solve/mix.h"
#include "tuner/solve/solve.h"

#define MODELS 3u

struct mixed {
    struct tun_problem p[MODELS];
    struct tun_wish wishes[MODELS];
    size_t count;
    double cores; /* times: what a unit takes of the cores of a team, of one core's time */
};

static void mixed_deinit(struct mixed *x)
{
    for (size_t m = 0; m < x->count; m++) {
        tun_problem_deinit(&x->p[m]);
    }
}

/* @handoff: of a mean unit. @cores: as there. */
static void mixed_init_cores(struct mixed *x, size_t models, size_t ep_count, double handoff,
                             double cores)
{
    struct tun_ep eps[3];
    char name[] = "a";

    for (size_t k = 0; k < ep_count; k++, name[0]++) {
        eps[k] = (struct tun_ep){.cores = (uint16_t)t_range(1, 3), .speed = 1, .bandwidth = 1};
        eps[k].speed = (double)t_range(1, 10) / 10;
        eps[k].watts = t_range(0, 1) ? (double)t_range(1, 50) / 10 : 0;
        snprintf(eps[k].name, sizeof(eps[k].name), "%s", name);
    }
    x->count = models;
    x->cores = cores;
    for (size_t m = 0; m < models; m++) {
        struct tun_problem *p = &x->p[m];

        T_EQ(tun_problem_init(p, (size_t)t_range(1, 5), eps, ep_count), 0);
        p->handoff_ns = handoff * 1e6 * (double)t_range(0, 100) / 100;
        p->handoff_ns_per_byte = handoff > 0 ? 0.5 : 0;
        for (size_t u = 0; u < p->unit_count; u++) {
            p->units[u].in_bytes = u ? 1000 * (double)t_range(0, 300) : 0;
            for (size_t k = 0; k < ep_count; k++) {
                for (size_t w = 1; w <= eps[k].cores; w++) {
                    double one = w > 1 ? tun_cell_at(&p->costs, k, 1, u)->ns : 0;

                    *tun_cell_at(&p->costs, k, w, u) = (struct tun_cell){
                        .ns = w > 1 ? x->cores * one / (double)w : 1e3 * (double)t_range(10, 3000),
                        .source = TUN_MEASURED};
                }
            }
        }
        x->wishes[m] = (struct tun_wish){.p = p, .rate = (double)t_range(1, 60)};
    }
}

static void mixed_init(struct mixed *x, size_t models, size_t ep_count, double handoff)
{
    mixed_init_cores(x, models, ep_count, handoff, 1.1);
}

/* Has some models take several cores at once, and some be in time so. */
static void widen(struct mixed *x)
{
    size_t cores = 1, width;

    for (size_t k = 0; k < x->p[0].ep_count; k++) {
        cores = base_max(cores, (size_t)x->p[0].eps[k].cores);
    }
    width = (size_t)t_range(1, (int64_t)cores);
    for (size_t m = 0; m < x->count; m++) {
        x->wishes[m].width = t_range(0, 1) ? width : 0;
        x->wishes[m].deadline_ns = t_range(0, 1) ? 1e4 * (double)t_range(1, 1000) : 0;
        x->wishes[m].within = (double)t_range(0, 2) / 2;
    }
}

/* As brute(), on the cores of one EP at once, all EPs one by one, those in time first. */
static double brute_wide(const struct tun_wish *w, const double *price)
{
    double least[2] = {INFINITY, INFINITY};

    for (size_t k = 0; k < w->p->ep_count; k++) {
        double ns = tun_handoff_ns(w->p, 0);
        bool late;

        for (size_t u = 0; w->width <= w->p->eps[k].cores && u < w->p->unit_count; u++) {
            ns += tun_cell_at(&w->p->costs, k, w->width, u)->ns;
        }
        late = w->deadline_ns > 0 && ns > w->deadline_ns;
        if (w->width <= w->p->eps[k].cores) {
            least[late] = base_min(least[late], price[k] * (double)w->width * ns);
        }
    }
    return isfinite(least[0]) ? least[0] : least[1];
}

/* The least that a frame can cost at these prices, of all routes one by one; of those that keep to
 * the limit of their time, if there are. */
static double brute(const struct tun_wish *w, const double *price, size_t changes)
{
    const struct tun_problem *p = w->p;
    double limit_ns = w->within * w->deadline_ns, least[2] = {INFINITY, INFINITY};
    size_t routes = 1;

    if (w->width > 1) {
        return brute_wide(w, price);
    }
    for (size_t u = 0; u < p->unit_count; u++) {
        routes *= p->ep_count;
    }
    for (size_t i = 0; i < routes; i++) {
        size_t rest = i, before = 0, changed = 0;
        double cost = 0, all_ns = 0;
        bool late;

        for (size_t u = 0; u < p->unit_count; u++, rest /= p->ep_count) {
            size_t k = rest % p->ep_count;
            double ns = tun_cell_at(&p->costs, k, 1, u)->ns +
                        (u == 0 || k != before ? tun_handoff_ns(p, u) : 0);

            changed += u > 0 && k != before;
            cost += price[k] * ns;
            all_ns += ns;
            before = k;
        }
        late = limit_ns > 0 && all_ns > limit_ns;
        least[late] = changed <= changes ? base_min(least[late], cost) : least[late];
    }
    return isfinite(least[0]) ? least[0] : least[1];
}

/* Shares are whole, routes are valid, and what they add up to is what the cores can do. */
static void check_routes(const struct mixed *x, size_t changes, const struct tun_mix *mix)
{
    const struct tun_ep *eps = x->p[0].eps;
    double share[MODELS] = {0}, load[8], busy[8] = {0};

    for (size_t i = 0; i < mix->count; i++) {
        const struct tun_dealt *d = &mix->dealt[i];
        const struct tun_problem *p = &x->p[d->model];
        double times = d->share * mix->given[d->model] * x->wishes[d->model].rate;

        T_TRUE(d->route.stages <= changes + 1);
        if (x->wishes[d->model].width > 1) {
            T_EQ(d->route.stages, 1);
            T_EQ(d->route.width, x->wishes[d->model].width);
            T_LE(d->route.width, eps[d->route.ep[0]].cores);
        }
        T_TRUE(d->route.last[d->route.stages - 1] == p->unit_count - 1);
        for (size_t s = 1; s < d->route.stages; s++) {
            T_TRUE(d->route.last[s - 1] < d->route.last[s]);
            T_TRUE(d->route.ep[s - 1] != d->route.ep[s]);
        }
        share[d->model] += d->share;
        tun_route_load(p, &d->route, load);
        for (size_t k = 0; k < p->ep_count; k++) {
            busy[k] += times * load[k] / 1e9 / eps[k].cores;
        }
    }
    for (size_t m = 0; m < x->count; m++) {
        T_TRUE(mix->given[m] == 0 || fabs(share[m] - 1) < 1e-7);
    }
    for (size_t k = 0; k < x->p[0].ep_count; k++) {
        T_TRUE(fabs(busy[k] - mix->busy[k]) < 1e-7);
        T_TRUE(busy[k] <= 1 + 1e-7);
    }
}

/* Prices under which no routes whatever are cheaper prove that no mix of routes does more. */
TEST(no_routes_do_more)
{
    for (int i = 0; i < t_times(1000); i++) {
        size_t changes = (size_t)t_range(0, 3);
        struct tun_mix mix;
        struct mixed x;
        double price[8], sum = 0, limits = 0;

        mixed_init_cores(&x, (size_t)t_range(1, MODELS), (size_t)t_range(1, 3),
                         (double)t_range(0, 2) / 2, i % 2 ? 1.1 : (double)t_range(5, 20) / 10);
        widen(&x);
        T_EQ(tun_mix_solve(x.wishes, x.count, TUN_FAIR, changes, 1, &mix), 0);
        check_routes(&x, changes, &mix);
        for (size_t k = 0; k < x.p[0].ep_count; k++) {
            T_TRUE(mix.limits[k] >= 0);
            limits += mix.limits[k];
            price[k] = mix.limits[k] / x.p[0].eps[k].cores;
            T_NEAR(mix.worth[k], mix.lambda * price[k], 1e-9 * mix.lambda);
        }
        T_NEAR(limits, 1, 1e-9);
        for (size_t m = 0; m < x.count; m++) {
            sum += x.wishes[m].rate * brute(&x.wishes[m], price, changes);
            T_NEAR(mix.given[m], mix.lambda, 1e-7 * mix.lambda);
        }
        T_NEAR(sum * mix.lambda / 1e9, 1, 1e-7);
        T_NEAR(mix.value, mix.lambda, 1e-7 * mix.lambda);
        T_LE(mix.lambda, mix.bound * (1 + 1e-9));
        tun_mix_deinit(&mix);
        mixed_deinit(&x);
    }
}

/* What no mix passes: with the prices of the cores y, a cost e of their time is at least
 * sum_m rate_m min_r (e + y) a_mr - sum_k y_k cores_k, and weighted frames are at most
 * sum_k y_k cores_k + sum_m rate_m max(0, weight_m - min_r y a_mr). */
static double proved(const struct mixed *x, const struct tun_mix *mix, size_t changes)
{
    bool least = tun_least_cost(mix->objective);
    double price[8], sum = 0;

    for (size_t k = 0; k < x->p[0].ep_count; k++) {
        price[k] = mix->worth[k] + tun_time_price(mix->objective, &x->p[0], k);
        sum += (least ? -1 : 1) * mix->worth[k] * x->p[0].eps[k].cores;
    }
    for (size_t m = 0; m < x->count; m++) {
        double cost = brute(&x->wishes[m], price, changes) / 1e9;

        sum += x->wishes[m].rate * (least ? cost : base_max(x->wishes[m].weight - cost, 0.0));
    }
    return sum;
}

static double reached(const struct mixed *x, const struct tun_mix *mix)
{
    double sum = 0;

    for (size_t k = 0; k < x->p[0].ep_count; k++) {
        sum += mix->busy[k] * x->p[0].eps[k].cores * tun_time_price(mix->objective, &x->p[0], k);
    }
    for (size_t m = 0; mix->objective == TUN_WEIGHTED && m < x->count; m++) {
        sum += mix->given[m] * x->wishes[m].rate * x->wishes[m].weight;
    }
    return sum;
}

/* @load: of what the cores can do fairly. */
static void check_objective(struct mixed *x, enum tun_share objective, double load, size_t changes)
{
    struct tun_mix fair, mix;
    double scale;

    T_TRUE(tun_mix_solve(x->wishes, x->count, TUN_FAIR, changes, 1, &fair) == 0);
    for (size_t m = 0; m < x->count; m++) {
        x->wishes[m].rate *= load * fair.lambda;
        x->wishes[m].weight = (double)t_range(1, 10);
    }
    T_TRUE(tun_mix_solve(x->wishes, x->count, objective, changes, 1, &mix) == 0);
    check_routes(x, changes, &mix);
    scale = base_max(mix.value, 1e-3);
    if (tun_least_cost(objective) && load > 1) {
        T_TRUE(mix.objective == TUN_FAIR && fabs(mix.lambda * load - 1) < 1e-7);
    } else {
        T_NEAR(mix.value, reached(x, &mix), 1e-6 * scale);
        T_NEAR(mix.value, proved(x, &mix, changes), 1e-6 * scale);
        T_TRUE(tun_least_cost(objective) ? mix.bound <= mix.value * (1 + 1e-7)
                                         : mix.value <= mix.bound * (1 + 1e-7) + 1e-7);
        T_TRUE(objective == TUN_WEIGHTED || fabs(mix.lambda - 1) < 1e-7);
        T_TRUE(load > 1 || fabs(mix.lambda - 1) < 1e-6);
    }
    tun_mix_deinit(&fair);
    tun_mix_deinit(&mix);
}

TEST(no_routes_take_less_energy_or_give_more_weight)
{
    for (int i = 0; i < t_times(2000); i++) {
        struct mixed x;
        double load = (double)t_range(1, 30) / 10 + 0.01;

        t_note("problem %d", i);
        mixed_init(&x, (size_t)t_range(1, MODELS), (size_t)t_range(1, 3),
                   (double)t_range(0, 2) / 2);
        if (t_range(0, 1)) {
            widen(&x);
        }
        check_objective(&x, (enum tun_share)(TUN_ENERGY + i % 3), i % 20 == 1 ? 0.999999 : load,
                        (size_t)t_range(0, 3));
        mixed_deinit(&x);
    }
}

/* Without hand-offs and with as many changes as units, routes are all that units can do. */
TEST(routes_reach_the_bound_where_changes_are_free)
{
    for (int i = 0; i < t_times(200); i++) {
        struct tun_mix mix;
        struct mixed x;

        mixed_init(&x, MODELS, 3, 0);
        T_EQ(tun_mix_solve(x.wishes, x.count, TUN_FAIR, 4, 1, &mix), 0);
        T_NEAR(mix.lambda, mix.bound, 1e-7 * mix.bound);
        tun_mix_deinit(&mix);
        mixed_deinit(&x);
    }
}

/* One model's bound is that of its plans; more changes do no harm. */
TEST(one_model_and_more_changes)
{
    for (int i = 0; i < t_times(200); i++) {
        struct tun_mix mix;
        struct mixed x;
        double before = 0;

        mixed_init(&x, 1, 2, 1);
        for (size_t changes = 0; changes <= 3; changes++) {
            T_EQ(tun_mix_solve(x.wishes, 1, TUN_FAIR, changes, 1, &mix), 0);
            T_NEAR(mix.bound * x.wishes[0].rate * tun_bound_ns(&x.p[0]) / 1e9, 1, 1e-7);
            T_LE(before, mix.lambda * (1 + 1e-9));
            before = mix.lambda;
            tun_mix_deinit(&mix);
        }
        mixed_deinit(&x);
    }
}

/* A unit of 10 ms that several frames at once make up to twice as fast: as many as a deadline
 * leaves time for. At four times 50 frames a second two take 5 + 16 ms, four 15 + 24, eight 35 +
 * 40. */
TEST(frames_at_once_have_to_be_in_time)
{
    const struct {
        double deadline_ms, bound;
    } rows[] = {{0, 4}, {76, 4}, {40, 1 / 0.3}, {22, 2.5}, {20, 2}};
    const struct tun_ep ep = {.name = "a", .cores = 1, .speed = 1};
    struct tun_problem p;
    struct tun_at_once *gain;

    T_EQ(tun_problem_init(&p, 1, &ep, 1), 0);
    *tun_cell_at(&p.costs, 0, 1, 0) = (struct tun_cell){.ns = 1e7, .source = TUN_MEASURED};
    gain = tun_problem_at_once(&p);
    T_TRUE(gain != NULL);
    *gain = (struct tun_at_once){.factor = {0.8, 0.6, 0.5}};
    for (size_t i = 0; i < base_array_count(rows); i++) {
        struct tun_wish wish = {
            .p = &p, .rate = 50, .deadline_ns = rows[i].deadline_ms * 1e6, .weight = 1};
        struct tun_mix mix;

        T_EQ(tun_mix_solve(&wish, 1, TUN_FAIR, 0, 1, &mix), 0);
        T_NEAR(mix.bound, rows[i].bound, 1e-6);
        T_NEAR(mix.lambda, 2, 1e-6);
        tun_mix_deinit(&mix);
    }
    tun_problem_deinit(&p);
}

TEST(equal_parts_are_fair)
{
    T_NEAR(tun_fairness((double[]){0.3, 0.3, 0.3}, 3), 1, 1e-12);
    T_NEAR(tun_fairness((double[]){0, 0.7, 0, 0}, 4), 0.25, 1e-12);
    T_NEAR(tun_fairness((double[]){1, 2, 3}, 3), 36.0 / 42, 1e-12);
    T_NEAR(tun_fairness((double[]){0, 0}, 2), 1, 0);
}

TEST(what_makes_no_sense_is_refused)
{
    struct tun_mix mix;
    struct mixed x;

    mixed_init(&x, 2, 2, 1);
    T_EQ(tun_mix_solve(x.wishes, 0, TUN_FAIR, 1, 1, &mix), -EINVAL);
    T_EQ(tun_mix_solve(x.wishes, TUN_MIX_MAX + 1, TUN_FAIR, 1, 1, &mix), -EINVAL);
    T_EQ(tun_mix_solve(x.wishes, 2, TUN_FAIR, TUN_CHANGES_MAX + 1, 1, &mix), -EINVAL);
    for (size_t i = 0; i < 4; i++) {
        x.wishes[1].rate = (double[]){0, -1, NAN, INFINITY}[i];
        T_EQ(tun_mix_solve(x.wishes, 2, TUN_FAIR, 1, 1, &mix), -EINVAL);
    }
    x.wishes[1].rate = x.wishes[0].weight = 1;
    T_EQ(tun_mix_solve(x.wishes, 2, TUN_WEIGHTED, 1, 1, &mix), -EINVAL);
    x.wishes[1].width = 4;
    T_EQ(tun_mix_solve(x.wishes, 2, TUN_FAIR, 1, 1, &mix), -EINVAL);
    x.wishes[1].width = 0;
    x.p[1].eps[0].cores++;
    T_EQ(tun_mix_solve(x.wishes, 2, TUN_FAIR, 1, 1, &mix), -EINVAL);
    x.p[1].eps[0].cores--;
    tun_cell_at(&x.p[1].costs, 1, 1, 0)->ns = -1;
    T_EQ(tun_mix_solve(x.wishes, 2, TUN_FAIR, 1, 1, &mix), -EINVAL);
    tun_mix_deinit(&mix);
    mixed_deinit(&x);
}

TEST_MAIN()
