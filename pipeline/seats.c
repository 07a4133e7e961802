/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/seats.h"

#include <linux/futex.h>
#include <math.h>
#include <sys/syscall.h>

#define CREDIT_NS (50.0 * (double)BASE_NS_PER_MS)
#define BURST_NS (20 * BASE_NS_PER_MS)   /* that a model with a max_share may save up */
#define UNIT_NS ((double)BASE_NS_PER_MS) /* where it is unknown */
#define STARVING (PL_CLASS_MAX + 1)

TAILQ_HEAD(sitters, pl_sitter);

struct pl_seats {
    pthread_mutex_t lock;
    /* guarded by it */
    double cores, floor;
    double v_most; /* of any client so far */
    unsigned top;  /* the highest class of those that sit or wait, at the last look */
    unsigned walk; /* number of this look at those that wait */
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
        free(s);
    }
    return NULL;
}

/* ---- clients ---- */

void pl_client_init(struct pl_client *c, struct pl_seats *seats)
{
    *c = (struct pl_client){.seats = seats, .claim = PL_CLAIM_NULL};
}

uint64_t pl_client_release(struct pl_client *c, uint64_t now_ns)
{
    c->released_ns = base_max(now_ns, c->released_ns + c->claim.period_ns);
    return c->released_ns;
}

/* Charges what a team that sits has used since then. */
static void charge(struct pl_seats *s, struct pl_sitter *t, uint64_t now_ns)
{
    struct pl_client *c = t->client;
    double used = (double)(now_ns - base_min(now_ns, t->since_ns)) * (double)t->width;

    t->since_ns = now_ns;
    t->want.left_ns = base_max(t->want.left_ns - used, 0.0);
    c->v += used / c->claim.weight;
    s->v_most = base_max(s->v_most, c->v);
    if (c->claim.max_share < 1) {
        uint64_t from = base_max(c->paid_ns, now_ns - base_min(now_ns, BURST_NS));

        c->paid_ns = from + (uint64_t)(used / (c->claim.max_share * s->cores));
    }
}

/* Teams that sit there or wait become more, or fewer. */
static void count(struct pl_seats *s, const struct pl_sitter *t, uint32_t more)
{
    for (size_t i = 0; i < t->width; i++) {
        atomic_store_explicit(&s->crowd[t->cpus[i]],
                              atomic_load_explicit(&s->crowd[t->cpus[i]], memory_order_relaxed) +
                                  more,
                              memory_order_relaxed);
    }
}

/* A team begins to wait. */
static void begin(struct pl_seats *s, const struct pl_sitter *who, uint64_t now_ns)
{
    struct pl_client *c = who->client;
    double lowest = INFINITY;
    struct pl_sitter *t;

    count(s, who, 1);
    if (c->active++ > 0) {
        return;
    }
    TAILQ_FOREACH(t, &s->seated, next) {
        charge(s, t, now_ns);
        lowest = base_min(lowest, t->client->v);
    }
    TAILQ_FOREACH(t, &s->waiting, next) {
        lowest = base_min(lowest, t->client->v);
    }
    c->v = base_max(c->v, base_max(s->v_most - CREDIT_NS, isfinite(lowest) ? lowest : 0.0));
}

/* It neither sits nor waits any more. */
static void end(struct pl_seats *s, const struct pl_sitter *who)
{
    count(s, who, (uint32_t)-1);
    who->client->active--;
}

/* Return: for how long it has used up its max_share; 0: it has not. */
static uint64_t left_to_pay_ns(const struct pl_client *c, uint64_t now_ns)
{
    return c->claim.max_share < 1 && c->paid_ns > now_ns ? c->paid_ns - now_ns : 0;
}

/* ---- who goes first ---- */

static unsigned rank(const struct pl_seats *s, const struct pl_sitter *t, uint64_t now_ns)
{
    unsigned class = t->client->claim.class;
    double unit = t->want.unit_ns > 0 ? t->want.unit_ns : UNIT_NS;

    return t->waits && class < s->top && s->floor > 0 && now_ns > t->since_ns &&
                   (double)(now_ns - t->since_ns) * s->floor >= unit
               ? STARVING
               : class;
}

static double tag(const struct pl_sitter *t)
{
    return t->client->v + t->want.left_ns / t->client->claim.weight;
}

static bool goes_before(const struct pl_seats *s, const struct pl_sitter *a,
                        const struct pl_sitter *b, uint64_t now_ns)
{
    unsigned rank_a = rank(s, a, now_ns), rank_b = rank(s, b, now_ns);
    /* 0 is never: less 1 it is the largest number */
    uint64_t due_a = a->want.due_ns - 1, due_b = b->want.due_ns - 1;
    double tag_a = tag(a), tag_b = tag(b);

    if (rank_a != rank_b) {
        return rank_a > rank_b;
    }
    if (due_a != due_b) {
        return due_a < due_b;
    }
    return tag_a != tag_b ? tag_a < tag_b : a->want.number < b->want.number;
}

