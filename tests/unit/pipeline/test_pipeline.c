/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>

#include "pipeline/members.h"
#include "tests/unit/pipeline/rig.h"

static struct pl_plan plan_of(const char *text, const struct pl_ep_set *eps, size_t units)
{
    struct pl_plan p = {0};
    char error[160];

    if (pl_plan_parse(text, eps, units, error, sizeof(error), &p) != 0) {
        fprintf(stderr, "%s: %s\n", text, error);
        exit(1);
    }
    return p;
}

/* Sends @frames and collects them, as many at once as there are frames. False: something wrong. */
static bool stream(struct rig *r, uint64_t frames, unsigned flags)
{
    uint64_t until = r->sent + frames;

    while (r->sent < until) {
        while (r->sent < until && rig_submit(r, flags)) {
        }
        if (!rig_collect(r) && r->sent < until && !rig_wait(&r->wake)) {
            return false;
        }
    }
    return rig_drain(r) && !r->wrong;
}

/* A team counts a frame after it has passed it on: the last ones may still be uncounted. */
static uint64_t counted(const struct pl_pipeline *p, size_t stage, uint64_t expected)
{
    uint64_t frames;

    do {
        frames = 0;
        for (size_t i = 0; i < pl_team_count(p); i++) {
            struct pl_team_stats s;

            pl_team_stats(p, i, &s);
            frames += s.stage == stage ? s.frames : 0;
        }
    } while (frames < expected && sched_yield() == 0);
    return frames;
}

static void check_plan(struct tiny_net *net, const struct pl_ep_set *eps, const char *text)
{
    struct pl_plan plan = plan_of(text, eps, net->model.unit_count);
    struct rig r;
    struct pl_options o;

    rig_init(&r, net);
    o = rig_options(&r);
    T_EQ(pl_new(net->net, eps, &plan, &o, &r.p), 0);
    T_TRUE(pl_plan_equal(&plan, pl_current_plan(r.p)));
    T_TRUE(stream(&r, 60, 0));
    T_TRUE(stream(&r, 20, RIG_IMAGE));
    T_EQ(r.ok, 80);
    T_EQ(pl_in_flight(r.p), 0);
    T_EQ(pl_stalled_ns(r.p, base_now_ns() + BASE_NS_PER_S), 0);
    for (size_t i = 0; i < plan.stage_count; i++) {
        T_EQ(counted(r.p, i, 80), 80);
    }
    for (size_t i = 0; i < pl_team_count(r.p); i++) {
        struct pl_team_stats s;

        pl_team_stats(r.p, i, &s);
        T_TRUE(s.pinned);
        T_EQ(s.queue, 0);
        T_TRUE(!s.holding);
        T_TRUE(s.busy_ns > 0 || s.frames == 0);
    }
    for (size_t u = 0; u < net->model.unit_count; u++) {
        struct pl_unit_stats s;

        pl_unit_stats(r.p, u, &s);
        T_EQ(s.time.count, 80);
        T_TRUE(s.time.mean_ns > 0 && s.time.min_ns <= s.time.mean_ns);
    }
    rig_deinit(&r);
}

TEST(every_shape_of_plan_gives_the_same_answers)
{
    static const char *const one_kind[] = {
        "0-5@big",
        "0-2@big|3-5@big",
        "0-5@big*3",
        "0-0@big|1-1@big|2-2@big|3-3@big|4-4@big|5-5@big",
        "0-1@big*2|2-3@big*3|4-5@big*2",
        "0-3@big*4|4-5@big",
    };
    static const char *const two_kinds[] = {
        "0-2@big|3-5@little",
        "0-2@little|3-5@big",
        "0-5@big+little",
        "0-5@big*2+little*3",
        "0-1@big+little|2-4@little*2+big|5-5@big",
    };
    struct pl_ep_set eps;
    struct tiny_net net;

    tiny_net_init(&net, 6, 3, 10);
    rig_eps(&eps, false);
    for (size_t i = 0; i < base_array_count(one_kind); i++) {
        check_plan(&net, &eps, one_kind[i]);
    }
    if (eps.eps[0].cpu_count >= 2) {
        check_plan(&net, &eps, "0-5@bigx2");
        check_plan(&net, &eps, "0-2@bigx2|3-5@bigx2*2");
        check_plan(&net, &eps, "0-2@bigx2+big|3-5@big+bigx2");
    }
    rig_eps(&eps, true);
    for (size_t i = 0; i < base_array_count(two_kinds); i++) {
        check_plan(&net, &eps, two_kinds[i]);
    }
    tiny_net_deinit(&net);
}

