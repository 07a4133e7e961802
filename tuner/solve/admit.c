/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/admit.h"

#include "base/base.h"
#include "tuner/solve/wide.h"

#define POINTS_MAX 100000 /* that are looked at; then R = D */
#define ROUNDS_MAX 100
#define LOAD_MAX (1 - 1e-9)

/* What is the same for every t of a class, and what is not. */
struct at {
    unsigned class;
    double t, share;   /* share: F */
    double once_ns;    /* B */
    double demand_ns;  /* the sum of C dbf */
    double gathers_ns; /* for which seats idle, too */
    size_t blocker;    /* the task of the longest unit in B; count: none */
    bool bare;         /* without what seats idle for */
};

/* Guests may be there when the interval begins: those that are due R later may, too. */
static double due_ns(const struct tun_task *x)
{
    return x->guest ? base_max(x->due_ns - x->rest_ns, 0.0) : x->due_ns;
}

static double may_come(const struct tun_task *x, double within_ns)
{
    return tun_task_may_come(x, within_ns + (x->guest ? x->rest_ns : 0));
}

/* ---- one class on one seat ---- */

/* B and F: of what is outside S, as long as deadlines until t count. A lane's frames keep their
 * order: where one that is due after t has begun, all that are due before it have gone. */
static void block(const struct tun_seat *s, struct at *a)
{
    const struct tun_task *only = NULL;
    double longest_ns = 0, begun_ns = 0;
    size_t in = 0;

    for (size_t i = 0; i < s->count; i++) {
        if (tun_task_has_due(&s->tasks[i], a->class) && due_ns(&s->tasks[i]) <= a->t) {
            only = in++ == 0 ? &s->tasks[i] : NULL;
        }
    }
    a->share = a->once_ns = 0;
    a->blocker = s->count;
    for (size_t i = 0; i < s->count; i++) {
        const struct tun_task *x = &s->tasks[i];
        bool floored = tun_task_floored(s, x),
             inside = tun_task_has_due(x, a->class) && due_ns(x) <= a->t,
             counted = x->class > a->class || (inside && (floored ? x == only : x->lanes == 1));

        if (floored) {
            a->once_ns += tun_task_fed_once_ns(x, !counted);
            a->share += tun_task_fed_share(s, x, !counted);
        }
        if (counted) {
            continue;
        }
        begun_ns = base_max(begun_ns, floored ? 0 : x->unit_ns);
        if (x->unit_ns > longest_ns) {
            longest_ns = x->unit_ns;
            a->blocker = i;
        }
    }
    a->once_ns += begun_ns;
}

/* Return: f, from a bound below it on. @least: classes from it on come whenever they like. */
static double done_ns(const struct tun_seat *s, const struct at *a, unsigned least)
{
    double f, before = 0, load = a->share, demand_ns = a->demand_ns + a->gathers_ns;

    for (size_t i = 0; i < s->count; i++) {
        load += s->tasks[i].class >= least ? tun_task_load(&s->tasks[i]) : 0;
    }
    f = load < LOAD_MAX ? (a->once_ns + demand_ns) / (1 - load) : INFINITY;
    while (f > before && isfinite(f)) {
        before = f;
        f = a->once_ns + a->share * f + demand_ns;
        for (size_t i = 0; i < s->count; i++) {
            const struct tun_task *x = &s->tasks[i];
            double takes_ns = x->cost_ns + (a->bare ? 0 : x->gather_ns);

            /* of those that take nothing any number may come */
            f += x->class >= least && takes_ns > 0 ? takes_ns * may_come(x, before) : 0;
        }
    }
    return f;
}

/* As sums are below lines: the t from which on f <= t; after @ret_per_due times D more f <= t - D.
 * INFINITY: the seat has too much to do. */
