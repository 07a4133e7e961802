/* SPDX-License-Identifier: Apache-2.0 */
/** apps/http/lock.h - mutexes held to the end of a block, and waits until a time. Threads: any. */
#pragma once

#include <pthread.h>

#include "base/base.h"

static inline pthread_mutex_t *web_lock_(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void web_unlock_(pthread_mutex_t **mutex)
{
    pthread_mutex_unlock(*mutex);
}

/* Holds @mutex from here to the end of the block. */
#define web_locked(mutex) base_cleanup(web_unlock_) pthread_mutex_t *web_locked_ = web_lock_(mutex)

/** web_cond_init() - for web_cond_wait(). */
static inline void web_cond_init(pthread_cond_t *c)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

/** web_cond_wait() - waits until a time of base_now_ns(). Return: 0; ETIMEDOUT. */
static inline int web_cond_wait(pthread_cond_t *c, pthread_mutex_t *mutex, uint64_t at_ns)
{
    struct timespec t = {.tv_sec = (time_t)(at_ns / BASE_NS_PER_S),
                         .tv_nsec = (long)(at_ns % BASE_NS_PER_S)};

    return pthread_cond_timedwait(c, mutex, &t);
}
