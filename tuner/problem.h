/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/problem.h - what a search is given: units, EPs, the cost table, and the objective
 *
 * Plain data and pure functions: this folder has no threads, files or clocks, except the program in
 * tuner/pipesim/. EPs have the order of a pl_ep_set, so a pl_group's ep is an index of eps. Every
 * time is in ns, as double.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "pipeline/plan.h"
#include "tuner/board.h"

#define TUN_UNIT_MAX 4096u
#define TUN_ERROR_MAX 256u
#define TUN_GROUP_MAX 8u /* team groups that one board has in a stage, as we plan */

/* What a heavy operator is, as a predictor tells layers apart (tuner/predict.h). */
enum tun_layer {
    TUN_CONV,
    TUN_PLAIN, /* 1x1 or strided: nothing but a product can compute it */
    TUN_CONV3, /* 3x3 with stride 1: Winograd's transform can */
    TUN_FC,
    TUN_DEPTHWISE, /* its columns, one a channel, have rows of their own */
    TUN_LAYERS,
};

struct tun_unit {
    double weight;   /* Pipe-search eq. 1 and 2; > 0 */
    double in_bytes; /* bytes that cross the border in front of this unit; 0 for unit 0 */
    /* the matrices of the unit's heavy operator as Pipe-it has them (its eq. 4); 0: unknown */
    double gemm_n, gemm_k, gemm_m;
    enum tun_layer layer;
    double weight_bytes; /* that a board holds for it, packed weights included; they add up */
    double arena_bytes;  /* of activations while it runs; a segment needs the largest */
    double bytes;        /* that it moves between caches and memory for a frame; 0: unknown, none */
};

struct tun_ep {
    char name[PL_EP_NAME_MAX];
    uint16_t cores;   /* >= 1; teams of 1..cores threads */
    double speed;     /* relative to the fastest EP, 0 < speed <= 1: a hint, costs decide */
    double bandwidth; /* relative memory bandwidth, 0 < .. <= 1: Shisha ranks by it */
    double watts;     /* of one busy core above idle; 0: unknown, then 1 */
    uint16_t board;   /* index of the problem's boards; 0 with one board */
    /* bytes per ns that one core moves, and all of the EP at once (tuner/memory.h); 0: unknown */
    double gbytes, gbytes_max;
    bool held; /* others take its cores for moments, in which a team over several EPs would wait */
};
/** tun_ep_watts() - Return: of one busy core above idle, as assumed; > 0. */
static inline double tun_ep_watts(const struct tun_ep *ep)
{
    return ep->watts > 0 ? ep->watts : 1;
}

/* Where a cell's time is from, by rising trust: a better source is never overwritten. */
enum tun_source { TUN_UNKNOWN, TUN_PREDICTED, TUN_SAVED, TUN_MEASURED };

struct tun_cell {
    double ns;    /* time of the unit for one frame; < 0: unknown */
    double sigma; /* relative standard deviation of that figure, 0: exact */
    enum tun_source source;
};

/* How much less of a unit's time a frame needs in a team that takes several.
 *
 * f(n) is the time a frame of n frames at once relative to the time of one frame alone. Units that
 * read their weights from memory once for all n frames have f(n) < 1; all others have 1. It is
 * known for 2, 4 and 8 frames. Between them the time of all n frames, t(n) = n f(n), is a line:
 *     t(n) = t(a) + (n - a) (t(b) - t(a)) / (b - a)    for a <= n <= b, both of 1, 2, 4, 8
 * More frames never take less time in all, and never more time each: f(2a) is in [f(a) / 2, f(a)].
 */
#define TUN_AT_ONCE 3u         /* figures: for 2, 4 and 8 frames */
#define TUN_AT_ONCE_LEAST 0.02 /* a unit gains if 8 frames save this share of its time */

struct tun_at_once {            /* of one unit on one EP, whatever the width */
    double factor[TUN_AT_ONCE]; /* in (0, 1] after tun_at_once_settle(); 0: unknown, counts as 1 */
    bool measured;              /* on live frames, not only at load */
};