static double horizon_ns(const struct tun_seat *s, unsigned class, double *ret_per_due)
{
    struct at a = {.class = class, .t = INFINITY};
    double sum, load;

    block(s, &a);
    sum = a.once_ns;
    load = a.share;
    for (size_t i = 0; i < s->count; i++) {
        const struct tun_task *x = &s->tasks[i];

        if ((x->class > class || tun_task_has_due(x, class)) && x->cost_ns + x->gather_ns > 0) {
            double ahead_ns =
                x->class > class ? x->early_ns + (x->guest ? x->rest_ns : 0) : -due_ns(x);

            load += tun_task_load(x);
            sum += (x->cost_ns + x->gather_ns) *
                   base_max(1 + (x->jitter_ns + ahead_ns) / x->period_ns, 0.0);
        }
    }
    *ret_per_due = load < LOAD_MAX ? 1 / (1 - load) : INFINITY;
    return sum * *ret_per_due;
}

/* The next t at which demand grows. Return: the task whose. */
static const struct tun_task *go_on(struct tun_seat *s, struct at *a)
{
    const struct tun_task *whose = NULL;
    double first = INFINITY;

    for (size_t i = 0; i < s->count; i++) {
        if (tun_task_has_due(&s->tasks[i], a->class) && s->tasks[i].next_ns < first) {
            whose = &s->tasks[i];
            first = whose->next_ns;
        }
    }
    a->t = first;
    for (size_t i = 0; i < s->count; i++) {
        struct tun_task *x = &s->tasks[i];

        while (tun_task_has_due(x, a->class) && x->next_ns <= first * (1 + TUN_SLIP)) {
            a->t = base_max(a->t, x->next_ns);
            x->next_ns = due_ns(x) + tun_task_release_ns(x, ++x->due);
            a->demand_ns += x->cost_ns;
            a->gathers_ns += x->gather_ns;
        }
    }
    return whose;
}

/* Who takes most of the seat: @a: until t; NULL: in the long run. */
static size_t who_takes_most(const struct tun_seat *s, unsigned class, const struct at *a)
{
    double most = -1;
    size_t model = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct tun_task *x = &s->tasks[i];
        double takes = !a                  ? tun_task_load(x)
                       : x->class == class ? x->cost_ns * (double)x->due
                                           : x->cost_ns * may_come(x, a->t);

        if ((x->class > class || tun_task_has_due(x, class)) && takes > most) {
            most = takes;
            model = x->model;
        }
    }
    return model;
}

/* The longest unit that may hold them up, if that is why; otherwise who takes most. */
static void refuse(const struct tun_seat *s, const struct at *a, struct tun_answer *ret)
{
    struct at free_of_others = *a;
    double longest_ns = 0;

    free_of_others.once_ns = free_of_others.share = free_of_others.gathers_ns = 0;
    free_of_others.bare = true;
    if (a->blocker < s->count) {
        longest_ns = s->tasks[a->blocker].unit_ns;
        ret->model = s->tasks[a->blocker].model;
        ret->unit = s->tasks[a->blocker].unit;
    }
    for (size_t i = 0; i < s->count; i++) {
        const struct tun_task *x = &s->tasks[i];

        if (x->class >= a->class && x->beside_ns > longest_ns) {
            longest_ns = x->beside_ns;
            ret->model = x->by_model;
            ret->unit = x->by_unit;
        }
    }
    ret->refusal = TUN_TOO_LONG_A_UNIT;
    if (longest_ns == 0 || done_ns(s, &free_of_others, a->class + 1) > a->t) {
        ret->refusal = TUN_TOO_MUCH_DEMAND;
        ret->model = who_takes_most(s, a->class, a);
    }
}

/* R of the class's tasks that are due within t; of all of them if there is no f. */
static void bound(struct tun_seat *s, const struct at *a, double f)
{
    for (size_t i = 0; i < s->count; i++) {
        struct tun_task *x = &s->tasks[i];

        if (tun_task_has_due(x, a->class) && (x->due_ns <= a->t || isinf(f)) &&
            f > a->t - x->due_ns) {
            x->found_ns = base_max(x->found_ns, f - (a->t - x->due_ns));
        }
    }
}

/* Return: @whose, or if it is a guest a task of the seat that is due within @t; NULL: none. */
static const struct tun_task *late_one(const struct tun_seat *s, const struct tun_task *whose,
                                       double t)
{
    for (size_t i = 0; whose->guest && i < s->count; i++) {
        const struct tun_task *x = &s->tasks[i];

        if (!x->guest && tun_task_has_due(x, whose->class) && x->due_ns <= t) {
            whose = x;
        }
    }
    return whose->guest ? NULL : whose;
}

