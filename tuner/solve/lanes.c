/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/lanes.h"

#include "base/base.h"
#include "tuner/eval.h"

#define DUST 1e-9 /* of a core */

/* A stage of a route, and what part of its frames which seat, or row, has. */
struct piece {
    size_t dealt, stage, ep, width;
    double load; /* of a core, or of each of a row */
    size_t count;
    size_t seat[PL_CPU_MAX];
    double part[PL_CPU_MAX]; /* they sum to 1 */
};

struct seating {
    struct piece *pieces; /* [count], the heaviest first */
    size_t count, first[PL_EP_MAX + 1];
    double room[PL_CPU_MAX]; /* of each seat */
};

double tun_stop_ns(const struct tun_stop *s, size_t *ret_longest)
{
    double sum = 0;
    size_t longest = 0;

    for (size_t u = 0; u < s->units; u++) {
        sum += s->unit_ns[u];
        longest = tun_piece_ns(s, u) > tun_piece_ns(s, longest) ? u : longest;
    }
    if (ret_longest) {
        *ret_longest = longest;
    }
    return sum;
}

size_t tun_lane_next(const struct tun_lane *lanes, size_t count, uint64_t *io_dealt)
{
    double least = INFINITY, most = count > 1 ? 1 / (2 * (double)count - 2) : 0;
    uint64_t n = 1;
    size_t best = 0;

    for (size_t i = 0; i < count; i++) {
        n += io_dealt[i];
    }
    for (size_t i = 0; count > 1 && i < count; i++) {
        double lag = lanes[i].share * (double)n - (double)io_dealt[i];

        if (lag >= most - 1e-9 && (1 - most - lag) / lanes[i].share < least) {
            least = (1 - most - lag) / lanes[i].share;
            best = i;
        }
    }
    io_dealt[best]++;
    return best;
}

/* ---- seats ---- */

static int heaviest_first(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;

    if (x->width != y->width) {
        return x->width > y->width ? -1 : 1;
    }
    if (x->load != y->load) {
        return x->load > y->load ? -1 : 1;
    }
    return x->dealt != y->dealt ? (x->dealt > y->dealt) - (x->dealt < y->dealt)
                                : (x->stage > y->stage) - (x->stage < y->stage);
}

/* Return: the least of a row's seats. */
static double room_of(const struct seating *s, const struct piece *p, size_t seat)
{
    double room = s->room[seat];

    for (size_t i = 1; i < p->width; i++) {
        room = base_min(room, s->room[seat + i]);
    }
    return room;
}

static size_t roomiest(const struct seating *s, const struct piece *p)
{
    size_t best = s->first[p->ep];

    for (size_t i = best; i + p->width <= s->first[p->ep + 1]; i += p->width) {
        best = room_of(s, p, i) > room_of(s, p, best) ? i : best;
    }
    return best;
}

static void put(struct seating *s, struct piece *p, size_t seat, double load)
{
    p->seat[p->count] = seat;
    p->part[p->count++] = load / p->load;
    for (size_t i = 0; i < p->width; i++) {
        s->room[seat + i] -= load;
    }
}

/* Fills the seats up with a stage that fits on none. The last seat takes what rounding leaves. */
static void cut(struct seating *s, struct piece *p)
{
    double left = p->load;
    size_t seats = (s->first[p->ep + 1] - s->first[p->ep]) / p->width;

    while (left > DUST) {
        size_t seat = roomiest(s, p);
        double room = room_of(s, p, seat),
               part = p->count + 1 == seats || room < DUST ? left : base_min(left, room);

        put(s, p, seat, part);
        left -= part;
    }
}

static void seat_all(struct seating *s)
{
    qsort(s->pieces, s->count, sizeof(*s->pieces), heaviest_first);
    for (size_t i = 0; i < s->count; i++) {
        struct piece *p = &s->pieces[i];
        size_t seat = roomiest(s, p);

        if (p->load <= room_of(s, p, seat) + DUST) {
            put(s, p, seat, p->load);
        } else if (p->width > 1) {
            cut(s, p);
        }
    }
    for (size_t i = 0; i < s->count; i++) {
        if (s->pieces[i].count == 0) {
            cut(s, &s->pieces[i]);
        }
    }
}

/* ---- lanes ---- */

/* Adds the route's lanes: the parts of all its stages, laid over one another. @pieces: its stages'.
 * Return: 0 or -ENOMEM. */
