/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shifted_clocks.c - moves the clocks that a program reads, while it runs (LD_PRELOAD)
 *
 * SHIFTED_CLOCKS names a file of three i64 in the machine's byte order: nanoseconds that are added
 * to CLOCK_REALTIME, CLOCK_MONOTONIC and CLOCK_BOOTTIME. A test writes there. What the kernel waits
 * for, such as epoll's timeouts, goes by the true clocks, as after a jump.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define NS_PER_S 1000000000ll

enum { REALTIME, MONOTONIC, BOOTTIME, COUNT };

static const volatile int64_t *shift_ns; /* [COUNT] */

/* Before the program's threads. Without the file nothing is shifted. */
__attribute__((constructor)) static void map_file(void)
{
    const char *path = getenv("SHIFTED_CLOCKS");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = MAP_FAILED;

    if (fd >= 0) {
        at = mmap(NULL, COUNT * sizeof(*shift_ns), PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
    }
    shift_ns = at == MAP_FAILED ? NULL : at;
}

static int64_t shift_of(clockid_t clock)
{
    if (!shift_ns) {
        return 0;
    }
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
        return shift_ns[REALTIME];
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
        return shift_ns[MONOTONIC];
    case CLOCK_BOOTTIME:
        return shift_ns[BOOTTIME];
    default:
        return 0; /* CPU time */
    }
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *ret)
{
    long r = syscall(SYS_clock_gettime, clock, ret);
    int64_t ns;

    if (r == 0) {
        ns = ret->tv_sec * NS_PER_S + ret->tv_nsec + shift_of(clock);
        ret->tv_sec = ns / NS_PER_S;
        ret->tv_nsec = ns % NS_PER_S;
    }
    return (int)r;
}

EXPORT int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
    struct timespec t;

    (void)zone;
    clock_gettime(CLOCK_REALTIME, &t);
    *ret = (struct timeval){t.tv_sec, t.tv_nsec / 1000};
    return 0;
}

EXPORT time_t time(time_t *ret)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    if (ret) {
        *ret = t.tv_sec;
    }
    return t.tv_sec;
}
