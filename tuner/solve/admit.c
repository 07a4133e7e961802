/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/admit.h"

#include "base/base.h"

#define SLIP 1e-9         /* of a count, for rounding */
#define POINTS_MAX 100000 /* that are looked at; then R = D */
#define ROUNDS_MAX 100
#define LOAD_MAX (1 - 1e-9)

/* A lane's stop, or those of several lanes of a model that do the same on the seat. */
struct task {
    size_t model, unit, stop; /* unit: of the longest piece, of the model's */
    unsigned class;
    double cost_ns, unit_ns, due_ns; /* due_ns: D, 0: none */
    double apart_ns, period_ns;      /* T, T / x */
    double share, jitter_ns;         /* x, J */
    double early_ns;                 /* a frame may come so much before it is due in front */
    size_t lanes, all_lanes;         /* of the model */
    double next_ns, found_ns;        /* the next t at which dbf grows, 0: not asked yet; R */
    uint64_t due;                    /* dbf */
};

struct seat {
    struct task *tasks; /* [count], owned */
    size_t count, room;
    double floor;
    unsigned top; /* the highest level of all models: tun_wish_level() */
};

/* What is the same for every t of a class, and what is not. */
struct at {
    unsigned class;
    double t, share;  /* share: F */
    double once_ns;   /* B */
    double demand_ns; /* the sum of C dbf */
    size_t blocker;   /* the task of the longest unit in B; count: none */
};

/* ---- frames of a task ---- */

static bool has_due(const struct task *x, unsigned class)
{
    return x->class == class && x->due_ns > 0;
}

static double load_of(const struct task *x)
{
    return x->cost_ns / x->period_ns;
}

static double release_ns(const struct task *x, uint64_t k)
{
    return base_max(base_max((double)k * x->apart_ns, (double)k * x->period_ns - x->jitter_ns),
                    0.0);
}

static double may_come(const struct task *x, double within_ns)
{
    double by_share = ceil((within_ns + x->jitter_ns + x->early_ns) / x->period_ns);

    return base_max(base_min(by_share, ceil((within_ns + x->early_ns) / x->apart_ns)), 1.0);
}

/* Of any n frames in a row the task's lanes have at most x n + min(l, R - l) (2 - 1/(R - 1)). */
static void settle(struct task *x)
{
    double others = (double)(x->all_lanes - x->lanes),
           both = base_min((double)x->lanes, others) * (2 - 1 / base_max(x->all_lanes - 1.0, 1.0));

    x->period_ns = x->apart_ns / x->share;
    x->jitter_ns = others > 0 ? x->apart_ns + (both - 1) * x->period_ns : 0;
}

/* ---- tasks of the seats ---- */

struct machine {
    const struct tun_wish *wishes;
    const struct tun_lanes *lanes;
    struct seat *seats; /* [lanes->seats], owned */
    double *wait_ns; /* [lanes->seats][TUN_MIX_MAX], owned: of a frame without deadline, at most */
    size_t all_lanes[TUN_MIX_MAX];
};

static void machine_deinit(struct machine *m)
{
    for (size_t i = 0; m->seats && i < m->lanes->seats; i++) {
        free(m->seats[i].tasks);
    }
    free(m->seats);
    free(m->wait_ns);
}

static double early_ns(const struct machine *m, const struct tun_lane *lane, size_t stop)
{
    double sum = 0;

    for (size_t j = 0; j < stop; j++) {
        const struct tun_stop *at = &lane->stops[j];

        sum += at->deadline_ns > 0 ? at->deadline_ns
                                   : m->wait_ns[at->seat * TUN_MIX_MAX + lane->model];
    }
    return sum;
}

static struct task task_of(const struct machine *m, const struct tun_lane *lane, size_t stop)
{
    const struct tun_stop *at = &lane->stops[stop];
    size_t longest;
    struct task x = {.model = lane->model,
                     .stop = stop,
                     .cost_ns = tun_stop_ns(at, &longest),
                     .class = m->wishes[lane->model].class,
                     .due_ns = at->deadline_ns,
                     .apart_ns = (double)BASE_NS_PER_S / m->wishes[lane->model].rate,
                     .share = lane->share,
                     .early_ns = early_ns(m, lane, stop),
                     .lanes = 1,
                     .all_lanes = m->all_lanes[lane->model]};

