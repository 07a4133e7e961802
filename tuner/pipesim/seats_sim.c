/* SPDX-License-Identifier: Apache-2.0 */
#include "tuner/pipesim/seats_sim.h"

#include "base/base.h"

#define NEVER INFINITY

/* A lane's stop: its frames, of which the first may have begun. */
struct sitter {
    const struct tun_lane *lane;
    const struct tun_stop *stop;
    struct sitter *next;                 /* of the frame's way */
    double due_after_ns;                 /* of its release; 0: never */
    double released_ns[PSIM_WINDOW_MAX]; /* its frames, a ring */
    size_t first, count, unit;
    double since_ns;  /* it waits since then */
    double left_ns;   /* of the first frame, if all units take their times */
    double begun_ns;  /* of the unit, that pieces before have done */
    double v, weight; /* of the tag */
    bool sits;
};

struct seat_now {
    struct sitter **sitters; /* [count], of sim.listed */
    size_t count;
    struct sitter *sits;
    double end_ns, began_ns; /* of its unit, or piece of one */
};

struct model_now {
    double next_ns, release_ns;
    size_t under_way, waiting; /* waiting: sitters that wait or sit */
    size_t lanes, first_lane;
};

struct sim {
    const struct psim_seats *s;
    struct psim_seen *seen;
    struct sitter *sitters, **listed; /* owned */
    struct seat_now *seats;           /* owned */
    struct model_now models[TUN_MIX_MAX];
    uint64_t *dealt; /* of each lane, owned */
    size_t sitter_count;
    uint64_t random, sent;
    double now, half_ns;
};

static double part(struct sim *x)
{
    return (double)(base_splitmix64(&x->random) >> 11) * 0x1p-53;
}

static const struct tun_wish *wish_of(const struct sim *x, const struct sitter *t)
{
    return &x->s->wishes[t->lane->model];
}

/* Return: what it runs next, until others may go. The longest piece of a unit comes first. */
static double next_ns(const struct sitter *t)
{
    return base_min(tun_piece_ns(t->stop, t->unit), t->stop->unit_ns[t->unit] - t->begun_ns);
}

/* ---- who goes first ---- */

static unsigned top_level(const struct sim *x)
{
    unsigned top = 0;

    for (size_t m = 0; m < x->s->models; m++) {
        top = x->models[m].waiting > 0 ? base_max(top, tun_wish_level(&x->s->wishes[m])) : top;
    }
    return top;
}

static unsigned rank(const struct sim *x, const struct sitter *t, unsigned top)
{
    const struct tun_wish *w = wish_of(x, t);

    return !t->sits && tun_wish_level(w) < top && x->s->floor > 0 &&
                   (x->now - t->since_ns) * x->s->floor >= next_ns(t)
               ? UINT_MAX
               : w->class;
}

static double due_ns(const struct sitter *t)
{
    return t->due_after_ns > 0 ? t->released_ns[t->first] + t->due_after_ns : NEVER;
}

static double tag(const struct sitter *t)
{
    return t->v + t->left_ns / t->weight;
}

static bool goes_before(const struct sim *x, const struct sitter *a, const struct sitter *b,
                        unsigned top)
{
    unsigned rank_a = rank(x, a, top), rank_b = rank(x, b, top);
    bool tags = x->s->arrivals == PSIM_BACKLOG;

    if (!tags && rank_a != rank_b) {
        return rank_a > rank_b;
    }
    if (!tags && due_ns(a) != due_ns(b)) {
        return due_ns(a) < due_ns(b);
    }
    return tag(a) < tag(b);
}

/* ---- seats ---- */

static void pick(struct sim *x, struct seat_now *seat)
{
    unsigned top = top_level(x);
    struct sitter *best = seat->sits;

    for (size_t i = 0; i < seat->count; i++) {
        struct sitter *t = seat->sitters[i];

        if (t->count > 0 && t != best && (!best || goes_before(x, t, best, top))) {
            best = t;
        }
    }
    if (seat->sits && best != seat->sits) {
        seat->sits->sits = false;
        seat->sits->since_ns = x->now;
    }
    seat->sits = best;
    if (best) {
        best->sits = true;
        seat->began_ns = x->now;
        seat->end_ns = x->now + next_ns(best) * (x->s->vary ? part(x) : 1);
    } else {
        seat->end_ns = NEVER;
    }
}

static void begin_wait(struct sim *x, struct sitter *t)
{
    double lowest = INFINITY;

    t->since_ns = x->now;
    t->unit = 0;
    t->begun_ns = 0;
    t->left_ns = tun_stop_ns(t->stop, NULL);
    x->models[t->lane->model].waiting++;
    for (size_t i = 0; i < x->seats[t->stop->seat].count; i++) {
        const struct sitter *other = x->seats[t->stop->seat].sitters[i];

        lowest = other != t && other->count > 0 ? base_min(lowest, other->v) : lowest;
    }
    t->v = isfinite(lowest) ? base_max(t->v, lowest) : t->v;
}

