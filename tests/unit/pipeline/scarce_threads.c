/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdatomic.h>

#include "pipeline/members.h"
#include "tests/unit/pipeline/scarce_threads.h"

static _Atomic int threads_left;

static int scarce_create(pthread_t *t, const pthread_attr_t *attr, void *(*fn)(void *), void *arg)
{
    return atomic_fetch_sub(&threads_left, 1) > 0 ? pthread_create(t, attr, fn, arg) : EAGAIN;
}

void scarce_threads(int left)
{
    atomic_store(&threads_left, left);
    pl_thread_create = scarce_create;
}

void enough_threads(void)
{
    pl_thread_create = pthread_create;
}
