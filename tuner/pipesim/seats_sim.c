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
    double since_ns;         /* it waits since then */
    double left_ns;          /* of the first frame, if all units take their times */
    double begun_ns;         /* of the unit, that pieces before have done */
    double v, weight;        /* of the tag */
    size_t width, row;       /* how many seats it takes; the first seat of its row */
    bool sits, met;          /* met: in this look at those that wait */
    double end_ns, began_ns; /* of its unit, or piece of one, while it sits */
};

struct seat_now {
    struct sitter **sitters; /* [count], of sim.listed: of the row that begins here */
    size_t count;
    struct sitter *sits;
    bool kept;
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

static bool on(const struct sitter *t, size_t seat)
{
    return tun_stop_on(t->stop, seat);
}

static void begin_unit(struct sim *x, struct sitter *t)
{
    t->began_ns = x->now;
    t->end_ns = x->now + next_ns(t) * (x->s->vary ? part(x) : 1);
}

static void sit_down(struct sim *x, struct sitter *t)
{
    for (size_t i = 0; i < t->width; i++) {
        x->seats[t->stop->seat + i].sits = t;
    }
    t->sits = true;
    begin_unit(x, t);
}

static void get_up(struct sim *x, struct sitter *t)
{
    for (size_t i = 0; i < t->width; i++) {
        x->seats[t->stop->seat + i].sits = NULL;
    }
    t->sits = false;
    t->since_ns = x->now;
}

/* Return: how many of its seats are free, and kept for nobody. */
static size_t finds(const struct sim *x, const struct sitter *t)
{
    size_t count = 0;

    for (size_t i = 0; i < t->width; i++) {
        const struct seat_now *seat = &x->seats[t->stop->seat + i];

        count += !seat->sits && !seat->kept;
    }
    return count;
}

/* Return: it goes before everyone who sits on its seats. */
static bool is_next(const struct sim *x, const struct sitter *t, unsigned top)
{
    bool next = true;

    for (size_t i = 0; i < t->width; i++) {
        const struct sitter *holder = x->seats[t->stop->seat + i].sits;

        next = next && (!holder || goes_before(x, t, holder, top));
    }
    return next;
}

static bool waits(const struct sitter *t)
{
    return t->count > 0 && !t->sits;
}

/* Return: the first of those that wait whom a free seat concerns and that this look has not met. */
static struct sitter *first_of(const struct sim *x, const struct seat_now *row, unsigned top)
{
    struct sitter *best = NULL;

    for (size_t i = 0; i < row->count; i++) {
        struct sitter *t = row->sitters[i];

        if (waits(t) && !t->met && finds(x, t) > 0 && (!best || goes_before(x, t, best, top))) {
            best = t;
        }
    }
    return best;
}

/* As in pipeline/seats.c. */
static void let_sit(struct sim *x, struct seat_now *row)
{
    unsigned top = top_level(x);
    struct sitter *t;

    for (size_t i = 0; i < row->count; i++) {
        t = row->sitters[i];
        t->met = false;
        for (size_t j = 0; j < t->width; j++) {
            x->seats[t->stop->seat + j].kept = false;
        }
    }
    while ((t = first_of(x, row, top)) != NULL) {
        t->met = true;
        if (finds(x, t) == t->width) {
            sit_down(x, t);
            continue;
        }
        for (size_t i = 0; is_next(x, t, top) && i < t->width; i++) {
            x->seats[t->stop->seat + i].kept = true;
        }
    }
}

/* Return: somebody goes before it, who sits on one of its seats. */
static bool late(const struct sim *x, const struct seat_now *row, const struct sitter *t)
{
    unsigned top = top_level(x);

    for (size_t i = 0; i < row->count; i++) {
        const struct sitter *w = row->sitters[i];

        if (waits(w) && (on(w, t->stop->seat) || on(t, w->stop->seat)) && is_next(x, w, top)) {
            return true;
        }
    }
    return false;
}

static void begin_wait(struct sim *x, struct sitter *t)
{
    const struct seat_now *row = &x->seats[t->row];
    double lowest = INFINITY;

    t->since_ns = x->now;
    t->unit = 0;
    t->begun_ns = 0;
    t->left_ns = tun_stop_ns(t->stop, NULL);
    x->models[t->lane->model].waiting++;
    for (size_t i = 0; i < row->count; i++) {
        const struct sitter *other = row->sitters[i];

        lowest = other != t && other->count > 0 ? base_min(lowest, other->v) : lowest;
    }
    t->v = isfinite(lowest) ? base_max(t->v, lowest) : t->v;
}

static void come(struct sim *x, struct sitter *t, double released_ns)
{
    t->released_ns[(t->first + t->count++) % PSIM_WINDOW_MAX] = released_ns;
    if (t->count == 1) {
        begin_wait(x, t);
        let_sit(x, &x->seats[t->row]);
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

static void end_unit(struct sim *x, struct sitter *t)
{
    struct seat_now *row = &x->seats[t->row];
    double released_ns = t->released_ns[t->first], took_ns = x->now - t->began_ns;

    x->seen->busy_ns += took_ns * (double)t->width;
    t->v += took_ns / t->weight;
    t->left_ns -= next_ns(t);
    t->begun_ns += next_ns(t);
    if (t->begun_ns >= t->stop->unit_ns[t->unit] * (1 - 1e-9)) {
        t->unit++;
        t->begun_ns = 0;
    }
    if (t->unit < t->stop->units && !late(x, row, t)) {
        begin_unit(x, t);
        return;
    }
    get_up(x, t);
    if (t->unit < t->stop->units) {
        let_sit(x, row);
        return;
    }
    t->first = (t->first + 1) % PSIM_WINDOW_MAX;
    t->count--;
    x->models[t->lane->model].waiting--;
    if (t->count > 0) {
        begin_wait(x, t);
    }
    let_sit(x, row);
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

/* ---- the run ---- */

/* A narrow stop's row is that of a wide one on its seat. */
static void seat_rows(struct sim *x)
{
    struct sitter *end = x->sitters + x->sitter_count;

    for (struct sitter *t = x->sitters; t < end; t++) {
        t->width = tun_stop_width(t->stop);
        t->row = t->stop->seat;
        for (const struct sitter *wide = x->sitters; wide < end; wide++) {
            if (wide->stop->width > 1 && on(wide, t->stop->seat)) {
                t->row = wide->stop->seat;
            }
        }
    }
}

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
    seat_rows(x);
    for (size_t i = 0; i < l->seats; i++) {
        x->seats[i] = (struct seat_now){.sitters = at};
        for (t = x->sitters; t < x->sitters + x->sitter_count; t++) {
            if (t->row == i) {
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
    struct sitter *ends = NULL;
    size_t sender = x->s->models;
    double next = NEVER;

    for (size_t i = 0; i < x->s->lanes->seats; i++) {
        if (x->seats[i].sits && x->seats[i].sits->end_ns < next) {
            ends = x->seats[i].sits;
            next = ends->end_ns;
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
    } else if (ends) {
        end_unit(x, ends);
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
