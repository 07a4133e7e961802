/* SPDX-License-Identifier: Apache-2.0 */
#include "apps/link/weights/jobs.h"

#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "base/base.h"

struct list {
    struct job *first, **end;
};

struct jobs {
    pthread_t thread;
    pthread_mutex_t lock; /* what follows */
    pthread_cond_t more;
    struct list waiting, through;
    bool ended;
    int fd; /* an eventfd: something is through */
};

static void push(struct list *l, struct job *j)
{
    j->next = NULL;
    *(l->first ? l->end : &l->first) = j;
    l->end = &j->next;
}

static struct job *pop(struct list *l)
{
    struct job *j = l->first;

    if (j) {
        l->first = j->next;
    }
    return j;
}

static void tell(const struct jobs *j)
{
    uint64_t one = 1;
    ssize_t n = write(j->fd, &one, sizeof(one)); /* fails only when it is readable anyway */

    (void)n;
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
        push(again ? &j->waiting : &j->through, job);
        if (!again) {
            tell(j);
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
    struct list through;
    struct job *job;
    uint64_t count;
    ssize_t n = read(j->fd, &count, sizeof(count));

    (void)n;
    pthread_mutex_lock(&j->lock);
    through = j->through;
    j->through.first = NULL;
    pthread_mutex_unlock(&j->lock);
    while ((job = pop(&through)) != NULL) {
        job->done(job);
    }
}

void jobs_add(struct jobs *j, struct job *job)
{
    job->dropped = false;
    pthread_mutex_lock(&j->lock);
    push(&j->waiting, job);
    pthread_cond_signal(&j->more);
    pthread_mutex_unlock(&j->lock);
}