/* What the units took in a team over several EPs, against what its EPs' times say: f of
 * tuner/span.h. */
#define TUN_SPAN_MAX 8u
struct tun_span {
    struct pl_group team; /* its EPs and widths */
    double *factors;      /* [unit_count], owned by the problem; 0: unknown */
};

/* Time of each unit on each (EP, width); owned by its problem. */
struct tun_costs {
    size_t unit_count, ep_count;
    size_t first[PL_EP_MAX]; /* row of (EP, width 1) */
    uint16_t cores[PL_EP_MAX];
    struct tun_cell *cells; /* [rows][unit_count], owned */
};

enum tun_objective {
    TUN_THROUGHPUT, /* least bottleneck; among plans within slack of it the lowest latency */
    TUN_LATENCY,    /* lowest worst-frame latency with bottleneck <= period_max_ns */
    TUN_POWER, /* least energy a frame with bottleneck <= period_max_ns (the target's period) */
};

struct tun_bounds {
    double period_max_ns;  /* bottleneck at most; 0: none. POWER needs it */
    double latency_max_ns; /* worst-frame latency at most; 0: none */
    size_t stages_max;     /* 0: none */
    size_t batch_max;      /* frames that a team may take at once; 0: PL_BATCH_MAX */
    bool one_ep_stages;    /* stages of one EP alone, one width each: the papers' pipelines */
    bool spans;            /* a stage of all units may be run by teams over several EPs */
    double slack;          /* THROUGHPUT: how much worse a bottleneck may be for a lower latency */
};
#define TUN_SLACK 0.03

enum { TUN_E_IMPOSSIBLE = 2 }; /* outcome of a solver: no plan keeps the bounds */

struct tun_problem {
    size_t unit_count, ep_count;
    struct tun_unit *units; /* [unit_count], owned */
    struct tun_ep eps[PL_EP_MAX];
    struct tun_costs costs;
    struct tun_at_once *at_once;         /* [ep_count][unit_count], owned; NULL: no unit gains */
    struct tun_span spans[TUN_SPAN_MAX]; /* [span_count] */
    size_t span_count;
    double batch_wait_ns;       /* how long a team with a batch waits for company, at most */
    double handoff_ns;          /* what a team spends a frame besides its units */
    double handoff_ns_per_byte; /* and for each byte that crosses the border it takes frames from */
    double gbytes_max; /* bytes per ns that all EPs move at once; 0: each has its own memory */
    enum tun_objective objective;
    struct tun_bounds bounds;
    struct tun_boards boards; /* tun_problem_init() sets none; set it afterwards */
};
#define TUN_PROBLEM_NULL ((struct tun_problem){0})

/**
 * tun_problem_init() - room for units and costs: weights 1, all costs unknown, objective THROUGHPUT
 * with TUN_SLACK, no hand-off cost
 * @eps: [ep_count], copied. Return: 0; -EINVAL (no unit, no EP, no cores, more than
 * TUN_UNIT_MAX, PL_EP_MAX or PL_CPU_MAX); -ENOMEM.
 */
int tun_problem_init(struct tun_problem *p, size_t unit_count, const struct tun_ep *eps,
                     size_t ep_count);
/** tun_problem_copy() - deep. Return: 0 or -ENOMEM. */
int tun_problem_copy(const struct tun_problem *from, struct tun_problem *ret);
/** tun_problem_part() - EPs and consecutive units of a problem, as a problem of one board: without
 * objective and bounds, and without what several frames at once gain
 * @eps: [ep_count], of @from. Return: as tun_problem_init(). */
int tun_problem_part(const struct tun_problem *from, const uint16_t *eps, size_t ep_count,
                     size_t first, size_t last, struct tun_problem *ret);
void tun_problem_deinit(struct tun_problem *p);