static int add_lanes(struct tun_lanes *l, size_t *room, const struct tun_lane *whole,
                     struct piece *const *pieces)
{
    size_t at[TUN_CHANGES_MAX + 1] = {0};
    double left[TUN_CHANGES_MAX + 1], done = 0;

    for (size_t s = 0; s < whole->stages; s++) {
        left[s] = pieces[s]->part[0];
    }
    while (done < 1 - DUST) {
        struct tun_lane *lane;
        double part = 1 - done;

        if (!base_room(&l->lanes, sizeof(*l->lanes), l->count, room)) {
            return -ENOMEM;
        }
        lane = &l->lanes[l->count++];
        *lane = *whole;
        for (size_t s = 0; s < whole->stages; s++) {
            part = base_min(part, left[s]);
            lane->stops[s].seat = pieces[s]->seat[at[s]];
        }
        lane->share *= part;
        done += part;
        for (size_t s = 0; s < whole->stages; s++) {
            left[s] -= part;
            if (left[s] < DUST && at[s] + 1 < pieces[s]->count) {
                left[s] += pieces[s]->part[++at[s]];
            }
        }
    }
    return 0;
}

/* The stages of a route with their units' times, which it writes behind @unit_ns and @piece_ns. */
static void stops_of(const struct tun_wish *w, const struct tun_dealt *d, double *unit_ns,
                     double *piece_ns, struct tun_lane *ret)
{
    const struct tun_problem *p = w->slow ? w->slow : w->p;
    size_t unit = 0;

    *ret = (struct tun_lane){.model = d->model, .stages = d->route.stages, .share = d->share};
    for (size_t s = 0; s < ret->stages; s++) {
        struct tun_stop *stop = &ret->stops[s];

        *stop = (struct tun_stop){.ep = d->route.ep[s],
                                  .width = d->route.width,
                                  .first = unit,
                                  .unit_ns = unit_ns + unit,
                                  .piece_ns = piece_ns + unit};
        for (; unit <= d->route.last[s]; unit++, stop->units++) {
            unit_ns[unit] = tun_cell_at(&p->costs, stop->ep, tun_stop_width(stop), unit)->ns +
                            (stop->units == 0 ? tun_handoff_ns(p, unit) : 0);
            piece_ns[unit] = unit_ns[unit];
        }
    }
}

static int lay(const struct tun_wish *wishes, const struct tun_mix *mix, const struct seating *s,
               struct tun_lanes *l)
{
    double *unit_ns = l->unit_ns, *piece_ns = l->piece_ns;
    size_t room = 0;
    int r = 0;

    for (size_t i = 0; r == 0 && i < mix->count; i++) {
        const struct tun_wish *w = &wishes[mix->dealt[i].model];
        struct piece *pieces[TUN_CHANGES_MAX + 1] = {0};
        struct tun_lane whole;

        for (size_t j = 0; j < s->count; j++) {
            if (s->pieces[j].dealt == i) {
                pieces[s->pieces[j].stage] = &s->pieces[j];
            }
        }
        stops_of(w, &mix->dealt[i], unit_ns, piece_ns, &whole);
        unit_ns += w->p->unit_count;
        piece_ns += w->p->unit_count;
        r = add_lanes(l, &room, &whole, pieces);
    }
    return r;
}

static void list_pieces(const struct tun_wish *wishes, const struct tun_mix *mix, struct seating *s)
{
    for (size_t i = 0; i < mix->count; i++) {
        const struct tun_dealt *d = &mix->dealt[i];
        const struct tun_wish *w = &wishes[d->model];
        size_t unit = 0;

        for (size_t stage = 0; stage < d->route.stages; stage++) {
            struct piece *p = &s->pieces[s->count++];
            double ns = tun_handoff_ns(w->p, unit);

            *p = (struct piece){.dealt = i,
                                .stage = stage,
                                .ep = d->route.ep[stage],
                                .width = base_max(d->route.width, (uint16_t)1)};
            for (; unit <= d->route.last[stage]; unit++) {
                ns += tun_cell_at(&w->p->costs, p->ep, p->width, unit)->ns;
            }
            p->load = d->share * mix->given[d->model] * w->rate * ns / (double)BASE_NS_PER_S;
        }
    }
}

int tun_lanes_init(const struct tun_wish *wishes, const struct tun_mix *mix, bool even,
                   struct tun_lanes *ret)
{
    const struct tun_problem *first = wishes[0].p;
    struct seating s = {0};
    size_t units = 0, stages = 0;
    int r;

