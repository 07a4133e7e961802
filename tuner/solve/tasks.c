/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/tasks.h"

#include "base/base.h"

/* ---- frames of a task ---- */

double tun_task_release_ns(const struct tun_task *x, uint64_t k)
{
    return base_max(base_max((double)k * x->apart_ns, (double)k * x->period_ns - x->jitter_ns),
                    0.0);
}

double tun_task_may_come(const struct tun_task *x, double within_ns)
{
    double by_share = ceil((within_ns + x->jitter_ns + x->early_ns) / x->period_ns);

    return base_max(base_min(by_share, ceil((within_ns + x->early_ns) / x->apart_ns)), 1.0);
}

/* Of any n frames in a row the task's lanes have at most x n + min(l, R - l) (2 - 1/(R - 1)). */
static void settle(struct tun_task *x)
{
    double others = (double)(x->all_lanes - x->lanes),
           both = base_min((double)x->lanes, others) * (2 - 1 / base_max(x->all_lanes - 1.0, 1.0));

    x->period_ns = x->apart_ns / x->share;
    x->jitter_ns = others > 0 ? x->apart_ns + (both - 1) * x->period_ns : 0;
}

/* ---- tasks of the seats ---- */

static double early_ns(const struct tun_machine *m, const struct tun_lane *lane, size_t stop)
{
    double sum = 0;

    for (size_t j = 0; j < stop; j++) {
        const struct tun_stop *at = &lane->stops[j];

        sum += at->deadline_ns > 0 ? at->deadline_ns
                                   : m->within_ns[at->seat * TUN_MIX_MAX + lane->model];
    }
    return sum;
}

/* Return: the shortest time for which it holds its seats, if all units take their times. */
static double shortest(const struct tun_stop *s)
{
    double least = INFINITY;

    for (size_t u = 0; u < s->units; u++) {
        double piece = tun_piece_ns(s, u), rest = fmod(s->unit_ns[u], piece);

        least = base_min(least, rest > 1e-6 * piece ? rest : piece);
    }
    return least;
}

struct tun_task tun_task_of(const struct tun_machine *m, const struct tun_lane *lane, size_t stop,
                            size_t *ret_home)
{
    const struct tun_stop *at = &lane->stops[stop];
    size_t longest, width = tun_stop_width(at), home = (width > 1 ? m->lanes->seats : 0) + at->seat;
    struct tun_task x = {.model = lane->model,
                         .stop = stop,
                         .width = width,
                         .seat = at->seat,
                         .cost_ns = tun_stop_ns(at, &longest),
                         .class = m->wishes[lane->model].class,
                         .due_ns = at->deadline_ns,
                         .least_ns = shortest(at),
                         .apart_ns = (double)BASE_NS_PER_S / m->wishes[lane->model].rate,
                         .share = lane->share,
                         .early_ns = early_ns(m, lane, stop),
                         .rest_ns = m->within_ns[home * TUN_MIX_MAX + lane->model],
                         .lanes = 1,
                         .all_lanes = m->all_lanes[lane->model]};

    x.unit_ns = tun_piece_ns(at, longest);
    x.unit = at->first + longest;
    *ret_home = home;
    return x;
}

struct tun_task *tun_task_find(const struct tun_seat *s, const struct tun_task *like)
{
    for (size_t i = 0; i < s->count; i++) {
        struct tun_task *x = &s->tasks[i];

        if (!x->guest && x->model == like->model && x->stop == like->stop &&
            x->unit == like->unit && x->due_ns == like->due_ns && x->cost_ns == like->cost_ns &&
            x->early_ns == like->early_ns && x->unit_ns == like->unit_ns &&
            x->least_ns == like->least_ns) {
            return x;
        }
    }
    return NULL;
}

static bool add(struct tun_seat *s, const struct tun_task *x)
{
    if (!base_room(&s->tasks, sizeof(*s->tasks), s->count, &s->room)) {
        return false;
    }
    s->tasks[s->count++] = *x;
    return true;
}

/* ---- rows ---- */

static void see_beside(struct tun_seat *row, const struct tun_task *x)
{
    for (size_t i = 0; i < row->count; i++) {
        struct tun_task *wide = &row->tasks[i];

        if (wide->width > 1 && (wide != x || x->lanes > 1) && x->unit_ns > wide->beside_ns) {
            wide->beside_ns = x->unit_ns;
            wide->by_model = x->model;
            wide->by_unit = x->unit;
        }
    }
}

