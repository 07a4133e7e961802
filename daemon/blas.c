/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"

/* Set before the one restart, so that it stays one. */
#define GUARD "PIPED_BLAS_RESTARTED"

int dmn_blas_setup(char **argv, struct krn_blas_status *ret)
{
    const struct dmn_log_fields id = {.id = DMN_MSG_BLAS};

    krn_blas_check(ret);
    if (ret->wanted[0] && !getenv("OPENBLAS_CORETYPE") && !getenv(GUARD)) {
        dmn_log_with(LOG_NOTICE, id,
                     "OpenBLAS runs with its %s kernels, this CPU is good for %s: starting again "
                     "with OPENBLAS_CORETYPE=%s",
                     ret->core, ret->wanted, ret->wanted);
        if (setenv("OPENBLAS_CORETYPE", ret->wanted, 1) == 0 &&
            setenv("OPENBLAS_NUM_THREADS", "1", 1) == 0 && setenv(GUARD, "1", 1) == 0) {
            execv("/proc/self/exe", argv);
        }
        dmn_log_with(LOG_WARNING, id, "that did not work: %s; going on with the %s kernels",
                     strerror(errno), ret->core);
    }
    if (!ret->single_threaded) {
        dmn_log_with(LOG_ERR, id,
                     "OpenBLAS (%s) does not run single-threaded; its threads would fight the "
                     "pipeline for the cores. Set OPENBLAS_NUM_THREADS=1",
                     ret->config);
        return DMN_EXIT_FAILED;
    }
    return 0;
}
