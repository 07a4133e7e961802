/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/interleavings/explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/base.h"
#include "kernels/common/parallel.h"
#include "tests/interleavings/memory_model.h"

#define STACK_BYTES ((size_t)512 << 10)
#define STEPS_MAX 2000000u /* of a run; then it is said to have no end */
#define CHOICES_MAX 100000u
#define IDLE_MAX 48u /* loads in a row: the thread waits for somebody */
#define LOW_PRIORITIES 1000000u

/* PCT: the thread of the highest priority runs; at some steps, chosen beforehand, the running
 * thread's becomes the lowest. Burckhardt et al., A randomized scheduler with probabilistic
 * guarantees of finding bugs, ASPLOS 2010. */
#define CHANGES 3u

enum state { FREE, READY, ASLEEP, ENDED };

struct fiber {
    enum state state;
    ucontext_t context;
    void *stack;
    void *(*fn)(void *);
    void *arg, *result;
    const void *on; /* of a thread that sleeps */
    uint64_t priority;
    unsigned idle; /* operations in a row that changed nothing */
};

struct choice {
    uint32_t chosen, count;
};

static struct {
    const struct ex_options *o;
    struct ex_report *report; /* shared with the parent */
    void (*fn)(void *);
    void *arg;
    ucontext_t driver;
    struct fiber fibers[EX_THREADS];
    size_t count, self;
    bool active;
    uint64_t now_ns, steps, random, change_at[CHANGES], lowest;
    bool pct;
    unsigned preemptions, odd;
    struct choice *choices; /* all schedules: what this run does first */
    size_t choice_count, choice_at;
} x;

bool ex_active(void)
{
    return x.active;
}

size_t ex_self(void)
{
    return x.self;
}

uint64_t ex_now_ns(void)
{
    return x.now_ns += 1000;
}

void ex_fail(const char *format, ...)
{
    int n = 0;
    va_list args;

    if (!x.o->all) {
        n = snprintf(x.report->text, sizeof(x.report->text),
                     "seed %llu: ", (unsigned long long)(x.o->seed + x.report->runs));
    }
    va_start(args, format);
    vsnprintf(x.report->text + n, sizeof(x.report->text) - (size_t)n, format, args);
    va_end(args);
    _exit(1);
}

/* ---- choices ---- */

static size_t choose_again(size_t count)
{
    struct choice *c = &x.choices[x.choice_at];

    if (x.choice_at == x.choice_count) {
        if (x.choice_count == CHOICES_MAX) {
            ex_fail("a run has more than %u choices", CHOICES_MAX);
        }
        *c = (struct choice){0, (uint32_t)count};
        x.choice_count++;
    }
    if (c->count != count) {
        ex_fail("the run does not repeat: %zu ways where there were %u", count, c->count);
    }
    x.choice_at++;
    return c->chosen;
}

size_t ex_choose(size_t count)
{
    if (count < 2) {
        return 0;
    }
    if (x.o->all) {
        size_t chosen = x.odd == x.o->odd ? 0 : choose_again(count);

        x.odd += chosen > 0;
        return chosen;
    }
    /* mostly the ordinary one, as on a machine */
    return base_splitmix64(&x.random) % 4 != 0 ? 0 : base_splitmix64(&x.random) % count;
}

/* Moves on to the next schedule. Return: whether there is one. */
static bool next_choices(void)
{
    while (x.choice_count > 0) {
        struct choice *c = &x.choices[x.choice_count - 1];

        if (++c->chosen < c->count) {
            return true;
        }
        x.choice_count--;
    }
    return false;
}

/* ---- threads ---- */

static size_t ready_others(size_t *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < x.count; i++) {
        if (i != x.self && x.fibers[i].state == READY) {
            ret[n++] = i;
        }
    }
    return n;
}

static size_t highest(const size_t *of, size_t count)
{
    size_t best = of[0];

    for (size_t i = 1; i < count; i++) {
        if (x.fibers[of[i]].priority > x.fibers[best].priority) {
            best = of[i];
        }
    }
    return best;
}

static void run(size_t next)
{
    size_t before = x.self;
    struct krn_between between;

    if (next == before) {
        return;
    }
    x.self = next;
    between = krn_parallel_between(KRN_BETWEEN_NULL); /* fibers share what is a thread's own */
    if (swapcontext(&x.fibers[before].context, &x.fibers[next].context) != 0) {
        abort();
    }
    krn_parallel_between(between);
}

static void switch_away(void)
{
    size_t others[EX_THREADS], n = ready_others(others);

    if (n == 0) {
        return;
    }
    run(x.o->all ? others[ex_choose(n)]
        : x.pct  ? highest(others, n)
                 : others[base_splitmix64(&x.random) % n]);
}

void ex_yield(void)
{
    x.fibers[x.self].idle = 0;
    x.fibers[x.self].priority = --x.lowest;
    switch_away();
}

static void point_of_all(void)
{
    size_t others[EX_THREADS], n = ready_others(others), chosen;

    if (n == 0 || x.preemptions == x.o->preemptions) {
        return;
    }
    chosen = choose_again(n + 1);
    if (chosen > 0) {
        x.preemptions++;
        run(others[chosen - 1]);
    }
}