    x.unit_ns = tun_piece_ns(at, longest);
    x.unit = at->first + longest;
    return x;
}

/* Return: the task that a lane's stop is part of; NULL: none yet. */
static struct task *find(const struct seat *s, const struct task *like)
{
    for (size_t i = 0; i < s->count; i++) {
        struct task *x = &s->tasks[i];

        if (x->model == like->model && x->stop == like->stop && x->unit == like->unit &&
            x->due_ns == like->due_ns && x->cost_ns == like->cost_ns &&
            x->early_ns == like->early_ns && x->unit_ns == like->unit_ns) {
            return x;
        }
    }
    return NULL;
}

static int add_tasks(struct machine *m)
{
    for (size_t i = 0; i < m->lanes->seats; i++) {
        m->seats[i].count = 0;
    }
    for (size_t i = 0; i < m->lanes->count; i++) {
        const struct tun_lane *lane = &m->lanes->lanes[i];

        for (size_t j = 0; j < lane->stages; j++) {
            struct seat *s = &m->seats[lane->stops[j].seat];
            struct task x = task_of(m, lane, j), *same = find(s, &x);

            if (same) {
                same->lanes++;
                same->share += x.share;
                continue;
            }
            if (!base_room(&s->tasks, sizeof(*s->tasks), s->count, &s->room)) {
                return -ENOMEM;
            }
            s->tasks[s->count++] = x;
        }
    }
    for (size_t i = 0; i < m->lanes->seats; i++) {
        for (size_t j = 0; j < m->seats[i].count; j++) {
            settle(&m->seats[i].tasks[j]);
        }
    }
    return 0;
}

/* ---- one class on one seat ---- */

/* B and F: of what is outside S, as long as deadlines until t count. A lane's frames keep their
 * order: where one that is due after t has begun, all that are due before it have gone. */
static void block(const struct seat *s, struct at *a)
{
    const struct task *only = NULL;
    double longest_ns = 0, begun_ns = 0;
    size_t in = 0;

    for (size_t i = 0; i < s->count; i++) {
        if (has_due(&s->tasks[i], a->class) && s->tasks[i].due_ns <= a->t) {
            only = in++ == 0 ? &s->tasks[i] : NULL;
        }
    }
    a->share = a->once_ns = 0;
    a->blocker = s->count;
    for (size_t i = 0; i < s->count; i++) {
        const struct task *x = &s->tasks[i];
        bool floored = s->floor > 0 && 2 * x->class + (x->due_ns > 0) < s->top,
             inside = has_due(x, a->class) && x->due_ns <= a->t;

        if (x->class > a->class || (inside && (floored ? x == only : x->lanes == 1))) {
            continue;
        }
        if (floored) {
            a->once_ns += x->unit_ns;
            a->share += s->floor / (1 + s->floor);
        } else {
            begun_ns = base_max(begun_ns, x->unit_ns);
        }
        if (x->unit_ns > longest_ns) {
            longest_ns = x->unit_ns;
            a->blocker = i;
        }
    }
    a->once_ns += begun_ns;
}

/* Return: f, from a bound below it on. @least: classes from it on come whenever they like. */
static double done_ns(const struct seat *s, const struct at *a, unsigned least)
{
    double f, before = 0, load = a->share;

    for (size_t i = 0; i < s->count; i++) {
        load += s->tasks[i].class >= least ? load_of(&s->tasks[i]) : 0;
    }
    f = load < LOAD_MAX ? (a->once_ns + a->demand_ns) / (1 - load) : INFINITY;
    while (f > before && isfinite(f)) {
        before = f;
        f = a->once_ns + a->share * f + a->demand_ns;
        for (size_t i = 0; i < s->count; i++) {
            if (s->tasks[i].class >= least) {
                f += s->tasks[i].cost_ns * may_come(&s->tasks[i], before);
            }
        }
    }
    return f;
}

/* As sums are below lines: the t from which on f <= t; after @ret_per_due times D more f <= t - D.
 * INFINITY: the seat has too much to do. */
