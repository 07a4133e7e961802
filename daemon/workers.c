/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/workers.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"
#include "pipeline/members.h"

#define WORKERS "4" /* libuv's own default; it reads the number from the environment */
#define WORKER_COUNT 4u
#define WATCHERS_MAX 16384u

struct start {
    uv_loop_t *loop;
    uv_work_t *first;
};

static void nothing(uv_work_t *work)
{
}

static void nothing_done(uv_work_t *work, int status)
{
}

static int make(void *arg)
{
    struct start *s = arg;

    return uv_queue_work(s->loop, s->first, nothing, nothing_done);
}

int dmn_workers_start(uv_loop_t *loop, uv_work_t *first)
{
    struct start s = {loop, first};
    int r = setenv("UV_THREADPOOL_SIZE", WORKERS, 1) < 0 ? -errno : 0;

    r = r < 0 ? r : pl_threads_make(WORKER_COUNT, make, &s);
    if (r < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED},
                     "cannot start %u work threads: %s; allow more threads (TasksMax= of the unit, "
                     "ulimit -u) or more address space (LimitAS=, ulimit -v)",
                     WORKER_COUNT, strerror(-r));
    }
    return r;
}

static void nothing_closed(uv_handle_t *handle)
{
}

/* libuv's array of watchers, by descriptor, grows at the first use of a large one, and stays. */
int dmn_watchers_reserve(uv_loop_t *loop, uv_poll_t *poll)
{
    base_autoclose int low = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), high = -1;
    struct rlimit limit = {.rlim_cur = WATCHERS_MAX};
    int r;

    getrlimit(RLIMIT_NOFILE, &limit);
    high = low < 0 ? -1
                   : fcntl(low, F_DUPFD_CLOEXEC,
                           (int)base_min(limit.rlim_cur, (rlim_t)WATCHERS_MAX) - 1);
    r = high < 0 ? -errno : uv_poll_init(loop, poll, high);
    if (r < 0) {
        return r;
    }
    r = uv_poll_start(poll, UV_READABLE, NULL);
    uv_close((uv_handle_t *)poll, nothing_closed);
    return r;
}