/* Adds those of @from that are there to be looked at. @counts: with all that they do. */
static bool invite(struct tun_seat *to, const struct tun_seat *from, size_t count, bool counts)
{
    for (size_t i = 0; i < count; i++) {
        struct tun_task x = from->tasks[i];

        x.guest = true;
        if (!counts) {
            x.away_ns = x.unit_ns;
            x.cost_ns = x.unit_ns = 0;
        }
        if (!add(to, &x)) {
            return false;
        }
    }
    return true;
}

/* The row's seats and the row are each other's guests. */
static bool meet(struct tun_seat *row, struct tun_seat *seats)
{
    size_t wide = row->count, width = row->tasks[0].width, own[PL_CPU_MAX];
    bool all = true;

    for (size_t i = 0; i < width && all; i++) {
        own[i] = seats[i].count;
        all = invite(row, &seats[i], own[i], true);
    }
    for (size_t i = 0; i < row->count; i++) {
        see_beside(row, &row->tasks[i]);
    }
    for (size_t i = 0; i < width && all; i++) {
        all = invite(&seats[i], row, wide, true);
        for (size_t j = 0; j < width && all; j++) {
            all = j == i || invite(&seats[i], &seats[j], own[j], false);
        }
    }
    return all;
}

void tun_tasks_gather(struct tun_seat *s, unsigned class)
{
    for (size_t i = 0; i < s->count; i++) {
        struct tun_task *x = &s->tasks[i];

        x->gather_ns = x->beside_ns;
        x->fed_ns = x->unit_ns + x->beside_ns;
        for (size_t j = 0; x->width == 1 && j < s->count; j++) {
            const struct tun_task *wide = &s->tasks[j];

            if (wide->width > 1 && wide->class >= class) {
                x->fed_ns = base_max(x->unit_ns, x->away_ns);
                x->gather_ns =
                    base_max(x->gather_ns, x->class >= wide->class ? wide->beside_ns : 0);
            }
        }
    }
}

int tun_tasks_add(struct tun_machine *m)
{
    for (size_t i = 0; i < m->count; i++) {
        m->seats[i].count = 0;
    }
    for (size_t i = 0; i < m->lanes->count; i++) {
        const struct tun_lane *lane = &m->lanes->lanes[i];

        for (size_t j = 0; j < lane->stages; j++) {
            size_t home;
            struct tun_task x = tun_task_of(m, lane, j, &home),
                            *same = tun_task_find(&m->seats[home], &x);

            if (same) {
                same->lanes++;
                same->share += x.share;
            } else if (!add(&m->seats[home], &x)) {
                return -ENOMEM;
            }
        }
    }
    for (size_t i = 0; i < m->count; i++) {
        for (size_t j = 0; j < m->seats[i].count; j++) {
            settle(&m->seats[i].tasks[j]);
        }
    }
    for (size_t i = 0; i < m->lanes->seats; i++) {
        struct tun_seat *row = &m->seats[m->lanes->seats + i];

        if (row->count > 0 && !meet(row, &m->seats[i])) {
            return -ENOMEM;
        }
    }
    return 0;
}

int tun_machine_init(const struct tun_wish *wishes, const struct tun_lanes *lanes, double floor,
                     struct tun_machine *ret)
{
    unsigned top = 0;

    *ret = (struct tun_machine){.wishes = wishes, .lanes = lanes, .count = 2 * lanes->seats};
    ret->seats = calloc(ret->count, sizeof(*ret->seats));
    ret->within_ns = calloc(ret->count * TUN_MIX_MAX, sizeof(*ret->within_ns));
    if (!ret->seats || !ret->within_ns) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < lanes->count; i++) {
        const struct tun_lane *lane = &lanes->lanes[i];

        top = base_max(top, tun_wish_level(&wishes[lane->model]));
        ret->all_lanes[lane->model]++;
        ret->wide = ret->wide || lane->stops[0].width > 1;
    }
    for (size_t i = 0; i < ret->count; i++) {
        ret->seats[i] = (struct tun_seat){.floor = floor, .top = top};
    }
    return tun_tasks_add(ret);
}

void tun_machine_deinit(struct tun_machine *m)
{
    for (size_t i = 0; m->seats && i < m->count; i++) {
        free(m->seats[i].tasks);
    }
    free(m->seats);
    free(m->within_ns);
}
