/* SPDX-License-Identifier: Apache-2.0 */
/* Processor time that the exact planner takes: median and spread over random problems of a size,
 * for each objective. solve_bench [PROBLEMS [NAME]]; a NAME picks the sizes that contain it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "bench/median.h"
#include "tuner/boards/solve_boards.h"
#include "tuner/search/random.h"
#include "tuner/solve/solve.h"

struct size {
    const char *name;
    size_t units, eps, cores[4];
    size_t boards; /* 0: one; each with these EPs */
    bool unlike;   /* no two boards are equal */
    double memory; /* of a board, as a part of what all units need; 0: no bound */
};
static const struct size sizes[] = {
    {"4+4 x 60", 60, 2, {4, 4}},
    {"8+16 x 110", 110, 2, {8, 16}},
    {"6+8 x 110", 110, 2, {6, 8}},
    {"1+3+4 x 110", 110, 3, {1, 3, 4}},
    {"(8+8)x2 x 60", 60, 4, {8, 8, 8, 8}},
    {"64 x 110", 110, 1, {64}},
    {"4 boards 4+4 x 105", 105, 2, {4, 4}, .boards = 4},
    {"4 boards, 60 % memory", 105, 2, {4, 4}, .boards = 4, .memory = 0.6},
    {"4 unlike boards 4+4 x 105", 105, 2, {4, 4}, .boards = 4, .unlike = true},
    {"4 boards 1+1 x 105", 105, 2, {1, 1}, .boards = 4},
    {"8 boards 4+4 x 105", 105, 2, {4, 4}, .boards = 8},
    {"8 boards, 30 % memory", 105, 2, {4, 4}, .boards = 8, .memory = 0.3},
    {"8 unlike boards 4+4 x 105", 105, 2, {4, 4}, .boards = 8, .unlike = true},
};

enum mode {
    PLAIN,
    SINGLE,
    LATENCY,
    LATENCY_BOUND,
    POWER,
    POWER_LATENCY,
    PERIOD_LATENCY,
    FRONT,
    MODES
};
static const char *const mode_names[MODES] = {"throughput",
                                              "throughput, one-EP",
                                              "latency",
                                              "latency <= 1.2 P*",
                                              "power <= 1.2 P*",
                                              "power, latency too",
                                              "throughput, latency bound",
                                              "front, at most 64 points"};

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* Further boards like the first, on a gigabit switch. */
static void add_boards(const struct size *size, struct tun_problem *p)
{
    struct tun_boards *all = &p->boards;
    double memory = 0;

    all->count = size->boards;
    all->input_bytes = 150528;
    all->output_bytes = 4000;
    for (size_t u = 0; u < size->units; u++) {
        p->units[u].weight_bytes = 4e5;
        p->units[u].arena_bytes = 2e6;
        memory += p->units[u].weight_bytes;
    }
    for (size_t b = 0; b < size->boards; b++) {
        double slow = size->unlike ? 1 + 0.1 * (double)b : 1;

        all->boards[b] = (struct tun_board){
            .memory_bytes = size->memory * memory, .port_ns_per_byte = 8.6, .frames_held = 1};
        for (size_t a = 0; a < size->boards; a++) {
            all->links[a][b] = (struct tun_link){.ns = 2e5, .ns_per_byte = 8.6};
        }
        for (size_t k = 0; k < size->eps; k++) {
            for (size_t w = 1; w <= size->cores[k]; w++) {
                for (size_t u = 0; u < size->units; u++) {
                    struct tun_cell *to = tun_cell_at(&p->costs, b * size->eps + k, w, u);

                    *to = *tun_cell_at(&p->costs, k, w, u);
                    to->ns *= slow;
                }
            }
        }
    }
}

/* Costs as machines have them: EPs 1 to 4 times slower, units within 30 % of that, widths that
 * gain less and less. */
