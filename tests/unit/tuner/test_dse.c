/* SPDX-License-Identifier: Apache-2.0 */
/* The hierarchical DSE's formulas by hand, against tun_eval(), and the exact front of split points
 * against all of them. */
#include <string.h>

#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/searches.h"
#include "tuner/pipesim/dse.h"
#include "tuner/search/staged.h"

/* Two boards of two places (but @places: the first so many of them), whole figures. */
static struct tun_problem boards(size_t units, size_t places, bool random)
{
    static const struct tun_ep eps[] = {{"a:cpu", 1, 1, 1, 2, 0},
                                        {"a:gpu", 1, 1, 1, 5, 0},
                                        {"b:cpu", 1, 1, 1, 2, 1},
                                        {"b:gpu", 1, 1, 1, 5, 1}};
    struct tun_problem p = t_problem(units, eps, places);

    p.handoff_ns = 0;
    p.boards = (struct tun_boards){
        .count = places > 2 ? 2 : 1,
        .comm = TUN_COMM_ADDED,
        .input_bytes = 100,
        .output_bytes = 10,
        .boards = {{.name = "a", .link_watts = 0.5}, {.name = "b", .link_watts = 0.5}}};
    p.boards.links[0][1] = p.boards.links[1][0] = (struct tun_link){7, 0.5};
    for (size_t u = 0; u < units; u++) {
        p.units[u].in_bytes = u == 0 ? 0 : random ? (double)t_range(1, 300) : 20.0 * (double)u;
        p.units[u].weight_bytes = random ? (double)t_range(1, 500) : 1000;
        p.units[u].arena_bytes = random ? (double)t_range(1, 300) : 50 + (double)u;
        for (size_t k = 0; k < places; k++) {
            tun_cell_at(&p.costs, k, 1, u)->ns = random ? (double)t_range(1, 400) : k % 2 ? 10 : 40;
        }
    }
    return p;
}

TEST(formulas_by_hand)
{
    /* Units 0 1 | 2 | 3 on a:cpu, a:gpu, b:gpu. */
    static const uint16_t places[4] = {0, 0, 1, 3}, back[4] = {0, 3, 0, 0};
    struct tun_problem p = boards(4, 4, false);
    struct psim_mapped m;

    psim_mapping(&p, places, &m);
    /* a computes 80 and 10, and sends the border of unit 3, 60 bytes: 7 + 30; b computes 10, gets
     * those and sends back the answer, 7 + 5. */
    T_NEAR(m.bottleneck_ns, 80 + 37, 1e-9);
    /* a: three units, the largest arena 52, input and border; b: one, 53, border and answer */
    T_NEAR(m.most_memory_bytes, 3000 + 52 + 100 + 60, 1e-9);
    T_NEAR(m.most_energy_nj, 80 * 2 + 10 * 5 + 37 * 0.5, 1e-9);
    /* Left and come back to: two segments on a, borders of units 1 and 2. */
    psim_mapping(&p, back, &m);
    T_NEAR(m.bottleneck_ns, 120 + 7 + 10 + 7 + 20, 1e-9);
    T_NEAR(m.most_memory_bytes, 1000 + 50 + 100 + 20 + 2000 + 53 + 40 + 10, 1e-9);
    /* Buffers and communication are there at borders only: one board has neither. */
    psim_mapping(&p, (const uint16_t[4]){0, 0, 0, 0}, &m);
    T_NEAR(m.bottleneck_ns, 160, 1e-9);
    T_NEAR(m.most_memory_bytes, 4000 + 53 + 110, 1e-9);
    T_NEAR(m.most_energy_nj, 320, 1e-9);
    tun_problem_deinit(&p);
}

/* Two teams of one EP are two places, each with its width's times and its cores' watts. */
TEST(teams_are_places)
{
    static const struct tun_ep cpu = {"cpu", 4, 1, 1, 3, 0};
    static const struct pl_group teams[PL_EP_MAX + 1] = {{.ep = 0, .width = 3, .count = 1},
                                                         {.ep = 0, .width = 1, .count = 1}};
    struct tun_problem p = t_problem(3, &cpu, 1), places;
    struct psim_mapped m;

    p.handoff_ns = 5;
    for (size_t u = 0; u < 3; u++) {
        for (size_t w = 1; w <= 4; w++) {
            tun_cell_at(&p.costs, 0, w, u)->ns = 120.0 / (double)w;
        }
    }
    T_EQ(psim_places(&p, teams, 2, &places), 0);
    T_EQ(places.ep_count, 2);
    psim_mapping(&places, (const uint16_t[3]){0, 1, 0}, &m); /* comes back: two runs of 45 */
    T_NEAR(m.bottleneck_ns, 125, 1e-9);
    T_NEAR(m.most_energy_nj, 90 * 9 + 125 * 3, 1e-9);
    psim_mapping(&places, (const uint16_t[3]){0, 0, 0}, &m);
    T_NEAR(m.bottleneck_ns, 125, 1e-9);
    T_NEAR(m.most_energy_nj, 125 * 9, 1e-9);
    tun_problem_deinit(&places);
    T_EQ(psim_places(&p, teams, PL_EP_MAX + 1, &places), -EINVAL);
    tun_problem_deinit(&p);
}

