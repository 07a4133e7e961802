/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/blas_check.h - is the OpenBLAS that was loaded the one we want
 *
 * OpenBLAS picks its kernels by CPU model; one that it does not know gets the oldest (SSE3) ones.
 * And a threaded OpenBLAS inside a pinned team would fight the pipeline for the cores.
 */
#pragma once

#include <stdbool.h>

struct krn_blas_status {
    char core[32];   /* core name that OpenBLAS runs with */
    char wanted[32]; /* OPENBLAS_CORETYPE that fits this CPU's features better, or "" when core is
                        right */
    bool single_threaded; /* krn_blas_check() asked for one thread and OpenBLAS confirms it */
    char config[128];     /* openblas_get_config() */
};

/** krn_blas_check() - sets one thread, reads what is in force. Threads: the main thread, before any
 * team. */
void krn_blas_check(struct krn_blas_status *ret);
