/* SPDX-License-Identifier: Apache-2.0 */
/** tuner/solve/tasks.h - what seats and rows have to do, for tuner/solve/admit.h. Used by that
 * folder alone. */
#pragma once

#include "tuner/solve/lanes.h"

#define TUN_SLIP 1e-9 /* of a count, for rounding */

/* A lane's stop, or those of several lanes of a model that do the same there. */
struct tun_task {
    size_t model, unit, stop; /* unit: of the longest piece, of the model's */
    size_t width, seat;       /* the first one */
    unsigned class;
    double cost_ns, due_ns;     /* due_ns: D, 0: none */
    double unit_ns, least_ns;   /* of its pieces the longest and the shortest */
    double apart_ns, period_ns; /* T, T / x */
    double share, jitter_ns;    /* x, J */
    double early_ns;            /* a frame may come so much before it is due in front */
    size_t lanes, all_lanes;    /* of the model */
    double next_ns, found_ns;   /* the next t at which dbf grows, 0: not asked yet; R */
    uint64_t due;               /* dbf */
    bool guest;                 /* it counts here, but is looked at elsewhere */
    double rest_ns;             /* R as far as it is known: frames may be there so late */
    double beside_ns;           /* wide: the longest unit of anything else on its row, */
    size_t by_model, by_unit;   /* and whose */
    double away_ns;             /* guest that takes nothing here: its longest unit elsewhere */
    double gather_ns;           /* that seats idle at most for each of its frames */
    double fed_ns;              /* and what each unit takes that a floor lets run, at most */
};

struct tun_seat {
    struct tun_task *tasks; /* [count], owned */
    size_t count, room;
    double floor;
    unsigned top; /* the highest level of all models: tun_wish_level() */
};

struct tun_machine {
    const struct tun_wish *wishes;
    const struct tun_lanes *lanes;
    size_t count;           /* seats, and as many rows: the row of seat i is [lanes->seats + i] */
    struct tun_seat *seats; /* [count], owned */
    double *within_ns; /* [count][TUN_MIX_MAX], owned: that a frame is there after it was due in
                             * front, as far as it is known */
    size_t all_lanes[TUN_MIX_MAX];
    bool wide; /* there are rows */
};

/** tun_machine_init() - Return: 0 or -ENOMEM. @ret: tun_machine_deinit(), also after a failure. */
int tun_machine_init(const struct tun_wish *wishes, const struct tun_lanes *lanes, double floor,
                     struct tun_machine *ret);
void tun_machine_deinit(struct tun_machine *m);
/** tun_tasks_add() - lists the tasks anew, by what is known of within_ns. Return: 0 or -ENOMEM. */
int tun_tasks_add(struct tun_machine *m);

/** tun_task_of() - Return: what the lane's stop is, and in ret_home where. */
struct tun_task tun_task_of(const struct tun_machine *m, const struct tun_lane *lane, size_t stop,
                            size_t *ret_home);
/** tun_task_find() - Return: the task that it is part of; NULL: none yet. */
struct tun_task *tun_task_find(const struct tun_seat *s, const struct tun_task *like);
/** tun_tasks_gather() - sets gather_ns and fed_ns as they count for frames of a class. */
void tun_tasks_gather(struct tun_seat *s, unsigned class);

/** tun_task_release_ns() - Return: how long after any frame its k-th next one is due in front. */
double tun_task_release_ns(const struct tun_task *x, uint64_t k);
/** tun_task_may_come() - Return: frames that may be there within the time. */
double tun_task_may_come(const struct tun_task *x, double within_ns);

static inline bool tun_task_has_due(const struct tun_task *x, unsigned class)
{
    return x->class == class && x->due_ns > 0;
}
static inline double tun_task_load(const struct tun_task *x)
{
    return (x->cost_ns + x->gather_ns) / x->period_ns;
}
static inline bool tun_task_floored(const struct tun_seat *s, const struct tun_task *x)
{
    return s->floor > 0 && 2 * x->class + (x->due_ns > 0) < s->top;
}
/** tun_task_fed_once_ns(), tun_task_fed_share() - Return: what floors let it run takes within a
 * time f is at most the first and f times the second. @units: they are not counted elsewhere. */
static inline double tun_task_fed_once_ns(const struct tun_task *x, bool units)
{
    return (double)x->lanes * (x->fed_ns - (units ? 0 : x->unit_ns));
}
static inline double tun_task_fed_share(const struct tun_seat *s, const struct tun_task *x,
                                        bool units)
{
    return (double)x->lanes *
           ((units || x->away_ns > 0 ? s->floor / (1 + s->floor) * (x->fed_ns > 0) : 0) +
            s->floor * x->beside_ns / x->least_ns);
}