/* Sets R of the class's tasks, and the first refusal. */
static void check_class(struct tun_seat *s, unsigned class, struct tun_answer *io_answer)
{
    struct at a = {.class = class};
    struct tun_answer found = *io_answer;
    double per_due, in_time_ns, until_ns;

    tun_tasks_gather(s, class);
    until_ns = in_time_ns = horizon_ns(s, class, &per_due);
    found.refusal = TUN_ADMITTED;
    for (size_t i = 0; i < s->count; i++) {
        if (tun_task_has_due(&s->tasks[i], class)) {
            s->tasks[i].next_ns = due_ns(&s->tasks[i]);
            until_ns = base_max(until_ns, in_time_ns + per_due * s->tasks[i].due_ns);
        }
    }
    for (size_t point = 0;; point++) {
        const struct tun_task *next = go_on(s, &a), *whose = late_one(s, next, a.t);
        double f = INFINITY;

        if (a.t > until_ns || (isfinite(until_ns) && point >= POINTS_MAX && a.t > in_time_ns)) {
            for (size_t i = 0; i < s->count; i++) {
                struct tun_task *x = &s->tasks[i];

                if (tun_task_has_due(x, class) && in_time_ns + per_due * x->due_ns > a.t) {
                    x->found_ns = base_max(x->found_ns, x->due_ns);
                }
            }
            break;
        }
        if (isfinite(until_ns) && !whose) {
            continue;
        }
        if (isfinite(until_ns) && point < POINTS_MAX) {
            block(s, &a);
            f = done_ns(s, &a, class + 1);
        }
        bound(s, &a, f);
        if (f > a.t && whose && found.refusal == TUN_ADMITTED) {
            found.late = whose->model;
            refuse(s, &a, &found);
        }
        if (!isfinite(f)) {
            found.late = whose ? found.late : late_one(s, next, INFINITY)->model;
            found.refusal = TUN_TOO_MUCH_LOAD;
            found.model = who_takes_most(s, class, NULL);
            break;
        }
    }
    if (io_answer->refusal == TUN_ADMITTED) {
        *io_answer = found;
    }
}

/* ---- all classes on all seats ---- */

/* A frame without deadline, on which others of lower classes with one wait, leaves each seat at
 * latest when all of its class and above it is done. Return: whether a wait has grown. */
static bool wait_longer(struct tun_machine *m)
{
    bool longer = false;

    for (size_t i = 0; i < m->lanes->seats; i++) {
        struct tun_seat *s = &m->seats[i];

        for (size_t j = 0; j < s->count; j++) {
            const struct tun_task *x = &s->tasks[j];
            double *wait_ns = &m->within_ns[i * TUN_MIX_MAX + x->model];
            struct at a = {.class = x->class, .t = INFINITY};
            double f;

            if (x->due_ns == 0 && !x->guest) {
                tun_tasks_gather(s, x->class);
                block(s, &a);
                f = done_ns(s, &a, x->class);
                longer = longer || f > *wait_ns;
                *wait_ns = base_max(*wait_ns, f);
            }
        }
    }
    return longer;
}

static bool waits_matter(const struct tun_machine *m)
{
    unsigned lowest_due = UINT_MAX, highest = 0;

    for (size_t i = 0; i < m->lanes->count; i++) {
        const struct tun_wish *w = &m->wishes[m->lanes->lanes[i].model];

        if (w->deadline_ns > 0) {
            lowest_due = base_min(lowest_due, w->class);
        } else if (m->lanes->lanes[i].stages > 1 || m->wide) {
            highest = base_max(highest, w->class);
        }
    }
    return highest > lowest_due;
}

/* How long what has no deadline may wait. Return: 0 or -ENOMEM. */
static int wait(struct tun_machine *m)
{
    int r = 0;

    for (int round = 0; r == 0 && waits_matter(m) && wait_longer(m); round++) {
        for (size_t i = 0; round == ROUNDS_MAX && i < m->lanes->count; i++) {
            const struct tun_lane *lane = &m->lanes->lanes[i];

            for (size_t j = 0; m->wishes[lane->model].deadline_ns == 0 && j < lane->stages; j++) {
                m->within_ns[lane->stops[j].seat * TUN_MIX_MAX + lane->model] = INFINITY;
            }
        }
        r = tun_tasks_add(m);
    }
    return r;
}