TEST(refuses_what_it_cannot_serve)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;

    tiny_net_init(&net, 3, 3, 6);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = plan_of("0-3@big", &eps, 4); /* one unit too many */
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), -EINVAL);
    plan = plan_of("0-2@big", &eps, 3);
    o.frames = SIZE_MAX;
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), -EINVAL);
    o.frames = 0;
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    T_EQ(pl_frame_count(r.p), 2 * eps.eps[0].cpu_count + 2);
    T_EQ(pl_depth(r.p), 3);
    plan = plan_of("0-1@big", &eps, 2);
    T_EQ(pl_switch(r.p, &plan), -EINVAL);
    T_EQ(pl_epoch(r.p), 1);
    T_TRUE(stream(&r, 10, 0));
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(cancelled_and_expired_frames_are_not_computed)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;

    tiny_net_init(&net, 4, 3, 8);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = plan_of("0-1@big|2-3@big*2", &eps, 4);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    T_TRUE(stream(&r, 40, RIG_CANCELLED));
    T_TRUE(stream(&r, 40, RIG_EXPIRED));
    T_EQ(r.ok, 0);
    for (size_t i = 0; i < pl_team_count(r.p); i++) {
        struct pl_team_stats s;

        pl_team_stats(r.p, i, &s);
        T_EQ(s.frames, 0); /* computed none */
        T_EQ(s.service.count, 0);
    }
    T_TRUE(stream(&r, 40, 0));
    T_EQ(r.ok, 40);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

/* One frame at a time with teams that never spin: each hand-off goes through a sleep. */
TEST(no_wakeup_is_lost)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;

    tiny_net_init(&net, 3, 1, 2);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    o.spin_ns = 0;
    plan = plan_of("0-0@big|1-1@big|2-2@big", &eps, 3);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    for (int i = 0; i < 10000; i++) {
        T_TRUE(rig_submit(&r, 0));
        T_TRUE(rig_drain(&r));
    }
    T_TRUE(!r.wrong);
    T_EQ(r.ok, 10000);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

static _Atomic int threads_left;
static int scarce_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return atomic_fetch_sub(&threads_left, 1) > 0 ? pthread_create(t, attr, fn, arg) : EAGAIN;
}

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

