/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pipeline/plan.h - a plan as plain data: which teams run which units
 *
 * A plan's text is its stages joined by '|'. A stage is FIRST-LAST@TEAMS, and TEAMS is
 * EP[xWIDTH][*COUNT][/BATCH] joined by '+'; WIDTH, COUNT and BATCH default to 1. A team takes up to
 * BATCH frames that wait for it at once. A team over cores of several EPs has EP[xWIDTH] of each,
 * joined by '&', and divides the rows of a unit by their speed:
 *
 *     0-15@bigx4|16-25@littlex2*2
 *     0-4@big*2|5-7@bigx2/4
 *     0-25@big*4+little*4
 *     0-25@bigx4&littlex2
 *     0-16@head:big*4|17-44@b2:big*4+b3:big*4|45-104@head:little*4
 *
 * A plan may have several routes, each of which runs all units and gets a part of the frames. The
 * parts are in percent, with one decimal, and add up to 100; routes that say none get equal parts:
 *
 *     75%:0-25@big*4;25%:0-9@big*4|10-25@little*4
 *
 * An EP of another board is BOARD:EP; a name without a prefix is the board at hand.
 *
 * Pure data and pure functions; any thread; no allocation.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PL_EP_MAX 32u /* of all boards */
#define PL_BOARD_NAME_MAX 24u
#define PL_EP_NAME_MAX 48u /* BOARD:EP */
#define PL_CPU_MAX 256u
#define PL_STAGE_MAX 64u
#define PL_GROUP_MAX 16u /* team groups in one stage */
#define PL_TEAM_MAX 128u /* teams in one plan */
#define PL_ROUTE_MAX 8u
#define PL_SHARE_ALL 1000u /* all frames, of which routes have parts */
#define PL_BATCH_MAX 8u    /* frames that a team takes at once */
#define PL_ALSO_MAX 3u     /* EPs of a team, besides the first */
#define PL_SPAN_MAX 64u    /* cores of a team over several EPs: KRN_UNEVEN_MAX */
#define PL_PLAN_TEXT_MAX 4096u

/* An execution place; cpus are kernel CPU numbers. */
struct pl_ep {
    char name[PL_EP_NAME_MAX];
    size_t cpu_count;
    uint16_t cpus[PL_CPU_MAX];
    double speed;   /* relative, 1: fastest EP; used for dispatch until times are measured */
    uint64_t nodes; /* NUMA nodes of its cores, one bit each; 0: unknown */
};
struct pl_ep_set {
    size_t count;
    char board[PL_BOARD_NAME_MAX]; /* the board at hand; "": boards have no names */
    struct pl_ep eps[PL_EP_MAX];
};

struct pl_also {       /* cores of another EP in a team */
    uint8_t ep, width; /* width 0: none, nor any behind it */
};
struct pl_group { /* count teams of width cores each on one EP, and others where a team spans EPs */
    uint16_t ep;  /* index into the ep set; of a team over several the first, which runs its
                     primitives */
    uint16_t width, count;
    uint16_t more; /* frames that a team may take at once, besides the first: BATCH - 1 */
    struct pl_also also[PL_ALSO_MAX];
};
struct pl_stage_plan {
    uint16_t first_unit, last_unit; /* unit 0 begins a route */
    uint16_t group_count;
    struct pl_group groups[PL_GROUP_MAX];
    uint16_t share; /* of its route, in the first stage: 1 .. PL_SHARE_ALL; 0 in others, and where
                       there is one route */
};
struct pl_plan {
    size_t stage_count;
    struct pl_stage_plan stages[PL_STAGE_MAX];
};

/**
 * pl_plan_parse() - text to plan
 * @unit_count: of the model. @ret_error: a sentence of at most @error_bytes
 *
 * Checks the syntax, the EP names and the limits above. Stages must cover units 0..unit_count-1 in
 * order without a gap, and WIDTH must not exceed the EP's cores. Return: 0 or -EINVAL.
 */
int pl_plan_parse(const char *text, const struct pl_ep_set *eps, size_t unit_count, char *ret_error,
                  size_t error_bytes, struct pl_plan *ret);

/** pl_plan_format() - plan to text: a WIDTH, COUNT or BATCH of 1 is omitted. Return: 0; -ENOSPC:
 * it is too long, which @ret_text says instead. */
