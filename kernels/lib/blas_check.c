/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/lib/blas_check.h"

#include <cblas.h>

#include "base/base.h"
#include "kernels/common/cpu.h"

/* What the OpenBLAS core types of x86 are worth, and the one to ask for. */
enum grade { SSE, AVX2, AVX512, BF16 };
static const char *const core_of[] = {"Prescott", "Haswell", "SkylakeX", "Cooperlake"};

static enum grade core_grade(const char *core)
{
    static const struct {
        const char *name;
        enum grade grade;
    } known[] = {{"Haswell", AVX2},
                 {"Zen", AVX2},
                 {"SkylakeX", AVX512},
                 {"Cooperlake", BF16},
                 {"SapphireRapids", BF16}};

    for (size_t i = 0; i < base_array_count(known); i++) {
        if (strcasecmp(core, known[i].name) == 0) {
            return known[i].grade;
        }
    }
    return SSE;
}

static enum grade grade_of(uint32_t features)
{
    return features & KRN_CPU_AVX512BF16 ? BF16
           : features & KRN_CPU_AVX512   ? AVX512
           : features & KRN_CPU_AVX2     ? AVX2
                                         : SSE;
}

void krn_blas_check(struct krn_blas_status *ret)
{
    enum grade can = grade_of(krn_cpu_features()), least = can < AVX512 ? can : AVX512, is;

    memset(ret, 0, sizeof(*ret));
    openblas_set_num_threads(1);
    ret->single_threaded = openblas_get_num_threads() == 1;
    snprintf(ret->core, sizeof(ret->core), "%s", openblas_get_corename());
    snprintf(ret->config, sizeof(ret->config), "%s", openblas_get_config());
    is = core_grade(ret->core);
    ret->above = krn_cpu_narrowed() && is > can;
    /* Only a build with several cores inside can be told which one to be. All that have AVX-512
     * compute f32 alike. */
    if ((is < least || ret->above) && strstr(ret->config, "DYNAMIC_ARCH")) {
        snprintf(ret->wanted, sizeof(ret->wanted), "%s", core_of[ret->above ? can : least]);
    }
}