    *ret = TUN_LANES_NULL;
    for (size_t i = 0; i < mix->count; i++) {
        units += wishes[mix->dealt[i].model].p->unit_count;
        stages += mix->dealt[i].route.stages;
    }
    for (size_t k = 0; k < first->ep_count; k++) {
        s.first[k + 1] = s.first[k] + first->eps[k].cores;
        for (size_t i = s.first[k]; i < s.first[k + 1]; i++) {
            s.room[i] = even ? mix->busy[k] : 1;
        }
    }
    ret->seats = s.first[first->ep_count];
    s.pieces = calloc(stages + 1, sizeof(*s.pieces));
    ret->unit_ns = calloc(units + 1, sizeof(*ret->unit_ns));
    ret->piece_ns = calloc(units + 1, sizeof(*ret->piece_ns));
    r = s.pieces && ret->unit_ns && ret->piece_ns ? 0 : -ENOMEM;
    if (r == 0) {
        list_pieces(wishes, mix, &s);
        seat_all(&s);
        r = lay(wishes, mix, &s, ret);
    }
    free(s.pieces);
    return r;
}

void tun_lanes_deinit(struct tun_lanes *l)
{
    free(l->lanes);
    free(l->unit_ns);
    free(l->piece_ns);
    *l = TUN_LANES_NULL;
}

/* ---- pieces ---- */

void tun_lanes_cut(const struct tun_wish *wishes, struct tun_lanes *io_lanes, size_t model,
                   size_t unit, size_t pieces)
{
    const struct tun_wish *w = &wishes[model];
    const struct tun_problem *p = w->slow ? w->slow : w->p;
    double uncut = w->uncut ? w->uncut[unit] : TUN_UNCUT;
    double longest = uncut + (1 - uncut) / (double)pieces,
           cost = 1 + TUN_CUT_COST * log2((double)pieces);

    for (size_t i = 0; i < io_lanes->count; i++) {
        const struct tun_lane *lane = &io_lanes->lanes[i];

        for (size_t j = 0; lane->model == model && j < lane->stages; j++) {
            const struct tun_stop *s = &lane->stops[j];
            double handoff_ns = unit == s->first ? tun_handoff_ns(p, unit) : 0, ns;
            size_t at;

            if (unit < s->first || unit >= s->first + s->units) {
                continue;
            }
            at = (size_t)(s->unit_ns - io_lanes->unit_ns) + unit - s->first;
            ns = cost * tun_cell_at(&p->costs, s->ep, 1, unit)->ns;
            io_lanes->unit_ns[at] = handoff_ns + ns;
            io_lanes->piece_ns[at] = handoff_ns + ns * longest;
        }
    }
}

/* ---- deadlines ---- */

static bool share_a_seat(const struct tun_stop *a, const struct tun_stop *b)
{
    return tun_stop_on(a, b->seat) || tun_stop_on(b, a->seat);
}

/* Return: the longest unit of other models, or of other units of this one, on the stop's seats. */
static double longest_beside(const struct tun_lanes *l, size_t model, const struct tun_stop *stop)
{
    double longest_ns = 0;

    for (size_t i = 0; i < l->count; i++) {
        for (size_t j = 0; j < l->lanes[i].stages; j++) {
            const struct tun_stop *s = &l->lanes[i].stops[j];
            bool same = l->lanes[i].model == model && s->first == stop->first;
            size_t longest;

            if (share_a_seat(s, stop) && !same) {
                tun_stop_ns(s, &longest);
                longest_ns = base_max(longest_ns, tun_piece_ns(s, longest));
            }
        }
    }
    return longest_ns;
}

void tun_lanes_due(const struct tun_wish *wishes, struct tun_lanes *io_lanes)
{
    for (size_t i = 0; i < io_lanes->count; i++) {
        struct tun_lane *lane = &io_lanes->lanes[i];
        double need[TUN_CHANGES_MAX + 1], sum = 0;

        for (size_t j = 0; j < lane->stages; j++) {
            need[j] = tun_stop_ns(&lane->stops[j], NULL) +
                      longest_beside(io_lanes, lane->model, &lane->stops[j]);
            sum += need[j];
        }
        for (size_t j = 0; j < lane->stages; j++) {
            lane->stops[j].deadline_ns = wishes[lane->model].deadline_ns * need[j] / sum;
        }
    }
}
