/* SPDX-License-Identifier: Apache-2.0 */
/* Searches for a path against all paths there are, on small random problems. */
#include <math.h>
#include <string.h>

#include "base/base.h"
#include "kernels/select/path.h"
#include "tests/harness.h"

#define STEPS 6
#define PER_STEP 5
#define LAYOUTS 3

struct random_problem {
    struct krn_path_problem p;
    struct krn_path_node nodes[STEPS * PER_STEP];
    double convert[STEPS * LAYOUTS * LAYOUTS];
};

static void make(struct random_problem *r, bool fused, bool convert)
{
    size_t steps = (size_t)t_range(1, STEPS), n = 0;

    for (size_t s = 0; s < steps; s++) {
        size_t rows = (size_t)t_range(1, PER_STEP);

        for (size_t i = 0; i < rows; i++) {
            r->nodes[n++] = (struct krn_path_node){
                .step = s,
                .span = fused && i > 0 && s + 1 < steps && t_range(0, 3) == 0 ? 2 : 1,
                .takes = (size_t)t_range(0, LAYOUTS - 1),
                .leaves = (size_t)t_range(0, LAYOUTS - 1),
                .cost = (double)t_range(0, 40),
                .bytes = (double)t_range(0, 40)};
        }
        for (size_t i = 0; i < LAYOUTS * LAYOUTS; i++) {
            r->convert[s * LAYOUTS * LAYOUTS + i] = i % (LAYOUTS + 1) ? (double)t_range(0, 20) : 0;
        }
    }
    r->p = (struct krn_path_problem){.step_count = steps,
                                     .node_count = n,
                                     .layout_count = LAYOUTS,
                                     .nodes = r->nodes,
                                     .convert = convert ? r->convert : NULL};
}

/* Every path: the least cost of those that hold at most @bytes_max. */
static double brute(const struct random_problem *r, size_t from, double cost, double bytes,
                    double bytes_max)
{
    size_t step = from == SIZE_MAX ? 0 : r->nodes[from].step + r->nodes[from].span;
    double least = INFINITY;

    if (bytes > bytes_max) {
        return INFINITY;
    }
    if (step == r->p.step_count) {
        return cost;
    }
    for (size_t i = 0; i < r->p.node_count; i++) {
        const struct krn_path_node *n = &r->nodes[i];
        double edge = n->cost;

        if (n->step != step) {
            continue;
        }
        if (from != SIZE_MAX && r->p.convert) {
            edge += r->convert[(step * LAYOUTS + r->nodes[from].leaves) * LAYOUTS + n->takes];
        }
        least = base_min(least, brute(r, i, cost + edge, bytes + n->bytes, bytes_max));
    }
    return least;
}

/* Is it a path, and does it cost what it says? */
static void check_path(const struct random_problem *r, const struct krn_path *path)
{
    double cost = 0, bytes = 0;
    size_t step = 0;

    for (size_t i = 0; i < path->count; i++) {
        const struct krn_path_node *n = &r->nodes[path->nodes[i]];

        T_EQ(n->step, step);
        cost += n->cost;
        bytes += n->bytes;
        if (i && r->p.convert) {
            cost += r->convert[(step * LAYOUTS + r->nodes[path->nodes[i - 1]].leaves) * LAYOUTS +
                               n->takes];
        }
        step += n->span;
    }
    T_EQ(step, r->p.step_count);
    T_TRUE(fabs(cost - path->cost) < 1e-9);
    T_TRUE(fabs(bytes - path->bytes) < 1e-9);
}

TEST(dijkstra_and_a_star_are_exact)
{
    for (int i = 0; i < 600; i++) {
        struct random_problem r;
        double least;

        make(&r, i % 2, i % 4 < 2);
        least = brute(&r, SIZE_MAX, 0, 0, INFINITY);
        for (int a = KRN_PATH_DIJKSTRA; a <= KRN_PATH_A_STAR; a++) {
            struct krn_path_options o = {.algorithm = (enum krn_path_algorithm)a};
            struct krn_path path;

            T_EQ(krn_path_solve(&r.p, &o, &path), 0);
            check_path(&r, &path);
            T_TRUE(fabs(path.cost - least) < 1e-9);
            krn_path_deinit(&path);
        }
    }
}

