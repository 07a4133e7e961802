/* SPDX-License-Identifier: Apache-2.0 */
/* What the table of searches says of each is what the search does. */
#include <string.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/searches.h"

static const struct tun_ep EPS[] = {{"big", 2, 1, 1, 1}, {"little", 2, 0.35, 0.5, 1}};
static const struct tun_ep MORE[] = {{"big", 2, 1, 1, 1},
                                     {"little", 2, 0.35, 0.5, 1},
                                     {"third", 1, 0.7, 1, 1},
                                     {"fourth", 1, 0.5, 1, 1}};
#define ROUNDS 20

/* What a search is tried on: nsga2's whole EPs leave few plans of eight units on two. */
static struct tun_problem subject(const struct tun_algorithm *a)
{
    return a == &tun_nsga2 ? t_problem(14, MORE, base_array_count(MORE))
                           : t_problem(8, EPS, base_array_count(EPS));
}

/* Which options change what a search tries. Any search takes an objective, bounds and trials. */
enum {
    TAKES_ALPHA = 1,
    TAKES_HEURISTIC = 2,
    TAKES_SEED = 4,
    TAKES_SPACE = 8,
    TAKES_TOP = 16,
    TAKES_ENCODING = 32,
    TAKES_STAGES = 64,
    TAKES_HINTS = 128,
    TAKES_DRAWN = 256,
};
static const struct {
    const struct tun_algorithm *of;
    unsigned takes;
} SEARCHES[] = {
    {&tun_exact, TAKES_TOP},
    {&tun_shisha, TAKES_ALPHA | TAKES_HEURISTIC | TAKES_SEED | TAKES_DRAWN},
    {&tun_pipe_search, TAKES_ALPHA | TAKES_HINTS},
    {&tun_pipe_search_database, TAKES_ALPHA | TAKES_HINTS},
    {&tun_pipe_it, 0},
    {&tun_exhaustive, TAKES_SPACE},
    {&tun_random_walk, TAKES_SEED | TAKES_SPACE},
    {&tun_hill_climbing, TAKES_SEED | TAKES_SPACE},
    {&tun_hill_climbing_seeded, TAKES_HEURISTIC | TAKES_SEED | TAKES_SPACE},
    {&tun_annealing, TAKES_ALPHA | TAKES_SEED | TAKES_SPACE},
    {&tun_annealing_seeded, TAKES_ALPHA | TAKES_HEURISTIC | TAKES_SEED | TAKES_SPACE},
    {&tun_nsga2, TAKES_ALPHA | TAKES_SEED | TAKES_ENCODING | TAKES_STAGES},
};

static const struct taking {
    unsigned bit;
    const char *name;
    struct tun_options a, b;
} TAKES[] = {
    /* Shisha's heuristics 5 and 6 are the random ones. */
    {TAKES_ALPHA, "alpha", {.alpha = 10}, {.alpha = 1}},
    {TAKES_HEURISTIC, "heuristic", {.heuristic = 3}, {.heuristic = 6}},
    {TAKES_SEED, "seed", {.seed = 0, .heuristic = 6}, {.seed = 1, .heuristic = 6}},
    {TAKES_SPACE, "space", {.space = TUN_SPACE_PLACES}, {.space = TUN_SPACE_ALL}},
    {TAKES_TOP, "top", {.top = 5}, {.top = 1}},
    {TAKES_ENCODING, "encoding", {.encoding = TUN_ENCODING_SPE}, {.encoding = TUN_ENCODING_NE}},
    {TAKES_STAGES, "stages", {.stages = 0}, {.stages = 1}},
    {TAKES_HINTS, "no_hints", {.no_hints = false}, {.no_hints = true}},
    {TAKES_DRAWN, "drawn_seed", {.drawn_seed = false}, {.drawn_seed = true}},
};

/* Do two searches end with the same trials? */
static bool same(const struct tun_search *a, const struct tun_search *b)
{
    size_t count, other;
    const struct tun_trial *x = tun_search_log(a, &count), *y = tun_search_log(b, &other);

    if (count != other) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if (!pl_plan_equal(&x[i].plan, &y[i].plan)) {
            return false;
        }
    }
    return true;
}

/* Does a search of @name that is told @a and one that is told @b try the same, measured by @p? */
static bool same_trials(const char *name, const struct tun_problem *p, const struct tun_problem *a,
                        const struct tun_options *oa, const struct tun_problem *b,
                        const struct tun_options *ob)
{
    struct tun_search *x = t_search(name, a, oa), *y = t_search(name, b, ob);
    bool result;

    if (!x || !y) {
        abort();
    }
    t_drive(x, p, NULL, NULL);
    t_drive(y, p, NULL, NULL);
    result = same(x, y);
    tun_search_free(x);
    tun_search_free(y);
    return result;
}