TEST(failed_switch_leaves_the_old_plan_serving)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan, next;
    struct rig r;
    struct pl_options o;
    size_t wide;
    int failed = 0;

    if (emulated()) {
        T_SKIP("threads of an emulated program end late");
    }
    tiny_net_init(&net, 6, 3, 6);
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = plan_of("0-2@big|3-5@big", &eps, 6);
    wide = eps.eps[0].cpu_count >= 2;
    next = plan_of(wide ? "0-1@bigx2*2|2-5@big*3" : "0-1@big*2|2-5@big*3", &eps, 6);
    /* a new pipeline needs threads too */
    atomic_store(&threads_left, 1);
    pl_thread_create = scarce_create;
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), -EAGAIN);
    pl_thread_create = pthread_create;
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    if (wide) {
        /* the leader gets its thread, its workers do not */
        struct pl_plan one = plan_of("0-5@bigx2", &eps, 6);

        atomic_store(&threads_left, 1);
        pl_thread_create = scarce_create;
        T_EQ(pl_switch(r.p, &one), -EAGAIN);
        pl_thread_create = pthread_create;
        T_EQ(pl_epoch(r.p), 1);
    }
    for (int left = 0; left < 20; left++) {
        size_t tasks = count_tasks();
        int result;

        while (rig_submit(&r, 0)) {
        }
        atomic_store(&threads_left, left);
        pl_thread_create = scarce_create;
        result = pl_switch(r.p, &next);
        pl_thread_create = pthread_create;
        if (result == 0) {
            break;
        }
        T_EQ(result, -EAGAIN);
        T_EQ(count_tasks(), tasks);
        T_EQ(pl_epoch(r.p), 1);
        T_TRUE(!pl_switching(r.p));
        T_TRUE(pl_plan_equal(&plan, pl_current_plan(r.p)));
        T_TRUE(stream(&r, 10, 0));
        failed++;
    }
    T_LE(5, failed); /* at every team at least */
    T_EQ(pl_epoch(r.p), 2);
    T_TRUE(stream(&r, 20, 0));
    T_EQ(r.ok, r.sent);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(one_switch_at_a_time)
{
    struct pl_ep_set eps, fewer;
    struct tiny_net net;
    struct pl_plan a, b;
    struct rig r;
    struct pl_options o;

    tiny_net_init(&net, 2, 8, 48); /* tens of milliseconds a frame: the old set is still at it */
    rig_init(&r, &net);
    rig_eps(&eps, true);
    o = rig_options(&r);
    a = plan_of("0-0@big|1-1@little", &eps, 2);
    b = plan_of("0-1@little", &eps, 2);
    T_EQ(pl_new(net.net, &eps, &a, &o, &r.p), 0);
    T_TRUE(rig_submit(&r, 0));
    T_EQ(pl_switch(r.p, &b), 0);
    T_TRUE(pl_switching(r.p));
    T_EQ(pl_switch(r.p, &a), PL_E_BUSY);
    T_EQ(pl_epoch(r.p), 2);
    T_TRUE(rig_submit(&r, 0));
    T_TRUE(rig_drain(&r));
    T_TRUE(!pl_switching(r.p));
    T_EQ(r.epoch, 2);
    /* the machine changed: the plan that serves still means its own places */
    fewer = eps;
    fewer.count = 1;
    T_EQ(pl_set_eps(r.p, &fewer), 0);
    T_EQ(pl_current_eps(r.p)->count, 2);
    T_EQ(pl_switch(r.p, &b), -EINVAL);
    b = plan_of("0-1@big", &fewer, 2);
    T_EQ(pl_switch(r.p, &b), 0);
    T_EQ(pl_current_eps(r.p)->count, 1);
    T_TRUE(stream(&r, 3, 0));
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(sees_a_team_that_makes_no_progress)
{
    const uint64_t later = 1000 * BASE_NS_PER_S;
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;
    uint64_t before, now;

    tiny_net_init(&net, 1, 16, 64); /* one unit of tens of milliseconds */
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    plan = plan_of("0-0@big", &eps, 1);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    T_EQ(pl_stalled_ns(r.p, base_now_ns() + later), 0);
    before = base_now_ns();
    T_TRUE(rig_submit(&r, 0));
    now = base_now_ns();
    /* seen from far in the future, the frame that is being computed is a stall */
    T_TRUE(pl_stalled_ns(r.p, now + later) >= later - BASE_NS_PER_S);
    T_TRUE(pl_stalled_ns(r.p, now + later) <= now + later - before);
    T_TRUE(rig_drain(&r));
    T_EQ(pl_stalled_ns(r.p, base_now_ns() + later), 0);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

/* What stage 0 cannot begin soon stays with the caller, though there are frames and memory. */
TEST(stage_0_says_when_it_has_enough)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan;
    struct rig r;
    struct pl_options o;
    size_t before;

    tiny_net_init(&net, 1, 16, 64); /* tens of milliseconds a frame */
    rig_init(&r, &net);
    rig_eps(&eps, false);
    o = rig_options(&r);
    o.frames = 40;
    plan = plan_of("0-0@big", &eps, 1);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
    while (rig_submit(&r, 0)) {
    }
    before = pl_in_flight(r.p);
    T_LE(3, before); /* one held, two waiting */
    T_LT(before, 40);
    T_LE(pl_depth(r.p), before); /* what keeps it busy is let in */
    T_TRUE(rig_drain(&r));
    T_EQ(r.ok, before);
    rig_deinit(&r);
    tiny_net_deinit(&net);
}

TEST(freed_with_frames_in_flight)
{
    struct pl_ep_set eps;
    struct tiny_net net;
    struct pl_plan plan, next;
    size_t tasks = count_tasks();

    if (emulated()) {
        T_SKIP("threads of an emulated program end late");
    }
    tiny_net_init(&net, 6, 3, 12);
    rig_eps(&eps, false);
    plan = plan_of("0-1@big|2-3@big*2|4-5@big", &eps, 6);
    next = plan_of("0-5@big*2", &eps, 6);
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
    T_EQ(count_tasks(), tasks);
    tiny_net_deinit(&net);
}

/* ---- what the kernel says about the threads ---- */

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
    size_t n;

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
    plan = plan_of("0-1@bigx2|2-3@big*2", &eps, 4);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &r.p), 0);
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

            T_TRUE(sig == SIGKILL || sig == SIGSTOP || (mask >> (sig - 1) & 1) == 1);
        }
    }
    T_TRUE(stream(&r, 10, 0));
    rig_deinit(&r);
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
    size_t n, still = 0;

    if (emulated()) {
        T_SKIP("threads of an emulated program end late");
    }
    tiny_net_init(&net, 4, 3, 8);
    rig_init(&idle, &net);
    rig_init(&busy, &net);
    rig_eps(&eps, false);
    o = rig_options(&idle);
    plan = plan_of(eps.eps[0].cpu_count >= 2 ? "0-1@bigx2|2-3@big" : "0-1@big|2-3@big", &eps, 4);
    T_EQ(pl_new(net.net, &eps, &plan, &o, &idle.p), 0);
    T_TRUE(stream(&idle, 20, 0));
    o = rig_options(&busy);
    plan = plan_of("0-3@big", &eps, 4);
    for (int round = 0; round < 200 && still == 0; round++) {
        /* listed before the other pipeline has threads */
        n = list_tasks(before, 16);
        T_LE(2, n);
        if (before[0].run_ns == 0) {
            rig_deinit(&idle);
            rig_deinit(&busy);
            tiny_net_deinit(&net);
            T_SKIP("this kernel keeps no schedstat");
        }
        T_EQ(pl_new(net.net, &eps, &plan, &o, &busy.p), 0);
        T_TRUE(stream(&busy, 50, 0));
        busy.p = pl_free(busy.p);
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