struct episodes {
    const struct random_problem *r;
    size_t count;
    double best;
};

static void see(void *arg, const size_t *nodes, size_t count, double cost)
{
    struct krn_path path = {.nodes = (size_t *)(uintptr_t)nodes, .count = count, .cost = cost};
    struct episodes *e = arg;

    for (size_t i = 0; i < count; i++) {
        path.bytes += e->r->nodes[nodes[i]].bytes;
    }
    check_path(e->r, &path);
    e->best = fmin(e->best, cost);
    e->count++;
}

TEST(other_searches_find_paths_that_are_no_better)
{
    for (int i = 0; i < 60; i++) {
        struct random_problem r;
        double least;

        make(&r, i % 2, i % 4 < 2);
        least = brute(&r, SIZE_MAX, 0, 0, INFINITY);
        for (int a = KRN_PATH_Q_LEARNING; a < KRN_PATH_ALGORITHM_COUNT; a++) {
            struct episodes seen = {&r, 0, INFINITY};
            struct krn_path_options o = {.algorithm = (enum krn_path_algorithm)a,
                                         .episodes = 100,
                                         .seed = (uint64_t)i + 1,
                                         .episode = see,
                                         .arg = &seen};
            struct krn_path path, again;

            T_EQ(krn_path_solve(&r.p, &o, &path), 0);
            T_TRUE(seen.count == 0 || (seen.count == 100 && seen.best == path.cost));
            T_EQ(seen.count == 0, a == KRN_PATH_DIRECT || a == KRN_PATH_DIRECT_PLUS);
            seen.count = 0;
            check_path(&r, &path);
            T_TRUE(path.cost >= least - 1e-9);
            T_EQ(krn_path_solve(&r.p, &o, &again), 0);
            T_TRUE(again.cost == path.cost && again.states == path.states); /* same seed */
            krn_path_deinit(&path);
            krn_path_deinit(&again);
        }
    }
}

/* What looks good at every step is bad in the end: two cheap primitives of different layouts. */
TEST(learning_sees_past_the_next_step)
{
    static const struct krn_path_node nodes[] = {{0, 1, 0, 0, 10, 0}, {0, 1, 1, 1, 12, 0},
                                                 {1, 1, 0, 0, 30, 0}, {1, 1, 1, 1, 10, 0},
                                                 {2, 1, 0, 0, 30, 0}, {2, 1, 1, 1, 10, 0}};
    static const double convert[3 * 4] = {0, 30, 30, 0, 0, 30, 30, 0, 0, 30, 30, 0};
    struct krn_path_problem p = {3, 6, 2, nodes, convert};

    for (int a = 0; a < KRN_PATH_ALGORITHM_COUNT; a++) {
        struct krn_path_options o = {.algorithm = (enum krn_path_algorithm)a, .seed = 7};
        enum krn_path_algorithm found;
        struct krn_path path;

        T_EQ(krn_path_solve(&p, &o, &path), 0);
        T_EQ(path.cost, a == KRN_PATH_DIRECT ? 60 : a == KRN_PATH_DIRECT_PLUS ? 70 : 32);
        krn_path_deinit(&path);
        T_TRUE(krn_path_find(krn_path_name((enum krn_path_algorithm)a), &found));
        T_EQ(found, a);
    }
}

