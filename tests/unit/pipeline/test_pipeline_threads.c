/* SPDX-License-Identifier: Apache-2.0 */
/* Which threads a pipeline has, what the kernel says about them, and what happens without them. */
#include <dirent.h>
#include <sched.h>
#include <signal.h>

#include "tests/harness.h"
#include "tests/unit/pipeline/rig.h"
#include "tests/unit/pipeline/scarce_threads.h"

/* An emulator's threads are still listed for a while when the program has joined them. */
static bool emulated(void)
{
    return getenv("MESON_EXE_WRAPPER") != NULL;
}

static size_t count_tasks(void)
{
    DIR *d = opendir("/proc/self/task");
    size_t n = 0;

    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        n += e->d_name[0] != '.';
    }
    if (d != NULL) {
        closedir(d);
    }
    return n;
}

/* Return: the program's tasks without those of a pipeline; to be called before the first. */
static size_t own_tasks(void)
{
    static size_t n;

    n = n ? n : count_tasks();
    return n;
}

/* Return: how many tasks there are once they are @wanted, or after all. The kernel lists a thread
 * for a moment after it was joined. */
static size_t tasks_become(size_t wanted)
{
    uint64_t deadline = base_now_ns() + 10 * BASE_NS_PER_S;
    size_t n;

    while ((n = count_tasks()) != wanted && base_now_ns() < deadline) {
        sched_yield();
    }
    return n;
}

TEST(failed_switch_leaves_the_old_plan_serving)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan, next;
    struct rig r;
    struct pl_options o;
    size_t own = own_tasks(), wide;
    int failed = 0;

    if (emulated()) {
        T_SKIP("threads of an emulated program end late");
    }
    tiny_net_init(&net, 6, 3, 6);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = rig_plan("0-2@big|3-5@big", &eps, 6);
    wide = eps.eps[0].cpu_count >= 2;
    next = rig_plan(wide ? "0-1@bigx2*2|2-5@big*3" : "0-1@big*2|2-5@big*3", &eps, 6);
    /* a new pipeline needs threads too */
    scarce_threads(1);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), -EAGAIN);
    enough_threads();
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    if (wide) {
        /* the leader gets its thread, its workers do not */
        struct pl_plan one = rig_plan("0-5@bigx2", &eps, 6);

        scarce_threads(1);
        T_EQ(pl_switch(r.p, &one), -EAGAIN);
        enough_threads();
        T_EQ(pl_epoch(r.p), 1);
    }
    for (int left = 0; left < 20; left++) {
        int result;

        while (rig_submit(&r, 0)) {
        }
        scarce_threads(left);
        result = pl_switch(r.p, &next);
        enough_threads();
        if (result == 0) {
            break;
        }
        T_EQ(result, -EAGAIN);
        T_EQ(tasks_become(own + 2), own + 2);
        T_EQ(pl_epoch(r.p), 1);
        T_TRUE(!pl_switching(r.p));
        T_TRUE(pl_plan_equal(&plan, pl_current_plan(r.p)));
        T_TRUE(rig_stream(&r, 10, 0));
        failed++;
    }
    T_LE(5, failed); /* at every team at least */
    T_EQ(pl_epoch(r.p), 2);
    T_TRUE(rig_stream(&r, 20, 0));
    T_EQ(r.ok, r.sent);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(freed_with_frames_in_flight)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan, next;
    size_t own = own_tasks();

    if (emulated()) {
        T_SKIP("threads of an emulated program end late");
    }
    tiny_net_init(&net, 6, 3, 12);
    rig_eps(&eps, false);
    plan = rig_plan("0-1@big|2-3@big*2|4-5@big", &eps, 6);
    next = rig_plan("0-5@big*2", &eps, 6);
    for (int i = 0; i < 50; i++) {
        struct rig r;
        struct pl_options o;
        size_t n = (size_t)t_range(0, 20);

        rig_init(&r, &net);
        o = rig_options(&r);
        T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
        while (n-- > 0 && rig_submit(&r, 0)) {
        }
        if (i % 3 == 0) {
            T_EQ(pl_switch(r.p, &next), 0);
            rig_submit(&r, 0);
        }
        if (i % 2 == 0) {
            rig_collect(&r);
        }
        T_TRUE(!r.wrong);
        rig_deinit(&r);
    }
    T_EQ(tasks_become(own), own);
    tiny_net_deinit(&net);
}

struct task {
    long tid;
    unsigned long long run_ns;
    char blocked[32], cpus[256], name[32];
};