/* @none: refuses. */
static struct tun_answer check(struct tun_machine *m, const struct tun_wish *wishes, size_t count,
                               bool none)
{
    struct tun_answer answer = {0};

    for (size_t i = 0; i < count; i++) {
        if (wishes[i].deadline_ns > 0 && (none || m->all_lanes[i] == 0)) {
            answer = (struct tun_answer){.refusal = TUN_TOO_MUCH_LOAD, .late = i, .model = i};
        }
    }
    for (size_t i = 0; i < m->lanes->seats; i++) {
        struct tun_seat *s = &m->seats[i];
        struct tun_late late;
        double load = 0;

        for (size_t j = 0; j < s->count; j++) {
            load += s->tasks[j].cost_ns / s->tasks[j].period_ns;
        }
        answer.load = base_max(answer.load, load);
        for (size_t j = 0; j < s->count; j++) {
            if (s->tasks[j].due_ns > 0 && s->tasks[j].next_ns == 0 && !s->tasks[j].guest) {
                answer.seat = answer.refusal == TUN_ADMITTED ? i : answer.seat;
                check_class(s, s->tasks[j].class, &answer);
            }
        }
        tun_row_check(&m->seats[m->lanes->seats + i], &late);
        if (late.task && answer.refusal == TUN_ADMITTED) {
            answer.refusal = late.waits ? TUN_TOO_LONG_A_UNIT : TUN_TOO_MUCH_DEMAND;
            answer.seat = i;
            answer.late = late.task->model;
            answer.model = late.model;
            answer.unit = late.unit;
        }
    }
    return answer;
}

/* Takes the R that were found for what may be left of frames. Return: whether any has grown. */
static bool learn(struct tun_machine *m)
{
    bool grown = false;

    for (size_t i = 0; m->wide && i < m->count; i++) {
        for (size_t j = 0; j < m->seats[i].count; j++) {
            const struct tun_task *x = &m->seats[i].tasks[j];
            double *within_ns = &m->within_ns[i * TUN_MIX_MAX + x->model];

            if (!x->guest && x->found_ns > *within_ns * (1 + TUN_SLIP)) {
                *within_ns = x->found_ns;
                grown = true;
            }
        }
    }
    return grown;
}

static void sum_up(const struct tun_machine *m, struct tun_lanes *l, struct tun_answer *ret)
{
    for (size_t i = 0; i < l->count; i++) {
        struct tun_lane *lane = &l->lanes[i];

        for (size_t j = 0; j < lane->stages; j++) {
            size_t home;
            struct tun_task x = tun_task_of(m, lane, j, &home);
            const struct tun_task *found = tun_task_find(&m->seats[home], &x);

            lane->stops[j].bound_ns = found->found_ns;
            if (j + 1 == lane->stages && x.due_ns > 0 && ret->refusal == TUN_ADMITTED) {
                ret->bound_ns[x.model] =
                    base_max(ret->bound_ns[x.model], x.early_ns + found->found_ns);
            }
        }
    }
}

int tun_admit(const struct tun_wish *wishes, size_t count, struct tun_lanes *io_lanes, double floor,
              struct tun_answer *ret_answer)
{
    base_cleanup(tun_machine_deinit) struct tun_machine m = {0};
    struct tun_answer answer = {0};
    bool more = true;
    int r = tun_machine_init(wishes, io_lanes, floor, &m);

    r = r ? r : wait(&m);
    /* from nothing on: once no R grows, they prove each other */
    for (int round = 0; r == 0 && more; round++) {
        answer = check(&m, wishes, count, round == ROUNDS_MAX);
        more = answer.refusal == TUN_ADMITTED && learn(&m);
        if (more) {
            r = tun_tasks_add(&m);
            r = r ? r : wait(&m);
        }
    }
    if (r == 0) {
        sum_up(&m, io_lanes, &answer);
        *ret_answer = answer;
    }
    return r;
}
