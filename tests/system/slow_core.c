/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_core - a competing program that makes one core slower, for tests and benchmarks
 *
 * usage: slow_core CPU BUSY_US PERIOD_US SECONDS
 *
 * Pinned to CPU at a real-time priority, computes for BUSY_US at the head of every PERIOD_US: what
 * runs there besides gets 1 - BUSY/PERIOD of the core. Without the right to that priority it runs
 * at the highest nice level that is allowed and says so. It prints "ready" when it begins, ends
 * after SECONDS, and with the program that started it.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ll
#define SECONDS_MAX 86400

static long long now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static long number(const char *text, long min, long max, const char *what)
{
    char *end;
    long value;

    errno = 0;
    value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < min || value > max) {
        fprintf(stderr, "slow_core: %s must be from %ld to %ld\n", what, min, max);
        exit(2);
    }
    return value;
}

static void take_core(long cpu)
{
    struct sched_param priority = {.sched_priority = 10};
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0) {
        fprintf(stderr, "slow_core: core %ld: %s\n", cpu, strerror(errno));
        exit(1);
    }
    mlockall(MCL_CURRENT | MCL_FUTURE);
    if (sched_setscheduler(0, SCHED_FIFO, &priority) < 0) {
        fprintf(stderr, "slow_core: no real-time priority (%s); it only competes\n",
                strerror(errno));
        setpriority(PRIO_PROCESS, 0, -20);
    }
}

int main(int argc, char **argv)
{
    long long busy, period, head, end;

    if (argc != 5) {
        fprintf(stderr, "usage: slow_core CPU BUSY_US PERIOD_US SECONDS\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1) { /* the parent went before it could be asked for a signal */
        return 1;
    }
    period = 1000 * number(argv[3], 20, 10000000, "PERIOD_US");
    /* the rest of the core stays with the others: a core that is wholly taken can stop a machine */
    busy = 1000 * number(argv[2], 1, period / 1000 * 9 / 10, "BUSY_US");
    end = number(argv[4], 1, SECONDS_MAX, "SECONDS") * NS_PER_S;
    take_core(number(argv[1], 0, CPU_SETSIZE - 1, "CPU"));
    puts("ready");
    fflush(stdout);
    head = now_ns();
    for (end += head; head < end;) {
        struct timespec next;

        while (now_ns() < head + busy) {
        }
        head += period;
        if (now_ns() > head + 10 * period) { /* it was held up itself: no need to catch up */
            head = now_ns();
        }
        next = (struct timespec){head / NS_PER_S, head % NS_PER_S};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
    }
    return 0;
}
