/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/solve/promise.h"

#include "base/base.h"

#define ROUNDS_MAX 8 /* of splitting deadlines */

static const double PARTS[] = {1, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5};
#define LIMITS 4u     /* of the time that routes take, between the deadline and the tightest */
#define STEPS 6u      /* that find the tightest */
#define TIGHTEST 0.01 /* that is looked for, of the deadline */

struct attempt {
    const struct tun_wish *wishes;
    size_t count, changes;
    enum tun_share objective;
    double part, floor;
    double room; /* least that a fair mix gives of each wish; 0: any */
    bool even;
};

/* @sooner: as soon as it can be, behind all stops but the last; else in proportion to R. Return:
 * whether any stop has another deadline now. */
static bool split(const struct tun_wish *wishes, struct tun_lanes *l, bool sooner)
{
    bool other = false;

    for (size_t i = 0; i < l->count; i++) {
        struct tun_lane *lane = &l->lanes[i];
        double all_ns = wishes[lane->model].deadline_ns, left_ns = all_ns, sum = 0;

        for (size_t j = 0; j < lane->stages; j++) {
            sum += lane->stops[j].bound_ns;
        }
        for (size_t j = 0; all_ns > 0 && isfinite(sum) && j < lane->stages; j++) {
            struct tun_stop *s = &lane->stops[j];
            double ns = j + 1 == lane->stages ? left_ns
                        : sooner              ? s->bound_ns
                                              : all_ns * s->bound_ns / sum;

            other = other || fabs(ns - s->deadline_ns) > 1e-6 * all_ns;
            s->deadline_ns = ns;
            left_ns -= ns;
        }
    }
    return other;
}

static double sum_of_bounds(const struct tun_answer *a)
{
    double sum = 0;

    for (size_t m = 0; m < TUN_MIX_MAX; m++) {
        sum += a->bound_ns[m];
    }
    return sum;
}

/* Return: 0 or -ENOMEM. @before: room for the lanes. */
static int tighten(const struct tun_wish *wishes, size_t count, double floor,
                   struct tun_lanes *io_lanes, struct tun_lane *before,
                   struct tun_answer *io_answer)
{
    bool better = true;
    int r = 0;

    for (int round = 0; r == 0 && better && round < ROUNDS_MAX; round++) {
        struct tun_answer answer = {0};

        memcpy(before, io_lanes->lanes, io_lanes->count * sizeof(*before));
        better = split(wishes, io_lanes, true);
        r = better ? tun_admit(wishes, count, io_lanes, floor, &answer) : 0;
        better = r == 0 && better && answer.refusal == TUN_ADMITTED &&
                 sum_of_bounds(&answer) < sum_of_bounds(io_answer);
        if (better) {
            *io_answer = answer;
        } else {
            memcpy(io_lanes->lanes, before, io_lanes->count * sizeof(*before));
        }
    }
    return r;
}

int tun_promise_admit(const struct tun_wish *wishes, size_t count, double floor,
                      struct tun_lanes *io_lanes, struct tun_answer *ret_answer)
{
    base_autofree struct tun_lane *before = calloc(io_lanes->count + 1, sizeof(*before));
    struct tun_answer answer;
    int r = before ? 0 : -ENOMEM;

    tun_lanes_due(wishes, io_lanes);
    r = r ? r : tun_admit(wishes, count, io_lanes, floor, ret_answer);
    answer = *ret_answer;
    for (int round = 0; r == 0 && answer.refusal != TUN_ADMITTED && round < ROUNDS_MAX &&
                        split(wishes, io_lanes, false);
         round++) {
        r = tun_admit(wishes, count, io_lanes, floor, &answer);
    }
    if (r == 0 && answer.refusal == TUN_ADMITTED) {
        *ret_answer = answer;
        r = tighten(wishes, count, floor, io_lanes, before, ret_answer);
    }
    return r;
}

/* Has the unit that runs too long run in twice as many pieces. @ret: that is possible. Return: 0 or
 * -ENOMEM. */
static int cut_further(const struct attempt *a, struct tun_promise *p, bool *ret)
{
    const struct tun_answer *of = &p->answer;
    const uint8_t *most = a->wishes[of->model].cut_most;
    struct tun_cut *c = p->cuts;

    if (of->refusal != TUN_TOO_LONG_A_UNIT || !most || a->wishes[of->model].width > 1) {
        return 0;
    }
    while (c < p->cuts + p->cut_count && (c->model != of->model || c->unit != of->unit)) {
        c++;
    }
    if (c == p->cuts + p->cut_count) {
        if (!base_room(&p->cuts, sizeof(*p->cuts), p->cut_count, &p->cut_room)) {
            return -ENOMEM;
        }
        c = &p->cuts[p->cut_count];
        *c = (struct tun_cut){.model = of->model, .unit = of->unit, .pieces = 1};
    }
    if (2 * c->pieces > most[of->unit]) {
        return 0;
    }
    p->cut_count += c->pieces == 1;
    c->pieces *= 2;
    c->late = of->late;
    tun_lanes_cut(a->wishes, &p->lanes, of->model, of->unit, c->pieces);
    *ret = true;
    return 0;
}