/* One difference is proof enough; that there is none takes many tries. */
static int rounds(bool to_differ)
{
    return to_differ ? ROUNDS : t_times(ROUNDS);
}

static void check_takes(const struct tun_algorithm *a, bool takes, const struct taking *t)
{
    bool differs = false;

    for (int round = 0; round < rounds(takes) && !differs; round++) {
        struct tun_problem p = subject(a);

        struct tun_options x = t->a, y = t->b;

        x.seed += 2 * (unsigned)round;
        y.seed += 2 * (unsigned)round;
        differs = !same_trials(a->name, &p, &p, &x, &p, &y);
        tun_problem_deinit(&p);
    }
    if (differs != takes) {
        T_FAIL("%s %s %s", a->name, takes ? "does not take" : "takes", t->name);
    }
}

TEST(searches_take_the_options_of_their_row)
{
    size_t count;

    tun_algorithms(&count);
    T_EQ(base_array_count(SEARCHES), count);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < base_array_count(TAKES); j++) {
            check_takes(SEARCHES[i].of, (SEARCHES[i].takes & TAKES[j].bit) != 0, &TAKES[j]);
        }
    }
}

TEST(searches_read_costs_as_their_row_says)
{
    size_t count;
    const struct tun_algorithm *const *all = tun_algorithms(&count);

    for (size_t i = 0; i < count; i++) {
        bool reads = all[i]->reads_costs, differs = false;

        for (int round = 0; round < rounds(reads) && !differs; round++) {
            struct tun_problem p = subject(all[i]), unknown;

            T_EQ(tun_problem_copy(&p, &unknown), 0);
            for (size_t u = 0; u < p.unit_count; u++) {
                for (size_t k = 0; k < p.ep_count; k++) {
                    for (size_t w = 1; w <= p.eps[k].cores; w++) {
                        *tun_cell_at(&unknown.costs, k, w, u) = (struct tun_cell){0};
                    }
                }
            }
            differs = !same_trials(all[i]->name, &p, &p, NULL, &unknown, NULL);
            tun_problem_deinit(&p);
            tun_problem_deinit(&unknown);
        }
        if (differs != reads) {
            T_FAIL("%s: the table says that it %s costs", all[i]->name,
                   reads ? "reads" : "does not read");
        }
    }
}

/* Without hints Pipe-search balances the numbers of layers, whatever these weigh: 33, 30, 36 and 27
 * ns here. Any search stops at a bottleneck that is enough. */
TEST(pipe_search_without_hints_stops_at_what_is_enough)
{
    static const struct tun_ep eps[] = {{"big", 1, 1, 1, 1}, {"little", 1, 1.0 / 3, 1, 1}};
    static const char *const wanted[] = {"0-1@big|2-4@little", "0-2@big|3-4@little",
                                         "0-0@big|1-4@little", "0-3@big|4-4@little"};
    static const struct {
        double enough_ns;
        size_t trials;
    } rows[] = {{0, 4}, {40, 1}, {30, 2}, {26, 4}};

    for (size_t i = 0; i < base_array_count(rows); i++) {
        struct tun_problem p = t_problem(5, eps, 2);
        struct tun_options o = {.no_hints = true, .alpha = 3, .enough_ns = rows[i].enough_ns};
        struct tun_search *s;
        const struct tun_trial *log;
        size_t count;

        p.handoff_ns = 0;
        for (size_t u = 0; u < 5; u++) {
            p.units[u].weight = u < 4 ? 1 : 9;
            tun_cell_at(&p.costs, 0, 1, u)->ns = p.units[u].weight;
            tun_cell_at(&p.costs, 1, 1, u)->ns = 3 * p.units[u].weight;
        }
        s = t_search("pipe-search", &p, &o);
        T_TRUE(s);
        t_drive(s, &p, NULL, NULL);
        log = tun_search_log(s, &count);
        T_EQ(count, rows[i].trials);
        for (size_t t = 0; t < count; t++) {
            char text[PL_PLAN_TEXT_MAX];

            T_EQ(tun_plan_text(&p, &log[t].plan, text), 0);
            T_STR(text, wanted[t]);
        }
        tun_search_free(s);
        tun_problem_deinit(&p);
    }
}

TEST(the_default_comes_first)
{
    static const char names[] = TUN_SEARCH_NAMES;
    size_t count;
    const struct tun_algorithm *const *all = tun_algorithms(&count);

    T_LT(5, count);
    T_STR(all[0]->name, "exact");
    T_EQ(strncmp(names, "exact, ", 7), 0);
    for (size_t i = 0; i < count; i++) {
        T_TRUE(tun_algorithm_find(all[i]->name) == all[i]);
        T_TRUE(strstr(names, all[i]->name));
    }
}

TEST_MAIN()
