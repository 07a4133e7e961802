/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/loop_slice.h"
#include "tests/harness.h"

#define RESET_ON_FORK 1u

/* struct sched_attr of <linux/sched/types.h>, which does not go together with <pthread.h>. */
struct attr {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
};

static void *tell(void *ret)
{
    (void)syscall(SYS_sched_getattr, 0, ret, sizeof(struct attr), 0);
    return NULL;
}

static struct attr own(void)
{
    struct attr a = {0};

    tell(&a);
    return a;
}

static struct attr of_new_thread(void)
{
    struct attr a = {0};
    pthread_t t;

    if (pthread_create(&t, NULL, tell, &a) == 0) {
        pthread_join(t, NULL);
    }
    return a;
}

TEST(the_loop_alone_has_a_short_slice)
{
    struct attr before = own(), after, child;

    if (before.nice < 0) {
        T_SKIP("at a negative nice level slices stay");
    }
    T_TRUE(dmn_loop_slice_set());
    after = own();
    child = of_new_thread();
    T_EQ(after.size, sizeof(after));
    T_EQ(after.policy, before.policy);
    T_EQ(after.nice, before.nice);
    T_EQ(child.nice, before.nice);
    T_EQ(child.flags & RESET_ON_FORK, 0);
    if (before.runtime_ns == 0) {
        T_SKIP("this kernel knows no slices");
    }
    T_LT(after.runtime_ns, before.runtime_ns);
    T_EQ(child.runtime_ns, before.runtime_ns);
}

struct at_nice {
    bool permitted, set;
    struct attr child;
};

static void *at_negative_nice(void *arg)
{
    struct at_nice *a = arg;

    a->permitted = setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), -1) == 0;
    a->set = a->permitted && dmn_loop_slice_set();
    a->child = of_new_thread();
    return NULL;
}

TEST(threads_keep_a_negative_nice_level)
{
    struct at_nice a = {0};
    pthread_t t;

    T_EQ(pthread_create(&t, NULL, at_negative_nice, &a), 0);
    pthread_join(t, NULL);
    if (!a.permitted) {
        T_SKIP("no right to a negative nice level");
    }
    T_TRUE(!a.set);
    T_EQ(a.child.nice, -1);
}

TEST_MAIN()
