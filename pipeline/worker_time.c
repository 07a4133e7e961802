/* SPDX-License-Identifier: Apache-2.0 */
#include "pipeline/worker_time.h"

#include <pthread.h>

#include "base/base.h"

void pl_worker_time_init(struct pl_worker_time *w)
{
    *w = (struct pl_worker_time){.fd = -1};
    if (pthread_getcpuclockid(pthread_self(), &w->clock) == 0) {
        w->fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    }
}

void pl_worker_time_deinit(struct pl_worker_time *w)
{
    if (w->fd >= 0) {
        close(w->fd);
        w->fd = -1;
    }
}

/* The second of "ns on a core, ns waiting for one, times on one". */
static uint64_t waited_ns(const struct pl_worker_time *w)
{
    char text[96], *second;
    ssize_t n = pread(w->fd, text, sizeof(text) - 1, 0);

    text[base_max(n, (ssize_t)0)] = '\0';
    (void)strtoull(text, &second, 10);
    return strtoull(second, NULL, 10);
}

static uint64_t ran_ns(const struct pl_worker_time *w)
{
    struct timespec t = {0};

    clock_gettime(w->clock, &t);
    return (uint64_t)t.tv_sec * BASE_NS_PER_S + (uint64_t)t.tv_nsec;
}

void pl_worker_time_look(struct pl_worker_time *w)
{
    if (w->fd >= 0) {
        w->waited_ns = waited_ns(w);
        w->ran_ns = ran_ns(w);
    }
}

uint64_t pl_worker_time_lost_ns(const struct pl_worker_time *w, uint64_t ns)
{
    uint64_t waited, ran;

    if (w->fd < 0) {
        return 0;
    }
    waited = waited_ns(w) - w->waited_ns;
    ran = ran_ns(w) - w->ran_ns;
    return ran < ns ? base_min(waited, ns - ran) : 0;
}
