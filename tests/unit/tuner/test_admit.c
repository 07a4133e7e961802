/* SPDX-License-Identifier: Apache-2.0 */
/* Deadlines that are admitted hold, whatever comes in whatever order; and much is admitted. */
#include "base/base.h"
#include "tests/harness.h"
#include "tests/unit/tuner/admit_set.h"

static uint64_t frames_of_a_problem(void)
{
    const char *frames = getenv("PIPED_ADMIT_FRAMES");

    return frames ? strtoull(frames, NULL, 10) : 4000;
}

/* Half of the problems are at 95 % load, or half that where models are wide. */
static void hold_many(bool wide)
{
    uint64_t frames = frames_of_a_problem(), done = 0;
    int admitted = 0, tried = 0, times = t_times(1000), near = 0, bounds = 0;
    double load = 0, reached = 0, most = wide ? 0.5 : 1;

    while (admitted < times && tried < 100 * times) {
        double wanted = most * (tried % 2 ? 0.95 : (double)t_range(30, 98) / 100);
        struct psim_seen seen = {0};
        struct tun_answer a;
        struct set x;

        t_note("problem %d", tried);
        set_init(&x, wanted, tried % 2 ? 100 : 20, wide);
        if (tried % 4 < 2) {
            T_EQ(tun_admit(x.wishes, x.models, &x.lanes, x.floor, &a), 0);
        } else {
            T_EQ(tun_promise_admit(x.wishes, x.models, x.floor, &x.lanes, &a), 0);
        }
        T_NEAR(a.load, wanted, 1e-9);
        tried++;
        if (a.refusal != TUN_ADMITTED) {
            continue;
        }
        set_hold(&x, &a, frames, &seen);
        admitted++;
        load += a.load;
        for (size_t m = 0; m < x.models; m++) {
            done += seen.done[m];
            if (a.bound_ns[m] > 0 && (!wide || x.takes_several[m])) {
                bounds++;
                reached += seen.worst_ns[m] / a.bound_ns[m];
                near += seen.worst_ns[m] > 0.9 * a.bound_ns[m];
            }
        }
    }
    printf("%d of %d problems admitted, mean load %.3f; %llu frames; of %d bounds %.2f reached in "
           "the mean, %d nearly\n",
           admitted, tried, load / admitted, (unsigned long long)done, bounds, reached / bounds,
           near);
    T_EQ(admitted, times);
    T_TRUE(t_share() > 1 || bounds < 100 * near);
}

TEST(what_is_admitted_is_in_time)
{
    hold_many(false);
}

TEST(what_is_admitted_on_several_cores_is_in_time)
{
    hold_many(true);
}

/* The highest load that is still admitted, of 50 sets each. Deadlines are drawn anew for each
 * model, from 1.2 times on, so the tightest counts. */
TEST(much_is_admitted)
{
    for (int64_t late = 3; late <= 100; late *= 3) {
        double sum = 0;
        int times = t_times(50);

        for (int i = 0; i < times; i++) {
            double low = 0, high = 1;
            struct tun_answer a;
            struct set x;

            set_init(&x, 1, late, false);
            for (int step = 0; step < 10; step++) {
                double load = (low + high) / 2, to = load / set_load(&x);

                for (size_t m = 0; m < x.models; m++) {
                    x.wishes[m].rate *= to;
                }
                T_EQ(tun_promise_admit(x.wishes, x.models, x.floor, &x.lanes, &a), 0);
                *(a.refusal == TUN_ADMITTED ? &low : &high) = load;
            }
            sum += low;
        }
        printf("deadlines up to %d times a frame alone: load %.3f\n", (int)late, sum / times);
        T_TRUE(late < 81 || t_share() > 1 || sum / times > 0.5);
    }
}

/* Of any frames in a row each lane gets as many as tuner/solve/lanes.h says. */
TEST(frames_are_dealt_evenly)
{
    for (int i = 0; i < t_times(200); i++) {
        struct tun_lane lanes[4] = {0};
        size_t count = (size_t)t_range(1, 4);
        uint64_t dealt[4] = {0}, had[301][4] = {0};
        double left = 1, most = count > 1 ? 2 - 1 / (double)(count - 1) : 0;

        for (size_t j = 0; j < count; j++) {
            lanes[j].share = j + 1 < count ? left * (double)t_range(1, 99) / 100 : left;
            left -= lanes[j].share;
        }
        for (size_t n = 1; n <= 300; n++) {
            tun_lane_next(lanes, count, dealt);
            memcpy(had[n], dealt, sizeof(dealt));
        }
        for (size_t from = 0; from < 300; from++) {
            for (size_t to = from + 1; to <= 300; to++) {
                for (size_t j = 0; j < count; j++) {
                    double extra =
                        (double)(had[to][j] - had[from][j]) - lanes[j].share * (double)(to - from);

                    T_TRUE(fabs(extra) <= most + 1e-6);
                }
            }
        }
    }
}

