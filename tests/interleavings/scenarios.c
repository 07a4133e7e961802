/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/interleavings/scenarios.h"

#include <pthread.h>
#include <string.h>

#include "pipeline/fence.h"
#include "pipeline/ring.h"
#include "pipeline/seats.h"
#include "tests/interleavings/explore.h"
#include "tests/unit/pipeline/rig.h"

/* ---- litmus tests ---- */

struct litmus {
    int plain;
    int order;
    _Atomic int a, b;
    int seen[2];
};

/* not on a stack: clang leaves out what it takes for one thread's own */
static struct litmus litmus;

static struct litmus *fresh(int order)
{
    memset(&litmus, 0, sizeof(litmus));
    litmus.order = order;
    return &litmus;
}

static void start(pthread_t *ret, void *(*fn)(void *), void *arg)
{
    if (pthread_create(ret, NULL, fn, arg) != 0) {
        ex_fail("no thread");
    }
}

static void *send_message(void *arg)
{
    struct litmus *l = arg;

    l->plain = 42;
    if (l->order == memory_order_relaxed) {
        atomic_store_explicit(&l->a, 1, memory_order_relaxed);
    } else {
        atomic_store_explicit(&l->a, 1, memory_order_release);
    }
    return NULL;
}

void litmus_message_passing(void *order)
{
    struct litmus *l = fresh(*(int *)order);
    pthread_t t;
    int seen;

    start(&t, send_message, l);
    seen = l->order == memory_order_relaxed ? atomic_load_explicit(&l->a, memory_order_relaxed)
                                            : atomic_load_explicit(&l->a, memory_order_acquire);
    if (seen == 1 && l->plain != 42) {
        ex_fail("the message came before what it says");
    }
    pthread_join(t, NULL);
}

static void fence_of(int order)
{
    if (order == memory_order_seq_cst) {
        pl_fence();
    } else {
        pl_fence_release();
        pl_fence_acquire();
    }
}

static void *store_then_load(void *arg)
{
    struct litmus *l = arg;

    atomic_store_explicit(&l->a, 1, memory_order_relaxed);
    fence_of(l->order);
    l->seen[0] = atomic_load_explicit(&l->b, memory_order_relaxed);
    return NULL;
}

void litmus_store_buffering(void *order)
{
    struct litmus *l = fresh(*(int *)order);
    pthread_t t;

    start(&t, store_then_load, l);
    atomic_store_explicit(&l->b, 1, memory_order_relaxed);
    fence_of(l->order);
    l->seen[1] = atomic_load_explicit(&l->a, memory_order_relaxed);
    pthread_join(t, NULL);
    if (l->seen[0] == 0 && l->seen[1] == 0) {
        ex_fail("neither saw the other");
    }
}

static void *write_plain(void *arg)
{
    struct litmus *l = arg;

    l->plain = 1;
    return NULL;
}

void litmus_race(void *unused)
{
    struct litmus *l = fresh(0);
    pthread_t t;

    start(&t, write_plain, l);
    l->seen[0] = l->plain;
    pthread_join(t, NULL);
}

static void *pass_on_message(void *arg)
{
    struct litmus *l = arg;

    if (atomic_load_explicit(&l->a, memory_order_acquire) == 1) {
        atomic_store_explicit(&l->b, 1, memory_order_release);
    }
    return NULL;
}

void litmus_three_threads(void *unused)
{
    struct litmus *l = fresh(memory_order_release);
    pthread_t from, between;

    start(&from, send_message, l);
    start(&between, pass_on_message, l);
    if (atomic_load_explicit(&l->b, memory_order_acquire) == 1 && l->plain != 42) {
        ex_fail("the message came before what it says");
    }
    pthread_join(from, NULL);
    pthread_join(between, NULL);
}

/* pl_wake_signal() as it would be without its fence */
static void *publish_without_fence(void *arg)
{
    struct {
        struct pl_ring ring;
        struct pl_wake wake;
    } *both = arg;

    pl_ring_push(&both->ring, both);
    if (atomic_load_explicit(&both->wake.sleeping, memory_order_relaxed) != 0) {
        pl_wake_signal(&both->wake);
    }
    return NULL;
}

void litmus_lost_wakeup(void *unused)
{
    struct {
        struct pl_ring ring;
        struct pl_wake wake;
    } both = {0};
    pthread_t t;

    if (pl_ring_init(&both.ring, 2) < 0) {
        ex_fail("no memory");
    }
    start(&t, publish_without_fence, &both);
    while (pl_ring_peek(&both.ring) == NULL) {
        pl_wake_prepare(&both.wake);
        if (pl_ring_peek(&both.ring) != NULL) {
            pl_wake_cancel(&both.wake);
            break;
        }
        pl_wake_wait(&both.wake);
    }
    pthread_join(t, NULL);
    pl_ring_deinit(&both.ring);
}