static bool read_line(const char *dir, long tid, const char *file, const char *key, char *ret,
                      size_t bytes)
{
    char path[96], line[512];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%ld/%s", dir, tid, file);
    f = fopen(path, "re");
    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            snprintf(ret, bytes, "%s", line + strlen(key) + strspn(line + strlen(key), " \t"));
            ret[strcspn(ret, "\n")] = '\0';
            found = true;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

/* Threads of pipelines, by name. */
static size_t list_tasks(struct task *ret, size_t max)
{
    DIR *d = opendir("/proc/self/task");
    size_t n = 0;

    for (struct dirent *e; d != NULL && n < max && (e = readdir(d)) != NULL;) {
        struct task t = {.tid = atol(e->d_name)};
        char run[64] = "";

        if (t.tid > 0 && read_line("/proc/self/task", t.tid, "comm", "", t.name, sizeof(t.name)) &&
            strncmp(t.name, "piped:", 6) == 0) {
            read_line("/proc/self/task", t.tid, "status", "SigBlk:", t.blocked, sizeof(t.blocked));
            read_line("/proc/self/task", t.tid, "status", "Cpus_allowed_list:", t.cpus,
                      sizeof(t.cpus));
            read_line("/proc/self/task", t.tid, "schedstat", "", run, sizeof(run));
            t.run_ns = strtoull(run, NULL, 10);
            ret[n++] = t;
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    return n;
}

TEST(threads_are_named_pinned_and_deaf_to_signals)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;
    struct task tasks[16];
    size_t own = own_tasks(), n;

    if (emulated()) {
        T_SKIP("threads of an emulated program end late");
    }
    tiny_net_init(&net, 4, 3, 6);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    if (eps.eps[0].cpu_count < 2) {
        rig_deinit(&r);
        tiny_net_deinit(&net);
        T_SKIP("one CPU");
    }
    plan = rig_plan("0-1@bigx2|2-3@big*2", &eps, 4);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    T_EQ(tasks_become(own + 4), own + 4);
    n = list_tasks(tasks, 16);
    T_EQ(n, 4);
    for (size_t i = 0; i < n; i++) {
        bool known = false;

        T_TRUE(strcmp(tasks[i].name, "piped:s0.big0") == 0 ||
               strcmp(tasks[i].name, "piped:s1.big0") == 0 ||
               strcmp(tasks[i].name, "piped:s1.big1") == 0);
        for (size_t k = 0; k < eps.eps[0].cpu_count; k++) {
            known |= atoi(tasks[i].cpus) == eps.eps[0].cpus[k];
        }
        T_TRUE(known);
        T_TRUE(strpbrk(tasks[i].cpus, ",-") == NULL);
        for (int sig = 1; sig < 32; sig++) {
            unsigned long long mask = strtoull(tasks[i].blocked, NULL, 16);

            /* SIGBUS comes to who reads a client's memory: ipc/server/mapped_memory.h */
            T_TRUE(sig == SIGKILL || sig == SIGSTOP || (mask >> (sig - 1) & 1) == (sig != SIGBUS));
        }
    }
    T_TRUE(rig_stream(&r, 10, 0));
    rig_deinit(&r);
    T_EQ(tasks_become(own), own);
    T_EQ(list_tasks(tasks, 16), 0);
    tiny_net_deinit(&net);
}

/* While another pipeline works, the threads of an idle one stay off the CPU: their clocks stand. */
TEST(idle_burns_nothing)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig idle, busy;
    struct pl_options o;
    struct task before[16], after[64];
    size_t tasks = own_tasks(), n, still = 0;

    if (emulated()) {
        T_SKIP("threads of an emulated program end late");
    }
    tiny_net_init(&net, 4, 3, 8);
    rig_init(&idle, &net);
    rig_init(&busy, &net);
    rig_eps(&eps, false);
    o = rig_options(&idle);
    plan = rig_plan(eps.eps[0].cpu_count >= 2 ? "0-1@bigx2|2-3@big" : "0-1@big|2-3@big", &eps, 4);
    tasks += eps.eps[0].cpu_count >= 2 ? 3 : 2;
    T_EQ(pl_new(net.net, &eps, &plan, &o, &idle.p), 0);
    T_TRUE(rig_stream(&idle, 20, 0));
    o = rig_options(&busy);
    plan = rig_plan("0-3@big", &eps, 4);
    for (int round = 0; round < 200 && still == 0; round++) {
        /* listed before the other pipeline has threads */
        T_EQ(tasks_become(tasks), tasks);
        n = list_tasks(before, 16);
        T_LE(2, n);
        if (before[0].run_ns == 0) {
            rig_deinit(&idle);
            rig_deinit(&busy);
            tiny_net_deinit(&net);
            T_SKIP("this kernel keeps no schedstat");
        }
        T_EQ(pl_new(net.net, &eps, &plan, &o, &busy.p), 0);
        T_TRUE(rig_stream(&busy, 50, 0));
        busy.p = pl_free(busy.p);
        T_EQ(tasks_become(tasks), tasks);
        T_EQ(list_tasks(after, 64), n);
        still = 1;
        for (size_t i = 0; i < n; i++) {
            T_EQ(after[i].tid, before[i].tid);
            still &= after[i].run_ns == before[i].run_ns;
        }
    }
    T_EQ(still, 1);
    rig_deinit(&idle);
    rig_deinit(&busy);
    tiny_net_deinit(&net);
}

TEST_MAIN()
