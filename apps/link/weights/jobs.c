/* SPDX-License-Identifier: Apache-2.0 */
/* Fetches: a thread for what may wait for a disk or takes long. */
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "apps/link/weights/fetch_private.h"

STAILQ_HEAD(job_list, job);

struct jobs {
    pthread_t thread;
    pthread_mutex_t lock; /* what follows */
    pthread_cond_t more;
    struct job_list waiting, through;
    bool ended;
    int fd; /* an eventfd: something is through */
};

/* Return: NULL: there is none. */
static struct job *pop(struct job_list *l)
{
    struct job *j = STAILQ_FIRST(l);

    if (j) {
        STAILQ_REMOVE_HEAD(l, linked);
    }
    return j;
}

static void *work(void *arg)
{
    struct jobs *j = arg;

    pthread_mutex_lock(&j->lock);
    while (!j->ended) {
        struct job *job = pop(&j->waiting);
        bool again;

        if (!job) {
            pthread_cond_wait(&j->more, &j->lock);
            continue;
        }
        pthread_mutex_unlock(&j->lock);
        again = job->run(job);
        pthread_mutex_lock(&j->lock);
        if (again) {
            STAILQ_INSERT_TAIL(&j->waiting, job, linked);
        } else {
            STAILQ_INSERT_TAIL(&j->through, job, linked);
            eventfd_write(j->fd, 1); /* fails only when it is readable anyway */
        }
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

int jobs_new(struct jobs **ret)
{
    struct jobs *j = calloc(1, sizeof(*j));
    sigset_t all, before;
    int r;

    if (!j) {
        return -ENOMEM;
    }
    j->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (j->fd < 0) {
        r = -errno;
        free(j);
        return r;
    }
    STAILQ_INIT(&j->waiting);
    STAILQ_INIT(&j->through);
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->more, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = -pthread_create(&j->thread, NULL, work, j);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r < 0) {
        close(j->fd);
        free(j);
        return r;
    }
    *ret = j;
    return 0;
}

struct jobs *jobs_free(struct jobs *j)
{
    struct job *job;

    if (!j) {
        return NULL;
    }
    pthread_mutex_lock(&j->lock);
    j->ended = true;
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
    pthread_join(j->thread, NULL);
    while ((job = pop(&j->through)) != NULL || (job = pop(&j->waiting)) != NULL) {
        job->dropped = true;
        job->done(job);
    }
    pthread_cond_destroy(&j->more);
    pthread_mutex_destroy(&j->lock);
    close(j->fd);
    free(j);
    return NULL;
}

int jobs_fd(const struct jobs *j)
{
    return j->fd;
}

void jobs_dispatch(struct jobs *j)
{
    struct job_list through = STAILQ_HEAD_INITIALIZER(through);
    struct job *job;
    eventfd_t count;

    eventfd_read(j->fd, &count);
    pthread_mutex_lock(&j->lock);
    STAILQ_CONCAT(&through, &j->through);
    pthread_mutex_unlock(&j->lock);
    while ((job = pop(&through)) != NULL) {
        job->done(job);
    }
}

void jobs_add(struct jobs *j, struct job *job)
{
    job->dropped = false;
    pthread_mutex_lock(&j->lock);
    STAILQ_INSERT_TAIL(&j->waiting, job, linked);
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
}
