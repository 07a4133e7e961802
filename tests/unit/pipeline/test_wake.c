/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>

#include "pipeline/ring.h"
#include "tests/harness.h"

#define WAKE_ROUNDS 100000u
struct wake_pair {
    struct pl_wake here, there;
    struct pl_ring to, fro;
};

static uint64_t *wake_receive(struct pl_ring *ring, struct pl_wake *wake)
{
    uint64_t *item;

    while ((item = pl_ring_pop(ring)) == NULL) {
        pl_wake_prepare(wake);
        if (pl_ring_peek(ring) != NULL) {
            pl_wake_cancel(wake);
            continue;
        }
        pl_wake_wait(wake);
    }
    return item;
}

static void *wake_echo(void *arg)
{
    struct wake_pair *p = arg;

    for (uint64_t i = 0; i < WAKE_ROUNDS; i++) {
        uint64_t *item = wake_receive(&p->to, &p->there);

        ++*item;
        pl_ring_push(&p->fro, item);
        pl_wake_signal(&p->here);
    }
    return NULL;
}

/* Every message is answered before the next: one lost wake-up and this never ends. */
TEST(wake_loses_nothing)
{
    struct wake_pair p = {0};
    uint64_t value = 0;
    pthread_t thread;

    T_EQ(pl_ring_init(&p.to, 1), 0);
    T_EQ(pl_ring_init(&p.fro, 1), 0);
    T_EQ(pthread_create(&thread, NULL, wake_echo, &p), 0);
    for (uint64_t i = 0; i < WAKE_ROUNDS; i++) {
        pl_ring_push(&p.to, &value);
        pl_wake_signal(&p.there);
        T_TRUE(wake_receive(&p.fro, &p.here) == &value);
        T_EQ(value, i + 1);
    }
    pthread_join(thread, NULL);
    pl_ring_deinit(&p.to);
    pl_ring_deinit(&p.fro);
}

TEST_MAIN()