/* One seat: EDF with units of 1 ms, worked by hand. */
TEST(one_seat_by_hand)
{
    double unit_ns[4] = {1e6, 1e6, 3e6, 1e6};
    struct tun_lane lane[2] = {
        {.model = 0, .stages = 1, .share = 1, .stops = {{.units = 2, .unit_ns = unit_ns}}},
        {.model = 1, .stages = 1, .share = 1, .stops = {{.units = 2, .unit_ns = unit_ns + 2}}}};
    struct tun_lanes lanes = {.seats = 1, .count = 2, .lanes = lane};
    struct tun_wish wishes[2] = {{.rate = 100, .deadline_ns = 5e6}, {.rate = 100}};
    struct tun_answer a;

    tun_lanes_due(wishes, &lanes);
    T_EQ(tun_admit(wishes, 2, &lanes, 0, &a), 0);
    T_EQ(a.refusal, TUN_ADMITTED);
    T_NEAR(a.bound_ns[0], 5e6, 1); /* the unit of 3 ms and its own 2 */
    T_NEAR(a.load, 0.6, 1e-9);
    lane[1].stops[0].piece_ns = (double[]){1.5e6, 1e6};
    tun_lanes_due(wishes, &lanes);
    T_EQ(tun_admit(wishes, 2, &lanes, 0, &a), 0);
    T_NEAR(a.bound_ns[0], 3.5e6, 1); /* half of that unit */
    lane[1].stops[0].piece_ns = NULL;
    wishes[0].deadline_ns = 4.9e6;
    tun_lanes_due(wishes, &lanes);
    T_EQ(tun_admit(wishes, 2, &lanes, 0, &a), 0);
    T_EQ(a.refusal, TUN_TOO_LONG_A_UNIT);
    T_EQ(a.late, 0);
    T_EQ(a.model, 1);
    T_EQ(a.unit, 0);
    /* with a deadline of its own, 4 ms of it may be due first */
    wishes[0].deadline_ns = wishes[1].deadline_ns = 6e6;
    tun_lanes_due(wishes, &lanes);
    T_EQ(tun_admit(wishes, 2, &lanes, 0, &a), 0);
    T_EQ(a.refusal, TUN_ADMITTED);
    T_NEAR(a.bound_ns[0], 6e6, 1);
    T_NEAR(a.bound_ns[1], 6e6, 1);
    wishes[0].deadline_ns = wishes[1].deadline_ns = 5.9e6;
    tun_lanes_due(wishes, &lanes);
    T_EQ(tun_admit(wishes, 2, &lanes, 0, &a), 0);
    T_EQ(a.refusal, TUN_TOO_MUCH_DEMAND);
    T_EQ(a.model, 1);
    /* a higher class takes 4 ms every 10, then there is no end */
    wishes[0].deadline_ns = 8e6;
    wishes[1] = (struct tun_wish){.rate = 100, .class = 1};
    tun_lanes_due(wishes, &lanes);
    T_EQ(tun_admit(wishes, 2, &lanes, 0, &a), 0);
    T_EQ(a.refusal, TUN_ADMITTED);
    T_NEAR(a.bound_ns[0], 6e6, 1);
    lanes.count = 1; /* the first model's only */
    wishes[1].deadline_ns = 1e9;
    T_EQ(tun_admit(wishes, 2, &lanes, 0, &a), 0);
    T_EQ(a.refusal, TUN_TOO_MUCH_LOAD);
    T_EQ(a.late, 1);
    lanes.count = 2;
    wishes[1].deadline_ns = 0;
    wishes[1].rate = 200;
    T_EQ(tun_admit(wishes, 2, &lanes, 0, &a), 0);
    T_EQ(a.refusal, TUN_TOO_MUCH_LOAD);
    T_EQ(a.model, 1);
}

/* Deadlines that rounding keeps apart are looked at, both. */
TEST(deadlines_may_be_nearly_equal)
{
    double unit_ns[2] = {1e6, 1e6};
    struct tun_lane lane[2] = {
        {.model = 0, .stages = 1, .share = 1, .stops = {{.units = 1, .unit_ns = unit_ns}}},
        {.model = 1, .stages = 1, .share = 1, .stops = {{.units = 1, .unit_ns = unit_ns + 1}}}};
    struct tun_lanes lanes = {.seats = 1, .count = 2, .lanes = lane};
    struct tun_wish wishes[2] = {{.rate = 100, .deadline_ns = 5e6},
                                 {.rate = 100, .deadline_ns = nextafter(5e6, 6e6)}};
    struct tun_answer a;

    tun_lanes_due(wishes, &lanes);
    T_EQ(tun_admit(wishes, 2, &lanes, 0, &a), 0);
    T_EQ(a.refusal, TUN_ADMITTED);
    T_NEAR(a.bound_ns[0], 2e6, 1);
    T_NEAR(a.bound_ns[1], 2e6, 1);
}

