/* SPDX-License-Identifier: Apache-2.0 */
/** pipeline/plan_why.h - why a plan is refused, for those who judge it */
#pragma once

#include <stddef.h>

struct pl_why {
    char *text; /* NULL: nobody asks */
    size_t bytes;
};

/** pl_refuse() - writes why. Return: -EINVAL. */
__attribute__((format(printf, 2, 3))) int pl_refuse(const struct pl_why *why, const char *format,
                                                    ...);
