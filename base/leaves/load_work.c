/* SPDX-License-Identifier: Apache-2.0 */
#include "base/leaves/load_work.h"

#include <pthread.h>
#include <signal.h>

static _Thread_local const _Atomic bool *stop_by;

const _Atomic bool *mdl_stop_by(const _Atomic bool *stop)
{
    const _Atomic bool *before = stop_by;

    stop_by = stop;
    return before;
}

bool mdl_stopped(void)
{
    return stop_by && atomic_load_explicit(stop_by, memory_order_relaxed);
}

static _Thread_local struct mdl_progress *kept;

struct mdl_progress *mdl_progress_by(struct mdl_progress *p)
{
    struct mdl_progress *before = kept;

    kept = p;
    return before;
}

void mdl_progress(const char *what, size_t done, size_t of)
{
    if (kept) {
        atomic_store_explicit(&kept->what, what, memory_order_relaxed);
        atomic_store_explicit(&kept->done, (uint32_t)done, memory_order_relaxed);
        atomic_store_explicit(&kept->of, (uint32_t)of, memory_order_relaxed);
    }
}

#define THREADS_MAX 64u

struct job {
    void (*fn)(void *arg);
    void *arg;
    const _Atomic bool *stop; /* of the thread that shares its work */
};

static void *run(void *arg)
{
    const struct job *j = arg;

    mdl_stop_by(j->stop);
    j->fn(j->arg);
    return NULL;
}

void mdl_share(size_t threads, void (*fn)(void *arg), void *arg)
{
    const _Atomic bool *stop = mdl_stop_by(NULL);
    struct job job = {fn, arg, stop};
    pthread_t others[THREADS_MAX];
    sigset_t all, before;
    size_t started = 0;

    mdl_stop_by(stop);
    threads = base_min(threads, (size_t)THREADS_MAX);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (started + 1 < threads && pthread_create(&others[started], NULL, run, &job) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    fn(arg);
    for (size_t i = 0; i < started; i++) {
        pthread_join(others[i], NULL);
    }
}
