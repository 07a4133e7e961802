/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/seats.h"

#include <linux/futex.h>

#include "pipeline/ring.h"

#define CREDIT_NS (20.0 * (double)BASE_NS_PER_MS)
#define BURST_NS (20 * BASE_NS_PER_MS)   /* that a model with a max_share may save up */
#define UNIT_NS ((double)BASE_NS_PER_MS) /* where it is unknown */
#define LEVELS (2 * (PL_CLASS_MAX + 1))  /* classes, each without and with deadlines */
#define STARVING ((int)PL_CLASS_MAX + 1)
#define TURN_NS (20.0 * (double)BASE_NS_PER_MS)

TAILQ_HEAD(sitters, pl_sitter);

struct pl_seats {
    pthread_mutex_t lock;
    /* guarded by it */
    double cores, floor;
    double v_most[PL_SEAT_MAX];           /* of any client so far */
    uint16_t levels[PL_SEAT_MAX][LEVELS]; /* how many of each sit there or wait */
    uint64_t fed_ns[PL_SEAT_MAX];         /* when one that starved sat there last */
    unsigned walk;                        /* number of this look at those that wait */
    struct sitters seated, waiting;
    struct pl_sitter *holder[PL_SEAT_MAX];
    _Atomic uint32_t crowd[PL_SEAT_MAX]; /* who sits there or waits; read without the lock */
    unsigned kept[PL_SEAT_MAX];          /* walk in which the seat was kept for a wider team */
    struct pl_sitter *woken;             /* to be woken when the lock is free */
};

struct pl_seats *pl_seats_new(size_t cores, double floor)
{
    struct pl_seats *s = calloc(1, sizeof(*s));

    if (s) {
        pthread_mutex_init(&s->lock, NULL);
        s->cores = (double)base_max(cores, (size_t)1);
        s->floor = floor;
        TAILQ_INIT(&s->seated);
        TAILQ_INIT(&s->waiting);
    }
    return s;
}

struct pl_seats *pl_seats_free(struct pl_seats *s)
{
    if (s) {
        pthread_mutex_destroy(&s->lock);
    }
    free(s);
    return NULL;
}

/* ---- clients ---- */

void pl_client_init(struct pl_client *c, struct pl_seats *seats)
{
    *c = (struct pl_client){.seats = seats, .claim = PL_CLAIM_NULL};
}

uint64_t pl_client_release(struct pl_client *c, uint64_t came_ns, uint64_t now_ns, size_t in_flight)
{
    uint64_t next = base_max(came_ns, c->next_ns), period = c->claim.period_ns;
    /* those computed early, as nobody else wanted the core, are no debt */
    uint64_t most = now_ns + PL_EARLY_NS + (in_flight + 1) * period;

    c->next_ns = base_max(c->next_ns, base_min(next + period, most));
    return next - came_ns > PL_EARLY_NS ? next - PL_EARLY_NS : came_ns;
}

/* Charges what a team that sits has used since then. */
static void charge(struct pl_seats *s, struct pl_sitter *t, uint64_t now_ns)
{
    struct pl_client *c = t->client;
    double ns = (double)(now_ns - base_min(now_ns, t->since_ns));

    t->since_ns = now_ns;
    t->want.left_ns = base_max(t->want.left_ns - ns, 0.0);
    for (size_t i = 0; i < t->width; i++) {
        double *v = &c->v[t->cpus[i]], *most = &s->v_most[t->cpus[i]];

        *v += ns / c->claim.weight;
        *most = base_max(*most, *v);
    }
    if (c->claim.max_share < 1) {
        uint64_t from = base_max(c->paid_ns, now_ns - base_min(now_ns, BURST_NS));

        c->paid_ns = from + (uint64_t)(ns * (double)t->width / (c->claim.max_share * s->cores));
    }
}

/* It begins to sit or wait, in the class that its model has now, or ends to. */
static void count(struct pl_seats *s, struct pl_sitter *t, bool begins)
{
    const struct pl_claim *claim = &t->client->claim;

    t->class = begins ? claim->class : t->class;
    t->level = begins ? 2 * claim->class + (claim->deadline_ns > 0) : t->level;
    for (size_t i = 0; i < t->width; i++) {
        _Atomic uint32_t *crowd = &s->crowd[t->cpus[i]];
        uint32_t n = atomic_load_explicit(crowd, memory_order_relaxed);

        s->levels[t->cpus[i]][t->level] += begins ? 1 : -1;
        atomic_store_explicit(crowd, begins ? n + 1 : n - 1, memory_order_relaxed);
    }
}

