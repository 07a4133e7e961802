/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/service/work.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base.h"
#include "pipeline/members.h"

#define BESIDE_NICE 10 /* a tenth of the weight of a thread of nice 0 */

STAILQ_HEAD(jobs, dmn_job);

static const struct {
    size_t threads;
    int nice; /* 0: as the process */
    const char *name;
} kinds[] = {
    [DMN_JOB_AWAITED] = {4, 0, "piped:work"},
    [DMN_JOB_BESIDE] = {2, BESIDE_NICE, "piped:beside"},
};

/* The jobs of one kind that have not begun. */
struct queue {
    struct dmn_work *of;
    enum dmn_job_kind kind;
    pthread_cond_t changed;
    struct jobs waiting; /* under the lock */
};

struct dmn_work {
    uv_async_t wake; /* to the loop: jobs are finished */
    pthread_t threads[DMN_WORK_THREADS];
    size_t thread_count;
    size_t given; /* jobs that are not done */
    bool stopped;
    struct queue queues[DMN_JOB_KINDS];
    pthread_mutex_t lock; /* of all that follows */
    struct jobs finished;
    bool stop;
};

static void *work_main(void *arg)
{
    struct queue *q = arg;
    struct dmn_work *w = q->of;
    struct dmn_job *job;

    pthread_setname_np(pthread_self(), kinds[q->kind].name);
    if (kinds[q->kind].nice > 0) {
        (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), kinds[q->kind].nice);
    }
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        job = STAILQ_FIRST(&q->waiting);
        if (!job) {
            pthread_cond_wait(&q->changed, &w->lock);
            continue;
        }
        STAILQ_REMOVE_HEAD(&q->waiting, linked);
        job->waits = false;
        pthread_mutex_unlock(&w->lock);
        job->run(job);
        pthread_mutex_lock(&w->lock);
        STAILQ_INSERT_TAIL(&w->finished, job, linked);
        uv_async_send(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* A done() may give new jobs. */
static void on_wake(uv_async_t *wake)
{
    struct dmn_work *w = wake->data;
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

static int start_threads(struct dmn_work *w, struct queue *q)
{
    int r = 0;

    for (size_t i = 0; i < kinds[q->kind].threads && r == 0; i++) {
        r = pl_thread_start(&w->threads[w->thread_count], work_main, q);
        w->thread_count += r == 0;
    }
    return r;
}

int dmn_work_new(uv_loop_t *loop, struct dmn_work **ret)
{
    struct dmn_work *w = calloc(1, sizeof(*w));
    int r = w ? uv_async_init(loop, &w->wake, on_wake) : -ENOMEM;

    *ret = NULL;
    if (r < 0) {
        free(w);
        return r;
    }
    w->wake.data = w;
    uv_unref((uv_handle_t *)&w->wake);
    pthread_mutex_init(&w->lock, NULL);
    STAILQ_INIT(&w->finished);
    for (size_t k = 0; k < DMN_JOB_KINDS; k++) {
        struct queue *q = &w->queues[k];

        q->of = w;
        q->kind = (enum dmn_job_kind)k;
        pthread_cond_init(&q->changed, NULL);
        STAILQ_INIT(&q->waiting);
        r = r < 0 ? r : start_threads(w, q);
    }
    *ret = w; /* also without threads: its handle closes with the loop */
    return r;
}

void dmn_work_stop(struct dmn_work *w)
{
    if (!w || w->stopped) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    for (size_t k = 0; k < DMN_JOB_KINDS; k++) {
        pthread_cond_broadcast(&w->queues[k].changed);
    }
    pthread_mutex_unlock(&w->lock);
    for (size_t i = 0; i < w->thread_count; i++) {
        pthread_join(w->threads[i], NULL);
    }
    w->stopped = true;
    uv_close((uv_handle_t *)&w->wake, NULL);
}

struct dmn_work *dmn_work_free(struct dmn_work *w)
{
    if (w) {
        for (size_t k = 0; k < DMN_JOB_KINDS; k++) {
            pthread_cond_destroy(&w->queues[k].changed);
        }
        pthread_mutex_destroy(&w->lock);
        free(w);
    }
    return NULL;
}

void dmn_work_do(struct dmn_work *w, struct dmn_job *job)
{
    struct queue *q = &w->queues[job->kind];

    if (w->given++ == 0) {
        uv_ref((uv_handle_t *)&w->wake);
    }
    job->at = w;
    job->left = false;
    pthread_mutex_lock(&w->lock);
    job->waits = true;
    STAILQ_INSERT_TAIL(&q->waiting, job, linked);
    pthread_cond_signal(&q->changed);
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
        STAILQ_REMOVE(&w->queues[job->kind].waiting, job, dmn_job, linked);
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
