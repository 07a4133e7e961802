/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/common/transpose.h"

#include "kernels/common/isa_of_cpu.h"

void krn_transpose_run(const struct krn_transpose *t)
{
    KRN_OF_CPU(krn_transpose_run)(t);
}
