/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/watchers.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base.h"

#define WATCHERS_MAX 16384u

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
