/* SPDX-License-Identifier: Apache-2.0 */
/* Models that take several cores at once: on rows, within bounds, and where a deadline needs it. */
#include "base/base.h"
#include "tests/harness.h"
#include "tuner/eval.h"
#include "tuner/solve/promise.h"

/* A wide model of 2 ms in class 1, a long unit of class 0 beside it, and up to two more. */
struct row {
    struct tun_lane lane[4];
    struct tun_lanes lanes;
    struct tun_wish wishes[4];
};

static void row_init(struct row *x)
{
    static const double unit_ns[] = {1e6, 1e6, 3e6};

    *x = (struct row){.lanes = {.seats = 2, .count = 2, .lanes = x->lane}};
    x->lane[0].stops[0] = (struct tun_stop){.width = 2, .units = 2, .unit_ns = unit_ns};
    x->lane[1].stops[0] = (struct tun_stop){.seat = 1, .units = 1, .unit_ns = unit_ns + 2};
    x->lane[2].stops[0] = (struct tun_stop){.units = 1, .unit_ns = unit_ns};
    x->lane[3].stops[0] = (struct tun_stop){.units = 1, .unit_ns = unit_ns};
    for (size_t m = 0; m < 4; m++) {
        x->lane[m].model = m;
        x->lane[m].stages = 1;
        x->lane[m].share = 1;
        x->wishes[m] = (struct tun_wish){.rate = 10, .class = (unsigned[]){1, 0, 2, 0}[m]};
    }
    x->wishes[0].deadline_ns = 20e6;
}

static void admit(struct row *x, double floor, struct tun_answer *ret)
{
    tun_lanes_due(x->wishes, &x->lanes);
    T_EQ(tun_admit(x->wishes, x->lanes.count, &x->lanes, floor, ret), 0);
}

TEST(one_row_by_hand)
{
    struct tun_answer a;
    struct row x;

    row_init(&x);
    admit(&x, 0, &a);
    T_EQ(a.refusal, TUN_ADMITTED);
    T_NEAR(a.bound_ns[0], 5e6, 1); /* it gathers for 3 ms */
    T_NEAR(a.load, 0.05, 1e-9);
    /* 3 ms once, and 0.05 / 1.05 of the time, for what floors let run */
    admit(&x, 0.05, &a);
    T_NEAR(a.bound_ns[0], 8e6 / (1 - 0.05 / 1.05), 1);
    x.wishes[0].deadline_ns = 4.9e6;
    admit(&x, 0, &a);
    T_EQ(a.refusal, TUN_TOO_LONG_A_UNIT);
    T_EQ(a.late, 0);
    T_EQ(a.model, 1);
    x.wishes[0].deadline_ns = 1.9e6;
    admit(&x, 0, &a);
    T_EQ(a.refusal, TUN_TOO_MUCH_DEMAND);
    T_EQ(a.model, 0);
    /* alone it waits for nobody */
    x.lanes.count = 1;
    x.wishes[0].deadline_ns = 2e6;
    admit(&x, 0, &a);
    T_EQ(a.refusal, TUN_ADMITTED);
    T_NEAR(a.bound_ns[0], 2e6, 1);
}

/* Who goes before a wide one makes it gather again, and others wait meanwhile. */
TEST(who_goes_before_a_wide_one_costs_more)
{
    struct tun_answer a;
    struct row x;

    row_init(&x);
    x.lanes.count = 4;
    x.wishes[3].deadline_ns = 50e6;
    admit(&x, 0, &a);
    T_EQ(a.refusal, TUN_ADMITTED);
    T_NEAR(a.bound_ns[0], 9e6, 1);  /* 5 ms; 1 ms of model 2, and gathers again */
    T_NEAR(a.bound_ns[3], 10e6, 1); /* its own 1 ms, too */
    /* the units that floors let run elsewhere cost it, too, and what the wide one gathers for */
    x.wishes[0].deadline_ns = 40e6;
    admit(&x, 0.05, &a);
    T_NEAR(a.bound_ns[3], 16e6 / (1 - 0.05 / 1.05 - 0.05 * 3), 1);
    x.lane[2].stops[0].seat = 1;
    admit(&x, 0, &a);
    T_NEAR(a.bound_ns[0], 9e6, 1);
    T_NEAR(a.bound_ns[3], 9e6, 1); /* not that of model 2, which is on the other seat */
    x.wishes[3].class = 2;
    admit(&x, 0, &a);
    T_NEAR(a.bound_ns[3], 2e6, 1); /* its own, and a unit of the wide one */
}

/* Two models of 8 units of 1 ms on one core of 4, a third of it longer on more of them. */
static void two_models(struct tun_problem *p, struct tun_wish *wishes)
{
    struct tun_ep ep = {.name = "a", .cores = 4, .speed = 1};

    for (size_t m = 0; m < 2; m++) {
        T_EQ(tun_problem_init(&p[m], 8, &ep, 1), 0);
        for (size_t u = 0; u < 8; u++) {
            for (size_t w = 1; w <= 4; w++) {
                *tun_cell_at(&p[m].costs, 0, w, u) = (struct tun_cell){
                    .ns = (w > 1 ? 1.25e6 : 1e6) / (double)w, .source = TUN_MEASURED};
            }
        }
        wishes[m] = (struct tun_wish){.p = &p[m], .rate = 20, .class = 1 - (unsigned)m};
    }
}