static bool on(const struct pl_sitter *t, uint16_t cpu)
{
    for (size_t i = 0; i < t->width; i++) {
        if (t->cpus[i] == cpu) {
            return true;
        }
    }
    return false;
}

/* Return: the lowest v of those that sit or wait on the core, else the highest so far. */
static double lowest_v(const struct pl_seats *s, uint16_t cpu)
{
    const struct sitters *const lists[] = {&s->seated, &s->waiting};
    double lowest = s->v_most[cpu];
    const struct pl_sitter *t;

    for (size_t i = 0; i < base_array_count(lists); i++) {
        TAILQ_FOREACH(t, lists[i], next) {
            lowest = on(t, cpu) ? base_min(lowest, t->client->v[cpu]) : lowest;
        }
    }
    return lowest;
}

static void begin(struct pl_seats *s, struct pl_sitter *t, uint64_t now_ns)
{
    struct pl_sitter *other;

    TAILQ_FOREACH(other, &s->seated, next) {
        charge(s, other, now_ns);
    }
    for (size_t i = 0; i < t->width; i++) {
        uint16_t cpu = t->cpus[i];
        double *v = &t->client->v[cpu];

        *v = base_max(*v, lowest_v(s, cpu) - CREDIT_NS);
    }
    count(s, t, true);
    t->client->active++;
}

static void end(struct pl_seats *s, struct pl_sitter *t)
{
    count(s, t, false);
    t->client->active--;
}

/* Return: for how long it has used up its max_share; 0: it has not. */
static uint64_t left_to_pay_ns(const struct pl_client *c, uint64_t now_ns)
{
    return c->claim.max_share < 1 && c->paid_ns > now_ns ? c->paid_ns - now_ns : 0;
}

/* ---- who goes first ---- */

/* Return: it waits for a higher class, or without a deadline for those with one, and longer than
 * the floor allows: since it sat, or since another one sat for that reason. */
static bool starves(const struct pl_seats *s, const struct pl_sitter *t, uint64_t now_ns)
{
    double unit = t->want.unit_ns > 0 ? t->want.unit_ns : UNIT_NS;
    uint64_t since = t->since_ns;
    bool below = false;

    for (size_t i = 0; i < t->width; i++) {
        for (unsigned l = t->level + 1; l < LEVELS; l++) {
            below |= s->levels[t->cpus[i]][l] > 0;
        }
        since = base_max(since, s->fed_ns[t->cpus[i]]);
    }
    return t->waits && below && now_ns > since && (double)(now_ns - since) * s->floor >= unit;
}

/* Who is not released yet comes after everybody. */
static int rank(const struct pl_seats *s, const struct pl_sitter *t, uint64_t now_ns)
{
    return t->want.released_ns > now_ns ? -1 : starves(s, t, now_ns) ? STARVING : (int)t->class;
}

static double tag(const struct pl_sitter *t, uint16_t cpu)
{
    return t->client->v[cpu] + base_min(t->want.left_ns, TURN_NS) / t->client->claim.weight;
}

/* On a seat that both want. */
static bool goes_before(const struct pl_seats *s, const struct pl_sitter *a,
                        const struct pl_sitter *b, uint16_t cpu, uint64_t now_ns)
{
    int rank_a = rank(s, a, now_ns), rank_b = rank(s, b, now_ns);
    /* 0 is never: less 1 it is the largest number */
    uint64_t due_a = a->want.due_ns - 1, due_b = b->want.due_ns - 1;
    double tag_a = tag(a, cpu), tag_b = tag(b, cpu);

    if (rank_a != rank_b) {
        return rank_a > rank_b;
    }
    if (due_a != due_b) {
        return due_a < due_b;
    }
    return tag_a != tag_b ? tag_a < tag_b : a->want.number < b->want.number;
}

/* ---- sitting down and getting up ---- */

static void sit_down(struct pl_seats *s, struct pl_sitter *t, uint64_t now_ns)
{
    bool starving = starves(s, t, now_ns);

    for (size_t i = 0; i < t->width; i++) {
        s->holder[t->cpus[i]] = t;
        s->fed_ns[t->cpus[i]] = starving ? now_ns : s->fed_ns[t->cpus[i]];
    }
    TAILQ_REMOVE(&s->waiting, t, next);
    TAILQ_INSERT_TAIL(&s->seated, t, next);
    t->seated = true;
    t->waits = false;
    t->since_ns = now_ns;
    atomic_store_explicit(&t->asked, t->client->claim.max_share < 1, memory_order_relaxed);
    if (atomic_load_explicit(&t->asleep, memory_order_relaxed) != 0) {
        t->next_woken = s->woken;
        s->woken = t;
    }
}