static void point_of_random(void)
{
    size_t ready[EX_THREADS], n = ready_others(ready);

    for (size_t i = 0; x.pct && i < CHANGES; i++) {
        if (x.change_at[i] == x.steps) {
            x.fibers[x.self].priority = --x.lowest;
        }
    }
    ready[n++] = x.self;
    if (x.pct) {
        run(highest(ready, n));
    } else if (base_splitmix64(&x.random) % 4 == 0) {
        run(ready[base_splitmix64(&x.random) % n]);
    }
}

void ex_point(bool idle)
{
    struct fiber *f = &x.fibers[x.self];

    if (++x.steps > STEPS_MAX) {
        ex_fail("no end after %u steps", STEPS_MAX);
    }
    f->idle = idle ? f->idle + 1 : 0;
    if (f->idle > IDLE_MAX) {
        ex_yield();
    } else if (x.o->all) {
        point_of_all();
    } else {
        point_of_random();
    }
}

void ex_block(const void *on)
{
    struct fiber *f = &x.fibers[x.self];
    size_t others[EX_THREADS];

    f->state = ASLEEP;
    f->on = on;
    f->idle = 0;
    if (ready_others(others) == 0) {
        ex_fail("all %zu threads wait for each other", x.count);
    }
    switch_away();
}

size_t ex_unblock(const void *on, size_t count)
{
    size_t n = 0;

    for (size_t i = 0; i < x.count && n < count; i++) {
        if (x.fibers[i].state == ASLEEP && x.fibers[i].on == on) {
            x.fibers[i].state = READY;
            n++;
        }
    }
    return n;
}

void *ex_thread_wait(size_t thread)
{
    struct fiber *f = &x.fibers[thread];

    while (f->state != ENDED) {
        ex_block(f);
    }
    return f->result;
}

static void fiber_main(void)
{
    struct fiber *f = &x.fibers[x.self];

    f->result = f->fn(f->arg);
    f->state = ENDED;
    mm_release_all();
    ex_unblock(f, EX_THREADS);
    if (x.self != 0) {
        size_t others[EX_THREADS];

        if (ready_others(others) == 0) {
            ex_fail("all threads wait for each other after one has ended");
        }
        switch_away();
    }
    /* the first thread ends last: it joins the others */
    setcontext(&x.driver);
    abort();
}

size_t ex_thread_new(void *(*fn)(void *), void *arg)
{
    struct fiber *f = &x.fibers[x.count];

    if (x.count == EX_THREADS) {
        ex_fail("more than %u threads", EX_THREADS);
    }
    if (f->stack == NULL) {
        f->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (f->stack == MAP_FAILED) {
            abort();
        }
    }
    f->state = READY;
    f->fn = fn;
    f->arg = arg;
    f->result = NULL;
    f->idle = 0;
    f->priority = LOW_PRIORITIES + base_splitmix64(&x.random) % LOW_PRIORITIES;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = STACK_BYTES;
    f->context.uc_link = NULL;
    makecontext(&f->context, fiber_main, 0);
    return x.count++;
}

/* ---- runs ---- */

static void *first_thread(void *unused)
{
    x.fn(x.arg);
    return unused;
}

static void one_run(void)
{
    volatile bool started = false;

    x.random = x.o->seed + x.report->runs;
    x.steps = x.preemptions = x.odd = 0;
    x.choice_at = x.count = x.self = 0;
    x.now_ns = BASE_NS_PER_S;
    x.lowest = LOW_PRIORITIES;
    x.pct = base_splitmix64(&x.random) % 2 != 0;
    for (size_t i = 0; i < CHANGES; i++) {
        /* runs are of very different lengths */
        x.change_at[i] = base_splitmix64(&x.random) % ((uint64_t)64 << 2 * (x.random % 4));
    }
    mm_reset();
    ex_thread_new(first_thread, NULL);
    getcontext(&x.driver);
    if (!started) {
        started = true;
        x.active = true;
        setcontext(&x.fibers[0].context);
    }
    x.active = false;
}

static void explore(void)
{
    bool more = true;

    x.choices = calloc(CHOICES_MAX, sizeof(x.choices[0]));
    if (x.choices == NULL) {
        abort();
    }
    while (more && x.report->runs < x.o->runs) {
        one_run();
        x.report->runs++;
        more = !x.o->all || next_choices();
    }
    x.report->complete = !more;
}

bool ex_explore(void (*fn)(void *arg), void *arg, const struct ex_options *o, struct ex_report *ret)
{
    struct ex_report *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    pid_t child;

    if (shared == MAP_FAILED) {
        abort();
    }
    memset(shared, 0, sizeof(*shared));
    fflush(NULL);
    child = fork();
    if (child == 0) {
        x.o = o;
        x.report = shared;
        x.fn = fn;
        x.arg = arg;
        explore();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        abort();
    }
    *ret = *shared;
    munmap(shared, sizeof(*shared));
    if (!WIFEXITED(status) && ret->text[0] == '\0') {
        snprintf(ret->text, sizeof(ret->text), "seed %llu: signal %d",
                 (unsigned long long)(o->seed + ret->runs), WTERMSIG(status));
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