TEST(a_model_takes_as_many_cores_as_a_deadline_needs)
{
    const struct {
        double deadline_ns;
        size_t asked, width; /* 0: refused */
    } rows[] = {{10e6, 0, 1},  {8.5e6, 0, 1}, {7.9e6, 0, 2}, {6.1e6, 0, 2}, {4.9e6, 0, 4},
                {3.6e6, 0, 4}, {2.4e6, 0, 0}, {10e6, 4, 4},  {4.9e6, 2, 0}, {10e6, 3, 3}};
    struct tun_problem p[2];
    struct tun_wish wishes[2];

    two_models(p, wishes);
    for (size_t i = 0; i < base_array_count(rows); i++) {
        struct tun_promise made;

        t_note("row %zu", i);
        wishes[0].deadline_ns = rows[i].deadline_ns;
        wishes[0].width = rows[i].asked;
        T_EQ(tun_promise_make(wishes, 2, TUN_ENERGY, 0, 0, &made), 0);
        T_EQ(made.answer.refusal == TUN_ADMITTED, rows[i].width > 0);
        if (rows[i].width > 0) {
            T_EQ(made.width[0], rows[i].width);
            T_EQ(made.width[1], 1);
            T_LE(made.answer.bound_ns[0], rows[i].deadline_ns);
            T_EQ(base_max(made.mix.dealt[0].route.width, (uint16_t)1), rows[i].width);
        } else {
            T_EQ(made.width[0], base_max(rows[i].asked, (size_t)1));
        }
        tun_promise_deinit(&made);
    }
    wishes[1].width = 2;
    wishes[0].width = 4;
    T_EQ(tun_mix_solve(wishes, 2, TUN_FAIR, 0, 1, &(struct tun_mix){0}), -EINVAL);
    tun_problem_deinit(&p[0]);
    tun_problem_deinit(&p[1]);
}

/* Rows are in their EP and do not overlap, lanes have all frames, and no seat has more than it
 * can do. */
TEST(wide_lanes_are_on_rows)
{
    for (int i = 0; i < t_times(500); i++) {
        struct tun_problem p[3];
        struct tun_wish wishes[3];
        uint16_t width = (uint16_t)t_range(2, 3), rest = (uint16_t)t_range(0, 1);
        struct tun_ep ep = {.name = "a", .cores = (uint16_t)(width * t_range(1, 3)), .speed = 1};
        struct tun_lanes lanes;
        struct tun_mix mix;
        double share[3] = {0}, load[10] = {0};

        ep.cores = (uint16_t)(ep.cores + rest);
        for (size_t m = 0; m < 3; m++) {
            T_EQ(tun_problem_init(&p[m], 3, &ep, 1), 0);
            for (size_t u = 0; u < 3; u++) {
                for (size_t w = 1; w <= ep.cores; w++) {
                    *tun_cell_at(&p[m].costs, 0, w, u) = (struct tun_cell){
                        .ns = 1e3 * (double)t_range(10, 3000), .source = TUN_MEASURED};
                }
            }
            wishes[m] = (struct tun_wish){
                .p = &p[m], .rate = (double)t_range(1, 60), .width = t_range(0, 1) ? width : 0};
        }
        T_EQ(tun_mix_solve(wishes, 3, TUN_FAIR, 0, 1, &mix), 0);
        T_EQ(tun_lanes_init(wishes, &mix, t_range(0, 1), &lanes), 0);
        for (size_t j = 0; j < lanes.count; j++) {
            const struct tun_lane *lane = &lanes.lanes[j];
            const struct tun_stop *stop = &lane->stops[0];

            T_EQ(tun_stop_width(stop), wishes[lane->model].width > 1 ? width : 1);
            T_EQ(stop->seat % tun_stop_width(stop), 0);
            T_TRUE(stop->seat + tun_stop_width(stop) <= ep.cores);
            share[lane->model] += lane->share;
            for (size_t s = 0; s < tun_stop_width(stop); s++) {
                load[stop->seat + s] += lane->share * mix.given[lane->model] *
                                        wishes[lane->model].rate * tun_stop_ns(stop, NULL) / 1e9;
            }
        }
        for (size_t s = 0; s < ep.cores && rest == 0; s++) {
            T_TRUE(load[s] <= 1 + 1e-6);
        }
        for (size_t m = 0; m < 3; m++) {
            T_NEAR(share[m], 1, 1e-6);
            tun_problem_deinit(&p[m]);
        }
        tun_lanes_deinit(&lanes);
        tun_mix_deinit(&mix);
    }
}

TEST_MAIN()
