/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/boards/pass.h - one program over a map: the best plans with no period above a bound
 *
 * A label is a plan for the first units on some boards, with up to two figures. Labels of one node
 * and unit of which another is no worse in both are dropped.
 */
#pragma once

#include "tuner/boards/inner.h"

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
