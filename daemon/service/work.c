/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/work.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/base.h"
#include "pipeline/members.h"

#define LOW_NICE 10 /* a tenth of the weight of a thread of nice 0 */

STAILQ_HEAD(jobs, dmn_job);

struct dmn_work {
    uv_async_t wake; /* to the loop: jobs are finished */
    const char *name;
    bool gives_way, stopped;
    size_t given; /* jobs that are not done */
    pthread_t threads[DMN_WORK_THREADS];
    size_t thread_count;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    struct jobs waiting, finished;
    size_t busy; /* threads at work */
    bool stop;
};

static void *work_main(void *arg)
{
    struct dmn_work *w = arg;

    pthread_setname_np(pthread_self(), w->name);
    if (w->gives_way) {
        (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LOW_NICE);
    }
    pthread_mutex_lock(&w->lock);
    for (;;) {
        struct dmn_job *job = STAILQ_FIRST(&w->waiting);

        if (!job && w->stop) {
            break;
        }
        if (!job) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        STAILQ_REMOVE_HEAD(&w->waiting, linked);
        job->waits = false;
        w->busy++;
        pthread_mutex_unlock(&w->lock);
        job->run(job);
        pthread_mutex_lock(&w->lock);
        w->busy--;
        STAILQ_INSERT_TAIL(&w->finished, job, linked);
        pthread_cond_broadcast(&w->changed);
        uv_async_send(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* A done() may give new jobs. */
static void finish(struct dmn_work *w)
{
    struct jobs of = STAILQ_HEAD_INITIALIZER(of);
    struct dmn_job *job;

    pthread_mutex_lock(&w->lock);
    STAILQ_CONCAT(&of, &w->finished);
    pthread_mutex_unlock(&w->lock);
    while ((job = STAILQ_FIRST(&of)) != NULL) {
        STAILQ_REMOVE_HEAD(&of, linked);
        job->at = NULL;
        if (--w->given == 0) {
            uv_unref((uv_handle_t *)&w->wake);
        }
        if (job->left) {
            job->drop(job);
        } else {
            job->done(job);
        }
    }
}

static void on_wake(uv_async_t *wake)
{
    finish(wake->data);
}

void dmn_work_stop(struct dmn_work *w)
{
    if (!w || w->stopped) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->thread_count; i++) {
        pthread_join(w->threads[i], NULL);
    }
    w->stopped = true;
    finish(w);
    uv_close((uv_handle_t *)&w->wake, NULL);
}

int dmn_work_new(uv_loop_t *loop, const char *name, size_t threads, bool gives_way,
                 struct dmn_work **ret)
{
    struct dmn_work *w = calloc(1, sizeof(*w));
    int r = w ? uv_async_init(loop, &w->wake, on_wake) : -ENOMEM;

    *ret = NULL;
    if (r < 0) {
        free(w);
        return r;
    }
    w->wake.data = w;
    w->name = name;
    w->gives_way = gives_way;
    uv_unref((uv_handle_t *)&w->wake);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    STAILQ_INIT(&w->waiting);
    STAILQ_INIT(&w->finished);
    *ret = w; /* also without threads: its handle closes with the loop */
    while (r == 0 && w->thread_count < threads) {
        r = pl_thread_start(&w->threads[w->thread_count], work_main, w);
        w->thread_count += r == 0;
    }
    if (r < 0) {
        dmn_work_stop(w);
    }
    return r;
}

struct dmn_work *dmn_work_free(struct dmn_work *w)
{
    if (w) {
        pthread_cond_destroy(&w->changed);
        pthread_mutex_destroy(&w->lock);
        free(w);
    }
    return NULL;
}

void dmn_work_settle(struct dmn_work *w)
{
    if (!w) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    while (w->busy > 0 || !STAILQ_EMPTY(&w->waiting)) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
}

void dmn_work_do(struct dmn_work *w, struct dmn_job *job)
{
    if (!w || w->stopped) {
        job->run(job);
        job->done(job);
        return;
    }
    if (w->given++ == 0) {
        uv_ref((uv_handle_t *)&w->wake);
    }
    job->at = w;
    job->left = false;
    pthread_mutex_lock(&w->lock);
    job->waits = true;
    STAILQ_INSERT_TAIL(&w->waiting, job, linked);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void dmn_job_cancel(struct dmn_job *job)
{
    struct dmn_work *w = job->at;

    if (!w) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    if (job->waits) {
        job->waits = false;
        STAILQ_REMOVE(&w->waiting, job, dmn_job, linked);
        STAILQ_INSERT_TAIL(&w->finished, job, linked);
        uv_async_send(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
}

void dmn_job_leave(struct dmn_job *job)
{
    if (job->at) {
        job->left = true;
        dmn_job_cancel(job);
    } else {
        job->drop(job);
    }
}
