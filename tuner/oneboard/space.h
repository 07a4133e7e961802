/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/oneboard/space.h - the space of plans that one call of the exact planner searches, and the
 * ways to run a segment of it
 *
 * Cores are counted in steps of dimensions. Usually a dimension is an EP and a step one core; a
 * step may be a block of cores, and a dimension a bundle of EPs, where there are too many. A
 * vector of steps is a row (all dimensions but the last, mixed radix) and the steps of the last
 * dimension, which is the longest. Units are counted in atoms, usually one unit each; a segment
 * is the atoms from..to-1. Everything here belongs to one call; nothing is shared by threads.
 */
#pragma once

#include "tuner/eval.h"

#define TUN_STATES_MAX 4096u
#define TUN_BATCHES (1 + TUN_AT_ONCE)    /* 1, 2, 4, 8 frames at once: 1 << b */
#define TUN_STEPS_NONE ((int16_t)0x2000) /* more than any dimension has */

enum tun_teams { /* what a stage may have, by falling freedom; see tun_solve() on the limits */
                 TUN_TEAMS_ANY,
                 TUN_TEAMS_ONE_WIDTH, /* of an EP */
                 TUN_TEAMS_ONE_EP,    /* and only one EP of a bundle, at most TUN_GROUP_MAX
                                         dimensions */
};

struct tun_space_options {
    bool without[PL_EP_MAX]; /* EPs that must not be used */
    size_t min_width;        /* of a team, where the EP has that many cores; 0: 1 */
    size_t batch_max;        /* frames that the teams of a stage may take at once; 0: 1 */
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
    uint16_t cap[PL_EP_MAX];   /* steps of a dimension, rising */
    size_t dim_eps[PL_EP_MAX]; /* EPs in a dimension */
    int dim_of[PL_EP_MAX];     /* of an EP, -1: not used */
    uint16_t block[PL_EP_MAX]; /* cores of an EP in a step */
    size_t rate_at[PL_EP_MAX]; /* where a dimension's rates begin */
    size_t rate_len, team_len; /* of a segment */
    uint16_t team_ep[PL_CPU_MAX], team_width[PL_CPU_MAX], team_steps[PL_CPU_MAX];

    size_t row_count, line_len, plane_count, row_len, state_count;
    size_t row_stride[PL_EP_MAX];
    uint16_t *row_steps;       /* [row_count][dim_count - 1], owned */
    unsigned char *row_fits;   /* [row_count][row_count]: may be added, owned */
    unsigned char *plane_fits; /* [plane_count][plane_count], owned */
    size_t batch_count;        /* 1..TUN_BATCHES */
    double *team_ns;           /* [batch_count][segments][team_len], owned: a frame's time */
    double *rate;              /* [segments][rate_len], owned: with the largest batch */
    double *watts;             /* [rate_len]: of all cores of so many steps, owned */
};
#define TUN_SPACE_NULL ((struct tun_space){0})

/** tun_space_init() - Return: 0, -EINVAL (no core left), -ENOMEM. */
int tun_space_init(const struct tun_problem *p, const struct tun_space_options *o,
                   struct tun_space *ret);
void tun_space_deinit(struct tun_space *s);

/** tun_space_cores() - cores of an EP in so many steps of its dimension. */
size_t tun_space_cores(const struct tun_space *s, size_t ep, size_t steps);
bool tun_space_forbids(const struct tun_space *s, size_t from, size_t to);

static inline size_t tun_segment(const struct tun_space *s, size_t from, size_t to)
{
    return from * s->atom_count - from * (from - (from > 0)) / 2 + (to - from - 1);
}

/** tun_space_teams() - the teams' times of a segment with 1 << @b frames at once. Larger batches
 * never take longer. Return: [team_len] */
static inline const double *tun_space_teams(const struct tun_space *s, size_t b, size_t segment)
{
    size_t segments = s->atom_count * (s->atom_count + 1) / 2;

    return s->team_ns + (b * segments + segment) * s->team_len;
}
/** tun_space_fastest() - Return: the least b with the times of the largest batch. */
size_t tun_space_fastest(const struct tun_space *s, size_t segment);

/** tun_space_full_rate() - frames per ns of one stage on all cores. @rate: [rate_len], of its
 * segment. */
static inline double tun_space_full_rate(const struct tun_space *s, const double *rate)
{
    double sum = 0;

    for (size_t d = 0; d < s->dim_count; d++) {
        sum += rate[s->rate_at[d] + s->cap[d]];
    }
    return sum;
}
/** tun_space_atom_rate() - no stage with that atom is faster; the bytes in front of it do not
 * count, for the cut may be elsewhere. */
double tun_space_atom_rate(const struct tun_space *s, size_t atom);

/** tun_cut() - @ret_first: [unit_count + 1]: where groups of neighbouring units begin, of about
 * equal cost on one core of each EP; the last is unit_count. Return: how many groups, at most
 * @max. */
size_t tun_cut(const struct tun_problem *p, size_t max, size_t *ret_first);
/** tun_knapsack() - adds teams of @width with rate @gain to best[0..cores]. */
void tun_knapsack(const struct tun_space *s, double *best, size_t cores, size_t width, double gain);

/* ---- the ways to run one segment (options.c) ---- */

#define TUN_NEED_TOLERANCE 1e-13 /* of a rate: sums of rates in another order */

/* A way to run a segment: cores, and what it adds to the figure. */
struct tun_option {
    uint16_t row, last;
    double figure;     /* what the program adds up: ns or nJ, 0 in the period program */
    double ns;         /* BOTH: no frame stays longer in a team; the figure is nJ */
    double slowest_ns; /* no team is slower */
    uint16_t batch;    /* its teams take 1 << batch frames at once */
};
enum tun_figure { TUN_FIGURE_NONE, TUN_FIGURE_LATENCY, TUN_FIGURE_ENERGY, TUN_FIGURE_BOTH };
#define TUN_WAYS_MAX 512u /* options for BOTH of a segment; more are left out: .cut */

/* Room for making options; reused for every segment of one program. */
struct tun_maker {
    double *rate, *ep_rate, *least;
    int16_t *stair, *before;
    uint16_t order[PL_CPU_MAX];
    struct tun_option *options; /* [option_max], owned */
    size_t option_max, room;    /* room: for the figure at hand */
    double latency_ns;          /* BOTH: no frame stays longer; INFINITY, or set by the user */
    bool cut;
};
#define TUN_MAKER_NULL ((struct tun_maker){0})
/** tun_maker_init() - Return: 0 or -ENOMEM. */
int tun_maker_init(const struct tun_space *s, struct tun_maker *ret);
void tun_maker_deinit(struct tun_maker *m);

/** tun_make() - the options of a segment of which none is worse in both cores and figure (BOTH: in
 * cores, energy and slowest team); the period is at most 1 / need. Return: how many, in
 * m->options. */
size_t tun_make(const struct tun_space *s, struct tun_maker *m, size_t from, size_t to, double need,
                enum tun_figure figure);

/** tun_option_ns() - the period of a segment run so. */
double tun_option_ns(const struct tun_space *s, size_t from, size_t to, const struct tun_option *o);

/** tun_need() - the rate that keeps the period; a hair below it, see TUN_NEED_TOLERANCE. */
static inline double tun_need(double period_ns)
{
    return isfinite(period_ns) ? (1 - TUN_NEED_TOLERANCE) / period_ns : 1e-300;
}
