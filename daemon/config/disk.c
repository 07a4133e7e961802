/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/disk.h"

#include <pthread.h>

#include "base.h"
#include "pipeline/members.h"

STAILQ_HEAD(jobs, dmn_disk_job);

struct dmn_disk {
    uv_async_t wake; /* to the loop: jobs are finished */
    pthread_t thread;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t changed;
    struct jobs waiting, finished;
    bool busy, stop;
    bool stopped; /* loop thread: there is no thread any more */
};

static void *run(void *arg)
{
    struct dmn_disk *d = arg;

    pthread_mutex_lock(&d->lock);
    for (;;) {
        struct dmn_disk_job *job = STAILQ_FIRST(&d->waiting);

        if (!job && d->stop) {
            break;
        }
        if (!job) {
            pthread_cond_wait(&d->changed, &d->lock);
            continue;
        }
        STAILQ_REMOVE_HEAD(&d->waiting, linked);
        d->busy = true;
        pthread_mutex_unlock(&d->lock);
        job->error = job->work(job);
        pthread_mutex_lock(&d->lock);
        d->busy = false;
        STAILQ_INSERT_TAIL(&d->finished, job, linked);
        pthread_cond_broadcast(&d->changed);
        uv_async_send(&d->wake);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

/* A done() may give the disk new jobs. */
static void finish(struct dmn_disk *d)
{
    struct jobs of = STAILQ_HEAD_INITIALIZER(of);
    struct dmn_disk_job *job;

    pthread_mutex_lock(&d->lock);
    STAILQ_CONCAT(&of, &d->finished);
    pthread_mutex_unlock(&d->lock);
    while ((job = STAILQ_FIRST(&of)) != NULL) {
        STAILQ_REMOVE_HEAD(&of, linked);
        job->done(job, job->error);
    }
}

static void on_wake(uv_async_t *wake)
{
    finish(wake->data);
}

int dmn_disk_new(uv_loop_t *loop, struct dmn_disk **ret)
{
    struct dmn_disk *d = calloc(1, sizeof(*d));
    int r = d ? uv_async_init(loop, &d->wake, on_wake) : -ENOMEM;

    *ret = NULL;
    if (r < 0) {
        free(d);
        return r;
    }
    d->wake.data = d;
    uv_unref((uv_handle_t *)&d->wake);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    STAILQ_INIT(&d->waiting);
    STAILQ_INIT(&d->finished);
    *ret = d; /* also without a thread: its handle closes with the loop */
    r = pl_thread_start(&d->thread, run, d); /* the loop thread handles signals */
    if (r < 0) {
        d->stopped = true;
        uv_close((uv_handle_t *)&d->wake, NULL);
    }
    return r;
}

void dmn_disk_stop(struct dmn_disk *d)
{
    if (d && !d->stopped) {
        pthread_mutex_lock(&d->lock);
        d->stop = true;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
        pthread_join(d->thread, NULL);
        d->stopped = true;
        finish(d);
        uv_close((uv_handle_t *)&d->wake, NULL);
    }
}

struct dmn_disk *dmn_disk_free(struct dmn_disk *d)
{
    if (d) {
        pthread_cond_destroy(&d->changed);
        pthread_mutex_destroy(&d->lock);
        free(d);
    }
    return NULL;
}

void dmn_disk_do(struct dmn_disk *d, struct dmn_disk_job *job)
{
    if (!d || d->stopped) {
        job->done(job, job->work(job));
        return;
    }
    pthread_mutex_lock(&d->lock);
    STAILQ_INSERT_TAIL(&d->waiting, job, linked);
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void dmn_disk_settle(struct dmn_disk *d)
{
    if (!d) {
        return;
    }
    pthread_mutex_lock(&d->lock);
    while (d->busy || !STAILQ_EMPTY(&d->waiting)) {
        pthread_cond_wait(&d->changed, &d->lock);
    }
    pthread_mutex_unlock(&d->lock);
}
