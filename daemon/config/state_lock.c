/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/state_lock.h"

#include <stdatomic.h>

#include "base/base.h"
#include "daemon/service/folders.h"

#define LOCK_NAME "state.lock"

static int lock_fd = -1;   /* owned by the loop thread */
static _Atomic bool taken; /* written by the loop thread */

int dmn_state_lock(const char *folder, pid_t *ret_holder)
{
    int error = dmn_folder_lock(folder, LOCK_NAME, &lock_fd, ret_holder);

    atomic_store_explicit(&taken, error == -EADDRINUSE, memory_order_relaxed);
    return error;
}

void dmn_state_unlock(void)
{
    base_close_fd(&lock_fd);
    atomic_store_explicit(&taken, false, memory_order_relaxed);
}

bool dmn_state_taken(void)
{
    return atomic_load_explicit(&taken, memory_order_relaxed);
}

bool dmn_state_untold(int error)
{
    return error < 0 && error != -EBUSY;
}

const char *dmn_state_why(int error)
{
    return error == -ENOENT    ? "the daemon has no state directory; its log says why"
           : error == -EBUSY   ? "another daemon keeps the state directory"
           : error == -EBADMSG ? "the file there is damaged; pipectl reload says more"
                               : strerror(-error);
}