/* A model of units of 1 ms, and one in a lower class of which unit 1 takes 8 ms, on one core. */
static void two_models(struct tun_problem *p, struct tun_wish *wishes)
{
    struct tun_ep ep = {.name = "a", .cores = 1, .speed = 1};

    for (size_t m = 0; m < 2; m++) {
        T_EQ(tun_problem_init(&p[m], 3, &ep, 1), 0);
        p[m].handoff_ns = 1e5;
        for (size_t u = 0; u < 3; u++) {
            *tun_cell_at(&p[m].costs, 0, 1, u) =
                (struct tun_cell){.ns = m == 1 && u == 1 ? 8e6 : 1e6, .source = TUN_MEASURED};
        }
        wishes[m] = (struct tun_wish){.p = &p[m], .rate = 20, .class = 1 - (unsigned)m};
    }
}

/* A unit that is too long for a deadline is run in as many pieces as that takes. */
TEST(a_unit_is_cut_as_far_as_a_deadline_needs)
{
    const uint8_t most[] = {16, 16, 16}, some[] = {16, 4, 16}, other[] = {16, 1, 16};
    const double nothing[] = {0, 0, 0}, all[] = {1, 1, 1};
    const struct {
        double deadline_ns;
        const uint8_t *most;
        const double *uncut;
        size_t pieces; /* 0: refused */
    } rows[] = {{12e6, most, NULL, 1},  {10e6, most, NULL, 2},    {6e6, most, NULL, 4},
                {4.7e6, most, NULL, 8}, {4.7e6, some, NULL, 0},   {4.7e6, other, NULL, 0},
                {4.7e6, NULL, NULL, 0}, {4.7e6, most, all, 0},    {4.25e6, most, NULL, 16},
                {3.2e6, most, NULL, 0}, {4.3e6, most, nothing, 8}};
    struct tun_problem p[2];
    struct tun_wish wishes[2];

    two_models(p, wishes);
    for (size_t i = 0; i < base_array_count(rows); i++) {
        struct tun_promise made;

        t_note("row %zu", i);
        wishes[0].deadline_ns = rows[i].deadline_ns;
        wishes[1].cut_most = rows[i].most;
        wishes[1].uncut = rows[i].uncut;
        T_EQ(tun_promise_make(wishes, 2, TUN_FAIR, 0, 0, &made), 0);
        T_EQ(made.answer.refusal, rows[i].pieces ? TUN_ADMITTED : TUN_TOO_LONG_A_UNIT);
        if (rows[i].pieces > 0) {
            T_EQ(made.cut_count, rows[i].pieces > 1);
        }
        for (size_t c = 0; c < made.cut_count; c++) {
            T_EQ(made.cuts[c].model, 1);
            T_TRUE(rows[i].pieces == 0 || made.cuts[c].unit == 1);
            T_TRUE(rows[i].pieces == 0 || made.cuts[c].pieces == rows[i].pieces);
            T_TRUE(made.cuts[c].pieces <= rows[i].most[made.cuts[c].unit]);
            T_EQ(made.cuts[c].late, 0);
        }
        tun_promise_deinit(&made);
    }
    tun_problem_deinit(&p[0]);
    tun_problem_deinit(&p[1]);
}

/* One core is three times as slow. A frame of four units of 1 ms takes 4, 12 or, on both, 5 to 10
 * ms: with deadlines that the slow core alone does not keep, all routes keep them, and both cores
 * work. */
TEST(frames_do_not_stay_on_a_core_that_is_too_slow)
{
    const double deadlines_ns[] = {14e6, 11e6, 8e6, 7e6};
    const struct tun_ep eps[] = {{.name = "fast", .cores = 1, .speed = 1},
                                 {.name = "slow", .cores = 1, .speed = 0.33}};
    struct tun_problem p;
    struct tun_wish wish = {.p = &p, .rate = 300};

    T_EQ(tun_problem_init(&p, 4, eps, 2), 0);
    for (size_t u = 0; u < 4; u++) {
        for (size_t k = 0; k < 2; k++) {
            *tun_cell_at(&p.costs, k, 1, u) =
                (struct tun_cell){.ns = k ? 3e6 : 1e6, .source = TUN_MEASURED};
        }
    }
    for (size_t i = 0; i < 2 * base_array_count(deadlines_ns); i++) {
        enum tun_share objective = i % 2 ? TUN_SOONEST : TUN_FAIR;
        struct tun_promise made;

        t_note("deadline %zu, objective %d", i / 2, objective);
        wish.deadline_ns = deadlines_ns[i / 2];
        T_EQ(tun_promise_make(&wish, 1, objective, 1, 0, &made), 0);
        T_EQ(made.answer.refusal, TUN_ADMITTED);
        T_LE(made.answer.bound_ns[0], wish.deadline_ns);
        T_LE(0.99, made.mix.lambda);
        for (size_t d = 0; d < made.mix.count; d++) {
            T_LE(tun_route_ns(&wish, &made.mix.dealt[d].route), wish.deadline_ns);
        }
        tun_promise_deinit(&made);
    }
    tun_problem_deinit(&p);
}

