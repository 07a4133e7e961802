/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/workers.h"

#include <string.h>

#include "base.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"
#include "pipeline/members.h"

#define WORKERS "4" /* libuv's own default; it reads the number from the environment */
#define WORKER_COUNT 4u

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