static double horizon_ns(const struct seat *s, unsigned class, double *ret_per_due)
{
    struct at a = {.class = class, .t = INFINITY};
    double sum, load;

    block(s, &a);
    sum = a.once_ns;
    load = a.share;
    for (size_t i = 0; i < s->count; i++) {
        const struct task *x = &s->tasks[i];

        if (x->class > class || has_due(x, class)) {
            double ahead_ns = x->class > class ? x->early_ns : -x->due_ns;

            load += load_of(x);
            sum += x->cost_ns * base_max(1 + (x->jitter_ns + ahead_ns) / x->period_ns, 0.0);
        }
    }
    *ret_per_due = load < LOAD_MAX ? 1 / (1 - load) : INFINITY;
    return sum * *ret_per_due;
}

/* The next t at which demand grows. Return: the task whose. */
static const struct task *go_on(struct seat *s, struct at *a)
{
    const struct task *whose = NULL;
    double first = INFINITY;

    for (size_t i = 0; i < s->count; i++) {
        if (has_due(&s->tasks[i], a->class) && s->tasks[i].next_ns < first) {
            whose = &s->tasks[i];
            first = whose->next_ns;
        }
    }
    a->t = first;
    for (size_t i = 0; i < s->count; i++) {
        struct task *x = &s->tasks[i];

        while (has_due(x, a->class) && x->next_ns <= first * (1 + SLIP)) {
            a->t = base_max(a->t, x->next_ns);
            x->next_ns = x->due_ns + release_ns(x, ++x->due);
            a->demand_ns += x->cost_ns;
        }
    }
    return whose;
}

/* Who takes most of the seat: @a: until t; NULL: in the long run. */
static size_t who_takes_most(const struct seat *s, unsigned class, const struct at *a)
{
    double most = -1;
    size_t model = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct task *x = &s->tasks[i];
        double takes = !a                  ? load_of(x)
                       : x->class == class ? x->cost_ns * (double)x->due
                                           : x->cost_ns * may_come(x, a->t);

        if ((x->class > class || has_due(x, class)) && takes > most) {
            most = takes;
            model = x->model;
        }
    }
    return model;
}

static void refuse(const struct seat *s, const struct at *a, struct tun_answer *ret)
{
    struct at free_of_others = *a;

    free_of_others.once_ns = free_of_others.share = 0;
    if (a->blocker < s->count && done_ns(s, &free_of_others, a->class + 1) <= a->t) {
        ret->refusal = TUN_TOO_LONG_A_UNIT;
        ret->model = s->tasks[a->blocker].model;
        ret->unit = s->tasks[a->blocker].unit;
    } else {
        ret->refusal = TUN_TOO_MUCH_DEMAND;
        ret->model = who_takes_most(s, a->class, a);
    }
}

/* R of the class's tasks that are due within t; of all of them if there is no f. */
static void bound(struct seat *s, const struct at *a, double f)
{
    for (size_t i = 0; i < s->count; i++) {
        struct task *x = &s->tasks[i];

        if (has_due(x, a->class) && (x->due_ns <= a->t || isinf(f)) && f > a->t - x->due_ns) {
            x->found_ns = base_max(x->found_ns, f - (a->t - x->due_ns));
        }
    }
}

