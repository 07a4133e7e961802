/* SPDX-License-Identifier: Apache-2.0 */
/* libc's functions that threads wait or wake by, for the threads of a run; linked with --wrap. The
 * kernel's words and semaphores are seen by all at once: it locks them. */
#include <errno.h>
#include <linux/futex.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/base.h"
#include "tests/interleavings/explore.h"
#include "tests/interleavings/memory_model.h"

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
int __real_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __real_pthread_join(pthread_t thread, void **ret);
int __wrap_pthread_join(pthread_t thread, void **ret);
int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __real_clock_gettime(clockid_t clock, struct timespec *ret);
int __wrap_clock_gettime(clockid_t clock, struct timespec *ret);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __real_sem_post(sem_t *s);
int __wrap_sem_post(sem_t *s);
int __real_sem_timedwait(sem_t *s, const struct timespec *until);
int __wrap_sem_timedwait(sem_t *s, const struct timespec *until);
void __real_free(void *p);
void __wrap_free(void *p);

/* ---- the futex ---- */

static long futex(const uint32_t *word, int op, uint32_t value)
{
    ex_point(false);
    if (op == FUTEX_WAKE) {
        return (long)ex_unblock(word, value);
    }
    /* the kernel looks at the word and puts the thread to sleep in one step */
    if (*(const volatile uint32_t *)word != value) {
        errno = EAGAIN;
        return -1;
    }
    if (ex_choose(3) == 2) { /* a signal, or a wake-up of nobody */
        errno = EINTR;
        return -1;
    }
    ex_block(word);
    return 0;
}

long __wrap_syscall(long number, ...)
{
    long a[6];
    va_list args;

    va_start(args, number);
    for (size_t i = 0; i < 6; i++) {
        a[i] = va_arg(args, long);
    }
    va_end(args);
    if (ex_active() && number == SYS_futex) {
        return futex((const uint32_t *)a[0], (int)a[1] & FUTEX_CMD_MASK, (uint32_t)a[2]);
    }
    return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* ---- threads; a run's pthread_t is its number ---- */

int __wrap_pthread_create(pthread_t *ret, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg)
{
    size_t number;

    if (!ex_active()) {
        return __real_pthread_create(ret, attr, fn, arg);
    }
    ex_point(false);
    number = ex_thread_new(fn, arg);
    mm_start(number);
    *ret = (pthread_t)number;
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret)
{
    void *result;

    if (!ex_active()) {
        return __real_pthread_join(thread, ret);
    }
    ex_point(false);
    result = ex_thread_wait((size_t)thread);
    mm_acquire_of((size_t)thread);
    if (ret != NULL) {
        *ret = result;
    }
    return 0;
}

int __wrap_sched_yield(void)
{
    if (!ex_active()) {
        return __real_sched_yield();
    }
    ex_yield();
    return 0;
}

/* ---- time ---- */

int __wrap_clock_gettime(clockid_t clock, struct timespec *ret)
{
    uint64_t now;

    if (!ex_active()) {
        return __real_clock_gettime(clock, ret);
    }
    now = ex_now_ns();
    ret->tv_sec = (time_t)(now / BASE_NS_PER_S);
    ret->tv_nsec = (long)(now % BASE_NS_PER_S);
    return 0;
}

/* ---- semaphores: with the count of the real one ---- */

/* a byte of it that no function of libc's changes stands for what it carries */
static const void *carrier(const sem_t *s)
{
    return (const char *)s + sizeof(*s) - 1;
}

int __wrap_sem_post(sem_t *s)
{
    if (!ex_active()) {
        return __real_sem_post(s);
    }
    ex_point(false);
    mm_publish(carrier(s));
    __real_sem_post(s);
    ex_unblock(s, 1);
    return 0;
}

int __wrap_sem_timedwait(sem_t *s, const struct timespec *until)
{
    if (!ex_active()) {
        return __real_sem_timedwait(s, until);
    }
    ex_point(false);
    while (sem_trywait(s) != 0) {
        ex_block(s); /* no timeout: to wait for ever is a fault of the code */
    }
    mm_receive(carrier(s));
    return 0;
}

/* ---- mutexes: locked as the real one is ---- */

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    if (!ex_active()) {
        return __real_pthread_mutex_lock(m);
    }
    ex_point(false);
    while (pthread_mutex_trylock(m) != 0) {
        ex_block(m);
    }
    mm_receive(m);
    return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    if (!ex_active()) {
        return __real_pthread_mutex_unlock(m);
    }
    ex_point(false);
    mm_publish(m);
    __real_pthread_mutex_unlock(m);
    ex_unblock(m, 1);
    return 0;
}

void __wrap_free(void *p)
{
    if (ex_active() && p != NULL) {
        mm_forget(p, malloc_usable_size(p));
    }
    __real_free(p);
}
