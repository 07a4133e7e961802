/* SPDX-License-Identifier: Apache-2.0 */
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

#include "kernels/common/uneven.h"
#include "kernels/kernels.h"
#include "pipeline/members.h"
#include "pipeline/plan.h"

#define THREAD_NAME_MAX 16u

pl_thread_create_fn pl_thread_create = pthread_create;

/* Held while threads are started: so another team takes none that were found to be free. */
static pthread_mutex_t starting = PTHREAD_MUTEX_INITIALIZER;

static int start(pthread_t *ret, void *(*fn)(void *), void *arg)
{
    sigset_t all, before;
    int r;

    sigfillset(&all);
    sigdelset(&all,
              SIGBUS); /* of the thread that touches missing memory: ipc/server/mapped_memory.h */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pl_thread_create(ret, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

int pl_thread_start(pthread_t *ret, void *(*fn)(void *), void *arg)
{
    int r;

    pthread_mutex_lock(&starting);
    r = start(ret, fn, arg);
    pthread_mutex_unlock(&starting);
    return r;
}

static void *wait_for_gate(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

/*
 * pthreadpool_create() ignores the result of pthread_create() and waits for ever for threads that
 * did not start. So start and join the same number of threads first: if that fails, we fail instead
 * of hanging. (Another program of this user may take the threads in between; only a pool of our own
 * could prevent that.)
 */
static int probe_threads(size_t count)
{
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[PL_CPU_MAX];
    size_t started = 0;
    int r = 0;

    pthread_mutex_lock(&gate);
    while (r == 0 && started < count) {
        r = start(&threads[started], wait_for_gate, &gate);
        started += r == 0;
    }
    pthread_mutex_unlock(&gate);
    for (size_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    pthread_mutex_destroy(&gate);
    return r;
}

struct each {
    void (*fn)(void *arg, size_t i);
    void *arg;
    pthread_barrier_t barrier;
};

static void run_each(void *arg, size_t i)
{
    struct each *e = arg;

    pthread_barrier_wait(&e->barrier);
    e->fn(e->arg, i);
}

void pl_members_each(struct pl_members *m, void (*fn)(void *arg, size_t i), void *arg)
{
    struct each e = {.fn = fn, .arg = arg};

    if (m->pool == NULL) {
        fn(arg, 0);
        return;
    }
    pthread_barrier_init(&e.barrier, NULL, (unsigned)m->width);
    krn_parallel(m->pool, m->width, run_each, &e);
    pthread_barrier_destroy(&e.barrier);
}

struct pinning {
    pthread_t leader;
    const uint16_t *cpus;
    const char *name;
    struct pl_worker_time *workers; /* each worker takes one */
    _Atomic size_t taken;           /* writers: workers */
    _Atomic bool failed;            /* writers: any member; only set to true */
};

static void pin_member(void *arg, size_t i)
{
    struct pinning *p = arg;
    char name[THREAD_NAME_MAX];
    cpu_set_t one;

    snprintf(name, sizeof(name), "%s", p->name);
    pthread_setname_np(pthread_self(), name);
    krn_uneven_self(i);
    if (!pthread_equal(pthread_self(), p->leader)) {
        pl_worker_time_init(&p->workers[atomic_fetch_add(&p->taken, 1)]);
    }
    if (p->cpus == NULL) {
        return;
    }
    CPU_ZERO(&one);
    CPU_SET(p->cpus[i], &one);
    if (pthread_setaffinity_np(pthread_self(), sizeof(one), &one) != 0) {
        atomic_store_explicit(&p->failed, true, memory_order_relaxed);
    }
}

/* Nobody else starts threads meanwhile. */
static int make_pool(struct pl_members *m)
{
    int r;

    pthread_mutex_lock(&starting);
    r = probe_threads(m->width - 1);
    if (r == 0) {
        m->pool = pthreadpool_create(m->width);
        r = m->pool == NULL ? -ENOMEM : 0;
    }
    pthread_mutex_unlock(&starting);
    return r;
}

int pl_members_init(struct pl_members *m, const uint16_t *cpus, size_t width, const char *name)
{
    struct pinning p = {.leader = pthread_self(), .cpus = cpus, .name = name};

    *m = (struct pl_members){.width = width};
    if (width > PL_CPU_MAX) {
        return -EINVAL;
    }
    if (width > 1) {
        /* before the leader is pinned; otherwise the workers would start on its core */
        int r = make_pool(m);

        if (r < 0) {
            return r;
        }
        p.workers = m->workers = calloc(width - 1, sizeof(*m->workers));
        if (m->workers == NULL) {
            pl_members_deinit(m);
            return -ENOMEM;
        }
    }
    pl_members_each(m, pin_member, &p);
    m->pinned = cpus != NULL && !atomic_load_explicit(&p.failed, memory_order_relaxed);
    return 0;
}

void pl_members_deinit(struct pl_members *m)
{
    if (m->pool != NULL) {
        pthreadpool_destroy(m->pool);
        m->pool = NULL;
    }
    for (size_t i = 0; m->workers != NULL && i + 1 < m->width; i++) {
        pl_worker_time_deinit(&m->workers[i]);
    }
    free(m->workers);
    m->workers = NULL;
}

static void nothing(void *arg, size_t i)
{
}

void pl_members_rest(struct pl_members *m)
{
    if (m->pool != NULL) {
        pthreadpool_parallelize_1d(m->pool, nothing, NULL, m->width,
                                   PTHREADPOOL_FLAG_YIELD_WORKERS);
    }
}

void pl_members_look(struct pl_members *m)
{
    m->looked_ns = base_now_ns();
    for (size_t i = 0; i + 1 < m->width; i++) {
        pl_worker_time_look(&m->workers[i]);
    }
}

struct pl_members_lost pl_members_lost(const struct pl_members *m)
{
    uint64_t ns = base_now_ns() - m->looked_ns;
    struct pl_members_lost lost = {0};

    for (size_t i = 0; i + 1 < m->width; i++) {
        uint64_t one = pl_worker_time_lost_ns(&m->workers[i], ns);

        lost.most_ns = base_max(lost.most_ns, one);
        lost.sum_ns += one;
    }
    return lost;
}

/* ---- for how long a worker was kept from its core ---- */

void pl_worker_time_init(struct pl_worker_time *w)
{
    *w = (struct pl_worker_time){.fd = -1};
    if (pthread_getcpuclockid(pthread_self(), &w->clock) == 0) {
        w->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    }
}

void pl_worker_time_deinit(struct pl_worker_time *w)
{
    if (w->fd >= 0) {
        close(w->fd);
        w->fd = -1;
    }
}

/* The second of "ns on a core, ns waiting for one, times on one". */
static uint64_t waited_ns(const struct pl_worker_time *w)
{
    char text[96], *second;
    ssize_t n = pread(w->fd, text, sizeof(text) - 1, 0);

    text[base_max(n, (ssize_t)0)] = '\0';
    (void)strtoull(text, &second, 10);
    return strtoull(second, NULL, 10);
}

static uint64_t ran_ns(const struct pl_worker_time *w)
{
    struct timespec t = {0};

    clock_gettime(w->clock, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

void pl_worker_time_look(struct pl_worker_time *w)
{
    if (w->fd >= 0) {
        w->waited_ns = waited_ns(w);
        w->ran_ns = ran_ns(w);
    }
}

uint64_t pl_worker_time_lost_ns(const struct pl_worker_time *w, uint64_t ns)
{
    uint64_t waited, ran;

    if (w->fd < 0) {
        return 0;
    }
    waited = waited_ns(w) - w->waited_ns;
    ran = ran_ns(w) - w->ran_ns;
    return ran < ns ? base_min(waited, ns - ran) : 0;
}