/* Sets R of the class's tasks, and the first refusal. */
static void check_class(struct seat *s, unsigned class, struct tun_answer *io_answer)
{
    struct at a = {.class = class};
    struct tun_answer found = *io_answer;
    double per_due, in_time_ns = horizon_ns(s, class, &per_due), until_ns = in_time_ns;

    found.refusal = TUN_ADMITTED;
    for (size_t i = 0; i < s->count; i++) {
        if (has_due(&s->tasks[i], class)) {
            s->tasks[i].next_ns = s->tasks[i].due_ns;
            until_ns = base_max(until_ns, in_time_ns + per_due * s->tasks[i].due_ns);
        }
    }
    for (size_t point = 0;; point++) {
        const struct task *whose = go_on(s, &a);
        double f = INFINITY;

        if (a.t > until_ns || (isfinite(until_ns) && point >= POINTS_MAX && a.t > in_time_ns)) {
            for (size_t i = 0; i < s->count; i++) {
                struct task *x = &s->tasks[i];

                if (has_due(x, class) && in_time_ns + per_due * x->due_ns > a.t) {
                    x->found_ns = base_max(x->found_ns, x->due_ns);
                }
            }
            break;
        }
        if (isfinite(until_ns) && point < POINTS_MAX) {
            block(s, &a);
            f = done_ns(s, &a, class + 1);
        }
        bound(s, &a, f);
        if (f > a.t && found.refusal == TUN_ADMITTED) {
            found.late = whose->model;
            refuse(s, &a, &found);
        }
        if (!isfinite(f)) {
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
static bool wait_longer(struct machine *m)
{
    bool longer = false;

    for (size_t i = 0; i < m->lanes->seats; i++) {
        struct seat *s = &m->seats[i];

        for (size_t j = 0; j < s->count; j++) {
            const struct task *x = &s->tasks[j];
            double *wait_ns = &m->wait_ns[i * TUN_MIX_MAX + x->model];
            struct at a = {.class = x->class, .t = INFINITY};
            double f;

            if (x->due_ns == 0) {
                block(s, &a);
                f = done_ns(s, &a, x->class);
                longer = longer || f > *wait_ns;
                *wait_ns = base_max(*wait_ns, f);
            }
        }
    }
    return longer;
}

static bool waits_matter(const struct machine *m)
{
    unsigned lowest_due = UINT_MAX, highest = 0;

    for (size_t i = 0; i < m->lanes->count; i++) {
        const struct tun_wish *w = &m->wishes[m->lanes->lanes[i].model];

        if (w->deadline_ns > 0) {
            lowest_due = base_min(lowest_due, w->class);
        } else if (m->lanes->lanes[i].stages > 1) {
            highest = base_max(highest, w->class);
        }
    }
    return highest > lowest_due;
}

static int prepare(struct machine *m, double floor)
{
    unsigned top = 0;
    int r;

    m->seats = calloc(m->lanes->seats, sizeof(*m->seats));
    m->wait_ns = calloc(m->lanes->seats * TUN_MIX_MAX, sizeof(*m->wait_ns));
    if (!m->seats || !m->wait_ns) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < m->lanes->count; i++) {
        top = base_max(top, tun_wish_level(&m->wishes[m->lanes->lanes[i].model]));
        m->all_lanes[m->lanes->lanes[i].model]++;
    }
    for (size_t i = 0; i < m->lanes->seats; i++) {
        m->seats[i] = (struct seat){.floor = floor, .top = top};
    }
    r = add_tasks(m);
    for (int round = 0; r == 0 && waits_matter(m) && wait_longer(m); round++) {
        for (size_t i = 0; round == ROUNDS_MAX && i < m->lanes->seats * TUN_MIX_MAX; i++) {
            m->wait_ns[i] = INFINITY;
        }
        r = add_tasks(m);
    }
    return r;
}

static void sum_up(const struct machine *m, struct tun_lanes *l, struct tun_answer *ret)
{
    for (size_t i = 0; i < l->count; i++) {
        struct tun_lane *lane = &l->lanes[i];

        for (size_t j = 0; j < lane->stages; j++) {
            struct task x = task_of(m, lane, j);
            const struct task *found = find(&m->seats[lane->stops[j].seat], &x);

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
    base_cleanup(machine_deinit) struct machine m = {.wishes = wishes, .lanes = io_lanes};
    struct tun_answer answer = {0};
    int r = prepare(&m, floor);

    if (r < 0) {
        return r;
    }
    for (size_t i = 0; i < count; i++) {
        if (wishes[i].deadline_ns > 0 && m.all_lanes[i] == 0) {
            answer = (struct tun_answer){.refusal = TUN_TOO_MUCH_LOAD, .late = i, .model = i};
        }
    }
    for (size_t i = 0; i < io_lanes->seats; i++) {
        struct seat *s = &m.seats[i];
        double load = 0;

        for (size_t j = 0; j < s->count; j++) {
            load += load_of(&s->tasks[j]);
        }
        answer.load = base_max(answer.load, load);
        for (size_t j = 0; j < s->count; j++) {
            if (s->tasks[j].due_ns > 0 && s->tasks[j].next_ns == 0) {
                answer.seat = answer.refusal == TUN_ADMITTED ? i : answer.seat;
                check_class(s, s->tasks[j].class, &answer);
            }
        }
    }
    sum_up(&m, io_lanes, &answer);
    *ret_answer = answer;
    return 0;
}