static int by_unit(const void *a, const void *b)
{
    const struct tun_cut *x = a, *y = b;

    return x->model != y->model ? (x->model > y->model) - (x->model < y->model)
                                : (x->unit > y->unit) - (x->unit < y->unit);
}

static int try(const struct attempt *a, struct tun_promise *ret)
{
    bool again;
    int r = tun_mix_solve(a->wishes, a->count, a->objective, a->changes, a->part, &ret->mix);

    if (r == 0 && ret->mix.objective == TUN_FAIR && ret->mix.lambda < a->room) {
        ret->answer.refusal = TUN_TOO_MUCH_LOAD;
        return 0;
    }
    r = r ? r : tun_lanes_init(a->wishes, &ret->mix, a->even, &ret->lanes);
    do {
        r = r ? r : tun_promise_admit(a->wishes, a->count, a->floor, &ret->lanes, &ret->answer);
        again = false;
        r = r ? r : cut_further(a, ret, &again);
    } while (again);
    if (ret->cut_count > 1) {
        qsort(ret->cuts, ret->cut_count, sizeof(*ret->cuts), by_unit);
    }
    return r;
}

/* Keeps @other, of which @r is what making it returned, in place of @io if it is admitted. */
static void take_admitted(int r, struct tun_promise *other, struct tun_promise *io)
{
    bool better = r == 0 && other->answer.refusal == TUN_ADMITTED;
    struct tun_promise keep = better ? *other : *io;

    tun_promise_deinit(better ? io : other);
    *io = keep;
}

static void limit(struct tun_wish *wishes, size_t count, double within)
{
    for (size_t m = 0; m < count; m++) {
        wishes[m].within = within;
    }
}

/* Return: what routes that take at most this part of deadlines give of each wish; 0: some model has
 * no such route, or out of memory. */
static double given(const struct attempt *a, struct tun_wish *wishes, double within)
{
    struct tun_mix mix;
    double lambda;

    limit(wishes, a->count, within);
    lambda = tun_mix_solve(wishes, a->count, TUN_FAIR, a->changes, 1, &mix) == 0 ? mix.lambda : 0;
    for (size_t i = 0; i < mix.count; i++) {
        if (!tun_route_keeps(&wishes[mix.dealt[i].model], &mix.dealt[i].route)) {
            lambda = 0;
        }
    }
    tun_mix_deinit(&mix);
    return lambda;
}

/* Return: the least part of deadlines that routes can keep to with room for all rates, half of what
 * there is, which @io is told; 0: none. */
static double tightest(struct attempt *io, struct tun_wish *wishes)
{
    double all = given(io, wishes, 0), least = TIGHTEST, most = 1;

    io->room = sqrt(all);
    if (all < 1 || given(io, wishes, 1) < io->room) {
        return 0;
    }
    for (unsigned i = 0; i < STEPS; i++) {
        double mid = sqrt(least * most);
        bool room = given(io, wishes, mid) >= io->room;

        least = room ? least : mid;
        most = room ? mid : most;
    }
    return most;
}

/* Tries seats of equal loads, then frames that stay on one kind of core, then less of the cores'
 * time, until one is admitted. @first: of these. */
static int try_all(struct attempt *a, size_t first, struct tun_promise *io)
{
    size_t parts = a->objective == TUN_FAIR ? 1 : base_array_count(PARTS), changes = a->changes;
    int r = 0;

    for (size_t i = first; r == 0 && io->answer.refusal != TUN_ADMITTED && i < 4 * parts; i++) {
        struct tun_promise other = TUN_PROMISE_NULL;

        a->even = i % 2;
        a->changes = i % 4 < 2 ? changes : 0;
        a->part = PARTS[i / 4];
        r = try(a, &other);
        take_admitted(r, &other, io);
    }
    a->changes = changes;
    return r;
}

/* The first of the plans of models of these widths whose deadlines hold; else the best of the
 * tightest routes that leave all rates room, or of all routes if there are none. */