static int make(struct tun_random *random, const struct size *size, struct tun_problem *ret)
{
    struct tun_ep eps[PL_EP_MAX] = {0};
    size_t boards = base_max(size->boards, (size_t)1);
    int r;

    for (size_t i = 0; i < size->eps * boards; i++) {
        size_t k = i % size->eps;

        eps[i] = (struct tun_ep){.name = {(char)('a' + k)},
                                 .cores = (uint16_t)size->cores[k],
                                 .speed = 1 / (1 + (double)k),
                                 .bandwidth = 1,
                                 .watts = 2.0 / (1 + 2 * (double)k),
                                 .board = (uint16_t)(i / size->eps)};
    }
    r = tun_problem_init(ret, size->units, eps, size->eps * boards);
    for (size_t u = 0; r == 0 && u < size->units; u++) {
        double base = 1e5 * (0.1 + 3 * tun_random_unit(random) * tun_random_unit(random));

        ret->units[u].in_bytes = u ? 1e5 * tun_random_unit(random) : 0;
        for (size_t k = 0; k < size->eps; k++) {
            double slow = (1 + (double)k) * (0.7 + 0.6 * tun_random_unit(random));
            double part = 0.6 + 0.35 * tun_random_unit(random); /* that runs in parallel */

            for (size_t w = 1; w <= size->cores[k]; w++) {
                *tun_cell_at(&ret->costs, k, w, u) = (struct tun_cell){
                    .ns = base * slow * (1 - part + part / (double)w), .source = TUN_MEASURED};
            }
        }
    }
    ret->handoff_ns = 2000;
    ret->handoff_ns_per_byte = 0.02;
    if (r == 0 && boards > 1) {
        add_boards(size, ret);
    }
    return r;
}

static int set_mode(struct tun_problem *p, enum mode mode)
{
    static struct tun_solution s;
    int r;

    p->objective = TUN_THROUGHPUT;
    p->bounds = (struct tun_bounds){.slack = TUN_SLACK, .one_ep_stages = mode == SINGLE};
    if (mode < LATENCY || mode == FRONT) {
        return 0;
    }
    r = tun_solve(p, &s);
    if (mode == LATENCY_BOUND || mode == POWER || mode == POWER_LATENCY) {
        p->bounds.period_max_ns = s.outcome.bottleneck_ns * 1.2;
    }
    if (mode == POWER_LATENCY || mode == PERIOD_LATENCY) {
        p->bounds.latency_max_ns = s.outcome.latency_ns * 0.9;
    }
    p->objective = mode >= POWER && mode <= POWER_LATENCY ? TUN_POWER
                   : mode == PERIOD_LATENCY               ? TUN_THROUGHPUT
                                                          : TUN_LATENCY;
    return r;
}

static int bench(const struct size *size, enum mode mode, size_t count)
{
    base_autofree double *ms = calloc(count, sizeof(*ms));
    size_t coarse = 0, impossible = 0;

    for (size_t i = 0; ms && i < count; i++) {
        static struct tun_solution s;
        struct tun_random random = {i + 1};
        struct tun_problem p;
        double begin;
        int r = make(&random, size, &p);

        if (r < 0 || set_mode(&p, mode) < 0) {
            return -1;
        }
        begin = now_ms();
        if (mode == FRONT) {
            static struct tun_solution points[64];
            size_t points_count;
            bool exact = false;

            r = tun_boards_front(&p, base_array_count(points), points, &points_count, &exact);
            s.blocks = !exact;
        } else {
            r = tun_solve(&p, &s);
        }
        ms[i] = now_ms() - begin;
        tun_problem_deinit(&p);
        if (r < 0) {
            return r;
        }
        coarse += s.blocks;
        impossible += r == TUN_E_IMPOSSIBLE;
    }
    if (!ms) {
        return -1;
    }
    qsort(ms, count, sizeof(*ms), by_value);
    printf("%-26s %-26s median %8.2f ms   %8.2f .. %8.2f   not exact %zu, impossible %zu of %zu\n",
           size->name, mode_names[mode], ms[count / 2], ms[0], ms[count - 1], coarse, impossible,
           count);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 9;

    for (size_t i = 0; i < base_array_count(sizes); i++) {
        for (int mode = 0; mode < MODES; mode++) {
            if (mode == FRONT && sizes[i].boards == 0) {
                continue;
            }
            if ((argc < 3 || strstr(sizes[i].name, argv[2])) &&
                bench(&sizes[i], (enum mode)mode, base_max(count, (size_t)1)) < 0) {
                return 1;
            }
        }
    }
    return 0;
}