/* As many operators as ResNet-50 has, and twelve primitives for each; QS-DNN found both equal. */
TEST(learning_comes_near_the_shortest_path)
{
    enum { LONG = 57, ROWS = 12 };

    for (int i = 0; i < 3; i++) {
        struct krn_path_node nodes[LONG * ROWS];
        struct krn_path_problem p = {LONG, LONG * ROWS, 1, nodes, NULL};
        struct krn_path_options exact = {.algorithm = KRN_PATH_DIJKSTRA};
        struct krn_path_options learn = {.algorithm = KRN_PATH_Q_LEARNING, .seed = (uint64_t)i + 1};
        double work[LONG + 1] = {0};
        struct krn_path best, found;

        for (size_t s = 0; s < LONG; s++) {
            work[s] = (double)t_range(1, 100);
        }
        for (size_t n = 0; n < p.node_count; n++) {
            size_t s = n / ROWS, span = s + 1 < LONG && t_range(0, 6) == 0 ? 2 : 1;
            double of = work[s] + (span == 2 ? work[s + 1] : 0);

            nodes[n] = (struct krn_path_node){
                .step = s, .span = span, .cost = of * (double)t_range(100, 300) / 100};
        }
        T_EQ(krn_path_solve(&p, &exact, &best), 0);
        T_EQ(krn_path_solve(&p, &learn, &found), 0);
        T_TRUE(found.cost < 1.02 * best.cost);
        krn_path_deinit(&best);
        krn_path_deinit(&found);
    }
}

TEST(front_holds_the_best_of_every_bound)
{
    for (int i = 0; i < 150; i++) {
        struct random_problem r;
        struct krn_path front[64];
        double bound = i % 3 ? 0 : (double)t_range(0, 160);
        size_t count = 0;

        make(&r, i % 2, i % 4 < 2);
        int e = krn_path_front(&r.p, bound, 64, front, &count);
        double least = brute(&r, SIZE_MAX, 0, 0, bound > 0 ? bound : INFINITY);

        if (isinf(least)) {
            T_EQ(e, -ENOSPC);
            continue;
        }
        T_EQ(e, 0);
        T_TRUE(fabs(front[0].cost - least) < 1e-9);
        for (size_t k = 0; k < count; k++) {
            check_path(&r, &front[k]);
            /* whole numbers below 1024 cells: nothing was taken for equal that is not */
            T_TRUE(fabs(front[k].cost - brute(&r, SIZE_MAX, 0, 0, front[k].bytes)) < 1e-9);
            T_TRUE(k == 0 ||
                   (front[k].cost > front[k - 1].cost && front[k].bytes < front[k - 1].bytes));
        }
        for (size_t k = 0; k < count; k++) {
            krn_path_deinit(&front[k]);
        }
    }
}

TEST(bad_problems_are_refused)
{
    struct krn_path_node nodes[] = {{0, 1, 0, 0, 1, 1}, {1, 1, 0, 0, 1, 1}};
    struct krn_path_problem p = {2, 2, 1, nodes, NULL};
    struct krn_path_options o = {.algorithm = KRN_PATH_ALGORITHM_COUNT};
    struct krn_path path;
    enum krn_path_algorithm found;

    T_EQ(krn_path_check(&p), 0);
    T_EQ(krn_path_solve(&p, &o, &path), -EINVAL);
    nodes[1].span = 2;
    T_EQ(krn_path_check(&p), -EINVAL); /* past the end */
    nodes[1].span = 1;
    nodes[0].cost = NAN;
    T_EQ(krn_path_check(&p), -EINVAL);
    nodes[0].cost = 1;
    nodes[0].span = 2;
    T_EQ(krn_path_check(&p), -EINVAL); /* no primitive alone at step 0 */
    nodes[0].span = 1;
    nodes[1].takes = 1;
    T_EQ(krn_path_check(&p), -EINVAL);
    nodes[1].takes = 0;
    nodes[1].leaves = 1;
    T_EQ(krn_path_check(&p), -EINVAL);
    p.node_count = 1;
    T_EQ(krn_path_check(&p), -EINVAL);
    T_TRUE(!krn_path_find("genetic", &found));
}

TEST_MAIN()
