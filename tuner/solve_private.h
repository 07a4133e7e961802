/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/solve_private.h - what the parts of the exact planner share
 *
 * Cores are counted in steps of dimensions. Usually a dimension is a kind and a step one core; a
 * step may be a block of cores, and a dimension a bundle of kinds, where there are too many. A
 * vector of steps is a row (all dimensions but the last, mixed radix) and the steps of the last
 * dimension, which is the longest. Units are counted in atoms, usually one unit each; a segment
 * is the atoms from..to-1. Everything here belongs to one call; nothing is shared by threads.
 */
#pragma once

#include <math.h>

#include "tuner/solve.h"

#define TUN_STEPS_NONE ((int16_t)0x2000) /* more than any dimension has */
#define TUN_NEED_TOLERANCE 1e-13         /* of a rate: sums of rates in another order */

enum tun_teams { /* what a stage may have, by falling freedom; see tun_solve() on the limits */
                 TUN_TEAMS_ANY,
                 TUN_TEAMS_ONE_WIDTH, /* of a kind */
                 TUN_TEAMS_ONE_KIND,  /* and only one kind of a bundle, at most PL_GROUP_MAX
                                         dimensions */
};

struct tun_space_options {
    bool without[PL_EP_MAX]; /* kinds that must not be used */
    size_t min_width;        /* of a team, where the kind has that many cores; 0: 1 */
    enum tun_teams teams;
    bool forbid; /* units forbid_first..forbid_last as a stage */
    size_t forbid_first, forbid_last;
};

struct tun_space {
    const struct tun_problem *p; /* borrowed */
    struct tun_space_options options;
    bool coarse;        /* blocks, bundles or atoms of several units: not exact */
    size_t atom_count;  /* >= 1 */
    size_t *atom_first; /* [atom_count + 1], owned */
    size_t stages_max;  /* >= 1, <= PL_STAGE_MAX */

    size_t dim_count;
    uint16_t cap[PL_EP_MAX];     /* steps of a dimension, rising */
    size_t dim_kinds[PL_EP_MAX]; /* kinds in a dimension */
    int dim_of[PL_EP_MAX];       /* of a kind, -1: not used */
    uint16_t block[PL_EP_MAX];   /* cores of a kind in a step */
    size_t rate_at[PL_EP_MAX];   /* where a dimension's rates begin */
    size_t rate_len, team_len;   /* of a segment */
    uint16_t team_kind[PL_CPU_MAX], team_width[PL_CPU_MAX], team_steps[PL_CPU_MAX];

    size_t row_count, line_len, plane_count, row_len, state_count;
    size_t row_stride[PL_EP_MAX];
    uint16_t *row_steps;       /* [row_count][dim_count - 1], owned */
    unsigned char *row_fits;   /* [row_count][row_count]: may be added, owned */
    unsigned char *plane_fits; /* [plane_count][plane_count], owned */
    double *team_ns;           /* [segments][team_len], owned */
    double *rate;              /* [segments][rate_len], owned */
    double *watts;             /* [rate_len]: of all cores of so many steps, owned */
};
#define TUN_SPACE_NULL ((struct tun_space){0})

/** tun_space_init() - Return: 0, -EINVAL (no core left), -ENOMEM. */
int tun_space_init(const struct tun_problem *p, const struct tun_space_options *o,
                   struct tun_space *ret);
void tun_space_deinit(struct tun_space *s);

/** tun_space_cores() - cores of a kind in so many steps of its dimension. */
size_t tun_space_cores(const struct tun_space *s, size_t kind, size_t steps);
double tun_core_watts(const struct tun_space *s, size_t kind);
bool tun_space_forbids(const struct tun_space *s, size_t from, size_t to);

static inline size_t tun_segment(const struct tun_space *s, size_t from, size_t to)
{
    return from * s->atom_count - from * (from - (from > 0)) / 2 + (to - from - 1);
}

/** tun_knapsack() - adds teams of @width with rate @gain to best[0..cores]. */
void tun_knapsack(const struct tun_space *s, double *best, size_t cores, size_t width, double gain);