/* The plan that a mapping by SPE is. */
static void make_plan(const struct tun_problem *p, const uint16_t *places, struct pl_plan *ret)
{
    *ret = (struct pl_plan){0};
    for (size_t u = 0; u < p->unit_count; u++) {
        if (u == 0 || places[u] != places[u - 1]) {
            ret->stages[ret->stage_count++] = (struct pl_stage_plan){
                .first_unit = (uint16_t)u, .group_count = 1, .groups = {{places[u], 1, 1}}};
        }
        ret->stages[ret->stage_count - 1].last_unit = (uint16_t)u;
    }
}

TEST(a_mapping_that_is_a_plan_is_judged_as_one)
{
    for (int round = 0; round < t_times(500); round++) {
        size_t units = (size_t)t_range(1, 12);
        struct tun_problem p = boards(units, 4, true);
        uint16_t genes[4] = {0}, places[12];
        struct tun_outcome o;
        struct psim_mapped m;
        struct pl_plan plan;

        for (size_t i = 1; i < 4; i++) {
            genes[i] = (uint16_t)t_range(genes[i - 1], (int64_t)units);
        }
        p.handoff_ns = (double)t_range(0, 50);
        p.boards.head = (size_t)t_range(0, 1);
        tun_encoding_decode(TUN_ENCODING_SPE, genes, units, 4, places);
        make_plan(&p, places, &plan);
        psim_mapping(&p, places, &m);
        T_EQ(tun_eval(&p, &plan, &o), 0);
        T_NEAR(m.bottleneck_ns, o.bottleneck_ns, 1e-6);
        T_NEAR(m.most_memory_bytes, o.most_memory_bytes, 1e-6);
        T_NEAR(m.most_energy_nj, o.most_energy_nj, 1e-6);
        tun_problem_deinit(&p);
    }
}

static bool no_worse(const double *a, const double *b)
{
    return a[0] <= b[0] + 1e-9 && a[1] <= b[1] + 1e-9 && a[2] <= b[2] + 1e-9;
}

TEST(the_exact_front_is_that_of_all_split_points)
{
    for (int round = 0; round < t_times(60); round++) {
        size_t units = (size_t)t_range(1, 9), count = 0, on_front = 0;
        struct tun_problem p = boards(units, 4, true);
        double *front = NULL;
        uint16_t genes[4] = {0}, places[9];

        T_EQ(psim_split_front(&p, NULL, &front, &count), 0);
        for (genes[1] = 0; genes[1] <= units; genes[1]++) {
            for (genes[2] = genes[1]; genes[2] <= units; genes[2]++) {
                for (genes[3] = genes[2]; genes[3] <= units; genes[3]++) {
                    struct psim_mapped m;
                    bool covered = false;

                    tun_encoding_decode(TUN_ENCODING_SPE, genes, units, 4, places);
                    psim_mapping(&p, places, &m);
                    for (size_t i = 0; i < count; i++) {
                        const double point[] = {m.bottleneck_ns, m.most_memory_bytes,
                                                m.most_energy_nj};

                        covered |= no_worse(front + 3 * i, point);
                        on_front += no_worse(point, front + 3 * i);
                    }
                    T_TRUE(covered);
                }
            }
        }
        T_LE(count, on_front); /* every point is some mapping's */
        for (size_t i = 0; i < count * count; i++) {
            T_TRUE(i / count == i % count ||
                   !no_worse(front + 3 * (i / count), front + 3 * (i % count)));
        }
        free(front);
        tun_problem_deinit(&p);
    }
}

/* nsga2 over boards finds the ends of the front, and keeps the memory of boards. */
TEST(nsga2_over_boards)
{
    for (int round = 0; round < t_times(10); round++) {
        struct tun_problem p = boards((size_t)t_range(4, 10), 4, true);
        struct tun_options o = {.seed = t_random()};
        struct tun_search *s;
        double *front = NULL, least = INFINITY;
        size_t count;

        T_EQ(psim_split_front(&p, NULL, &front, &count), 0);
        for (size_t i = 0; i < count; i++) {
            least = fmin(least, front[3 * i]);
        }
        s = t_search("nsga2", &p, &o);
        t_drive(s, &p, NULL, NULL);
        T_NEAR(tun_search_result(s)->measured.bottleneck_ns, least, 1e-6);
        tun_search_free(s);
        least = INFINITY;
        for (size_t i = 0; i < count; i++) {
            least = fmin(least, front[3 * i + 1]);
        }
        p.boards.boards[0].memory_bytes = p.boards.boards[1].memory_bytes = 1.05 * least;
        s = t_search("nsga2", &p, &o);
        t_drive(s, &p, NULL, NULL); /* asks only for plans that fit */
        T_TRUE(tun_search_result(s) != NULL);
        tun_search_free(s);
        free(front);
        tun_problem_deinit(&p);
    }
}

TEST_MAIN()