static int search(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                  size_t changes, double floor, struct tun_promise *ret)
{
    struct tun_wish limited[TUN_MIX_MAX];
    struct attempt a = {.wishes = limited,
                        .count = count,
                        .changes = changes,
                        .objective = objective,
                        .part = 1,
                        .floor = floor};
    double least;
    int r;

    *ret = TUN_PROMISE_NULL;
    if (count > TUN_MIX_MAX) {
        return -EINVAL;
    }
    memcpy(limited, wishes, count * sizeof(*limited));
    r = try(&a, ret);
    r = r ? r : try_all(&a, 1, ret);
    least = r == 0 && ret->answer.refusal != TUN_ADMITTED ? tightest(&a, limited) : 0;
    for (size_t i = 0; r == 0 && least > 0 && i < LIMITS; i++) {
        limit(limited, count, pow(least, (double)i / (LIMITS - 1)));
        r = try_all(&a, 0, ret);
    }
    if (r == 0 && least > 0 && ret->answer.refusal != TUN_ADMITTED) {
        tun_promise_deinit(ret);
        a.even = false;
        a.part = 1;
        a.room = 0;
        r = try(&a, ret);
    }
    for (size_t m = 0; m < count; m++) {
        ret->width[m] = base_max(wishes[m].width, (size_t)1);
    }
    return r;
}

/* Has a model take twice as many cores at once, or as many as others do. A width that was asked for
 * stays. Return: whether that is possible. */
static bool widen(const struct tun_wish *asked, struct tun_wish *io_wishes, size_t count,
                  size_t model)
{
    size_t width = base_max(2 * io_wishes[model].width, (size_t)2);
    bool possible = true;

    for (size_t m = 0; m < count; m++) {
        width = io_wishes[model].width <= 1 ? base_max(width, io_wishes[m].width) : width;
    }
    for (size_t m = 0; m < count; m++) {
        if (m == model || io_wishes[m].width > 1) {
            possible = possible && (asked[m].width <= 1 || asked[m].width == width);
            io_wishes[m].width = width;
            possible = possible && tun_has_ep(&io_wishes[m]);
        }
    }
    return possible;
}

int tun_promise_make(const struct tun_wish *wishes, size_t count, enum tun_share objective,
                     size_t changes, double floor, struct tun_promise *ret)
{
    struct tun_wish wide[TUN_MIX_MAX];
    int r = search(wishes, count, objective, changes, floor, ret);
    size_t late = ret->answer.late;

    if (r == 0) {
        memcpy(wide, wishes, count * sizeof(*wishes));
    }
    while (r == 0 && ret->answer.refusal != TUN_ADMITTED && widen(wishes, wide, count, late)) {
        struct tun_promise other;

        r = search(wide, count, objective, changes, floor, &other);
        late = other.answer.late;
        take_admitted(r, &other, ret);
    }
    return r;
}

void tun_promise_deinit(struct tun_promise *p)
{
    tun_lanes_deinit(&p->lanes);
    tun_mix_deinit(&p->mix);
    free(p->cuts);
    *p = TUN_PROMISE_NULL;
}

/* ---- a refusal, for people ---- */

const char *tun_refusal_name(enum tun_refusal refusal)
{
    static const char *const names[] = {[TUN_TOO_MUCH_LOAD] = "load",
                                        [TUN_TOO_LONG_A_UNIT] = "unit",
                                        [TUN_TOO_MUCH_DEMAND] = "demand"};

    return names[refusal];
}

size_t tun_seat_ep(const struct tun_problem *p, size_t *io_seat)
{
    size_t ep = 0;

    while (*io_seat >= p->eps[ep].cores) {
        *io_seat -= p->eps[ep++].cores;
    }
    return ep;
}

const char *tun_refusal_text(const struct tun_answer *a, const char *seat, const char *late,
                             const char *model, char ret[TUN_REFUSAL_TEXT_MAX])
{
    ret[0] = '\0';
    base_append(ret, TUN_REFUSAL_TEXT_MAX, "Frames of %s may be late on %s: ", late, seat);
    if (a->refusal == TUN_TOO_LONG_A_UNIT) {
        base_append(ret, TUN_REFUSAL_TEXT_MAX, "unit %zu of %s runs too long.", a->unit, model);
    } else if (a->refusal == TUN_TOO_MUCH_LOAD) {
        base_append(ret, TUN_REFUSAL_TEXT_MAX, "it has more to do than it can, most of it %s.",
                    model);
    } else if (a->late == a->model) {
        base_append(ret, TUN_REFUSAL_TEXT_MAX, "they take most of the time themselves.");
    } else {
        base_append(ret, TUN_REFUSAL_TEXT_MAX, "too much is due before them, most of it %s.",
                    model);
    }
    return ret;
}