/**
 * tun_problem_check() - checks that there is something to solve and that every figure is sane
 *
 * Weights, speeds and bandwidths finite and positive, bytes and bytes per ns not negative; every
 * cost known, finite and > 0; bounds not negative; POWER has a period. @ret_error: a sentence that
 * names the unit, EP and width. Return: 0 or -EINVAL.
 */
int tun_problem_check(const struct tun_problem *p, char ret_error[TUN_ERROR_MAX]);

/** tun_cell_at() - @width: 1..eps[ep].cores. Borrowed until the problem goes. */
static inline struct tun_cell *tun_cell_at(const struct tun_costs *c, size_t ep, size_t width,
                                           size_t unit)
{
    return &c->cells[(c->first[ep] + width - 1) * c->unit_count + unit];
}

/** tun_unit_scale() - multiplies the unit's times on the EP, of all widths. */
static inline void tun_unit_scale(struct tun_problem *p, size_t ep, size_t unit, double by)
{
    for (size_t w = 1; w <= p->eps[ep].cores; w++) {
        tun_cell_at(&p->costs, ep, w, unit)->ns *= by;
    }
}

/** tun_cell_count() - cells of the whole table. */
static inline size_t tun_cell_count(const struct tun_costs *c)
{
    return (c->first[c->ep_count - 1] + c->cores[c->ep_count - 1]) * c->unit_count;
}

static inline bool tun_positive(double x)
{
    return isfinite(x) && x > 0;
}

static inline bool tun_cell_known(const struct tun_cell *c)
{
    return tun_positive(c->ns);
}

/** tun_at_once_factor() - Return: f(@frames), @frames >= 1; above 8 as for 8.
 * @a: NULL: 1 */
double tun_at_once_factor(const struct tun_at_once *a, double frames);
/** tun_at_once_settle() - clamps each figure to its range above. A figure that is not a
 * positive number becomes equal to its predecessor. */
void tun_at_once_settle(struct tun_at_once *a);
/** tun_at_once_gains() - Return: several frames at once save at least TUN_AT_ONCE_LEAST.
 * @a: may be NULL */
bool tun_at_once_gains(const struct tun_at_once *a);

/** tun_at_once_at() - Return: what several frames at once gain of @unit on @ep; borrowed until the
 * problem goes; NULL: unknown, nothing. */
static inline const struct tun_at_once *tun_at_once_at(const struct tun_problem *p, size_t ep,
                                                       size_t unit)
{
    return p->at_once ? &p->at_once[ep * p->unit_count + unit] : NULL;
}
/** tun_problem_at_once() - makes room for them where there is none yet, nothing known.
 * Return: p->at_once, or NULL without memory. */
struct tun_at_once *tun_problem_at_once(struct tun_problem *p);
/** tun_problem_batch_max() - Return: frames that a team of a plan may take at once; 1 if no unit
 * gains. */
size_t tun_problem_batch_max(const struct tun_problem *p);
/** tun_problem_gains() - Return: some unit gains from several frames at once. */
bool tun_problem_gains(const struct tun_problem *p);

/** tun_core_count() - cores of all EPs. */
size_t tun_core_count(const struct tun_problem *p);
/** tun_stages_max() - Return: the most stages of a plan: cores, units, PL_STAGE_MAX, the bound. */
size_t tun_stages_max(const struct tun_problem *p);

/* By enum tun_objective; "throughput", "latency", "power". */
extern const char *const tun_objective_names[];
/** tun_objective_find() - finds an objective by name. Return: 0; -EINVAL: unknown name. */
int tun_objective_find(const char *name, enum tun_objective *ret);

/** tun_eps() - the problem's EPs as a pl_ep_set (cores numbered from 0), for reading plans. */
void tun_eps(const struct tun_problem *p, struct pl_ep_set *ret);
/** tun_plan_text() - writes a plan of the problem. Return: as pl_plan_format(). */
int tun_plan_text(const struct tun_problem *p, const struct pl_plan *plan,
                  char ret[PL_PLAN_TEXT_MAX]);
