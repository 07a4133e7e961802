/* SPDX-License-Identifier: Apache-2.0 */
/**
 * kernels/lib/blas.h - checks the OpenBLAS that is loaded, and has a buffer for each of its calls
 *
 * When OpenBLAS is loaded, it picks its kernels by CPU model. An unknown model gets the oldest
 * (SSE3) ones, and PIPED_CPU (kernels/common/cpu.h) may allow fewer features than the model has. A
 * threaded OpenBLAS inside a pinned team would compete with the pipeline for cores.
 *
 * A call that finds no free buffer maps one of 128 MiB, mostly untouched, and tries for ever if
 * that fails. So buffers are made here, after asking for the memory, and a call waits for one of
 * them: with one buffer, every call ends. OpenBLAS keeps them until the process ends.
 */
#pragma once

#include "kernels/primitive.h"

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

/** krn_blas_prepare() - prepare() of every primitive that calls OpenBLAS: a buffer for each member.
 * Return: 0; -ENOMEM: there is not even one. */
int krn_blas_prepare(const struct mdl_model *m, const struct mdl_op *op, void *packed, size_t width,
                     struct krn_prepared *p);
/** krn_blas_release() - nothing: the buffers are for all. */
void krn_blas_release(struct krn_prepared *p);

/** krn_blas_take() - before a call of OpenBLAS: waits until a buffer is free. After
 * krn_blas_prepare(). Threads: any. */
void krn_blas_take(void);
/** krn_blas_give() - after the call. */
void krn_blas_give(void);