/** tun_stair() - l[row]: least steps of the last dimension with which the rate reaches @need,
 * TUN_STEPS_NONE if none. @rate: [rate_len] of a segment. */
void tun_stair(const struct tun_space *s, const double *rate, double need, int16_t *l);
/** tun_stair_corner() - no smaller row does with as few steps. */
bool tun_stair_corner(const struct tun_space *s, const int16_t *l, size_t row);

/* A way to run a segment: cores, and what it adds to the figure. */
struct tun_option {
    uint16_t row, last;
    double figure;     /* what the program adds up: ns or nJ, 0 in the period program */
    double slowest_ns; /* no team is slower */
};
enum tun_figure { TUN_FIGURE_NONE, TUN_FIGURE_LATENCY, TUN_FIGURE_ENERGY };

/* Room for making options; reused for every segment of one program. */
struct tun_maker {
    double *rate, *kind_rate, *least;
    int16_t *stair, *before;
    uint16_t order[PL_CPU_MAX];
    struct tun_option *options; /* [option_max], owned */
    size_t option_max;
};
#define TUN_MAKER_NULL ((struct tun_maker){0})
int tun_maker_init(const struct tun_space *s, struct tun_maker *ret);
void tun_maker_deinit(struct tun_maker *m);
/** tun_make() - the options of a segment of which none is worse in both cores and figure; the
 * period is at most 1 / need. Return: how many, in m->options. */
size_t tun_make(const struct tun_space *s, struct tun_maker *m, size_t from, size_t to, double need,
                enum tun_figure figure);
/** tun_option_ns() - the period of a segment run so. */
double tun_option_ns(const struct tun_space *s, size_t from, size_t to, const struct tun_option *o);

/* What a program found. */
struct tun_path_stage {
    size_t from, to;
    struct tun_option option;
};
struct tun_path {
    size_t count;
    double figure, bottleneck_ns;
    struct tun_path_stage stages[PL_CPU_MAX]; /* first stage first */
};

static inline double tun_need(double period_ns)
{
    return isfinite(period_ns) ? (1 - TUN_NEED_TOLERANCE) / period_ns : 1e-300;
}

/**
 * tun_reach() - least steps of the last dimension for the atoms in front of (or, @back, behind)
 * each border, by row, with no period above 1 / need
 * @ret: [atom_count + 1][row_count]
 */
void tun_reach(const struct tun_space *s, struct tun_maker *m, double need, bool back,
               int16_t *ret);

/** tun_least_period() - F: the least bottleneck and a plan that has it. Return: 0, -ENOMEM, or
 * TUN_E_IMPOSSIBLE (a forbidden stage only). */
int tun_least_period(const struct tun_space *s, struct tun_path *ret);

/** tun_second() - G: the least figure with no period above @period_ns (INFINITY: any). Return: 0,
 * TUN_E_IMPOSSIBLE or -ENOMEM. */
int tun_second(const struct tun_space *s, double period_ns, enum tun_figure figure,
               struct tun_path *ret);

/** tun_thrifty() - the least energy with bounds on period and latency. Return as tun_second();
 * @ret_cut: labels were left out, not exact. */
int tun_thrifty(const struct tun_space *s, double period_ns, double latency_ns,
                struct tun_path *ret, bool *ret_cut);

/** tun_path_plan() - writes the plan. Return: 0; TUN_E_GROUPS, TUN_E_TEAMS: it passes PL_GROUP_MAX
 * or PL_TEAM_MAX. */
enum { TUN_E_GROUPS = 3, TUN_E_TEAMS = 4 };
int tun_path_plan(const struct tun_space *s, const struct tun_path *path, struct pl_plan *ret);

/** tun_space_relax() - leaves out of the space what passed a limit. Return: worth another try. */
bool tun_space_relax(struct tun_space_options *o, int outcome);

/** tun_solve_with() - tun_solve() with some of the space left out. */
int tun_solve_with(const struct tun_problem *p, const struct tun_space_options *o,
                   struct tun_solution *ret);
