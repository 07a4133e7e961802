/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/blas_check.h"

#include <cblas.h>
#include <stdio.h>
#include <string.h>

#include "base.h"
#include "kernels/kernels.h"

/* What the OpenBLAS core types of x86 are worth: 2 = AVX-512, 1 = AVX2 and FMA, 0 = less. */
static int core_grade(const char *core)
{
    static const char *const wide[] = {"SkylakeX", "Cooperlake", "SapphireRapids"};
    static const char *const middle[] = {"Haswell", "Zen"};

    for (size_t i = 0; i < base_array_count(wide); i++) {
        if (strcasecmp(core, wide[i]) == 0) {
            return 2;
        }
    }
    for (size_t i = 0; i < base_array_count(middle); i++) {
        if (strcasecmp(core, middle[i]) == 0) {
            return 1;
        }
    }
    return 0;
}

void krn_blas_check(struct krn_blas_status *ret)
{
    uint32_t have = krn_cpu_features();
    int can = have & KRN_CPU_AVX512 ? 2 : have & KRN_CPU_AVX2 ? 1 : 0;

    memset(ret, 0, sizeof(*ret));
    openblas_set_num_threads(1);
    ret->single_threaded = openblas_get_num_threads() == 1;
    snprintf(ret->core, sizeof(ret->core), "%s", openblas_get_corename());
    snprintf(ret->config, sizeof(ret->config), "%s", openblas_get_config());
    /* only a build with several cores inside can be told which one to be */
    if (core_grade(ret->core) < can && strstr(ret->config, "DYNAMIC_ARCH")) {
        snprintf(ret->wanted, sizeof(ret->wanted), "%s", can == 2 ? "SkylakeX" : "Haswell");
    }
}
