/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tuner/boards/map.h - a problem over boards, prepared for planning
 *
 * Boards with equal EPs, costs and watts are of one kind and share its tables. Boards of one kind
 * whose bounds and links are equal too are of one class: plans that differ by an exchange of such
 * boards are the same, so sets of boards are taken from a class in order. A set is a mask of
 * boards. Belongs to one call.
 */
#pragma once

#include "tuner/eval_boards.h"
#include "tuner/oneboard/space.h"

#define TUN_NO_NODE UINT32_MAX

struct tun_kind {
    struct tun_problem p;   /* the EPs of one board, owned */
    struct tun_space space; /* of p, owned */
    struct tun_maker maker; /* owned */
    double *slowest,
        *watts;       /* [segments]: of the teams of highest rate, < 0: not known yet, owned */
    double *least_ns; /* [segments]: least bottleneck; ADDED only, owned */
};

/* Boards that ran until now, those of the last segment, and what is promised of the next one. */
struct tun_node {
    uint8_t used, last, promise; /* promise: a mask, or ANY or SHARED below */
    uint32_t first_edge, edge_count;
};
enum { TUN_PROMISE_ANY = 0, TUN_PROMISE_SHARED = 0xff };

struct tun_edge {
    uint8_t set;  /* boards of the next segment */
    uint8_t next; /* boards after those, where that matters; 0: it does not */
    uint32_t to;  /* node when units are left behind the segment, or TUN_NO_NODE */
    bool may_end; /* the segment may be the last */
};

struct tun_map {
    const struct tun_problem *p; /* borrowed */
    size_t n;                    /* units */
    bool coarse;
    size_t kind_count, kind_of[TUN_BOARD_MAX];
    struct tun_kind kinds[TUN_BOARD_MAX];
    uint16_t eps_of[TUN_BOARD_MAX][PL_EP_MAX]; /* EP of the problem for each of the kind's */
    bool absent[TUN_BOARD_MAX];                /* it has no EP */
    size_t class_count, class_of[TUN_BOARD_MAX];
    bool promise_all;       /* every segment must know the next one's boards */
    double *weights;        /* [n + 1]: sums, owned */
    double *arena;          /* [segments]: largest, owned */
    struct tun_node *nodes; /* by rising number of boards used, the first is the start, owned */
    struct tun_edge *edges; /* owned */
    size_t node_count, edge_count;
};

static inline size_t tun_map_segment(const struct tun_map *m, size_t from, size_t to)
{
    return from * m->n - from * (from - (from > 0)) / 2 + (to - from - 1);
}

/** tun_map_kind() - of a board. */
static inline struct tun_kind *tun_map_kind(struct tun_map *m, size_t board)
{
    return &m->kinds[m->kind_of[board]];
}

/** tun_map_memory() - of a board for units from..to-1 (tuner/eval_boards.h), from tables. */
double tun_map_memory(const struct tun_map *m, size_t board, size_t from, size_t to);

/** tun_full_rate() - frames per ns of units from..to-1 as one stage on all cores. */
static inline double tun_full_rate(const struct tun_kind *k, size_t from, size_t to)
{
    const struct tun_space *s = &k->space;

    return tun_space_full_rate(s, s->rate + tun_segment(s, from, to) * s->rate_len);
}

/** tun_full_teams() - the stage that tun_full_rate() stands for, by EPs of the kind; of the teams
 * that reach that rate those whose slowest is fastest. Return: as tun_path_plan(). */
int tun_full_teams(const struct tun_kind *k, size_t from, size_t to, struct pl_stage_plan *ret);

/* ---- which boards may follow which (board_nodes.c) ---- */

/** tun_nodes_make() - fills nodes and edges from the classes. Return: 0 or -ENOMEM. */
int tun_nodes_make(struct tun_map *m);
/** tun_nodes_present() - boards that have an EP. */
uint32_t tun_nodes_present(const struct tun_map *m);
/** tun_nodes_in_order() - does @set take the first free boards of each class. */
bool tun_nodes_in_order(const struct tun_map *m, uint32_t free_boards, uint32_t set);
/** tun_nodes_canonical() - as many boards of each class, the first ones. */
uint32_t tun_nodes_canonical(const struct tun_map *m, uint32_t set);

/* ---- a map of a problem whose neighbouring units are joined where they are too many for a pass
 * ---- */

struct tun_joined {
    struct tun_problem p; /* owned; the map's */
    size_t *first;        /* [p.unit_count + 1]: of the units before, owned */
    bool coarse;          /* any are joined */
};
/** tun_joined_init() - @link_energy: energy of links counts, for a bound or a figure. Return: 0,
 * -EINVAL, -ENOMEM. */
int tun_joined_init(const struct tun_problem *p, const struct tun_space_options *o,
                    bool link_energy, struct tun_joined *ret, struct tun_map *ret_map);
void tun_joined_deinit(struct tun_joined *j, struct tun_map *m);
/** tun_joined_back() - the plan in units of the problem it began with. */
void tun_joined_back(const struct tun_joined *j, struct pl_plan *plan);
