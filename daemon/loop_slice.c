/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/loop_slice.h"

#include <linux/sched.h>
#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000 /* the least that Linux takes (sched_setattr(2)) */

bool dmn_loop_slice_set(void)
{
    struct sched_attr a;

    if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) != 0 || a.sched_policy != SCHED_NORMAL ||
        a.sched_nice < 0) {
        return false;
    }
    a = (struct sched_attr){.size = sizeof(a),
                            .sched_policy = SCHED_NORMAL,
                            .sched_flags = SCHED_FLAG_RESET_ON_FORK,
                            .sched_nice = a.sched_nice,
                            .sched_runtime = SLICE_NS};
    return syscall(SYS_sched_setattr, 0, &a, 0) == 0;
}