static void come(struct sim *x, struct sitter *t, double released_ns)
{
    struct seat_now *seat = &x->seats[t->stop->seat];

    t->released_ns[(t->first + t->count++) % PSIM_WINDOW_MAX] = released_ns;
    if (t->count == 1) {
        begin_wait(x, t);
        if (!seat->sits) {
            pick(x, seat);
        }
    }
}

static void leave(struct sim *x, struct sitter *t, double released_ns)
{
    struct model_now *m = &x->models[t->lane->model];
    struct psim_seen *seen = x->seen;
    size_t model = t->lane->model;
    double took_ns = x->now - released_ns, most_ns = x->s->wishes[model].deadline_ns;

    if (t->next) {
        come(x, t->next, released_ns);
        return;
    }
    m->under_way--;
    seen->done[model]++;
    seen->done_then[model] += x->sent >= x->s->frames / 2 && x->sent < x->s->frames;
    seen->worst_ns[model] = base_max(seen->worst_ns[model], took_ns);
    seen->late[model] += most_ns > 0 && took_ns > most_ns * (1 + 1e-9);
}

static void end_unit(struct sim *x, struct seat_now *seat)
{
    struct sitter *t = seat->sits;
    struct model_now *m = &x->models[t->lane->model];
    double released_ns = t->released_ns[t->first];

    x->seen->busy_ns += x->now - seat->began_ns;
    t->v += (x->now - seat->began_ns) / t->weight;
    t->left_ns -= next_ns(t);
    t->begun_ns += next_ns(t);
    if (t->begun_ns >= t->stop->unit_ns[t->unit] * (1 - 1e-9)) {
        t->unit++;
        t->begun_ns = 0;
    }
    if (t->unit < t->stop->units) {
        pick(x, seat);
        return;
    }
    t->first = (t->first + 1) % PSIM_WINDOW_MAX;
    t->count--;
    t->sits = false;
    m->waiting--;
    seat->sits = NULL;
    if (t->count > 0) {
        begin_wait(x, t);
    }
    pick(x, seat);
    leave(x, t, released_ns);
}

/* ---- frames ---- */

static bool may_send(const struct sim *x, size_t m)
{
    return x->sent < x->s->frames && x->s->times[m] > 0 && x->models[m].lanes > 0 &&
           x->models[m].under_way < x->s->window;
}

static void send(struct sim *x, size_t model)
{
    struct model_now *m = &x->models[model];
    double period_ns = (double)BASE_NS_PER_S / x->s->wishes[model].rate,
           gap_ns = period_ns / x->s->times[model];
    size_t lane = m->first_lane + tun_lane_next(&x->s->lanes->lanes[m->first_lane], m->lanes,
                                                &x->dealt[m->first_lane]);
    struct sitter *first = x->sitters;

    m->release_ns =
        x->s->arrivals == PSIM_BACKLOG ? x->now : base_max(x->now, m->release_ns + period_ns);
    if (x->s->arrivals == PSIM_SPORADIC) {
        gap_ns -= log(1 - part(x)) * gap_ns / 2;
    }
    m->next_ns = x->s->arrivals == PSIM_BACKLOG ? x->now : x->now + gap_ns;
    m->under_way++;
    x->sent++;
    x->half_ns = x->sent <= x->s->frames / 2 ? x->now : x->half_ns;
    x->seen->ns = x->now - x->half_ns;
    while (first->lane != &x->s->lanes->lanes[lane]) {
        first++;
    }
    come(x, first, m->release_ns);
}

/* ---- runs that are hard on deadlines ---- */

static size_t up_to(uint64_t *random, size_t most)
{
    return (size_t)(base_splitmix64(random) % (most + 1));
}

static void shuffle(uint64_t *random, size_t *ret, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t j = up_to(random, i);

        ret[i] = ret[j];
        ret[j] = i;
    }
}

static unsigned lowest_class_with_deadline(const struct psim_seats *s)
{
    unsigned lowest = UINT_MAX;

    for (size_t m = 0; m < s->models; m++) {
        lowest = s->wishes[m].deadline_ns > 0 ? base_min(lowest, s->wishes[m].class) : lowest;
    }
    return lowest;
}