/* ---- rings ---- */

#define ITEMS_MAX 8u

struct producer {
    struct pl_ring ring;
    struct pl_wake *wake; /* NULL: the consumer spins */
    size_t items, taken;
    size_t item[ITEMS_MAX]; /* written before they are pushed */
    pthread_t thread;
};

static void *produce(void *arg)
{
    struct producer *p = arg;

    for (size_t i = 0; i < p->items; i++) {
        p->item[i] = i + 1;
        while (!pl_ring_push(&p->ring, &p->item[i])) {
            sched_yield();
        }
        if (p->wake != NULL) {
            pl_wake_signal(p->wake);
        }
    }
    pl_ring_close(&p->ring);
    if (p->wake != NULL) {
        pl_wake_signal(p->wake);
    }
    return NULL;
}

static void take_one(struct producer *p)
{
    const size_t *item = pl_ring_pop(&p->ring);

    if (item != NULL && *item != ++p->taken) {
        ex_fail("item %zu came as number %zu", *item, p->taken);
    }
}

static bool dry(struct producer *p, size_t count)
{
    bool all = true;

    for (size_t i = 0; i < count; i++) {
        all = pl_ring_dry(&p[i].ring) && all;
    }
    return all;
}

static bool anything(struct producer *p, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pl_ring_peek(&p[i].ring) != NULL) {
            return true;
        }
    }
    return dry(p, count);
}

static void rings(size_t count, size_t items, bool sleeps)
{
    struct producer p[2];
    struct pl_wake wake = {0};

    memset(p, 0, sizeof(p));
    for (size_t i = 0; i < count; i++) {
        p[i].items = items;
        p[i].wake = sleeps ? &wake : NULL;
        if (pl_ring_init(&p[i].ring, 2) < 0) {
            ex_fail("no memory");
        }
    }
    for (size_t i = 0; i < count; i++) {
        start(&p[i].thread, produce, &p[i]);
    }
    while (!dry(p, count)) {
        for (size_t i = 0; i < count; i++) {
            take_one(&p[i]);
        }
        if (!sleeps || anything(p, count)) {
            continue;
        }
        pl_wake_prepare(&wake);
        if (anything(p, count)) {
            pl_wake_cancel(&wake);
            continue;
        }
        pl_wake_wait(&wake);
    }
    for (size_t i = 0; i < count; i++) {
        if (p[i].taken != items) {
            ex_fail("%zu of %zu items came", p[i].taken, items);
        }
        pthread_join(p[i].thread, NULL);
        pl_ring_deinit(&p[i].ring);
    }
}

void ring_of_two(void *items)
{
    rings(1, *(size_t *)items, false);
}

void ring_with_wake(void *items)
{
    rings(1, *(size_t *)items, true);
}

void two_rings_with_wake(void *items)
{
    rings(2, *(size_t *)items, true);
}

/* ---- seats ---- */

#define SEATED 3u

struct seated {
    struct pl_sitter sitter;
    struct pl_client client;
    uint16_t cpus[2];
    size_t rounds, done;
    size_t *computing; /* [cpu], plain: two at once on a core are a race */
    pthread_t thread;
};

static void compute(struct seated *s)
{
    for (size_t i = 0; i < s->sitter.width; i++) {
        s->computing[s->cpus[i]]++;
    }
    sched_yield();
    for (size_t i = 0; i < s->sitter.width; i++) {
        if (--s->computing[s->cpus[i]] != 0) {
            ex_fail("two compute on core %u", s->cpus[i]);
        }
    }
}

static void *take_seats(void *arg)
{
    struct seated *s = arg;
    struct pl_want want = {.left_ns = 5000, .unit_ns = 2000};

    for (; s->done < s->rounds; s->done++) {
        want.number = s->done;
        if (!pl_sit(&s->sitter, &want)) {
            break;
        }
        compute(s);
        if (pl_sit_asked(&s->sitter) && pl_sit_late(&s->sitter, &want) &&
            !pl_sit(&s->sitter, &want)) {
            break;
        }
        compute(s);
        if (s->done % 2 == 0) {
            pl_rise(&s->sitter);
        }
    }
    pl_rise(&s->sitter);
    return NULL;
}

