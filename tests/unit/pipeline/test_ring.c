/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/base.h"
#include "pipeline/ring.h"
#include "tests/harness.h"

TEST(ring_full_and_empty)
{
    struct pl_ring r = {0};
    int items[4];

    T_EQ(pl_ring_init(&r, 0), -EINVAL);
    T_EQ(pl_ring_init(&r, 3), 0); /* rounded up to 4 */
    T_TRUE(pl_ring_pop(&r) == NULL);
    for (size_t round = 0; round < 10; round++) { /* the indices wrap in the second */
        for (size_t i = 0; i < 4; i++) {
            T_EQ(pl_ring_count(&r), i);
            T_TRUE(pl_ring_push(&r, &items[i]));
        }
        T_TRUE(!pl_ring_push(&r, &items[0]));
        T_TRUE(pl_ring_peek(&r) == &items[0]);
        for (size_t i = 0; i < 4; i++) {
            T_TRUE(pl_ring_pop(&r) == &items[i]);
        }
        T_TRUE(pl_ring_pop(&r) == NULL);
    }
    T_LT(atomic_load(&r.tail), 1000); /* it did wrap */
    T_TRUE(!pl_ring_dry(&r));
    T_TRUE(pl_ring_push(&r, &items[0]));
    pl_ring_close(&r);
    T_TRUE(!pl_ring_dry(&r));
    pl_ring_pop(&r);
    T_TRUE(pl_ring_dry(&r));
    pl_ring_deinit(&r);
    pl_ring_deinit(&r);
}

#define RING_ITEMS 3000000u
struct ring_pair {
    struct pl_ring ring;
    uint64_t values[64]; /* plain memory: only the ring orders it */
};

static void *ring_producer(void *arg)
{
    struct ring_pair *p = arg;

    for (uint64_t i = 0; i < RING_ITEMS; i++) {
        uint64_t *slot = &p->values[i % base_array_count(p->values)];

        *slot = i; /* free again: the ring holds at most 32 */
        while (!pl_ring_push(&p->ring, slot)) {
            sched_yield();
        }
    }
    pl_ring_close(&p->ring);
    return NULL;
}

TEST(ring_two_threads)
{
    struct ring_pair p = {0};
    pthread_t thread;
    uint64_t next = 0, wrong = 0;

    T_EQ(pl_ring_init(&p.ring, 32), 0);
    T_EQ(pthread_create(&thread, NULL, ring_producer, &p), 0);
    while (!pl_ring_dry(&p.ring)) {
        uint64_t *item = pl_ring_peek(&p.ring);

        if (item == NULL) {
            sched_yield();
            continue;
        }
        wrong += *item != next++;
        pl_ring_pop(&p.ring);
    }
    pthread_join(thread, NULL);
    T_EQ(next, RING_ITEMS);
    T_EQ(wrong, 0);
    pl_ring_deinit(&p.ring);
}

TEST_MAIN()