/* With costs of the last model for deadlines, those count in its lanes, which stay. */
static void check_slow(struct tun_wish *wishes, const struct tun_mix *mix, bool even,
                       const struct tun_lanes *before)
{
    struct tun_problem slow;
    struct tun_lanes lanes;

    T_EQ(tun_problem_copy(wishes[2].p, &slow), 0);
    for (size_t i = 0; i < tun_cell_count(&slow.costs); i++) {
        slow.costs.cells[i].ns *= 2;
    }
    slow.handoff_ns *= 2;
    wishes[2].slow = &slow;
    T_EQ(tun_lanes_init(wishes, mix, even, &lanes), 0);
    T_EQ(lanes.count, before->count);
    for (size_t i = 0; i < lanes.count; i++) {
        double times = lanes.lanes[i].model == 2 ? 2 : 1;

        T_EQ(lanes.lanes[i].stops[0].seat, before->lanes[i].stops[0].seat);
        T_NEAR(tun_stop_ns(&lanes.lanes[i].stops[0], NULL),
               times * tun_stop_ns(&before->lanes[i].stops[0], NULL), 1e-3);
    }
    wishes[2].slow = NULL;
    tun_lanes_deinit(&lanes);
    tun_problem_deinit(&slow);
}

/* The lanes of random mixes have all frames, and no seat more than it can do. */
TEST(lanes_are_the_mix)
{
    for (int i = 0; i < t_times(500); i++) {
        bool even = t_range(0, 1);
        struct tun_problem p[3];
        struct tun_wish wishes[3];
        struct tun_ep eps[2] = {{.name = "a", .cores = (uint16_t)t_range(1, 3), .speed = 1},
                                {.name = "b", .cores = (uint16_t)t_range(1, 3), .speed = 1}};
        struct tun_lanes lanes;
        struct tun_mix mix;
        double share[3] = {0}, load[6] = {0};

        for (size_t m = 0; m < 3; m++) {
            T_EQ(tun_problem_init(&p[m], (size_t)t_range(1, 5), eps, 2), 0);
            p[m].handoff_ns = 1e4;
            for (size_t u = 0; u < p[m].unit_count; u++) {
                for (size_t k = 0; k < 2; k++) {
                    *tun_cell_at(&p[m].costs, k, 1, u) = (struct tun_cell){
                        .ns = 1e3 * (double)t_range(10, 3000), .source = TUN_MEASURED};
                }
            }
            wishes[m] = (struct tun_wish){.p = &p[m], .rate = (double)t_range(1, 60)};
        }
        T_EQ(tun_mix_solve(wishes, 3, TUN_FAIR, 2, 1, &mix), 0);
        T_EQ(tun_lanes_init(wishes, &mix, even, &lanes), 0);
        for (size_t j = 0; j < lanes.count; j++) {
            const struct tun_lane *lane = &lanes.lanes[j];
            size_t unit = 0;

            share[lane->model] += lane->share;
            for (size_t s = 0; s < lane->stages; s++) {
                T_EQ(lane->stops[s].first, unit);
                unit += lane->stops[s].units;
                load[lane->stops[s].seat] += lane->share * mix.given[lane->model] *
                                             wishes[lane->model].rate *
                                             tun_stop_ns(&lane->stops[s], NULL) / 1e9;
            }
            T_EQ(unit, p[lane->model].unit_count);
        }
        for (size_t s = 0; s < lanes.seats; s++) {
            double full = even ? mix.busy[s >= eps[0].cores] : 1;

            T_TRUE(load[s] <= full + 1e-6);
        }
        check_slow(wishes, &mix, even, &lanes);
        for (size_t m = 0; m < 3; m++) {
            T_NEAR(share[m], 1, 1e-6);
            tun_problem_deinit(&p[m]);
        }
        tun_lanes_deinit(&lanes);
        tun_mix_deinit(&mix);
    }
}

TEST_MAIN()