static void look(struct pl_seats *s)
{
    struct pl_sitter *t;

    s->top = 0;
    s->walk++;
    TAILQ_FOREACH(t, &s->seated, next) {
        s->top = base_max(s->top, t->client->claim.class);
    }
    TAILQ_FOREACH(t, &s->waiting, next) {
        s->top = base_max(s->top, t->client->claim.class);
    }
}

/* ---- sitting down and getting up ---- */

static void wake_later(struct pl_seats *s, struct pl_sitter *t)
{
    if (atomic_load_explicit(&t->asleep, memory_order_relaxed) != 0) {
        t->next_woken = s->woken;
        s->woken = t;
    }
}

static void sit_down(struct pl_seats *s, struct pl_sitter *t, uint64_t now_ns)
{
    for (size_t i = 0; i < t->width; i++) {
        s->holder[t->cpus[i]] = t;
    }
    TAILQ_REMOVE(&s->waiting, t, next);
    TAILQ_INSERT_TAIL(&s->seated, t, next);
    t->seated = true;
    t->waits = false;
    t->since_ns = now_ns;
    atomic_store_explicit(&t->asked, t->client->claim.max_share < 1, memory_order_relaxed);
    wake_later(s, t);
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

/* Return: one of its seats is free, and kept for nobody. */
static bool finds_one(const struct pl_seats *s, const struct pl_sitter *t)
{
    for (size_t i = 0; i < t->width; i++) {
        if (!s->holder[t->cpus[i]] && s->kept[t->cpus[i]] != s->walk) {
            return true;
        }
    }
    return false;
}

/* Return: all its seats are free, and kept for nobody. */
static bool finds_all(const struct pl_seats *s, const struct pl_sitter *t)
{
    for (size_t i = 0; i < t->width; i++) {
        if (s->holder[t->cpus[i]] || s->kept[t->cpus[i]] == s->walk) {
            return false;
        }
    }
    return true;
}

/* Return: it goes before everyone who sits on its seats. */
static bool is_next(const struct pl_seats *s, const struct pl_sitter *t, uint64_t now_ns)
{
    for (size_t i = 0; i < t->width; i++) {
        const struct pl_sitter *h = s->holder[t->cpus[i]];

        if (h && !goes_before(s, t, h, now_ns)) {
            return false;
        }
    }
    return true;
}

/* Return: the first of those that wait whom a free seat concerns, and that this walk has not
 * met. */
static struct pl_sitter *first_of(const struct pl_seats *s, uint64_t now_ns)
{
    struct pl_sitter *best = NULL, *t;

    TAILQ_FOREACH(t, &s->waiting, next) {
        if (t->walk != s->walk && left_to_pay_ns(t->client, now_ns) == 0 && finds_one(s, t) &&
            (!best || goes_before(s, t, best, now_ns))) {
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

    look(s);
    while ((t = first_of(s, now_ns)) != NULL) {
        t->walk = s->walk;
        if (finds_all(s, t)) {
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

static void futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *most)
{
    (void)syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, most, NULL, 0);
}

/* Frees the lock, and wakes those who sat down or have to leave. */
static void unlock_and_wake(struct pl_seats *s)
{
    struct pl_sitter *t = base_take(s->woken), *next;

    pthread_mutex_unlock(&s->lock);
    for (; t; t = next) {
        next = t->next_woken; /* it may be gone as soon as it is awake */
        atomic_store_explicit(&t->asleep, 0, memory_order_release);
        futex(&t->asleep, FUTEX_WAKE, 1, NULL);
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

        futex(&t->asleep, FUTEX_WAIT, 1, most_ns ? &most : NULL);
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
    uint64_t now, most_ns;

    pthread_mutex_lock(&s->lock);
    now = base_now_ns();
    if (t->seated) {
        get_up(s, t, now);
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
            futex(&t->asleep, FUTEX_WAKE, 1, NULL);
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
    bool limited = t->client->claim.max_share < 1, wanted = false, late;
    const struct pl_sitter *w;
    uint64_t now;

    pthread_mutex_lock(&s->lock);
    now = base_now_ns();
    charge(s, t, now);
    t->want = *want;
    look(s);
    late = left_to_pay_ns(t->client, now) > 0;
    TAILQ_FOREACH(w, &s->waiting, next) {
        if (shares_seat(w, t)) {
            wanted = true;
            late |= left_to_pay_ns(w->client, now) == 0 && is_next(s, w, now);
        }
    }
    atomic_store_explicit(&t->asked, wanted || limited, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
    return late;
}

bool pl_rise(struct pl_sitter *t)
{
    struct pl_seats *s = t->client->seats;
    bool taken = false;

    pthread_mutex_lock(&s->lock);
    if (t->seated) {
        uint64_t now = base_now_ns();

        get_up(s, t, now);
        end(s, t);
        let_sit(s, now);
    }
    for (size_t i = 0; i < t->width; i++) {
        taken |= s->holder[t->cpus[i]] != NULL;
    }
    unlock_and_wake(s);
    return taken;
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
        wake_later(s, t);
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