static void get_up(struct pl_seats *s, struct pl_sitter *t, uint64_t now_ns)
{
    charge(s, t, now_ns);
    for (size_t i = 0; i < t->width; i++) {
        s->holder[t->cpus[i]] = NULL;
    }
    TAILQ_REMOVE(&s->seated, t, next);
    t->seated = false;
}

static bool shares_seat(const struct pl_sitter *a, const struct pl_sitter *b)
{
    for (size_t i = 0; i < a->width; i++) {
        if (b->client->seats->holder[a->cpus[i]] == b) {
            return true;
        }
    }
    return false;
}

/* Return: how many of its seats are free, and kept for nobody. */
static size_t finds(const struct pl_seats *s, const struct pl_sitter *t)
{
    size_t free_seats = 0;

    for (size_t i = 0; i < t->width; i++) {
        free_seats += !s->holder[t->cpus[i]] && s->kept[t->cpus[i]] != s->walk;
    }
    return free_seats;
}

/* Return: it goes before everyone who sits on its seats. */
static bool is_next(const struct pl_seats *s, const struct pl_sitter *t, uint64_t now_ns)
{
    for (size_t i = 0; i < t->width; i++) {
        const struct pl_sitter *h = s->holder[t->cpus[i]];

        if (h && !goes_before(s, t, h, t->cpus[i], now_ns)) {
            return false;
        }
    }
    return true;
}

/* Return: @a goes before @b on the first seat that both want; or on any, so that no third one comes
 * before who goes before him. */
static bool comes_first(const struct pl_seats *s, const struct pl_sitter *a,
                        const struct pl_sitter *b, uint64_t now_ns)
{
    size_t i = 0;

    while (i < a->width && !on(b, a->cpus[i])) {
        i++;
    }
    return goes_before(s, a, b, a->cpus[i < a->width ? i : 0], now_ns);
}

/* Return: the first of those that wait whom a free seat concerns, and that this walk has not
 * met. */
static struct pl_sitter *first_of(const struct pl_seats *s, uint64_t now_ns)
{
    struct pl_sitter *best = NULL, *t;

    TAILQ_FOREACH(t, &s->waiting, next) {
        if (t->walk != s->walk && left_to_pay_ns(t->client, now_ns) == 0 && finds(s, t) > 0 &&
            (!best || comes_first(s, t, best, now_ns))) {
            best = t;
        }
    }
    return best;
}

/* Who waits and may sit down does. A wider team that is next, but whose other seats are still held,
 * has the free ones kept. Asks the holders of seats that others wait for. */
static void let_sit(struct pl_seats *s, uint64_t now_ns)
{
    struct pl_sitter *t;

    s->walk++;
    while ((t = first_of(s, now_ns)) != NULL) {
        t->walk = s->walk;
        if (finds(s, t) == t->width) {
            sit_down(s, t, now_ns);
            continue;
        }
        for (size_t i = 0; is_next(s, t, now_ns) && i < t->width; i++) {
            s->kept[t->cpus[i]] = s->walk;
        }
    }
    TAILQ_FOREACH(t, &s->waiting, next) {
        for (size_t i = 0; i < t->width; i++) {
            struct pl_sitter *h = s->holder[t->cpus[i]];

            if (h) {
                atomic_store_explicit(&h->asked, true, memory_order_relaxed);
            }
        }
    }
}

/* Frees the lock, and wakes those who sat down or have to leave. */
static void unlock_and_wake(struct pl_seats *s)
{
    struct pl_sitter *t = base_take(s->woken), *next;

    pthread_mutex_unlock(&s->lock);
    for (; t; t = next) {
        next = t->next_woken; /* it may be gone as soon as it is awake */
        atomic_store_explicit(&t->asleep, 0, memory_order_release);
        pl_futex(&t->asleep, FUTEX_WAKE, 1, NULL);
    }
}

/* Return: for how long it sleeps at most, as nobody else looks when a max_share has something left
 * again; 0: until it is woken. */
static uint64_t patience_ns(const struct pl_client *c, uint64_t now_ns)
{
    return c->claim.max_share < 1 ? base_min(left_to_pay_ns(c, now_ns) + BASE_NS_PER_MS, BURST_NS)
                                  : 0;
}

