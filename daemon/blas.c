/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "daemon/daemon.h"
#include "daemon/service/log.h"
#include "daemon/service/messages.h"
#include "kernels/common/cpu.h"

/* Set before the restart, so that there is only one. */
#define GUARD "PIPED_BLAS_RESTARTED"

int dmn_cpu_setup(void)
{
    char text[KRN_CPU_TEXT_MAX];

    if (krn_cpu_check(text) < 0) {
        dmn_log_with(LOG_ERR, (struct dmn_log_fields){.id = DMN_MSG_STARTUP_FAILED}, "%s", text);
        return DMN_EXIT_CONFIG;
    }
    return 0;
}

int dmn_blas_setup(char **argv, struct krn_blas_status *ret)
{
    const struct dmn_log_fields id = {.id = DMN_MSG_BLAS};
    char text[KRN_CPU_TEXT_MAX];

    krn_blas_check(ret);
    if (ret->wanted[0] && (ret->above || !getenv("OPENBLAS_CORETYPE")) && !getenv(GUARD)) {
        dmn_log_with(LOG_NOTICE, id,
                     "OpenBLAS uses its %s kernels, but %s %s: restarting with "
                     "OPENBLAS_CORETYPE=%s",
                     ret->core, ret->above ? "PIPED_CPU only allows" : "this CPU can run",
                     ret->wanted, ret->wanted);
        if (setenv("OPENBLAS_CORETYPE", ret->wanted, 1) == 0 &&
            setenv("OPENBLAS_NUM_THREADS", "1", 1) == 0 && setenv(GUARD, "1", 1) == 0) {
            execv("/proc/self/exe", argv);
        }
        dmn_log_with(LOG_WARNING, id, "cannot restart: %s; going on with the %s kernels",
                     strerror(errno), ret->core);
    }
    if (krn_cpu_narrowed()) {
        dmn_log(LOG_NOTICE, "PIPED_CPU limits the CPU's features to %s",
                krn_cpu_names(krn_cpu_features(), text));
    }
    if (ret->above) {
        dmn_log_with(LOG_WARNING, id,
                     "OpenBLAS cannot be limited: its %s kernels use more than PIPED_CPU allows",
                     ret->core);
    }
    if (!ret->single_threaded) {
        dmn_log_with(
            LOG_ERR, id,
            "OpenBLAS (%s) does not run single-threaded; its threads would compete with the "
            "pipeline for the cores. Set OPENBLAS_NUM_THREADS=1",
            ret->config);
        return DMN_EXIT_FAILED;
    }
    return 0;
}
