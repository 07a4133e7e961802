/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/blas_check.h - checks the OpenBLAS that is loaded
 *
 * When OpenBLAS is loaded, it picks its kernels by CPU model. An unknown model gets the oldest
 * (SSE3) ones, and PIPED_CPU (kernels/common/cpu.h) may allow fewer features than the model has. A
 * threaded OpenBLAS inside a pinned team would compete with the pipeline for cores.
 */
#pragma once

#include <stdbool.h>

struct krn_blas_status {
    char core[32];   /* core name that OpenBLAS runs with */
    char wanted[32]; /* OPENBLAS_CORETYPE that fits krn_cpu_features() better; "": core is right, or
                      * OpenBLAS has no better one */
    bool above;      /* core uses more than PIPED_CPU allows */
    bool single_threaded; /* OpenBLAS confirmed one thread to krn_blas_check() */
    char config[128];     /* openblas_get_config() */
};

/** krn_blas_check() - sets OpenBLAS to one thread and reads its state. Threads: the main thread,
 * before any team. */
void krn_blas_check(struct krn_blas_status *ret);