/* Sleeps until it sits or has to leave. */
static void sleep_until_woken(struct pl_seats *s, struct pl_sitter *t, uint64_t most_ns)
{
    while (atomic_load_explicit(&t->asleep, memory_order_acquire) != 0) {
        struct timespec most = {.tv_nsec = (long)most_ns};

        pl_futex(&t->asleep, FUTEX_WAIT, 1, most_ns ? &most : NULL);
        if (atomic_load_explicit(&t->asleep, memory_order_acquire) != 0) {
            uint64_t now = base_now_ns();

            pthread_mutex_lock(&s->lock);
            let_sit(s, now);
            most_ns = patience_ns(t->client, now);
            unlock_and_wake(s);
        }
    }
}

bool pl_sit(struct pl_sitter *t, const struct pl_want *want)
{
    struct pl_client *c = t->client;
    struct pl_seats *s = c->seats;
    uint64_t now, most_ns, waited;

    pthread_mutex_lock(&s->lock);
    now = base_now_ns();
    if (t->seated) {
        get_up(s, t, now);
        count(s, t, false);
        count(s, t, true);
    } else {
        begin(s, t, now);
    }
    if (t->leaves) {
        end(s, t);
        let_sit(s, now);
        unlock_and_wake(s);
        return false;
    }
    t->want = *want;
    t->since_ns = now;
    t->waits = true;
    TAILQ_INSERT_TAIL(&s->waiting, t, next);
    let_sit(s, now);
    if (t->seated) {
        unlock_and_wake(s);
        return true;
    }
    atomic_store_explicit(&t->asleep, 1, memory_order_relaxed);
    most_ns = patience_ns(c, now);
    unlock_and_wake(s);
    sleep_until_woken(s, t, most_ns);
    waited = atomic_load_explicit(&t->waited_ns, memory_order_relaxed) + base_now_ns() - now;
    atomic_store_explicit(&t->waited_ns, waited, memory_order_relaxed);
    return t->seated;
}

void pl_client_claim(struct pl_client *c, const struct pl_claim *claim)
{
    struct pl_seats *s = c->seats;
    struct pl_sitter *t;

    if (!s) {
        c->claim = *claim;
        return;
    }
    pthread_mutex_lock(&s->lock);
    c->claim = *claim;
    TAILQ_FOREACH(t, &s->waiting, next) {
        if (t->client == c) { /* it may have to look again from time to time */
            pl_futex(&t->asleep, FUTEX_WAKE, 1, NULL);
        }
    }
    TAILQ_FOREACH(t, &s->seated, next) {
        atomic_store_explicit(&t->asked, true, memory_order_relaxed);
    }
    unlock_and_wake(s);
}

bool pl_sit_late(struct pl_sitter *t, const struct pl_want *want)
{
    struct pl_seats *s = t->client->seats;
    bool asked, late;
    const struct pl_sitter *w;
    uint64_t now;

    pthread_mutex_lock(&s->lock);
    now = base_now_ns();
    charge(s, t, now);
    t->want = *want;
    late = left_to_pay_ns(t->client, now) > 0;
    asked = t->client->claim.max_share < 1;
    TAILQ_FOREACH(w, &s->waiting, next) {
        if (shares_seat(w, t)) {
            asked = true;
            late |= left_to_pay_ns(w->client, now) == 0 && is_next(s, w, now);
        }
    }
    atomic_store_explicit(&t->asked, asked, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
    return late;
}

bool pl_rise(struct pl_sitter *t)
{
    struct pl_seats *s = t->client->seats;

    pthread_mutex_lock(&s->lock);
    if (t->seated) {
        uint64_t now = base_now_ns();

        get_up(s, t, now);
        end(s, t);
        let_sit(s, now);
    }
    unlock_and_wake(s);
    return pl_sit_others(t, false) > 0;
}

void pl_sit_cancel(struct pl_sitter *t)
{
    struct pl_seats *s = t->client->seats;

    pthread_mutex_lock(&s->lock);
    t->leaves = true;
    if (t->waits) {
        TAILQ_REMOVE(&s->waiting, t, next);
        t->waits = false;
        end(s, t);
        let_sit(s, base_now_ns());
        t->next_woken = s->woken; /* who waits sleeps */
        s->woken = t;
    }
    unlock_and_wake(s);
}

uint32_t pl_sit_others(const struct pl_sitter *t, bool with_it)
{
    uint32_t most = 0;

    for (size_t i = 0; i < t->width; i++) {
        const struct pl_seats *s = t->client->seats;

        most = base_max(most, atomic_load_explicit(&s->crowd[t->cpus[i]], memory_order_relaxed));
    }
    return most - (with_it && most > 0);
}