int pl_plan_format(const struct pl_plan *p, const struct pl_ep_set *eps, char *ret_text,
                   size_t text_bytes);

/** pl_group_format() - writes a group as in a plan, NAME[xWIDTH][&NAME[xWIDTH]...][*COUNT][/BATCH]
 * @name: of the EP @ep, at most PL_EP_NAME_MAX bytes, borrowed     @eps: its argument
 * @ret: PL_GROUP_TEXT_MAX bytes */
#define PL_GROUP_TEXT_MAX ((PL_EP_NAME_MAX + 8u) * (1 + PL_ALSO_MAX) + 16u)
void pl_group_format(const struct pl_group *g, const char *(*name)(const void *eps, size_t ep),
                     const void *eps, char *ret);
/** pl_ep_name() - a name for pl_group_format(). @eps: a struct pl_ep_set. Return: "?" for an EP
 * that it has not. */
const char *pl_ep_name(const void *eps, size_t ep);

/** pl_plan_check() - the same checks on a plan not made from text. Return: 0 or -EINVAL. */
int pl_plan_check(const struct pl_plan *p, const struct pl_ep_set *eps, size_t unit_count,
                  char *ret_error, size_t error_bytes);

/** pl_plan_routes() - Return: how many routes the plan has. */
size_t pl_plan_routes(const struct pl_plan *p);
/** pl_route_end() - Return: the stage behind the last one of the route that begins at @first. */
size_t pl_route_end(const struct pl_plan *p, size_t first);
/** pl_route_part() - Return: the part of all frames that the route of stage @stage gets, 0..1. */
double pl_route_part(const struct pl_plan *p, size_t stage);

bool pl_plan_equal(const struct pl_plan *a, const struct pl_plan *b);

/** pl_group_batch() - Return: how many frames a team of @g takes at once, at most. */
static inline size_t pl_group_batch(const struct pl_group *g)
{
    return (size_t)g->more + 1;
}
/** pl_group_spans() - Return: its teams have cores of several EPs. */
static inline bool pl_group_spans(const struct pl_group *g)
{
    return g->also[0].width > 0;
}
/** pl_group_width() - Return: the cores of a team of @g. */
static inline size_t pl_group_width(const struct pl_group *g)
{
    size_t cores = g->width;

    for (size_t i = 0; i < PL_ALSO_MAX; i++) {
        cores += g->also[i].width;
    }
    return cores;
}
/** pl_group_on() - Return: the cores of EP @ep in a team of @g. */
static inline size_t pl_group_on(const struct pl_group *g, size_t ep)
{
    size_t cores = g->ep == ep ? g->width : 0;

    for (size_t i = 0; i < PL_ALSO_MAX; i++) {
        cores += g->also[i].ep == ep ? g->also[i].width : 0;
    }
    return cores;
}
/** pl_group_rename() - gives the EPs of a group other numbers. @to: by EP */
static inline void pl_group_rename(struct pl_group *g, const size_t *to)
{
    g->ep = (uint16_t)to[g->ep];
    for (size_t i = 0; i < PL_ALSO_MAX && g->also[i].width > 0; i++) {
        g->also[i].ep = (uint8_t)to[g->also[i].ep];
    }
}
/** pl_plan_batched() - Return: the frames that the plan's teams may take at once, added up over the
 * teams that take more than one; 0: there are none. */
size_t pl_plan_batched(const struct pl_plan *p);

/** pl_stage_teams(), pl_plan_teams() - Return: how many teams a stage, or a plan, has. */
size_t pl_stage_teams(const struct pl_stage_plan *s);
size_t pl_plan_teams(const struct pl_plan *p);
/** pl_plan_cores() - Return: the cores of @ep that the route needs that needs most; if the EP has
 * fewer, its teams share cores. Routes take turns on the cores of others. */
size_t pl_plan_cores(const struct pl_plan *p, size_t ep);
/** pl_stage_nodes() - Return: the NUMA nodes whose cores run @stage, one bit each; 0 if one is
 * unknown
 * @of: count only these EPs, one bit each */
uint64_t pl_stage_nodes(const struct pl_stage_plan *stage, const struct pl_ep_set *eps,
                        uint32_t of);
bool pl_plan_oversubscribed(const struct pl_plan *p, const struct pl_ep_set *eps);