void seats_taken(void *seats_case)
{
    const struct seats_case *c = seats_case;
    struct pl_seats *seats = pl_seats_new(2, 0.1);
    struct seated *s = calloc(SEATED, sizeof(*s));
    size_t *computing = calloc(2, sizeof(*computing));

    for (size_t i = 0; i < SEATED; i++) {
        size_t of = i == 1 && c->classes[0] == c->classes[1] ? 0 : i;
        struct pl_claim claim = PL_CLAIM_NULL;

        claim.class = c->classes[i];
        s[i].rounds = c->rounds;
        s[i].computing = computing;
        s[i].cpus[0] = i == 1;
        s[i].cpus[1] = 1;
        pl_client_init(&s[i].client, seats);
        pl_client_claim(&s[i].client, &claim);
        s[i].sitter =
            (struct pl_sitter){.client = &s[of].client, .cpus = s[i].cpus, .width = i == 2 ? 2 : 1};
        start(&s[i].thread, take_seats, &s[i]);
    }
    if (c->changes) {
        pl_client_claim(&s[ex_choose(SEATED)].client,
                        &(struct pl_claim){.class = 3, .weight = 2, .max_share = 0.5});
    }
    if (c->cancels) {
        pl_sit_cancel(&s[ex_choose(SEATED)].sitter);
    }
    for (size_t i = 0; i < SEATED; i++) {
        pthread_join(s[i].thread, NULL);
        if (s[i].done != c->rounds && !s[i].sitter.leaves) {
            ex_fail("team %zu sat %zu times", i, s[i].done);
        }
        if (s[i].sitter.seated || s[i].sitter.waits) {
            ex_fail("team %zu still has a seat", i);
        }
    }
    for (size_t i = 0; i < SEATED; i++) {
        if (s[i].client.active != 0) {
            ex_fail("model %zu is still active", i);
        }
    }
    free(computing);
    free(s);
    pl_seats_free(seats);
}

/* ---- the pipeline ---- */

/* Sends and collects in turns, so that the loop sleeps when nothing else is to be done. */
static void serve(struct rig *r, const struct pipeline_case *c, const struct pl_ep_set *eps)
{
    size_t plan = 0, units = c->net->model.unit_count;

    while (r->got < c->frames) {
        bool moved = false;

        if (r->sent < c->frames) {
            moved = rig_submit(r, ex_choose(8) == 7 ? RIG_CANCELLED : 0);
        }
        if (moved && ex_choose(6) == 5) {
            atomic_store_explicit(&r->frames[(r->sent - 1) % RIG_FRAMES]->cancel, true,
                                  memory_order_relaxed);
            r->jobs[(r->sent - 1) % RIG_FRAMES].cancelled = true;
        }
        if (c->plans[1] != NULL && ex_choose(5) == 4) {
            struct pl_plan next = rig_plan(c->plans[1 - plan], eps, units);
            int result = pl_switch(r->p, &next);

            if (result != 0 && result != PL_E_BUSY) {
                ex_fail("switch: %d", result);
            }
            plan = result == 0 ? 1 - plan : plan;
        }
        moved |= rig_collect(r);
        pl_reap(r->p);
        if (r->wrong) {
            ex_fail("frame %llu is wrong", (unsigned long long)r->got);
        }
        if (!moved && r->sent > r->got && !rig_collect(r)) {
            rig_wait(&r->wake);
        }
    }
}

void pipeline_run(void *pipeline_case)
{
    const struct pipeline_case *c = pipeline_case;
    struct pl_ep_set eps = {.count = 2,
                            .eps = {{.name = "big", .speed = 1, .cpu_count = 2, .cpus = {0, 1}},
                                    {.name = "little", .speed = 0.5, .cpu_count = 1, .cpus = {2}}}};
    struct pl_plan plan = rig_plan(c->plans[0], &eps, c->net->model.unit_count);
    struct pl_seats *seats = c->seats ? pl_seats_new(3, 0) : NULL;
    struct pl_client client;
    struct pl_options o;
    struct rig r;

    rig_init(&r, c->net);
    o = rig_options(&r);
    o.frames = c->pool;
    o.spin_ns = c->spin_ns;
    o.no_pin = true;
    o.no_clocks = true;
    pl_client_init(&client, seats);
    o.client = &client;
    if (pl_new(c->net->net, &eps, &plan, &o, &r.p) != 0) {
        ex_fail("no pipeline");
    }
    if (c->cut) {
        uint8_t pieces[] = {2, 1, 3, 2, 2}; /* of the net's units */

        if (pl_cut(r.p, pieces) != 0 || pl_switch(r.p, &plan) != 0) {
            ex_fail("not cut");
        }
    }
    serve(&r, c, &eps);
    if (pl_in_flight(r.p) != 0 || pl_collect(r.p) != NULL) {
        ex_fail("frames are left");
    }
    rig_deinit(&r);
    pl_seats_free(seats);
}
