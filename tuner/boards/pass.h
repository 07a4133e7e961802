/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/boards/pass.h - one program over a map: the best plans with no period above a bound
 *
 * A label is a plan for the first units on some boards, with up to two figures. Labels of one node
 * and unit of which another is no worse in both are dropped.
 */
#pragma once

#include "tuner/boards/map.h"

/* ---- what one board can do with units i..j: reach, latency and energy (inner.c) ---- */

/** tun_inner_reach() - @ret: [n + 1]: for each first unit the end of the longest segment whose
 * stages take at most @period_ns; the unit itself: none. Return: 0 or -ENOMEM. */
int tun_inner_reach(struct tun_kind *k, double period_ns, uint16_t *ret);

struct tun_point {
    double latency_ns, energy_nj;
    double period_ns; /* ENERGY: longest stage; otherwise 0 */
};
#define TUN_POINTS_MAX 16u /* of a segment; more are left out: .cut */

enum tun_want { TUN_WANT_LATENCY, TUN_WANT_ENERGY, TUN_WANT_BOTH };

/* Points of segments of one kind within one bound on the period; the other figure is INFINITY
 * unless both are wanted. Filled for a first unit when first asked for. */
struct tun_inner {
    struct tun_kind *k; /* borrowed */
    double period_ns;
    enum tun_want want;
    bool cut;
    size_t n;
    struct tun_point **rows; /* [n]: [n + 1][TUN_POINTS_MAX or 1], owned */
    uint16_t **counts;       /* [n]: [n + 1], owned */
    struct tun_inner_options {
        struct tun_option *list;
        size_t count;
        bool made;
    } * options;                /* [segments], owned; of one figure */
    struct tun_inner **tighter; /* [segments]: chains by .next, owned */
    struct tun_inner *next;
};
#define TUN_INNER_NULL ((struct tun_inner){0})
/** tun_inner_init() - Return: 0 or -ENOMEM. */
int tun_inner_init(struct tun_kind *k, double period_ns, enum tun_want want, struct tun_inner *ret);
void tun_inner_deinit(struct tun_inner *i);

/** tun_inner_points() - points of units from..to-1 of which none is better in all that is wanted.
 * @end: the last border that is ever asked for with this @from. @ret: borrowed. Return: how many,
 * or -ENOMEM. */
int tun_inner_points(struct tun_inner *i, size_t from, size_t to, size_t end,
                     const struct tun_point **ret);

/** tun_inner_tighter() - the same for one segment within a bound of its own. */
int tun_inner_tighter(struct tun_inner *i, double period_ns, size_t from, size_t to,
                      const struct tun_point **ret);

/* ---- what links and ports take, and how many units some boards can run at most (step.c) ---- */

/* A segment that may be added: units from..to-1 on the boards of an edge. */
struct tun_step {
    const struct tun_edge *edge;
    uint32_t before, after; /* boards at its borders; after: 0, not known */
    size_t from, to;
    bool last;
    double in_bytes, out_bytes;
    double latency_ns; /* of the border in front of it, and of the answer */
    double head_ns;    /* of the port of the head that has no segment here: frames, answers */
};

/** tun_port_ns() - of a board's port for a frame of the stream, of which it has the share @x. */
double tun_port_ns(const struct tun_map *m, const struct tun_step *s, size_t b, double x);

/** tun_unshared_ns() - the links and the port that count with a segment of one board. */
double tun_unshared_ns(const struct tun_map *m, const struct tun_step *s, size_t b);

/** tun_border_latency() - the slowest link between two neighbours, until a message is there. */
double tun_border_latency(const struct tun_map *m, uint32_t from, uint32_t to, double bytes);

/**
 * tun_rest() - for each set of boards the first unit from which they may be able to run the rest,
 * if links and memory were nothing
 * @reach: [n + 1] of each kind, as tun_inner_reach(). @ret: [1 << boards], by mask; only sets of
 * the map's order are written (tun_nodes_canonical()).
 */
void tun_rest(struct tun_map *m, double period_ns, uint16_t *const *reach, uint16_t *ret);

/* ---- the program ---- */

enum tun_pass_figure {
    TUN_PASS_ANY,     /* whether there is a plan */
    TUN_PASS_LATENCY, /* sum; */
    TUN_PASS_ENERGY,  /* sum; and latency, if that is bounded */
    TUN_PASS_FRONT,   /* largest memory, largest energy of a board */
};
struct tun_pass_options {
    enum tun_pass_figure figure;
    double period_ns;          /* no period above it */
    double latency_max_ns;     /* ENERGY: INFINITY if there is no bound */
    bool no_memory, no_energy; /* these bounds do not count */
};

struct tun_label {
    double a, b;
    struct tun_point point; /* of the last segment, if one board runs it */
    double bound_ns;        /* of the last segment's stages, likewise */
    double period_ns;       /* FRONT: of the plan so far */
    uint32_t node, edge;    /* where that began, and by which edge */
    uint16_t from, label;   /* its first unit, and the label that it continues */
};
struct tun_labels {
    struct tun_label *list; /* owned */
    size_t count, room;
};

struct tun_pass {
    struct tun_map *m; /* borrowed */
    struct tun_pass_options o;
    bool cut;
    uint16_t *reach[TUN_BOARD_MAX];        /* of a kind, owned */
    double *least_ns, *least_nj;           /* [n + 1]: of the units left, on any team, owned */
    uint16_t rest[1u << TUN_BOARD_MAX];    /* of a set of boards, see tun_rest() */
    struct tun_inner inner[TUN_BOARD_MAX]; /* of a kind, owned */
    struct tun_labels *labels;             /* [nodes][n], owned */
    struct tun_labels end;                 /* of whole plans */
};
#define TUN_PASS_NULL ((struct tun_pass){0})

/** tun_pass_run() - Return: 0 with at least one label in .end; TUN_E_IMPOSSIBLE; -ENOMEM. */
int tun_pass_run(struct tun_map *m, const struct tun_pass_options *o, struct tun_pass *ret);
void tun_pass_deinit(struct tun_pass *p);

/** tun_pass_plan() - the plan of a label of .end, unshared segments by the planner of one board
 * Return: 0; TUN_E_GROUPS, TUN_E_TEAMS: it passes a limit; -ENOMEM. */
int tun_pass_plan(struct tun_pass *p, const struct tun_label *l, struct pl_plan *ret);
