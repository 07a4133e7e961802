/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "daemon/loop.h"
#include "tests/harness.h"

#define SENDERS 3u
#define SENT 20000u /* by each */

struct rig {
    uv_loop_t loop;
    struct dmn_wake wake;
    _Atomic unsigned made;
    unsigned seen, woken;
};

static void on_wake(void *arg)
{
    struct rig *r = arg;

    r->woken++;
    r->seen = atomic_load_explicit(&r->made, memory_order_acquire);
    if (r->seen == SENDERS * SENT) {
        dmn_wake_close(&r->wake);
    }
}

static void *sender(void *arg)
{
    struct rig *r = arg;

    for (unsigned i = 0; i < SENT; i++) {
        atomic_fetch_add_explicit(&r->made, 1, memory_order_release);
        dmn_wake_send(&r->wake);
    }
    return NULL;
}

/* The loop ends only when it has seen the last of all. */
TEST(no_wake_is_lost)
{
    struct rig r = {0};
    pthread_t threads[SENDERS];

    T_EQ(uv_loop_init(&r.loop), 0);
    T_EQ(dmn_wake_init(&r.wake, &r.loop, on_wake, &r), 0);
    for (size_t i = 0; i < SENDERS; i++) {
        T_EQ(pthread_create(&threads[i], NULL, sender, &r), 0);
    }
    uv_run(&r.loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < SENDERS; i++) {
        pthread_join(threads[i], NULL);
    }
    T_EQ(r.seen, SENDERS * SENT);
    T_TRUE(r.woken <= r.seen);
    T_EQ(uv_loop_close(&r.loop), 0);
}

TEST(several_sends_wake_once)
{
    struct rig r = {0};

    T_EQ(uv_loop_init(&r.loop), 0);
    T_EQ(dmn_wake_init(&r.wake, &r.loop, on_wake, &r), 0);
    for (unsigned i = 0; i < 5; i++) {
        dmn_wake_send(&r.wake);
    }
    uv_run(&r.loop, UV_RUN_NOWAIT);
    uv_run(&r.loop, UV_RUN_NOWAIT);
    T_EQ(r.woken, 1);
    dmn_wake_close(&r.wake);
    uv_run(&r.loop, UV_RUN_DEFAULT);
    T_EQ(r.wake.fd, -1);
    T_EQ(uv_loop_close(&r.loop), 0);
}

TEST(one_that_was_never_made_is_closed)
{
    struct rig r = {0};

    dmn_wake_close(&r.wake);
    T_EQ(r.woken, 0);
}

TEST_MAIN()