void psim_seats_draw(uint64_t *io_random, struct psim_seats *io_run)
{
    const struct tun_lane *blocker =
        &io_run->lanes->lanes[up_to(io_random, io_run->lanes->count - 1)];
    bool together = up_to(io_random, 2) > 0, too_many = up_to(io_random, 2) == 0;
    unsigned lowest = lowest_class_with_deadline(io_run);
    double before_ns = 0;
    size_t longest;

    io_run->window = 32;
    io_run->vary = up_to(io_random, 3) == 0;
    io_run->arrivals = up_to(io_random, 3) == 0 ? PSIM_SPORADIC : PSIM_EARLIEST;
    io_run->seed = base_splitmix64(io_random);
    tun_stop_ns(&blocker->stops[0], &longest);
    for (size_t u = 0; u < longest; u++) {
        before_ns += blocker->stops[0].unit_ns[u];
    }
    for (size_t m = 0; m < io_run->models; m++) {
        const struct tun_wish *w = &io_run->wishes[m];

        io_run->weight[m] = 1 + (double)up_to(io_random, 9);
        io_run->dealt[m] = up_to(io_random, 20);
        io_run->times[m] = up_to(io_random, 5) == 0 ? 0 : 1;
        if (too_many && w->class <= lowest && up_to(io_random, 1)) {
            io_run->times[m] = 10;
        }
        io_run->first_ns[m] = before_ns + 1;
        if (!together) {
            io_run->first_ns[m] =
                (double)BASE_NS_PER_S / w->rate / 1000 * (double)up_to(io_random, 1000);
        } else if (m == blocker->model) {
            io_run->first_ns[m] = 0;
        }
    }
    shuffle(io_random, io_run->order, io_run->models);
}

/* ---- the run ---- */

static void seat_sitters(struct sim *x)
{
    const struct tun_lanes *l = x->s->lanes;
    struct sitter *t = x->sitters, **at = x->listed;

    for (size_t i = 0; i < l->count; i++) {
        const struct tun_lane *lane = &l->lanes[i];
        struct model_now *m = &x->models[lane->model];
        double due = 0;

        m->first_lane = m->lanes == 0 ? i : m->first_lane;
        m->lanes++;
        for (size_t j = 0; j < lane->stages; j++, t++) {
            due += lane->stops[j].deadline_ns;
            t->lane = lane;
            t->stop = &lane->stops[j];
            t->due_after_ns = due;
            t->weight = x->s->weight[lane->model] * lane->share * tun_stop_ns(t->stop, NULL);
            t->next = j + 1 < lane->stages ? t + 1 : NULL;
        }
    }
    for (size_t i = 0; i < l->seats; i++) {
        x->seats[i] = (struct seat_now){.sitters = at, .end_ns = NEVER};
        for (t = x->sitters; t < x->sitters + x->sitter_count; t++) {
            if (t->stop->seat == i) {
                *at++ = t;
                x->seats[i].count++;
            }
        }
    }
    for (size_t m = 0; m < x->s->models; m++) {
        struct model_now *now = &x->models[m];

        now->next_ns = x->s->first_ns[m];
        now->release_ns = -INFINITY;
        for (uint64_t i = 0; now->lanes > 0 && i < x->s->dealt[m]; i++) {
            tun_lane_next(&l->lanes[now->first_lane], now->lanes, &x->dealt[now->first_lane]);
        }
    }
}

/* Does what comes next. Return: false: nothing does. */
static bool step(struct sim *x)
{
    struct seat_now *seat = NULL;
    size_t sender = x->s->models;
    double next = NEVER;

    for (size_t i = 0; i < x->s->lanes->seats; i++) {
        if (x->seats[i].end_ns < next) {
            seat = &x->seats[i];
            next = seat->end_ns;
        }
    }
    for (size_t i = 0; i < x->s->models; i++) {
        size_t m = x->s->order[i];

        /* a frame that comes when a unit ends is just too late for what begins then */
        if (may_send(x, m) && base_max(x->models[m].next_ns, x->now) < next) {
            sender = m;
            next = base_max(x->models[m].next_ns, x->now);
        }
    }
    x->now = next < NEVER ? next : x->now;
    if (sender < x->s->models) {
        send(x, sender);
    } else if (seat) {
        end_unit(x, seat);
    }
    return next < NEVER;
}

int psim_seats_run(const struct psim_seats *s, struct psim_seen *io_seen)
{
    struct sim x = {.s = s, .seen = io_seen, .random = s->seed};
    int r = 0;

    for (size_t i = 0; i < s->lanes->count; i++) {
        x.sitter_count += s->lanes->lanes[i].stages;
    }
    memset(io_seen->done_then, 0, sizeof(io_seen->done_then));
    x.sitters = calloc(x.sitter_count + 1, sizeof(*x.sitters));
    x.listed = calloc(x.sitter_count + 1, sizeof(struct sitter *));
    x.seats = calloc(s->lanes->seats, sizeof(*x.seats));
    x.dealt = calloc(s->lanes->count + 1, sizeof(*x.dealt));
    if (x.sitters && x.listed && x.seats && x.dealt) {
        seat_sitters(&x);
        while (step(&x)) {
        }
    } else {
        r = -ENOMEM;
    }
    free(x.sitters);
    free(x.listed);
    free(x.seats);
    free(x.dealt);
    return r;
}
